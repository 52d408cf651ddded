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
# **Claim.** The paper's Table 2 says that small process noise $Q$ learns faster, from one run for each value. Over many seeds that is true of the filter in the text and not of the one in the released code; and neither filter, tuned, beats a moving average that was tuned just as long.
#
# *For* readers who tune things, and readers who read tables of tuned things.
# *Know first:* chapter 02 (the steady state), chapters 05 and 08.
# *Runs in* about a minute from the recorded runs; about an hour on two cores from nothing.
# Previous: [09 PPO on LunarLander](09_ppo_lunarlander.ipynb) · Next: [11 The replication report](11_replication_report.ipynb)

# %% [markdown]
# ## Question
#
# The filter has two numbers, $Q$ and $R$.
# The paper varies $Q$ at $R = 1$ with PPO on CartPole (Table 2), concludes that smaller is faster, and chooses both by a grid search that it does not describe.
# Two questions follow.
# Is there a trend in $Q$?
# And is a tuned filter better than what it replaces, if that is tuned as well?
#
# Our answers will be: only for the streamed filter; and no.
# The second would be wrong if the best filter of the grid, run again on fresh seeds, beat the best moving average by a factor whose interval lies above 1.1.
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
import numpy as np
import pandas as pd
from IPython.display import Markdown
from scipy.stats import kendalltau

from kscore import analysis, chapters, figures, filters, normalizers, study
from kscore.analysis import stats
from kscore.rl import RunConfig, train
from kscore.rl import algorithms as learning
from kscore.study import plan

chapter = chapters.begin("10_process_noise")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seeds: int = 50               # runs an arm for results [2, 10000]
first_seed: int = 1000        # the first of them; results use 1000 and up [0, 1000000000]
tuning_seeds: int = 8         # runs a cell of the grids [1, 1000]
first_tuning_seed: int = 2000 # the first of them; no result uses these [0, 1000000000]
max_episodes: int = 500       # the cap: a run that gets here without arriving is censored [1, 100000]
table_Q: list[float] = [0.0001, 0.001, 0.01, 0.1, 1.0]  # process noises of Table 2 [1e-12, 1e+12], 2 to 9 different
table_R: float = 1.0          # measurement noise of Table 2 [1e-06, 1e+06]
grid_Q: list[float] = [0.0001, 0.001, 0.01, 0.1, 1.0]   # process noises of the grid [1e-12, 1e+12], 2 to 9 different
grid_R: list[float] = [0.01, 0.1, 1.0, 10.0, 100.0]     # measurement noises of the grid [1e-12, 1e+12], 2 to 9 different
grid_forgetting: list[float] = []  # 1 - decay of the moving average in its grid; empty for the 25 values of the plan [1e-09, 1], 0 to 49 different
store: str = "build/runs"     # folder of your own: what the archive of recorded runs lacks is trained into it
archive: bool = True          # whether the archive is read first; without it every run is trained
live_seeds: list[int] = [3000]  # seeds trained before your eyes; they enter no statistic [0, 1000000000], 1 to 5 different

# %%
judging = range(first_seed, first_seed + seeds)
choosing = range(first_tuning_seed, first_tuning_seed + tuning_seeds)
assert not set(judging) & set(choosing), "the seeds that choose a setting must not judge it"
modes = ("stream", "refit")
algorithms = {"actor_critic": "Actor-critic", "ppo": "PPO"}
result_size = {"seeds": seeds, "first_seed": first_seed}
tuning_size = {"seeds": tuning_seeds, "first_seed": first_tuning_seed}

# %% [markdown]
# ## Notation
#
# | word | meaning | in code |
# |---|---|---|
# | $K_\infty$ | the steady gain, a function of $Q/R$ alone | `filters.steady_state` |
# | $\tau$ | Kendall's rank correlation of $Q$ with the time, on one seed: 1 if every larger $Q$ takes longer | `stats.rank_correlations` |
# | tuning seeds | seeds that choose a setting | 2000 and up |
# | result seeds | seeds that judge it | 1000 and up |

# %% [markdown]
# ## The published numbers
#
# Five numbers, one run each, and two sentences drawn from them: small values of $Q$ learn faster, and too small ones may adapt too slowly.

# %%
published = analysis.published("T2")
published[["source", "algorithm", "Q", "R", "episodes"]]

# %% [markdown]
# What does $Q$ mean here?
# In the steady state it sets the gain, and the gain sets both the memory of the filter and the size of the score (chapters 02 and 03).

# %%
steady = [filters.steady_state(Q, table_R) for Q in table_Q]
pd.DataFrame({"Q": table_Q, "steady gain K": [s.gain for s in steady], "memory 1/K (steps)": [1 / s.gain for s in steady],
              "size of a streamed score under its own model, √((1 - K)/K)": [np.sqrt((1 - s.gain) / s.gain) for s in steady]}).set_index("Q").round(3)

# %% [markdown]
# From the first to the last row the memory shrinks from a hundred steps to hardly two, and the score shrinks with it.
# With the advantages z-scored afterwards, as in these runs, the size acts through the critic alone, which has to learn the scores (chapter 08).

# %% [markdown]
# ## Table 2, over many seeds
#
# The text's filter streams; the released code's is refitted every episode. Both are run, at the published five values.

# %%
noises = {"Qs": table_Q, "R": table_R, "max_episodes": max_episodes}
table_2 = {mode: plan.part(f"process_noise_{mode}", **result_size, **noises) for mode in modes}
arms = {mode: part.configs for mode, part in table_2.items()}
with study.processes() as executor:  # one set of worker processes for both, should there be anything to train
    runs = {mode: study.runs(table_2[mode], store, executor, archive=archive) for mode in modes}
assert all(len(runs[mode]) == len(table_Q) * seeds for mode in modes)
summaries = {mode: analysis.summary(runs[mode]) for mode in modes}
figures.table(summaries["stream"])

# %% [markdown]
# That was the streamed filter; this is the refitted one.

# %%
figures.table(summaries["refit"])

# %% [markdown]
# **Predict the plot.** The published numbers are flat, then jump to 170, then fall to 98. If each comes from one run, how wide must the distribution be from which they were drawn?

# %%
fig, axes = figures.panels(1, 2, height=3.4, width=10.0, sharey=True)
for ax, mode, arm in zip(axes, modes, ("kscore", "refit"), strict=True):
    means = summaries[mode]["restricted mean"]
    for Q, name in zip(table_Q, arms[mode], strict=True):
        times = analysis.times(runs[mode], name)
        ax.scatter(Q * np.exp(np.random.default_rng(0).uniform(-0.4, 0.4, seeds)), times.time, color=figures.METHODS[arm]["color"], s=9, alpha=0.55, linewidth=0)
    ax.errorbar(table_Q, [m.estimate for m in means], yerr=[[m.estimate - m.low for m in means], [m.high - m.estimate for m in means]],
                capsize=3, **figures.method(arm, marker=True))
    ax.plot(published.Q, published.episodes, color=figures.INK, marker="_", markersize=14, markeredgewidth=2, linestyle="none", label="published, one run")
    ax.axhline(max_episodes, color=figures.GREY, linewidth=0.8, linestyle=":", label="cap: not arrived")
    ax.set_xscale("log")
    figures.label(ax, f"{mode} (n = {seeds} a point)", "process noise Q, at R = 1", "episodes to the threshold", legend="below")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Every run (small dots), the restricted mean with its 95 % interval, and the "
    "published single run of each cell.",
    alt="Two panels of episodes against Q: streamed and refitted filter, many runs "
    "with means, and five published bars.")


# %% [markdown]
# As wide as from under fifty episodes to the cap.
# How unusual would each published number be as one more of our runs (`stats.position`, chapter 08)?

# %%
def placed(mode: str, Q: float, episodes: int) -> dict[str, object]:
    """Return where a published number lies among our runs of the same cell."""
    times = analysis.times(runs[mode], next(name for name, config in arms[mode].items() if config.normalizer["Q"] == Q))
    return {f"{mode}: p": round(stats.position(episodes, times), 2), f"{mode}: our fastest": times.time[times.arrived].min() if times.arrived.any() else "none arrived"}


pd.DataFrame([{"Q": Q, "published": episodes} | placed("stream", Q, episodes) | placed("refit", Q, episodes) for Q, episodes in zip(published.Q, published.episodes, strict=True) if Q in table_Q]).set_index("Q")

# %% [markdown]
# The smallest p that so many runs can give means that a number lies beyond all of them; how far, the fastest run says.
# As runs of the refitted filter four of the five numbers are unremarkable, and the first lies barely before our fastest.
# As runs of the streamed one the last three are out of place by far: with so large a $Q$ few of our runs arrive, and none so early.
# As single runs, then, the five numbers fit the released code better than the text.

# %% [markdown]
# ## Is there a trend?
#
# On each seed we have five runs, one a value of $Q$.
# Kendall's $\tau$ compares every pair of them: plus one if the larger $Q$ took longer, minus one if it took less, divided by the number of pairs (with a correction for ties).
# A run that did not arrive counts as the cap, so that two of them tie.
# The mean over the seeds, with its interval, is the trend; its p-value is that of Wilcoxon's signed-rank test, which asks whether the seeds' $\tau$ are symmetric about zero.

# %%
table = np.array([analysis.times(runs["stream"], name).time for name in arms["stream"]])  # (Q, seeds)
taus = stats.rank_correlations(table)
pairs = [(i, j) for i in range(len(table_Q)) for j in range(i)]
seed_without_ties = next((s for s in range(seeds) if len(set(table[:, s])) == len(table_Q)), None)
if seed_without_ties is not None:
    by_hand = np.mean([np.sign(table[i, seed_without_ties] - table[j, seed_without_ties]) for i, j in pairs])
    assert np.isclose(by_hand, taus[seed_without_ties]) and np.isclose(by_hand, kendalltau(table_Q, table[:, seed_without_ties]).statistic)

# %%
trends = {mode: analysis.trend(runs[mode], arms[mode]) for mode in modes}
pd.DataFrame({mode: {"mean τ": f"{tau:.2f}", "signed-rank p": f"{p:.3g}", "seeds": tau.n} for mode, (tau, p) in trends.items()}).T

# %% [markdown]
# Above zero a larger $Q$ is slower, as the paper says; below zero it is faster.
# So the sentence of the paper is true of the filter in its text and not of the filter in its released code.
# Where it is true, the effect is stronger than Table 2 shows: the table's single runs differ by a factor of two and a half, and not in order, while the streamed filter goes from three runs in four that arrive to none.
# Of the other sentence, that too small a $Q$ adapts too slowly, we see no sign: streamed, the smallest is the fastest of the five; refitted, it is one of five alike.
#
# ### What $Q$ does to the score
#
# Why should the two differ?
# We let both filters score a CartPole episode of 200 steps, after shorter ones, and ask two things of the scores:
# do they go up and down with the returns (their *shape*, a correlation, which chapter 03 suspects to matter), and how large are they (their root mean square, which the critic has to learn, as chapter 08 suspects)?

# %%
def portrait(Q: float, mode: str) -> dict[str, float]:
    """Return shape and size of the scores of a 200-step episode that follows shorter and equal ones."""
    normalizer = normalizers.make("kscore", mode=mode, Q=Q, R=table_R)
    for steps in (20, 40, 80, 160, 200, 200):
        returns = learning.discounted_returns([1.0] * steps, 0.99)
        scores = normalizer(returns)
    return {"shape": np.corrcoef(scores, returns)[0, 1], "size": np.sqrt(np.mean(scores**2))}


portraits = {mode: pd.DataFrame({Q: portrait(Q, mode) for Q in table_Q}).T.assign(episodes=[m.estimate for m in summaries[mode]["restricted mean"]]) for mode in modes}
pd.concat(portraits, axis=1).rename_axis("Q").round({(mode, column): digits for mode in modes for column, digits in (("shape", 2), ("size", 0), ("episodes", 0))})

# %% [markdown]
# The refitted filter subtracts one number from a whole episode and divides by another, so its shape is that of the returns whatever $Q$ is; only the size changes.
# The streamed filter follows the returns while it scores them. With a short memory it is always close behind: what is left in the score is the jump up at the start of an episode, for a few steps, and after that little more than the speed at which the return falls.
# That is the high-pass filter of chapter 03, and here it has a price.
#
# Size alone cannot explain the table: the streamed scores become smaller, which should make the critic's task easier, and learning becomes slower; the refitted ones shrink to a third without a clear effect.
# (The sizes are far above those of the first table, which hold if the returns follow the filter's own model with noise $R$. Returns that run from one to almost a hundred do not.)

# %% [markdown]
# ## A grid search
#
# Now both numbers, for two learners: the actor-critic, whose advantages are left as they are, and PPO, whose advantages are z-scored afterwards.
# Twenty-five cells for the streamed filter, twenty-five for the refitted one, and, on the same budget, twenty-five decays for the moving average.
# All on tuning seeds, which no result uses.
# The same budget is the point: tuning alone can make a method look better than one that was not tuned.

# %%
searches = {"stream": {"Qs": grid_Q, "Rs": grid_R}, "refit": {"Qs": grid_Q, "Rs": grid_R},
            "ema": {"forgetting": grid_forgetting or plan.TUNED_FORGETTING}}
grids, searched = {algorithm: {} for algorithm in algorithms}, {algorithm: {} for algorithm in algorithms}
with study.processes() as executor:
    for algorithm in algorithms:
        for kind, grid in searches.items():
            cells = plan.part(f"tuning_{algorithm}_{kind}", **tuning_size, max_episodes=max_episodes, **grid)
            grids[algorithm][kind] = cells.configs
            searched[algorithm][kind] = study.runs(cells, store, executor, archive=archive)
found = {algorithm: {kind: analysis.best(frame) for kind, frame in searched[algorithm].items()} for algorithm in algorithms}

# %% [markdown]
# **Predict the plot.** Cells on a diagonal, from the upper left to the lower right, have the same $Q/R$ and so the same memory; along it only the size of the score changes. Will the colours follow the diagonals, or the columns?

# %%
fig, axes = figures.panels(2, 2, height=3.2, width=9.0, sharex=True, sharey=True)
for row, algorithm in zip(axes, algorithms, strict=True):
    for ax, mode in zip(row, modes, strict=True):
        values = np.reshape(list(analysis.restricted_means(searched[algorithm][mode]).values()), (len(grid_Q), len(grid_R)))
        figures.heat(pd.DataFrame(values, grid_Q, grid_R), ax, low=0, high=max_episodes)
        place = list(grids[algorithm][mode]).index(found[algorithm][mode])
        ax.plot(place % len(grid_R), place // len(grid_R), marker="s", markersize=34, markerfacecolor="none", markeredgecolor=figures.ORANGE, markeredgewidth=2.5)
        figures.label(ax, f"{algorithms[algorithm]}, {mode} (n = {tuning_seeds} a cell)", "R" if ax in axes[-1] else "", "Q" if ax is row[0] else "")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Restricted mean of the episodes to the threshold on the tuning seeds; dark "
    "is fast, the best cell is framed.",
    alt="Four heat maps of restricted mean episodes over Q and R, for two algorithms "
    "and two modes of the filter, with the best cell framed.")


# %% [markdown]
# On the left the colours follow the diagonals: slow towards the lower left, where $Q/R$ is large and the memory short, and fast in the other corner.
# On the right there are no diagonals. If anything the left column is slow: a small $R$ makes large scores, which the critic has to learn (chapter 11 looks into that). Between neighbours, with so few runs in a cell, most differences are chance.
#
# The moving average has one number to tune instead of two: which share of its memory it gives up per step.
# A streamed filter in its steady state gives up $K_\infty$ per step (D5, chapter 01), so that both searches can be drawn on one axis.
# The refitted filter starts afresh with every episode and has no such memory.
#
# **Predict the plot.** If memory is what matters, where will the marks of the filter lie, and where those of the moving average?

# %%
def forgets(config: RunConfig) -> float:
    """Return the share of its memory that a normalizer gives up per step."""
    options = config.normalizer
    return round(1 - options["decay"], 9) if "decay" in options else filters.steady_state(options["Q"], options["R"]).gain


fig, axes = figures.panels(1, 2, height=3.2, width=10.0, sharey=True)
speed = {}
for ax, algorithm in zip(axes, algorithms, strict=True):
    for kind in ("stream", "ema"):
        means = analysis.restricted_means(searched[algorithm][kind])
        rates = [forgets(grids[algorithm][kind][arm]) for arm in means]
        speed[algorithm, kind] = pd.DataFrame({"rate": rates, "episodes": list(means.values())})
        ax.plot(rates, list(means.values()), **figures.method(plan.TUNED_ARMS[kind], marker=True) | {"linestyle": "none"})
    ax.set_xscale("log")
    ax.set_ylim(0, max_episodes * 1.03)
    figures.label(ax, f"{algorithms[algorithm]} (n = {tuning_seeds} a mark)", "given up per step (1 - decay, or K∞)", "restricted mean (episodes)", legend="lower right")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Every cell of the streamed filter's grid and every decay of the moving "
    "average, by the share of its memory that it gives up per step.",
    alt="Two scatter plots, actor-critic and PPO, of restricted mean episodes "
    "against the rate of forgetting; in both, filter and moving average rise "
    "from the left to the cap at a rate of about 0.1.")

# %%
named = pd.concat({(algorithms[algorithm], figures.METHODS[plan.TUNED_ARMS[kind]]["label"]): frame for (algorithm, kind), frame in speed.items()}, names=["algorithm", "search"])
ends = {"below 1 % per step": named.query("rate < 0.01"), "10 % or more": named.query("rate >= 0.1")}
pd.concat({words: part.episodes.groupby(level=[0, 1]).agg(["count", "min", "max"]).round().astype(int) for words, part in ends.items()}, axis=1)

# %% [markdown]
# With the actor-critic both lie on one curve: it is flat up to a rate of about 0.01, a memory of a hundred steps, and from 0.1 on nothing is learned.
# A hundred steps are also how far a return looks ahead at a discount of 0.99.
# With PPO both rise at the same place; at the patient end most marks of the filter lie above those of the moving average, which only the fresh seeds below can confirm.
#
# The setting of the released simple filter, $Q/R = 0.01$, gives up 9.5 % per step if it is streamed: the text's method with the code's numbers lies on the slope.
# At the patient end the filter's centre is nearly the mean of everything seen so far. Its scale is not the spread of anything: it stays the constant that $Q$ and $R$ fix.

# %% [markdown]
# ## The winner's curse
#
# The best of twenty-five cells is the best partly because its seeds were lucky.
# Run again on other seeds, it will on average look worse than on those that chose it, as the winner of an auction has on average overestimated the prize.
# That is why tuning seeds judge nothing here.
#
# The three winners of each learner, on the seeds that chose them and on the fifty that did not:

# %%
winners = {algorithm: {kind: grids[algorithm][kind][name] for kind, name in found[algorithm].items()} for algorithm in algorithms}
tuned = {algorithm: plan.part(f"tuned_{algorithm}", **result_size, winners=winners[algorithm]) for algorithm in algorithms}
with study.processes() as executor:
    fresh = {algorithm: study.runs(tuned[algorithm], store, executor, archive=archive) for algorithm in algorithms}
curse = pd.DataFrame([{"algorithm": algorithms[algorithm], "method": figures.METHODS[arm]["label"], "best setting": found[algorithm][kind],
                       "where it was chosen": analysis.restricted_means(searched[algorithm][kind])[found[algorithm][kind]],
                       "on fresh seeds": analysis.restricted_means(fresh[algorithm])[arm]} for algorithm in algorithms for kind, arm in plan.TUNED_ARMS.items()])
curse.round().astype({"where it was chosen": int, "on fresh seeds": int})

# %%
worse = curse["on fresh seeds"] / curse["where it was chosen"]
Markdown(f"On fresh seeds (n = {seeds}) the winners took between {worse.min():.2f} and {worse.max():.2f} times as many episodes as on the {tuning_seeds} seeds that chose them.")

# %% [markdown]
# Or were the tuning seeds merely easy ones?
# The refitted cells that are also in Table 2 have run on both kinds of seeds, so that we can look, leaving out the one that was chosen.

# %%
both = [name for name in arms["refit"] if name in grids["ppo"]["refit"] and name != found["ppo"]["refit"]]
easy = {words: np.mean([analysis.restricted_means(frame)[name] for name in both]) if both else np.nan for words, frame in {"tuning": searched["ppo"]["refit"], "result": runs["refit"]}.items()}
Markdown(f"PPO, refitted, the mean of {len(both)} cells: {easy['tuning']:.0f} episodes on the tuning seeds, {easy['result']:.0f} on the result seeds.")

# %% [markdown]
# The other cells hardly changed; the one that had been chosen did.

# %% [markdown]
# ## Tuned against tuned
#
# On the result seeds, with the per-episode and the running Z-Score beside them, which have nothing to tune.

# %%
judged = {}
with study.processes() as executor:
    for algorithm in algorithms:
        plain = plan.part(f"cartpole_{algorithm}", **result_size, names=["zscore", "running"], max_episodes=max_episodes)
        judged[algorithm] = pd.concat([fresh[algorithm], study.runs(plain, store, executor, archive=archive)])
against_ema = {algorithm: analysis.against(judged[algorithm], "ema") for algorithm in algorithms}
fig = figures.forest_panels({algorithms[algorithm]: table for algorithm, table in against_ema.items()}, over="the tuned moving average")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Improvement factors of the tuned filters and of the untuned Z-Scores over "
    "the tuned moving average, with 95 % intervals; right of the dotted line is "
    "faster.",
    alt="Two forest plots, actor-critic and PPO, of factors over the tuned moving "
    "average.")

# %% [markdown]
# The same in numbers; p-values are adjusted within each algorithm.

# %%
figures.table(pd.concat(against_ema, names=["algorithm"]).reset_index(level=0).replace({"algorithm": algorithms}))

# %% [markdown]
# The question of the chapter is in the first two rows of each half. No interval lies above 1.1, so that we were not wrong.
# The streamed filter cannot be told from the moving average: a lead of a tenth is just possible, and so is a lag of a quarter.
# The refitted filter is slower, that is, the cell that eight seeds chose is; with PPO another of its cells did better on the result seeds, as the first section shows, but to prefer it now would be choosing on the seeds that judge.
#
# Nothing was tuned in the last two rows, so that they show how far one gets without tuning.
# The running Z-Score, which remembers everything, is about as fast as the best moving average: with the actor-critic the search has found its way to what a method without a setting does anyway.
# The per-episode Z-Score is slower with the actor-critic and, if anything, faster with PPO.

# %% [markdown]
# ## A live run
#
# The smallest and the largest $Q$ of Table 2, streamed, on a seed that is part of no statistic.
# Table 2 is made of such single runs.

# %%
smallest, largest = list(arms["stream"])[0], list(arms["stream"])[-1]
fig, ax = figures.panels(height=2.8)
for seed in live_seeds:
    for name, color, style in ((smallest, figures.ORANGE, "-"), (largest, figures.INK, "--")):
        record = train(arms["stream"][name], seed)
        ax.plot(range(1, len(record["eval_returns"]) + 1), record["eval_returns"], color=color, linestyle=style, label=f"{name}, seed {seed}: {figures.ended(record)}")
figures.label(ax, f"Live runs (n = {len(live_seeds)} an arm)", "training episodes", "evaluation return", legend="below")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "The greedy evaluation return after every training episode.",
    alt="Evaluation returns of two live runs of PPO, with the smallest and the "
    "largest process noise.")

# %%
arrived = summaries["stream"].arrived
Markdown(f"Among the recorded runs {arrived[smallest]} of {seeds} arrived with {smallest}, and {arrived[largest]} of {seeds} with {largest}.")

# %% [markdown]
# If the dashed run arrives all the same, as on seed 3000, that is no contradiction. If a share $s$ of all runs arrives, $n$ runs show none of them with probability $(1 - s)^n \approx e^{-ns}$, which is above 5 % as long as $s < 3/n$: none of fifty allows up to six in a hundred.
# A single run is an anecdote.

# %% [markdown]
# ## When it fails: choosing and judging on the same seeds
#
# Suppose that all cells of a grid were equally good, and differed only by their seeds.
# How much better than the truth would the best of them look?
# We take the runs of *one* arm, the per-episode Z-Score with PPO, deal them out to imaginary cells, and let the best win.

# %%
pool = analysis.times(judged["ppo"], "zscore").time
rng = np.random.default_rng(0)
flattery = {cells: np.mean([rng.choice(pool, (cells, tuning_seeds)).mean(axis=1).min() for _ in range(2_000)]) / pool.mean() for cells in (1, 5, 25, 100)}
pd.Series(flattery, name="apparent time of the winner / true time").rename_axis("equal cells in the grid").round(2).to_frame()

# %% [markdown]
# The more cells, the more flattery, with nothing to be found.
# A table that shows the best cell of a grid on the very runs that chose it reports this flattery along with any real gain.
# (Our imaginary cells have independent runs. The cells of a real grid share their seeds, and may flatter less.)

# %% [markdown]
# ## What this does not show
#
# - The grid is ours: the paper does not give its own. A finer one may find better cells, for either method.
# - Equal budgets are not equal reach: the most patient filter of the grid gives up 0.1 % per step, the most patient moving average 0.01 %. Both streamed winners lie on the edge of the grid, so that a more patient filter may do better.
# - Tuned on CartPole says nothing about LunarLander, where returns have both signs and another course within an episode.
# - The winners are judged at the released learning rate; a score of another size may want another one.
# - Only $Q$ and $R$ are tuned. The adaptive variant has a third number, $\alpha$, and a starting $R$ instead of a fixed one.

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
assert memory_number(0.01, 1.0) is not None
assert np.isclose(memory_number(0.01, 1.0), memory_number(1.0, 100.0)) and not np.isclose(memory_number(0.01, 1.0), memory_number(0.1, 1.0))
### BEGIN HIDDEN TESTS
assert np.isclose(memory_number(1e-6, 1e-4), memory_number(1.0, 100.0)), "very small variances"
assert not np.isclose(memory_number(1.0, 2.0), memory_number(2.0, 1.0)), "Q and R do not play the same part"
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
signal, steady_start = np.random.default_rng(0).normal(size=200), filters.Belief(0.0, filters.steady_state(0.01, 1.0).var)
average = 0.0
for z in signal:
    average = same_decay * average + (1 - same_decay) * z
assert np.isclose(average, filters.filter_series(signal, 0.01, 1.0, start=steady_start).mean[-1]), "the average and the filter must agree step by step"
### BEGIN HIDDEN TESTS
assert np.isclose(same_decay, 1 - (np.sqrt(0.01**2 + 4 * 0.01) - 0.01) / 2), "one minus the steady gain"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (apply).** Split the seeds of a grid in two halves: in ascending order, the first, third, fifth ... choose the best cell, and the others judge it. Return the winner's restricted mean on the choosing seeds, then on the judging ones. `analysis.best` and `analysis.restricted_means` will help. How far apart are the two for `searched["ppo"]["refit"]`?

# %% tags=["stub"]
def split_choice(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the winner's restricted mean on the seeds that chose it and on the others."""


# %% nbgrader={"grade": false, "grade_id": "10-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def split_choice(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the winner's restricted mean on the seeds that chose it and on the others."""
    ### BEGIN SOLUTION
    order = sorted(frame.seed.unique())
    choosing, judging = frame[frame.seed.isin(order[::2])], frame[frame.seed.isin(order[1::2])]
    winner = analysis.best(choosing)
    return analysis.restricted_means(choosing)[winner], analysis.restricted_means(judging)[winner]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "10-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
made_up = pd.DataFrame({"arm": ["a"] * 4 + ["b"] * 4, "seed": [1, 2, 3, 4] * 2, "evaluation": [10, 90, 10, 90, 40, 40, 40, 40], "evaluation_arrived": True, "cap": 500})
assert split_choice(made_up) is not None, "return two numbers"
assert split_choice(made_up) == (10, 90), "on the choosing seeds the lucky arm wins, and on the others it pays for it"
### BEGIN HIDDEN TESTS
turned = made_up.assign(evaluation=[90, 10, 90, 10, 40, 40, 40, 40]).sample(frac=1, random_state=0)
assert split_choice(turned) == (40, 40), "rows in any order; here the steady arm wins, and keeps its promise"
unmet = made_up.assign(evaluation=[10, 500, 10, 90, 40, 40, 40, 40], evaluation_arrived=[True, False] + [True] * 6)
assert split_choice(unmet) == (10, 295), "a run that did not arrive counts up to the cap"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** Somebody tunes a filter on 25 cells with 10 seeds each, reports the best cell on the same seeds, and compares it with a moving average whose decay was left at 0.99. Which two things are unfair, and what would you ask for instead? Give the number of further training runs that your request costs, with fifty fresh seeds to judge on.

# %% tags=["stub"]
further_runs, request = None, ""

# %% nbgrader={"grade": true, "grade_id": "10-4", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
further_runs, request = None, ""
### BEGIN SOLUTION
further_runs = 25 * 10 + 2 * 50
request = ("The winner was chosen and judged on the same seeds, and only one side was tuned. Tune the other side on as many runs, 25 settings on the same 10 seeds, "
           "then run both winners on 50 fresh seeds and compare them there.")
### END SOLUTION

# %% nbgrader={"grade": false, "grade_id": "10-4-check", "locked": true, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert further_runs is not None and further_runs >= 2 * 50, "two winners have to run on fifty fresh seeds, and something before that"
assert len(request.split()) >= 20, "two things, and what to do about each"

# %% [markdown]
# ## Summary

# %%
Markdown(f"""
- Trend in Q (mean of the seeds' τ, n = {seeds}; above 0 a larger Q is slower): streamed {trends["stream"][0]:.2f}, refitted {trends["refit"][0]:.2f}.
- The winners of the grids took {worse.min():.2f} to {worse.max():.2f} times as long on fresh seeds as on those that chose them; among 25 equal cells that ratio would be {1 / flattery[25]:.2f}.
- Tuned against tuned, actor-critic: factor over the tuned moving average {against_ema["actor_critic"].factor["kscore"]:.2f} (stream), {against_ema["actor_critic"].factor["refit"]:.2f} (refit).
- Tuned against tuned, PPO: {against_ema["ppo"].factor["kscore"]:.2f} (stream), {against_ema["ppo"].factor["refit"]:.2f} (refit).
""")

# %% [markdown]
# **References.** M. G. Kendall, *A new measure of rank correlation*, Biometrika 30 (1938).
# E. C. Capen, R. V. Clapp and W. M. Campbell, *Competitive bidding in high-risk situations*, Journal of Petroleum Technology 23 (1971), where the winner's curse got its name.
# Z. Xia and Q. Li, *K-Score*, Table 2, and the released repository at commit `5667b45`.

# %%
chapter.footer()
