"""Small tasks that gymnasium lacks, named "kscore.rl.tasks:...": a bandit of one step, a lake that is not slippery, and
Blackjack with a time limit.

    >>> RunConfig.preset("kscore.rl.tasks:Bandit-v0", "reinforce")
"""

import gymnasium as gym
import numpy as np

from kscore import checks


class Bandit(gym.Env):
    """A contextual bandit: see a context, choose an action, be paid once, and the episode is over.

    In context c the action c mod `actions` pays 1 and every other one 0, with Gaussian noise on top. An episode of one
    step has one return: a Z-Score of the episode by itself is 0, whatever was paid.
    """

    def __init__(self, contexts: int = 4, actions: int = 4, deviation: float = 0.5) -> None:
        self.observation_space = gym.spaces.Discrete(checks.whole("contexts", contexts))
        self.action_space = gym.spaces.Discrete(checks.whole("actions", actions))
        self.deviation = checks.number("deviation", deviation, low=0)
        self.context = 0

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.int64, dict]:
        """Draw a context."""
        super().reset(seed=seed)
        self.context = self.np_random.integers(self.observation_space.n)
        return self.context, {}

    def step(self, action: int) -> tuple[np.int64, float, bool, bool, dict]:
        """Pay for the action; there is no second step."""
        if not self.action_space.contains(action):
            raise ValueError(f"action must be a whole number from 0 to {self.action_space.n - 1}, got {action!r}")
        right = float(action == self.context % self.action_space.n)
        return self.context, right + self.deviation * self.np_random.standard_normal(), True, False, {}


LONGEST_HAND = 21
"""Steps after which a game of Blackjack is over at the latest: two cards are worth at least 2, and each further one at
least 1, so that the twentieth card that is asked for leads beyond 21. The limit cuts no game off."""

gym.register("Bandit-v0", Bandit, max_episode_steps=1)
gym.register(
    "TimedBlackjack-v1",
    "gymnasium.envs.toy_text.blackjack:BlackjackEnv",
    max_episode_steps=LONGEST_HAND,
    kwargs={"sab": True, "natural": False},
)
gym.register(
    "DryLake-v1",
    "gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv",
    max_episode_steps=100,
    kwargs={"map_name": "4x4", "is_slippery": False},
)
