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
# # 11 The replication report
#
# **Claim.** Of the paper's statements about learning speed, few hold over many seeds. As the text describes it, the K-Score is slower than a Z-Score; as the released code has it, it is about as fast, or slower. What decides is the filter's memory, which shapes the scores, and not that a Kalman filter made them.
#
# *For* readers of the paper, and readers who want to see how such a check is done.
# *Know first:* nothing but what a return is; every term links to the chapter that explains it.
# *Runs in* about a minute from the recorded runs; about six hours on two cores from nothing.
# Previous: [10 Process noise, and tuning](10_process_noise.ipynb) · Back to [00 Start here](00_start_here.ipynb)

# %% [markdown]
# ## Question
#
# The paper "K-Score" (Xia and Li) replaces Z-Score normalization of returns by a one-dimensional Kalman filter and reports faster and steadier training, from one run a setting.
# Which of its statements hold when every setting is run many times, with the same seeds in every arm?
#
# The arms, seeds, tests and verdict rules were written down before the first recorded run (`data/PLAN.md`, with a list of later changes).
# The text and the released code describe different methods, so every statement is held against both.
#
# After this report you can
#
# - look up any claim of the paper, with our number, its interval, its test and a verdict;
# - say how far two single runs can mislead;
# - say which of three explanations the data supports.

# %% [markdown]
# ## Setup

# %%
import time

import numpy as np
import pandas as pd
from IPython.display import Markdown

from kscore import (
    algorithms,
    claims,
    experiments,
    normalizers,
    plots,
    provenance,
    results,
    stats,
    study,
    training,
    verdicts,
)

started = time.perf_counter()
plots.use_style()

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seeds: int = 50               # runs an arm on CartPole [2, 10000]
lunar_seeds: int = 10         # runs an arm on LunarLander [2, 10000]
tuning_seeds: int = 8         # runs a cell of the grid [1, 1000]
first_seed: int = 1000        # the first of the result seeds [0, inf]
max_episodes: int = 500       # the cap on CartPole [1, 100000]
lunar_max_episodes: int = 1500  # the cap on LunarLander [1, 100000]
store: str = "data/runs"      # folder of the recorded runs; what it lacks is trained and appended
live_seeds: list[int] = [3000]  # seeds trained before your eyes; they enter no statistic [0, inf]

# %%
parts = experiments.experiments(seeds, lunar_seeds, tuning_seeds, first_seed, max_episodes, lunar_max_episodes)
explained_by = ["tuning_actor_critic_stream", "tuning_ppo_refit"]
needed = [name for name in parts if not name.startswith("tuning") or name in explained_by]
with study.processes() as executor:
    runs = {name: study.run(parts[name].configs, parts[name].seeds, f"{store}/{name}.jsonl", executor) for name in needed}
every = pd.concat(runs.values())

# %%
Markdown(f"This page rests on **{len(every):,} runs**, {every.steps.sum() / 1e6:,.0f} million environment steps, {every.seconds.sum() / 3600:.0f} hours of one core: "
         f"{(every.status == 'solved').sum():,} arrived, {(every.status == 'censored').sum():,} were censored, {(every.status == 'diverged').sum()} diverged. None was left out.")

# %% [markdown]
# ## Notation
#
# | word | meaning |
# |---|---|
# | arrive | the mean of the last 25 greedy evaluation returns reaches 475 (CartPole) or 200 (LunarLander) |
# | factor | restricted mean of the other arm's episodes over that of the K-Score; above 1 the K-Score is faster ([05](05_actor_critic_cartpole.ipynb)) |
# | stream | the filter is carried on and each return is scored by the belief that has just seen it: the paper's Algorithm 1 |
# | refit | a new filter every episode, whose final belief scores all of it: the released code |
# | innovation | each return is scored by the prediction made before seeing it; unit variance under the model ([03](03_from_filter_to_score.ipynb)) |
# | as written, as released | the pairing of arms that the text, or the released files, describe (table below) |
# | [low, high] | 95 % bootstrap interval over seeds |
# | q | a p-value adjusted over all claims on this page (Benjamini and Hochberg) |

# %% [markdown]
# ## The study at a glance
#
# Every form of the K-Score against the per-episode Z-Score of the same experiment.
# Right of the dotted line it is faster than the Z-Score, left of it slower.

# %%
glance = {"cartpole_reinforce": "REINFORCE", "cartpole_actor_critic": "Actor-critic", "cartpole_gae": "GAE, as released", "cartpole_gae_advantages": "GAE, advantages normalized",
          "cartpole_ppo": "PPO, advantages z-scored", "cartpole_ppo_switched": "PPO, advantages as they are", "lunarlander_actor_critic": "LunarLander, actor-critic", "lunarlander_ppo": "LunarLander, PPO"}
factors = {name: results.against(runs[name], "zscore", [arm for arm in parts[name].configs if arm in experiments.KALMAN_ARMS]) for name in glance}

# %% tags=["figure-file:study.png"]
fig, axes = plots.panels(4, 2, height=2.3, width=13.0, sharex=True)
for ax, (name, title) in zip(axes.flat, glance.items(), strict=True):
    plots.forest(plots.factors(factors[name]), ax)
    plots.label(ax, f"{title} (n = {len(parts[name].seeds)} an arm)", "improvement factor over the Z-Score" if ax in axes[-1] else "", "")
plots.show(fig, "The whole study: improvement factors (ratios of restricted means) of each form of the K-Score over the per-episode Z-Score, with 95 % intervals. The first six panels are CartPole.",
           "Eight forest plots of improvement factors. Refitted filters lie near 1 in most panels; streamed and innovation forms lie left of 1 in several.")

# %% [markdown]
# ## The rules
#
# A verdict is computed, not written. In short (the plan has the full text):
#
# 1. *A ranking* holds if the interval of the factor lies above 1 and q < 0.05. It does not hold if the interval lies below 1 with q < 0.05, or below 1.1 altogether. Otherwise it cannot be told; then the smallest factor is given that would have been found with 80 % probability.
# 2. *A size* holds if the interval contains the published factor and not 1; it does not hold if the interval does not contain the published factor; it cannot be told if the interval contains both.
# 3. *A number* from a single run holds if it could be one more of our runs: its position among them has p ≥ 0.05 and it lies within their range. It does not hold if p < 0.05. It cannot be told if it lies outside their range but n is too small.
# 4. *Stability*, the variance of the last 25 evaluation returns: holds if the probability of being the steadier one on a paired seed has its interval above 0.5 and q < 0.05; does not hold if the interval lies below 0.5 with q < 0.05, or below 0.55 altogether. *Early training* is judged in the same way.
# 5. *A trend* holds if the mean rank correlation over seeds has its interval above 0 and q < 0.05; does not hold if the interval lies below 0.1.
# 6. *A summary* holds if all its parts hold, and does not hold if one of them does not.

# %% [markdown]
# ## The claims
#
# Every figure, every table cell and every sentence of the paper that ranks methods.
# "..." continues the row above.

# %%
judged = claims.judge(claims.read(), {name: frame for name, frame in runs.items() if name not in explained_by})
symbols = {"holds": "✓ holds", "does not hold": "✗ does not hold", "cannot be told": "? cannot be told"}
columns = {"where": "where", "says": "claim", "published": "published", "written_found": "as written: found", "written_verdict": "as written", "released_found": "as released: found", "released_verdict": "as released"}
report = judged.replace({"written_verdict": symbols, "released_verdict": symbols})[list(columns)].rename(columns=columns)
left, heads = {"text-align": "left", "vertical-align": "top", "white-space": "normal"}, [{"selector": "th", "props": "text-align: left; vertical-align: top"}]
report.style.format(escape="html").set_properties(**left).set_table_styles(heads)

# %%
kinds = {"ranking": "rankings", "size": "sizes", "number": "single numbers", "stability": "stability", "early": "early training", "trend": "trend", "summary": "summaries"}
counted = pd.concat({reading: judged.groupby("kind", sort=False)[f"{reading}_verdict"].value_counts().unstack(fill_value=0) for reading in claims.READINGS}, axis=1)
counted = counted.reindex(columns=[(reading, verdict) for reading in claims.READINGS for verdict in symbols], fill_value=0).fillna(0).astype(int)
counted.rename(index=kinds, columns={"written": "as written", "released": "as released"})

# %% [markdown]
# Which pairing stands behind "as written" and "as released" for each claim: the file in `data/runs`, the K-Score's arm, and what it is held against.

# %%
judged[judged.kind == "ranking"][["says", "written", "released"]].style.format(escape="html").set_properties(**left).set_table_styles(heads)

# %% [markdown]
# ## How far a single run can mislead
#
# The paper's factors compare one run with one run.
# Suppose that the two methods were *the same*: draw two runs of one arm, and call the ratio of their times an improvement.
# How large does it get?
# (On LunarLander by training returns, which the published numbers use and which more runs meet.)

# %%
rng = np.random.default_rng(0)


def same_method_factors(times: stats.Times, draws: int = 100_000) -> np.ndarray:
    """Return the "improvement factors" of pairs of different runs of one arm, the longer over the shorter."""
    first = rng.integers(len(times.time), size=draws)
    second = (first + rng.integers(1, len(times.time), size=draws)) % len(times.time)
    pairs = times.time[np.stack([first, second])]
    return pairs.max(axis=0) / pairs.min(axis=0)


def published_factor(claim: str) -> float:
    """Return the published episodes of the Z-Score over those of the K-Score."""
    episodes = results.published(claim).drop_duplicates("normalizer").set_index("normalizer").episodes
    return episodes["zscore"] / episodes["kscore"]


places = {"Table 1, LunarLander": published_factor("T1b"), "Figures 1-2": published_factor("E1"), "Table 1, CartPole": published_factor("T1a")}
published = {f"{value:.3g} ({place})": value for place, value in places.items()}
same = {title: same_method_factors(results.times(runs[name], "zscore", "training" if name.startswith("lunar") else "evaluation")) for name, title in glance.items() if name not in ("cartpole_gae_advantages", "cartpole_ppo_switched")}

# %%
fig, ax = plots.panels(height=3.4, width=9.0)
ax.boxplot(list(same.values()), orientation="horizontal", whis=(2.5, 97.5), showfliers=False, medianprops={"color": plots.ORANGE, "linewidth": 2}, widths=0.6)
for text, value in published.items():
    ax.axvline(value, color=plots.INK, linewidth=1, linestyle=":")
    ax.annotate(text, (value, len(same) + 0.85), fontsize=8, ha="left", va="bottom", xytext=(3, 0), textcoords="offset points")
ax.set_yticks(range(1, len(same) + 1), list(same))
ax.set_xscale("log")
ax.set_xticks([1, 1.5, 2, 3, 4, 6, 10], ["1", "1.5", "2", "3", "4", "6", "10"])
ax.set_ylim(len(same) + 0.9, 0.4)
plots.label(ax, "Two runs of the same method, per-episode Z-Score (n = 100,000 pairs a row)", "longer over shorter", "")
plots.show(fig, "The improvement factor between two single runs of the SAME method: box, the middle half; whiskers, 95 %. Dotted: the published factors. A censored run counts as its cap.",
           "Horizontal box plots of ratios between pairs of runs of the same method for six experiments, with vertical lines at 1.32, 2.8 and 3.97.")

# %%
chance = pd.DataFrame({title: {text: np.mean(values >= value) for text, value in published.items()} | {"median": np.median(values)} for title, values in same.items()}).T
chance.style.format({text: "{:.0%}" for text in published} | {"median": "{:.2f}"})

# %% [markdown]
# Read: the share of pairs of runs of one and the same method whose times differ by the published factor or more.
# The better of two equal runs is then called an improvement.

# %% [markdown]
# ## What explains the results
#
# Three explanations were on the table before the study: the score's *scale* (a K-Score is larger than a Z-Score, chapter 03), its *shape* (within an episode the returns fall, and a filter with a short memory follows them, so that only the beginning is praised, chapter 03), and the *second normalization* of advantages (chapters 06 and 08).
# The arms of the study can tell them apart, because they mix these properties.
#
# What does each arm make of one and the same CartPole episode, 200 steps long, after a few others?
# Three numbers describe it: how well its scores correlate with the Z-Scores of the episode (shape), how large a share of the steps it praises (centre), and how large its scores are, as root mean square (size).

# %%
def portrait(options: dict) -> dict[str, float]:
    """Return shape, centre and size of the scores of a 200-step episode that follows shorter and equal ones."""
    normalizer = normalizers.make(**options)
    for steps in (20, 40, 80, 160, 200, 200):
        returns = algorithms.discounted_returns([1.0] * steps, 0.99)
        scores = normalizer(returns)
    return {"shape": np.corrcoef(scores, returns)[0, 1], "centre": np.mean(scores > 0), "size": np.sqrt(np.mean(scores**2))}


def portraits(name: str) -> pd.DataFrame:
    """Return the portrait of each arm of an experiment, with its restricted mean."""
    means = {arm: float(stats.restricted_mean(results.times(runs[name], arm), max_episodes)) for arm in parts[name].configs}
    return pd.DataFrame({arm: portrait(config.normalizer) | {"episodes": means[arm]} for arm, config in parts[name].configs.items()}).T


# %%
shown = {"REINFORCE": "cartpole_reinforce", "actor-critic": "cartpole_actor_critic", "PPO": "cartpole_ppo"}
pictures = {title: portraits(name) for title, name in shown.items()}
beside = pictures["actor-critic"][["shape", "centre", "size"]].assign(**{f"{title}, episodes": picture.episodes for title, picture in pictures.items()})
beside.sort_values("REINFORCE, episodes").rename(index={arm: look["label"] for arm, look in plots.METHODS.items()}).round({"shape": 2, "centre": 2, "size": 1} | {f"{title}, episodes": 0 for title in shown})

# %%
slow = {title: picture[picture["shape"] < 0.8] for title, picture in pictures.items()}
fast = {title: picture[picture["shape"] >= 0.8] for title, picture in pictures.items()}
Markdown("\n".join(f"- {title}: the arms whose shape agrees with the returns take {fast[title].episodes.min():.0f} to {fast[title].episodes.max():.0f} episodes, the others {slow[title].episodes.min():.0f} to {slow[title].episodes.max():.0f}." for title in shown))

# %% [markdown]
# **Shape first.** The two arms with a short memory, the simple stream and its innovation form, are the slowest everywhere.
# They differ in size and in whether they have seen the return that they judge; they share the shape.
# (The adaptive filter of PPO has other settings than the table shows; its own are in the code.)
#
# **Then the centre**, where nothing else provides one. REINFORCE has no critic: without normalization every step is praised, and that arm is the next slowest; with a critic the same arm is in the middle of the field.
#
# **Then the size**, where somebody has to learn it: PPO's critic. The next two pictures test shape and size on the grids of chapter 10, with twenty-five settings each.

# %%
fig, axes = plots.panels(1, 2, height=3.4, width=11.0, sharey=True)
grids = {"shape": ("tuning_actor_critic_stream", "Streamed K-Score, actor-critic", "correlation of the scores with the returns"), "size": ("tuning_ppo_refit", "Refitted K-Score, PPO", "root mean square of the scores")}
tested = {column: portraits(name).assign(R=[config.normalizer["R"] for config in parts[name].configs.values()]) for column, (name, _, _) in grids.items()}
for ax, (column, (_, title, words)) in zip(axes, grids.items(), strict=True):
    for (R, group), marker, color in zip(tested[column].groupby("R"), "osD^v", (plots.SKY, plots.BLUE, plots.PURPLE, plots.ORANGE, plots.RED), strict=True):
        ax.plot(group[column], group.episodes, marker=marker, color=color, linestyle="none", label=f"R = {R:g}")
    plots.label(ax, f"{title} (n = {tuning_seeds} tuning runs a mark)", words, "restricted mean (episodes)", legend=ax is axes[1])
axes[0].set_ylim(0, max_episodes * 1.02)
axes[1].set_xscale("log")
plots.show(fig, "Each mark is a cell of a grid over (Q, R). Left: the better the shape of the scores agrees with the returns, the faster. Right: the larger the targets that the critic has to learn, the slower.",
           "Two scatter plots of restricted mean episodes: against the shape of the streamed scores, and against the size of the refitted ones.")

# %%
shape_ranks, size_ranks = (float(tested[column][column].corr(tested[column].episodes, method="spearman")) for column in grids)
Markdown(f"Rank correlation with the episodes: shape {shape_ranks:+.2f}, size {size_ranks:+.2f} ({len(tested['shape'])} settings each).")

# %% [markdown]
# **The second normalization.** The same ten arms of PPO and GAE, with the advantages z-scored afterwards and as they are; restricted means in episodes:

# %%
twice = {("PPO", "z-scored"): "cartpole_ppo", ("PPO", "as they are"): "cartpole_ppo_switched", ("GAE", "z-scored"): "cartpole_gae", ("GAE", "as they are"): "cartpole_gae_switched"}
twice = pd.DataFrame({column: {arm: float(stats.restricted_mean(results.times(runs[name], arm), max_episodes)) for arm in parts[name].configs} for column, name in twice.items()})
twice.rename(index={arm: look["label"] for arm, look in plots.METHODS.items()}).round().astype(int)

# %%
gain = {learner: twice[learner]["as they are"] / twice[learner]["z-scored"] for learner in ("PPO", "GAE")}
Markdown("\n".join(f"- {learner}: z-scoring the advantages makes {np.sum(ratio > 1)} of {len(ratio)} arms faster, by a factor of {ratio.median():.2f} in the median; "
                   f"the slowest arm takes {twice[learner]['z-scored'].max() / twice[learner]['z-scored'].min():.1f} times as long as the fastest with it and {twice[learner]['as they are'].max() / twice[learner]['as they are'].min():.1f} times without." for learner, ratio in gain.items()))

# %% [markdown]
# So this step, which the text does not mention, is worth more than most choices of a normalizer, and it is worth it to the Z-Score as well.
# In GAE it brings all arms but those with the short memory and the simple refit close together: what the released GAE files compare is mostly two runs of this step.
# It rescues nobody from a bad shape: the two arms with the short memory stay last.
#
# **Tuning** changes little of this. On an equal budget of runs, no tuned filter is ahead of a tuned moving average ([10](10_process_noise.ipynb)).

# %% [markdown]
# ## About the released files
#
# Facts about files at commit `5667b45` of the repository that the paper names, and its history; they explain why "as written" and "as released" are different experiments.
#
# | what | text | released files |
# |---|---|---|
# | filter | carried on over episodes, each return scored by the belief at its step | a new filter every episode, its final belief scores all returns |
# | advantages | not mentioned | z-scored per episode in GAE, PPO and the LunarLander actor-critic, in the Kalman arm too |
# | PPO on CartPole, other arm | Z-Score | neither returns nor advantages are normalized; the output 77 is stored, no output shows 306 |
# | LunarLander of Table 1 | PPO, Z-Score 991 and K-Score 750 | two one-epoch actor-critics that both filter and stop on training returns; earlier versions read 1203 and 645 |
# | actor-critic on CartPole | the advantage is the return minus a critic's value | the normalized return alone; a critic is trained aside |
# | GAE | returns are filtered before they are used | advantages from raw rewards and values of normalized returns, then z-scored |
# | stopping | an average reaches the threshold | the mean of the last 25 evaluations, or of fewer |
# | one-step episodes | | their standard deviation is not a number |

# %% [markdown]
# ## A run that you can check
#
# A record holds everything that made it.
# We train one recorded run again, and one fresh seed of each of the two arms of the released actor-critic.

# %%
again = training.train(parts["cartpole_reinforce"].configs["adaptive_refit"], first_seed)
stored = runs["cartpole_reinforce"].query("arm == 'adaptive_refit' and seed == @first_seed").iloc[0]
same_run = np.array_equal(again["eval_returns"], stored.eval_returns)
fresh = {(arm, seed): training.train(parts["cartpole_reinforce"].configs[arm], seed) for seed in live_seeds for arm in ("zscore", "adaptive_refit")}
Markdown(f"Seed {first_seed} again: {again['episodes']} episodes, recorded {stored.episodes}; every evaluation return is {'the same' if same_run else 'not the same (another processor or library can round differently)'}.\n\n"
         + "\n".join(f"- fresh seed {seed}, {plots.METHODS[arm]['label']}: {record['status']} after {record['episodes']} episodes" for (arm, seed), record in fresh.items()))

# %% [markdown]
# ## What this does not show
#
# - Two small tasks, one protocol (one episode an update, released networks and step sizes). Nothing is said about large batches, continuous control or language models.
# - "As written" needs settings that the text does not give; the released ones are used, and chapter 10 tunes them for two learners.
# - LunarLander has few seeds an arm: it can rule out large differences only. Most of its runs do not arrive within the cap of 1,500 episodes, so that factors by the evaluation criterion lie close to 1 by construction; chapters 07 and 09 have the times by training returns beside them.
# - A verdict "does not hold" is about this protocol and these settings. It is no statement about Kalman filters in general, nor about how the published numbers came about.
# - The explanations above are supported by comparisons between arms that were fixed beforehand, but reading them together is ours.

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** An interval of [0.93, 1.08] with q = 0.6: what does the first rule say of the claim that A is faster?

# %% nbgrader={"grade": false, "grade_id": "11-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution"]
verdict = "..."
### BEGIN SOLUTION
verdict = "does not hold"  # whatever the advantage is, it is below a tenth
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "11-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check"]
assert verdict == verdicts.ranking(stats.Interval(1.0, 0.93, 1.08, 50), 0.6), "is the whole interval below 1.1?"
### BEGIN HIDDEN TESTS
assert verdict == "does not hold", "whatever the advantage is, it is below a tenth"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** Two runs of the same method are drawn, and whoever wins is called the new method. Write a function that returns the factor which is exceeded in one of ten such comparisons. What does it give for PPO, `same["PPO, advantages z-scored"]`?

# %% nbgrader={"grade": false, "grade_id": "11-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution"]
def one_in_ten(factors: np.ndarray) -> float:
    """Return the factor that one of ten comparisons exceeds."""
    ### BEGIN SOLUTION
    return float(np.quantile(factors, 0.9))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "11-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check"]
assert 1.8 < one_in_ten(np.linspace(1, 2, 1001)) < 2, "most comparisons lie below it"
### BEGIN HIDDEN TESTS
assert np.isclose(one_in_ten(np.append(np.ones(90), np.full(10, 3.0))), 1.0, atol=0.3), "ten of a hundred exceed it"
assert one_in_ten(np.full(5, 2.0)) == 2.0, "all comparisons alike"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (open).** Choose a ranking of the table whose verdict, as released, you doubt. Which interval of the factor, and which q, from a larger study would turn it? Say how that study should be made, and why you would expect such a result.

# %% nbgrader={"grade": false, "grade_id": "11-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution"]
doubted, larger_study, larger_q, reason = "", None, None, ""
### BEGIN SOLUTION
doubted, larger_study, larger_q = "E1.1", stats.Interval(1.2, 1.07, 1.34, 400), 0.01
reason = ("The interval of fifty seeds reaches well above 1, so that an advantage of a fifth is possible; four hundred seeds, the same in both arms and none of them used so far, "
          "would shrink it to about a third and find such an advantage if it is there.")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "11-3-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check"]
assert doubted in judged.index and judged.kind[doubted] == "ranking", "the name of a ranking, such as T1.4"
assert larger_study.low <= larger_study.estimate <= larger_study.high and 0 <= larger_q <= 1, "an interval around its estimate, and an adjusted p-value"
assert verdicts.ranking(larger_study, larger_q) != judged.released_verdict[doubted], "by the first rule this leaves the verdict as it is"
### BEGIN HIDDEN TESTS
assert larger_study.n > len(parts["cartpole_reinforce"].seeds), "a larger study has more seeds"
assert len(reason.split()) >= 20, "how it should be made, and why you would expect it"
### END HIDDEN TESTS

# %% [markdown]
# ## Summary

# %%
totals = {reading: judged[f"{reading}_verdict"].value_counts().reindex(list(symbols), fill_value=0) for reading in claims.READINGS}
rankings = {reading: judged[judged.kind == "ranking"][f"{reading}_verdict"].value_counts().reindex(list(symbols), fill_value=0) for reading in claims.READINGS}
Markdown("\n".join([f"- As {reading}: of {len(judged)} claims {total['holds']} hold, {total['does not hold']} do not, {total['cannot be told']} cannot be told; of the {rankings[reading].sum()} rankings "
                    f"{rankings[reading]['holds']} hold, {rankings[reading]['does not hold']} do not, {rankings[reading]['cannot be told']} cannot be told." for reading, total in totals.items()]
                   + [f"- Two runs of the same method differ by {chance['median'].min():.2f} to {chance['median'].max():.2f} in the median, depending on the experiment.",
                      f"- Over {len(tested['shape'])} settings each, the streamed filter is the faster the better the shape of its scores agrees with the returns (rank correlation {shape_ranks:+.2f}), and PPO with the refitted one the slower the larger its scores (rank correlation {size_ranks:+.2f})."]))

# %% [markdown]
# **References.** Z. Xia and Q. Li, *K-Score: Kalman Filter as a Principled Alternative to Reward Normalization in Reinforcement Learning*; the released repository at commit `5667b45`.
# R. Agarwal and co-authors, *Deep reinforcement learning at the edge of the statistical precipice*, NeurIPS (2021).
# P. Henderson and co-authors, *Deep reinforcement learning that matters*, AAAI (2018).
# Y. Benjamini and Y. Hochberg, *Controlling the false discovery rate* (1995).

# %%
provenance.footer(started, seeds=seeds, lunar_seeds=lunar_seeds, tuning_seeds=tuning_seeds, first_seed=first_seed, max_episodes=max_episodes, lunar_max_episodes=lunar_max_episodes, store=store, live_seeds=live_seeds)
