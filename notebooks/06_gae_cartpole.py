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
# # 06 GAE on CartPole
#
# **Claim.** In the released GAE experiment the normalizer never touches the advantages: it changes only what the critic learns, and any effect has to come through that. A critic of small targets changes nothing, one of large targets can turn praise into blame, and over many seeds the arms divide along that line. The pair that the paper compares lies on the same side of it, and cannot be told apart.
#
# *For* readers of chapter 05 who want the same question asked of another learner, and a test of differences.
# *Know first:* chapter 05 (censored times), chapter 04 (advantages).
# *Runs in* under a minute from the recorded runs; about half an hour on two cores from nothing.
# Previous: [05 Actor-critic on CartPole](05_actor_critic_cartpole.ipynb) · Next: [07 Actor-critic on LunarLander](07_actor_critic_lunarlander.ipynb)

# %% [markdown]
# ## Question
#
# Generalized advantage estimation mixes what was observed with what a critic expects.
# A normalizer of *returns* can then act in two places: on the critic's target, or on the advantages themselves.
# The paper reports faster and steadier learning with a Kalman filter (its experiment E2, Figures 3 and 4).
# Is it so, and through which of the two doors?
#
# The plan names two pairs: adaptive refit against the per-episode Z-Score as released, and the simple stream against the running Z-Score where the advantages themselves are normalized.
# We would be wrong if the improvement factor of either pair, with its whole interval, lay above 1.1.
#
# After this chapter you can
#
# - say where a normalizer enters GAE as released, and where it would have to enter to act on the policy;
# - compute a log-rank test by hand and say what it asks;
# - show that a critic of the wrong scale can turn praise into blame.

# %% [markdown]
# ## Setup

# %%
import numpy as np
import pandas as pd
from IPython.display import Markdown
from scipy.stats import chi2

from kscore import analysis, chapters, figures, normalizers, study
from kscore.analysis import stats
from kscore.rl import algorithms, train
from kscore.study import plan

chapter = chapters.begin("06_gae_cartpole")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seeds: int = 50               # runs an arm [2, 10000]
first_seed: int = 1000        # the first of them; results use 1000 and up [0, 1000000000]
max_episodes: int = 500       # the cap: a run that gets here without arriving is censored [1, 100000]
lam: float = 0.99             # λ of GAE, in every arm; 0.99 is the released one, 1 is Monte Carlo [0.5, 1]
store: str = "build/runs"     # folder of your own: what the archive of recorded runs lacks is trained into it
archive: bool = True          # whether the archive is read first; without it every run is trained
live_seeds: list[int] = [3000]  # seeds trained before your eyes; they enter no statistic [0, 1000000000], 1 to 5 different

# %% [markdown]
# The chapter varies where the normalizer acts.
# `lam` is a parameter because it decides how much of an advantage is the critic's opinion: the smaller it is, the more a change of the critic's target matters.

# %%
size = {"seeds": seeds, "first_seed": first_seed}
settings = {"max_episodes": max_episodes, "lam": lam}
released = plan.part("cartpole_gae", **size, **settings)
switched = plan.part("cartpole_gae_switched", **size, **settings)
consistent = plan.part("cartpole_gae_advantages", **size, **settings)

# %% [markdown]
# ## Notation
#
# | word | meaning | in code |
# |---|---|---|
# | $\delta_t$ | $r_t + \gamma V(s_{t+1}) - V(s_t)$, the surprise of one step | in `algorithms.gae_advantages` |
# | $A_t$ | $\delta_t + \gamma\lambda A_{t+1}$, the advantage | `algorithms.gae_advantages` |
# | as released | scores train the critic; advantages come from raw rewards and are z-scored | `cartpole_gae` |
# | switched | the same without the z-scoring of advantages | `cartpole_gae_switched` |
# | consistent | the advantages go through the normalizer, the critic learns raw returns | `cartpole_gae_advantages` |

# %% [markdown]
# ## The published number
#
# The text gives no numbers for this experiment.
# The figures in the released repository (commit `5667b45`) stop at these episodes.

# %%
published = analysis.published("E2")
published

# %% [markdown]
# ## Through which door?
#
# As released, an episode is used like this: the returns are normalized and become the critic's target; the advantages are computed from the *raw* rewards and from values that the critic learned from *normalized* returns; then the advantages are z-scored.
# The two ingredients of $\delta_t$ are in different units.
# What does that do?
#
# Suppose that the critic has learned its targets perfectly, and that they are an affine map of the returns, $V(s_t) = a + b\,G_t$, as every per-episode normalizer gives.
# Put this into $\delta_t$ and use $G_t = r_t + \gamma G_{t+1}$:
#
# $$\delta_t = r_t + \gamma\,(a + b\,G_{t+1}) - (a + b\,G_t) = (1 - b)\,r_t - (1 - \gamma)\,a .$$
#
# CartPole pays $r_t = 1$ at every step, so that every $\delta_t$ is the same number $c = (1 - b) - (1 - \gamma)\,a$; only the last one is $c - \gamma a$, because the value after the end is taken as 0 and not as $a$, the score of a return of 0.
# Sum them up with the weights $(\gamma\lambda)^k$ over the $n = T - t$ steps that are left:
#
# $$A_t = \frac{c}{1 - \gamma\lambda} - D\,(\gamma\lambda)^n, \qquad D = \frac{c}{1 - \gamma\lambda} + \frac{a}{\lambda} .$$
#
# Whatever the normalizer, the advantages are a constant minus $D$ times one and the same shape.
# Z-scoring takes the constant away, and of $D$ it leaves the *sign*.

# %%
gamma, rewards = released.configs["zscore"].gamma, [1.0] * 200
returns = algorithms.discounted_returns(rewards, gamma)
zscore = normalizers.make("zscore")


def released_advantages(values: np.ndarray) -> np.ndarray:
    """Return the z-scored GAE advantages of raw rewards and the given values."""
    return zscore(algorithms.gae_advantages(rewards, values, gamma, lam))


def direction(a: float, b: float) -> float:
    """Return D for a perfect critic of scores a + b G."""
    return ((1 - b) - (1 - gamma) * a) / (1 - gamma * lam) + a / lam


# %%
whole = ("zscore", "refit", "adaptive_refit")
critics = {arm: normalizers.make(**config.normalizer)(returns) for arm, config in released.configs.items() if arm != "none"}
shape = zscore(-(gamma * lam) ** np.arange(len(rewards), 0, -1.0))
for arm in whole:
    b, a = np.polyfit(returns, critics[arm], 1)
    assert np.allclose(released_advantages(critics[arm]), np.sign(direction(a, b)) * shape, atol=1e-6), arm

# %% [markdown]
# The formula holds to rounding.
# For λ = 1 it is simplest: then $D = (1 - b)/(1 - \gamma)$, and all that counts is whether $b$ is below or above 1.
#
# **Predict the plot.** A Z-Score has $b = 1/\sigma$, a small number on a long episode. The refitted filter of the simple variant divides by the root of its own tiny variance, so that $b$ is far above 1. What does each of them tell the policy?

# %%
fig, axes = figures.panels(1, 2, height=4.2, width=10.0)
for arm in ("zscore", "running", "kscore", "refit", "adaptive_refit"):
    axes[0].plot(np.abs(critics[arm]), **figures.method(arm))
    axes[1].plot(released_advantages(critics[arm]), **figures.method(arm))
axes[0].set_yscale("log")
axes[1].plot(released_advantages(np.zeros(len(rewards))), color=figures.INK, linewidth=4, alpha=0.2, label="no critic")
figures.label(axes[0], "What the critic learns", "step of the episode", "size of the score", legend="below")
figures.label(axes[1], "What the policy gets", "step of the episode", "z-scored advantage", legend="below")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "One CartPole episode of 200 steps. Left: the size of the targets that each "
    "normalizer gives to the critic. Right: the advantages that reach the policy "
    "if the critic has learned its targets perfectly. Streams and running "
    "estimates start fresh here.",
    alt="Left: five curves of scores whose sizes differ by orders of magnitude. "
    "Right: three curves lie on the one without a critic, two are its mirror "
    "image.")

# %% [markdown]
# All nine normalizers, by the size of their targets (root mean square) and by which way a perfect critic of them points the policy:

# %%
alike = pd.Series({arm: np.corrcoef(released_advantages(values), released_advantages(np.zeros(len(rewards))))[0, 1] for arm, values in critics.items()}, name="correlation with no critic")
sizes = pd.Series({arm: np.sqrt(np.mean(values**2)) for arm, values in critics.items()}, name="size of the targets")
pd.concat([sizes, alike], axis=1).sort_values("size of the targets").rename(index={arm: look["label"] for arm, look in figures.METHODS.items()}).round(2)

# %% [markdown]
# Small targets change nothing after z-scoring: the policy gets what it would get without a critic.
# Large ones turn praise into blame: with a perfect critic of such scores, the *end* of the episode would be rewarded.
# So in this form the normalizer is neither a baseline nor a scale but, at worst, a sign.
# How far a real critic gets towards that is what the runs decide: if the argument is worth anything, the arms with the minus sign should be the slow ones.
#
# One arm stands apart: `none` has $a = 0$ and $b = 1$, the only critic in the units of the rewards. A perfect one leaves no surprise at all.

# %% [markdown]
# ## The recorded study
#
# Three experiments: as released; with the z-scoring of advantages switched off, to see what the critic's scale does when nothing rescales the advantages afterwards; and the consistent reading, in which the advantages themselves go through the normalizer, the critic learns raw returns, and nothing is z-scored afterwards.

# %%
runs = study.runs(released, store, archive=archive)
runs_switched = study.runs(switched, store, archive=archive)
runs_consistent = study.runs(consistent, store, archive=archive)
every = pd.concat([runs, runs_switched, runs_consistent])
assert len(every) == released.runs + switched.runs + consistent.runs
Markdown(f"{figures.run_count(every)}.")

# %% [markdown]
# **Predict the plot.** In which of the three should the arms differ most? In which should `none`, which normalizes nothing, do well?

# %%
shown = {"as released": (runs, ["none", "zscore", "running", "kscore", "refit", "adaptive_refit"]),
         "switched": (runs_switched, ["none", "zscore", "running", "kscore", "refit", "adaptive_refit"]),
         "consistent": (runs_consistent, ["zscore", "running", "kscore", "adaptive", "adaptive_refit"])}
fig = figures.survival_panels([{title: analysis.survivals(*pair) for title, pair in shown.items()}], max_episodes)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Kaplan-Meier curves of GAE with 95 % bands, in three forms of the "
    "experiment. Lower and further left is faster.",
    alt="Three panels of survival curves. As released: the curves of small targets "
    "fall together, refit later, the simple stream stays high. Switched: no "
    "normalization falls first, then adaptive refit, and the simple stream "
    "hardly falls. Consistent: the running Z-Score and adaptive refit fall "
    "first, the simple stream last.")

# %%
picked = [("as released", runs, "zscore"), ("as released", runs, "adaptive_refit"), ("consistent", runs_consistent, "running"), ("consistent", runs_consistent, "kscore")]
fig = figures.learning_panels([(f"{title}:\n{figures.METHODS[arm]['label']}", arm, analysis.curves(frame, arm)) for title, frame, arm in picked])
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Evaluation returns of GAE, averaged over the last 25: each run faint (n = "
    f"{seeds} an arm), the median and the middle half, for the pair of the "
    "release and the pair that we read into the text. A run that has stopped "
    "goes on where it was: the plateau is carried on, not observed.",
    alt="Four panels of evaluation return against episodes. The median rises steeply "
    "in the released pair and for the running Z-Score, slowly for the streamed "
    "K-Score; the faint runs spread widely.")


# %% [markdown]
# ## A test by hand
#
# Are two curves different, or did one get the luckier seeds?
# The log-rank test goes through the episodes at which somebody arrives.
# At each, $n$ runs are on their way, $n_1$ of them of the first arm, and $d$ arrive; if the arms were alike, the first would have $d\,n_1/n$ of the arrivals, with the variance
#
# $$V = d\,\frac{n_1}{n}\,\frac{n - n_1}{n}\,\frac{n - d}{n - 1}.$$
#
# Observed minus expected arrivals, summed and squared, over the summed variance, is nearly a $\chi^2$ variable with one degree of freedom.

# %%
def logrank_by_hand(a: stats.Times, b: stats.Times) -> float:
    """Return the p-value of the log-rank test, from its definition."""
    observed_minus_expected = variance = 0.0
    for t in np.unique(np.concatenate([a.time[a.arrived], b.time[b.arrived]])):
        n, n1 = np.sum(a.time >= t) + np.sum(b.time >= t), np.sum(a.time >= t)
        d1 = np.sum((a.time == t) & a.arrived)
        d = d1 + np.sum((b.time == t) & b.arrived)
        observed_minus_expected += d1 - d * n1 / n
        if n > 1:
            variance += d * (n1 / n) * (1 - n1 / n) * (n - d) / (n - 1)
    return float(chi2.sf(observed_minus_expected**2 / variance, df=1)) if variance else 1.0


filtered, running = analysis.times(runs_consistent, "kscore"), analysis.times(runs_consistent, "running")
assert np.isclose(logrank_by_hand(filtered, running), stats.logrank(filtered, running))

# %% [markdown]
# ## The comparisons
#
# *As released:* what each arm did.

# %%
figures.table(analysis.summary(runs))

# %% [markdown]
# And each against the per-episode Z-Score, the released baseline; p-values are adjusted over the rows of their table.

# %%
as_released = analysis.against(runs, "zscore")
figures.table(as_released)

# %%
estimates = analysis.summary(runs)["restricted mean"].map(lambda interval: interval.estimate)
sides = {text: estimates[alike.index[chosen]] for text, chosen in (("points as without a critic", alike > 0), ("points the other way", alike < 0))}
Markdown("\n".join(f"- A perfect critic of these {text}: {', '.join(figures.METHODS[arm]['label'] for arm in means.index)}. Restricted means {means.min():.0f} to {means.max():.0f} episodes." for text, means in sides.items())
         + f"\n- Nothing to learn from a perfect critic: none, {estimates['none']:.0f}.")

# %% [markdown]
# The two groups do not overlap.
# Within the first, and with it in the pair of the paper, it does not matter what the returns were held against.

# %% [markdown]
# *Switched:* the same without the z-scoring of advantages.
# Now the size of the advantages depends on how large the critic's values have become.

# %%
without = analysis.against(runs_switched, "zscore")
figures.table(without)

# %%
Markdown(f"""
- Without any normalization the runs are now {without.factor["none"]:.2f} times as fast as with a Z-Score: `none` is the only arm whose critic is in the units of the rewards, and nothing else rescales the advantages here.
- A pair outside the plan: adaptive refit over the per-episode Z-Score, {without.factor["adaptive_refit"]:.2f}. Its targets are larger than a Z-Score's, nearer to the returns, and smaller than those that turn the sign.
""")

# %% [markdown]
# *Consistent:* the advantages themselves are held against the filter's belief, and the baseline is the text's running Z-Score.

# %%
figures.table(analysis.summary(runs_consistent))

# %%
as_written = analysis.against(runs_consistent, "running")
figures.table(as_written)

# %% [markdown]
# The three comparisons as pictures:

# %%
fig = figures.forest_panels({"as released, against per-episode": as_released, "switched, against per-episode": without, "consistent, against running": as_written}, columns=1)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Improvement factors with 95 % intervals; right of the dotted line an arm is "
    "faster than the Z-Score of its panel.",
    alt="Three forest plots. As released, the arms with large targets (simple "
    "stream, innovation, refit) lie left of the per-episode Z-Score and the "
    "others around it. Switched, no normalization lies far right, refit and the "
    "adaptive stream and refit right, the simple stream and innovation left. "
    "Consistent: the simple stream and its innovation form lie far left of the "
    "running Z-Score.")

# %%
planned = {"adaptive refit over the per-episode Z-Score, as released": as_released.factor["adaptive_refit"], "simple stream over the running Z-Score, consistent": as_written.factor["kscore"]}
Markdown("".join(f"- {name}: {factor:.2f}.\n" for name, factor in planned.items())
         + f"\nOf the {len(planned)} planned pairs, {sum(factor.low > 1.1 for factor in planned.values())} lie above 1.1.")

# %% [markdown]
# In the consistent reading the normalizer acts on the advantages themselves, and what chapters 03 and 05 found for returns is seen again: a filter with a short memory follows the signal within the episode, whatever its scale, and is slow.
# An interval around 1 for the first pair does not prove that the two arms are equal; it says how large a difference could still hide.

# %% [markdown]
# ## A live run
#
# The released pair of arms, on a seed that is part of no statistic. Whoever is first here, one pair of runs ranks nothing.

# %%
live = {(arm, seed): train(released.configs[arm], seed) for seed in live_seeds for arm in ("zscore", "adaptive_refit")}
fig = figures.live_panel(live)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "The greedy evaluation return after every training episode, until the mean "
    "of the last 25 reaches the dotted threshold or the cap comes.",
    alt="Evaluation returns of one live run of the per-episode Z-Score and one of "
    "the adaptive refitted K-Score.")

# %% [markdown]
# ## When it fails: a critic that is too loud
#
# The sign is not a thought experiment only.
# We turn the volume of a Z-Score's target up, step by step, and look at when the advantages of a perfect critic change sides.

# %%
volumes = np.geomspace(0.1, 1000, 41)
heard = [np.corrcoef(released_advantages(volume * critics["zscore"]), released_advantages(np.zeros(len(rewards))))[0, 1] for volume in volumes]
turn = next((volume for volume, correlation in zip(volumes, heard, strict=True) if correlation < 0), np.nan)
b, a = np.polyfit(returns, critics["zscore"], 1)
nothing, once = direction(0, 0), direction(a, b)
predicted = nothing / (nothing - once)  # D is linear in the volume: from `nothing` at 0 through `once` at 1
assert turn / (volumes[1] / volumes[0]) < predicted <= turn
Markdown(f"Predicted: at {predicted:.1f} times a Z-Score; seen between {turn / (volumes[1] / volumes[0]):.1f} and {turn:.1f}.")

# %% [markdown]
# A target about as large as the returns themselves is loud enough.

# %% [markdown]
# ## What this does not show
#
# - The text does not say how GAE and the filter are combined. Two readings are run here; there are more.
# - The sign argument needs a constant reward and a perfect critic. On other tasks a wrong scale distorts instead of flipping.
# - With λ = 0.99 an advantage looks far ahead. A smaller `lam` weighs the next steps more.
# - The filter's settings are the released ones, chosen for returns; in the consistent reading the filter sees advantages, which are smaller and centred elsewhere.
# - The critics of the study are never perfect, and the episodes of a learning policy never equally long.

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (derive).** A critic in the right units but too timid: $V(s_t) = b\,G_t$ with $b = 1/2$ and rewards of 1. Write every advantage of an episode of 200 steps for λ = 1, without calling `gae_advantages`. (What is the last $\delta$?)

# %% tags=["stub"]
timid = None

# %% nbgrader={"grade": false, "grade_id": "06-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
timid = None
### BEGIN SOLUTION
timid = 0.5 * returns
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert timid is not None, "an array of 200 advantages"
assert np.allclose(timid, algorithms.gae_advantages(rewards, 0.5 * returns, gamma, 1.0)), "every δ is 1/2, the last one too"
### BEGIN HIDDEN TESTS
assert len(timid) == 200 and np.isclose(timid[-1], 0.5) and np.isclose(timid[-2], 0.5 * (1 + gamma)), "the last two advantages"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** Which way does a normalizer of the `whole`-episode kind point the policy? Write it from its scores alone: +1 as without a critic, -1 the other way round.

# %% tags=["stub"]
def side(scores: np.ndarray) -> float:
    """Return the sign of D for the affine map that turns `returns` into `scores`."""


# %% nbgrader={"grade": false, "grade_id": "06-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def side(scores: np.ndarray) -> float:
    """Return the sign of D for the affine map that turns `returns` into `scores`."""
    ### BEGIN SOLUTION
    b, a = np.polyfit(returns, scores, 1)
    return float(np.sign(direction(a, b)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "06-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert side(critics["zscore"]) is not None, "return +1 or -1"
assert [side(critics[arm]) for arm in whole] == [np.sign(alike[arm]) for arm in whole]
assert side(0.9 * returns) == 1 and side(1.1 * returns) == -1
### BEGIN HIDDEN TESTS
for a, b in ((0.0, 0.5), (5.0, 0.0), (-1000.0, 0.5), (1000.0, 1.5)):
    assert side(a + b * returns) == np.sign(direction(a, b)), f"scores of {a:g} + {b:g} G: the constant counts too"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (apply).** Two arms of three runs each: 10, 20, 30 and 20, 40, 40 (all arrived). How many arrivals of the first arm are *expected* by the log-rank test, summed over all episodes?

# %% tags=["stub"]
expected_arrivals = None

# %% nbgrader={"grade": false, "grade_id": "06-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
expected_arrivals = None
### BEGIN SOLUTION
expected_arrivals = 1 * 3 / 6 + 2 * 2 / 5 + 1 * 1 / 3
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert expected_arrivals is not None, "a number"
assert 0 < expected_arrivals < 3, "fewer than the three that arrived: the first arm is the faster one"
### BEGIN HIDDEN TESTS
assert np.isclose(expected_arrivals, 49 / 30), "at 20, five runs are on their way and two arrive; whose are they?"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** Does the sign show in training? Make two arms whose critics learn Z-Scores times a constant below and above the turning point (a normalizer with `scale="returns"` and a larger `eps` will not do; think of `zscore` and of `refit` with a large `R`), write down what you expect, and train five seeds of each.

# %% tags=["stub"]
mine = None

# %% nbgrader={"grade": false, "grade_id": "06-4", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
mine = None
### BEGIN SOLUTION
quiet, loud = (plan.kalman_grid("gae", "refit", [1e-4], [R], **settings) for R in (1e4, 1e-4))
mine = study.run(quiet | loud, range(3100, 3105), "build/mine.jsonl", progress=False)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-4-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert mine is not None and mine.arm.nunique() == 2 and len(mine) == 10, "two arms, five runs each, in a store of your own"
assert not set(mine.seed) & set(released.seeds), "seeds of your own: 3100 and up"
### BEGIN HIDDEN TESTS
assert mine.groupby("arm").seed.nunique().eq(5).all(), "five different seeds in each arm"
assert (mine.cap == max_episodes).all(), "the same cap as the recorded runs, or their times cannot be compared"
### END HIDDEN TESTS

# %% [markdown]
# ## Summary

# %%
ratio = published.episodes.iloc[0] / published.episodes.iloc[1]
Markdown(f"""
- The released figures stop at {published.episodes.iloc[0]} (Z-Score) and {published.episodes.iloc[1]} (Kalman) episodes, a factor of {ratio:.2f} from one run an arm.
- As released, n = {seeds}: the factor of adaptive refit over the per-episode Z-Score is {as_released.factor["adaptive_refit"]:.2f} (log-rank p = {as_released["log-rank p"]["adaptive_refit"]:.3f}, not adjusted).
- Consistent reading, n = {seeds}: the factor of the streamed K-Score over the running Z-Score is {as_written.factor["kscore"]:.2f}.
- With a perfect critic, z-scoring leaves of the released advantages little but a sign. The {len(sides["points as without a critic"])} arms that keep it take {sides["points as without a critic"].min():.0f} to {sides["points as without a critic"].max():.0f} episodes, the {len(sides["points the other way"])} that turn it {sides["points the other way"].min():.0f} to {sides["points the other way"].max():.0f} (restricted means, n = {seeds} an arm).
""")

# %% [markdown]
# The verdicts on the paper's sentences are in [11 The replication report](11_replication_report.ipynb).
#
# **References.** J. Schulman and co-authors, *High-dimensional continuous control using generalized advantage estimation* (2015).
# N. Mantel, *Evaluation of survival data and two new rank order statistics arising in its consideration*, Cancer Chemotherapy Reports 50 (1966).
# Z. Xia and Q. Li, *K-Score*, Figures 3 and 4, and the released repository at commit `5667b45`.

# %%
chapter.footer()
