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
# **Question.** What is the K-Score, what is claimed for it, and what would it take to believe the claim?
#
# *For* everybody.
# *Know first:* that a policy-gradient method makes an action more or less likely, depending on how well it turned out.
# *Runs in* a few seconds.
# Next: [01 Where the filter comes from](01_filter_derivation.ipynb)

# %% [markdown]
# ## Question
#
# A policy-gradient method plays an episode, computes for every step the discounted return $G_t$ that followed it, and makes actions with high returns more likely.
# High compared with what?
# Raw returns have an arbitrary origin and an arbitrary size, so practically everybody *normalizes* them first: subtract a centre, divide by a scale.
# The usual choice is the **Z-Score**, with the mean and the standard deviation of the returns.
#
# Xia and Li propose another, the **K-Score**.
# Treat the returns as noisy observations of a slowly drifting mean, track that mean with a one-dimensional Kalman filter, subtract the filter's estimate, and divide by the filter's own uncertainty.
# They report faster and steadier training on CartPole and LunarLander, up to four times as fast.
#
# It is an attractive idea.
# A filter forgets at a rate that can be derived rather than guessed, and it knows how sure it is; both sound like what a changing policy needs.
# It would fail if returns did not behave as the filter assumes, if a simpler average did as well, or if the reported differences were no larger than luck.
# Three questions decide, and this collection is built around them:
#
# 1. **Is the theory right?** Does the filter do what the formulas say, and do they describe the returns of an episode? (chapters 01 to 04)
# 2. **Do the experiments hold?** With many seeds and with intervals, both *as written* in the paper and *as released* in its files? (chapters 05 to 09)
# 3. **If something works, why?** Is it the filter, or its scale, or something that changed along with it? (chapters 10 and 11)
#
# A negative answer, well shown, is a result too.
# Chapters 12 to 18 then leave the paper behind. They ask where in all this a filter would be at home and who is to set its two knobs, hold it against its relatives, disturb what it is told, and end with the question that most readers bring: what should I use?
#
# After this chapter you can
#
# - say in two sentences what the K-Score is and what is claimed for it;
# - judge how much a comparison of two single runs can tell;
# - find the chapter that answers your question, and run it with your own settings;
# - read the notation that all chapters share.
#
# This page keeps the results back, because a guess made beforehand is worth more than an opinion formed afterwards.
# If you would rather have the answer first, it is on [the page of answers](../docs/answer.md).

# %% [markdown]
# ## Setup

# %%
import itertools

import nbformat
import numpy as np
import pandas as pd
from IPython.display import Markdown

from kscore import chapters, figures, filters, normalizers
from kscore.project import DATA, NOTEBOOKS

chapter = chapters.begin("00_start_here")

# %% [markdown]
# ## Parameters
#
# Every chapter has one cell like the one below: plain values, each with a type, a comment and its allowed range.
# You can set any of them from outside; "How to use the collection" below says how.

# %% tags=["parameters"]
seed: int = 0             # of the simulated pairs of runs [0, 1000000000]
scatter: float = 0.4      # assumed scatter of single runs, in logarithms [0.2, 0.6]
lengths: list[int] = [25, 60, 40]  # of the episodes in the picture [5, 1000], 1 to 6
gamma: float = 0.99       # discount [0.1, 0.999]
Q: float = 1e-4           # drift of the filter, as released for CartPole [1e-08, 100]
R: float = 1e-2           # noise of the filter, as released for CartPole [1e-08, 100]

# %% [markdown]
# ## The question in one picture
#
# Here are three CartPole episodes in a row.
# CartPole pays +1 for every step until the pole falls, so with the discount $\gamma$ the return of step $t$, in an episode of $N$ steps, is $(1 - \gamma^{N - t})/(1 - \gamma)$.
# It depends on nothing but the number of steps still to come, $N - t$.
# The returns of an episode start high and run down to 1, whatever the agent did in between.
#
# Beside them we put a running mean and a Kalman filter.
# The filter has two settings, the variance $Q$ of the drift that it expects at each step and the variance $R$ of the noise; both are the ones released for CartPole.

# %%
episodes = [(1 - gamma ** (N - np.arange(N))) / (1 - gamma) for N in lengths]
stream = np.concatenate(episodes)
running_mean = np.cumsum(stream) / np.arange(1, len(stream) + 1)
belief = filters.filter_series(stream, Q, R)

# %% [markdown]
# The running mean and the filter are two opinions about where the middle of this stream lies.
# A normalizer turns such an opinion into a score for every step.
# We compare three: the Z-Score; the K-Score as the paper describes it, with one filter that runs on through all episodes (*stream*); and the K-Score as the released files compute it, with a new filter for each episode, whose last belief scores all of its steps (*refit*).

# %%
kinds = {
    "zscore": normalizers.make("zscore"),
    "kscore": normalizers.make("kscore", Q=Q, R=R),
    "refit": normalizers.make("kscore", mode="refit", Q=Q, R=R),
}
scores = {kind: np.concatenate([normalizer(returns) for returns in episodes])
          for kind, normalizer in kinds.items()}

# %% [markdown]
# *Predict the plot:* a filter that expects a slowly drifting mean watches this stream.
# Where will it be too low, and where too high?
# And which steps of an episode will each normalizer praise?

# %% tags=["figure-file:overview.png", "hide-input"]
fig, (left, right) = figures.panels(1, 2, height=3.3, width=9)
left.plot(stream, color=figures.GREY, marker=".", markersize=3, linewidth=0.8,
          label="returns")
left.plot(running_mean, **figures.method("running") | {"label": "running mean"})
left.plot(belief.mean, **figures.method("kscore") | {"label": "Kalman filter"})
figures.label(left, "Returns, and two opinions of their mean",
              "step, episode after episode", "return", legend=True)
for kind, values in scores.items():
    right.plot(values / values.std(), **figures.method(kind))
right.axhline(0, color=figures.INK, linewidth=0.6)
figures.label(right, "Scores, each in units of its own spread",
              "step, episode after episode", "score", legend=True)
for ax in (left, right):
    for start in np.cumsum(lengths)[:-1]:
        ax.axvline(start, color=figures.INK, linewidth=0.6, linestyle=":")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"Left: {len(lengths)} CartPole episodes and two trackers of their mean. Right: "
    "what a policy gradient would be told about each step. A dotted line marks the "
    "start of an episode.",
    alt="Left: the returns of CartPole episodes fall to one and jump up again, like a "
    "saw-tooth; the running mean creeps behind them, the Kalman filter follows them "
    "with a lag. Right: the Z-Score and two forms of the K-Score of the same steps, "
    "mostly high at the start of an episode and low at its end; the streamed K-Score "
    "begins at zero.")

# %% [markdown]
# The right-hand side is what the policy gets to hear: a step with a positive score is encouraged, one with a negative score discouraged.
# The Z-Score says that roughly the first half of each episode was good.
# The streamed K-Score saves most of its praise for the steps just after an episode begins; the very first episode gets none, because the filter, knowing nothing, takes its first return for the mean.
# The refitted K-Score praises all but the closing steps of an episode, because the belief that scores them has already come down with the returns.
# And the filter on the left is too low at the start of each new episode, when returns have just jumped; once it has caught up it is too high, because they fall while it follows.
#
# Shown the same three episodes, then, the three normalizers disagree about which steps deserve praise.
# Chapters 03 and 04 ask what such a disagreement does to learning.

# %% [markdown]
# ## What the paper reports
#
# The next table holds the comparisons that the paper's text states, and those that we read, approximately, off the released figures and files.
# E1 to E4 are the paper's experiments; T1a and T1b are the two environments of its Table 1.
# A number counts training episodes until the evaluation return reaches a threshold, so lower is better, and the published factor says how many times as long the Z-Score took.

# %% tags=["hide-input"]
everything = pd.read_csv(DATA / "paper" / "published.csv")
published = everything[everything["id"] != "R6"]  # R6 is the public tutorial's
pairs = published[published["id"] != "T2"].pivot_table(
    index=["id", "source", "environment", "algorithm"], columns="normalizer",
    values="episodes", sort=False)
pairs = pd.DataFrame({
    "Z-Score": pairs["zscore"],
    "best K-Score": pairs.filter(like="kscore").min(axis=1)})
pairs["published factor"] = pairs["Z-Score"] / pairs["best K-Score"]
(pairs.reset_index().style.hide(axis="index").format(precision=0)
 .format("{:.2f}", subset="published factor"))

# %% [markdown]
# There are two rows for E1, because the text and the released figures give different numbers.
# For E3 the number is the length of the released training curve; the Kalman run has the *longer* one, hence a factor below one.
# The column heads follow the paper; R3 and R4 in the table of facts below say what the released notebooks behind Table 1 contain.
# Table 2 (five settings of $Q$) is in `data/paper/published.csv` too, and in exercise 2.
#
# Every one of these numbers comes from a single run.

# %% [markdown]
# ## When it fails: what one run can tell
#
# Suppose two methods are *exactly equal*, and the number of episodes that each needs scatters from run to run: its logarithm has the standard deviation `scatter`.
# We run each of them once and divide the larger number by the smaller.
#
# *Predict the number:* which factor is exceeded in half of all such pairs, although there is no difference to be found? And which in one pair out of ten?

# %%
rng = np.random.default_rng(seed)
single_runs = np.exp(rng.normal(0, scatter, (2, 100_000)))
factors = single_runs.max(axis=0) / single_runs.min(axis=0)
half, one_in_ten = np.quantile(factors, [0.5, 0.9])

# %% tags=["hide-input"]
Markdown(
    f"Half of such pairs differ by more than a factor of **{half:.2f}**, one in ten by "
    f"more than **{one_in_ten:.2f}**, with nothing behind it but chance; in favour of "
    f"a method named beforehand, half as often (n = {factors.size:,} simulated pairs).")

# %% [markdown]
# The scatter is an assumption here, for illustration; chapter 11 measures it.
# But the lesson does not depend on its exact size: a factor from one run each is an anecdote.

# %% tags=["hide-input"]
records = sorted((DATA / "runs").glob("*.jsonl"))
recorded = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in records)
Markdown(
    f"That is why the chapters from 05 on look at **{recorded:,}** runs. They are "
    "recorded in `data/runs`, and follow a plan, `data/PLAN.md`, that names the arms, "
    "the seeds and the rules of judgement.")

# %% [markdown]
# ## Before you read on
#
# You have seen the idea, the claim, and what luck alone can do.
# Now commit yourself, on paper or in exercise 4: by which factor is the K-Score faster than the Z-Score, over many seeds?
# Between which two numbers would you bet nine to one that it lies?
# The answers are worth more once you have something to compare them with.
#
# With your guess written down you may let [two policies learn before your eyes](http://localhost:8000/#a=zscore), one with each normalizer: once, and then with twenty seeds.
# (`make play` builds that page, and `python3 -m http.server -d build/play` serves it.)

# %% [markdown]
# ## The map
#
# | if you ... | read |
# |---|---|
# | have never met a Kalman filter | 01, with pencil and paper |
# | know the filter and want the facts about its steady state | 02 |
# | want to know what the score does to returns | 03 |
# | want to see it train, or to train with it | 04 |
# | want to see how one experiment is taken apart | 05 |
# | want to know where a Kalman filter is at home in all this | 12 |
# | wonder where $Q$ and $R$ are to come from | 13 |
# | use PopArt, `VecNormalize` or GRPO, and want to see them side by side | 15 |
# | have a dial instead of buttons | 16 |
# | have noisy rewards, short episodes, or a world that changes | 14 |
# | want to know which normalizer wins if each may choose its learning rate | 17 |
# | have a training script of your own | 18 |
# | want only the answer | [the page of answers](../docs/answer.md) |
#
# These are the chapters, each with the question it asks, read from the notebooks themselves:

# %% tags=["hide-input"]
def opening(path) -> tuple[str, str]:
    """Return a chapter's title and its question."""
    lines = nbformat.read(path, as_version=4).cells[0].source.splitlines()
    asked = [line.removeprefix("**Question.**").strip() for line in lines
             if line.startswith("**Question.**")]
    return lines[0].removeprefix("# "), " ".join(asked)


others = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))[1:]
rows = [(path.name, *opening(path)) for path in others]
Markdown("| chapter | question |\n|---|---|\n" + "\n".join(
    f"| [{title}]({name}) | {question} |" for name, title, question in rows))

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
# One word for one thing: an *episode* is played once; a *return* is discounted and raw; a *score* is normalized; a *run* is one configuration with one seed; a *study* is many runs; a run that did not reach its goal is *censored*, never dropped.
# *As written* means according to the paper's text, *as released* according to the released files.
# The [glossary](../docs/glossary.md) has the rest.
#
# Labels such as P4, D2 or R1 number the facts we rely on: **P** for what the paper says, **D** for what follows from it but is not said there, **R** for where the released files (commit 5667b45 of the repository named in the paper's abstract) differ from the text.
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
# | D3 | how the returns of an episode differ from the model |
# | D4 | the order of samples changes their scores |
# | D5 | a settled filter is an exponential moving average with decay $1 - K_\infty$ |
# | R1 | released: a new filter every episode, whose *final* belief scores all returns (`refit`) |
# | R2 | released: in GAE, PPO and the LunarLander actor-critic the advantages are z-scored again afterwards |
# | R3 | released: the other arm of PPO on CartPole switches both normalizations off; no stored output shows Table 1's 306 |
# | R4 | released: the LunarLander notebooks whose outputs read 750 and 991 are actor-critic with one epoch, not PPO; both filter, and both stop on training returns |
# | R5 | released: the actor-critic on CartPole weights log-probabilities by the normalized return alone; the critic beside it is trained and not used |
# | R6 | the tutorial notebooks that the released code follows stop at 58 (CartPole) and 511 (LunarLander) episodes with PPO, Z-Score and the same seed |
# | R7 | released: the standard deviation of an episode of one step is not a number |
# | R8 | released: GAE builds its advantages from raw rewards and from values that were trained on normalized returns; the variant with advantages normalized instead of returns is ours |

# %% [markdown]
# ## How to use the collection
#
# **Read.** Every chapter is published with its outputs: open it anywhere, and read it from the first cell to the last, like a book.
# Code that only draws or prints is folded; what stays visible is meant to be read.
#
# **Run.** `make lab` opens JupyterLab, `make run` executes all chapters and builds a site of them, `build/index.html`.
# The `.py` beside each notebook is the same chapter as plain text, and runs as a script.
#
# **Change.** Any value in a chapter's parameter cell can be set from outside, for instance to simulate more streams, with another seed:
#
# ```
# .venv/bin/kscore run 02 -p seed 7 -p streams 10000 --out build/mine
# ```
#
# **Teach.** Chapters are built as lessons: a question that could be answered either way, *predict the plot* before each figure, a failure on purpose, and exercises that check themselves.
# `make student` opens copies without the solutions, and `.venv/bin/kscore course check` counts the points of a copy that has been filled in.
# [Teaching with the collection](../docs/course.md) has plans for half a day and for four weeks.

# %% [markdown]
# ## What this does not show
#
# Nothing on this page is evidence for or against the K-Score.
# The picture shows three made-up episodes of one environment, the table repeats what others have published, and the simulated pairs of runs only say how much scatter can pretend to be an effect.

# %% [markdown]
# ## Exercises
#
# Each exercise has a cell to fill in, and a check that passes or complains by itself.
#
# **Exercise 1 (recall).** Complete the function so that it computes the K-Score of one step, from the belief that has already seen the return. What does it give when the return equals the belief's mean?

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
assert np.isclose(kscore(5.0, filters.Belief(2.0, 9.0)), 1.0), \
    "a return of 5 is one standard deviation above a belief of 2 with variance 9"
assert kscore(2.0, filters.Belief(2.0, 9.0)) == 0.0, \
    "a return that equals the belief's mean is no surprise at all"
assert np.isclose(kscore(1.0, filters.Belief(0.0, 0.0)), 1e4), \
    "ε belongs inside the square root"
### BEGIN HIDDEN TESTS
assert np.isclose(kscore(-4.0, filters.Belief(2.0, 4.0)), -3.0), \
    "a return below the belief has a score below zero"
assert np.isclose(kscore(1.0, filters.Belief(0.0, 3.0), eps=1.0), 0.5), \
    "the ε that is passed in counts"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** Does Table 2 of the paper (the rows of `published` whose `id` is T2) support the sentence that smaller values of $Q$ tend to speed up convergence? Compute the rank correlation of $Q$ and episodes, by hand or with pandas. Then go through all orders of five numbers and compute the share whose correlation is at least as large: that is how often chance would do as well.

# %% tags=["stub"]
rank_correlation, by_chance = 0.0, 0.0

# %% nbgrader={"grade": false, "grade_id": "00-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
rank_correlation, by_chance = 0.0, 0.0
### BEGIN SOLUTION
table2 = published[published["id"] == "T2"]
rank_correlation = table2["Q"].corr(table2["episodes"], method="spearman")
all_orders = [np.corrcoef(range(5), order)[0, 1]
              for order in itertools.permutations(range(5))]
by_chance = np.mean(np.array(all_orders) >= rank_correlation - 1e-9)
# The sign agrees with the sentence, but more than a fifth of all orders would look
# as good; and among the three smallest Q the order runs the other way.
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "00-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert -1 <= rank_correlation <= 1 and rank_correlation != 0, \
    "a correlation, from the five rows of Table 2"
assert 0 < by_chance < 1 and np.isclose(120 * by_chance, round(120 * by_chance)), \
    "five numbers have 120 orders"
### BEGIN HIDDEN TESTS
assert np.isclose(rank_correlation, 0.5), \
    "the correlation of the ranks, not of the numbers"
assert np.isclose(by_chance, 27 / 120), \
    "at least this correlation: as good as it, or better"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (explore).** How many runs of each method are needed until the *median* of the first divided by the median of the second lies within 10 % of the true ratio in nine of ten studies? Assume two equal methods (the true ratio is one) with the scatter above. Complete the function, and put the number, rounded up to a multiple of ten, into `enough`.

# %% tags=["stub"]
def within_ten_percent(runs: int, studies: int = 2_000) -> float:
    """Return the share of studies whose ratio of medians is within 10 % of one."""


enough = 1


# %% nbgrader={"grade": false, "grade_id": "00-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def within_ten_percent(runs: int, studies: int = 2_000) -> float:
    """Return the share of studies whose ratio of medians is within 10 % of one."""
    ### BEGIN SOLUTION
    draws = np.random.default_rng(1).normal(0, scatter, (2, studies, runs))
    first, second = np.median(np.exp(draws), axis=2)
    return np.mean(np.abs(first / second - 1) < 0.1)
    ### END SOLUTION


enough = 1
### BEGIN SOLUTION
enough = next(runs for runs in range(10, 1000, 10) if within_ten_percent(runs) >= 0.9)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "00-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert 0.05 < within_ten_percent(1) < 0.3, \
    "with one run each, only a small share of the studies comes within 10 %"
assert within_ten_percent(enough) >= 0.88, "that many runs are not enough"
assert within_ten_percent(enough // 2) < 0.88, "half as many would already be enough"
### BEGIN HIDDEN TESTS
assert enough % 10 == 0, "rounded up to a multiple of ten"
assert within_ten_percent(2_000, studies=200) > 0.99, \
    "with very many runs hardly any study is far off"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** Write your guess down: by which factor do you expect the K-Score to be faster than the Z-Score, over many seeds? Between which two numbers would you bet nine to one that it lies? And which result would change your mind? You will want to look at it again when you come to chapter 11.

# %% tags=["stub"]
guess, low, high = None, None, None
change_of_mind = ""

# %% nbgrader={"grade": true, "grade_id": "00-4", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
guess, low, high = None, None, None
change_of_mind = ""
### BEGIN SOLUTION
guess, low, high = 1.0, 0.5, 2.0
change_of_mind = ("An interval over many seeds that lies outside of mine as a whole, "
                  "in more than one experiment; a single run would not.")
### END SOLUTION

# %% nbgrader={"grade": false, "grade_id": "00-4-check", "locked": true, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert guess is not None and 0 < low < guess < high, \
    "three numbers: the lower end, the guess and the upper end, in this order"
assert len(change_of_mind.split()) >= 10, "a sentence or two, please"

# %% [markdown]
# ## Summary
#
# **Answer.** The K-Score subtracts a Kalman filter's belief from each return and divides by the filter's own uncertainty; the paper reports that training becomes faster and steadier with it.
# Its numbers come from one run each, and single runs of equal methods can lie far apart.
# To believe the claim, or to give it up, takes a theory that fits the returns, many runs of each method with intervals, and a rule of judgement written down beforehand.

# %% tags=["hide-input"]
Markdown(f"""
- {len(published)} published numbers are on file, each from one run; the largest \
published factor is {pairs["published factor"].max():.2f}.
- Two equal methods with a scatter of {scatter:g} differ by more than a factor of \
{one_in_ten:.2f} in one pair of single runs out of ten.
- {recorded:,} runs of ours are recorded; the chapters from 05 on say what they show.
""")

# %% [markdown]
# If you have written down your guess, unfold the next line. It shows what chapters 17 and 14 print about which normalizer to use; what became of the paper's claims is on [the page of answers](../docs/answer.md).

# %% tags=["hide-input"]
Markdown("\n\n".join([
    "<details><summary>What to use, and how sure that is</summary>",
    chapters.printed("17_a_fair_fight", "default"),
    chapters.printed("17_a_fair_fight", "choice"),
    chapters.printed("14_noise_and_shifts", "advice"),
    chapters.printed("17_a_fair_fight", "rule"),
    "</details>",
]))

# %% [markdown]
# **References.** Z. Xia and Q. Li, *K-Score: Kalman Filter as a Principled Alternative to Reward Normalization in Reinforcement Learning*, University of Bern.
# R. J. Williams, *Simple statistical gradient-following algorithms for connectionist reinforcement learning*, Machine Learning 8 (1992).

# %%
chapter.footer()
