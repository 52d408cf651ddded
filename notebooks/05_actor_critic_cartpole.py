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
# # 05 Actor-critic on CartPole
#
# **Claim.** The paper's first experiment says that a Kalman filter brings an actor-critic to its goal two to three times as fast as Z-Scores do. Over many seeds it does not: the filter with a fixed noise, as Algorithm 1 has it, is several times *slower* than a running Z-Score, and the filter as the released code has it cannot be told from the per-episode Z-Score beside it.
#
# *For* readers who want to see a claim about learning speed checked properly.
# *Know first:* chapters 03 and 04 (what the scores are and how they become gradients); what a mean and a p-value are.
# *Runs in* under a minute from the recorded runs; about half an hour on two cores from nothing.
# Previous: [04 From the policy gradient to Algorithm 1](04_policy_gradients.ipynb) · Next: [06 GAE on CartPole](06_gae_cartpole.ipynb)

# %% [markdown]
# ## Question
#
# Two agents learn to balance a pole.
# They differ in one line: what a return is held against before it becomes a gradient.
# Which one arrives first?
# The paper answers with one run of each (its experiment E1, Figures 1 and 2).
# We answer with many, on the same seeds in every arm, by a plan that was written before the first of them ran (`data/PLAN.md`).
#
# The plan names two pairs: the simple stream against the running Z-Score (as the text has it), and adaptive refit against the per-episode Z-Score (as the released file has it).
# We would be wrong if the improvement factor of either pair, with its whole interval, lay above 1.1.
#
# After this chapter you can
#
# - say what a *censored* time is and why it must not be dropped;
# - draw a Kaplan-Meier curve by hand and read a restricted mean from it;
# - tell an effect of a method from an effect of a seed;
# - rerun the whole experiment with other settings in one command.

# %% [markdown]
# ## Setup

# %%
import numpy as np
import pandas as pd
from IPython.display import Markdown

from kscore import analysis, chapters, figures, study
from kscore.analysis import stats
from kscore.rl import train
from kscore.study import plan

chapter = chapters.begin("05_actor_critic_cartpole")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seeds: int = 50               # runs an arm [2, 10000]
first_seed: int = 1000        # the first of them; results use 1000 and up [0, 1000000000]
max_episodes: int = 500       # the cap: a run that gets here without arriving is censored [1, 100000]
learning_rate: float = 0.01   # of Adam, in every arm; 0.01 is the released one [1e-06, 1]
store: str = "build/runs"     # folder of your own: what the archive of recorded runs lacks is trained into it
archive: bool = True          # whether the archive is read first; without it every run is trained
live_seeds: list[int] = [3000]  # seeds trained before your eyes; they enter no statistic [0, 1000000000], 1 to 5 different

# %% [markdown]
# With the values above everything is read from the archive of recorded runs and only the live runs are trained.
# Change a value and the same cells train what is missing, into a store of your own: `papermill notebooks/05_actor_critic_cartpole.ipynb out.ipynb -k python3 -p learning_rate 0.003 -p seeds 10` asks whether the answer hangs on the step size.

# %%
size = {"seeds": seeds, "first_seed": first_seed}
settings = {"max_episodes": max_episodes, "learning_rate": learning_rate}
written = plan.part("cartpole_actor_critic", **size, **settings)
released = plan.part("cartpole_reinforce", **size, **settings)

# %% [markdown]
# ## Notation
#
# | word | meaning | in code |
# |---|---|---|
# | arm | one way to normalize, all else equal | a name and a `RunConfig` |
# | run | one arm, one seed | a row of `runs` |
# | time | training episodes until the mean of the last 25 evaluation returns reaches 475 | `runs.evaluation` |
# | censored | the cap came first: the time is only known to be longer | `~runs.evaluation_arrived` |
# | $S(t)$ | share of runs still on their way after episode $t$ | `stats.survival` |
# | restricted mean | mean number of episodes up to the cap, $\int_0^{\mathrm{cap}} S(t)\,dt$ | `stats.restricted_mean` |
# | factor | restricted mean of the Z-Score over that of the other arm; above 1 the other is faster | `stats.improvement` |
# | [low, high] | 95 % bootstrap interval: where the number falls when seeds are drawn again (by hand in chapter 08) | `stats.bootstrap` |
# | log-rank p | how often chance alone would separate two equal arms as much (by hand in chapter 06); *adjusted* for the rows of its table (chapter 08) | `stats.logrank` |
# | probability faster | share of seeds on which an arm arrives before the Z-Score on the same seed | `stats.probability_faster` |
# | mean evaluation return | over all episodes up to the cap | `stats.area` |
# | stability | variance of a run's last 25 evaluation returns; *steadier* is the share of seeds on which it is the lower one | `stats.stability` |

# %% [markdown]
# ## The published number
#
# The paper shows two training curves and gives two numbers in its text.
# The figures in the released repository (commit `5667b45`) stop at other numbers; both are listed.

# %%
published = analysis.published("E1")
published

# %%
ratios = published.groupby("source", sort=False).episodes.agg(lambda pair: pair.iloc[0] / pair.iloc[1])
Markdown("So the published improvement is " + " and ".join(f"{ratio:.1f} times ({source})" for source, ratio in ratios.items())
         + ", each from one run an arm.")

# %% [markdown]
# ## Two experiments under one name
#
# The text and the released file describe different learners, and the difference is in the line that this chapter is about.
#
# - *As written:* the advantage is $A_t = \hat G_t - V(s_t)$, a critic's value subtracted from the score; the filter is carried on from episode to episode, and each return is scored by the belief that has just seen it (`stream`); the Z-Score uses running estimates (`running`).
# - *As released:* the score alone weighs the log-probabilities, and a critic is trained aside without influence on the policy. That is REINFORCE. A new filter is made for every episode and its final belief scores the whole episode (`refit`, here in its adaptive variant); the Z-Score is that of the single episode (`zscore`).
#
# Both are facts about files, and both are reasonable things to try.
# So both are run, with all the other normalizers beside them.
# Every other setting is the released one, with three exceptions: we ask for a full window of 25 evaluations, where the released rule also passes on fewer; the critic aside, which changes nothing, is left out; and a standard deviation divides by $n$, so that an episode of one step has one.
#
# The arms are the same for both learners:

# %%
assert all(written.configs[arm].normalizer == released.configs[arm].normalizer for arm in written.configs)
pd.DataFrame({arm: {"shown as": figures.METHODS[arm]["label"], "options": ", ".join(f"{key} = {value}" for key, value in config.normalizer.items() if key not in ("name", "eps"))}
              for arm, config in written.configs.items()}).T.rename_axis("arm")

# %% [markdown]
# ## The recorded study
#
# One call reads the runs of an experiment from the archive, trains what is missing, and returns a table with one row per run.

# %%
runs = study.runs(written, store, archive=archive)
runs_released = study.runs(released, store, archive=archive)
both = pd.concat([runs, runs_released])
assert len(runs) == written.runs and len(runs_released) == released.runs
runs[["arm", "seed", "status", "episodes", "steps", "seconds"]].groupby("arm", sort=False).head(1).set_index("arm")

# %%
Markdown(f"{figures.run_count(both)}. The table shows the first run of each arm as written.")

# %% [markdown]
# ## A time that was never seen
#
# Some runs do not arrive within the cap.
# What is their time?
# Dropping them keeps only the lucky ones; counting them as the cap pretends that they arrived there.
# A *censored* time says what is known: longer than this.
#
# The Kaplan-Meier curve uses exactly that.
# At each episode $t_i$ at which some run arrives, $d_i$ of the $n_i$ runs still on their way arrive, so
#
# $$S(t) = \prod_{t_i \le t}\Big(1 - \frac{d_i}{n_i}\Big).$$
#
# Here it is in a few lines, for the streamed K-Score, and beside it the library's.

# %%
slow = analysis.times(runs, "kscore")
share, by_hand = 1.0, {}
for t in np.unique(slow.time):
    on_their_way = np.sum(slow.time >= t)
    arriving = np.sum((slow.time == t) & slow.arrived)
    share *= 1 - arriving / on_their_way
    by_hand[t] = share

curve = stats.survival(slow)
assert np.allclose(list(by_hand.values()), curve.share[1:]) and curve.share[0] == 1

# %% [markdown]
# The *restricted mean* is the area under that curve up to the cap.
# When every censored run was watched to the same cap, as here, it is the mean of min(time, cap): the episodes spent *up to the cap*.
# The arithmetic is that of counting a censored run as its cap; what it is called is not.
# It does not claim to be the mean time, which nobody knows, and it says up to where it looks.

# %%
mean_to_cap = float(stats.restricted_mean(slow, max_episodes))
assert np.isclose(mean_to_cap, np.minimum(slow.time, max_episodes).mean())
only_the_lucky = slow.time[slow.arrived].mean() if slow.arrived.any() else np.nan
Markdown(f"The streamed K-Score: {slow.arrived.sum()} of {seeds} runs arrived. Restricted mean {mean_to_cap:.0f} episodes; "
         f"the mean of those that arrived, {only_the_lucky:.0f}, would flatter it.")

# %% [markdown]
# ## The curves
#
# **Predict the plot.** Chapter 03 found that on long episodes the streamed score praises only the beginning, while the refitted one praises nearly all of it. Which of the two should be close to the Z-Score? Where would a curve end that never comes down to zero?

# %%
shown = {"as written: actor-critic": (runs, ["none", "zscore", "running", "kscore", "adaptive"]),
         "as released: REINFORCE": (runs_released, ["none", "zscore", "running", "refit", "adaptive_refit"])}
fig = figures.survival_panels([{title: analysis.survivals(*pair) for title, pair in shown.items()}], max_episodes)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Kaplan-Meier curves with 95 % bands: the share of runs that have not yet "
    "reached the threshold. Lower and further left is faster.",
    alt="Two panels of falling step curves. Left, as written: the streamed K-Score "
    "stays far above the others. Right, as released: the arm without "
    "normalization stays highest, the per-episode Z-Score and both refitted "
    "filters cross each other, the running Z-Score falls first.")

# %% [markdown]
# Left, the text's own pairing: the streamed K-Score with a fixed noise is the slowest curve by far, and it ends high above zero: those runs did not arrive within the cap.
# Its adaptive form keeps up with the Z-Scores.
# Right, the released pairing: the curves of the per-episode Z-Score and of both refitted filters cross each other, and the *running* Z-Score is ahead of all three.
#
# The runs behind the curves look like this.

# %%
picked = ["zscore", "running", "kscore", "adaptive_refit"]
fig = figures.learning_panels([(figures.METHODS[arm]["label"], arm, analysis.curves(runs, arm)) for arm in picked])
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Evaluation returns of the actor-critic, averaged over the last 25 as the "
    "criterion does: each run faint, the median and the middle half. A run that "
    "has stopped goes on where it was: the plateau just above the threshold is "
    "carried on, not observed.",
    alt="Four panels of evaluation return against episodes. Three rise steeply to a "
    "plateau; the streamed K-Score rises slowly and spreads widely.")

# %% [markdown]
# ## The comparison, as written
#
# Every arm against the text's baseline, the running Z-Score.
# The factor is the paper's "improvement"; its interval comes from drawing whole seeds again and again, so that pairs stay together.
# The log-rank test asks whether two arms arrive at the same rate at every time; its p-values are adjusted over the rows of the table.

# %%
figures.table(analysis.summary(runs))

# %% [markdown]
# That is what each arm did; now each against the running Z-Score.

# %%
as_written = analysis.against(runs, "running")
figures.table(as_written)

# %% [markdown]
# ## The comparison, as released
#
# The same for REINFORCE, against the per-episode Z-Score of the released file.

# %%
figures.table(analysis.summary(runs_released))

# %%
as_released = analysis.against(runs_released, "zscore")
figures.table(as_released)

# %% [markdown]
# The same factors as a picture.

# %%
fig = figures.forest_panels({"as written, against running": as_written, "as released, against per-episode": as_released})
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Improvement factors with 95 % intervals; right of the dotted line an arm is "
    "faster than the Z-Score of its panel.",
    alt="Two forest plots. As written, the streamed and innovation K-Scores lie far "
    "left of 1. As released, the refitted K-Scores lie near 1, the running "
    "Z-Score and the adaptive stream right of it.")

# %%
outside_plan = analysis.compare(runs_released, "adaptive", "running")
steadiness = pd.concat([as_written["probability steadier"], as_released["probability steadier"]])
apart = sum(interval.low > 0.5 or interval.high < 0.5 for interval in steadiness)
Markdown(f"""
- The streamed filter with a fixed noise loses clearly on both sides, and so does its innovation form, which has another scale and the same short memory.
- The refitted filters cannot be told from the per-episode Z-Score on the right.
- One pair outside the plan does lie above 1.1: the adaptive stream over the *per-episode* Z-Score, {as_released.factor["adaptive"]:.2f}. A plain running Z-Score does as much, {as_released.factor["running"]:.2f}; between the two the factor is {outside_plan.factor:.2f}.
- Of {len(steadiness)} comparisons of steadiness, {apart} have an interval that does not contain one half.
""")

# %% [markdown]
# What makes some of these arms fast and others slow is a question for [11 The replication report](11_replication_report.ipynb).

# %% [markdown]
# ## The published counts among our runs
#
# A published number of episodes is one run.
# Could it be one of ours?
# With $r$ of our $n$ runs at most as long and $s$ at least as long, its position is $p = 2\,(1 + \min(r, s))/(n + 1)$: small if it lies in the outer tails.

# %%
counts = published.assign(**{"as written": published.normalizer.map({"zscore": "running", "kscore": "kscore"}), "as released": published.normalizer.map({"zscore": "zscore", "kscore": "adaptive_refit"})})
for title, frame in (("as written", runs), ("as released", runs_released)):
    counts[title] = [f"position p = {stats.position(number, analysis.times(frame, arm)):.2f}, our fastest {analysis.times(frame, arm).time.min()}"
                     for number, arm in zip(counts.episodes, counts[title], strict=True)]
counts[["source", "normalizer", "episodes", "as written", "as released"]]

# %% [markdown]
# By our rule no run can stop before its 25th evaluation; the released rule can.

# %% [markdown]
# ## A live run
#
# Nothing above was trained while you waited.
# This is: the two arms of the text, on a seed that is part of no statistic.

# %%
live = {(arm, seed): train(written.configs[arm], seed) for seed in live_seeds for arm in ("running", "kscore")}
fig = figures.live_panel(live)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "The greedy evaluation return after every training episode, until the mean "
    "of the last 25 reaches the dotted threshold or the cap comes.",
    alt="Evaluation returns of one live run of the running Z-Score and one of the "
    "streamed K-Score against training episodes.")

# %%
won = np.sum(analysis.times(runs, "kscore").time < analysis.times(runs, "running").time)
Markdown("".join(f"- {figures.METHODS[arm]['label']}, seed {seed}: {figures.ended(record)}, {record['seconds']:.0f} s.\n"
                 for (arm, seed), record in live.items())
         + f"- On the {seeds} recorded seeds the streamed K-Score was the faster of the two on {won}.")

# %% [markdown]
# If the live seed says the opposite of the recorded ones, nothing is wrong: that is what a single run is, and why it was taken unseen.
# To be sure, we train one of the recorded runs again; it is the same to the last digit on the machine that recorded it.

# %%
again = train(written.configs["kscore"], first_seed)
recorded = runs.query("arm == 'kscore' and seed == @first_seed").iloc[0]
Markdown(f"Seed {first_seed}, trained again: {again['episodes']} episodes, recorded {recorded.episodes}; "
         + ("every evaluation return is the same." if np.array_equal(again["eval_returns"], recorded.eval_returns) else "some returns differ: another processor or library rounds differently."))

# %% [markdown]
# ## When it fails: one run each
#
# The paper compared one run with one run, both from the same seed.
# What would we have concluded?
# Each of our seeds gives such a pair for the two arms of the release.
# Beside it, what two *different* runs of the Z-Score give, one called the new method: a factor of a method over itself.
# (A censored run enters as the cap.)

# %%
rng = np.random.default_rng(0)
zscore, kalman = analysis.times(runs_released, "zscore").time, analysis.times(runs_released, "adaptive_refit").time
first = rng.integers(seeds, size=20_000)
second = (first + rng.integers(1, seeds, size=20_000)) % seeds  # another run than the first
pairs = {"Z-Score over adaptive refit, same seed": zscore / kalman, "Z-Score over itself, two seeds": zscore[first] / zscore[second]}
claimed = ratios.max()
single = pd.DataFrame({name: {"2.5 % of pairs below": np.quantile(factors, 0.025), "median": np.median(factors), "2.5 % of pairs above": np.quantile(factors, 0.975),
                              f"share at {claimed:.1f} or more": np.mean(factors >= claimed)} for name, factors in pairs.items()}).T
single.round(2)

# %%
Markdown(f"The two rows are close to each other, and both are wide. The published factor of {claimed:.1f} or more turns up in {single.iloc[0, -1]:.0%} of the pairs of single runs, "
         f"and in {single.iloc[1, -1]:.0%} of those in which both runs are *the same method*. One pair says little about the method and much about the seeds.")

# %% [markdown]
# ## What this does not show
#
# - The released settings of the filter were used. Chapter 10 tunes $Q$ and $R$; another setting may do better than these.
# - CartPole has a reward of 1 a step, so that its returns fall in a fixed pattern; chapters 07 and 09 look at a task where they do not.
# - A learning rate that suits the Z-Score may not suit a score of another scale (chapter 03): `learning_rate` is a parameter of this chapter for that reason.
# - An interval that contains 1 is no proof of equality. It says how large a difference could still hide.
# - Stability is the variance of the last 25 evaluation returns before a run stopped; runs that arrive stop in a good moment by construction.

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** Five runs: three arrive, at 20, 30 and 30 episodes; one is censored at 25, one at 50. Write the Kaplan-Meier shares after the episodes 20, 25, 30 and 50.

# %% tags=["stub"]
shares = [None, None, None, None]

# %% nbgrader={"grade": false, "grade_id": "05-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
shares = [None, None, None, None]
### BEGIN SOLUTION
shares = [4 / 5, 4 / 5, 4 / 5 * (1 - 2 / 3), 4 / 5 * (1 - 2 / 3)]
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "05-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
five = stats.Times(np.array([20, 25, 30, 30, 50]), np.array([True, False, True, True, False]))
assert None not in shares, "four numbers, please"
assert np.allclose(shares, stats.survival(five).share[1:]), "how many are still on their way when two arrive at 30?"
### BEGIN HIDDEN TESTS
assert np.allclose(shares, [0.8, 0.8, 4 / 15, 4 / 15]), "at 30, two of the three that are still watched arrive"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** Write the restricted mean as a sum of rectangles under a `Survival` curve, up to a cap that may lie before its last step.

# %% tags=["stub"]
def area_under(curve: stats.Survival, cap: float) -> float:
    """Return the area under the step curve between 0 and the cap."""


# %% nbgrader={"grade": false, "grade_id": "05-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def area_under(curve: stats.Survival, cap: float) -> float:
    """Return the area under the step curve between 0 and the cap."""
    ### BEGIN SOLUTION
    edges = np.append(np.minimum(curve.episode, cap), cap)
    return float(np.diff(edges) @ curve.share)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "05-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
watched = stats.Times(np.array([20, 25, 30, 30, 50]), np.array([True, False, True, True, False]))
assert area_under(stats.survival(watched), 50) is not None, "return a number"
for cap in (22, 30, 45, 50):
    assert np.isclose(area_under(stats.survival(watched), cap), stats.restricted_mean(watched, cap)), f"cap = {cap}"
### BEGIN HIDDEN TESTS
assert np.isclose(area_under(stats.survival(watched), 10), 10), "a cap before the first arrival"
assert np.isclose(area_under(stats.survival(watched), 80), stats.restricted_mean(watched, 80)), "a cap after the last one: the curve goes on"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (think).** A careless analysis drops the runs that did not arrive and compares the means of the others. Write the improvement factor that it would report for one arm over another. What does it report for the streamed K-Score over the running Z-Score?

# %% tags=["stub"]
def careless_factor(a: stats.Times, b: stats.Times) -> float:
    """Return the mean time of b over that of a, of the runs that arrived."""


# %% nbgrader={"grade": false, "grade_id": "05-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def careless_factor(a: stats.Times, b: stats.Times) -> float:
    """Return the mean time of b over that of a, of the runs that arrived."""
    ### BEGIN SOLUTION
    return float(b.time[b.arrived].mean() / a.time[a.arrived].mean())
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "05-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
half = stats.Times(np.array([10, 30, 500, 500]), np.array([True, True, False, False]))
all_of_them = stats.Times(np.array([40, 40, 40, 40]), np.array([True, True, True, True]))
assert careless_factor(half, all_of_them) is not None, "return a number"
assert np.isclose(careless_factor(half, all_of_them), 2.0), "only runs that arrived count for the careless"
assert stats.improvement(half, all_of_them, 500) < 0.2, "the restricted mean is not so easily fooled"
### BEGIN HIDDEN TESTS
assert np.isclose(careless_factor(all_of_them, half), 0.5), "the other way round"
assert np.isclose(careless_factor(all_of_them, all_of_them), 1.0), "an arm over itself"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** Choose a setting that you believe would make the streamed K-Score faster: another `Q`, `R`, `learning_rate`. Train it on five seeds of your own, and compare its times with the recorded ones. What would convince you, and what would convince somebody who believes the opposite? (`dataclasses.replace(written["kscore"], normalizer={...})` makes a variant.)

# %% tags=["stub"]
mine = None

# %% nbgrader={"grade": false, "grade_id": "05-4", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
mine = None
### BEGIN SOLUTION
variant = plan.kalman_grid("actor_critic", "stream", [1e-4], [1.0], **settings)
mine = study.run(variant, range(3100, 3105), "build/mine.jsonl", progress=False)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "05-4-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert mine is not None and len(mine) == 5, "five runs, from `study.run` with a store of your own"
assert not set(mine.seed) & set(written.seeds), "seeds of your own: 3100 and up"
### BEGIN HIDDEN TESTS
assert mine.arm.nunique() == 1 and mine.seed.nunique() == 5, "one setting, five different seeds"
assert (mine.cap == max_episodes).all(), "the same cap as the recorded runs, or their times cannot be compared"
### END HIDDEN TESTS

# %% [markdown]
# ## Summary

# %%
text_claim, adaptive_claim, released_claim = as_written.factor["kscore"], as_written.factor["adaptive"], as_released.factor["adaptive_refit"]
itself = np.quantile(pairs["Z-Score over itself, two seeds"], [0.025, 0.975])
Markdown(f"""
- Published, from one run an arm: an improvement of {" or ".join(f"{ratio:.1f}" for ratio in ratios)} times.
- As written, n = {seeds}: the streamed K-Score's factor over the running Z-Score is {text_claim:.2f}; in its adaptive variant {adaptive_claim:.2f}.
- As released, n = {seeds}: the factor of adaptive refit over the per-episode Z-Score is {released_claim:.2f} (log-rank p = {as_released["log-rank p"]["adaptive_refit"]:.2f}, not adjusted).
- Two single runs of the *same* method differ by a factor between {itself[0]:.2f} and {itself[1]:.2f} in 95 % of the pairs.
""")

# %% [markdown]
# The verdicts on the paper's sentences, by rules fixed beforehand and with the p-values adjusted over all of them, are in [11 The replication report](11_replication_report.ipynb).
#
# **References.** E. L. Kaplan and P. Meier, *Nonparametric estimation from incomplete observations*, JASA 53 (1958).
# P. Royston and M. K. B. Parmar, *Restricted mean survival time*, BMC Medical Research Methodology 13 (2013).
# P. Henderson and co-authors, *Deep reinforcement learning that matters*, AAAI (2018).
# Z. Xia and Q. Li, *K-Score*, Figures 1 and 2, and the released repository at commit `5667b45`.

# %%
chapter.footer()
