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
# **Claim.** On LunarLander the runs of one method differ so much that single curves cannot rank methods, and a handful of seeds can say only which large differences there are. The released files themselves give the filter the longer curve, and the two settings behind the paper's 750 and 991 both filter.
#
# *For* readers who want to see a noisier task, and what few seeds can and cannot tell.
# *Know first:* chapter 05.
# *Runs in* under a minute from the recorded runs; about two hours on two cores from nothing.
# Previous: [06 GAE on CartPole](06_gae_cartpole.ipynb) · Next: [08 PPO on CartPole](08_ppo_cartpole.ipynb)

# %% [markdown]
# ## Question
#
# A lander is to set down softly between two flags.
# Its rewards are uneven and large: the way down to the pad pays 100 to 140, coming to rest 100 more, a crash costs 100, and fuel a little at every step.
# Here the paper reports faster and smoother learning with the Kalman filter than with mean and deviation (experiment E3, Figure 5).
#
# The plan names two pairs: the adaptive stream against the running Z-Score (as written) and adaptive refit against the per-episode Z-Score (as released).
# We would be wrong if the improvement factor of either, with its whole interval, lay above 1.1.
# With so few seeds an arm that needs a large effect; chapter 09 computes how large.
#
# After this chapter you can
#
# - tell apart two criteria of success, and say which one a published number uses;
# - read heavily censored curves without being misled by those that arrived;
# - say what the released LunarLander files do, and where they differ from the text.

# %% [markdown]
# ## Setup

# %%
import time

import numpy as np
import pandas as pd
from IPython.display import Markdown

from kscore import experiments, plots, provenance, results, stats, study, training

started = time.perf_counter()
plots.use_style()

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seeds: int = 10               # runs an arm [2, 10000]
first_seed: int = 1000        # the first of them; results use 1000 and up [0, inf]
max_episodes: int = 1500      # the cap: a run that gets here unsolved is censored [1, 100000]
learning_rate: float = 0.0005 # of Adam, in every arm; 0.0005 is the released one [1e-06, 1]
store: str = "data/runs"      # folder of the recorded runs; what it lacks is trained and appended
live_seeds: list[int] = [3000]  # seeds trained before your eyes; they enter no statistic [0, inf]
live_episodes: int = 60       # how long: a whole run would take minutes [1, 100000]

# %% [markdown]
# A run takes minutes here, because a policy that has learned not to crash hovers until the time limit.

# %%
numbers = range(first_seed, first_seed + seeds)
settings = {"max_episodes": max_episodes, "learning_rate": learning_rate}
arms = experiments.arms("LunarLander-v3", "actor_critic", experiments.LUNAR_ARMS, criterion="both", **settings)
files = experiments.released_lunar(**settings)

# %% [markdown]
# ## Notation
#
# | word | meaning | in code |
# |---|---|---|
# | evaluation criterion | mean of the last 25 *greedy* evaluation returns reaches 200: the paper's metric | `runs.evaluation` |
# | training criterion | mean of the last 25 *training* returns reaches 200: what the released LunarLander files stop on | `runs.training` |
# | lag | evaluation time minus training time of the same run | `runs.evaluation - runs.training` |
#
# The runs of this chapter go on until both criteria are met, so that both times come from the same runs.

# %% [markdown]
# ## The published numbers
#
# The paper used LunarLander-v2.
# Current gymnasium has v3, the same task with fixes to the state of the wind, to determinism and to the bounds of the observation; that is what we use.
# For Figure 5 the text gives no numbers; the released curve files (commit `5667b45`) have these lengths.

# %%
published = results.published("E3")
published

# %% [markdown]
# So in the released files the Kalman curve is the *longer* one.
# The two released LunarLander notebooks are related to Table 1 of the paper, which calls them PPO (chapter 09): their outputs read 750 and 991, but both make one update an episode without clipping, which is an actor-critic, and both filter.
# The 750 takes its centre from the filter and divides by the plain standard deviation of the episode; the 991 uses the adaptive filter.
# Both stop on training returns.
# Earlier versions of the same two files read 645 and 1203.
# Both settings are run here as they were.

# %%
pd.DataFrame({name: config.normalizer | {"criterion": config.criterion} for name, config in files.items()}).T.fillna("default")

# %% [markdown]
# ## The recorded study

# %%
runs = study.run(arms, numbers, f"{store}/lunarlander_actor_critic.jsonl")
runs_files = study.run(files, numbers, f"{store}/lunarlander_released.jsonl")
every = pd.concat([runs, runs_files])
assert len(every) == (len(arms) + len(files)) * seeds
Markdown(f"{len(every)} runs, {every.steps.sum() / 1e6:.0f} million environment steps, {every.seconds.sum() / 3600:.1f} hours of one core: "
         f"{(every.status == 'solved').sum()} solved, {(every.status == 'censored').sum()} censored, {(every.status == 'diverged').sum()} diverged.")

# %% [markdown]
# **Predict the plot.** Training episodes are played with dropout and sampled actions, evaluation without either. Which of the two should look better first?

# %%
fig, axes = plots.panels(1, 2, height=4.2, width=10.0, sharey=True)
for ax, criterion in zip(axes, ("evaluation", "training"), strict=True):
    plots.survival({arm: stats.survival(results.times(runs, arm, criterion)) for arm in arms}, ax, max_episodes)
    plots.label(ax, f"{criterion} returns (n = {seeds} an arm)", "training episodes", "share of runs on their way", legend="below")
plots.show(fig, "Kaplan-Meier curves with 95 % bands, to the paper's criterion (left) and to that of the released files (right), from the same runs.",
           "Two panels of survival curves for six arms on LunarLander, by evaluation and by training returns.")

# %%
met = runs[runs.evaluation_met & runs.training_met]
lag = met.evaluation - met.training
Markdown(f"Of {len(runs)} runs, {runs.training_met.sum()} met the training criterion and {runs.evaluation_met.sum()} the evaluation criterion. "
         + (f"In those that met both, the evaluation came later in {np.sum(lag > 0)} of {len(lag)}, by {np.median(lag):.0f} episodes in the median." if len(lag) else ""))

# %% [markdown]
# Whoever stops on the one and reports it as the other reports another number.
# Why the noisy training policy should pass before the greedy one is not tested here; a guess is that a greedy policy repeats a bad habit, such as hovering over the pad, exactly and every time.

# %%
fig, axes = plots.panels(2, 3, height=2.6, width=12.0, sharex=True, sharey=True)
for ax, arm in zip(axes.flat, arms, strict=True):
    plots.learning(results.curves(runs, arm, smooth=results.WINDOW), arm, ax)
    ax.axhline(200, color=plots.INK, linewidth=0.8, linestyle=":")
    plots.label(ax, f"{plots.METHODS[arm]['label']} (n = {seeds})", "training episodes" if ax in axes[-1] else "", "evaluation return" if ax in axes[:, 0] else "")
axes[0, 0].set_ylim(-600, 320)
plots.show(fig, "Evaluation returns, averaged over the last 25 as the criterion does: each run faint, the median and the middle half; dotted, the threshold. A run that has stopped goes on where it was.",
           "Six panels of noisy evaluation returns rising from below zero towards 200.")

# %% [markdown]
# ## The comparisons
#
# By the paper's criterion:

# %%
plots.table(results.summary(runs))

# %% [markdown]
# Each arm against the per-episode Z-Score, and both baselines as a picture:

# %%
as_written, as_released = results.against(runs, "running"), results.against(runs, "zscore")
plots.table(as_released)

# %%
fig, axes = plots.panels(1, 2, height=2.6, width=12.0, sharex=True)
for ax, table, title in zip(axes, (as_written, as_released), ("against running Z-Score", "against per-episode Z-Score"), strict=True):
    plots.forest(plots.factors(table), ax)
    plots.label(ax, f"{title} (n = {seeds})", "improvement factor over the Z-Score", "")
plots.show(fig, "Improvement factors with 95 % intervals, by the evaluation criterion; right of the dotted line an arm is faster than the Z-Score of its panel.",
           "Two forest plots for LunarLander; the intervals are wide.")

# %% [markdown]
# By the criterion of the released files, from the same runs:

# %%
plots.table(results.against(runs, "zscore", criterion="training"))

# %% [markdown]
# ## The released settings
#
# The two files, named after the numbers in their outputs, stopping on training returns.

# %%
between = results.compare(runs_files, "750", "991", "training")
plots.table(results.summary(runs_files, "training"))

# %%
table_1 = results.published("T1b").set_index("normalizer").episodes
Markdown(f"The factor of the first setting over the second is {between.factor:.2f} (log-rank p = {between.p:.2f}, n = {between.n}); published: {table_1['zscore'] / table_1['kscore']:.2f}. "
         "Both arms filter, so that this factor, whatever it is, does not compare a filter with a Z-Score.")

# %% [markdown]
# ## A live run
#
# A whole run takes minutes, so these stop early; watch the crashes get cheaper.

# %%
short = experiments.arms("LunarLander-v3", "actor_critic", ["zscore", "adaptive_refit"], **settings | {"max_episodes": live_episodes})
live = {(arm, seed): training.train(config, seed) for seed in live_seeds for arm, config in short.items()}
fig, ax = plots.panels(height=2.8)
plots.live(live, ax)
plots.label(ax, f"Live runs (n = {len(live_seeds)} an arm)", "training episodes", "evaluation return", legend=True)
plots.show(fig, f"The greedy evaluation return after each of the first {live_episodes} training episodes; dotted: the threshold.",
           "Evaluation returns of two short live runs on LunarLander, both still below zero most of the time.")

# %% [markdown]
# ## When it fails: only those that arrived
#
# Where many runs are censored, the mean of the others can rank methods upside down.

# %%
naive = pd.DataFrame({arm: {"arrived": int(results.times(runs, arm).met.sum()),
                            "mean of the arrived": runs[(runs.arm == arm) & runs.evaluation_met].evaluation.mean(),
                            "restricted mean": float(stats.restricted_mean(results.times(runs, arm), max_episodes))} for arm in arms}).T
naive.rename(index={arm: look["label"] for arm, look in plots.METHODS.items()}).round(0)

# %% [markdown]
# ## What this does not show
#
# - So few seeds an arm find large differences only. An interval from 0.8 to 1.3 rules out a doubling, not an improvement of a tenth.
# - Where nearly all runs of two arms are censored, both restricted means are close to the cap and the factor is close to 1, whatever would have happened later. It is a statement about the first 1,500 episodes and not about the methods.
# - The cap of 1,500 episodes is ours; the released files allow 3,000. Runs that would have arrived later are censored.
# - In all arms the advantages are z-scored afterwards, as released. The text does not mention that step; without it the arms may differ more.
# - The simple streamed filter, Algorithm 1 with a fixed $R$, is not among the arms of this task.

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** A run met the training criterion at 400, the evaluation criterion at 620, with a cap of 1,500. Give its two censored times as `stats.Times` of one run each, (training, evaluation), for a study with a cap of 500.

# %% nbgrader={"grade": false, "grade_id": "07-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution"]
capped = None
### BEGIN SOLUTION
capped = stats.Times(np.array([400]), np.array([True])), stats.Times(np.array([500]), np.array([False]))
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check"]
assert capped is not None, "two `stats.Times` of one run each"
assert all(len(times.time) == 1 and times.time[0] <= 500 for times in capped), "with a cap of 500, nothing is seen after 500 episodes"
### BEGIN HIDDEN TESTS
assert (capped[0].time[0], capped[0].met[0]) == (400, True), "the training criterion was met before the cap"
assert (capped[1].time[0], capped[1].met[0]) == (500, False), "the evaluation criterion was not: censored at the cap"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** Write a function that gives the times of a study as if its cap had been smaller.

# %% nbgrader={"grade": false, "grade_id": "07-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution"]
def with_cap(times: stats.Times, cap: int) -> stats.Times:
    """Return the times that would have been seen if every run had been stopped at the cap."""
    ### BEGIN SOLUTION
    return stats.Times(np.minimum(times.time, cap), times.met & (times.time <= cap))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "07-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check"]
some = stats.Times(np.array([100, 300, 500, 500]), np.array([True, True, True, False]))
assert with_cap(some, 300) is not None
assert with_cap(some, 300).time.tolist() == [100, 300, 300, 300] and with_cap(some, 300).met.tolist() == [True, True, False, False]
assert np.isclose(stats.restricted_mean(with_cap(some, 300), 300), stats.restricted_mean(some, 300))
### BEGIN HIDDEN TESTS
assert with_cap(some, 900).time.tolist() == some.time.tolist() and with_cap(some, 900).met.tolist() == some.met.tolist(), "a cap that nobody reaches"
early = stats.Times(np.array([200]), np.array([False]))
assert with_cap(early, 300).time.tolist() == [200] and not with_cap(early, 300).met[0], "a run that was censored earlier stays so"
assert some.time.tolist() == [100, 300, 500, 500], "the times themselves must stay as they are"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (open).** Two arms have the same restricted mean, but in the first half of the runs arrive at once and the other half never, while in the second all arrive in the middle. Make two such arms of four runs with a cap of 100, and compute the log-rank p-value. Does the test see a difference that the restricted mean does not?

# %% nbgrader={"grade": false, "grade_id": "07-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution"]
extreme, steady = None, None
### BEGIN SOLUTION
extreme = stats.Times(np.array([1, 1, 100, 100]), np.array([True, True, False, False]))
steady = stats.Times(np.array([50, 50, 51, 51]), np.array([True, True, True, True]))
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-3-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check"]
assert extreme is not None and np.isclose(stats.restricted_mean(extreme, 100), stats.restricted_mean(steady, 100))
assert stats.median(extreme) != stats.median(steady)
### BEGIN HIDDEN TESTS
assert len(extreme.time) == len(steady.time) == 4, "four runs each"
assert sum(extreme.met) == 2 and all(steady.met), "half of the first arm never arrive, and all of the second do"
### END HIDDEN TESTS

# %% [markdown]
# ## Summary

# %%
Markdown(f"""
- The released curves of Figure 5 have {published.episodes.iloc[1]} (Kalman) and {published.episodes.iloc[0]} (mean and deviation) episodes.
- As written, n = {seeds}: the factor of the adaptive stream over the running Z-Score is {as_written.factor["adaptive"]:.2f}.
- As released, n = {seeds}: the factor of adaptive refit over the per-episode Z-Score is {as_released.factor["adaptive_refit"]:.2f}.
- The two released settings, by training returns, n = {between.n}: factor {between.factor:.2f}; both of them filter.
- The evaluation criterion is met by {runs.evaluation_met.sum()} of {len(runs)} runs, the training criterion by {runs.training_met.sum()}.
""")

# %% [markdown]
# The verdicts are in [11 The replication report](11_replication_report.ipynb).
#
# **References.** Gymnasium's documentation of LunarLander, for the rewards and the differences between versions.
# Z. Xia and Q. Li, *K-Score*, Figure 5, and the released repository at commit `5667b45` and its history.

# %%
provenance.footer(started, seeds=seeds, first_seed=first_seed, max_episodes=max_episodes, learning_rate=learning_rate, store=store, live_seeds=live_seeds, live_episodes=live_episodes)
