"""One training run: `RunConfig` says what is trained, `train` does it and returns the record.

    >>> from kscore.rl import RunConfig, train
    >>> train(RunConfig.preset("CartPole-v1", "ppo"), seed=0)["status"]

`train` brings torch with it when it is first asked for; configurations, and what only reads records, do without.
"""

from kscore import checks
from kscore.rl.config import PROTOCOL_VERSION, RunConfig

__all__ = ["PROTOCOL_VERSION", "RunConfig", "train"]


def __getattr__(name: str) -> object:
    if name == "train":
        with checks.extra("kscore.rl", "rl"):
            from kscore.rl.training import train

        return train
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
