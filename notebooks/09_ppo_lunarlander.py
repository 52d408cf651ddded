# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,nbgrader,-all
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -jupytext.text_representation.jupytext_version
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 09 PPO on LunarLander
#
# **Claim.** The paper's Table 1 gives PPO with K-Score a lead of 1.32 on LunarLander. Its two numbers stand in the outputs of files that are not PPO and that both filter (chapter 07). Here is PPO itself, and how many seeds it would take to tell a factor of this size from luck.
#
# *For* readers who plan experiments: how many seeds does a question need?
# *Know first:* chapters 05 to 08.
# *Runs in* under a minute from the recorded runs; hours on two cores from nothing.
# Previous: [08 PPO on CartPole](08_ppo_cartpole.ipynb) · Next: [10 Process noise, and tuning](10_process_noise.ipynb)

# %% [markdown]
# ## Question
#
# Table 1 of the paper has a row for PPO on LunarLander, with fewer episodes for the K-Score than for the Z-Score (T1b).
# Is PPO with a filter faster than PPO with a Z-Score on this task?
# And could a study of this size have found out?
#
# To the first we expect a no: an improvement factor of the adaptive stream over the running Z-Score whose whole interval lies above 1.1 would show us wrong.
#
# After this chapter you can
#
# - estimate the power of a planned comparison from a pilot study;
# - say how many seeds a factor of 1.32 needs on this task;
# - tell "no difference was found" from "there is no difference".

# %% [markdown]
# ## Setup

# %%
from dataclasses import replace

import numpy as np
from IPython.display import Markdown
from scipy.stats import weibull_min
from scipy.stats.distributions import rv_frozen

from kscore import analysis, chapters, figures, study
from kscore.analysis import stats
from kscore.rl import train
from kscore.study import plan

chapter = chapters.begin("09_ppo_lunarlander")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seeds: int = 10               # runs an arm [2, 10000]
first_seed: int = 1000        # the first of them; results use 1000 and up [0, 1000000000]
max_episodes: int = 1500      # the cap: a run that gets here without arriving is censored [1, 100000]
epochs: int = 5               # PPO's updates on each episode, in every arm; 5 is the released number [1, 100]
store: str = "build/runs"     # folder of your own: what the archive of recorded runs lacks is trained into it
archive: bool = True          # whether the archive is read first; without it every run is trained
live_seeds: list[int] = [3000]  # seeds trained before your eyes; they enter no statistic [0, 1000000000], 1 to 5 different
live_episodes: int = 60       # how long: a whole run would take minutes [1, 100000]
trials: int = 200             # simulated studies a point of the power curve [10, 10000]

# %% [markdown]
# The arms are those of chapter 07, trained with PPO: five updates on each episode instead of one; clipping keeps each of them close to the policy that played the episode.
# As there, a run goes on until it has arrived by both criteria, and the advantages are z-scored in all arms, which the text does not mention.

# %%
settings = {"seeds": seeds, "first_seed": first_seed, "max_episodes": max_episodes, "epochs": epochs}
planned_runs = plan.part("lunarlander_ppo", **settings)
arms = planned_runs.configs
claim = analysis.published("T1b").set_index("normalizer").episodes
true_factor = claim["zscore"] / claim["kscore"]  # true, if the table is

# %% [markdown]
# ## Notation
#
# | word | meaning | in code |
# |---|---|---|
# | power | probability that a test finds a difference that is there | simulated below |
# | detectable factor | smallest factor found with a power of 80 % | computed below |

# %% [markdown]
# ## The published numbers
#
# One row of the paper's Table 1:

# %%
analysis.published("T1b")

# %% [markdown]
# What is run here is what the table names: PPO, five epochs on each episode, clipped, with a filter or a Z-Score.
# The public tutorial that the released code follows has a PPO notebook with Z-Score on this task as well, whose stored output is one more single run:

# %%
analysis.published("R6").query("environment.str.startswith('Lunar')")

# %% [markdown]
# It lies before both numbers of the table.

# %% [markdown]
# ## The recorded study
#
# The seeds are few, because a run takes up to nearly three million steps.
# So the question of this chapter is asked twice: what do these runs say, and what could they have said?

# %%
runs = study.runs(planned_runs, store, archive=archive)
assert len(runs) == planned_runs.runs
Markdown(f"{figures.run_count(runs)}.")

# %% [markdown]
# **Predict the plot.** The advantages are z-scored, and Adam divides by the gradient's size. By which way can the scale of a normalizer still reach the policy (chapter 08), and which of the six arms would lie together if it could not?

# %%
pairs = {"stream and running": ("adaptive", "running"), "per episode": ("adaptive_refit", "zscore"), "beside them": ("refit", "none")}
fig = figures.survival_panels([{f"{title}, by {criterion}": analysis.survivals(runs, pair, criterion) for title, pair in pairs.items()}
                               for criterion in analysis.CRITERIA], max_episodes, height=2.6, legend="lower left")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Kaplan-Meier curves of PPO with 95 % bands, to the paper's criterion "
    "(above) and by training returns (below), from the same runs. Lower and "
    "further left is faster; before its first arrival a curve has no band, which "
    "is not certainty.",
    alt="Six panels of survival curves of PPO on LunarLander, two arms in each, by "
    "evaluation returns above and by training returns below.")

# %% [markdown]
# The scale can reach the policy only through the critic, which learns the normalized returns. Without that way the four arms that map an episode as a whole (none, the per-episode Z-Score, both refits) would lie together.
#
# The bands are wide because a curve has no more steps than runs, and they are pointwise; where they overlap along their whole length, the eye should not rank. The tests are in the tables below.
# The curves behind these times:

# %%
fig = figures.learning_panels([(figures.METHODS[arm]["label"], arm, analysis.curves(runs, arm)) for arm in arms],
                              columns=3, threshold=200, lowest=-600)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Evaluation returns of PPO, averaged over the last 25 as the criterion does: "
    "each run faint, the median and the middle half; dotted, the threshold. A "
    "run that has stopped goes on where it was; it stops when it has arrived by "
    "both criteria, so that its last average may lie below the line. The axis is "
    "cut at -600.",
    alt="Six panels of averaged evaluation returns of PPO on LunarLander, one for "
    "each arm, with a line at 200.")

# %% [markdown]
# ## The comparisons
#
# By the paper's criterion. As in chapter 07: read the factors with the column "arrived". The factor of an arm without arrivals is only a bound, and such arms share a row.

# %%
figures.table(analysis.summary(runs))

# %% [markdown]
# Each arm against the per-episode Z-Score, and both baselines as a picture:

# %%
as_written, as_released = analysis.against(runs, "running"), analysis.against(runs, "zscore")
figures.table(as_released)

# %%
fig = figures.forest_panels({"against running Z-Score": as_written, "against per-episode Z-Score": as_released}, published=true_factor)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Improvement factors with 95 % intervals, by the evaluation criterion; "
    "dotted: no difference, dashed: the published factor, a ratio of two single "
    "runs by training returns. Under the cap a true factor of this size shows as "
    "less; the section on accidents says how much.",
    alt="Two forest plots for PPO on LunarLander with a line at the published factor.")

# %% [markdown]
# The pair of the plan (as written) and, although no PPO with a refitted filter was released for this task, the pair that the released files would suggest, by both criteria:

# %%
planned = analysis.by_criterion(runs, {"adaptive stream, running Z-Score": pairs["stream and running"], "adaptive refit, per-episode Z-Score": pairs["per episode"]})
figures.table(planned)

# %%
came = {arm: int(analysis.times(runs, arm, "training").arrived.sum()) for arm in arms}
Markdown(f"By training returns {came['adaptive']} of {seeds} runs of the adaptive stream arrived and {came['running']} of the running Z-Score's; {came['adaptive_refit']} of adaptive refit and {came['zscore']} of the per-episode Z-Score's.")

# %% [markdown]
# So the answer to the first question is no: the stream is slower than the running Z-Score, by far.
# The refitted filter is slower than the per-episode Z-Score by evaluation; by training returns it is behind as well, but by no more than chance could explain.

# %% [markdown]
# ## What could have been found?
#
# Suppose that a method really is faster by a factor, so that every run is shortened by it.
# We simulate studies of $n$ seeds: draw $n$ runs for one arm, $n$ for the other, shorten the first by the factor, stop all of them at the cap, test.
# The share of studies that find the difference is the power.
#
# This is best done *before* a study, on a pilot, to choose its size.
# Done afterwards it still tells what a "cannot be told" is worth: with little power it is worth nothing, with much power it is nearly a "no".
#
# A filter is compared with a Z-Score, so for the pilot we take the times of both Z-Scores together, by training returns, as the published numbers are.
# Some of them are censored, and a faster method would bring some of those runs in under the cap; so we need to say what lies beyond it.
# A Weibull distribution, whose survival curve is $\exp(-(t/\lambda)^k)$, is the usual choice for such times, and scipy fits it to censored ones (`stats.weibull`).

# %%
def imagined(pilot: rv_frozen, factor: float, n: int, rng: np.random.Generator) -> stats.Times:
    """Return n runs, watched up to the cap, of a method that is faster than the pilot by a factor."""
    time = pilot.rvs(n, random_state=rng) / factor
    return stats.Times(np.minimum(time, max_episodes), time <= max_episodes)


def power(pilot: rv_frozen, factor: float, n: int, rng: np.random.Generator) -> float:
    """Return the share of simulated studies of n seeds an arm whose log-rank test finds the factor."""
    return np.mean([stats.logrank(imagined(pilot, factor, n, rng), imagined(pilot, 1.0, n, rng)) < 0.05 for _ in range(trials)])


pilot_times = stats.Times(*map(np.concatenate, zip(*(analysis.times(runs, arm, "training") for arm in ("zscore", "running")), strict=True)))
pilot = stats.weibull(pilot_times) if pilot_times.arrived.sum() > 1 else weibull_min(1, scale=1e6 * max_episodes)  # hardly a run arrived: one by which none does
sizes = (5, 10, 20, 40, 80, 160)
curves = {factor: [power(pilot, factor, n, np.random.default_rng([n, int(100 * factor)])) for n in sizes] for factor in (1.0, true_factor, 2.0)}

# %% [markdown]
# **Predict the plot.** The curve of a true factor of 1 is no power at all: it is the rate of false alarms. Where should it lie? And how many seeds will the published factor need: ten, fifty, more?

# %%
fig, (left, right) = figures.panels(1, 2, height=3.2, width=11.0)
observed, grid = stats.survival(pilot_times), np.linspace(0, max_episodes, 200)
left.step(np.append(observed.episode, max_episodes), np.append(observed.share, observed.share[-1]), where="post", color=figures.INK, label=f"both Z-Scores (n = {len(pilot_times.time)})")
left.plot(grid, pilot.sf(grid), color=figures.BLUE, linestyle="--", label="Weibull")
left.set(xlim=(0, max_episodes), ylim=(0, 1.02))
figures.label(left, "The pilot, by training returns", "training episodes", "share of runs on their way", legend="below")
for (factor, values), color, marker in zip(curves.items(), (figures.GREY, figures.ORANGE, figures.BLUE), "xDo", strict=True):
    right.plot(sizes, values, color=color, marker=marker, label=f"true factor {factor:.2f}")
for level in (0.05, 0.8):
    right.axhline(level, color=figures.INK, linewidth=0.8, linestyle=":")
right.set_xscale("log")
right.set_xticks(sizes, sizes)
right.set_ylim(0, 1.02)
figures.label(right, f"Power of the log-rank test (n = {trials} studies a point)", "seeds an arm", "share of studies that find it", legend="below")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Left: the times of the pilot and the distribution fitted to them. Right: "
    "how often a study finds a true difference, by its number of seeds; dotted: "
    "5 % and 80 %. A factor of 1 gives the rate of false alarms.",
    alt="Left, a falling survival curve with a smooth one through it; right, three "
    "curves of power against seeds an arm: for no difference, for the published "
    "factor, and for a factor of two.")

# %%
enough = next((n for n, value in zip(sizes, curves[true_factor], strict=True) if value >= 0.8), None)
least = next((factor for factor in stats.FACTORS if power(pilot, factor, seeds, np.random.default_rng(seeds)) >= 0.8), None)
needed = f"more than {sizes[-1]}" if enough is None else f"between {sizes[sizes.index(enough) - 1]} and {enough}" if enough > sizes[0] else f"at most {enough}"
smallest = f"about {least:g}" if least else f"above {stats.FACTORS[-1]:g}"
arrivals = int(pilot_times.arrived.sum())
Markdown(f"With {seeds} seeds an arm the smallest factor that would be found with 80 % probability is {smallest}. "
         f"The published {true_factor:.2f} would need {needed} seeds an arm. (The pilot has {arrivals} arrivals.) "
         f"False alarms lie between {min(curves[1.0]):.0%} and {max(curves[1.0]):.0%}; each point is a share of {trials} studies, with a standard error of {100 * np.sqrt(0.05 * 0.95 / trials):.1f} percentage points."
         if arrivals > 1 else f"Only {arrivals} of {len(pilot_times.time)} runs arrived: too few to say anything about power.")

# %% [markdown]
# The false alarms lie about where they should; with few runs the log-rank test, an approximation for many, may alarm a little too often.
# A factor of two is found by nearly every study of ten seeds; the published factor is missed by most of them.
# The report (chapter 11) gives detectable factors as well, from the recorded runs of one arm drawn again; there the Weibull distribution only says what lies beyond the cap.

# %% [markdown]
# ## A live run
#
# Adaptive refit and the per-episode Z-Score, on a seed that is part of no statistic; a whole run would take minutes.

# %%
live = {(arm, seed): train(replace(arms[arm], criterion="evaluation", max_episodes=live_episodes), seed)
        for seed in live_seeds for arm in ("zscore", "adaptive_refit")}
fig = figures.live_panel(live)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"The greedy evaluation return after each of the first {live_episodes} "
    "training episodes; dotted: the threshold.",
    alt="Evaluation returns of two short live PPO runs on LunarLander.")

# %% [markdown]
# ## When it fails: a significant accident
#
# A small study that does find something has usually found too much: only a lucky overestimate is large enough to be significant.
# Among simulated studies of this size with the published factor, look only at those that were significant: which factor of restricted means did they report?
# Under the cap a true factor shows as less; the sentence below gives what very many runs would show, to compare with.

# %%
rng, reported = np.random.default_rng(5), []
for _ in range(5 * trials):
    fast, usual = imagined(pilot, true_factor, seeds, rng), imagined(pilot, 1.0, seeds, rng)
    if stats.logrank(fast, usual) < 0.05:
        reported.append(float(stats.improvement(fast, usual, max_episodes)))
under_the_cap = imagined(pilot, 1.0, 100_000, rng).time.mean() / imagined(pilot, true_factor, 100_000, rng).time.mean()
Markdown(f"A true factor of {true_factor:.2f} shows as {under_the_cap:.2f} under this cap. Of {5 * trials} studies with n = {seeds}, {len(reported)} were significant" +
         (f", {np.sum(np.array(reported) < 1)} of them in the wrong direction; they reported {np.mean(reported):.2f} on average." if reported else "."))

# %% [markdown]
# ## What this does not show
#
# - The power curve rests on a distribution fitted to few runs, and on its tail beyond the cap, where there are none.
# - The pilot is made of the two Z-Scores, most of whose runs arrive. Beside arms of which few arrive, the same factor would show as less under the cap, and need more seeds.
# - Its tests are not adjusted for the number of comparisons; those of the report are, and so find less.
# - A method need not shorten every run by the same factor.
# - With the advantages left as they are, as in the text, the arms may differ more.
# - PPO's usual form, with many episodes an update, may react to normalization differently.

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** There is no difference at all. How often does a test at the 5 % level report one?

# %% tags=["stub"]
false_alarms = None

# %% nbgrader={"grade": false, "grade_id": "09-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
false_alarms = None
### BEGIN SOLUTION
false_alarms = 0.05
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert false_alarms is not None and 0 <= false_alarms <= 1, "a probability"
### BEGIN HIDDEN TESTS
assert np.isclose(false_alarms, 0.05), "a test at the 5 % level is wrong in 5 % of the studies without a difference"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** Eight of ten looks convincing. Suppose that the true probability of being faster on a paired seed is 0.5, without ties. How probable is it that one arm wins at least eight of ten pairs, whichever arm it is? Compute it exactly.

# %% tags=["stub"]
eight_of_ten = None

# %% nbgrader={"grade": false, "grade_id": "09-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
eight_of_ten = None
### BEGIN SOLUTION
eight_of_ten = 2 * sum(np.array([45, 10, 1])) / 2**10
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
wins = np.random.default_rng(0).binomial(10, 0.5, 400_000)
assert eight_of_ten is not None and abs(eight_of_ten - np.mean((wins >= 8) | (wins <= 2))) < 0.003
### BEGIN HIDDEN TESTS
assert np.isclose(eight_of_ten, 112 / 1024), "exactly, and in either direction"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (apply).** Write a function that returns the smallest of `sizes` whose simulated power for a factor, by the distribution of a pilot, is at least 0.8, or None if there is none. (`power` wants a fresh `np.random.default_rng(...)` for each size.)

# %% tags=["stub"]
def seeds_needed(pilot: rv_frozen, factor: float) -> int | None:
    """Return the smallest tried number of seeds an arm with a power of 80 %."""


# %% nbgrader={"grade": false, "grade_id": "09-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def seeds_needed(pilot: rv_frozen, factor: float) -> int | None:
    """Return the smallest tried number of seeds an arm with a power of 80 %."""
    ### BEGIN SOLUTION
    for n in sizes:
        if power(pilot, factor, n, np.random.default_rng(n)) >= 0.8:
            return n
    return None
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "09-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
made_up = weibull_min(5, scale=max_episodes / 5)  # nearly all runs arrive at about a fifth of the cap
assert seeds_needed(made_up, 4.0) == sizes[0], "a factor of four is seen with few seeds"
assert seeds_needed(made_up, 1.0) is None, "no number of seeds finds what is not there"
### BEGIN HIDDEN TESTS
assert seeds_needed(weibull_min(5, scale=1e6 * max_episodes), 2.0) is None, "where nobody arrives there is nothing to find"
assert seeds_needed(made_up, 0.25) == sizes[0], "four times slower is seen as well"
assert sizes[0] < seeds_needed(made_up, 1.25) <= sizes[-1], "a smaller factor needs more seeds"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** Plan a study of your own that could find a factor of 1.5: how many seeds an arm (simulate it), which criterion and cap, which statistic, and which result would make you say "it holds", "it does not", or "cannot be told"? Write it so that somebody else could carry it out without asking.

# %% tags=["stub"]
seeds_an_arm, plan = None, ""

# %% nbgrader={"grade": true, "grade_id": "09-4", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
seeds_an_arm, plan = None, ""
### BEGIN SOLUTION
seeds_an_arm = seeds_needed(pilot, 1.5) or 2 * sizes[-1]  # more than the largest size that was simulated
plan = (f"Two arms on the same {seeds_an_arm} fresh seeds, judged by training returns with a cap of 1,500 episodes, because more runs meet this criterion before it; restricted means with a paired bootstrap "
        "interval, and the log-rank test. It holds if the factor's interval lies above 1 and p is below 0.05; otherwise it does not if the interval lies below 1.1; in all other cases it cannot be told.")
### END SOLUTION

# %% nbgrader={"grade": false, "grade_id": "09-4-check", "locked": true, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert seeds_an_arm is not None and seeds_an_arm > 0, "a number of seeds"
assert len(plan.split()) >= 30, "arms, cap, statistic and the three verdicts, please"

# %% [markdown]
# ## Summary

# %%
Markdown(f"""
- Table 1 says {claim["zscore"]} against {claim["kscore"]}, a factor of {true_factor:.2f}; chapter 07 says what the files with these outputs do.
- PPO as written (but with z-scored advantages), n = {seeds}: the factor of the adaptive stream over the running Z-Score is {as_written.factor["adaptive"]:.2f}, by training returns {planned.factor["adaptive stream, running Z-Score", "training"]:.2f}.
- The factor of adaptive refit over the per-episode Z-Score, not a pair of the plan: {as_released.factor["adaptive_refit"]:.2f}, by training returns {planned.factor["adaptive refit, per-episode Z-Score", "training"]:.2f}.
- With {seeds} seeds an arm, the smallest factor that would be found with 80 % probability is {smallest}.
""")

# %% [markdown]
# The verdicts are in [11 The replication report](11_replication_report.ipynb).
#
# **References.** C. Colas, O. Sigaud and P.-Y. Oudeyer, *How many random seeds? Statistical power analysis in deep reinforcement learning experiments* (2018).
# A. Gelman and J. Carlin, *Beyond power calculations*, Perspectives on Psychological Science 9 (2014), on exaggeration in small studies.
# B. Trevett, *pytorch-rl*. Z. Xia and Q. Li, *K-Score*, Table 1, and the released repository at commit `5667b45`.

# %%
chapter.footer()
