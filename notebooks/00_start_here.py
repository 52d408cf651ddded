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
# # 00 Start here
#
# **Claim.** None yet: this page says what is asked, where the answers are, and how to use the collection.
#
# *For* everybody.
# *Know first:* that policy-gradient methods weigh actions by how well they turned out.
# *Runs in* a few seconds.
# Next: [01 Where the filter comes from](01_filter_derivation.ipynb)

# %% [markdown]
# ## Question
#
# A policy-gradient method plays an episode, computes for every step the discounted return $G_t$ that followed it, and makes the actions with high returns more likely.
# High compared with what?
# Raw returns have an arbitrary origin and an arbitrary size, so practically everybody *normalizes* them first: subtract a centre, divide by a scale.
# The usual choice is the **Z-Score**, with the mean and the standard deviation of the returns.
#
# Xia and Li propose another: the **K-Score**.
# Treat the returns as noisy observations of a slowly drifting mean, track that mean with a one-dimensional Kalman filter, subtract the filter's estimate and divide by the filter's own uncertainty.
# They report faster and steadier training on CartPole and LunarLander, up to four times as fast.
#
# Each number in that report comes from a single run, and the released code differs from the text in several places (R1 to R4 below).
# So three questions are open, and this collection is built around them:
#
# 1. **Is the theory right?** Does the filter do what the formulas say, and is it the right model of returns? (chapters 01 to 03)
# 2. **Do the experiments hold?** With many seeds, with intervals, as written and as released?
# 3. **If something works, why?** Is it the filter, or the scale, or something else that changed along with it?
#
# We do not know the answers in advance, and a negative one, well shown, is a result.
#
# After this chapter you can
#
# - say in two sentences what the K-Score is and what it claims;
# - find the chapter that answers your question, and run it with your own settings;
# - read the notation used everywhere else;
# - see at a glance what is known to hold today, what is not, and what has not been tried.

# %% [markdown]
# ## Setup

# %%
import itertools

import nbformat
import numpy as np
import pandas as pd
from IPython.display import Markdown, display

from kscore import chapters, figures, filters, normalizers
from kscore.project import DATA, NOTEBOOKS

chapter = chapters.begin("00_start_here")

# %% [markdown]
# ## Parameters
#
# Every chapter has one cell like the next: plain values, each with a type and a comment.
# Papermill replaces them when you ask for others.

# %% tags=["parameters"]
seed: int = 0             # of the simulated numbers behind the tables [0, 1000000000]
scatter: float = 0.4      # assumed run-to-run scatter (standard deviation of the logarithm) where single runs are compared [0.2, 0.6]
lengths: list[int] = [25, 60, 40]  # lengths of the three CartPole episodes in the picture [5, 1000], 1 to 6
gamma: float = 0.99       # discount [0.1, 0.999]
Q: float = 1e-4           # drift of the filter in the picture, as released for CartPole [1e-08, 100]
R: float = 1e-2           # noise of the filter in the picture, as released for CartPole [1e-08, 100]

# %%
rng = np.random.default_rng(seed)
episodes = [(1 - gamma ** (n - np.arange(n))) / (1 - gamma) for n in lengths]  # CartPole pays +1 a step: nothing else is possible

# %% [markdown]
# ## The question in one picture
#
# Here are three CartPole episodes in a row.
# CartPole pays +1 for every step until the pole falls, so an episode's returns start high and run down to 1, whatever the agent did in between.
#
# *Predict the plot:* a filter that expects a slowly drifting mean watches this stream. Where will it be too low, and where too high?

# %% tags=["figure-file:overview.png"]
stream = np.concatenate(episodes)
belief = filters.filter_series(stream, Q, R)
running = np.cumsum(stream) / np.arange(1, len(stream) + 1)
kinds = {"zscore": {"name": "zscore"}, "kscore": {"name": "kscore", "Q": Q, "R": R}, "refit": {"name": "kscore", "mode": "refit", "Q": Q, "R": R}}

fig, (left, right) = figures.panels(1, 2, height=3.3, width=9)
left.plot(stream, color=figures.GREY, marker=".", markersize=3, linewidth=0.8, label="returns")
left.plot(running, **figures.method("running") | {"label": "running mean"})
left.plot(belief.mean, **figures.method("kscore") | {"label": "Kalman filter"})
figures.label(left, "Returns, and two opinions of their mean", "step, episode after episode", "return", legend=True)
for kind, options in kinds.items():
    normalizer = normalizers.make(**options)
    scores = np.concatenate([normalizer(returns) for returns in episodes])
    right.plot(scores / scores.std(), **figures.method(kind))
right.axhline(0, color=figures.INK, linewidth=0.6)
figures.label(right, "Scores, each in units of its own spread", "step, episode after episode", "score", legend=True)
for ax in (left, right):
    for start in np.cumsum(lengths)[:-1]:
        ax.axvline(start, color=figures.INK, linewidth=0.6, linestyle=":")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Left: three CartPole episodes and two trackers of their mean. Right: what a "
    "policy gradient would be told about each step. Dotted lines are resets.",
    alt="Left: saw-tooth returns of three CartPole episodes with the running mean "
    "and the Kalman filter's belief. Right: the Z-Score and two forms of the "
    "K-Score of the same steps.")


# %% [markdown]
# The right-hand side is what matters: a step with a positive score is encouraged, one with a negative score discouraged.
# The Z-Score says "the first half of each episode was good".
# The K-Score as the paper describes it (*stream*) gives most of its praise to the steps right after an episode begins; only the very first episode gets none, because the filter, knowing nothing, adopts its first return as the mean.
# The K-Score as the released code computes it (*refit*) praises all but the last few steps.
# And the answer to the question above: the filter is too low after every reset, when returns have jumped, and too high from then on, because they fall while it follows.
# These are three different teachers, and chapter 03 looks at them closely.

# %% [markdown]
# ## The map
#
# | if you ... | read |
# |---|---|
# | have never met a Kalman filter | 01, with pencil and paper |
# | know the filter and want the facts about its steady state | 02 |
# | want to know what the score does to returns | 03 |
# | want to see it train, or to train with it | 04 |
# | want only the answer | the table "What is known to hold" below |
#
# The chapters, with the claim that each one tests, read from the notebooks themselves:

# %%
def opening(path) -> tuple[str, str]:
    """Return a chapter's title and its claim."""
    lines = nbformat.read(path, as_version=4).cells[0].source.splitlines()
    claim = next(line for line in lines if line.startswith("**Claim.**"))
    return lines[0].removeprefix("# "), claim.removeprefix("**Claim.** ")


rows = [(path.name, *opening(path)) for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))]
Markdown("| chapter | claim |\n|---|---|\n" + "\n".join(f"| [{title}]({name}) | {claim} |" for name, title, claim in rows))

# %% [markdown]
# ## Notation
#
# One table for the whole collection; chapters add only what is theirs.
#
# | symbol | meaning | in code | shape |
# |---|---|---|---|
# | $t,\ N$ | step, length of an episode | `t`, `len(returns)` | number |
# | $m_t$ | the latent mean that the filter tracks and nobody sees | `latent` | `(time,)` |
# | $z_t$ | an observation of it; in training, a return $G_t$ | `z` | `(time,)` |
# | $r_t,\ \gamma$ | reward, discount | `rewards`, `gamma` | `(N,)`, number |
# | $G_t = r_t + \gamma G_{t+1}$ | discounted return | `returns` | `(N,)` |
# | $\hat G_t$ | score: the normalized return | `scores` | `(N,)` |
# | $\mu_t,\ \sigma_t^2$ | mean and variance, of an episode or of all returns so far | `mean`, `var` | number |
# | $x_t,\ P_t$ | the filter's belief about $m_t$: mean and variance, after seeing $G_t$ | `belief.mean`, `belief.var` | number or `(time,)` |
# | $x_t^-,\ P_t^-$ | the same before seeing $G_t$ | `prior.mean`, `prior.var` | number or `(time,)` |
# | $Q,\ R$ | variance of the drift per step, variance of the observation noise | `Q`, `R` | number |
# | $K_t = P_t^-/(P_t^- + R)$ | gain | `gain` | number or `(time,)` |
# | $\nu_t = G_t - x_t^-$ | innovation: the surprise before learning from it | `z - prior_mean` | `(time,)` |
# | $S_t = P_t^- + R$ | the variance expected of the innovation | `prior_var + noise` | `(time,)` |
# | $P_\infty,\ K_\infty$ | steady state of variance and gain | `steady.var`, `steady.gain` | number |
# | $\alpha$ | memory of the adaptive noise level $R_t$ | `alpha` | number |
# | $\varepsilon$ | a small constant that keeps divisions finite | `eps` | number |
#
# Words, each for one thing: an *episode* is played once; a *return* is discounted and raw; a *score* is normalized; a *run* is one configuration with one seed; a *study* is many runs; a run that did not reach its goal is *censored*, never dropped.
#
# Labels such as P4, D2 or R1 number the facts we rely on: **P** for what the paper says, **D** for what follows but is not said there, **R** for where the released files (commit 5667b45 of the repository named in the paper's abstract) differ from the text.
# (The labels P1, R1 and so on are upright; the symbols $P_t$ and $R_t$ are not.)
#
# | label | fact |
# |---|---|
# | P1 | the model: a random walk seen through noise |
# | P2, P3 | predict and update |
# | P4 | the K-Score $(G_t - x_t)/\sqrt{P_t + \varepsilon}$, with the belief that has already seen $G_t$ |
# | P5 | the Z-Score $(G_t - \mu_t)/(\sigma_t + \varepsilon)$ |
# | P6 | the adaptive variant: $R_t = \alpha R_{t-1} + (1-\alpha)(G_t - x_{t-1})^2$, $\alpha = 0.9$ |
# | P7 | the steady state |
# | P8 | the sample mean of a stationary stream has the mean squared error $\sigma^2/t$ |
# | P9 | Algorithm 1: one filter, carried on through all steps and episodes |
# | D1 | the steady gain, and the rate $(1 - K_\infty)^2$ at which it is reached |
# | D2 | the K-Score's standard deviation is $\sqrt{(1-K)/K}$ |
# | D3 | returns of an episode are not a random walk through noise |
# | D4 | the order of samples changes their scores |
# | D5 | a settled filter is an exponential moving average with decay $1 - K_\infty$ |
# | R1 | released: a new filter every episode, whose *final* belief scores all returns (`refit`) |
# | R2 | released: in GAE, PPO and the LunarLander actor-critic the advantages are z-scored again afterwards |
# | R3 | released: the other arm of PPO on CartPole switches both normalizations off; no stored output shows Table 1's 306 |
# | R4 | released: the LunarLander notebooks whose outputs read 750 and 991 are actor-critic with one epoch, not PPO; both filter, and both stop on training returns |
# | R5 | released: the actor-critic on CartPole weights log-probabilities by the normalized return alone; the critic beside it is trained and not used |
# | R6 | the tutorial notebooks that the released code follows stop at 58 (CartPole) and 511 (LunarLander) episodes with PPO, Z-Score and the same seed |
# | R7 | released: the standard deviation of an episode of one step is not a number |
# | R8 | released: GAE builds its advantages from raw rewards and from values that were trained on normalized returns; the consistent reading, in which the advantages themselves go through the normalizer, is ours |

# %% [markdown]
# ## How to use the collection
#
# **Read.** Every chapter is published with its outputs: open it anywhere, from the first cell to the last, like a book. `make run` also writes an HTML page of each to `build/`.
#
# **Run.** `make lab` opens JupyterLab; the `.py` beside each notebook is the same chapter as plain text, and runs as a script.
#
# **Parameterize.** Any value in a chapter's parameter cell can be set from outside, for instance a longer simulation with another seed:
#
# ```
# .venv/bin/papermill notebooks/02_steady_state.ipynb build/my_steady_state.ipynb -k python3 -p seed 7 -p streams 10000
# ```
#
# **Teach.** Chapters are built as lessons: a question that could be answered either way, *predict the plot* before each figure, a failure on purpose, and exercises that check themselves.
# `kscore course student class` writes copies without the solutions, and `kscore course check` counts the points of a copy that has been filled in.
# Chapters 01 and 02 make a lecture each, 03 a seminar, 04 a practical.

# %% [markdown]
# ## What is known to hold
#
# The theory first.
# The verdicts and numbers are computed whenever this page runs.

# %%
steady = filters.steady_state(Q, R)
walk = np.cumsum(rng.normal(0, np.sqrt(Q), 50_000)) + rng.normal(0, np.sqrt(R), 50_000)
path = filters.filter_series(walk, Q, R, start=filters.Belief(0.0, steady.var))
kscores = (walk - path.mean) / np.sqrt(path.var)
innovations = (walk - path.prior_mean) / np.sqrt(path.prior_var + path.noise)
fixed_point = filters.filter_series(np.zeros(5_000), Q, R).var[-1]
ema = np.empty_like(walk)
level = 0.0
for t, z in enumerate(walk):
    ema[t] = level = (1 - steady.gain) * level + steady.gain * z
zscore, refit = normalizers.make("zscore"), normalizers.make(**kinds["refit"])
undone = max(np.abs(zscore(refit(returns)) - zscore(returns)).max() for returns in episodes)
streamed = normalizers.make(**kinds["kscore"])(stream)

# %% [markdown]
# The column "whose" tells what the paper states or assumes from what we derived.

# %%
def statement(text: str, source: str, holds: bool, measured: str, chapter: str) -> dict:
    """Return one row of the table."""
    return {"statement": text, "whose": source, "verdict": "holds" if holds else "does not hold", "measured": measured, "chapter": chapter}


def lag_one(values: np.ndarray) -> float:
    """Return the correlation of a series with itself one step later."""
    return np.corrcoef(values[:-1], values[1:])[0, 1]


settled, follows = abs(fixed_point / steady.var - 1), np.abs(ema - path.mean).max()
predicted = np.sqrt((1 - steady.gain) / steady.gain)
theory = pd.DataFrame([
    statement("P7: the variance settles at the stated P∞", "paper", settled < 1e-9, f"relative deviation {settled:.0e}", "02"),
    statement("P1 describes the returns of an episode", "paper", abs(lag_one(streamed)) < 0.1,
              f"lag-one autocorrelation of the K-Scores {lag_one(streamed):.2f} on the three episodes above, {lag_one(kscores):+.3f} under P1", "03"),
    statement("D5: the settled filter is an EMA", "ours", follows < 1e-9, f"largest difference {follows:.0e}", "01, 02"),
    statement("D2: the K-Score has the standard deviation √((1 − K)/K)", "ours", abs(kscores.std() / predicted - 1) < 0.02, f"{kscores.std():.2f}, predicted {predicted:.2f}", "03"),
    statement("the innovation form has unit variance", "ours", abs(innovations.std() - 1) < 0.02, f"standard deviation {innovations.std():.3f}", "03"),
    statement("a later z-scoring undoes refit", "ours", undone < 1e-5, f"largest difference {undone:.0e}", "03"),
])
theory.style.hide(axis="index")

# %% [markdown]
# And the experiments: the comparisons that the text states, and those read off the released figures and files (approximate).
# The numbers are training episodes until the evaluation return reaches the threshold; lower is better.
# The column heads follow the paper; R3 and R4 above say what the released notebooks behind Table 1 contain.

# %%
published = pd.read_csv(DATA / "paper" / "published.csv").query("id != 'R6'")  # R6 is the public tutorial's
recorded = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (DATA / "runs").glob("*.jsonl"))
pairs = published[published["id"] != "T2"].pivot_table(index=["id", "source", "environment", "algorithm"], columns="normalizer", values="episodes", sort=False)
pairs["best K-Score"] = pairs.filter(like="kscore").min(axis=1)
pairs["published factor"] = pairs["zscore"] / pairs["best K-Score"]
display(pairs.reset_index()[["id", "source", "environment", "algorithm", "zscore", "best K-Score", "published factor"]]
        .style.format({"zscore": "{:.0f}", "best K-Score": "{:.0f}"}, precision=2).hide(axis="index"))
Markdown(f"Each of these numbers comes from one run. Ours come from **{recorded:,}** runs, recorded in `data/runs` by the plan in `data/PLAN.md`; chapters 05 to 11 show what they say.")

# %% [markdown]
# Two rows for E1, because the text and the released figures give different numbers.
# For E3 the length of the released training curve is taken for the number; the curve of the Kalman run is the *longer* one, so the factor is below one.
# Table 2 (five settings of $Q$) is in `data/paper/published.csv` too, and in exercise 2.

# %% [markdown]
# ## When it fails: what one run can tell
#
# Suppose two methods are *exactly equal*, and the number of episodes each needs scatters from run to run, with the standard deviation `scatter` of its logarithm.
# We run each once and divide the larger number by the smaller.
# How large a factor do we see, although there is none?

# %%
single_runs = np.exp(rng.normal(0, scatter, (2, 100_000)))
factors = single_runs.max(axis=0) / single_runs.min(axis=0)
Markdown(f"Half of such pairs differ by more than a factor **{np.median(factors):.2f}**, one in ten by more than **{np.quantile(factors, 0.9):.2f}**, "
         f"with nothing behind it but chance; in favour of a method named beforehand, half as often (n = {factors.size:,} simulated pairs).")

# %% [markdown]
# The scatter is an assumption for illustration, not a measurement.

# %% [markdown]
# ## What this does not show
#
# This page summarizes; the evidence is in the chapters.
# A line that "holds" in the first table holds for the setting named in the parameter cell; the chapters vary it.

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** Complete the function so that it computes one step's K-Score from the belief that has seen the return. What does it give when the return equals the belief's mean?

# %% tags=["stub"]
def kscore(G: float, belief: filters.Belief, eps: float = 1e-8) -> float:
    """Return the K-Score (P4) of one return."""


# %% nbgrader={"grade": false, "grade_id": "00-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def kscore(G: float, belief: filters.Belief, eps: float = 1e-8) -> float:
    """Return the K-Score (P4) of one return."""
    ### BEGIN SOLUTION
    return (G - belief.mean) / np.sqrt(belief.var + eps)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "00-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert np.isclose(kscore(5.0, filters.Belief(2.0, 9.0)), 1.0)
assert kscore(2.0, filters.Belief(2.0, 9.0)) == 0.0
assert np.isclose(kscore(1.0, filters.Belief(0.0, 0.0)), 1e4), "ε stands inside the square root"
### BEGIN HIDDEN TESTS
assert np.isclose(kscore(-4.0, filters.Belief(2.0, 4.0)), -3.0), "a return below the belief has a score below zero"
assert np.isclose(kscore(1.0, filters.Belief(0.0, 3.0), eps=1.0), 0.5), "the ε that is passed in counts"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** Which rows of Table 2 of the paper (`published`, id T2) support its sentence that smaller values of $Q$ tend to speed up convergence? Compute the rank correlation of $Q$ and episodes (by hand or with pandas), and the share of all orders of five numbers that have at least this correlation by chance.

# %% tags=["stub"]
rank_correlation, by_chance = 0.0, 0.0

# %% nbgrader={"grade": false, "grade_id": "00-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
rank_correlation, by_chance = 0.0, 0.0
### BEGIN SOLUTION
table2 = published[published["id"] == "T2"]
rank_correlation = table2["Q"].corr(table2["episodes"], method="spearman")
all_orders = [np.corrcoef(range(5), order)[0, 1] for order in itertools.permutations(range(5))]
by_chance = np.mean(np.array(all_orders) >= rank_correlation - 1e-9)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "00-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert -1 <= rank_correlation <= 1 and rank_correlation != 0, "a correlation, from the five rows of Table 2"
assert 0 < by_chance < 1 and np.isclose(120 * by_chance, round(120 * by_chance)), "five numbers have 120 orders"
### BEGIN HIDDEN TESTS
assert np.isclose(rank_correlation, 0.5), "the correlation of the ranks, not of the numbers"
assert np.isclose(by_chance, 27 / 120), "at least this correlation: as good as it, or better"
### END HIDDEN TESTS

# %% [markdown]
# The sign agrees with the sentence, but more than a fifth of all orders would look as good; and among the three smallest $Q$ the order runs the other way.

# %% [markdown]
# **Exercise 3 (explore).** How many runs of each method (to the next ten) are needed until the *median* of the first divided by the median of the second is within 10 % of the true ratio in nine of ten studies? Assume the scatter above.

# %% tags=["stub"]
def within_ten_percent(runs: int, studies: int = 2_000) -> float:
    """Return the share of simulated studies whose ratio of medians is within 10 % of one."""


enough = 1


# %% nbgrader={"grade": false, "grade_id": "00-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def within_ten_percent(runs: int, studies: int = 2_000) -> float:
    """Return the share of simulated studies whose ratio of medians is within 10 % of one."""
    ### BEGIN SOLUTION
    simulated = np.exp(np.random.default_rng(1).normal(0, scatter, (2, studies, runs)))
    ratio = np.median(simulated[0], axis=1) / np.median(simulated[1], axis=1)
    return np.mean(np.abs(ratio - 1) < 0.1)
    ### END SOLUTION


enough = 1
### BEGIN SOLUTION
enough = next(runs for runs in range(10, 1000, 10) if within_ten_percent(runs) >= 0.9)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "00-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert 0.05 < within_ten_percent(1) < 0.3
assert within_ten_percent(enough) >= 0.88 and within_ten_percent(enough // 2) < 0.88
### BEGIN HIDDEN TESTS
assert enough % 10 == 0, "to the next ten"
assert within_ten_percent(2_000, studies=200) > 0.99, "with very many runs hardly any study is far off"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** Before you read on: by which factor do you expect the K-Score to be faster than the Z-Score, over many seeds? Between which ends would you bet nine to one that the factor lies? And which result would change your mind? Write it down now; you will want to look it up later.

# %% tags=["stub"]
guess, low, high = None, None, None
change_of_mind = ""

# %% nbgrader={"grade": true, "grade_id": "00-4", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
guess, low, high = None, None, None
change_of_mind = ""
### BEGIN SOLUTION
guess, low, high = 1.0, 0.5, 2.0
change_of_mind = "An interval over many seeds that lies outside of mine as a whole, in more than one experiment; a single run would not."
### END SOLUTION

# %% nbgrader={"grade": false, "grade_id": "00-4-check", "locked": true, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert guess is not None and 0 < low < guess < high, "three numbers: the lower end, the guess and the upper end, in this order"
assert len(change_of_mind.split()) >= 10, "a sentence or two, please"

# %% [markdown]
# ## Summary

# %%
Markdown(f"""
- The K-Score subtracts a Kalman filter's belief from each return and divides by the filter's own uncertainty.
- The formulas hold to rounding (P7: {settled:.0e}); the model behind them does not describe the returns of an episode.
- {len(published)} published numbers are on file, each from one run; {recorded:,} runs of ours are recorded.
- Two equal methods with a scatter of {scatter:g} differ by more than a factor {np.quantile(factors, 0.9):.2f} in one pair of single runs out of ten.
""")

# %% [markdown]
# **References.** Z. Xia and Q. Li, *K-Score: Kalman Filter as a Principled Alternative to Reward Normalization in Reinforcement Learning*, University of Bern.
# R. J. Williams, *Simple statistical gradient-following algorithms for connectionist reinforcement learning*, Machine Learning 8 (1992).

# %%
chapter.footer()
