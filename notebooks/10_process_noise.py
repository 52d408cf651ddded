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
# # 10 Process noise, and tuning
#
# **Question.** Does a smaller process noise $Q$ make learning faster, and is a tuned filter faster than a moving average that was tuned on the same budget?
#
# *For* readers who tune things, and readers who read tables of tuned things.
# *Know first:* chapter 02 (the steady state), chapters 05 and 08.
# *Runs in* about a minute from the recorded runs; about an hour on two cores from nothing.
# Previous: [09 PPO on LunarLander](09_ppo_lunarlander.ipynb) · Next: [11 The replication report](11_replication_report.ipynb)

# %% [markdown]
# ## Question
#
# The filter has two numbers, $Q$ and $R$.
# The paper varies $Q$ at $R = 1$ with PPO on CartPole (Table 2) and concludes, from one run for each value, that smaller is faster.
# For its other experiments it says that both numbers were found by a grid search, which it does not describe.
#
# Two questions follow.
# Is there a trend in $Q$? One might expect it of the filter in the text, whose memory $Q$ sets, and less of the released one, which forgets everything at the end of an episode anyway.
# And is a tuned filter better than what it replaces, if that is tuned as well? We expected no advantage of a tenth or more.
# It would prove us wrong if the best filter of a grid, run again on fresh seeds, beat the best moving average by a factor whose whole interval lies above 1.1. (The plan fixes the grids, the seeds and how a winner is picked; it states this bound for other experiments.)
#
# After this chapter you can
#
# - test a trend over several arms on paired seeds;
# - read a heat map of a grid search, and distrust its best cell;
# - say what the winner's curse is, and measure it;
# - set up a fair comparison of two tuned methods.

# %% [markdown]
# ## Setup

# %%
import itertools

import numpy as np
import pandas as pd
from IPython.display import Markdown
from matplotlib.patches import Rectangle

from kscore import analysis, chapters, figures, filters, normalizers, study
from kscore.analysis import stats
from kscore.rl import RunConfig, algorithms, train
from kscore.study import plan

chapter = chapters.begin("10_process_noise")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seeds: int = 50               # runs per arm for results [2, 10000]
first_seed: int = 1000        # the first; results use 1000 and up [0, 1000000000]
tuning_seeds: int = 8         # runs per cell of the grids [1, 1000]
first_tuning_seed: int = 2000 # the first; no result uses these [0, 1000000000]
max_episodes: int = 500       # the cap: a run that meets it is censored [1, 100000]
table_Q: list[float] = [1e-4, 1e-3, 0.01, 0.1, 1.0]  # Q [1e-12, 1e12], 2 to 9 different
table_R: float = 1.0          # measurement noise of Table 2 [1e-06, 1e+06]
grid_Q: list[float] = [1e-4, 1e-3, 0.01, 0.1, 1.0]  # Q [1e-12, 1e12], 2 to 9 different
grid_R: list[float] = [0.01, 0.1, 1.0, 10.0, 100.0]  # R [1e-12, 1e12], 2 to 9 different
grid_forgetting: list[float] = []  # 1 - decay of the EMA [1e-09, 1], 0 to 49 different
store: str = "build/runs"     # your folder, for what the archive lacks
archive: bool = True          # whether the archive of recorded runs is read first
live_seeds: list[int] = [3000]  # of the live run [0, 1000000000], 1 to 5 different

# %% [markdown]
# `table_Q` are the process noises of Table 2. `grid_Q`, `grid_R` and `grid_forgetting` are what the grid searches try; without a value for the last, the moving average gets the 25 of the plan.

# %%
judging = range(first_seed, first_seed + seeds)
choosing = range(first_tuning_seed, first_tuning_seed + tuning_seeds)
assert not set(judging) & set(choosing), "the seeds that choose must not judge"

Qs, Rs = sorted(grid_Q), sorted(grid_R)
modes = ("stream", "refit")
learners = {"actor_critic": "Actor-critic", "ppo": "PPO"}
result_size = {"seeds": seeds, "first_seed": first_seed}
tuning_size = {"seeds": tuning_seeds, "first_seed": first_tuning_seed}

# %% [markdown]
# ## Notation
#
# | word | meaning | in code |
# |---|---|---|
# | $K_\infty$ | the steady gain, a function of $Q/R$ alone | `filters.steady_state` |
# | $\tau$ | Kendall's rank correlation of $Q$ with the time, on one seed: 1 if every larger $Q$ takes longer | `stats.rank_correlations` |
# | streamed | the filter as written: one, carried on through all episodes | mode `stream` |
# | refitted | the filter as released: a new one for every episode | mode `refit` |
# | tuning seeds | seeds that choose a setting | 2000 and up |
# | result seeds | seeds that judge it | 1000 and up |

# %% [markdown]
# ## The published numbers
#
# Five numbers, one run each, and two sentences drawn from them: learning is faster with a small $Q$, and with too small a one the filter may adapt too slowly.

# %%
published = analysis.published("T2")
published[["source", "algorithm", "Q", "R", "episodes"]]

# %% [markdown]
# What does $Q$ mean here?
# In the steady state it sets the gain, and the gain sets both the memory of the filter and the size of the score (chapters 02 and 03): under its own model a streamed score has the size $\sqrt{(1 - K)/K}$.

# %%
noises = sorted(table_Q)
gains = np.array([filters.steady_state(Q, table_R).gain for Q in noises])
meaning = {"steady gain K": gains, "memory 1/K (steps)": 1 / gains,
           "size of a score": np.sqrt((1 - gains) / gains)}
pd.DataFrame(meaning, index=pd.Index(noises, name="Q")).round(3)

# %% [markdown]
# From the first to the last row the memory shrinks from a hundred steps to hardly two, and the score shrinks with it.
# With the advantages z-scored afterwards, as in these runs, the size acts through the critic alone, which has to learn the scores (chapter 08).

# %% [markdown]
# ## Table 2, over many seeds
#
# The filter of the text is streamed; that of the released code is refitted for every episode. We run both, at the published values of $Q$.

# %%
settings = {"grid": {"Q": noises, "R": [table_R]}, "max_episodes": max_episodes}
table_2 = {mode: plan.part(f"process_noise_{mode}", **result_size, **settings)
           for mode in modes}
arms = {mode: part.configs for mode, part in table_2.items()}
with study.processes() as executor:  # for what has to be trained, if anything
    runs = {mode: study.runs(part, store, executor, archive=archive)
            for mode, part in table_2.items()}
assert all(len(runs[mode]) == len(noises) * seeds for mode in modes)
summaries = {mode: analysis.summary(runs[mode]) for mode in modes}

# %% [markdown]
# **Predict the plot.** The published numbers are flat, then jump to 170, then fall to 98. If each comes from one run, how wide must the distribution be from which they were drawn?

# %% tags=["hide-input"]
fig, axes = figures.panels(1, 2, height=3.8, sharey=True)
jitter = np.exp(np.random.default_rng(0).uniform(-0.4, 0.4, seeds))
for ax, mode, arm in zip(axes, modes, ("kscore", "refit"), strict=True):
    for Q, name in zip(noises, arms[mode], strict=True):
        ax.scatter(Q * jitter, analysis.times(runs[mode], name).time, s=9, alpha=0.55,
                   color=figures.METHODS[arm]["color"], linewidth=0)
    means = np.array([mean[:3] for mean in summaries[mode]["restricted mean"]]).T
    reach = np.abs(means[1:] - means[0])
    look = figures.method(arm, marker=True) | {"label": "restricted mean"}
    ax.errorbar(noises, means[0], yerr=reach, capsize=3, **look)
    ax.plot(published.Q, published.episodes, color=figures.INK, marker="_",
            markersize=14, markeredgewidth=2, linestyle="none",
            label="published, one run")
    ax.axhline(max_episodes, color=figures.GREY, linewidth=0.8, linestyle=":",
               label="cap: not arrived")
    ax.set_xscale("log")
    figures.label(ax, f"{mode} (n = {seeds} per point)",
                  f"process noise Q, at R = {table_R:g}",
                  "episodes to the threshold" if ax is axes[0] else "", legend="below")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Every run (small dots), the restricted mean with its 95 % interval, and the "
    "published single run of each cell.",
    alt="Two panels of episodes against Q. Streamed, the mean rises with Q to the "
    "cap; refitted, it is nearly flat. The single runs spread widely around it, and "
    "five published bars lie near the lower end.")

# %% [markdown]
# Wide enough to reach from under fifty episodes to the cap.
# How unusual would each published number be as one more of our runs (`stats.position`, chapter 08)?

# %% tags=["hide-input"]
def placed(mode: str, Q: float, episodes: int) -> dict[str, object]:
    """Return where a published number lies among our runs of the same cell."""
    name = list(arms[mode])[noises.index(Q)]
    times = analysis.times(runs[mode], name)
    fastest = times.time[times.arrived].min() if times.arrived.any() else "none arrived"
    return {f"{mode}: p": round(stats.position(episodes, times), 2),
            f"{mode}: our fastest": fastest}


pd.DataFrame([
    {"Q": Q, "published": episodes}
    | placed("stream", Q, episodes) | placed("refit", Q, episodes)
    for Q, episodes in zip(published.Q, published.episodes, strict=True) if Q in noises
], columns=["Q", "published", *(f"{mode}: {words}" for mode in modes
                                for words in ("p", "our fastest"))]).set_index("Q")

# %% [markdown]
# The smallest p that so many runs can give means that a number lies beyond all of them; how far, the fastest run says.
# As runs of the refitted filter four of the five numbers are unremarkable, and the first lies barely before our fastest.
# As runs of the streamed one the last three are out of place by far: with so large a $Q$ few of our runs arrive, and none so early.
# As single runs, then, the five numbers fit the released code better than the text.

# %% [markdown]
# ## Is there a trend?
#
# On each seed we have one run for each value of $Q$.
# Kendall's $\tau$ compares every pair of them: plus one if the larger $Q$ took longer, minus one if it took less, divided by the number of pairs (with a correction for ties).
# A run that did not arrive counts as the cap, so that two of them tie.

# %%
def tau_by_hand(times: np.ndarray) -> float:
    """Return Kendall's τ of times that are in the order of Q, without ties."""
    pairs = itertools.combinations(times, 2)
    return np.mean([np.sign(of_larger_Q - of_smaller_Q)
                    for of_smaller_Q, of_larger_Q in pairs])


by_seed = np.array([analysis.times(runs["stream"], name).time
                    for name in arms["stream"]]).T  # (seeds, Q)
taus = stats.rank_correlations(by_seed.T)
for times, tau in zip(by_seed, taus, strict=True):
    if len(set(times)) == len(times):
        assert np.isclose(tau_by_hand(times), tau)

# %% [markdown]
# The mean over the seeds, with its interval, is the trend; its p-value is that of Wilcoxon's signed-rank test, which asks whether the seeds' $\tau$ are symmetric about zero.

# %%
trends = {mode: analysis.trend(runs[mode], arms[mode]) for mode in modes}
pd.DataFrame({mode: {"mean τ": f"{tau:.2f}", "signed-rank p": f"{p:.3g}",
                     "seeds": tau.n} for mode, (tau, p) in trends.items()}).T

# %% tags=["hide-input"]
arrived = summaries["stream"].arrived
smallest, *_, largest = arms["stream"]
Markdown(
    f"Streamed, {arrived[smallest]} of {seeds} runs arrived with {smallest}, and "
    f"{arrived[largest]} of {seeds} with {largest}. The largest of the published "
    f"numbers is {published.episodes.max() / published.episodes.min():.1f} times the "
    "smallest.")

# %% [markdown]
# Above zero a larger $Q$ is slower, as the paper says.
# So the paper's sentence is borne out for the filter of its text. For the filter of its released code no such trend was found, and in the paper's direction the interval leaves room only for a very weak one.
# Streamed, the two ends of the table lie further apart than the paper's own: its last number is less than a third above its first, while of our runs with the largest $Q$ none arrived.
# Of the other sentence, that too small a $Q$ adapts too slowly, we see no sign within these five values: streamed, the smallest has the lowest mean; refitted, it is one of five alike.
#
# ### What $Q$ does to the score
#
# Why should the two differ?
# We let both filters score a CartPole episode of 200 steps, after shorter ones, and ask two things about the scores.
# Do they go up and down with the returns? This is their *shape*, a correlation; chapter 03 suspects that it matters.
# And how large are they? This is their *size*, the root mean square; the critic has to learn it, and chapter 08 suspects that this matters, too.

# %%
def portrait(Q: float, mode: str) -> dict[str, float]:
    """Return shape and size of the scores of an episode that follows others."""
    normalizer = normalizers.make("kscore", mode=mode, Q=Q, R=table_R)
    for steps in (20, 40, 80, 160, 200, 200):
        returns = algorithms.discounted_returns([1.0] * steps, 0.99)
        scores = normalizer(returns)
    return {"shape": np.corrcoef(scores, returns)[0, 1],
            "size": np.sqrt(np.mean(scores**2))}

# %% tags=["hide-input"]
portraits = {}
for mode in modes:
    frame = pd.DataFrame({Q: portrait(Q, mode) for Q in noises}).T
    frame["episodes"] = [mean.estimate for mean in summaries[mode]["restricted mean"]]
    portraits[mode] = frame.assign(shape=frame["shape"].map("{:.2f}".format)).round(
        {"size": 0, "episodes": 0}).astype({"size": int, "episodes": int})
pd.concat(portraits, axis=1).rename_axis("Q")

# %% [markdown]
# The refitted filter subtracts one number from a whole episode and divides by another, so its shape is that of the returns whatever $Q$ is; only the size changes.
# The streamed filter follows the returns while it scores them. With a short memory it is always close behind: what is left in the score is the jump up at the start of an episode, for a few steps, and after that little more than the speed at which the return falls.
# That is the high-pass filter of chapter 03, and here learning slows down as it sets in.
#
# Size alone cannot explain the table: the streamed scores become smaller, which should make the critic's task easier, and learning becomes slower; the refitted ones shrink to a third without a clear effect.
# (The sizes are far above those of the first table, which hold if the returns follow the filter's own model with noise $R$. Returns that run from one to almost a hundred do not.)

# %% [markdown]
# ## A grid search
#
# Now both numbers, for two learners: the actor-critic, whose advantages are not z-scored, and PPO, whose advantages are.
# Twenty-five cells for the streamed filter, twenty-five for the refitted one, and, on the same budget, twenty-five decays for the moving average.
# All on tuning seeds, which no result uses.
# The same budget is the point: tuning alone can make a method look better than one that was not tuned.

# %%
searches = {"stream": {"Q": Qs, "R": Rs}, "refit": {"Q": Qs, "R": Rs},
            "ema": {"1 - decay": grid_forgetting} if grid_forgetting else {}}
shown_as = {"stream": "kscore", "refit": "refit", "ema": "ema"}  # in the figures
grids, searched = {}, {}
with study.processes() as executor:
    for learner, (kind, grid) in itertools.product(learners, searches.items()):
        cells = plan.part(f"tuning_{learner}_{kind}", **tuning_size,
                          max_episodes=max_episodes, grid=grid)
        grids[learner, kind] = cells.configs
        searched[learner, kind] = study.runs(cells, store, executor, archive=archive)
best = {search: analysis.best(frame) for search, frame in searched.items()}

# %% [markdown]
# **Predict the plot.** Cells on a diagonal, from the upper left to the lower right, have the same $Q/R$ and so the same memory; along it only the size of the score changes. Will the colours follow the diagonals, or the columns?

# %% tags=["hide-input"]
fig, axes = figures.panels(2, 2, height=3.1, sharex=True, sharey=True)
for ax, (learner, mode) in zip(axes.flat, itertools.product(learners, modes),
                               strict=True):
    means = list(analysis.restricted_means(searched[learner, mode]).values())
    table = pd.DataFrame(np.reshape(means, (len(Qs), len(Rs))), Qs, Rs)
    figures.heat(table, ax, low=0, high=max_episodes)
    place = list(grids[learner, mode]).index(best[learner, mode])
    row, column = divmod(place, len(Rs))
    ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, clip_on=False,
                           edgecolor=figures.ORANGE, linewidth=3, zorder=3))
    figures.label(ax, f"{learners[learner]}, {mode} (n = {tuning_seeds} per cell)",
                  "R" if ax in axes[-1] else "", "Q" if ax in axes[:, 0] else "")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Restricted mean of the episodes to the threshold on the tuning seeds; dark "
    "is fast, the best cell is framed.",
    alt="Four heat maps of restricted mean episodes over Q and R, for two learners "
    "and two modes of the filter, with the best cell framed. Streamed, both grids go "
    "from dark in the upper right to light in the lower left; refitted, they have no "
    "such order.")

# %% [markdown]
# On the left the colours follow the diagonals: slow towards the lower left, where $Q/R$ is large and the memory short, and fast in the other corner.
# On the right there are no diagonals. If anything the left column is slow: a small $R$ makes large scores, which the critic has to learn (chapter 11 looks into that). Between neighbours, with so few runs in a cell, most differences may well be chance.
#
# The moving average has one number to tune instead of two: the share of its memory that it gives up per step.
# A streamed filter in its steady state gives up $K_\infty$ per step (D5, chapter 01), so that both searches can be drawn on one axis.
# The refitted filter starts afresh with every episode and has no such memory.

# %%
def forgets(config: RunConfig) -> float:
    """Return the share of its memory that a normalizer gives up per step."""
    options = config.normalizer
    if "decay" in options:
        return round(1 - options["decay"], 9)
    return filters.steady_state(options["Q"], options["R"]).gain


memories = {}
for learner, kind in itertools.product(learners, ("stream", "ema")):
    means = analysis.restricted_means(searched[learner, kind])
    rates = [forgets(grids[learner, kind][arm]) for arm in means]
    memories[learner, kind] = pd.DataFrame({"rate": rates, "episodes": means.values()})

# %% [markdown]
# **Predict the plot.** If memory is what matters, where will the marks of the filter lie, and where those of the moving average?

# %% tags=["hide-input"]
fig, axes = figures.panels(1, 2, height=3.6, sharey=True)
for ax, learner in zip(axes, learners, strict=True):
    for kind in ("stream", "ema"):
        look = figures.method(shown_as[kind], marker=True)
        ax.plot(*memories[learner, kind].to_numpy().T, **look | {"linestyle": "none"})
    ax.set_xscale("log")
    ax.set_ylim(0, max_episodes * 1.03)
    figures.label(ax, f"{learners[learner]} (n = {tuning_seeds} per mark)",
                  "given up per step (1 - decay, or K∞)",
                  "restricted mean (episodes)" if ax is axes[0] else "",
                  legend="lower right")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Every cell of the streamed filter's grid and every decay of the moving "
    "average, by the share of its memory that it gives up per step.",
    alt="Two scatter plots, actor-critic and PPO, of restricted mean episodes "
    "against the rate of forgetting; in both, filter and moving average rise "
    "from the left to the cap at a rate of about 0.1.")

# %% tags=["hide-input"]
ends = {"below 1 % per step": "rate < 0.01", "10 % or more": "rate >= 0.1"}
at_ends = {
    (learners[learner], figures.METHODS[shown_as[kind]]["label"]): {
        (words, what): frame.query(rule).episodes.agg(what)
        for words, rule in ends.items() for what in ("count", "min", "max")}
    for (learner, kind), frame in memories.items()
}
pd.DataFrame(at_ends).T.round().astype("Int64")

# %% [markdown]
# With the actor-critic both lie close to one curve: it is flat up to a rate of about 0.01, a memory of a hundred steps, and from 0.1 on hardly a run arrives.
# A hundred steps are also how far a return looks ahead at a discount of 0.99.
# With PPO both rise at the same place; at the patient end most marks of the filter lie above those of the moving average, and only fresh seeds can say whether that is more than chance.

# %% tags=["hide-input"]
simple = plan.arm("replication", "kscore", "ppo").normalizer
on_the_slope = filters.steady_state(simple["Q"], simple["R"]).gain
Markdown(
    f"The released setting of the simple filter, Q = {simple['Q']:g} and R = "
    f"{simple['R']:g}, gives up {on_the_slope:.1%} per step if it is streamed.")

# %% [markdown]
# So the text's method with the code's numbers lies on the slope.
# At the patient end the filter's centre is nearly the mean of everything seen so far. Its scale is not the spread of anything: it stays the constant that $Q$ and $R$ fix.

# %% [markdown]
# ## When it fails: choosing and judging on the same seeds
#
# The framed cells look good. How good are they?
# A cell's mean over a few seeds is its true mean plus luck, and whoever takes the best of many cells takes the luckiest along with the best.
#
# To see luck alone, suppose that all cells of a grid were equally good, and differed only by their seeds.
# We take the runs of *one* arm, the per-episode Z-Score with PPO, deal them out to imaginary cells, and let the best win. How much better than the truth does it look?

# %%
untuned = {}
with study.processes() as executor:
    for learner in learners:
        part = plan.part(f"cartpole_{learner}", **result_size,
                         arms=["zscore", "running", "kscore"],
                         max_episodes=max_episodes)
        untuned[learner] = study.runs(part, store, executor, archive=archive)

pool = analysis.times(untuned["ppo"], "zscore").time
rng = np.random.default_rng(0)
flattery = {}
for cells in (1, 5, 25, 100):
    dealt = rng.choice(pool, (2_000, cells, tuning_seeds))  # 2,000 searches
    flattery[cells] = dealt.mean(axis=2).min(axis=1).mean() / pool.mean()

# %% tags=["hide-input"]
pd.DataFrame({"apparent time of the winner / true time": flattery}).rename_axis(
    "equal cells in the grid").round(2)

# %% [markdown]
# The more cells, the more flattery, with nothing to be found.
# A table that shows the best cell of a grid on the very runs that chose it reports this flattery along with any real gain.
# (Our imaginary cells have independent runs. The cells of a real grid share their seeds, and may flatter less.)

# %% [markdown]
# ## The winner's curse
#
# The bidder who wins an auction is, on average, the one who has overestimated the prize most.
# In the same way the winner of a grid search looks worse when it is run again: its luck stays behind on the seeds that chose it.
# That is why tuning seeds judge nothing here.
#
# The three winners of each learner, on the seeds that chose them and on those that did not:

# %%
tuned = {}
with study.processes() as executor:
    for learner in learners:
        winners = {shown_as[kind]: grids[learner, kind][best[learner, kind]]
                   for kind in searches}
        part = plan.part(f"tuned_{learner}", **result_size, winners=winners)
        tuned[learner] = study.runs(part, store, executor, archive=archive)

# %% tags=["hide-input"]
curse = pd.DataFrame([
    {"learner": learners[learner],
     "method": figures.METHODS[shown_as[kind]]["label"],
     "best setting": best[learner, kind],
     "where it was chosen": min(analysis.restricted_means(frame).values()),
     "on fresh seeds": analysis.restricted_means(tuned[learner])[
        shown_as[kind]]}
    for (learner, kind), frame in searched.items()])
curse["ratio"] = curse["on fresh seeds"] / curse["where it was chosen"]
curse.round({"where it was chosen": 0, "on fresh seeds": 0, "ratio": 2}).astype(
    {"where it was chosen": int, "on fresh seeds": int})

# %% [markdown]
# What did the luck amount to?

# %% tags=["hide-input"]
Markdown(
    f"On fresh seeds (n = {seeds}) the winners took between {curse.ratio.min():.2f} "
    f"and {curse.ratio.max():.2f} times as many episodes as on the {tuning_seeds} "
    "seeds that chose them.")

# %% [markdown]
# Or were the tuning seeds merely easy ones?
# The refitted cells that are also in Table 2 have run on both kinds of seeds, so that we can look, leaving out the one that was chosen.

# %% tags=["hide-input"]
on_both = [name for name in arms["refit"]
           if name in grids["ppo", "refit"] and name != best["ppo", "refit"]]
kinds_of_seeds = {"tuning": searched["ppo", "refit"], "result": runs["refit"]}
easy = {}
for words, frame in kinds_of_seeds.items():
    means = analysis.restricted_means(frame)
    easy[words] = np.mean([means[name] for name in on_both]) if on_both else np.nan
Markdown(
    f"PPO, refitted, the mean of {len(on_both)} cells: {easy['tuning']:.0f} episodes "
    f"on the tuning seeds, {easy['result']:.0f} on the result seeds.")

# %% [markdown]
# The other cells hardly changed; the one that had been chosen did.

# %% [markdown]
# ## Tuned against tuned
#
# On the result seeds, with the per-episode and the running Z-Score beside them, which have nothing to tune.

# %%
judged, over_ema = {}, {}
for learner in learners:
    plain = untuned[learner].query("arm != 'kscore'")
    judged[learner] = pd.concat([tuned[learner], plain])
    over_ema[learners[learner]] = analysis.against(judged[learner], "ema")
fig = figures.forest_panels(over_ema, over="the tuned moving average")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Improvement factors of the tuned filters and of the untuned Z-Scores over "
    "the tuned moving average, with 95 % intervals; right of the dotted line is "
    "faster.",
    alt="Two forest plots, actor-critic and PPO, of factors over the tuned moving "
    "average. In both, the interval of the streamed filter contains 1 and that of "
    "the refitted filter lies below it; the per-episode Z-Score lies below 1 with "
    "the actor-critic and mostly above it with PPO.")

# %% tags=["hide-input"]
filtered = [table.factor[arm] for table in over_ema.values()
            for arm in ("kscore", "refit")]
streams = {learner: table.factor["kscore"] for learner, table in over_ema.items()}
Markdown(
    f"Of the {len(filtered)} intervals of a tuned filter over the tuned moving "
    f"average, {sum(one.low > 1.1 for one in filtered)} lie above 1.1 and "
    f"{sum(one.high < 1 for one in filtered)} below 1. The streamed filter: "
    + ", ".join(f"{factor:.2f} ({learner})" for learner, factor in streams.items())
    + ".")

# %% [markdown]
# The first two rows of each panel are about the chapter's question.
# Between the streamed filter and the moving average no difference was found; the intervals leave room for a lead of about a tenth, and for a lag of a quarter or more.
# The refitted filter is slower, or rather, the cell that the tuning seeds chose is. With PPO another of its cells had a lower mean on the result seeds, as the first section shows, but to prefer it now would be choosing on the seeds that judge.
#
# Nothing was tuned in the last two rows; they show how far one gets without.
# Between the running Z-Score, which remembers everything, and the best moving average no difference was found either. With the actor-critic the search ended at so long a memory that it does nearly what a method without any setting does anyway.
# The per-episode Z-Score is slower with the actor-critic and, if anything, faster with PPO.
#
# ### The fairer reading of the text
#
# Chapters 05 and 08 stream the filter with the *released* settings, which were made for a filter that starts anew with every episode.
# The text says that $Q$ and $R$ were searched for each model and environment.
# A stream whose $Q$ and $R$ were searched is therefore the fairer reading *as written*. What does it give?

# %%
fairer = {}
for learner, words in learners.items():
    before = analysis.compare(untuned[learner], "kscore", "running")
    after = analysis.compare(judged[learner], "kscore", "running")
    fairer[words] = {
        "released setting / running Z-Score": f"{before.factor:.2f}",
        "tuned / running Z-Score": f"{after.factor:.2f}",
        "log-rank p (tuned)": f"{after.p:.2f}",
    }
pd.DataFrame(fairer).T

# %% [markdown]
# With the released settings the stream is far behind the running Z-Score.
# Tuned, it cannot be told from the running Z-Score with either learner, so most of what was found against the simple stream is due to its settings.
# Nor does either interval show an advantage; and the Z-Score beside it has nothing to tune.
# (PPO z-scores its advantages here, which the text does not mention; without that step the stream was not tuned.)

# %% [markdown]
# ## A live run
#
# The smallest and the largest $Q$ of Table 2, streamed, on a seed that is part of no statistic.
# Table 2 is made of such single runs.

# %%
live = {(name, seed): train(arms["stream"][name], seed)
        for seed in live_seeds for name in (smallest, largest)}

# %% tags=["hide-input"]
fig, ax = figures.panels(height=3.2)
looks = {smallest: (figures.ORANGE, "-"), largest: (figures.INK, "--")}
for (name, seed), record in live.items():
    color, style = looks[name]
    ax.plot(range(1, len(record["eval_returns"]) + 1), record["eval_returns"],
            color=color, linestyle=style,
            label=f"{name}, seed {seed}: {figures.ended(record)}")
figures.label(ax, f"Live runs (n = {len(live_seeds)} per arm)", "training episodes",
              "evaluation return")
ax.legend(loc="upper left", bbox_to_anchor=(0, -0.2))
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "The greedy evaluation return after every training episode.",
    alt="Evaluation returns of two live runs of PPO, with the smallest and the "
    "largest process noise.")

# %% [markdown]
# Whatever these two runs did, they contradict nothing. With the smallest $Q$ some of the recorded runs did not arrive either. And if the dashed one should arrive although none of the recorded ones did: where a share $s$ of all runs arrives, $n$ runs show no arrival with probability $(1 - s)^n \approx e^{-ns}$, which is above 5 % as long as $s < 3/n$: none of fifty allows up to six in a hundred.
# A single run is an anecdote.

# %% [markdown]
# ## What this does not show
#
# - **Another learning rate.** Grids and winners ran at the released rate, which was never varied here; a score of another size may want another one, and a pilot found that rankings can change with it.
# - **Another grid.** This one is ours: the paper does not give its own. A finer one may find better cells, for either method.
# - **Equal reach.** Equal budgets are not that: the most patient moving average of its grid forgets more slowly than the most patient filter of its own. Both streamed winners lie on the edge of the grid, so that a more patient filter may do better.
# - **Another task.** Tuning on CartPole says nothing about LunarLander, where returns have both signs and another course within an episode.
# - **The adaptive variant**, which has a third number, $\alpha$, and a starting $R$ instead of a fixed one. Only $Q$ and $R$ of the simple filter are tuned.

# %% [markdown]
# ## Appendix: every cell of Table 2, and the tuned arms
#
# The streamed filter at the published values of $Q$:

# %%
figures.table(summaries["stream"])

# %% [markdown]
# The refitted one:

# %%
figures.table(summaries["refit"])

# %% [markdown]
# And the tuned arms over the tuned moving average, in numbers; p-values are adjusted within each learner.

# %%
figures.table(pd.concat(over_ema, names=["learner"]).reset_index(level=0))

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** Which single number of a setting $(Q, R)$ decides the memory of the filter? Return it, such that two settings with the same memory have the same number. (There is more than one right answer.)

# %% tags=["stub"]
def memory_number(Q: float, R: float) -> float:
    """Return what the steady gain depends on."""


# %% nbgrader={"grade": false, "grade_id": "10-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def memory_number(Q: float, R: float) -> float:
    """Return what the steady gain depends on."""
    ### BEGIN SOLUTION
    return Q / R
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "10-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert memory_number(0.01, 1.0) is not None, "return a number"
assert np.isclose(memory_number(0.01, 1.0), memory_number(1.0, 100.0)), (
    "these two settings have the same memory")
assert not np.isclose(memory_number(0.01, 1.0), memory_number(0.1, 1.0)), (
    "and these two have not")
### BEGIN HIDDEN TESTS
assert np.isclose(memory_number(1e-6, 1e-4), memory_number(1.0, 100.0)), (
    "very small variances")
assert not np.isclose(memory_number(1.0, 2.0), memory_number(2.0, 1.0)), (
    "Q and R do not play the same part")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (derive).** Which decay of a moving average has the same memory as a filter with $Q = 0.01$, $R = 1$ in its steady state? Start from the equation for $K_\infty$ in chapter 02, and give the number to at least six digits.

# %% tags=["stub"]
same_decay = None

# %% nbgrader={"grade": false, "grade_id": "10-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
same_decay = None
### BEGIN SOLUTION
same_decay = 1 - filters.steady_state(0.01, 1.0).gain
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "10-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert same_decay is not None, "a number between 0 and 1"
signal = np.random.default_rng(0).normal(size=200)
steady_start = filters.Belief(0.0, filters.steady_state(0.01, 1.0).var)
average = 0.0
for z in signal:
    average = same_decay * average + (1 - same_decay) * z
tracked = filters.filter_series(signal, 0.01, 1.0, start=steady_start).mean[-1]
assert np.isclose(average, tracked), (
    "the average and the filter must agree step by step")
### BEGIN HIDDEN TESTS
assert np.isclose(same_decay, 1 - (np.sqrt(0.01**2 + 4 * 0.01) - 0.01) / 2), (
    "one minus the steady gain")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (apply).** Split the seeds of a grid in two halves: in ascending order, the first, third, fifth ... choose the best cell, and the others judge it. Return the winner's restricted mean on the choosing seeds, then on the judging ones. `analysis.best` and `analysis.restricted_means` will help. (Try it on `searched["ppo", "refit"]`.)

# %% tags=["stub"]
def split_choice(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the winner's restricted mean where it was chosen and where judged."""


# %% nbgrader={"grade": false, "grade_id": "10-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def split_choice(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the winner's restricted mean where it was chosen and where judged."""
    ### BEGIN SOLUTION
    order = sorted(frame.seed.unique())
    choosing = frame[frame.seed.isin(order[::2])]
    judging = frame[frame.seed.isin(order[1::2])]
    winner = analysis.best(choosing)
    means = [analysis.restricted_means(half)[winner] for half in (choosing, judging)]
    return tuple(means)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "10-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
made_up = pd.DataFrame({
    "arm": ["a"] * 4 + ["b"] * 4, "seed": [1, 2, 3, 4] * 2,
    "evaluation": [10, 90, 10, 90, 40, 40, 40, 40],
    "evaluation_arrived": True, "cap": 500})
assert split_choice(made_up) is not None, "return two numbers"
assert split_choice(made_up) == (10, 90), (
    "on the choosing seeds the lucky arm wins, and on the others it pays for it")
### BEGIN HIDDEN TESTS
turned = made_up.assign(evaluation=[90, 10, 90, 10, 40, 40, 40, 40])
assert split_choice(turned.sample(frac=1, random_state=0)) == (40, 40), (
    "rows in any order; here the steady arm wins, and keeps its promise")
unmet = made_up.assign(evaluation=[10, 500, 10, 90, 40, 40, 40, 40],
                       evaluation_arrived=[True, False] + [True] * 6)
assert split_choice(unmet) == (10, 295), (
    "a run that did not arrive counts up to the cap")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (judge; a teacher reads it).** Somebody tunes a filter on 25 cells with 10 seeds each, reports the best cell on the same seeds, and compares it with a moving average whose decay was left at 0.99. Which two things are unfair, and what would you ask for instead? Give the number of further training runs that your request costs, with fifty fresh seeds to judge on.

# %% tags=["stub"]
further_runs, request = None, ""

# %% nbgrader={"grade": true, "grade_id": "10-4", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
further_runs, request = None, ""
### BEGIN SOLUTION
further_runs = 25 * 10 + 2 * 50
request = (
    "The winner was chosen and judged on the same seeds, and only one side was tuned. "
    "Tune the other side on as many runs, 25 settings on the same 10 seeds, then run "
    "both winners on 50 fresh seeds and compare them there.")
### END SOLUTION

# %% nbgrader={"grade": false, "grade_id": "10-4-check", "locked": true, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert further_runs is not None and further_runs >= 2 * 50, (
    "two winners have to run on fifty fresh seeds, and something before that")
assert len(request.split()) >= 20, "two things, and what to do about each"

# %% [markdown]
# **Exercise 5 (open: train a small study).** Tune and judge, in seconds. `plan.arm("replication", "kscore", "actor_critic", normalizer={"Q": Q, "R": 1.0}, max_episodes=...)` returns a configuration of the streamed filter; `train(config, seed)` trains one run, and `eval_returns` of its record has one greedy return per episode.
# Train every $Q$ on the choosing seeds, take the mean evaluation return over all of them (here *high* is good), choose the best $Q$, and train it again on the judging seeds. Return that $Q$, its mean where it was chosen, and its mean where it is judged.
# Set `outcome` to what three values of $Q$, 0.0001, 0.01 and 1, give with the choosing seeds 3200 to 3202, the judging seeds 3300 to 3302, and ten episodes. (Then try other seeds: how often does the winner change?)

# %% tags=["stub"]
def tune_and_judge(
    Qs: list[float], choosing: list[int], judging: list[int], episodes: int
) -> tuple[float, float, float]:
    """Return the best Q, its mean where it was chosen, and where it is judged."""


outcome = None

# %% nbgrader={"grade": false, "grade_id": "10-5", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def tune_and_judge(
    Qs: list[float], choosing: list[int], judging: list[int], episodes: int
) -> tuple[float, float, float]:
    """Return the best Q, its mean where it was chosen, and where it is judged."""
    ### BEGIN SOLUTION
    configs = {Q: plan.arm("replication", "kscore", "actor_critic",
                           normalizer={"Q": Q, "R": 1.0}, max_episodes=episodes)
               for Q in Qs}

    def mean(Q: float, seeds: list[int]) -> float:
        """Return the mean evaluation return of a setting over seeds."""
        returns = [train(configs[Q], seed)["eval_returns"] for seed in seeds]
        return float(np.mean(returns))

    means = {Q: mean(Q, choosing) for Q in Qs}
    winner = max(means, key=means.get)
    return winner, means[winner], mean(winner, judging)
    ### END SOLUTION


outcome = None
### BEGIN SOLUTION
outcome = tune_and_judge([0.0001, 0.01, 1.0], range(3200, 3203), range(3300, 3303), 10)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "10-5-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
def mean_return(Q: float, seeds: list[int], episodes: int) -> float:
    """Return the mean evaluation return of a streamed filter with R = 1."""
    config = plan.arm("replication", "kscore", "actor_critic",
                      normalizer={"Q": Q, "R": 1.0}, max_episodes=episodes)
    return np.mean([train(config, seed)["eval_returns"] for seed in seeds])


small = tune_and_judge([0.001, 1.0], [3200], [3201], 4)
assert small is not None and len(small) == 3, "the best Q and two means"
expected = {Q: mean_return(Q, [3200], 4) for Q in (0.001, 1.0)}
assert small[0] == max(expected, key=expected.get), (
    "the Q with the highest mean on the choosing seeds")
assert np.isclose(small[1], max(expected.values())), "its mean on the choosing seeds"
assert np.isclose(small[2], mean_return(small[0], [3201], 4)), (
    "its mean on the judging seeds, which had no say in the choice")
assert outcome is not None and len(outcome) == 3, "set `outcome`"
### BEGIN HIDDEN TESTS
expected = {Q: mean_return(Q, range(3200, 3203), 10) for Q in (0.0001, 0.01, 1.0)}
winner = max(expected, key=expected.get)
assert outcome[0] == winner and np.isclose(outcome[1], expected[winner]), (
    "three values of Q on the seeds 3200 to 3202, ten episodes")
assert np.isclose(outcome[2], mean_return(winner, range(3300, 3303), 10)), (
    "the winner on the seeds 3300 to 3302")
### END HIDDEN TESTS

# %% [markdown]
# ## Summary
#
# **Answer.** For the streamed filter of the text, yes: a smaller $Q$ is faster. For the refitted filter of the released code no trend was found.
# Tuned against tuned, neither filter was ahead: between the stream and the moving average no difference was found, and the refitted cell that the tuning seeds chose was slower.
# A tuned stream, which is the fairer reading of the text, could not be told from the running Z-Score, which has nothing to tune.

# %% tags=["hide-input"]
def both_modes(learner: str) -> str:
    """Return the factors of a learner's tuned filters over the tuned average."""
    factor = over_ema[learners[learner]].factor
    return f"{factor['kscore']:.2f} (stream), {factor['refit']:.2f} (refit)"


tuned_factors = ", ".join(f"{row['tuned / running Z-Score']} ({words})"
                          for words, row in fairer.items())
Markdown("\n".join([
    f"- Trend in Q (mean of the seeds' τ, n = {seeds}; above 0 a larger Q is slower): "
    f"streamed {trends['stream'][0]:.2f}, refitted {trends['refit'][0]:.2f}.",
    f"- The winners of the grids took {curse.ratio.min():.2f} to "
    f"{curse.ratio.max():.2f} times as long on fresh seeds as on those that chose "
    f"them; among 25 equal cells that ratio would be {1 / flattery[25]:.2f}.",
    "- Tuned against tuned, factor over the tuned moving average: actor-critic "
    f"{both_modes('actor_critic')}; PPO {both_modes('ppo')}.",
    f"- The tuned stream over the running Z-Score: {tuned_factors}.",
]))

# %% [markdown]
# The verdicts are in [11 The replication report](11_replication_report.ipynb).
#
# **References.** M. G. Kendall, *A new measure of rank correlation*, Biometrika 30 (1938).
# E. C. Capen, R. V. Clapp and W. M. Campbell, *Competitive bidding in high-risk situations*, Journal of Petroleum Technology 23 (1971), where the winner's curse got its name.
# Z. Xia and Q. Li, *K-Score*, Table 2, and the released repository at commit `5667b45`.

# %%
chapter.footer()
