"""How many examples a property test tries: so many usually, ten times as many in a trial (tests/faults/trial.py)."""

from hypothesis import settings

USUAL = 100  # what the library tries if nobody says anything; the profile of a trial says more


def examples(usual: int = USUAL) -> settings:
    """Return the settings of a property test; usually the examples are the same each time, in a trial they are not."""
    times = settings.default.max_examples // USUAL
    return settings(max_examples=usual * times, deadline=None, derandomize=times == 1, database=None)
