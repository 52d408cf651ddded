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
# Each number in that report comes from a single run, and the released code does something else than the text describes.
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
import time

import nbformat
import numpy as np
import pandas as pd
from IPython.display import Markdown, display

from kscore import DATA, NOTEBOOKS, filters, normalizers, plots, provenance

started = time.perf_counter()
plots.use_style()

# %% [markdown]
# ## Parameters
#
# Every chapter has one cell like the next: plain values, each with a type and a comment.
# Papermill replaces them when you ask for others.

# %% tags=["parameters"]
seed: int = 0             # of the simulated stream behind the table of what holds
lengths: list = [25, 60, 40]  # lengths of the three CartPole episodes in the picture
gamma: float = 0.99       # discount
Q: float = 1e-4           # drift of the filter in the picture, as released for CartPole
R: float = 1e-2           # noise of the filter in the picture, as released for CartPole

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

fig, (left, right) = plots.panels(1, 2, height=3.3, width=9)
left.plot(stream, color=plots.GREY, marker=".", markersize=3, linewidth=0.8, label="returns")
left.plot(running, **plots.method("running") | {"label": "running mean"})
left.plot(belief.mean, **plots.method("kscore") | {"label": "Kalman filter"})
plots.label(left, "Returns, and two opinions of their mean", "step, episode after episode", "return", legend=True)
for kind, options in kinds.items():
    normalizer = normalizers.make(**options)
    scores = np.concatenate([normalizer(returns) for returns in episodes])
    right.plot(scores / scores.std(), **plots.method(kind))
right.axhline(0, color=plots.INK, linewidth=0.6)
plots.label(right, "Scores, each in units of its own spread", "step, episode after episode", "score", legend=True)
for ax in (left, right):
    for start in np.cumsum(lengths)[:-1]:
        ax.axvline(start, color=plots.INK, linewidth=0.6, linestyle=":")
plots.show(fig, "Left: three CartPole episodes and two trackers of their mean. Right: what a policy gradient would be told about each step. Dotted lines are resets.",
           "Left: saw-tooth returns of three CartPole episodes with the running mean and the Kalman filter's belief. Right: the Z-Score and two forms of the K-Score of the same steps.")

# %% [markdown]
# The right-hand side is what matters: a step with a positive score is encouraged, one with a negative score discouraged.
# The Z-Score says "the first half of each episode was good".
# The K-Score as the paper describes it (*stream*) gives most of its praise to the steps right after a long episode begins.
# The K-Score as the released code computes it (*refit*) praises everything but the end.
# These are three different teachers, and chapter 03 looks at them closely.

# %% [markdown]
# ## The map
#
# | if you ... | read |
# |---|---|
# | have never met a Kalman filter | 01, with pencil and paper |
# | know the filter and want the facts about its steady state | 02 |
# | want to know what the score does to returns | 03 |
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
# | $r_t,\ \gamma$ | reward, discount | `rewards`, `gamma` | `(N,)`, number |
# | $G_t = r_t + \gamma G_{t+1}$ | discounted return | `returns` | `(N,)` |
# | $\hat G_t$ | score: the normalized return | `scores` | `(N,)` |
# | $\mu_t,\ \sigma_t$ | mean and standard deviation, of an episode or of all returns so far | `mean`, `var` | number |
# | $x_t,\ P_t$ | the filter's belief: mean and variance, after seeing $G_t$ | `belief.mean`, `belief.var` | number or `(time,)` |
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
# | R2 | released: in GAE and PPO the advantages are z-scored again afterwards |

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
# papermill notebooks/02_steady_state.ipynb build/my_steady_state.ipynb -k python3 -p seed 7 -p streams 10000
# ```
#
# **Teach.** Chapters are built as lessons: a question that could be answered either way, *predict the plot* before each figure, a failure on purpose, and exercises that check themselves.
# Solutions stand between `### BEGIN SOLUTION` and `### END SOLUTION`, in cells tagged `solution`.
# Chapters 01 and 02 make a lecture each; 03 makes a seminar.

# %% [markdown]
# ## What is known to hold
#
# The theory first.
# Nothing in this table is typed: each line is measured again whenever this page runs.

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

# %% [markdown]
# The column "measured" gives the deviation from the statement, or the value that contradicts it.

# %%
def statement(text: str, holds: bool, measured: str, chapter: str) -> dict:
    """Return one row of the table; the verdict is computed, not typed."""
    return {"statement": text, "verdict": "holds" if holds else "does not hold", "measured": measured, "chapter": chapter}


settled, follows = abs(fixed_point / steady.var - 1), np.abs(ema - path.mean).max()
falling = np.mean(np.concatenate([np.diff(returns) for returns in episodes]) < 0)
predicted = np.sqrt((1 - steady.gain) / steady.gain)
theory = pd.DataFrame([
    statement("P7: the variance settles at the stated P∞", settled < 1e-9, f"relative deviation {settled:.0e}", "02"),
    statement("D5: the settled filter is an EMA", follows < 1e-9, f"largest difference {follows:.0e}", "01, 02"),
    statement("the K-Score has unit variance, like a Z-Score", abs(kscores.std() - 1) < 0.02, f"standard deviation {kscores.std():.2f}; D2 predicts {predicted:.2f}", "03"),
    statement("the innovation form has unit variance", abs(innovations.std() - 1) < 0.02, f"standard deviation {innovations.std():.3f}", "03"),
    statement("P1 describes the returns of an episode", abs(falling - 0.5) < 0.1, f"CartPole: the return falls at {100 * falling:.0f} % of the steps, not at half of them", "03"),
    statement("a later z-scoring still sees that refit came before it", undone > 1e-5, f"largest difference {undone:.0e}", "03"),
])
theory.style.hide(axis="index")

# %% [markdown]
# And the experiments: every number that was published, with what we have recorded about it so far.
# *Episodes* means training episodes until the evaluation return reaches the threshold; lower is better.

# %%
published = pd.read_csv(DATA / "paper" / "published.csv")
recorded = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (DATA / "runs").glob("*.jsonl"))
pairs = published[published["id"] != "T2"].pivot_table(index=["id", "source", "environment", "algorithm"], columns="normalizer", values="episodes", sort=False)
pairs["best K-Score"] = pairs.filter(like="kscore").min(axis=1)
pairs["published factor"] = pairs["zscore"] / pairs["best K-Score"]
display(pairs.reset_index()[["id", "source", "environment", "algorithm", "zscore", "best K-Score", "published factor"]]
        .style.format(precision=2).format({"zscore": "{:.0f}", "best K-Score": "{:.0f}"}).hide(axis="index"))
Markdown(f"Runs recorded in `data/runs`: **{recorded}**." + ("" if recorded else " No experiment has been rerun yet, so nothing is known about these claims: neither that they hold nor that they do not."))

# %% [markdown]
# Two rows for E1, because the text and the released figures give different numbers; and a factor below one for E3, where the released curve of the Kalman run is the *longer* one.

# %% [markdown]
# ## When it fails: what one run can tell
#
# Suppose two methods are *exactly equal*, and the number of episodes each needs scatters from run to run by, say, 40 %.
# We run each once and divide.
# How large an "improvement" do we see, although there is none?

# %%
scatter = np.exp(rng.normal(0, 0.4, (2, 100_000)))
factors = (scatter.max(axis=0) / scatter.min(axis=0))
Markdown(f"Half of such pairs show a factor above **{np.median(factors):.2f}**, one in ten a factor above **{np.quantile(factors, 0.9):.2f}**, "
         f"with nothing behind it but chance (n = {factors.size:,} simulated pairs).")

# %% [markdown]
# The 40 % is an assumption for illustration, not a measurement; the experiments will replace it by the scatter that was measured.

# %% [markdown]
# ## What this does not show
#
# This page summarizes; the evidence is in the chapters.
# A line that "holds" in the first table holds for the setting named in the parameter cell; the chapters vary it.

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** Complete the function so that it computes one step's K-Score from the belief that has seen the return. What does it give when the return equals the belief's mean?

# %% tags=["solution"]
def kscore(G: float, belief: filters.Belief, eps: float = 1e-8) -> float:
    """Return the K-Score (P4) of one return."""
    ### BEGIN SOLUTION
    return (G - belief.mean) / np.sqrt(belief.var + eps)
    ### END SOLUTION


# %% tags=["check"]
assert np.isclose(kscore(5.0, filters.Belief(2.0, 9.0)), 1.0)
assert kscore(2.0, filters.Belief(2.0, 9.0)) == 0.0
assert np.isfinite(kscore(1.0, filters.Belief(0.0, 0.0))), "ε has to keep the division finite"

# %% [markdown]
# **Exercise 2 (apply).** Which rows of Table 2 of the paper (`published`, id T2) support its sentence that smaller values of $Q$ tend to speed up convergence? Compute the rank correlation of $Q$ and episodes (by hand or with pandas), and say what five single runs can tell.

# %% tags=["solution"]
rank_correlation = 0.0
### BEGIN SOLUTION
table2 = published[published["id"] == "T2"]
rank_correlation = table2["Q"].corr(table2["episodes"], method="spearman")
### END SOLUTION

# %% tags=["check"]
assert np.isclose(rank_correlation, 0.5)

# %% [markdown]
# **Exercise 3 (explore).** How many runs of each method are needed until the *median* of the first divided by the median of the second is within 10 % of the true ratio in nine of ten studies? Assume the scatter above.

# %% tags=["solution"]
def within_ten_percent(runs: int, studies: int = 2_000) -> float:
    """Return the share of simulated studies whose ratio of medians is within 10 % of one."""
    ### BEGIN SOLUTION
    simulated = np.exp(np.random.default_rng(1).normal(0, 0.4, (2, studies, runs)))
    ratio = np.median(simulated[0], axis=1) / np.median(simulated[1], axis=1)
    return np.mean(np.abs(ratio - 1) < 0.1)
    ### END SOLUTION


enough = 1
### BEGIN SOLUTION
enough = next(runs for runs in (1, 3, 10, 30, 100, 300, 1000) if within_ten_percent(runs) >= 0.9)
### END SOLUTION

# %% tags=["check"]
assert within_ten_percent(1) < 0.3
assert enough >= 30, "a handful of runs is not enough"

# %% [markdown]
# ## Summary

# %%
Markdown(f"""
- The K-Score subtracts a Kalman filter's belief from each return and divides by the filter's own uncertainty.
- Of {len(theory)} statements of theory tested here, {sum(theory["verdict"] == "holds")} hold and {sum(theory["verdict"] == "does not hold")} do not, at $Q$ = {Q:g}, $R$ = {R:g}.
- {len(published)} published numbers are on file, each from one run; {recorded} runs of ours are recorded.
- Two equal methods with a scatter of 40 % show a factor above {np.quantile(factors, 0.9):.2f} in one pair of single runs out of ten.
""")

# %% [markdown]
# **References.** Z. Xia and Q. Li, *K-Score: Kalman Filter as a Principled Alternative to Reward Normalization in Reinforcement Learning*, University of Bern.
# R. J. Williams, *Simple statistical gradient-following algorithms for connectionist reinforcement learning*, Machine Learning 8 (1992).

# %%
provenance.footer(started, seed=seed, lengths=lengths, gamma=gamma, Q=Q, R=R)
