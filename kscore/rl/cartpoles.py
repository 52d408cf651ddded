"""Many CartPoles at once, in numpy alone: the physics of gymnasium's CartPole-v1, played by chance.

    >>> crowd = play(100_000, np.random.default_rng(0))

What needs a hundred thousand episodes of one fixed policy takes seconds here, and many minutes one step at a time.
"""

from typing import NamedTuple

import numpy as np

from kscore import checks

GRAVITY, POLE_MASS, TOTAL_MASS, HALF_POLE, FORCE, TIME_STEP = 9.8, 0.1, 1.1, 0.5, 10.0, 0.02
FARTHEST, STEEPEST = 2.4, 12 * 2 * np.pi / 360  # of the cart, and of the pole
LIMIT = 500  # steps after which an episode is cut off
TOGETHER = 10_000  # episodes that are played at once: as many as the processor's cache holds


class Crowd(NamedTuple):
    """The first steps of many episodes, and the length of each; what comes after an episode's end is NaN."""

    observations: np.ndarray  # (steps, 4, episodes): position, velocity, angle, angular velocity
    actions: np.ndarray  # (steps, episodes): 0 to the left, 1 to the right
    lengths: np.ndarray  # (episodes,)

    def returns(self, gamma: float) -> np.ndarray:
        """Return the discounted returns G_t = (1 - γ^(N - t)) / (1 - γ), (steps, episodes): every step pays 1."""
        left = self.lengths - np.arange(len(self.actions))[:, None]
        return np.where(left > 0, (1 - gamma ** np.maximum(left, 0)) / (1 - gamma), np.nan)


def step(states: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Move every cart by one step; return the new states, (4, carts), and which carts or poles are out of bounds."""
    _, velocity, angle, turning = states
    force, cos, sin = FORCE * (2 * actions - 1), np.cos(angle), np.sin(angle)
    pushed = (force + POLE_MASS * HALF_POLE * turning * turning * sin) / TOTAL_MASS
    twist = (GRAVITY * sin - cos * pushed) / (HALF_POLE * (4 / 3 - POLE_MASS * cos * cos / TOTAL_MASS))
    thrust = pushed - POLE_MASS * HALF_POLE * twist * cos / TOTAL_MASS
    states = states + TIME_STEP * np.stack([velocity, thrust, turning, twist])
    return states, (np.abs(states[0]) > FARTHEST) | (np.abs(states[2]) > STEEPEST)


def play(episodes: int, rng: np.random.Generator, keep: int = 25) -> Crowd:
    """Play episodes to their end with actions drawn at random; keep the first steps of each."""
    episodes, keep = checks.whole("episodes", episodes), checks.whole("keep", keep, high=LIMIT)
    sizes = [min(TOGETHER, episodes - first) for first in range(0, episodes, TOGETHER)]
    parts = zip(*(_together(size, rng, keep) for size in sizes), strict=True)
    return Crowd(*(np.concatenate(part, axis=-1) for part in parts))


def _together(episodes: int, rng: np.random.Generator, keep: int) -> Crowd:
    observations, actions = np.full((keep, 4, episodes), np.nan), np.full((keep, episodes), np.nan)
    lengths, playing = np.full(episodes, LIMIT), np.arange(episodes)
    states = rng.uniform(-0.05, 0.05, (4, episodes))
    for t in range(LIMIT):
        chosen = rng.integers(2, size=len(playing))
        if t < keep:
            observations[t][:, playing], actions[t, playing] = states, chosen
        states, out = step(states, chosen)
        lengths[playing[out]] = t + 1
        playing, states = playing[~out], states[:, ~out]
        if not len(playing):
            break
    return Crowd(observations, actions, lengths)
