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
# **Question.** Is PPO with a Kalman filter faster than PPO with a Z-Score on LunarLander, and could a study of this size have found out?
#
# *For* readers who plan experiments: how many seeds does a question need?
# *Know first:* chapters 05 to 08.
# *Runs in* a minute or two from the recorded runs; hours on two cores from nothing.
# Previous: [08 PPO on CartPole](08_ppo_cartpole.ipynb) · Next: [10 Process noise, and tuning](10_process_noise.ipynb)

# %% [markdown]
# ## Question
#
# Table 1 of the paper has a row for PPO on LunarLander, with fewer episodes for the K-Score than for the Z-Score (T1b).
# Its two numbers stand in the outputs of files that are not PPO and that both filter (chapter 07).
# Here is PPO itself: is it faster with a filter than with a Z-Score?
# And, since a run takes minutes and seeds are few, what could so few of them have shown?
#
# We expected no advantage of a tenth or more.
# A factor of the adaptive stream over the running Z-Score whose whole interval lies above 1.1 would prove us wrong. (As in chapter 07, the plan states this bound for CartPole only.)
#
# After this chapter you can
#
# - estimate the power of a planned comparison from a pilot study;
# - say how many seeds a factor of a given size needs on this task;
# - tell "no difference was found" from "there is no difference";
# - explain why a small study that finds something has usually found too much.

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
seeds: int = 10               # runs per arm [2, 10000]
first_seed: int = 1000        # the first; results use 1000 and up [0, 1000000000]
max_episodes: int = 1500      # the cap: a run that meets it is censored [1, 100000]
epochs: int = 5               # PPO's updates on each episode; 5 as released [1, 100]
store: str = "build/runs"     # your folder, for what the archive lacks
archive: bool = True          # whether the archive of recorded runs is read first
live_seeds: list[int] = [3000]  # of the live run [0, 1000000000], 1 to 5 different
live_episodes: int = 60       # its length: a whole run would take minutes [1, 100000]
trials: int = 200             # simulated studies per point of the curve [10, 10000]

# %% [markdown]
# The arms are those of chapter 07, trained with PPO: five updates on each episode instead of one, each kept close to the policy that played it by clipping.
# As there, a run goes on until it has arrived by both criteria, evaluation and training returns.
# The advantages are z-scored in all arms, which the text does not mention.

# %%
settings = {"max_episodes": max_episodes, "epochs": epochs}
part = plan.part("lunarlander_ppo", seeds=seeds, first_seed=first_seed, **settings)
arms = part.configs
claimed = analysis.published("T1b").set_index("normalizer").episodes
claimed_factor = claimed["zscore"] / claimed["kscore"]

# %% [markdown]
# ## Notation
#
# | word | meaning | in code |
# |---|---|---|
# | as written | the adaptive stream and the running Z-Score; here with the advantages z-scored | arms `adaptive`, `running` |
# | power | probability that a test finds a difference that is there | `power`, simulated below |
# | detectable factor | smallest factor found with a power of 80 % | computed below |

# %% [markdown]
# ## The published numbers
#
# One row of the paper's Table 1:

# %%
analysis.published("T1b")

# %% [markdown]
# What is run here is what the table names: PPO, five epochs on each episode, clipped, with a filter or a Z-Score.
# The public tutorial that the released code follows has a PPO notebook with a Z-Score on this task as well. Its stored output is one more single run, shorter than either of the table's:

# %%
analysis.published("R6").query("environment.str.startswith('Lunar')")

# %% [markdown]
# ## The recorded study
#
# The seeds are few, because a run takes up to nearly three million steps.
# So the chapter asks twice: what do these runs say, and what could they have said?

# %%
runs = study.runs(part, store, archive=archive)
assert len(runs) == part.runs
Markdown(f"{figures.run_count(runs)}.")

# %% [markdown]
# ## The result
#
# Left, the pair of the plan. Right, the four arms that map an episode as a whole; the adaptive refit and the per-episode Z-Score are among them.
#
# **Predict the plot.** The advantages are z-scored, and Adam divides by the gradient's size. By which route can the scale of a normalizer still reach the policy (chapter 08)? And which arms would lie together if there were none?

# %%
panels = {
    "as written": ["adaptive", "running"],
    "whole episode": ["none", "zscore", "refit", "adaptive_refit"],
}
curves = [
    {f"{title}, by {criterion}": analysis.survivals(runs, names, criterion)
     for title, names in panels.items()}
    for criterion in analysis.CRITERIA
]
figures.show(figures.survival_panels(curves, max_episodes, height=2.6))

# %% tags=["hide-input"]
figures.caption(
    "Kaplan-Meier curves of PPO on LunarLander with 95 % bands, to the paper's "
    "criterion (above) and by training returns (below), from the same runs. Lower "
    "and further left is faster; before its first arrival a curve has no band, "
    "which is not certainty.",
    alt="Four panels of survival curves of PPO on LunarLander, by evaluation returns "
    "above and by training returns below. Left, the running Z-Score falls and the "
    "adaptive stream stays at the top. Right, the per-episode Z-Score falls, and no "
    "normalization and the two refits stay higher.")

# %% [markdown]
# The one route that is left leads through the critic, which learns the normalized returns. Without it the four arms on the right would lie together.
#
# The bands are wide because a curve has no more steps than runs, and they are pointwise; where they overlap along their whole length, the eye should not rank.
# Here are the numbers, by both criteria. Beside the pair of the plan stands the one that the released files suggest (no PPO with a refitted filter was released for this task). Up to ten runs per arm the log-rank p is exact: of all ways to divide the runs into two arms, the share that sets them at least as far apart.

# %%
pairs = {
    "as written: adaptive stream / running Z-Score": ("adaptive", "running"),
    "adaptive refit / per-episode Z-Score": ("adaptive_refit", "zscore"),
}
planned = analysis.by_criterion(runs, pairs)
figures.table(planned[["factor", "log-rank p"]])

# %% tags=["hide-input"]
came = {arm: [int(analysis.times(runs, arm, criterion).arrived.sum())
              for criterion in analysis.CRITERIA] for arm in arms}
Markdown(
    f"Of {seeds} runs each, by evaluation and by training returns: the adaptive stream "
    f"arrived in {came['adaptive'][0]} and {came['adaptive'][1]}, the running Z-Score "
    f"in {came['running'][0]} and {came['running'][1]}; adaptive refit in "
    f"{came['adaptive_refit'][0]} and {came['adaptive_refit'][1]}, the per-episode "
    f"Z-Score in {came['zscore'][0]} and {came['zscore'][1]}.")

# %% [markdown]
# As written, the stream was slower than the running Z-Score by either criterion.
# None of its runs arrived, so its restricted mean is the cap itself, while nearly all runs of the Z-Score came in: read the factor as *at least this far apart*.
# The refitted filter was slower than the per-episode Z-Score by evaluation returns, before any adjustment for several tests; by training returns the estimate lies below 1 too, but its interval contains 1, and the test finds no difference.

# %% [markdown]
# ## What could have been found?
#
# Suppose that a method really is faster by a factor, so that every run is shortened by it.
# We simulate studies of $n$ seeds: draw $n$ runs for one arm, $n$ for the other, shorten the first by the factor, stop all of them at the cap, test.
# The share of studies that find the difference is the power.
#
# This is best done *before* a study, on a pilot, to choose its size.
# Done afterwards, it still says what "no difference was found" is worth: with little power, nothing; with much, it comes close to "there is none".
#
# A filter is compared with a Z-Score, so for the pilot we take the times of both Z-Scores together, by training returns, as the published numbers are.
# Some of them are censored, and a faster method would bring some of those runs in under the cap; so we need to say what lies beyond it.
# A Weibull distribution, whose survival curve is $\exp(-(t/\lambda)^k)$, is the usual choice for such times, and scipy fits it to censored ones (`stats.weibull`).

# %%
both = [analysis.times(runs, arm, "training") for arm in ("zscore", "running")]
pilot_times = stats.Times(np.concatenate([times.time for times in both]),
                          np.concatenate([times.arrived for times in both]))
arrivals = int(pilot_times.arrived.sum())
if arrivals > 1:
    pilot = stats.weibull(pilot_times)
else:  # too few to fit: a distribution by which nobody arrives
    pilot = weibull_min(1, scale=1e6 * max_episodes)

# %% [markdown]
# Two short functions are the whole simulation:

# %%
def imagined(
    pilot: rv_frozen, factor: float, n: int, rng: np.random.Generator
) -> stats.Times:
    """Return n runs, watched up to the cap, of a method faster by a factor."""
    time = pilot.rvs(n, random_state=rng) / factor
    return stats.Times(np.minimum(time, max_episodes), time <= max_episodes)


def power(pilot: rv_frozen, factor: float, n: int, rng: np.random.Generator) -> float:
    """Return the share of simulated studies of n seeds that find the factor."""
    studies = [(imagined(pilot, factor, n, rng), imagined(pilot, 1.0, n, rng))
               for _ in range(trials)]
    return np.mean([stats.logrank(*both_arms) < 0.05 for both_arms in studies])

# %% [markdown]
# **Predict the plot.** The curve of a true factor of 1 is no power at all: it is the rate of false alarms. Where should it lie? And how many seeds will the published factor need: ten, fifty, more?

# %%
sizes = (5, 10, 20, 40, 80, 160)
powers = {}
for factor in (1.0, claimed_factor, 2.0):
    generators = [np.random.default_rng([n, int(100 * factor)]) for n in sizes]
    powers[factor] = [power(pilot, factor, n, rng)
                      for n, rng in zip(sizes, generators, strict=True)]

# %% tags=["hide-input"]
fig, (left, right) = figures.panels(1, 2, height=3.6)
observed = stats.survival(pilot_times)
left.step(np.append(observed.episode, max_episodes),
          np.append(observed.share, observed.share[-1]), where="post",
          color=figures.INK, label=f"both Z-Scores (n = {len(pilot_times.time)})")
grid = np.linspace(0, max_episodes, 200)
left.plot(grid, pilot.sf(grid), color=figures.BLUE, linestyle="--", label="Weibull")
left.set(xlim=(0, max_episodes), ylim=(0, 1.02))
figures.label(left, "The pilot, by training returns", "training episodes",
              "share of runs on their way", legend="upper right")
looks = zip(powers.items(), (figures.GREY, figures.ORANGE, figures.BLUE), "xDo",
            strict=True)
for (factor, values), color, marker in looks:
    right.plot(sizes, values, color=color, marker=marker,
               label=f"true factor {factor:.2f}")
for level in (0.05, 0.8):
    right.axhline(level, color=figures.INK, linewidth=0.8, linestyle=":")
right.set_xscale("log")
right.set_xticks(sizes, sizes)
right.minorticks_off()
right.set_ylim(0, 1.02)
figures.label(right, f"Power (n = {trials} studies per point)", "seeds per arm",
              "share of studies that find it", legend="center right")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Left: the times of the pilot and the distribution fitted to them. Right: "
    "how often the log-rank test finds a true difference, by the number of seeds; "
    "dotted: 5 % and 80 %. A factor of 1 gives the rate of false alarms.",
    alt="Left, a falling survival curve with a smooth one through it; right, three "
    "curves of power against seeds per arm: flat near 5 % for no difference, rising "
    "slowly for the published factor, and fast for a factor of two.")

# %% [markdown]
# Where does each curve cross the upper line, and what would our own number of seeds have found?

# %%
enough = [n for n, share in zip(sizes, powers[claimed_factor], strict=True)
          if share >= 0.8]
findable = (factor for factor in stats.FACTORS
            if power(pilot, factor, seeds, np.random.default_rng(seeds)) >= 0.8)
least = next(findable, None)

# %% tags=["hide-input"]
smallest = f"about {least:g}" if least else f"above {stats.FACTORS[-1]:g}"
if not enough:
    needed = f"more than {sizes[-1]}"
elif enough[0] == sizes[0]:
    needed = f"at most {sizes[0]}"
else:
    needed = f"between {sizes[sizes.index(enough[0]) - 1]} and {enough[0]}"
ten = sizes.index(10)
error = 100 * np.sqrt(0.05 * 0.95 / trials)
Markdown(
    f"With {seeds} seeds per arm the smallest factor that would be found with 80 % "
    f"probability is {smallest}. The published {claimed_factor:.2f} would need "
    f"{needed} seeds per arm. (The pilot has {arrivals} arrivals.) With ten seeds per "
    f"arm, {powers[2.0][ten]:.0%} of the studies find a factor of two, and "
    f"{powers[claimed_factor][ten]:.0%} the published one. False alarms lie between "
    f"{min(powers[1.0]):.0%} and {max(powers[1.0]):.0%}; each point is a share of "
    f"{trials} studies, with a standard error of {error:.1f} percentage points."
    if arrivals > 1 else
    f"Only {arrivals} of {len(pilot_times.time)} runs arrived: too few to say anything "
    "about power.")

# %% [markdown]
# The fit is rough: the Weibull curve lets some runs arrive earlier than any of ours did, so read the power as a rough figure, too.
# The false alarms lie about where they should.
# A large factor is within the reach of ten seeds; the published one would be missed by most studies of that size.
# The report (chapter 11) gives detectable factors as well. It draws the recorded runs of one arm again, and uses the Weibull distribution only for what lies beyond the cap, so its figures differ somewhat from these.

# %% [markdown]
# ## A live run
#
# Adaptive refit and the per-episode Z-Score, on a seed that is part of no statistic; a whole run would take minutes.

# %%
short = {"criterion": "evaluation", "max_episodes": live_episodes}
live = {(arm, seed): train(replace(arms[arm], **short), seed)
        for seed in live_seeds for arm in ("zscore", "adaptive_refit")}
figures.show(figures.live_panel(live))

# %% tags=["hide-input"]
figures.caption(
    f"The greedy evaluation return after each of the first {live_episodes} "
    "training episodes; dotted: the threshold.",
    alt="Evaluation returns of two short live PPO runs on LunarLander.")

# %% [markdown]
# ## When it fails: a significant accident
#
# A small study that does find something has usually found too much: only a lucky overestimate is large enough to be significant.
# Among simulated studies of this size with the published factor, look only at those that were significant. Which factor of restricted means did they report?
# (Under the cap a true factor shows as less, because runs beyond it count as the cap. So we compare with what very many runs would show.)

# %%
rng, reported = np.random.default_rng(5), []
for _ in range(5 * trials):
    fast = imagined(pilot, claimed_factor, seeds, rng)
    usual = imagined(pilot, 1.0, seeds, rng)
    if stats.logrank(fast, usual) < 0.05:
        reported.append(float(stats.improvement(fast, usual, max_episodes)))
many_fast = imagined(pilot, claimed_factor, 100_000, rng).time.mean()
under_the_cap = imagined(pilot, 1.0, 100_000, rng).time.mean() / many_fast

# %% tags=["hide-input"]
wrong_way = np.sum(np.array(reported) < 1)
Markdown(
    f"A true factor of {claimed_factor:.2f} shows as {under_the_cap:.2f} under this "
    f"cap. Of {5 * trials} studies with n = {seeds}, {len(reported)} were significant"
    + (f", {wrong_way} of them in the wrong direction; they reported "
       f"{np.mean(reported):.2f} on average." if reported else "."))

# %% [markdown]
# ## What this does not show
#
# - **Another learning rate.** All arms learn at the released rate for this task, which was never varied here. A pilot on CartPole found that rankings can change with it.
# - **Another setting of the stream.** $Q$ and $R$ are the released ones, made for refitting, and were not tuned on this task.
# - **The advantages not z-scored.** Without that step, as in the text, the arms may differ more.
# - **The tail.** The power curve rests on a distribution fitted to few runs, and on its tail beyond the cap, where there are none.
# - **Other arms.** The pilot is made of the two Z-Scores, most of whose runs arrive. Beside arms of which few arrive, the same factor would show as less under the cap, and need more seeds. Nor need a method shorten every run by the same factor.
# - **Many tests.** The simulated tests are not adjusted for the number of comparisons; those of the report are, and so find less.
# - **PPO as commonly used**, with many episodes per update, may react to normalization differently.

# %% [markdown]
# ## Appendix: every arm
#
# By the paper's criterion. As in chapter 07, read the factors together with the column "arrived". An arm without arrivals has a factor that comes from the Z-Score alone, so all such arms have the same one.

# %%
figures.table(analysis.summary(runs))

# %% [markdown]
# Each arm against both Z-Scores as a picture, and against the per-episode one in numbers:

# %%
as_written = analysis.against(runs, "running")
as_released = analysis.against(runs, "zscore")
fig = figures.forest_panels(
    {"over running Z-Score": as_written, "over per-episode Z-Score": as_released},
    published=claimed_factor)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Improvement factors with 95 % intervals, by the evaluation criterion; "
    "dotted: no difference, dashed: the published factor, a ratio of two single "
    "runs by training returns. Under the cap a true factor of this size shows as "
    "less; the section on accidents says how much.",
    alt="Two forest plots for PPO on LunarLander with a line at the published factor. "
    "Over the running Z-Score all arms lie to the left of 1, the per-episode one "
    "just reaching it; over the per-episode one the running Z-Score lies around 1.2 "
    "and all others below 1.")

# %%
figures.table(as_released)

# %% [markdown]
# And the curves behind the times:

# %%
titled = [(figures.METHODS[arm]["label"], arm, analysis.curves(runs, arm))
          for arm in arms]
fig = figures.learning_panels(titled, columns=3, threshold=200, lowest=-600)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Evaluation returns of PPO, averaged over the last 25 as the criterion does: "
    "each run faint, the median and the middle half; dotted, the threshold. A "
    "run that has stopped goes on where it was; it stops when it has arrived by "
    "both criteria, so that its last average may lie below the line. The axis is "
    "cut at -600.",
    alt="Six panels of averaged evaluation returns of PPO on LunarLander, one for "
    "each arm, with a line at 200, which the medians of the two Z-Scores come near "
    "and the others do not.")

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
assert np.isclose(false_alarms, 0.05), (
    "a test at the 5 % level is wrong in 5 % of the studies without a difference")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** Eight of ten looks convincing. Suppose that the true probability of being faster on a paired seed is 0.5, without ties. How probable is it that one arm wins at least eight of ten pairs, whichever arm it is? Compute it exactly.

# %% tags=["stub"]
eight_of_ten = None

# %% nbgrader={"grade": false, "grade_id": "09-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
eight_of_ten = None
### BEGIN SOLUTION
eight_of_ten = 2 * (45 + 10 + 1) / 2**10
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
wins = np.random.default_rng(0).binomial(10, 0.5, 400_000)
assert eight_of_ten is not None, "a probability"
assert abs(eight_of_ten - np.mean((wins >= 8) | (wins <= 2))) < 0.003, (
    "400,000 simulated studies say otherwise")
### BEGIN HIDDEN TESTS
assert np.isclose(eight_of_ten, 112 / 1024), "exactly, and in either direction"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (apply).** Write a function that returns the smallest of `sizes` whose simulated power for a factor, by the distribution of a pilot, is at least 0.8, or None if there is none. (`power` wants a fresh `np.random.default_rng(...)` for each size.)

# %% tags=["stub"]
def seeds_needed(pilot: rv_frozen, factor: float) -> int | None:
    """Return the smallest tried number of seeds per arm with a power of 80 %."""


# %% nbgrader={"grade": false, "grade_id": "09-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def seeds_needed(pilot: rv_frozen, factor: float) -> int | None:
    """Return the smallest tried number of seeds per arm with a power of 80 %."""
    ### BEGIN SOLUTION
    for n in sizes:
        if power(pilot, factor, n, np.random.default_rng(n)) >= 0.8:
            return n
    return None
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "09-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
made_up = weibull_min(5, scale=max_episodes / 5)  # arrivals at about a fifth of the cap
assert seeds_needed(made_up, 4.0) == sizes[0], "a factor of four is seen with few seeds"
assert seeds_needed(made_up, 1.0) is None, "no number of seeds finds what is not there"
### BEGIN HIDDEN TESTS
assert seeds_needed(weibull_min(5, scale=1e6 * max_episodes), 2.0) is None, (
    "where nobody arrives there is nothing to find")
assert seeds_needed(made_up, 0.25) == sizes[0], "four times slower is seen as well"
assert sizes[0] < seeds_needed(made_up, 1.25) <= sizes[-1], (
    "a smaller factor needs more seeds")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (plan; a teacher reads it).** Plan a study of your own that could find a factor of 1.5: how many seeds per arm (simulate it), which criterion and cap, which statistic, and which result would make you say "it holds", "it does not", or "cannot be told"? Write it so that somebody else could carry it out without asking.

# %% tags=["stub"]
seeds_an_arm, study_plan = None, ""

# %% nbgrader={"grade": true, "grade_id": "09-4", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
seeds_an_arm, study_plan = None, ""
### BEGIN SOLUTION
seeds_an_arm = seeds_needed(pilot, 1.5) or 2 * sizes[-1]  # more than was simulated
study_plan = (
    f"Two arms on the same {seeds_an_arm} fresh seeds, judged by training returns with "
    "a cap of 1,500 episodes, because more runs meet this criterion before it; "
    "restricted means with a paired bootstrap interval, and the log-rank test. It "
    "holds if the factor's interval lies above 1 and p is below 0.05; otherwise it "
    "does not if the interval lies below 1.1; in all other cases it cannot be told.")
### END SOLUTION

# %% nbgrader={"grade": false, "grade_id": "09-4-check", "locked": true, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert seeds_an_arm is not None and seeds_an_arm > 0, "a number of seeds"
assert len(study_plan.split()) >= 30, (
    "arms, cap, statistic and the three verdicts, please")

# %% [markdown]
# **Exercise 5 (open: train a small study).** A pilot of your own, in seconds. Train an arm on some seeds for a few episodes, and return the mean evaluation return of each run: `replace(arms[arm], criterion="evaluation", max_episodes=...)` shortens a configuration, `train(config, seed)` trains it, and `eval_returns` of the record has one greedy return per episode.
# Then say how many seeds per arm would find a difference of so many points of return. If single runs have the standard deviation $s$ (of a sample: divide by $n - 1$), a difference $d$ between two arms is found with a power of 80 % at $n = 2\,(1.96 + 0.84)^2\, s^2 / d^2$ seeds per arm, rounded up.
# Set `for_100` to the answer for a difference of 100 points, from a pilot of the per-episode Z-Score on the seeds 3200 to 3203, four episodes each.

# %% tags=["stub"]
def pilot_study(arm: str, seeds: list[int], episodes: int) -> np.ndarray:
    """Return the mean evaluation return of a short run on each seed."""


def seeds_for(difference: float, values: np.ndarray) -> int:
    """Return the seeds per arm that a difference needs, from the values of a pilot."""


for_100 = None

# %% nbgrader={"grade": false, "grade_id": "09-5", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def pilot_study(arm: str, seeds: list[int], episodes: int) -> np.ndarray:
    """Return the mean evaluation return of a short run on each seed."""
    ### BEGIN SOLUTION
    config = replace(arms[arm], criterion="evaluation", max_episodes=episodes)
    return np.array([np.mean(train(config, seed)["eval_returns"]) for seed in seeds])
    ### END SOLUTION


def seeds_for(difference: float, values: np.ndarray) -> int:
    """Return the seeds per arm that a difference needs, from the values of a pilot."""
    ### BEGIN SOLUTION
    ratio = np.std(values, ddof=1) / difference
    return int(np.ceil(2 * (1.96 + 0.84) ** 2 * ratio**2))
    ### END SOLUTION


for_100 = None
### BEGIN SOLUTION
for_100 = seeds_for(100, pilot_study("zscore", range(3200, 3204), 4))
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-5-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
trial = pilot_study("running", [3200, 3201], 2)
assert trial is not None and np.shape(trial) == (2,), "one number for each seed"
brief = replace(arms["running"], criterion="evaluation", max_episodes=2)
assert np.isclose(trial[1], np.mean(train(brief, 3201)["eval_returns"])), (
    "the mean of `eval_returns` of the run with this arm and seed")
assert seeds_for(10, np.array([0.0, 10.0, 20.0])) == 16, (
    "s = 10 and d = 10: 2 × 2.8² = 15.68, rounded up")
assert for_100 is not None and for_100 >= 1, "a number of seeds"
### BEGIN HIDDEN TESTS
assert seeds_for(20, np.array([0.0, 10.0, 20.0])) == 4, (
    "twice the difference, a quarter of the seeds")
four = replace(arms["zscore"], criterion="evaluation", max_episodes=4)
found = [np.mean(train(four, seed)["eval_returns"]) for seed in range(3200, 3204)]
assert for_100 == int(np.ceil(15.68 * np.var(found, ddof=1) / 100**2)), (
    "the per-episode Z-Score on the seeds 3200 to 3203, four episodes, 100 points")
### END HIDDEN TESTS

# %% [markdown]
# ## Summary
#
# **Answer.** No advantage of the filter was seen. As written, the adaptive stream was slower than the running Z-Score by both criteria; adaptive refit was slower than the per-episode Z-Score by evaluation returns, and by training returns no difference was found.
# A study of this size finds only large factors: one as small as the published one would have been missed more often than not.

# %% tags=["hide-input"]
first, second = pairs
Markdown("\n".join([
    f"- Table 1 says {claimed['zscore']} against {claimed['kscore']}, a factor of "
    f"{claimed_factor:.2f}; chapter 07 says what the files with these outputs do.",
    f"- PPO as written (but with z-scored advantages), n = {seeds}: the factor of the "
    f"adaptive stream over the running Z-Score is "
    f"{planned.factor[first, 'evaluation']:.2f}, by training returns "
    f"{planned.factor[first, 'training']:.2f}.",
    f"- The factor of adaptive refit over the per-episode Z-Score, not a pair of the "
    f"plan: {planned.factor[second, 'evaluation']:.2f}, by training returns "
    f"{planned.factor[second, 'training']:.2f}.",
    f"- With {seeds} seeds per arm, the smallest factor that would be found with 80 % "
    f"probability is {smallest}.",
]))

# %% [markdown]
# The verdicts are in [11 The replication report](11_replication_report.ipynb).
#
# **References.** C. Colas, O. Sigaud and P.-Y. Oudeyer, *How many random seeds? Statistical power analysis in deep reinforcement learning experiments* (2018).
# A. Gelman and J. Carlin, *Beyond power calculations*, Perspectives on Psychological Science 9 (2014), on exaggeration in small studies.
# B. Trevett, *pytorch-rl*. Z. Xia and Q. Li, *K-Score*, Table 1, and the released repository at commit `5667b45`.

# %%
chapter.footer()
