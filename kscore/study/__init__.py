"""Many runs: the plan that declares them, the workers that train them, the stores that keep them.

    >>> from kscore import study
    >>> runs = study.runs(study.part("cartpole_ppo"))

Nothing here draws or judges, and nothing needs torch before something has to be trained.
"""

from kscore import checks

with checks.extra("kscore.study", "rl"):
    from kscore.study import outcomes
    from kscore.study.plan import part
    from kscore.study.records import frame
    from kscore.study.running import FailedRuns, anew, record, recorded, run, runs, same
    from kscore.study.store import read
    from kscore.study.workers import processes

__all__ = [
    "FailedRuns",
    "anew",
    "frame",
    "outcomes",
    "part",
    "processes",
    "read",
    "record",
    "recorded",
    "run",
    "runs",
    "same",
]
