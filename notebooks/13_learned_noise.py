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
# # 13 Learned noise
#
# **Question.** Can a filter find its own $Q$ and $R$, how much data does that take, and does a normalizer that learns them train as well as one that was told?
#
# *For* readers who do not want to set $Q$ and $R$ by hand.
# *Know first:* chapters 02 and 12; what a likelihood is.
# *Runs in* about a minute from the recorded runs; some hours on two cores from nothing.
# Previous: [12 One level up](12_one_level_up.ipynb) · Next: [14 Noise and shifts](14_noise_and_shifts.ipynb)

# %% [markdown]
# ## Question
#
# A Kalman filter has two knobs: the variance of the drift, $Q$, and that of the noise, $R$.
# The paper sets both by hand, or by a grid search, and names that as the first limitation of its method: nothing in it finds them automatically.
# In chapter 12 the filter of episodes had one setting for every task, $Q/R = 0.1$, although the recorded runs asked for ratios that lie decades apart.
#
# One might expect the problem to solve itself.
# The model says how likely any series is under any $Q$ and $R$; so take those under which it is most likely, and go on learning them while the data come in.
# A filter that does so needs no setting, and should be at least as good as one whose setting was a guess.
#
# The first half would be wrong if a run is too short to tell its own ratio, or if a few odd episodes lead the estimate astray.
# The second half would be wrong if training with learned noise took longer.
# For that half the plan (`data/PLAN.md`, question F4) fixed the arms and the words before the runs were made.
#
# After this chapter you can
#
# - derive a likelihood with one unknown less, and say why one dimension is enough;
# - estimate $Q$ and $R$ in several ways, from a whole series and from a stream, and say what each costs;
# - tell how many observations an estimate needs, and recognize one that sits at the edge;
# - train a filter by gradient, through the filter itself;
# - judge the claim "as good as", which no test of a difference can do.

# %% [markdown]
# ## Setup

# %%
import time
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown
from matplotlib.colors import BoundaryNorm
from statsmodels.tsa.statespace.structural import UnobservedComponents

from kscore import analysis, chapters, figures, filters, normalizers, study
from kscore.analysis import stats, verdicts
from kscore.rl import train
from kscore.study import plan

chapter = chapters.begin("13_learned_noise")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seeds: int = 50               # runs per arm [2, 10000]
first_seed: int = 4000        # the first; results use 4000 and up [0, 1000000000]
max_episodes: int = 500       # the cap: a run that meets it is censored [5, 100000]
streams: int = 120            # simulated streams for each true Q/R [20, 100000]
short: int = 100              # observations in a short stream [40, 250]
long: int = 1000              # and in a long one [300, 100000]
peers: int = 2                # streams for the slow estimators [1, 1000]
seed: int = 13                # of every random number in this chapter [0, 1000000000]
store: str = "build/runs"     # your folder, for what the archive lacks
archive: bool = True          # whether the archive of recorded runs is read first

# %%
rng = np.random.default_rng(seed)
true_ratios = (0.01, 0.1, 1.0)        # Q/R of the simulated streams
set_ratio = 0.1                       # Q/R where it is fixed: that of chapter 12
gamma = 0.99                          # discount, as released

# %% [markdown]
# ## Notation
#
# | symbol | meaning | in code | shape |
# |---|---|---|---|
# | $\rho = Q/R$ | how restless the level is, in units of the noise | `ratio` | number |
# | $\nu_t = z_t - x_t^-$ | innovation | `missed` | `(time,)` |
# | $s_t = S_t/R$ | variance of the innovation, in units of $R$ | `s` | `(time,)` |
# | $n$ | how many innovations there are: one less than observations | `n` | number |
# | $\hat R(\rho)$ | the $R$ that suits a ratio best | `R` | number |
# | $L_c(\rho)$ | concentrated log-likelihood: at that $R$ | `filters.concentrated_likelihood` | number |
# | $\Delta z_t = z_t - z_{t-1}$ | first difference | `steps` | `(time,)` |
# | $w_i$ | weight of the $i$-th filter of a bank | `weights` | `(filters,)` |

# %% [markdown]
# ## A ridge, not a peak
#
# In chapter 12 a series was scored by the likelihood of its surprises (12.2).
# There the series was given and the models competed; now the model is given, a drifting mean seen through noise (P1), and its two variances compete.
# We simulate a series whose ratio we know, $Q = 0.1$ and $R = 1$, and compute its likelihood for every pair on a grid.

# %%
def simulated(ratio: float, length: int, count: int) -> np.ndarray:
    """Return streams of the model with R = 1 and Q = ratio, (time, streams)."""
    drift = rng.normal(0, np.sqrt(ratio), (length, count)).cumsum(axis=0)
    return drift + rng.normal(0, 1, (length, count))


z = simulated(0.1, short, 1)[:, 0]
log_Q, log_R = np.linspace(-4, 1, 61), np.linspace(-1, 1, 51)
surface = np.array([[filters.local_level_likelihood(z, 10**q, 10**r) for q in log_Q]
                    for r in log_R])

# %% [markdown]
# We also walk from ratio to ratio, and ask for each of them which $R$ goes with it best.

# %%
def best_R(ratio: float) -> float:
    """Return the R that suits a ratio best, found by trying many."""
    tried = np.geomspace(0.005, 200, 601)
    return max(tried, key=lambda R: filters.local_level_likelihood(z, ratio * R, R))


walked = np.geomspace(1e-4, 1e2, 19)
ridge = np.array([(ratio * (R := best_R(ratio)), R) for ratio in walked])
top = filters.estimate_noise(z)       # the most likely pair: how, comes later

# %% [markdown]
# Too small an $R$ and every surprise is a scandal; too large a one and the model is vague about everything.
# The same can be said of $Q$, but the two can stand in for each other: a surprise may be drift, or it may be noise.
#
# **Predict the plot.** Seen from above, is the hill round? Where on it can one walk far without losing height?

# %% tags=["hide-input"]
def hill(ax) -> None:
    """Draw the likelihood over Q and R, in nats below the top of the grid."""
    steps_down = [-500, -100, -50, -20, -10, -5, -2, 0]
    colours = BoundaryNorm(steps_down, 256, extend="min")
    shade = ax.contourf(log_Q, log_R, surface - surface.max(), levels=steps_down,
                        norm=colours, extend="min")
    bar = fig.colorbar(shade, ax=ax, ticks=steps_down, format="%g")
    bar.set_label("nats below the top", fontsize=9)
    ax.set_xticks(range(-4, 2), [f"{10.0**power:g}" for power in range(-4, 2)])
    ax.set_yticks([-1, 0, 1], ["0.1", "1", "10"])
    ax.set(xlim=(-4, 1), ylim=(-1, 1))

# %% tags=["hide-input"]
fig, ax = figures.panels(height=3.8)
hill(ax)
ax.plot(*np.log10(ridge).T, color="white", linewidth=2.5)
ax.plot(*np.log10(ridge).T, color=figures.RED, linestyle="--",
        label="the best R for each ratio Q/R")
ax.plot(np.log10(max(top.Q, 1e-4)), np.log10(top.R), "o", color=figures.ORANGE,
        markeredgecolor=figures.INK, markersize=9, label="the most likely pair")
ax.plot(-1, 0, "*", color="white", markeredgecolor=figures.INK, markersize=15,
        label="the truth")
figures.label(ax, f"Log-likelihood of one series (n = 1, {len(z)} observations)",
              "Q", "R")
ax.legend(loc="lower left", labelcolor="white")
figures.show(fig)

# %% tags=["hide-input"]
def lost(Q: float, R: float) -> float:
    """Return how many nats a pair lies below the most likely one."""
    return (filters.local_level_likelihood(z, *top)
            - filters.local_level_likelihood(z, Q, R))


def on_ridge(ratio: float) -> float:
    """Return the same for the best pair of a ratio."""
    return lost(ratio * best_R(ratio), best_R(ratio))


near_top = surface > surface.max() - 2
figures.caption(
    f"The most likely pair is Q = {top.Q:.3f}, R = {top.R:.2f}. Within two nats of "
    f"the top, Q ranges from {10 ** log_Q[near_top.any(axis=0)].min():.2g} to "
    f"{10 ** log_Q[near_top.any(axis=0)].max():.2g}, R from "
    f"{10 ** log_R[near_top.any(axis=1)].min():.2f} to "
    f"{10 ** log_R[near_top.any(axis=1)].max():.2f}. On the ridge, twice the ratio "
    f"costs {on_ridge(2 * top.ratio):.1f} nats and half of it "
    f"{on_ridge(top.ratio / 2):.1f}; across it, at the same ratio, twice Q and R cost "
    f"{lost(2 * top.Q, 2 * top.R):.1f} and half of both "
    f"{lost(top.Q / 2, top.R / 2):.1f}.",
    alt="A map of the likelihood over Q and R on logarithmic axes. A bent ridge runs "
    "in from the left, falls gently towards larger Q and turns down; the most likely "
    "pair lies on it, the truth a little below.")

# %% [markdown]
# The hill is a bent ridge.
# Along it one walks from one ratio to another and loses little height; across it, at one and the same ratio, the hill falls off steeply, so that the overall size of the variances is soon known.
# The dashed line is the ridge walk, ratio by ratio.
# What is hard to know is the ratio. The other number, as the next section shows, need not be searched for at all.

# %% [markdown]
# ## One dimension is enough
#
# Start the filter at the first observation, with $P = R$, and measure all variances in units of $R$.
# Then $R$ drops out of the recursion: $P_t/R$, the gains, and so the innovations $\nu_t$ depend on the ratio $\rho = Q/R$ alone, and $S_t = R\,s_t(\rho)$.
# Put that into (12.2), with $n$ innovations:
#
# $$\log L(\rho, R) = -\tfrac12\Big(n\log 2\pi R + \sum_t \log s_t + \frac1R\sum_t\frac{\nu_t^2}{s_t}\Big). \tag{13.1}$$
#
# Only the first and the last term contain $R$. Set the derivative to zero, $n/R = \tfrac1{R^2}\sum_t\nu_t^2/s_t$, and the best $R$ for a ratio can be read off,
#
# $$\hat R(\rho) = \frac1n\sum_t\frac{\nu_t^2}{s_t}, \tag{13.2}$$
#
# the mean square of the standardized surprises. With it the last term becomes $n$, and what is left is a function of the ratio:
#
# $$L_c(\rho) = -\tfrac12\Big(n\,\big(1 + \log 2\pi\hat R(\rho)\big) + \sum_t\log s_t\Big). \tag{13.3}$$
#
# That is the *concentrated* likelihood. In code it takes one pass of the filter, and three lines:

# %%
def concentrated(z: np.ndarray, ratio: float) -> tuple[float, float]:
    """Return the best R for a ratio (13.2), and the log-likelihood with it (13.3)."""
    start = filters.Belief(z[0], 1.0)
    path = filters.filter_series(z[1:], ratio, 1.0, start=start)
    missed, s, n = z[1:] - path.prior_mean, path.prior_var + 1, len(z) - 1
    R = np.mean(missed**2 / s)
    return R, -0.5 * (n * (1 + np.log(2 * np.pi * R)) + np.log(s).sum())

# %% [markdown]
# `kscore` has the same function. And the ridge of the last figure, found by trying hundreds of values of $R$ for each ratio, is (13.2):

# %%
for ratio, (_, R) in zip(walked, ridge, strict=True):
    suited, height = concentrated(z, ratio)
    assert np.isclose(height, filters.concentrated_likelihood(z, ratio))
    assert np.isclose(height, filters.local_level_likelihood(z, ratio * suited, suited))
    assert np.isclose(suited, R, rtol=0.02)

# %% [markdown]
# A search in one dimension is a small thing: `filters.estimate_noise` tries a coarse grid of ratios, because there can be two peaks, one of them at no drift at all, and lets scipy do the rest.
#
# The curve $L_c$ also says how *much* is known.
# The ratios that lie less than 1.92 nats below the top are those that a test at the 5 % level would not reject.
#
# **Predict the plot.** We take the first 30 observations of one stream, then more of them, then all. What happens to the curve on its right side, and what on its left?

# %%
growing = simulated(0.1, long, 1)[:, 0]
tried = np.append(0.0, np.geomspace(1e-4, 100, 181))
NOT_REJECTED = 1.92                   # nats: half of the 95 % quantile of chi-squared


def not_rejected(z: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return the curve over the tried ratios, and the ends of what is not rejected."""
    heights = np.array([filters.concentrated_likelihood(z, one) for one in tried])
    heights -= heights.max()
    inside = tried[heights > -NOT_REJECTED]
    return heights, inside.min(), inside.max()


profiles = {size: not_rejected(growing[:size]) for size in (30, short, long)}

# %% tags=["hide-input"]
fig, ax = figures.panels(height=3.2)
for (size, (heights, _, _)), (color, line) in zip(
        profiles.items(), ((figures.BLUE, ":"), (figures.ORANGE, "--"),
                           (figures.GREEN, "-")), strict=True):
    ax.plot(tried[1:], heights[1:], color=color, linestyle=line,
            label=f"{size:,} observations")
ax.axhline(-NOT_REJECTED, color=figures.GREY, linewidth=1, linestyle=":")
ax.axvline(0.1, color=figures.INK, linewidth=1)
ax.annotate("truth", (0.1, -9.5), (-4, 0), textcoords="offset points", fontsize=9,
            ha="right")
ax.set(xscale="log", ylim=(-10, 0.5))
figures.label(ax, "Concentrated likelihood of one stream (n = 1)", "Q/R",
              "nats below the top", legend="center left")
figures.show(fig)

# %% tags=["hide-input"]
def from_to(low: float, high: float) -> str:
    """Return a range of ratios in words."""
    return f"{f'{low:.2g}' if low else 'no drift at all'} to {high:.2g}"


figures.caption(
    "Not rejected at the 5 % level (above the dotted line): "
    + "; ".join(f"with {size:,} observations {from_to(low, high)}"
                for size, (_, low, high) in profiles.items())
    + ". (Of such ranges one in twenty should miss the truth.) On the left the curves "
    "do not fall for ever; they become level, because a drift that is small enough "
    "looks like none.",
    alt="Three curves of likelihood against the ratio Q over R: flat for few "
    "observations, a narrow peak near the true ratio for many. On the left all of "
    "them level off.")

# %% [markdown]
# ## Two equations from the differences
#
# There is a cheaper way.
# The level itself cannot be seen, but in first differences it is gone:
#
# $$\Delta z_t = w_t + v_t - v_{t-1}, \qquad \mathrm E\,\Delta z_t^2 = Q + 2R, \qquad \mathrm E\,\Delta z_t\,\Delta z_{t+1} = -R. \tag{13.4}$$
#
# Drift makes differences larger; noise makes them larger *and* reverses them, since a reading that is too high is followed by a fall.
# Two averages, two unknowns. What chance makes impossible, a negative $Q$ or a negative $R$, is moved to the edge.

# %%
def two_averages(z: np.ndarray) -> tuple[float, float]:
    """Return Q and R by the moments of the differences, (13.4)."""
    steps = np.diff(z)
    square, product = np.mean(steps**2), np.mean(steps[1:] * steps[:-1])
    R = np.clip(-product, 0, square / 2)
    return square - 2 * R, R


assert np.allclose(two_averages(z), filters.estimate_noise(z, "moments"))

# %% [markdown]
# No search, no filter, one pass.
# Both averages are right on average; but the likelihood uses *all* correlations of the series and this uses two, so it should scatter more, above all where the drift is small and hides in the difference of two large numbers.

# %% [markdown]
# ## Following a stream
#
# A normalizer cannot wait for the end of the run. It has to know its ratio while the episodes come in, and a step must cost next to nothing.
#
# **Moments with forgetting.** Both averages of (13.4) can be carried on, each moved by a share, 2 %, towards the newest product; so they have a time constant of fifty differences, and scatter like plain means of about a hundred.
#
# **A bank.** Run several filters side by side, one for each ratio of a grid, and let them compete (Magill, 1965).
# Each predicts, each is judged by its own surprises, and by (13.3) the weight of the $i$-th one is
#
# $$w_i = \frac{e^{L_c(\rho_i)}}{\sum_j e^{L_c(\rho_j)}}, \tag{13.5}$$
#
# the probability of its ratio, if all ratios were equally likely before and nothing was known of $R$: integrating over $R$ with the weight $1/R$ gives the same weights as its best value.
# The sums in $L_c$ can be carried on, so a step costs a handful of operations on arrays of eight numbers.
# The bank's belief is the mixture of its filters' beliefs.

# %%
def noises(z: np.ndarray, forget: float = 0.02) -> list[filters.Noise]:
    """Return Q and R by the moments after each observation, from the third on."""
    moments, found = filters.Moments(), []
    for value in z.tolist():
        moments = filters.follow_moments(moments, value, forget)
        found.append(filters.solve_moments(moments.square, moments.product))
    return found[2:]


def banks(z: np.ndarray, forget: float = 0.0) -> list[filters.Bank]:
    """Return the bank of eight filters after each observation."""
    found = [filters.start_bank(z[0])]
    for value in z[1:].tolist():
        found.append(filters.follow_bank(found[-1], value, forget))
    return found

# %% [markdown]
# Both are held against what they should be: moments that forget nothing are those of the whole series, and the weights are (13.5).

# %%
bank = banks(z)[-1]
heights = np.array([concentrated(z, ratio)[1] for ratio in bank.ratio])
assert np.allclose(noises(z, forget=0.0)[-1], two_averages(z))
assert np.allclose(filters.bank_weights(bank),
                   np.exp(heights - heights.max())
                   / np.exp(heights - heights.max()).sum())

# %% [markdown]
# **Predict the plot.** Three estimates of the ratio, recorded along one stream: which of them comes to rest, and which one never will?

# %%
ratios_along = pd.DataFrame({
    "moments, forgetting": [one.ratio for one in noises(growing)],
    "moments, of all so far": [one.ratio for one in noises(growing, forget=0.0)],
    "bank of eight": [filters.bank_noise(one).ratio for one in banks(growing)[2:]]},
    index=range(3, len(growing) + 1))

# %% tags=["hide-input"]
LOWEST, HIGHEST = 1e-4, 10.0
fig, ax = figures.panels(height=3.2)
looks = {"moments, forgetting": (figures.SKY, ":"),
         "moments, of all so far": (figures.BLUE, "--"),
         "bank of eight": (figures.ORANGE, "-")}
for name, (color, line) in looks.items():
    ax.plot(ratios_along[name].clip(LOWEST, HIGHEST), color=color, linestyle=line,
            label=name)
ax.axhline(0.1, color=figures.INK, linewidth=1)
ax.set_yscale("log")
figures.label(ax, "Estimates along one stream (n = 1)", "observation",
              f"Q/R (drawn from {LOWEST:g} to {HIGHEST:g})", legend="below")
figures.show(fig)

# %% tags=["hide-input"]
second_half = ratios_along[len(growing) // 2:].clip(LOWEST, HIGHEST)
wander = {name: second_half[name].max() / second_half[name].min() for name in looks}
figures.caption(
    "The truth is the line at 0.1. In the second half of the stream the highest and "
    "the lowest value lie apart by a factor of "
    + "; ".join(f"{float(f'{factor:.2g}'):,g} ({name})"
                for name, factor in wander.items()) + ".",
    alt="Three estimates of the ratio along a stream on a logarithmic axis: moments "
    "with forgetting swing over decades and often hit the lower edge, moments of all "
    "observations swing less, but reach it as well, and the bank settles early near "
    "the truth.")

# %% [markdown]
# Forgetting is not free: such an average never gets better than one over about a hundred differences.
# And even with everything remembered, two averages are not the whole series.
# The bank forgets nothing here; if it should be able to change its mind, its sums can be discounted in the same way.

# %% [markdown]
# ## The bank at work on a run with a jump
#
# In a run that learns, the level jumps now and then, and no single ratio is right before, at and after the jump.
# We let a bank see a level that hardly moves, then jumps by eight deviations of the noise, then hardly moves again; once with all its evidence kept, once with 5 % of it given up at each step.
#
# **Predict the plot.** The picture shows the weights of the eight filters over time, dark for none and bright for all. What does the jump do to them, and for how long?

# %%
level = np.where(np.arange(240) < 80, 0.0, 8.0)
jumping = simulated(0.001, len(level), 1)[:, 0] + level
weights, expected = {}, {}
for forget in (0.0, 0.05):
    before = banks(jumping, forget)[:-1]      # each has yet to see the next value
    weights[forget] = np.array([filters.bank_weights(one) for one in before])
    expected[forget] = np.array([weight @ one.mean for weight, one
                                 in zip(weights[forget], before, strict=True)])
told = filters.filter_series(jumping[1:], 0.001, 1.0,
                             start=filters.Belief(jumping[0], 1.0)).prior_mean

# %% tags=["hide-input"]
fig, axes = figures.panels(3, 1, height=2.0, sharex=True)
axes[0].plot(jumping, "o", color=figures.GREY, markersize=3, label="observed")
at = np.arange(1, len(jumping))
for forget, color, line in ((0.0, figures.ORANGE, "-"), (0.05, figures.TEAL, "--")):
    axes[0].plot(at, expected[forget], color=color, linestyle=line,
                 label=f"bank, gives up {forget:.0%}")
axes[0].plot(at, told, color=figures.BLUE, linestyle=":",
             label="one filter, Q/R = 0.001")
figures.label(axes[0], "Expected before each step (n = 1 simulated run)", "", "level",
              legend="upper left")
for ax, (forget, image) in zip(axes[1:], weights.items(), strict=True):
    shade = ax.pcolormesh(at, np.arange(len(filters.BANK)), image.T, vmin=0, vmax=1,
                          rasterized=True)
    ax.set_yticks(range(len(filters.BANK)), [f"{one:.2g}" for one in filters.BANK],
                  fontsize=7)
    figures.label(ax, f"Weights, {forget:.0%} of the evidence given up per step",
                  "observation" if ax is axes[-1] else "", "Q/R")
    ax.set_xlim(0, len(jumping))
fig.colorbar(shade, ax=axes[1:], label="weight", aspect=30)
figures.show(fig)

# %% tags=["hide-input"]
def waited(expected: np.ndarray) -> str:
    """Return after how many steps nine tenths of the jump are believed."""
    there = expected[79:] >= 0.9 * 8 + 0.1 * np.mean(jumping[:80])
    return f"{there.argmax()}" if there.any() else f"more than {len(there)}"


def middle_ratio(weights: np.ndarray) -> float:
    """Return the mean ratio of a bank, by its weights, on the logarithmic scale."""
    return float(np.exp(weights @ np.log(filters.BANK)))


shift = {forget: [middle_ratio(along[t]) for t in (78, 84, -1)]
         for forget, along in weights.items()}
figures.caption(
    "Nine tenths of the jump are believed after "
    f"{waited(expected[0.0])} observations (bank), {waited(expected[0.05])} (bank that "
    f"forgets) and {waited(told)} (one filter with the ratio that is right everywhere "
    "else). Mean ratio before the jump, five steps after it and at the end: "
    + "; ".join(f"{before:.2g}, {after:.2g}, {end:.2g} "
                f"({'evidence kept' if forget == 0 else 'evidence given up'})"
                for forget, (before, after, end) in shift.items()) + ".",
    alt="Three panels over 240 observations. Above: a level that jumps after 80; both "
    "banks follow within a few steps, a single slow filter crawls. Below: two maps of "
    "the weights of eight filters; the bright band moves from low ratios to high ones "
    "at the jump, and comes back sooner where evidence is given up.")

# %% [markdown]
# So a bank adapts where a filter with that small ratio cannot.
# The price is in the middle panel: with all evidence kept, one jump can speak for restlessness long after it is over. The normalizer of the training runs below keeps all of its evidence.
#
# None of this depends on the units of the data.
# Weights, gains and ratios are the same for a series and for a thousand times that series:

# %%
for scale in (1e-3, 1e3):
    assert np.allclose(filters.bank_weights(banks(scale * z)[-1]),
                       filters.bank_weights(bank))
    for method in ("likelihood", "moments"):
        ours, theirs = (filters.estimate_noise(series, method)
                        for series in (z, scale * z))
        assert np.isclose(theirs.gain, ours.gain, atol=2e-3)
        assert np.isclose(theirs.R, scale**2 * ours.R, rtol=0.01)

# %% [markdown]
# ## Learned by gradient, through the filter
#
# The paper proposes, as future work, a filter that is differentiable and learns $Q$ and $R$ from data.
# Nothing stands in the way: the filter is a chain of sums, products and quotients, and torch can go back through all of it.
# The parameters are $\log Q$ and $\log R$, so that both variances stay positive wherever a step leads.

# %%
observed = torch.as_tensor(z)


def loss_of(logs: torch.Tensor) -> torch.Tensor:
    """Return the negative log-likelihood per observation, of log Q and log R."""
    return -filters.torch_likelihood(observed, *logs.exp()) / len(observed)

# %% [markdown]
# An optimizer asks for the loss and its gradient, as often as it likes, and takes a step:

# %%
def climbed(kind: type, steps: int, **options) -> np.ndarray:
    """Return the path (steps + 1, 2) of an optimizer that starts at Q = R = 3."""
    logs = torch.full((2,), np.log(3.0), dtype=torch.float64, requires_grad=True)
    optimizer, path = kind([logs], **options), [logs.tolist()]

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(logs)
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
        path.append(logs.tolist())
    return np.exp(path)

# %% [markdown]
# Two optimizers: Adam, as for any network, and L-BFGS, which also learns how the hill is curved.
#
# **Predict the plot.** Both begin at $Q = R = 3$. Where will Adam lose its time?

# %%
climbs = {"Adam, 40 steps": climbed(torch.optim.Adam, 40, lr=0.15),
          "L-BFGS, 15 steps": climbed(torch.optim.LBFGS, 15, max_iter=2,
                                      line_search_fn="strong_wolfe")}
learned = filters.Noise(*climbs["L-BFGS, 15 steps"][-1])
highest = filters.local_level_likelihood(z, *top)          # scipy's maximum
reached = filters.local_level_likelihood(z, *learned)
assert reached <= highest + 1e-3
if top.Q > 0:                          # a second top may stand at the edge, Q = 0
    assert np.isclose(reached, highest, atol=1e-3)
    assert np.allclose(learned, top, rtol=0.01, atol=0.01)

# %% tags=["hide-input"]
fig, ax = figures.panels(height=3.8)
hill(ax)
for (name, path), (color, marker) in zip(
        climbs.items(), ((figures.SKY, "."), (figures.ORANGE, "D")), strict=True):
    ax.plot(*np.log10(path).T, color=color, marker=marker, markersize=6,
            markeredgecolor=figures.INK, markeredgewidth=0.5, linewidth=1, label=name)
ax.plot(np.log10(max(top.Q, 1e-4)), np.log10(top.R), "*", color="white",
        markeredgecolor=figures.INK, markersize=15, label="scipy's maximum")
figures.label(ax, f"Climbing through the filter (n = 1, {len(z)} observations)",
              "Q", "R")
ax.legend(loc="lower left", labelcolor="white")
figures.show(fig)

# %% tags=["hide-input"]
short_of = {name: highest - filters.local_level_likelihood(z, *path[-1])
            for name, path in climbs.items()}
figures.caption(
    f"L-BFGS ends at Q = {learned.Q:.4f}, R = {learned.R:.4f}; scipy's search in one "
    f"dimension at {top.Q:.4f} and {top.R:.4f}. The two paths end "
    + " and ".join(f"{max(gap, 0):.1g} nats ({name})"
                   for name, gap in short_of.items()) + " below the maximum.",
    alt="The map of the likelihood once more, with the paths of two optimizers from "
    "the upper right: both first drop to the ridge and then follow it towards the star "
    "that marks the maximum found by scipy; L-BFGS arrives, Adam stops a little short.")

# %% [markdown]
# L-BFGS and scipy agree, as asserted above: the gradient through the filter finds the maximum of the likelihood and nothing else.
# What it costs, the next section measures. Its use begins where the filter is a part of something larger that is trained as a whole.

# %% [markdown]
# ## The estimators compared
#
# Now many streams, with three true ratios, short and long.
# The gradient and an independent library (`statsmodels`, which climbs the same hill with a general optimizer) are slow, so they see a few streams only; there we check that they end where the likelihood does.

# %%
clean = {ratio: simulated(ratio, long, streams) for ratio in (0.0, *true_ratios)}
estimators = {
    "likelihood": lambda z: filters.estimate_noise(z).ratio,
    "moments": lambda z: filters.estimate_noise(z, "moments").ratio,
    "moments, forgetting": lambda z: noises(z)[-1].ratio,
    "bank": lambda z: filters.bank_noise(banks(z)[-1]).ratio,
}


def timed(estimate, series: np.ndarray) -> tuple[np.ndarray, float]:
    """Return what an estimator finds in each stream, and its time per stream, in ms."""
    begin = time.process_time()               # of the processor, however busy it is
    guesses = np.array([estimate(z) for z in series.T])
    return guesses, 1e3 * (time.process_time() - begin) / len(guesses)


found = {(size, ratio, name): timed(estimate, clean[ratio][:size])
         for size in (short, long) for ratio in true_ratios
         for name, estimate in estimators.items()}

# %% [markdown]
# A wrong ratio need not matter. Chapter 02 knows what it costs: a settled filter with gain $k$ has the error variance (2.4), and the best one is that with the true gain. We call the difference the *extra error*.

# %%
def tracking_error(k: np.ndarray, ratio: float) -> np.ndarray:
    """Return the error variance of a settled filter with gain k, (2.4), for R = 1."""
    with np.errstate(divide="ignore"):
        return ((1 - k) ** 2 * ratio + k**2) / (1 - (1 - k) ** 2)


def extra_error(guesses: np.ndarray, ratio: float) -> np.ndarray:
    """Return by which share each guessed ratio raises the tracking error."""
    gains = np.array([filters.steady_state(guess, 1.0).gain for guess in guesses])
    best = filters.steady_state(ratio, 1.0).gain
    return tracking_error(gains, ratio) / tracking_error(best, ratio) - 1

# %% tags=["hide-input"]
def near(guesses: np.ndarray, ratio: float) -> float:
    """Return the share of estimates within a factor of two of the truth."""
    return float(np.mean((guesses > ratio / 2) & (guesses < 2 * ratio)))


def described(size: int) -> pd.DataFrame:
    """Return how the estimators did on streams of this size."""
    rows = {}
    for ratio in true_ratios:
        for name in estimators:
            guesses, taken = found[size, ratio, name]
            low, middle, high = np.quantile(guesses / ratio, [0.1, 0.5, 0.9])
            cost = np.median(extra_error(guesses, ratio))
            rows[f"{name}, {ratio:g}"] = {
                "found / true, median": f"{middle:.2f}",
                "middle 80 %": f"{low:.2f} to {high:.2f}",
                "within a factor of 2": f"{near(guesses, ratio):.0%}",
                "no drift, Q = 0": f"{np.mean(guesses == 0):.0%}",
                "extra error, median":
                    f"{cost:.1%}" if np.isfinite(cost) else "no bound",
                "ms per stream": f"{taken:.2f}"}
    return pd.DataFrame(rows).T.rename_axis("estimator, true Q/R")


described(long).style.set_caption(f"{long:,} observations, n = {streams} streams")

# %% [markdown]
# The first columns have the bias (a median away from 1) and the spread; and with a tenth of the data:

# %% tags=["hide-input"]
described(short).style.set_caption(f"{short:,} observations, n = {streams} streams")

# %% [markdown]
# **Predict the plot.** The same as a picture, each estimate in units of the truth. For which of the ratios will ten times the data help most?

# %% tags=["hide-input"]
FLOOR = 0.02
estimator_looks = {"likelihood": (figures.ORANGE, "D"), "moments": (figures.BLUE, "o"),
                   "moments, forgetting": (figures.SKY, "s"),
                   "bank": (figures.GREEN, "^")}
fig, axes = figures.panels(1, 2, height=3.8, sharex=True, sharey=True)
for ax, size in zip(axes, (short, long), strict=True):
    ax.axvspan(0.5, 2, color=figures.GREY, alpha=0.2, linewidth=0)
    ax.axvline(1, color=figures.INK, linewidth=1, linestyle=":")
    for group, ratio in enumerate(true_ratios):
        for row, (name, (color, marker)) in enumerate(estimator_looks.items()):
            factor = (found[size, ratio, name][0] / ratio).clip(FLOOR)
            low, middle, high = np.quantile(factor, [0.1, 0.5, 0.9])
            y = group + 0.18 * (row - 1.5)
            ax.plot([low, high], [y, y], color=color, linewidth=2)
            ax.plot(middle, y, marker, color=color, label=name if group == 0 else None)
    ax.set_xscale("log")
    ax.set_xticks([FLOOR, 0.1, 0.5, 1, 2, 10], [f"≤ {FLOOR}", "0.1", "0.5", "1", "2",
                                                "10"])
    ax.minorticks_off()
    figures.label(ax, f"{size:,} observations (n = {streams} streams)",
                  "estimated / true Q/R", "")
axes[0].set_yticks(range(len(true_ratios)), [f"Q/R = {one:g}" for one in true_ratios])
axes[0].invert_yaxis()
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Median and middle 80 % of the estimates, in units of the truth; grey: within a "
    f"factor of two. What lies below {FLOOR} is drawn there.",
    alt="Two panels, short and long streams: for three true ratios the medians and "
    "middle ranges of four estimators in units of the truth. Likelihood and bank lie "
    "close together around one; moments scatter more, most of all with forgetting; "
    "with short streams and a small ratio all reach far to the left.")

# %% tags=["hide-input"]
def shares(name: str, size: int) -> str:
    """Return an estimator's shares within a factor of two, ratio by ratio."""
    return ", ".join(f"{near(found[size, ratio, name][0], ratio):.0%}"
                     for ratio in true_ratios)


enough_near = {name: min(near(found[long, ratio, name][0], ratio)
                         for ratio in true_ratios) for name in estimators}
in_nine_of_ten = [name for name, share in enough_near.items() if share >= 0.9]
Markdown(
    f"From {long:,} observations the ratio is found within a factor of two in at least "
    "nine of ten streams, at every one of the three ratios, by "
    + (" and by ".join(f"the {name}" for name in in_nine_of_ten) or "none of them")
    + ". The lowest share is "
    + ", ".join(f"{share:.0%} ({name})" for name, share in enough_near.items()) + ".")

# %% [markdown]
# Once it is sure, the bank can only name a ratio of its grid, and these lie a factor of five apart. Does that hurt it?

# %% tags=["hide-input"]
def costs(name: str, size: int) -> str:
    """Return the range over the true ratios of an estimator's median extra error."""
    values = [np.median(extra_error(found[size, ratio, name][0], ratio))
              for ratio in true_ratios]
    high = f"{max(values):.1%}" if np.isfinite(max(values)) else "no bound"
    return f"{min(values):.1%} to {high}"


Markdown(
    "The median extra error, over the three ratios: "
    + "; ".join(f"{name} {costs(name, long)} (long streams) and {costs(name, short)} "
                "(short ones)" for name in estimators)
    + ". \"No bound\" means that more than half of the estimates are Q = 0.")

# %% [markdown]
# That a coarse grid costs little is chapter 02's flat valley once more: near its floor a factor of two in $Q/R$ hardly matters.
#
# Then the two slow ones. Where they end should be the likelihood's maximum; what differs is the time.

# %%
def by_statsmodels(z: np.ndarray) -> filters.Noise:
    """Let an independent library find the most likely Q and R."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")       # where Q is 0 it says that it has doubts
        R, Q = UnobservedComponents(z, "local level").fit(disp=False).params
    return filters.Noise(Q, R)


climbers = {"likelihood": filters.estimate_noise,
            "gradient": lambda z: filters.estimate_noise(z, "gradient"),
            "statsmodels": by_statsmodels}

# %% tags=["hide-input"]
rows = {}
for size in (short, long):
    heights = {}
    for name, climb in climbers.items():
        begin = time.process_time()
        noises = [(z, climb(z)) for ratio in true_ratios
                  for z in clean[ratio][:size, :peers].T]
        taken = 1e3 * (time.process_time() - begin) / len(noises)
        heights[name] = np.array([
            filters.local_level_likelihood(z, max(noise.Q, 0), noise.R)
            for z, noise in noises])
        below = (heights["likelihood"] - heights[name]).max()
        rows[f"{name}, {size:,} observations"] = {
            "streams": len(noises), "ms per stream": f"{taken:.1f}",
            "farthest below the likelihood's maximum, nats": f"{max(below, 0):.2g}"}
        assert below < 0.1, f"{name} stays below the maximum by {below}"
slow = pd.DataFrame(rows).T.rename_axis("estimator")
slow

# %% [markdown]
# All three end on the same hilltop, so the likelihood's bias and spread are theirs as well.
# (The gradient can only come near $Q = 0$, not reach it: its parameter is $\log Q$.)

# %% [markdown]
# ## When it fails
#
# Three failures, on purpose.
#
# **Too little data.** How does the share of good estimates grow with the number of observations?
# And how often does the likelihood say that there is no drift, $Q = 0$, although there is one?
#
# **No drift at all.** If $Q$ really is zero, the truth lies at the edge of what is allowed, and chance pushes the estimate either against the wall or away from it. How often it sits there exactly is a classic question (Shephard and Harvey, 1990).

# %%
sizes = sorted({20, 50, short, 300, long})
by_size = {(size, ratio): found[size, ratio, "likelihood"][0]
           if (size, ratio, "likelihood") in found
           else timed(estimators["likelihood"], clean[ratio][:size])[0]
           for size in sizes for ratio in (0.0, *true_ratios)}

# %% [markdown]
# **Predict the plot.** On the right, one of the four curves must not fall. Which one?

# %% tags=["hide-input"]
ratio_looks = {0.0: (figures.GREY, "x", ":"), 0.01: (figures.BLUE, "o", "-"),
               0.1: (figures.ORANGE, "D", "--"), 1.0: (figures.GREEN, "^", "-.")}
fig, (left, right) = figures.panels(1, 2, height=3.4)
for ratio, (color, marker, line) in ratio_looks.items():
    look = {"color": color, "marker": marker, "linestyle": line,
            "label": f"Q/R = {ratio:g}"}
    if ratio:
        left.plot(sizes, [near(by_size[size, ratio], ratio) for size in sizes], **look)
    right.plot(sizes, [np.mean(by_size[size, ratio] == 0) for size in sizes], **look)
left.axhline(0.9, color=figures.INK, linewidth=0.8, linestyle=":")
for ax in (left, right):
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{size}" for size in sizes])
    ax.minorticks_off()
    ax.set_ylim(-0.02, 1.02)
figures.label(left, f"Within a factor of two (n = {streams} each)", "observations",
              "share of streams")
figures.label(right, "Estimated as no drift at all, Q = 0", "observations", "",
              legend="upper right")
figures.show(fig)

# %% tags=["hide-input"]
edge = {(size, ratio): np.mean(by_size[size, ratio] == 0)
        for size in (20, short, long) for ratio in (0.0, *true_ratios)}
figures.caption(
    "Estimates by likelihood. Of streams with Q/R = 0.01, "
    + ", ".join(f"{edge[size, 0.01]:.0%} ({size:,} observations)"
                for size in (20, short, long))
    + " are taken for streams without drift; of those that have none, "
    + ", ".join(f"{edge[size, 0.0]:.0%}" for size in (20, short, long))
    + ". The dotted line is at nine tenths.",
    alt="Two panels against the number of observations. Left: the share of estimates "
    "within a factor of two rises, fastest for the largest ratio. Right: the share of "
    "estimates at zero falls for the three ratios above zero and stays above a half "
    "where there is no drift.")

# %% [markdown]
# An estimate at the edge is not harmless.
# A filter with $Q = 0$ is a running mean: it grows ever surer of itself, and stops following.
# The bank and the normalizer below avoid the edge by never going below $Q/R = 10^{-4}$, a memory of a hundred observations; moments with forgetting, which are as good as a hundred differences, hit it often.
#
# **Outliers.** Now three in a hundred observations are off by ten deviations.
# One such value makes two large differences of opposite sign, which is just what noise does: $R$ is overestimated, the ratio falls, and the filter becomes slow.
# The option `robust` of the filter of episodes moves a value that is more than three deviations off to three deviations, before anything learns from it; the deviations are those that it has seen so far.

# %%
length, some = 300, min(streams // 5, 40)
level_of = {"without": clean[0.1][:length, :some]}
far_off = (rng.random((length, some)) < 0.03) * rng.choice([-10, 10], (length, some))
level_of["with"] = level_of["without"] + far_off

# %% [markdown]
# The robust filter stands inside the normalizer, so we send each series through that, as episodes of one value each, and ask which ratio its bank ends with.

# %%
def through(z: np.ndarray, **options) -> tuple[np.ndarray, np.ndarray]:
    """Send a series through a filter of episodes, one value per episode.

    Return its ratio after, and its centre for, each episode but the first.
    """
    normalizer, rows = normalizers.make("episode", **options), []
    for value in z.tolist():
        centre = normalizer.learn(np.array([value])).centre
        rows.append((normalizer.level_ratio, centre))
    ratios, centres = np.array(rows[1:]).T
    return ratios, centres

# %% [markdown]
# **Predict the plot.** By how much will three outliers in a hundred lower the estimated ratio: by half, by a factor of three, by ten?

# %%
def of_bank(z: np.ndarray, **options) -> float:
    """Return the ratio that a bank of filters of episodes ends with."""
    return through(z, noise="bank", **options)[0][-1]


ways_to_estimate = {"likelihood": estimators["likelihood"],
                    "moments": estimators["moments"], "bank": of_bank,
                    "bank, robust": partial(of_bank, robust=True)}
with_outliers = {(name, which): np.array([estimate(z) for z in series.T])
                 for name, estimate in ways_to_estimate.items()
                 for which, series in level_of.items()}

# %% tags=["hide-input"]
fig, ax = figures.panels(height=3.0)
ax.axvline(0.1, color=figures.INK, linewidth=1, linestyle=":")
for place, name in enumerate(ways_to_estimate):
    for which, color, marker, up in (("without", figures.BLUE, "o", -0.14),
                                     ("with", figures.RED, "v", 0.14)):
        values = with_outliers[name, which].clip(LOWEST)
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
        ax.plot(values, np.full(some, place + up), "|", color=color, alpha=0.35)
        ax.plot([low, high], [place + up] * 2, color=color, linewidth=2)
        ax.plot(middle, place + up, marker, color=color, markersize=8,
                label=f"{which} outliers" if place == 0 else None)
ax.set_xscale("log")
ax.set_yticks(range(len(ways_to_estimate)), list(ways_to_estimate))
ax.invert_yaxis()
figures.label(ax, f"Estimates from {length} observations (n = {some} streams)",
              f"Q/R (truth 0.1; below {LOWEST:g} drawn there)", "", legend="below")
figures.show(fig)

# %% tags=["hide-input"]
middles = {key: np.median(values) for key, values in with_outliers.items()}
figures.caption(
    "Each stroke is a stream; marks and bars: median and middle 80 %. Median ratio "
    "without and with outliers: "
    + "; ".join(f"{name} {middles[name, 'without']:.3f} and "
                f"{middles[name, 'with']:.3f}" for name in ways_to_estimate) + ".",
    alt="Estimated ratios of single streams, without and with outliers, for four "
    "estimators on a logarithmic axis: with outliers the estimates of likelihood, "
    "moments and the plain bank lie further left, those of the robust bank close to "
    "the ones without.")

# %% [markdown]
# A robust update keeps most of this away from the estimate, at the price that chapter 12 showed: what protects against an outlier also delays the acceptance of a jump.
# All arms of the next section go without.

# %% [markdown]
# ## What learning the noise does to training
#
# The question of the plan, F4: on CartPole, with four learners and two learning rates, is a filter of episodes that finds its own ratio **as good as** one with the fixed ratio 0.1?
# Two forms find their own, each at both doors (with REINFORCE at the returns, the only door it has): *learned*, which follows the moments with forgetting, and the *bank*.
#
# "No significant difference" would not answer this, because a small study finds no difference between anything.
# To be as good is a claim of its own, and it needs a margin: the improvement factor of the form over the fixed one must have its whole interval above $1/1.1$.
# If the interval lies below 1 altogether, the form is **worse**; otherwise it **cannot be told**.
# (The plan does not say what counts where both apply, nor what to do if few runs arrive. Added when a part of the runs was there, as in its other rules: the first counts, and at least half of the runs of each arm must arrive. Neither case occurs at the defaults.)

# %%
learners = {"reinforce": "REINFORCE", "actor_critic": "actor-critic", "gae": "GAE",
            "ppo": "PPO"}
rates = {"": "0.01", "_slower": "0.003"}
forms = {"learned": "episode_learned", "bank": "episode_bank"}

# %% [markdown]
# Three arms of each part of the study are needed: the fixed form and the two that learn.

# %%
study_size = {"seeds": seeds, "first_seed": first_seed, "max_episodes": max_episodes}


def told_and_learned(part: plan.Part) -> plan.Part:
    """Keep the form with the fixed ratio, at every door there is, and the two forms."""
    fixed = "episode_both" if "episode_both" in part.configs else "episode"
    kept = {arm: part.configs[arm] for arm in (fixed, *forms.values())}
    return part._replace(configs={"episode_both": kept.pop(fixed)} | kept)


with study.processes() as executor:    # for what has to be trained, if anything
    cells = {
        (title, rate): study.runs(
            told_and_learned(plan.part(f"episodes_{each}{suffix}", **study_size)),
            store, executor, archive=archive)
        for each, title in learners.items() for suffix, rate in rates.items()}
Markdown(f"{figures.run_count(pd.concat(cells.values()))}.")

# %% [markdown]
# **Predict the plot.** The share of runs still on their way, for the three forms. Will you be able to tell the curves apart?

# %% tags=["hide-input"]
arms = ("episode_both", *forms.values())
fig = figures.survival_panels(
    [{f"{title}, {rate}": analysis.survivals(cells[title, rate], arms)
      for title in learners.values()} for rate in rates.values()],
    max_episodes, height=2.6)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"n = {seeds} runs per arm; lower and further left is faster. Above at the "
    "learning rate 0.01, below at 0.003. With REINFORCE all three forms stand at the "
    "returns.",
    alt="Eight panels of survival curves, four learners at two learning rates: in each "
    "the fixed ratio, learned noise and the bank, with wide bands that overlap over "
    "most of their length.")

# %% [markdown]
# The verdicts, by the rule above:

# %%
words = {verdicts.Verdict.HOLDS: "as good", verdicts.Verdict.FAILS: "worse",
         verdicts.Verdict.UNTOLD: "cannot be told"}
judged = {}
for (title, rate), frame in cells.items():
    for form, arm in forms.items():
        factor = analysis.compare(frame, arm, "episode_both").factor
        pair = [analysis.times(frame, one) for one in (arm, "episode_both")]
        told_enough = verdicts.informed(*pair)
        judged[form, title, rate] = {
            "arrived": " and ".join(str(times.arrived.sum()) for times in pair),
            "factor": factor, "told enough": told_enough,
            "F4": words[verdicts.as_good(factor, informed=told_enough)]}
answers = pd.DataFrame(judged).T.rename_axis(["form", "learner", "rate"])
answers = answers.sort_index(level="form", ascending=False, sort_remaining=False)

# %% tags=["hide-input"]
figures.table(answers.drop(columns="told enough"))

# %% [markdown]
# The same as a picture. The dashed line is the margin, $1/1.1$.

# %% tags=["hide-input"]
fig, axes = figures.panels(1, 2, height=3.6, width=9.0, sharex=True, sharey=True)
for ax, rate in zip(axes, rates.values(), strict=True):
    rows = [(f"{form}, {title}", answers.factor[form, title, rate], forms[form])
            for form in forms for title in learners.values()]
    figures.forest(rows, ax)
    ax.axvline(1 / verdicts.MARGIN, color=figures.INK, linewidth=1, linestyle="--")
    figures.label(ax, f"rate {rate} (n = {seeds} per arm)",
                  "factor over the fixed ratio", "")
figures.show(fig)

# %% tags=["hide-input"]
def count(form: str, word: str) -> int:
    """Return in how many cells a form got a word."""
    return int((answers.F4[form] == word).sum())


tally = {form: ", ".join(f"{word} in {count(form, word)}" for word in words.values())
         for form in forms}
figures.caption(
    "How many times as fast the form is as the fixed ratio (95 % intervals; right of 1 "
    "it is faster; wholly to the right of the dashed line it is as good). "
    + "; ".join(f"{form}: {told}" for form, told in tally.items())
    + f" (of {len(cells)} cells each).",
    alt="Two forest plots, one for each learning rate: the factor of learned noise and "
    "of the bank over the fixed ratio with each learner, with intervals, a line at one "
    "and a dashed line at the margin. "
    + "; ".join(f"{form}: {told}" for form, told in tally.items()) + ".")

# %% tags=["hide-input"]
def spread_of(form: str) -> str:
    """Return the range of a form's factors, and how many intervals exclude 1."""
    factors = list(answers.factor[form])
    faster = sum(one.low > 1 for one in factors)
    slower = sum(one.high < 1 for one in factors)
    return (f"{min(one.estimate for one in factors):.2f} to "
            f"{max(one.estimate for one in factors):.2f}, with the whole interval "
            f"above 1 in {faster} and below 1 in {slower}")


ungated = int((~answers["told enough"].astype(bool)).sum())
widest = max(answers.factor, key=lambda one: one.high / one.low)
Markdown(
    "By the words of the plan: "
    + ". ".join(f"**{form.capitalize()}** is as good as the fixed ratio in "
                f"{count(form, 'as good')} of {len(cells)} cells and worse in "
                f"{count(form, 'worse')}; in {count(form, 'cannot be told')} it cannot "
                f"be told. Its factors range from {spread_of(form)}" for form in forms)
    + f". The widest of the intervals is [{widest.low:.2f}, {widest.high:.2f}]. "
    + (f"In {ungated} of the comparisons fewer than half of the runs of an arm "
       "arrived. " if ungated else "")
    + f"These are {len(answers)} intervals at 95 %, not adjusted for being many: F4 "
    "has no test.")

# %% [markdown]
# The ends of these intervals come from random draws of the seeds. Where one begins close to the margin, other draws might have given the other word:

# %% tags=["hide-input"]
REDRAWN, CLOSE = 20, 0.005


def redrawn(form: str, title: str, rate: str) -> int:
    """Return how often the interval lies above the margin if drawn again and again."""
    pair = [analysis.times(cells[title, rate], arm)
            for arm in (forms[form], "episode_both")]
    lows = [stats.bootstrap(partial(stats.improvement, *pair, max_episodes), seeds,
                            seed=draw).low for draw in range(1, REDRAWN + 1)]
    return sum(low > 1 / verdicts.MARGIN for low in lows)


close = {name: redrawn(*name) for name, one in answers.factor.items()
         if abs(one.low - 1 / verdicts.MARGIN) < CLOSE}
Markdown(
    " ".join(f"The interval of {', '.join(name)} begins at "
             f"{answers.factor[name].low:.4f}, and the margin is "
             f"{1 / verdicts.MARGIN:.4f}: with {REDRAWN} other sets of draws it would "
             f"have been as good in {times}." for name, times in close.items())
    if close else f"None begins within {CLOSE:g} of the margin.")

# %% [markdown]
# ## Where the ratio goes while training
#
# What ratios did the two forms work with?
# The records do not hold the filters, but on CartPole everything that the filter at the returns saw can be computed again: all rewards are 1, so the mean discounted return of an episode follows from its length, which is its training return. We send these means through the same normalizer. (The learned form keeps the fixed ratio for its first few episodes, and then takes that of its moments, as far as it lies within the range of the bank.)

# %%
def mean_return(lengths: np.ndarray) -> np.ndarray:
    """Return the mean discounted return of CartPole episodes of these lengths."""
    s = np.arange(1, int(lengths.max()) + 1)
    return (np.cumsum((1 - gamma**s) / (1 - gamma)) / s)[lengths.astype(int) - 1]

# %% [markdown]
# Can a mean stand for its whole episode here? We take one run, and compare what its episodes are held against with what their means are held against:

# %%
lengths = cells["GAE", "0.003"].train_returns.iloc[0]
for form in forms:
    normalizer, centres = normalizers.make("episode", noise=form), []
    for one in lengths.astype(int):
        returns = (1 - gamma ** (one - np.arange(one))) / (1 - gamma)
        centres.append(normalizer.learn(returns).centre)
    assert np.allclose(through(mean_return(lengths), noise=form)[1], centres[1:])

# %% [markdown]
# **Predict the plot.** A run has some hundred episodes. From the section on estimators: which of the two forms will settle, and which will swing?

# %%
def recomputed(form: str, cell: tuple) -> list[np.ndarray]:
    """Return the ratios along every run of a form in a cell."""
    frame = cells[cell]
    return [through(mean_return(lengths), noise=form)[0]
            for lengths in frame[frame.arm == forms[form]].train_returns
            if len(lengths) > 1]


ratios = {(form, *cell): recomputed(form, cell) for form in forms for cell in cells}

# %% tags=["hide-input"]
fig, axes = figures.panels(2, 4, height=2.5, width=9.0, sharex="col", sharey=True)
for line, form in zip(axes, forms, strict=True):
    for ax, title in zip(line, learners.values(), strict=True):
        for rate, color, style in (("0.01", figures.BLUE, "-"),
                                   ("0.003", figures.ORANGE, "--")):
            runs = ratios[form, title, rate]
            half = int(np.median([len(run) for run in runs]))  # then half have ended
            table = np.full((len(runs), half), np.nan)
            for row, run in zip(table, runs, strict=True):
                row[:len(run)] = run[:half]
            low, middle, high = np.nanquantile(table, [0.25, 0.5, 0.75], axis=0)
            episode = np.arange(2, half + 2)
            ax.plot(episode, middle, color=color, linestyle=style, label=f"rate {rate}")
            ax.fill_between(episode, low, high, color=color, alpha=0.2, linewidth=0)
        ax.axhline(set_ratio, color=figures.INK, linewidth=1, linestyle=":")
        ax.set(yscale="log", ylim=(6e-5, 16))
        figures.label(ax, f"{form}, {title}", "episode" if form == "bank" else "",
                      "Q/R" if ax is line[0] else "")
fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"The ratio of the filter at the returns: median and middle half of n = {seeds} "
    "runs per form, learner and rate, drawn until half of the runs have ended. The "
    f"dotted line is the fixed ratio, {set_ratio:g}.",
    alt="Eight panels of ratios against the episode, on a logarithmic axis, for two "
    "forms and four learners. With learned noise the bands cover several decades; the "
    "bands of the bank are narrow.")

# %% [markdown]
# At the end of their runs, beside the most likely ratio of the same runs in hindsight:

# %% tags=["hide-input"]
def middle_half(values: np.ndarray) -> str:
    """Return median and middle half of some ratios."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{middle:.2g} ({low:.2g} to {high:.2g})"


last, hindsight = {}, {}
for cell, frame in cells.items():
    for form in forms:
        last[form, *cell] = np.array([run[-1] for run in ratios[form, *cell]])
        hindsight[form, *cell] = np.array([
            filters.estimate_noise(mean_return(lengths)).ratio
            for lengths in frame[frame.arm == forms[form]].train_returns
            if len(lengths) > 2 and np.ptp(lengths)])
pd.DataFrame({
    f"{title}, {rate}": {
        **{f"{form}, at the end": middle_half(last[form, title, rate])
           for form in forms},
        **{f"runs of {form}, most likely": middle_half(hindsight[form, title, rate])
           for form in forms}}
    for title, rate in cells}).T.rename_axis("learner, rate")

# %% tags=["hide-input"]
lowest, largest = filters.BANK[0], filters.BANK[-1]
all_last = {form: np.concatenate([last[form, *cell] for cell in cells])
            for form in forms}
on_edge = {form: np.mean((values <= lowest) | (values >= largest))
           for form, values in all_last.items()}
decades = {form: np.diff(np.log10(np.quantile(values, [0.1, 0.9]))).item()
           for form, values in all_last.items()}
run_length = np.median([len(run) for runs in ratios.values() for run in runs]) + 1
Markdown(
    f"A run has {run_length:.0f} episodes in the median. "
    "Over all cells, the middle 80 % of the last ratios span "
    + " and ".join(f"{decades[form]:.1f} decades ({form})" for form in forms)
    + ", and "
    + " and ".join(f"{on_edge[form]:.0%} ({form})" for form in forms)
    + " of the runs end at an edge of the allowed range. The median ratio at the end "
    "is " + " and ".join(f"{np.median(all_last[form]):.2g} ({form})" for form in forms)
    + f"; the one that was set is {set_ratio:g}.")

# %% [markdown]
# Does a ratio of one's own at least *predict* better?
# Take the runs of the fixed form and let all forms predict each next episode's mean return: the fixed ratio, the two that learn, and the single ratio that is most likely in hindsight, which nobody could have known.

# %%
def prediction_errors(z: np.ndarray) -> dict[str, float]:
    """Return every form's error, the root of its mean square, over the fixed one's."""
    likely = max(filters.estimate_noise(z).ratio, filters.BANK[0])  # some drift
    options = {"fixed": {"ratio": set_ratio}, "learned": {"noise": "learned"},
               "bank": {"noise": "bank"}, "in hindsight": {"ratio": likely}}
    size = {form: np.sqrt(np.mean((z[1:] - through(z, **one)[1]) ** 2))
            for form, one in options.items()}
    return {form: one / size["fixed"] for form, one in size.items()}

# %% tags=["hide-input"]
predicted = {}
for cell, frame in cells.items():
    runs = [prediction_errors(mean_return(lengths)) for lengths
            in frame[frame.arm == "episode_both"].train_returns
            if len(lengths) > 2 and np.ptp(lengths)]
    table = pd.DataFrame(runs).drop(columns="fixed")
    predicted[cell] = {
        form: stats.bootstrap(partial(stats.average, table[form]), len(table))
        for form in table}
pd.DataFrame({f"{title}, {rate}": {form: f"{found:.3f}" for form, found in row.items()}
              for (title, rate), row in predicted.items()}).T.rename_axis(
    "error over that of the fixed ratio")

# %% [markdown]
# In words, over the cells:

# %% tags=["hide-input"]
def ends(form: str) -> str:
    """Return the range of a form's errors over the cells."""
    row = [errors[form].estimate for errors in predicted.values()]
    return f"{min(row):.2f} to {max(row):.2f}"


def better_and_worse(form: str) -> str:
    """Return the range of a form's errors, and how many intervals exclude 1."""
    row = [errors[form] for errors in predicted.values()]
    return (f"{ends(form)} times that of the fixed ratio "
            f"(interval below 1 in {sum(one.high < 1 for one in row)} of {len(row)} "
            f"cells, above 1 in {sum(one.low > 1 for one in row)})")


Markdown("The prediction error is, by cell: "
         + "; ".join(f"{form} {better_and_worse(form)}"
                     for form in ("learned", "bank", "in hindsight"))
         + ". The last one was chosen with the whole run in sight, and says how much a "
         "better ratio had to offer. Hold these numbers against the factors above: to "
         "predict the next episode better or worse is one thing, and to train faster "
         "another.")

# %% [markdown]
# ## The limitation that the paper names
#
# Under "Limitations" the paper says first that both of its variants need $Q$ and $R$ set by hand; under "Future work" it asks for a filter that learns them.
# Its adaptive variant (P6) takes half a step: it follows $R$, by the squared surprises, and leaves $Q$ where it was set.
#
# That half step has two flaws, which can be seen in a simulation. What it follows are surprises, whose variance is $S = P^- + R$ and not $R$. And with one of the two knobs still in the units of the data, the gain depends on these units.

# %%
data = clean[0.1]
best = filters.steady_state(0.1, 1.0).gain


def adaptive_gain(scale: float) -> float:
    """Return the mean gain of the adaptive variant, Q told rightly for scale 1."""
    path = filters.adaptive_filter_series(scale * data, 0.1, 1.0)
    return float(path.gain[long // 2:].mean())


def bank_gain(scale: float) -> float:
    """Return the mean over some streams of the gain that a bank's noise settles at."""
    return float(np.mean([filters.bank_noise(banks(scale * z)[-1]).gain
                          for z in data[:, :some].T]))

# %% tags=["hide-input"]
adaptive_gains = {scale: adaptive_gain(scale) for scale in (0.1, 1.0, 10.0)}
bank_gains = {scale: bank_gain(scale) for scale in (0.1, 1.0, 10.0)}
assert np.ptp(list(bank_gains.values())) < 1e-3
pd.DataFrame({
    f"data times {scale:g}": {
        "adaptive (P6), Q = 0.1, R from its surprises": f"{adaptive_gains[scale]:.3f}",
        "bank, nothing set": f"{bank_gains[scale]:.3f}",
        "best": f"{best:.3f}"} for scale in bank_gains}).rename_axis("mean gain")

# %% [markdown]
# Read the rows from left to right:

# %% tags=["hide-input"]
Markdown(
    f"On data with Q = 0.1 and R = 1 the best gain is {best:.3f}. Told the right Q, "
    f"the adaptive variant has {adaptive_gains[1.0]:.3f}, and "
    f"{adaptive_gains[0.1]:.3f} or {adaptive_gains[10.0]:.3f} if the same data are "
    "divided or multiplied by ten. The bank, told nothing, has "
    f"{bank_gains[1.0]:.3f} in each case; what keeps it from the best is that it only "
    "knows the ratios of its grid.")

# %% [markdown]
# So the limitation can be lifted, and cheaply. What that is worth is another matter, and the runs above say how much of it could be measured.

# %% tags=["hide-input"]
def times_longer(name: str) -> float:
    """Return how many times as long as the likelihood a climber takes, long streams."""
    taken = slow["ms per stream"].astype(float)
    return (taken[f"{name}, {long:,} observations"]
            / max(taken[f"likelihood, {long:,} observations"], 0.1))


taken = np.mean([found[long, ratio, "bank"][1] for ratio in true_ratios])
per_step = 1e3 * taken / long
as_good = {form: count(form, "as good") for form in forms}
Markdown(
    f"In numbers: from {long:,} observations of the model (true ratios "
    + ", ".join(f"{one:g}" for one in true_ratios) + ") the ratio is found within a "
    f"factor of two in {shares('likelihood', long)} of streams by likelihood, and in "
    f"{shares('bank', long)} by a bank, online, for {per_step:.0f} µs per observation. "
    "In training on CartPole the bank was as good as the ratio that had been set in "
    f"{as_good['bank']} of {len(cells)} cells, the learned form in "
    f"{as_good['learned']}.")

# %% [markdown]
# ## What this does not show
#
# The simulated streams obey the model, apart from the outliers; episodes of a run do so only roughly (chapter 12), and a ratio that is right for the likelihood need not be the one that trains best.
# The runs are of CartPole, where one setting had been chosen with trials on the same task; on a task whose ratio lies far from 0.1, as LunarLander's does, a form that learns might gain what it could not gain here. That has not been run.
# The ratios along a run are those of the filter at the returns; what the filter at the advantages did is not in the records and cannot be computed again.
# The learned form forgets at one rate, 2 %, and the bank keeps all of its evidence; neither was tuned.
# And F4 has a margin of a tenth because the plan says so: a form could be slower by less than that and still be called as good.

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** A series is measured in other units, so that every value is multiplied by `c`. Its variances were $Q$ and $R$. Return the new $Q$, the new $R$, and the settled gain of the filter for the new series.

# %% tags=["stub"]
def in_other_units(Q: float, R: float, c: float) -> tuple[float, float, float]:
    """Return Q, R and the settled gain for a series times c."""


# %% nbgrader={"grade": false, "grade_id": "13-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def in_other_units(Q: float, R: float, c: float) -> tuple[float, float, float]:
    """Return Q, R and the settled gain for a series times c."""
    ### BEGIN SOLUTION
    return c**2 * Q, c**2 * R, filters.steady_state(Q, R).gain
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "13-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
trial = in_other_units(0.1, 1.0, 2.0)
assert trial is not None and len(trial) == 3, "three numbers: Q, R and the gain"
assert np.isclose(trial[0], 0.4), "Q is a variance: what happens to those if z doubles?"
assert np.isclose(trial[1], 4.0), "and so is R"
### BEGIN HIDDEN TESTS
for Q_given, R_given, c_given in ((0.1, 1.0, 2.0), (3.0, 0.5, 1e3), (0.01, 2.0, -5.0)):
    Q_new, R_new, gain_new = in_other_units(Q_given, R_given, c_given)
    assert np.isclose(Q_new / R_new, Q_given / R_given), "no unit changes the ratio"
    assert np.isclose(R_new, c_given**2 * R_given), "a variance goes with the square"
    assert np.isclose(gain_new, filters.steady_state(Q_given, R_given).gain), (
        "only the ratio decides the gain")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** The filters of a bank disagree. From their weights, means $x_i$ and variances $P_i$ (arrays of the same length, the variances in the units of the data) compute the mean and the variance of the mixture. Two filters that are both very sure, of different things, do not make a sure bank.

# %% tags=["stub"]
def mixture(weights: np.ndarray, means: np.ndarray, variances: np.ndarray) -> tuple:
    """Return the mean and the variance of a mixture of beliefs."""


# %% nbgrader={"grade": false, "grade_id": "13-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def mixture(weights: np.ndarray, means: np.ndarray, variances: np.ndarray) -> tuple:
    """Return the mean and the variance of a mixture of beliefs."""
    ### BEGIN SOLUTION
    mean = weights @ means
    return mean, weights @ (variances + (means - mean) ** 2)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "13-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
half_half = np.array([0.5, 0.5])
trial = mixture(half_half, np.array([-3.0, 3.0]), np.array([0.0, 0.0]))
assert trial is not None and len(trial) == 2, "a mean and a variance"
assert np.isclose(trial[0], 0), "the mean of -3 and 3, equally likely, is 0"
assert np.isclose(trial[1], 9), (
    "both filters are sure, one of -3 and one of 3: then the value is 3 away from the "
    "mean, either way, and the variance is not 0")
### BEGIN HIDDEN TESTS
for number in range(4):
    chance = np.random.default_rng(number)
    some_bank = banks(np.cumsum(chance.normal(0, 0.4, 25))
                      + chance.normal(0, 1, 25))[-1]
    share = filters.bank_weights(some_bank)
    in_units = some_bank.var * some_bank.squares / some_bank.count
    answer = mixture(share, some_bank.mean, in_units)
    assert np.allclose(answer, filters.bank_belief(some_bank)), (
        "the library's `bank_belief` says otherwise: are both parts weighted, the "
        "filters' own variances and the spread of their means?")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (open: train a small study).** Is what was found for a filter at both doors also true at the returns alone? Take `plan.part("episodes_actor_critic_slower").configs["episode"]`, vary its option `noise` ("fixed", "learned", "bank"), train on some seeds for a fixed number of episodes, and return the mean evaluation return of each run.
# Then set `ahead` to the share of the seeds 3200, 3201 and 3202 on which the bank has the higher mean than the fixed ratio over fifteen episodes. (And then more seeds and episodes: how many would you need to call one as good as the other?)

# %% tags=["stub"]
def noise_study(noises: list[str], seeds: list[int], episodes: int) -> pd.DataFrame:
    """Return mean evaluation returns, a row for each seed, a column for each noise."""


ahead = None

# %% nbgrader={"grade": false, "grade_id": "13-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def noise_study(noises: list[str], seeds: list[int], episodes: int) -> pd.DataFrame:
    """Return mean evaluation returns, a row for each seed, a column for each noise."""
    ### BEGIN SOLUTION
    form = plan.part("episodes_actor_critic_slower").configs["episode"]
    table = pd.DataFrame(index=list(seeds), columns=list(noises), dtype=float)
    for noise in noises:
        config = replace(form, max_episodes=episodes,
                         normalizer=form.normalizer | {"noise": noise})
        for number in seeds:
            table.loc[number, noise] = np.mean(train(config, number)["eval_returns"])
    return table
    ### END SOLUTION


ahead = None
### BEGIN SOLUTION
small = noise_study(["fixed", "bank"], [3200, 3201, 3202], 15)
ahead = float(np.mean(small["bank"] > small["fixed"]))
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "13-3-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
def trained(noise: str, number: int, episodes: int) -> float:
    """Return the mean evaluation return of one run of the study."""
    form = plan.part("episodes_actor_critic_slower").configs["episode"]
    options = form.normalizer | {"noise": noise}
    run = train(replace(form, max_episodes=episodes, normalizer=options), number)
    return float(np.mean(run["eval_returns"]))


trial = noise_study(["bank", "fixed"], [3200, 3201], 15)
assert trial is not None, "return a table"
assert trial.shape == (2, 2), "a row for each seed, a column for each noise"
assert np.isclose(trial.loc[3201, "bank"], trained("bank", 3201, 15)), (
    "each entry is the mean of `eval_returns` of the run with its noise and seed")
assert ahead is not None and 0 <= ahead <= 1, "a share of the seeds"
### BEGIN HIDDEN TESTS
other = noise_study(["learned"], [3207], 6).loc[3207, "learned"]
assert np.isclose(other, trained("learned", 3207, 6)), "any noises, seeds and lengths"
better = [trained("bank", number, 15) > trained("fixed", number, 15)
          for number in (3200, 3201, 3202)]
assert np.isclose(ahead, np.mean(better)), (
    "on how many of the three seeds is the bank ahead, over fifteen episodes?")
### END HIDDEN TESTS

# %% [markdown]
# ## Summary

# %% tags=["hide-input"]
lowest_share = min(near(found[long, ratio, "likelihood"][0], ratio)
                   for ratio in true_ratios)
short_share = min(near(found[short, ratio, "likelihood"][0], ratio)
                  for ratio in true_ratios)
lowered = max(middles["likelihood", "with"], 1e-8)
Markdown(
    f"**Answer.** From {long:,} observations of the model a filter finds its own ratio "
    f"within a factor of two in {lowest_share:.0%} of streams or more, depending on "
    f"the ratio; from {short:,}, in {short_share:.0%} or more, and a run of CartPole "
    f"has {run_length:.0f} episodes in the median. Three outliers in a hundred lower "
    f"its estimate by a factor of {middles['likelihood', 'without'] / lowered:.1f}. As "
    f"a normalizer on CartPole (n = {seeds} per arm) a bank of filters was as good as "
    f"the ratio that had been set in {as_good['bank']} of {len(cells)} cells of "
    f"learner and rate and worse in {count('bank', 'worse')}; the learned form was as "
    f"good in {as_good['learned']} and worse in {count('learned', 'worse')}; in the "
    "others it cannot be told.")

# %% tags=["hide-input"]
points = [
    "Only Q/R has to be found: for each ratio the best R can be written down, and what "
    "is left is a search in one dimension.",
    f"Within a factor of two of Q/R = {', '.join(f'{one:g}' for one in true_ratios)}: "
    + "; ".join(f"{name} {shares(name, long)} of {long:,} and {shares(name, short)} of "
                f"{short:,} observations" for name in ("likelihood", "bank")) + ".",
    f"The gradient through the filter ends {max(short_of['L-BFGS, 15 steps'], 0):.1g} "
    f"nats below the maximum that scipy finds. For {long:,} observations it takes "
    f"{times_longer('gradient'):,.0f} times as long as the search in one dimension, "
    f"statsmodels {times_longer('statsmodels'):,.0f} times.",
    f"Without drift the estimate is Q = 0 in {edge[long, 0.0]:.0%} of streams; with "
    f"Q/R = 0.01 and {short:,} observations in {edge[short, 0.01]:.0%}.",
    "Three outliers in a hundred take the median ratio of the bank from "
    f"{middles['bank', 'without']:.3f} to {middles['bank', 'with']:.3f}, of the robust "
    f"one from {middles['bank, robust', 'without']:.3f} to "
    f"{middles['bank, robust', 'with']:.3f}.",
    *(f"F4, {form}: {told}." for form, told in tally.items()),
    "Errors of predicting the next episode, over those of the fixed ratio: "
    + "; ".join(f"{form} {ends(form)}" for form in ("learned", "bank", "in hindsight"))
    + ".",
]
Markdown("\n".join(f"- {point}" for point in points))

# %% [markdown]
# **References.** A. C. Harvey, *Forecasting, structural time series models and the Kalman filter* (1989).
# D. T. Magill, *Optimal adaptive estimation of sampled stochastic processes*, IEEE Transactions on Automatic Control 10 (1965).
# R. K. Mehra, *On the identification of variances and adaptive Kalman filtering*, IEEE Transactions on Automatic Control 15 (1970).
# N. G. Shephard and A. C. Harvey, *On the probability of estimating a deterministic component in the local level model*, Journal of Time Series Analysis 11 (1990).
# S. Seabold and J. Perktold, *statsmodels* (2010).
# Z. Xia and Q. Li, *K-Score*, sections on limitations and future work.

# %%
chapter.footer()
