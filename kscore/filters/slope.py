"""A level that has a direction: the filter of a mean and its slope, two numbers instead of one.

The model: the slope wanders, s_t = s_{t-1} + u_t with u ~ N(0, Q_slope), the level follows it,
x_t = x_{t-1} + s_{t-1} + w_t with w ~ N(0, Q), and is seen through noise, z_t = x_t + v_t with v ~ N(0, R).
With Q_slope = 0 and a slope of 0 it is the local-level model (P1).
Labels such as P1 name facts of the paper; chapter 00 lists them.
"""

from typing import NamedTuple


class Trend(NamedTuple):
    """What is believed of a level and its slope: their means, and the 2 x 2 covariance as three numbers."""

    level: float
    slope: float
    var: float  # of the level
    cov: float  # of level and slope
    slope_var: float  # of the slope


def predict_trend(belief: Trend, Q: float, Q_slope: float) -> Trend:
    """Let one step pass: the level moves on by the slope, and both become less certain.

    With F = [[1, 1], [0, 1]], P⁻ = F P Fᵀ + diag(Q, Q_slope).
    """
    level, slope, var, cov, slope_var = belief
    return Trend(level + slope, slope, var + 2 * cov + slope_var + Q, cov + slope_var, slope_var + Q_slope)


def update_trend(prior: Trend, z: float, R: float) -> Trend:
    """Learn from one observation of the level: K = P⁻ h / (hᵀ P⁻ h + R) with h = (1, 0), one gain for each number."""
    level, slope, var, cov, slope_var = prior
    S = var + R
    K, K_slope = var / S, cov / S
    innovation = z - level
    return Trend(level + K * innovation, slope + K_slope * innovation, K * R, (1 - K) * cov, slope_var - K_slope * cov)
