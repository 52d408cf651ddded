"""A contest of arms, each at its own setting: which that is, how much it matters, who is first (chapters 11 and 17).

The runs of a tuning grid have the columns `normalizer`, `rate` and `z_scored`: an arm, its learning rate, and whether
advantages are z-scored. A *cell* is a learner on a task. Lower is better throughout: restricted means are numbers of
episodes.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from kscore import checks
from kscore.analysis import stats
from kscore.analysis.comparisons import restricted_means, times
from kscore.analysis.stats import Interval, Times
from kscore.study.plan import Part

DRAWS = 2000
"""Draws of the bootstrap; every one of them tunes all arms anew."""


class Setting(NamedTuple):
    """What an arm is free to choose."""

    rate: float
    z_scored: bool = False


Means = dict[str, dict[Setting, float]]
"""The restricted mean of every arm at every setting."""


def settings_of(part: Part) -> dict[str, Setting]:
    """Return the setting of every arm of a part, each of which has one."""
    return {arm: Setting(config.learning_rate, config.normalize_advantages) for arm, config in part.configs.items()}


def grid_means(runs: pd.DataFrame) -> Means:
    """Return the restricted mean of every arm at every setting of a grid."""
    found, means = restricted_means(runs), {}
    for title, arm, setting in _settings(runs):
        means.setdefault(arm, {})[setting] = found[title]
    return means


def _settings(runs: pd.DataFrame) -> Iterator[tuple[str, str, Setting]]:
    """Return the title, the arm and the setting of each arm of a grid; refuse two of one setting."""
    titles = runs.drop_duplicates("arm")
    for (arm, rate, z_scored), several in titles.groupby(["normalizer", "rate", "z_scored"], sort=False).arm:
        if len(several) > 1:
            raise ValueError(
                f"runs must have one arm for {arm!r} at {rate:g}{', z-scored' * z_scored}, got "
                + ", ".join(map(repr, several))
            )
    for row in titles.itertuples():
        yield row.arm, row.normalizer, Setting(float(row.rate), bool(row.z_scored))


def own_settings(means: Means) -> dict[str, Setting]:
    """Return each arm's best setting; of equal ones the lower rate, then that with advantages as they are."""
    return {arm: _best(own) for arm, own in means.items()}


def common_settings(means: Means) -> dict[str, Setting]:
    """Return each arm's better setting at the one rate that is best on the average of all arms."""
    rates = sorted({setting.rate for own in means.values() for setting in own})
    _check_rates(means, rates)
    at_rate = {
        rate: {
            arm: _best({setting: mean for setting, mean in own.items() if setting.rate == rate})
            for arm, own in means.items()
        }
        for rate in rates
    }
    averages = {
        rate: np.mean([means[arm][setting] for arm, setting in chosen.items()]) for rate, chosen in at_rate.items()
    }
    return at_rate[min(averages, key=averages.get)]


def _best(own: Mapping[Setting, float]) -> Setting:
    return min(own, key=lambda setting: (own[setting], *setting))


def rate_curves(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each arm and rate: the restricted mean with the better way with advantages, and its interval.

    Which way is the better one is found anew in every draw.
    """
    drawn = _drawn_means(runs)
    rows = []
    for arm, own in drawn.items():
        for rate in sorted({setting.rate for setting in own}):
            lowest = np.min([means for setting, means in own.items() if setting.rate == rate], axis=0)
            rows.append({"arm": arm, "rate": rate, "restricted mean": _interval(lowest, runs.seed.nunique())})
    return pd.DataFrame(rows)


def sensitivities(grids: Mapping[str, pd.DataFrame], cap: float) -> dict[str, Interval]:
    """Return for each arm what it loses, in shares of the cap, if one setting has to serve in all cells.

    That is the mean over cells of its restricted mean at the setting that is best on their average, less that at its
    own setting in each (after Adkins and others 2024). A cell without advantages is the same with both treatments.
    """
    checks.positive("cap", cap)
    drawn = {name: _drawn_means(runs) for name, runs in grids.items()}
    _check_grids(drawn)
    n = min(runs.seed.nunique() for runs in grids.values())
    found = {}
    for arm in next(iter(drawn.values())):
        settings = sorted({setting for cell in drawn.values() for setting in cell[arm]})
        table = np.array(
            [
                [cell[arm].get(setting, cell[arm].get(Setting(setting.rate))) for setting in settings]
                for cell in drawn.values()
            ]
        )  # (cells, settings, draws)
        found[arm] = _interval((table.mean(axis=0).min(axis=0) - table.min(axis=1).mean(axis=0)) / cap, n)
    return found


def _drawn_means(runs: pd.DataFrame) -> dict[str, dict[Setting, np.ndarray]]:
    """Return restricted means by arm and setting: the estimate first, then one for each draw of the seeds."""
    n = _seeds(runs)
    counts = np.vstack([np.ones(n), np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)])
    drawn: dict[str, dict[Setting, np.ndarray]] = {}
    caps = runs.groupby("arm", sort=False).cap.first()
    for title, arm, setting in _settings(runs):
        drawn.setdefault(arm, {})[setting] = stats.restricted_mean(times(runs, title), caps[title], counts)
    return drawn


def _interval(drawn: np.ndarray, n: int) -> Interval:
    low, high = np.quantile(drawn[1:], [(1 - stats.LEVEL) / 2, (1 + stats.LEVEL) / 2], method="nearest")
    return Interval(float(drawn[0]), float(low), float(high), n)


def standings(cells: Mapping[str, Mapping[str, Times]], caps: Mapping[str, float]) -> pd.DataFrame:
    """Return a row for each arm: its mean rank over the cells, with an interval, and how probably that is the best.

    Rank 1 has the lowest restricted mean; equal ones share their ranks. Seeds are drawn in every cell by itself.
    """
    _check_cells(cells, caps)
    arms, rng, ranks = list(next(iter(cells.values()))), np.random.default_rng(0), []
    for name, cell in cells.items():
        n = len(cell[arms[0]].time)
        counts = np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), size=DRAWS)])
        ranks.append(rankdata([stats.restricted_mean(cell[arm], caps[name], counts) for arm in arms], axis=0))
    mean = np.mean(ranks, axis=0)  # (arms, draws)
    first = mean[:, 1:] == mean[:, 1:].min(axis=0)
    return pd.DataFrame(
        {
            "mean rank": [_interval(own, len(cells)) for own in mean],
            "probability of being best": (first / first.sum(axis=0)).mean(axis=1),
        },
        index=arms,
    )


# What makes no contest


def _seeds(runs: pd.DataFrame) -> int:
    """Return how many seeds the arms have; refuse arms that have not the same ones."""
    n = runs.seed.nunique()
    for title, seeds in runs.groupby("arm", sort=False).seed.nunique().items():
        if seeds != n:
            raise ValueError(f"runs must have every arm on the same seeds, got {seeds} of {n} for {title!r}")
    if not n:
        raise ValueError("runs must hold at least one run, got none")
    return n


def _check_rates(means: Means, rates: Collection[float]) -> None:
    if not rates:
        raise ValueError(f"means must have at least one arm at one rate, got {means!r}")
    for arm, own in means.items():
        if missing := set(rates) - {setting.rate for setting in own}:
            raise ValueError(f"means must have every arm at every rate, got none of {arm!r} at {min(missing):g}")


def _check_grids(drawn: Mapping[str, Mapping[str, Mapping[Setting, np.ndarray]]]) -> None:
    if len({frozenset(cell) for cell in drawn.values()}) != 1:
        raise ValueError(
            "grids must have the same arms in every cell, got "
            + "; ".join(f"{name}: {', '.join(cell)}" for name, cell in drawn.items())
        )
    for arm in next(iter(drawn.values())):
        settings = {setting for cell in drawn.values() for setting in cell[arm]}
        for name, cell in drawn.items():
            if missing := {one for one in settings if not {one, Setting(one.rate)} & set(cell[arm])}:
                raise ValueError(
                    f"grids must have every arm at the same rates, got no {arm!r} at {min(missing).rate:g} in {name!r}"
                )


def _check_cells(cells: Mapping[str, Mapping[str, Times]], caps: Mapping[str, float]) -> None:
    if not cells:
        raise ValueError("cells must hold at least one cell, got none")
    arms = next(iter(cells.values()))
    for name, cell in cells.items():
        checks.choice("cell of caps", name, caps)
        if set(cell) != set(arms):
            raise ValueError(
                f"cells must have the same arms each, got {', '.join(cell)} in {name!r} beside {', '.join(arms)}"
            )
        if len(lengths := {len(times.time) for times in cell.values()}) != 1:
            raise ValueError(f"cells must have as many runs of every arm, got {sorted(lengths)} in {name!r}")
