"""Kalman filters of a drifting mean, as pure functions: a belief goes in, a new belief comes out.

    >>> from kscore import filters
    >>> path = filters.filter_series([3.0, 2.0, 4.0], Q=0.01, R=1.0)
    >>> filters.estimate_noise([3.0, 2.0, 4.0, 3.5, 5.0]).gain

`level` has the filter itself, `noise` estimates its two variances, `slope` gives the mean a direction. They need numpy
alone, except where a method says otherwise.
"""

from kscore.filters.level import (
    FAR,
    START,
    TINY,
    Belief,
    Filtered,
    SteadyState,
    adaptive_filter_checked,
    adaptive_filter_series,
    filter_checked,
    filter_series,
    follow,
    gain,
    not_too_far,
    predict,
    robust_update,
    steady_state,
    update,
)
from kscore.filters.noise import (
    BANK,
    Bank,
    Moments,
    Noise,
    bank_belief,
    bank_noise,
    bank_weights,
    concentrated_likelihood,
    estimate_noise,
    follow_bank,
    follow_moments,
    local_level_likelihood,
    solve_moments,
    start_bank,
    torch_likelihood,
)
from kscore.filters.slope import Trend, predict_trend, update_trend

__all__ = [
    "BANK",
    "FAR",
    "START",
    "TINY",
    "Bank",
    "Belief",
    "Filtered",
    "Moments",
    "Noise",
    "SteadyState",
    "Trend",
    "adaptive_filter_checked",
    "adaptive_filter_series",
    "bank_belief",
    "bank_noise",
    "bank_weights",
    "concentrated_likelihood",
    "estimate_noise",
    "filter_checked",
    "filter_series",
    "follow",
    "follow_bank",
    "follow_moments",
    "gain",
    "local_level_likelihood",
    "not_too_far",
    "predict",
    "predict_trend",
    "robust_update",
    "solve_moments",
    "start_bank",
    "steady_state",
    "torch_likelihood",
    "update",
    "update_trend",
]
