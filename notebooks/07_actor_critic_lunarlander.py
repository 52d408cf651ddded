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
# # 07 Actor-critic on LunarLander
#
# **Question.** On a noisier task, with ten seeds per arm, does the Kalman filter learn faster than a Z-Score, and what can so few seeds tell?
#
# *For* readers who have to make do with few, expensive runs.
# *Know first:* chapter 05; the log-rank test of chapter 06.
# *Runs in* about a minute from the recorded runs; hours on two cores from nothing.
# Previous: [06 GAE on CartPole](06_gae_cartpole.ipynb) · Next: [08 PPO on CartPole](08_ppo_cartpole.ipynb)

# %% [markdown]
# ## Question
#
# A lander is to set down softly between two flags.
# Its rewards are uneven and large: coming closer and slowing down pays, each leg on the ground pays 10 and a safe landing 100; a crash costs 100, and every frame with an engine on costs a little. An episode that returns 200 counts as solved.
# Here the paper reports faster and smoother learning with the Kalman filter than with mean and deviation (experiment E3, Figure 5).
#
# The plan names two pairs: the adaptive stream against the running Z-Score (as written) and adaptive refit against the per-episode Z-Score (as released).
# We expected no advantage of a tenth or more; an improvement factor whose whole interval lies above 1.1 would prove us wrong. (The plan states this bound for CartPole; we use the same here.)
#
# A run takes minutes on this task, so there are ten seeds per arm and not fifty, and that changes the question.
# Before asking who is faster, we have to ask which differences ten seeds could show at all; any smaller one will look like "no difference", whether it is there or not.
#
# After this chapter you can
#
# - tell apart two criteria of success, and say which one a published number uses;
# - read heavily censored curves without being misled by the runs that arrived;
# - say which difference a study of this size could have found;
# - forecast from a few short runs what a study will cost, and say why the forecast is too low.

# %% [markdown]
# ## Setup

# %%
from dataclasses import replace

import numpy as np
import pandas as pd
from IPython.display import Markdown

from kscore import analysis, chapters, figures, study
from kscore.analysis import stats
from kscore.rl import train
from kscore.study import plan

chapter = chapters.begin("07_actor_critic_lunarlander")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seeds: int = 10  # runs per arm [2, 10000]
first_seed: int = 1000  # the first of them; results use 1000 and up [0, 1000000000]
max_episodes: int = 1500  # the cap: a run that gets there is censored [1, 100000]
learning_rate: float = 0.0005  # of Adam, in every arm; released: 0.0005 [1e-06, 1]
store: str = "build/runs"  # your own folder: what the archive lacks is trained into it
archive: bool = True  # whether recorded runs are read first; without, all are trained
live_seeds: list[int] = [3000]  # trained live [0, 1000000000], 1 to 5 different
live_episodes: int = 60  # how long: a whole run would take minutes [1, 100000]

# %% [markdown]
# Why minutes? A policy that has learned not to crash may hover until the time limit of 1,000 steps.

# %%
size = {"seeds": seeds, "first_seed": first_seed}
settings = {"max_episodes": max_episodes, "learning_rate": learning_rate}
planned_runs = plan.part("lunarlander_actor_critic", **size, **settings)
released_files = plan.part("lunarlander_released", **size, **settings)
arms, files = planned_runs.configs, released_files.configs
labels = {arm: figures.METHODS[arm]["label"] for arm in arms}

# %% [markdown]
# ## Notation
#
# | word | meaning | in code |
# |---|---|---|
# | evaluation criterion | mean of the last 25 *greedy* evaluation returns reaches 200: the paper's metric | `runs.evaluation` |
# | training criterion | mean of the last 25 *training* returns reaches 200: what the released LunarLander files stop on | `runs.training` |
# | as written, as released | on this task the two differ in their normalizers only: streamed filter and running Z-Score, or refitted filter and per-episode Z-Score | `adaptive`, `running`; `adaptive_refit`, `zscore` |
# | log-rank p | as in chapter 06, but by permutation, because the samples are small: all ways to divide the runs into two arms are counted | `stats.logrank` |
#
# The runs of this chapter go on until they have arrived by both criteria, so that both times come from the same runs.
# In all arms the advantages are z-scored afterwards, as in the released files of this task; the text has no such step.

# %% [markdown]
# ## The published numbers
#
# The paper used LunarLander-v2.
# Current gymnasium has v3, the same task with fixes to the state of the wind, to determinism and to the bounds of the observation; that is what we use.
# For Figure 5 the text gives no numbers; the released curve files (commit `5667b45`) have these lengths.

# %%
published = analysis.published("E3")
published

# %% [markdown]
# So in the released files the Kalman curve is the *longer* one.
# If each file ends where its run arrived, the filter was the slower one; which returns the two runs stopped on is not recorded.
#
# Two released LunarLander notebooks have the numbers of Table 1 in their outputs: 750, which the table gives as the K-Score's, and 991, which it gives as the Z-Score's, in the row that it calls PPO (chapter 09).
# Both make one update per episode without clipping, which is an actor-critic, and both filter.
# The 750 takes its centre from the filter and divides by the plain standard deviation of the episode; the 991 uses the adaptive filter.
# Both stop on training returns.
# Earlier versions of the same two files read 645 and 1203.
# Both settings are run here, with our full window of 25, our cap and v3.

# %% tags=["hide-input"]
options = ("name", "mode", "variant", "scale", "Q", "R")
pd.DataFrame({f"reads {name}": {option: config.normalizer[option] for option in options}
              | {"criterion": config.criterion} for name, config in files.items()}).T

# %% [markdown]
# The scale "belief" divides by the root of the filter's variance, "returns" by the plain deviation of the episode's returns.
# The 991 is our arm *adaptive refit*, stopped at the training criterion: the same runs again, if the seeds are the same. Only the 750 is new.

# %% [markdown]
# ## The recorded study

# %%
runs = study.runs(planned_runs, store, archive=archive)
runs_files = study.runs(released_files, store, archive=archive)
Markdown(f"{figures.run_count(pd.concat([runs, runs_files]))}.")

# %% [markdown]
# **Predict the plot.** Training episodes are played with dropout and sampled actions, evaluation episodes without either. By which of the two returns should a run reach the threshold first? And how far apart will ten runs of one method lie?

# %%
pairs = {"as written": ("adaptive", "running"),
         "as released": ("adaptive_refit", "zscore"), "beside them": ("refit", "none")}
grid = [{f"{title}, by {criterion}": analysis.survivals(runs, pair, criterion)
         for title, pair in pairs.items()} for criterion in analysis.CRITERIA]
figures.show(figures.survival_panels(grid, max_episodes, height=2.6))

# %% tags=["hide-input"]
figures.caption(
    "Kaplan-Meier curves with 95 % bands, to the paper's criterion (above) and "
    "to that of the released files (below), from the same runs. Lower and "
    "further left is faster; before its first arrival a curve has no band, which "
    "is not certainty.",
    alt="Six panels of survival curves on LunarLander, two arms in each. By "
    "evaluation returns, above, no curve falls below one half, and those of the "
    "adaptive stream and of adaptive refit do not fall at all. By training "
    "returns, below, the running Z-Score falls furthest; the adaptive stream still "
    "does not fall.")

# %% tags=["hide-input"]
either = runs[runs.evaluation_arrived | runs.training_arrived]
by_evaluation, by_training = (
    np.where(either[f"{criterion}_arrived"], either[criterion], np.inf)
    for criterion in ("evaluation", "training"))
Markdown(f"Of {len(runs)} runs {runs.evaluation_arrived.sum()} arrived by the "
         f"evaluation criterion and {runs.training_arrived.sum()} by the training "
         f"criterion. Of the {len(either)} that arrived by at least one, the training "
         f"criterion came first in {np.sum(by_training < by_evaluation)}, the "
         f"evaluation criterion in {np.sum(by_evaluation < by_training)}.")

# %% [markdown]
# So a number by one criterion must not be compared with a number by the other.
# Why they differ is not tested here. Two effects pull in opposite directions: dropout and sampling cost the training policy some return, while a greedy policy repeats a bad habit, such as hovering, every time.
#
# And how far do the runs of one arm lie apart? By training returns:

# %% tags=["hide-input"]
spread = {arm: analysis.times(runs, arm, "training") for arm in arms}
seen = {labels[arm]: times.time[times.arrived] for arm, times in spread.items()}
pd.DataFrame({name: {"earliest": time.min() if len(time) else "none arrived",
                     "latest": time.max() if len(time) else "",
                     "not arrived": f"{seeds - len(time)} of {seeds}"}
              for name, time in seen.items()}).T

# %% [markdown]
# ## The comparison
#
# The two pairs of the plan, by both criteria, from the same runs.
# "Steadier" is the paper's "smoother", as far as the last 25 evaluations show it; chapter 08 warns that calm is not success.

# %%
planned = analysis.by_criterion(
    runs, {title: pairs[title] for title in ("as written", "as released")})
figures.table(planned)

# %% [markdown]
# Read these rows with the number of arrivals beside them.
# Where no run of an arm arrives, its restricted mean is the cap, with an interval of no width, and its factor comes from the other arm alone.
# That is not certainty: a bootstrap cannot draw an arrival that was never seen. For the same reason all intervals from so few seeds are somewhat too narrow.
# **Where an interval leaves out 1 and the log-rank p is large, do not rely on the interval.** The p-value here counts all ways in which chance could have divided the same runs, so it needs no approximation for large numbers.

# %% tags=["hide-input"]
def came(arm: str, criterion: str) -> str:
    """Return how many runs of an arm arrived."""
    return f"{analysis.times(runs, arm, criterion).arrived.sum()} of {seeds}"


Markdown("\n".join(
    f"- {title}, by {criterion} returns: {labels[a]} {came(a, criterion)} arrived, "
    f"{labels[b]} {came(b, criterion)}; factor "
    f"{planned.factor[title, criterion]:.2f}, log-rank p = "
    f"{planned['log-rank p'][title, criterion]:.3f}."
    for title, (a, b) in pairs.items() if title != "beside them"
    for criterion in analysis.CRITERIA))

# %% [markdown]
# None of the four intervals lies above 1, let alone above 1.1.
# One difference is clear: by training returns the adaptive stream was slower than the running Z-Score. Most runs of the Z-Score arrived, and none of the stream's did.
# By evaluation returns neither K-Score has an arrival and each Z-Score has a few.
# There the intervals lie below 1, but the exact test gives both pairs a p above 0.05, before any adjustment: a hint, not a finding.
# Between adaptive refit and the per-episode Z-Score no difference was found by training returns; the same number of runs arrived.

# %% [markdown]
# ## What could have been found?
#
# "No difference was found" means little before we know which difference would have been.
# So we simulate: draw ten runs of a Z-Score again, divide their times by a factor to make a faster method, and ask the log-rank test.
# The smallest factor that it finds in four of five such studies is what this design can see.
# (Arrivals beyond the cap are drawn from a Weibull distribution fitted to the arm. With so few arrivals to fit, the answer is a rough one.)

# %%
visible = {(criterion, arm): stats.detectable(analysis.times(runs, arm, criterion))
           for criterion in analysis.CRITERIA for arm in ("running", "zscore")}

# %% tags=["hide-input"]
pd.DataFrame({f"by {criterion} returns": {
    labels[arm]: figures.least_factor(visible[criterion, arm])
    for arm in ("running", "zscore")}
    for criterion in analysis.CRITERIA}).rename_axis("faster than")

# %% [markdown]
# These are factors of the *time itself*, beyond the cap too, and not of restricted means, which are squeezed towards 1 where many runs are censored.
# An advantage of a quarter is smaller than all four of them: this study could easily have missed it.
# Chapter 09 shows how the picture sharpens with more seeds, for PPO.

# %% [markdown]
# ## The released settings
#
# The two files, named after the numbers in their outputs, by training returns.

# %%
between = analysis.compare(runs_files, "750", "991", "training")
what_they_did = analysis.summary(runs_files, "training")
figures.table(what_they_did.rename(index={"750": "filtered centre (reads 750)",
                                          "991": "adaptive (reads 991)"}))

# %% tags=["hide-input"]
table_1 = analysis.published("T1b").set_index("normalizer").episodes
Markdown("The factor of the setting that reads 750 over the one that reads 991 is "
         f"{between.factor:.2f} (log-rank p = {between.p:.2f}, n = {between.n}); "
         f"published: {table_1['zscore'] / table_1['kscore']:.2f}.")

# %% [markdown]
# Both arms filter, so this factor, whatever it is, does not compare a filter with a Z-Score.
# The report judges Table 1 by it all the same, because these are the files behind the table.

# %% [markdown]
# ## A live run
#
# A whole run takes minutes, so these two stop early. Watch how far the returns swing.

# %%
live = {(arm, seed): train(replace(arms[arm], criterion="evaluation",
                                   max_episodes=live_episodes), seed)
        for seed in live_seeds for arm in ("zscore", "adaptive_refit")}
figures.show(figures.live_panel(live))

# %% tags=["hide-input"]
figures.caption(
    f"The greedy evaluation return after each of the first {live_episodes} "
    "training episodes; dotted: the threshold.",
    alt="Evaluation returns of two short live runs on LunarLander.")

# %% [markdown]
# ## When it fails: only those that arrived
#
# Where many runs are censored, the mean of the others can rank methods wrongly: an arm looks fast if a few of its runs arrive early and the rest never do. By training returns:

# %%
lucky_mean = {arm: times.time[times.arrived].mean() if times.arrived.any() else np.nan
              for arm, times in spread.items()}
whole_mean = {arm: float(stats.restricted_mean(times, max_episodes))
              for arm, times in spread.items()}

# %% tags=["hide-input"]
means = pd.DataFrame({"arrived": {arm: times.arrived.sum()
                                  for arm, times in spread.items()},
                      "mean of the arrived": lucky_mean,
                      "restricted mean": whole_mean}).rename(index=labels)
means.style.format("{:.0f}", na_rep="none")

# %% tags=["hide-input"]
swapped = [f"{labels[a]} looks faster than {labels[b]}" for a in arms for b in arms
           if lucky_mean[a] < lucky_mean[b] and whole_mean[a] > whole_mean[b]]
Markdown("By the mean of the arrived, and not by the restricted mean: "
         + ("; ".join(swapped) or "no pair changes places") + ".")

# %% [markdown]
# ## What this does not show
#
# - So few seeds find only large differences. An interval from 0.8 to 1.3 rules out that an arm spends half as many episodes *up to the cap*; with many runs censored, a method twice as fast can still lie inside it.
# - Where nearly all runs of two arms are censored, both restricted means are close to the cap and the factor is close to 1, whatever would have happened later. It is a statement about the episodes up to the cap, not about the methods.
# - The cap of 1,500 episodes is ours; the released files allow 3,000. Runs that would have arrived later are censored.
# - In all arms the advantages are z-scored afterwards; without that step the arms may differ more.
# - The simple streamed filter, Algorithm 1 with a fixed $R$, is not among the arms of this task.
# - The filter's $Q$ and $R$ are the released ones, found for a filter that starts afresh in every episode; the stream borrows them, as in chapter 05.

# %% [markdown]
# ## Appendix: every arm
#
# The runs themselves:

# %%
learned = [(labels[arm], arm, analysis.curves(runs, arm)) for arm in arms]
figures.show(figures.learning_panels(learned, columns=3, threshold=200, lowest=-600))

# %% tags=["hide-input"]
figures.caption(
    "Evaluation returns, averaged over the last 25 as the criterion does: each "
    "run faint, the median and the middle half; dotted, the threshold. A run "
    "that has stopped goes on where it was; it stops when it has arrived by both "
    "criteria, so that its last average may lie below the line. The axis is cut "
    "at -600.",
    alt="Six panels of averaged evaluation returns on LunarLander, one for each arm, "
    "with a line at 200. The medians of five arms climb to around 0 and above "
    "and stay under the line; that of the adaptive stream stays below.")

# %% [markdown]
# By the paper's criterion. A median that is "not reached" means that fewer than half of the runs arrived within the cap.

# %%
figures.table(analysis.summary(runs))

# %% [markdown]
# Each arm against the per-episode Z-Score.
# Two arms without arrivals have the same factor, which comes from the Z-Score alone; that does not mean that they are alike.

# %%
as_released = analysis.against(runs, "zscore")
as_written = analysis.against(runs, "running")
figures.table(as_released)

# %% [markdown]
# Both baselines as a picture:

# %%
figures.show(figures.forest_panels({"against running Z-Score": as_written,
                                    "against per-episode Z-Score": as_released}))

# %% tags=["hide-input"]
figures.caption(
    "Improvement factors with 95 % intervals, by the evaluation criterion; right "
    "of the dotted line an arm is faster than the Z-Score of its panel.",
    alt="Two forest plots of improvement factors of five arms on LunarLander, "
    "against either Z-Score. The adaptive stream and adaptive refit lie a little "
    "left of 1; the intervals of all other arms contain 1.")

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** A run arrived by the training criterion at 400 and by the evaluation criterion at 620, with a cap of 1,500. What would a study with a cap of 500 have recorded for it? Give (training, evaluation), each as `stats.Times` of one run.

# %% tags=["stub"]
capped = None

# %% nbgrader={"grade": false, "grade_id": "07-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
capped = None
### BEGIN SOLUTION
capped = (stats.Times(np.array([400]), np.array([True])),
          stats.Times(np.array([500]), np.array([False])))
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert capped is not None and len(capped) == 2, "two `stats.Times` of one run each"
assert all(len(times.time) == 1 and times.time[0] <= 500 for times in capped), (
    "with a cap of 500, nothing is seen after 500 episodes")
### BEGIN HIDDEN TESTS
assert (capped[0].time[0], capped[0].arrived[0]) == (400, True), (
    "by the training criterion it arrived before the cap")
assert (capped[1].time[0], capped[1].arrived[0]) == (500, False), (
    "by the evaluation criterion it did not: censored at the cap")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** Write a function that gives the times of a study as if its cap had been smaller. A run that arrives at the cap has arrived.

# %% tags=["stub"]
def with_cap(times: stats.Times, cap: int) -> stats.Times:
    """Return the times that would have been seen with every run stopped at the cap."""


# %% nbgrader={"grade": false, "grade_id": "07-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def with_cap(times: stats.Times, cap: int) -> stats.Times:
    """Return the times that would have been seen with every run stopped at the cap."""
    ### BEGIN SOLUTION
    in_time = times.arrived & (times.time <= cap)
    return stats.Times(np.minimum(times.time, cap), in_time)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "07-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
some = stats.Times(np.array([100, 300, 500, 500]), np.array([True, True, True, False]))
cut = with_cap(some, 300)
assert cut is not None, "return `stats.Times`"
assert cut.time.tolist() == [100, 300, 300, 300], "nothing is seen after the cap"
assert cut.arrived.tolist() == [True, True, False, False], (
    "who arrived at the cap, or before it?")
assert np.isclose(stats.restricted_mean(cut, 300), stats.restricted_mean(some, 300)), (
    "the restricted mean to this cap must not change")
### BEGIN HIDDEN TESTS
far = with_cap(some, 900)
assert (far.time.tolist(), far.arrived.tolist()) == (
    some.time.tolist(), some.arrived.tolist()), "a cap that nobody reaches"
early = with_cap(stats.Times(np.array([200]), np.array([False])), 300)
assert early.time.tolist() == [200] and not early.arrived[0], (
    "a run that was censored earlier stays so")
assert some.time.tolist() == [100, 300, 500, 500], (
    "the times themselves must stay as they are")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (open).** In one arm two of four runs arrive at once, by episode 10, and two never; in the other all four arrive between 40 and 60. Choose times with equal restricted means (cap 100) and compute the log-rank p-value: of these runs, and with every run repeated ten-fold. Does the test tell the arms apart, and why?

# %% tags=["stub"]
extreme, steady, p_value, p_tenfold, why = None, None, None, None, ""

# %% nbgrader={"grade": false, "grade_id": "07-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
extreme, steady, p_value, p_tenfold, why = None, None, None, None, ""
### BEGIN SOLUTION
extreme = stats.Times(np.array([1, 1, 100, 100]), np.array([True, True, False, False]))
steady = stats.Times(np.array([50, 50, 51, 51]), np.array([True, True, True, True]))
p_value = stats.logrank(extreme, steady)
p_tenfold = stats.logrank(*(
    stats.Times(np.repeat(arm.time, 10), np.repeat(arm.arrived, 10))
    for arm in (extreme, steady)))
why = ("Not with four runs: the curves cross, the early lead of one arm and the late "
       "lead of the other have opposite signs in the sum over arrivals, and what is "
       "left is small against its spread. With forty runs the rest is large enough: "
       "crossing curves weaken the test, and do not blind it.")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-3-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert None not in (extreme, steady, p_value, p_tenfold), (
    "two `stats.Times` of four runs, and two numbers")
assert np.isclose(stats.restricted_mean(extreme, 100),
                  stats.restricted_mean(steady, 100)), (
    "the restricted means must be equal")
assert np.isclose(p_value, stats.logrank(extreme, steady), atol=0.01), (
    "the p-value of these two arms")
assert 0 <= p_tenfold < p_value, "more runs of the same kind give a smaller p"
### BEGIN HIDDEN TESTS
assert len(extreme.time) == len(steady.time) == 4, "four runs each"
tenfold = [stats.Times(np.repeat(arm.time, 10), np.repeat(arm.arrived, 10))
           for arm in (extreme, steady)]
assert np.isclose(p_tenfold, stats.logrank(*tenfold), atol=0.01), (
    "every run of both arms ten times")
assert sum(extreme.arrived) == 2 and max(extreme.time[extreme.arrived]) <= 10, (
    "two at once")
assert all(extreme.time[~extreme.arrived] == 100), "two never"
assert all(steady.arrived) and min(steady.time) >= 40 and max(steady.time) <= 60, (
    "all in the middle")
assert len(why.split()) >= 8, "a sentence on why"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (apply): the cost of a study.** Before a study is started, somebody should know whether it takes an hour or a week.
# Train a pilot: the arm `"running"` on two seeds of your own (3100 and 3101), five episodes each. It takes a few seconds.
# From its seconds per episode, forecast the hours of one core for `seeds` runs of every arm in `arms` up to the cap.
# Then look at what the recorded runs took, `runs.seconds.sum() / 3600`, and say in a sentence why the forecast misses it. (`runs.steps / runs.episodes` helps.)

# %% tags=["stub"]
pilot = None  # the frame that `study.run` returns, with its file in the folder `store`
forecast_hours, why_it_misses = None, ""

# %% nbgrader={"grade": false, "grade_id": "07-4", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
pilot = None  # the frame that `study.run` returns, with its file in the folder `store`
forecast_hours, why_it_misses = None, ""
### BEGIN SOLUTION
pilot = study.run({"running": replace(arms["running"], max_episodes=5)}, [3100, 3101],
                  f"{store}/exercise_07_4.jsonl", progress=False)
seconds_per_episode = pilot.seconds.sum() / pilot.episodes.sum()
forecast_hours = seconds_per_episode * max_episodes * seeds * len(arms) / 3600
why_it_misses = ("At first the lander crashes after some hundred steps; later it "
                 "hovers until the time limit, and episodes are many times longer.")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-4-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert pilot is not None, "the runs that `study.run` returns"
assert sorted(pilot.seed) == [3100, 3101], "two seeds of your own, 3100 and 3101"
assert (pilot.cap == 5).all(), "five episodes are enough for a pilot"
assert forecast_hours is not None and forecast_hours > 0, "a number of hours"
assert len(why_it_misses.split()) >= 8, "a sentence on why the forecast misses"
### BEGIN HIDDEN TESTS
assert set(pilot.arm) == {"running"}, "the arm `running`, by its name"
episodes_in_all = max_episodes * seeds * len(arms)
right_hours = pilot.seconds.sum() / pilot.episodes.sum() * episodes_in_all / 3600
assert np.isclose(forecast_hours, right_hours, rtol=0.01), (
    f"{episodes_in_all:,} episodes take {right_hours:.3g} hours at the pilot's pace")
### END HIDDEN TESTS

# %% [markdown]
# ## Summary
#
# **Answer.** Nothing here shows the filter ahead, and ten seeds could have shown only a large advantage.
# By training returns, as written, the adaptive stream was slower than the running Z-Score: none of its runs arrived.
# In the other comparisons the runs are too few to tell. By evaluation returns both K-Score arms had no arrivals where the Z-Scores had some, which the exact test does not separate from chance; by training returns, as released, no difference was found.
# The released files give the filter the longer of the two published curves, and the two settings behind the 750 and the 991 of Table 1 both filter.

# %% tags=["hide-input"]
Markdown("\n".join([
    f"- The released curves of Figure 5 have {published.episodes.iloc[1]} (Kalman) and "
    f"{published.episodes.iloc[0]} (mean and deviation) episodes.",
    f"- As written (but with z-scored advantages), n = {seeds}: the factor of the "
    "adaptive stream over the running Z-Score is "
    f"{planned.factor['as written', 'evaluation']:.2f} (log-rank p = "
    f"{planned['log-rank p']['as written', 'evaluation']:.2f}), by training returns "
    f"{planned.factor['as written', 'training']:.2f} (p = "
    f"{planned['log-rank p']['as written', 'training']:.3f}).",
    f"- As released, n = {seeds}: the factor of adaptive refit over the per-episode "
    f"Z-Score is {planned.factor['as released', 'evaluation']:.2f} (log-rank p = "
    f"{planned['log-rank p']['as released', 'evaluation']:.2f}), by training returns "
    f"{planned.factor['as released', 'training']:.2f} (p = "
    f"{planned['log-rank p']['as released', 'training']:.2f}).",
    "- By training returns, the smallest advantage that this design finds in four of "
    f"five studies: "
    f"{figures.least_factor(visible['training', 'running'])} times over the running "
    f"Z-Score, {figures.least_factor(visible['training', 'zscore'])} over the "
    "per-episode one.",
    f"- The two released settings, by training returns, n = {between.n}: factor "
    f"{between.factor:.2f}; both of them filter.",
    f"- By the evaluation criterion {runs.evaluation_arrived.sum()} of {len(runs)} "
    f"runs arrive, by the training criterion {runs.training_arrived.sum()}.",
]))

# %% [markdown]
# The verdicts are in [11 The replication report](11_replication_report.ipynb).
#
# **References.** Gymnasium's documentation of LunarLander, for the rewards and the differences between versions.
# Z. Xia and Q. Li, *K-Score*, Figure 5, and the released repository at commit `5667b45` and its history.

# %%
chapter.footer()
