"""Numbers out of runs: censored times, intervals, tests, comparisons, verdicts on the paper's claims.

>>> from kscore import analysis, study
>>> analysis.against(study.runs(study.part("cartpole_ppo")), "zscore")
"""

from kscore import checks

with checks.extra("kscore.analysis", "notebooks"):
    from kscore.analysis.claims import published
    from kscore.analysis.comparisons import (
        WINDOW,
        against,
        areas,
        arrived,
        best,
        by_criterion,
        compare,
        compare_areas,
        curves,
        delicate,
        differences,
        early,
        pair,
        rankings,
        restricted_means,
        stabilities,
        step_times,
        summary,
        survivals,
        times,
        trend,
    )
    from kscore.study.records import CRITERIA
