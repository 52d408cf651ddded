"""The K-Score one level up: a filter over episodes, not over the steps of one."""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from kscore import checks
from kscore.filters import (
    BANK,
    Bank,
    Moments,
    Trend,
    bank_noise,
    bank_weights,
    follow_bank,
    follow_moments,
    not_too_far,
    predict_trend,
    solve_moments,
    start_bank,
    update_trend,
)
from kscore.normalizers.base import Normalizer, Scaling, positive_variance, symexp, symlog

SLOPE_SHARE = 0.01  # variance of the slope's drift, as a share of the level's
LARGEST_SUM = 1e250  # of squares of returns, over any number of episodes
FARTHEST = 1e150  # of a centre, so that squares of what is far from it are finite
PROBE = np.array([0.0, 1.0])  # returns on which a state is tried
LONG_ENOUGH = 5  # episodes before it is known what is far off, or how restless the level is


def _rows(name: str, values: object, *, shape: tuple[int, ...], positive: tuple[int, ...]) -> np.ndarray:
    """Return the rows of a bank of filters or of a trend, of which counts and variances are not negative."""
    rows = checks.array(name, values, shape=shape, largest=LARGEST_SUM)
    for row in positive:
        if (rows[row] < 0).any():
            raise ValueError(f"{name}[{row}] must not be negative, got {rows[row].min()}")
    return rows


def _moments(name: str, values: object) -> np.ndarray:
    """Return the moments of both filters, of which counts and mean squares are not negative."""
    moments = checks.array(name, values, shape=(2, 5), largest=LARGEST_SUM)
    if (moments[:, [0, 3]] < 0).any():
        raise ValueError(f"{name} must hold no negative count or square, got {moments[:, [0, 3]].min()}")
    return moments


@dataclass
class EpisodeScore(Normalizer):
    """Hold a whole episode against what was believed before it: one Kalman filter over *episodes*.

    One filter follows the level of the episodes' returns, with one observation per episode; a second one the logarithm
    of their mean square around it, the scale. All returns of an episode have the same centre and the same scale.

    `judge`: "prior" takes both as they were before the episode: nothing in them was decided by its actions, so that the
    whole expected gradient is kept. "posterior" lets the episode take part in judging itself.
    `noise`: only the ratio Q/R decides the gain. "fixed" keeps it at `ratio`, "learned" follows the moments of the
    differences, "bank" lets eight filters compete by their likelihood. No scale of the rewards matters to any of them.
    `level`: the episode's "mean" return is followed, or its "first". `transform`: "symlog" follows its logarithm.
    `slope`: the level has a direction. `robust`: an episode that is far off counts as if it were three deviations off.
    `by_length`: the mean of a long episode is trusted more than that of a short one.
    The first episode of all has no belief before it, and is judged by itself.
    """

    name = "episode"
    judge: Literal["prior", "posterior"] = "prior"
    noise: Literal["fixed", "learned", "bank"] = "fixed"
    ratio: float = 0.1
    level: Literal["mean", "first"] = "mean"
    transform: Literal["none", "symlog"] = "none"
    slope: bool = False
    robust: bool = False
    by_length: bool = False
    eps: float = 1e-8
    episodes: int = field(default=0, init=False)  # seen so far
    length: float = field(default=0.0, init=False)  # mean length of an episode
    centre: np.ndarray = field(init=False)  # (5, filters) what is known of the level: a Bank, or a Trend
    spread: np.ndarray = field(init=False)  # (5, filters) the same of the logarithm of the mean square
    moments: np.ndarray = field(init=False)  # (2, 5) of the differences of both, where the noise is learned

    def __post_init__(self) -> None:
        checks.choice("judge", self.judge, ("prior", "posterior"))
        checks.choice("noise", self.noise, ("fixed", "learned", "bank"))
        checks.choice("level", self.level, ("mean", "first"))
        checks.choice("transform", self.transform, ("none", "symlog"))
        for name in ("slope", "robust", "by_length"):
            checks.flag(name, getattr(self, name))
        if self.slope and self.noise != "fixed":
            raise ValueError(f"noise must be 'fixed' with a slope, got {self.noise!r}")
        if self.slope and self.robust:
            raise ValueError("robust must be False with a slope, got True")
        self.ratio, self.eps = positive_variance("ratio", self.ratio), positive_variance("eps", self.eps)
        filters = len(BANK) if self.noise == "bank" else 1
        self.centre, self.spread, self.moments = np.zeros((5, filters)), np.zeros((5, filters)), np.zeros((2, 5))

    @property
    def state(self) -> dict[str, Callable[[str, object], object]]:  # type: ignore[override]
        """What is learned, and how it is checked: the shape depends on how many filters there are."""
        return {
            "episodes": checks.count,
            "length": partial(checks.number, low=0),
            "centre": partial(_rows, shape=self.centre.shape, positive=(2, 4) if self.slope else (1, 2, 4)),
            "spread": partial(_rows, shape=self.spread.shape, positive=(1, 2, 4)),
            "moments": _moments,
        }

    @property
    def level_ratio(self) -> float:
        """The ratio Q/R that the level is followed with: as it was set, as learned, or as its bank estimates it."""
        return bank_noise(self._bank(self.centre, 0)).ratio if self.noise == "bank" else float(self._ratios()[0])

    @property
    def gain(self) -> float:
        """The weight of the next episode in the level."""
        if not self.episodes:
            return 1.0
        if self.slope:
            prior = predict_trend(Trend(*self.centre[:, 0].tolist()), self.ratio, SLOPE_SHARE * self.ratio).var
            return prior / (prior + 1.0)
        bank = self._bank(self.centre, 0)
        prior = bank.var + bank.ratio
        return float(bank_weights(bank) @ (prior / (prior + 1.0)))

    def recall(self, returns: np.ndarray) -> Scaling:
        if not self.episodes:
            centre = self._seen(returns)
            square = _mean_square(returns, centre)
        else:
            centre = self._back(self._expected())
            square = math.exp(self._belief(self.spread)) if self.spread[1, 0] else 0.0
        return Scaling(centre, math.sqrt(square) + self.eps if square else 1.0)

    def learn(self, returns: np.ndarray) -> Scaling:
        before = self.recall(returns)
        self._follow_level(returns)
        self.episodes += 1
        self.length += (len(returns) - self.length) / self.episodes
        centre = before.centre if self.judge == "prior" else self._back(self._expected())
        self._follow_spread(_mean_square(returns, centre))
        return before if self.judge == "prior" else self.recall(returns)

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        trial = copy.deepcopy(self)
        super(EpisodeScore, trial).load_state_dict(state)
        trial._check_use()
        super().load_state_dict(state)

    def _check_use(self) -> None:
        """Refuse what was learned if it leads to no finite centre and scale, now or after one more episode."""
        try:
            with np.errstate(all="ignore"):
                scalings = [self.recall(PROBE), self.learn(PROBE), self.recall(PROBE)]
        except ArithmeticError as error:
            raise ValueError(f"state of episode must be of use, got one that ends in: {error}") from None
        for centre, scale in ((float(each.centre), float(each.scale)) for each in scalings):
            if not (abs(centre) <= FARTHEST and 0 < scale < math.inf):
                raise ValueError(
                    f"state of episode must lead to a finite centre and a positive scale, got {centre} and {scale}"
                )

    # The level

    def _follow_level(self, returns: np.ndarray) -> None:
        seen = self._seen(returns)
        z = float(symlog(seen)) if self.transform == "symlog" else seen
        noise = self.length / len(returns) if self.by_length and self.episodes else 1.0
        if self.robust and self.episodes >= LONG_ENOUGH:
            z = self._nearer(z, noise)
        if self.slope:
            self.centre = np.array(self._trend(z, noise))[:, None]
        else:
            self.centre = self._followed(self.centre, 0, z, noise, begun=self.episodes > 0)

    def _seen(self, returns: np.ndarray) -> float:
        """Return what an episode shows of the level."""
        return float(np.add.reduce(returns) / len(returns) if self.level == "mean" else returns[0])

    def _trend(self, z: float, noise: float) -> Trend:
        if not self.episodes:
            return Trend(z, 0.0, 1.0, 0.0, SLOPE_SHARE * self.ratio)
        prior = predict_trend(Trend(*self.centre[:, 0].tolist()), self.ratio, SLOPE_SHARE * self.ratio)
        return update_trend(prior, z, noise)

    def _expected(self) -> float:
        """Return the level that the next episode is expected at."""
        return float(self.centre[0, 0] + self.centre[1, 0]) if self.slope else self._belief(self.centre)

    def _nearer(self, z: float, noise: float) -> float:
        """Return what was seen, moved to within a few of the deviations that were seen so far."""
        if not self.centre[4].all():
            return z
        bank = self._bank(self.centre, 0)
        weight = bank_weights(bank)
        variance = float(weight @ ((bank.var + bank.ratio + noise) * bank.squares)) / bank.count
        return not_too_far(z, float(weight @ bank.mean), math.sqrt(variance))

    def _back(self, level: float) -> float:
        return float(symexp(level)) if self.transform == "symlog" else level

    # The spread

    def _follow_spread(self, square: float) -> None:
        if square > 0:  # equal returns, all on the centre, say nothing of the scale
            self.spread = self._followed(self.spread, 1, math.log(square), 1.0, begun=bool(self.spread[1, 0]))

    # A bank of one or more filters, as the rows of an array

    def _followed(self, rows: np.ndarray, which: int, z: float, noise: float, *, begun: bool) -> np.ndarray:
        if self.noise == "learned":
            moments = list(self.moments)
            moments[which] = np.array(follow_moments(Moments(*self.moments[which].tolist()), z), float)
            self.moments = np.array(moments)  # a new array: a copy of this normalizer keeps its own
        if begun and rows.shape[1] == 1:  # the same in plain numbers, which take a fraction of the time
            alone = follow_bank(Bank(self._ratios(which)[0].item(), *rows[:, 0].tolist()), z, noise=noise)
            return np.array(alone[1:])[:, None]
        bank = follow_bank(self._bank(rows, which), z, noise=noise) if begun else start_bank(z, self._ratios(which))
        return np.array([bank.mean, bank.var, np.full(len(bank.mean), bank.count), bank.logs, bank.squares])

    def _bank(self, rows: np.ndarray, which: int) -> Bank:
        mean, var, count, logs, squares = rows
        return Bank(self._ratios(which), mean, var, float(count[0]), logs, squares)

    def _ratios(self, which: int = 0) -> np.ndarray:
        if self.noise == "bank":
            return np.array(BANK)
        seen, _, _, square, product = self.moments[which].tolist()
        if self.noise == "fixed" or seen < LONG_ENOUGH or not square:
            return np.array([self.ratio])
        return np.clip([solve_moments(square, product).ratio], BANK[0], BANK[-1])

    def _belief(self, rows: np.ndarray) -> float:
        return float(bank_weights(self._bank(rows, 0)) @ rows[0]) if rows.shape[1] > 1 else float(rows[0, 0])


def _mean_square(returns: np.ndarray, centre: float | np.ndarray) -> float:
    """Return the mean square of the distances from a centre, as `np.mean` has it and in half the time."""
    distances = returns - centre
    distances *= distances
    return float(np.add.reduce(distances) / len(distances))
