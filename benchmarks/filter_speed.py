"""How fast the filters are: beside filterpy on one stream, on many streams at once, in memory; estimates of the noise.

Run as `python benchmarks/filter_speed.py`; it ends with exit code 1 if a target is missed.
"""

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from filterpy import kalman
from statsmodels.tsa.statespace.structural import UnobservedComponents

from kscore import filters
from kscore.filters import START, adaptive_filter_series, filter_series

Q, R = 1e-2, 1.0
STEPS = 100_000  # of the one stream that filterpy is measured on
MANY = (1_000, 1_000)  # steps, streams
REPEATS = 3  # for the one stream, where a peer needs seconds
MANY_REPEATS = 15

RATIO_TARGET = 20.0  # times filterpy's fastest way, for filter_series
RATE_TARGET = 30.0  # million updates a second, many streams together
MOMENTS_TARGET = 2.0  # µs per observation, the noise followed by moments
BANK_TARGET = 20.0  # and by a bank of eight
OBSERVED = 1_000  # observations of which the noise is estimated
GROWTH_TARGET = 1.1  # bytes per update at 4T over bytes per update at T

Filter = Callable[[np.ndarray], object]
Row = tuple[str, float, str, float | None, bool]  # what, measured, unit, target, and whether more is better


def simple(z: np.ndarray) -> object:
    return filter_series(z, Q, R)


def adaptive(z: np.ndarray) -> object:
    return adaptive_filter_series(z, Q, R)


def filterpy_batch(z: np.ndarray) -> np.ndarray:
    peer = kalman.KalmanFilter(dim_x=1, dim_z=1)
    peer.x, peer.P = np.array([START.mean]), np.array([[START.var]])
    peer.F, peer.H, peer.Q, peer.R = np.eye(1), np.eye(1), np.array([[Q]]), np.array([[R]])
    return np.ravel(peer.batch_filter(z)[0])


def filterpy_functions(z: np.ndarray) -> np.ndarray:
    x, P, one = np.array([[START.mean]]), np.array([[START.var]]), np.eye(1)
    drift, noise, means = Q * one, R * one, np.empty(len(z))
    for t, z_t in enumerate(z):
        x, P = kalman.predict(x, P, F=one, Q=drift)
        x, P = kalman.update(x, P, z_t, noise, H=one)
        means[t] = x[0, 0]
    return means


OURS = {"filter_series": simple, "adaptive_filter_series": adaptive}
PEERS = {"KalmanFilter.batch_filter": filterpy_batch, "kalman.predict, kalman.update": filterpy_functions}


def seconds(function: Filter, z: np.ndarray) -> float:
    gc.collect()
    begin = time.perf_counter()
    function(z)
    return time.perf_counter() - begin


def best_seconds(functions: dict[str, Filter], z: np.ndarray, repeats: int) -> dict[str, float]:
    """Time the functions in turn, several times over, and keep the best of each: a busy moment then hurts nobody."""
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            times[name].append(seconds(function, z))
    return {name: min(taken) for name, taken in times.items()}


def bytes_per_update(function: Filter, z: np.ndarray) -> float:
    """Return the largest amount of memory held while filtering, the result included."""
    gc.collect()
    tracemalloc.start()
    result = function(z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del result
    return peak / z.size


def one_stream(rng: np.random.Generator) -> list[Row]:
    z = rng.normal(size=STEPS)
    for peer in PEERS.values():  # a peer that computes something else is no peer
        np.testing.assert_allclose(peer(z[:200]), filter_series(z[:200], Q, R).mean, rtol=1e-10)
    best = best_seconds({**OURS, **PEERS}, z, REPEATS)
    fastest = min(PEERS, key=best.get)
    rows = [(f"one stream, {name}", best[name] / STEPS * 1e6, "µs / update", None, False) for name in best]
    for name, target in zip(OURS, (RATIO_TARGET, None), strict=True):
        rows.append((f"{name} vs {fastest}", best[fastest] / best[name], "times faster", target, True))
    return rows


def many_streams(rng: np.random.Generator) -> list[Row]:
    z = rng.normal(size=MANY)
    best = best_seconds(OURS, z, MANY_REPEATS)
    title = f"{MANY[1]:,} streams x {MANY[0]:,} steps"
    return [(f"{title}, {name}", z.size / best[name] / 1e6, "M updates / s", RATE_TARGET, True) for name in OURS]


def statsmodels_fit(z: np.ndarray) -> filters.Noise:
    R, Q = UnobservedComponents(z, "local level").fit(disp=False).params
    return filters.Noise(Q, R)


ESTIMATES = {"likelihood": filters.estimate_noise, "moments": lambda z: filters.estimate_noise(z, "moments"),
             "gradient": lambda z: filters.estimate_noise(z, "gradient"), "statsmodels": statsmodels_fit}


def follow_moments(z: np.ndarray) -> filters.Noise:
    moments = filters.Moments()
    for value in z.tolist():
        moments = filters.follow_moments(moments, value)
    return filters.solve_moments(moments.square, moments.product)


def follow_bank(z: np.ndarray) -> tuple[filters.Noise, filters.Belief]:
    bank = filters.start_bank(float(z[0]))
    for value in z[1:].tolist():
        bank = filters.follow_bank(bank, value)
    return filters.bank_noise(bank), filters.bank_belief(bank)


def estimates(rng: np.random.Generator) -> list[Row]:
    z = np.cumsum(rng.normal(0, Q**0.5, OBSERVED)) + rng.normal(0, R**0.5, OBSERVED)
    ours, *others = (filters.local_level_likelihood(z, *ESTIMATES[name](z))
                     for name in ("likelihood", "gradient", "statsmodels"))
    assert ours >= max(others) - 0.01 and filters.concentrated_likelihood(z, Q / R) <= ours  # or one of them is wrong
    best = best_seconds(ESTIMATES, z, REPEATS)
    steps = best_seconds({"moments": follow_moments, "a bank of eight": follow_bank}, z, MANY_REPEATS)
    rows = [(f"Q and R of {OBSERVED:,} observations, {name}", taken * 1e3, "ms", None, False)
            for name, taken in best.items()]
    rows += [(f"{name} vs statsmodels", best["statsmodels"] / best[name], "times faster", None, True)
             for name in ESTIMATES if name != "statsmodels"]
    return rows + [(f"one observation more, {name}", taken / OBSERVED * 1e6, "µs", target, False)
                   for (name, taken), target in zip(steps.items(), (MOMENTS_TARGET, BANK_TARGET), strict=True)]


def memory(rng: np.random.Generator) -> list[Row]:
    rows: list[Row] = []
    for name, function in OURS.items():
        for shape, longer in (((25_000,), (100_000,)), ((250, 500), (1_000, 500))):
            short, long = (bytes_per_update(function, rng.normal(size=size)) for size in (shape, longer))
            title = f"memory, {name}, {'one stream' if len(shape) == 1 else f'{shape[1]} streams'}"
            rows += [
                (f"{title}, {shape[0]:,} steps", short, "bytes / update", None, False),
                (f"{title}, {longer[0]:,} steps", long, "bytes / update", None, False),
                (f"{title}, growth", long / short, "ratio", GROWTH_TARGET, False),
            ]
    return rows


def verdict(row: Row) -> str:
    """Return the target and whether it was met, or nothing where there is none."""
    _, measured, _, target, more_is_better = row
    if target is None:
        return ""
    sign, met = (">=", measured >= target) if more_is_better else ("<=", measured <= target)
    return f"{sign} {target:<4g} {'ok' if met else 'MISSED'}"


def table(rows: list[Row]) -> str:
    width = max(len(row[0]) for row in rows)
    lines = [f"{'':{width}}  {'measured':>8}  {'':14}  target"]
    lines += [f"{row[0]:{width}}  {row[1]:8.3g}  {row[2]:14}  {verdict(row)}".rstrip() for row in rows]
    return "\n".join(lines)


def main() -> int:
    rng = np.random.default_rng(0)
    rows = one_stream(rng) + many_streams(rng) + estimates(rng) + memory(rng)
    print(table(rows))
    return 1 if any("MISSED" in verdict(row) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
