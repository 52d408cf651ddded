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
# # 02 The steady state
#
# **Question.** Where does the filter's uncertainty settle and how fast, what does a wrong setting cost, and does some moving average do the same?
#
# *For* readers of chapter 01.
# *Know first:* the five lines of the filter, and the logarithm.
# *Runs in* under half a minute.
# Previous: [01 Where the filter comes from](01_filter_derivation.ipynb) · Next: [03 From filter to score](03_from_filter_to_score.ipynb)

# %% [markdown]
# ## Question
#
# The paper states the filter's steady state in one line and builds an argument on it: because the variance stays above zero, the filter never stops learning.
# The line is short enough to check, and we expect it to hold.
# It would be wrong if the recursion settled elsewhere for some ratio $Q/R$, or if an independent solver disagreed.
# The argument is another matter: it would be weak if a plain moving average did the same, or if everything hung on getting $Q$ and $R$ right.
# We check the line over many orders of magnitude, and the argument with wrong settings and with a sudden change.
#
# After this chapter you can
#
# - derive $P_\infty$ and the steady gain $K_\infty$, and draw how the variance gets there;
# - look up how many steps a filter needs to warm up;
# - say when $P_\infty \approx \sqrt{QR}$ may be used, and how wrong it is;
# - predict how much a wrong $Q$ or $R$ costs, and which part of the mistake costs nothing;
# - explain what the filter does after a sudden change, and which moving average does the same.

# %% [markdown]
# ## Setup

# %%
import numpy as np
import pandas as pd
import sympy as sp
from IPython.display import Markdown, display
from matplotlib.colors import BoundaryNorm
from scipy.linalg import solve_discrete_are

from kscore import chapters, figures, filters

chapter = chapters.begin("02_steady_state")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seed: int = 2                  # of every random number here [0, 1000000000]
lowest_ratio: float = 1e-8     # smallest Q / R that is verified [1e-08, 0.01]
highest_ratio: float = 1e8     # largest Q / R [100, 1e+08]
ratios: int = 33               # how many in between, evenly in the logarithm [5, 1000]
streams: int = 2_000           # simulated streams per estimate [500, 1000000]
steps: int = 300               # length of the simulated streams [120, 100000]
Q: float = 0.01                # drift of the simulated streams [0.001, 10]
R: float = 1.0                 # observation noise of the simulated streams [0.1, 2]
jump: float = 5.0              # of the mean, in noise standard deviations [0.1, 1000]
popular_decay: float = 0.99    # of a moving average beside the filter [0.5, 0.9999]

# %% [markdown]
# ## Notation
#
# | symbol | meaning | in code |
# |---|---|---|
# | $P_\infty,\ P_\infty^-$ | posterior and prior variance in the steady state | `steady.var`, `steady.prior_var` |
# | $K_\infty$ | the steady gain | `steady.gain` |
# | $\rho = Q/R$ | how fast the mean drifts, in units of the noise | `ratio` |
# | $m_t$ | the latent mean, as in chapter 01 | `latent` |
# | $V_\infty(k)$ | steady error variance of a tracker with the constant gain $k$ | `tracking_mse` |

# %%
rng = np.random.default_rng(seed)
time_axis = np.arange(1, steps + 1)

# %% [markdown]
# ## Where the variance comes to rest
#
# One step of the variance recursion adds $Q$ and then shrinks by $1 - K$:
#
# $$P_t = f(P_{t-1}), \qquad f(P) = \frac{(P + Q)\,R}{P + Q + R}. \tag{2.1}$$
#
# Picture it as a tug of war.
# Every step of drift pulls the variance up by $Q$; every observation pulls it down, and pulls harder the larger it is.
# Far above some point the observation wins, far below it the drift wins, and in between there is one place where neither does.
#
# A *cobweb diagram* shows where.
# Draw the curve $f$ and the diagonal.
# From the present variance go up or down to the curve, which gives the next variance; go across to the diagonal, which makes the next variance the present one; repeat.

# %%
def next_variance(P: float, Q: float, R: float) -> float:
    """Let one step of drift pass and one observation come in, (2.1)."""
    return (P + Q) * R / (P + Q + R)


def cobweb(P: float, Q: float, R: float, turns: int = 12) -> np.ndarray:
    """Return the corners of the staircase between curve and diagonal, (2, corners)."""
    corners = [(P, 0.0)]
    for _ in range(turns):
        following = next_variance(P, Q, R)
        corners += [(P, following), (following, following)]
        P = following
    return np.transpose(corners)

# %% [markdown]
# *Predict the plot:* with drift, where do staircases end that start far above and far below? And where do they end without drift?

# %% tags=["hide-input"]
fig, axes = figures.panels(1, 2, height=4.2, sharey=True)
span = np.linspace(0, 1.2, 200)
for ax, drift in zip(axes, (0.1, 0.0), strict=True):
    ax.plot(span, span, color=figures.GREY, linewidth=1, linestyle=":",
            label="diagonal, P′ = P")
    ax.plot(span, next_variance(span, drift, 1.0), color=figures.INK,
            label="curve, P′ = f(P)")
    for P0, color, line in ((1.15, figures.ORANGE, "-"), (0.02, figures.BLUE, "--")):
        ax.plot(*cobweb(P0, drift, 1.0), color=color, linestyle=line, linewidth=1.2,
                label=f"from P₀ = {P0:g}")
    rest = filters.steady_state(drift, 1.0).var
    ax.plot(rest, rest, "*", color=figures.GREEN, markersize=15, clip_on=False,
            zorder=3, label="where it rests")
    ax.set(xlim=(0, 1.2), ylim=(0, 0.75))
    figures.label(ax, f"Q = {drift:g}, R = 1", "variance P", "next variance P′")
axes[1].set_ylabel("")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Left: with drift the curve starts above zero and crosses the diagonal once; both "
    "staircases end there. Right: without drift curve and diagonal meet at zero only, "
    "and the steps towards it get smaller and smaller.",
    alt="Two cobweb diagrams. Left, with drift: a curve crosses the diagonal at about "
    "0.27, and staircases from above and from below run into the crossing. Right, "
    "without drift: the curve lies below the diagonal, and the staircase creeps down "
    "towards zero.")

# %% [markdown]
# The crossing is where $P = f(P)$, a quadratic, $P^2 + QP - QR = 0$.
# It has one positive root, and the gain follows from it:
#
# $$P_\infty = \tfrac12\Big(\sqrt{Q^2 + 4QR} - Q\Big), \qquad K_\infty = P_\infty / R. \tag{P7}$$
#
# How steep the curve is at the crossing decides how fast the staircase gets there.
# For every $P \ge 0$ the slope is
#
# $$0 < f'(P) = \frac{R^2}{(P + Q + R)^2} \le \Big(\frac{R}{Q + R}\Big)^2,$$
#
# which is less than one when $Q > 0$: $f$ is a contraction, so every start leads to $P_\infty$.
# At the crossing itself the slope is $(1 - K_\infty)^2$, and a small deviation shrinks by that factor every step:
#
# $$P_{t+1} - P_\infty \approx (1 - K_\infty)^2\,(P_t - P_\infty). \tag{D1}$$
#
# Computer algebra confirms the root and the slope.

# %%
P, q, r = sp.symbols("P Q R", positive=True)
f = (P + q) * r / (P + q + r)
P_inf, = sp.solve(sp.Eq(P, f), P)  # there is only one
K_inf = P_inf / r
assert sp.simplify(P_inf - (sp.sqrt(q**2 + 4 * q * r) - q) / 2) == 0
assert sp.simplify(sp.diff(f, P).subs(P, P_inf) - (1 - K_inf) ** 2) == 0

# %% [markdown]
# Everything so far depends on $Q$ and $R$ through their ratio $\rho = Q/R$, up to units.
# Divide the quadratic by $R^2$ and it speaks of $K_\infty = P_\infty/R$ and $\rho$ only: $K^2 + \rho K - \rho = 0$.
# For the *mean*, one of the two knobs is only a unit.
# Turn both on [the page with one filter](http://localhost:8000/#view=filter&Q=0.1) (`make play` builds it, `python3 -m http.server -d build/play` serves it): with $Q$ and $R$ ten times as large the gain stays where it is, and $P_\infty$ does not.
#
# And if $Q = 0$, nothing pulls upwards.
# The variance sinks to zero: the filter becomes sure of itself and stops learning.

# %% [markdown]
# ## Four witnesses
#
# A formula can be right and still be computed wrongly.
# We ask four witnesses who share as little as possible:
#
# 1. the **recursion** (2.1), iterated until it stops moving;
# 2. the **closed form** (P7) as the paper prints it;
# 3. `scipy.linalg.solve_discrete_are`, which knows nothing of scalars: it solves the discrete algebraic Riccati equation by an eigenvalue problem and returns $P_\infty^-$;
# 4. `kscore.filters.steady_state`, which uses the algebraically equal form $K = 2\sqrt Q / (\sqrt{Q + 4R} + \sqrt Q)$.
#
# To see the limits of floating point as well, we add a fifth: the recursion with $P = (1 - K)P^-$ exactly as textbooks print it.

# %%
def settle(Q: float, R: float, textbook: bool = False) -> float:
    """Iterate the recursion from P = 1 until only the last digit moves."""
    P = 1.0
    for _ in range(300_000):  # a limit, because rounding may also end in a cycle
        P_prior = P + Q
        K = P_prior / (P_prior + R)
        previous, P = P, (1 - K) * P_prior if textbook else K * R
        if abs(P - previous) < 3e-16 * P:
            break
    return P


def riccati(Q: float, R: float) -> float:
    """Solve the Riccati equation of the 1 x 1 system; return the posterior variance."""
    prior_var = solve_discrete_are(*np.array([1.0, 1.0, Q, R])[:, None, None]).item()
    return prior_var * R / (prior_var + R)

# %% [markdown]
# *Predict the plot:* all five are algebraically right; two are numerically fragile. Which ones, and at which end of the axis?

# %%
ratio = np.logspace(np.log10(lowest_ratio), np.log10(highest_ratio), ratios)
reference = np.array([filters.steady_state(rho, 1.0).var for rho in ratio])
witnesses = pd.DataFrame({
    "recursion, P = K R": [settle(rho, 1.0) for rho in ratio],
    "Riccati solver (scipy)": [riccati(rho, 1.0) for rho in ratio],
    "closed form as printed": (np.sqrt(ratio**2 + 4 * ratio) - ratio) / 2,
    "recursion, P = (1 − K) P⁻": [settle(rho, 1.0, textbook=True) for rho in ratio],
}, index=ratio)
errors = np.abs(witnesses.sub(reference, axis=0)).div(reference, axis=0)

# %% tags=["hide-input"]
assert errors.iloc[:, :2].to_numpy().max() < 1e-10
fig, axes = figures.panels(1, 2, height=3.4, sharey=True)
looks = (("o", figures.BLUE, "-"), ("s", figures.GREEN, "--"),
         ("^", figures.ORANGE, "-"), ("v", figures.RED, "--"))
digits = -np.log10(errors.clip(lower=1e-16))
for place, (name, (mark, color, line)) in enumerate(zip(digits, looks, strict=True)):
    axes[place // 2].semilogx(ratio, digits[name], color=color, linestyle=line,
                              marker=mark, fillstyle="none", markersize=4, label=name)
titles = ("No cancellation", "Cancellation where Q ≫ R")
for ax, title in zip(axes, titles, strict=True):
    ax.set_ylim(0, 17)
    figures.label(ax, title, "Q / R", "", legend="lower left")
axes[0].set_ylabel("digits shared with kscore")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"All agree to {errors.to_numpy().max():.0e} (n = {ratios} ratios; a double has "
    "about sixteen digits). The two printed formulas, on the right, lose digits where "
    "Q is much larger than R; recursions and solver lose a few where it is much "
    "smaller, as they converge slowly there.",
    alt="Digits in agreement against Q over R. Left: recursion and Riccati solver keep "
    "at least eleven digits everywhere. Right: the closed form as printed and the "
    "textbook recursion fall to about eight digits at the right-hand end.")

# %% [markdown]
# Both fragile formulas subtract two nearly equal numbers: $\sqrt{Q^2 + 4QR} - Q$ when $Q \gg R$, and $1 - K$ when $K \approx 1$.
# The mathematics is right, and yet about half of the digits are gone.
# So (P7) holds, and from here on `kscore.filters.steady_state` computes it for us.

# %% [markdown]
# ## How fast it gets there
#
# A deviation from $P_\infty$ shrinks by $(1 - K_\infty)^2$ per step (D1).
# So the number of steps to halve it is $\ln 2 / (-2\ln(1 - K_\infty))$: few for a quick filter, many for a patient one.
# We measure the factor on the recursion itself, late enough for the deviation to be small and early enough for it to be more than rounding error.

# %%
def measured_rate(rho: float) -> float:
    """Fit the factor by which |P / P∞ - 1| shrinks per step, from 1e-3 to 1e-8."""
    steady = filters.steady_state(rho, 1.0)
    start = filters.Belief(0.0, 4 * steady.var)
    length = int(20 / steady.gain) + 40
    path = filters.filter_series(np.zeros(length), rho, 1.0, start).var
    deviation = np.abs(path / steady.var - 1)
    use = np.flatnonzero((deviation < 1e-3) & (deviation > 1e-8))
    return np.exp(np.polyfit(use, np.log(deviation[use]), 1)[0])

# %% tags=["hide-input"]
speed = pd.DataFrame({"Q/R": [1e-6, 1e-4, 1e-2, 1e-1, 1.0]})
speed["K∞"] = [filters.steady_state(rho, 1.0).gain for rho in speed["Q/R"]]
speed["(1 − K∞)²"] = (1 - speed["K∞"]) ** 2
speed["measured factor"] = [measured_rate(rho) for rho in speed["Q/R"]]
speed["steps to halve"] = np.log(2) / -np.log(speed["(1 − K∞)²"])
assert np.allclose(speed["measured factor"], speed["(1 − K∞)²"], rtol=1e-3)
(speed.style.hide(axis="index")
 .format({"Q/R": "{:g}", "steps to halve": "{:.1f}"}, precision=6))

# %% [markdown]
# Read the last column as a warm-up time.
# A filter with $Q/R = 10^{-4}$, the smallest value in the paper's Table 2, takes dozens of steps to halve its distance from the steady state; one with $Q/R = 1$ forgets where it started almost at once.
# Nothing in this table depends on the data, so the warm-up can be looked up before training begins.
#
# *Predict the plot:* filters with three ratios $Q/R$ start from a variance ten times too large, and again from one ten times too small.
# On a logarithmic axis, what shape does $|P_t/P_\infty - 1|$ have, and what sets the three ratios apart?

# %% tags=["hide-input"]
fig, ax = figures.panels()
looks = {1.0: (figures.BLUE, "-"), 1e-2: (figures.ORANGE, "--"),
         1e-4: (figures.GREEN, "-.")}
for rho, (color, line) in looks.items():
    rest = filters.steady_state(rho, 1.0).var
    for factor in (10, 0.1):
        path = filters.filter_series(np.zeros(steps), rho, 1.0,
                                     filters.Belief(0.0, factor * rest)).var
        ax.semilogy(time_axis, np.maximum(np.abs(path / rest - 1), 1e-16),
                    color=color, linestyle=line,
                    label=f"Q/R = {rho:g}" if factor > 1 else None)
figures.label(ax, "Distance from the steady state, from above and from below",
              "step t", "|P / P∞ − 1|", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Straight after the first steps, down to rounding: the approach is exponential, "
    "from a start ten times too uncertain (upper line of each pair) as well as from "
    "one ten times too sure. A patient filter (small Q/R) is slow to settle, too.",
    alt="Three pairs of lines falling on a logarithmic axis, steep for Q over R of "
    "one, shallow for one ten-thousandth.")

# %% [markdown]
# ## The square-root regime
#
# For $Q \ll R$ the paper uses $P_\infty \approx \sqrt{QR}$.
# Pull $\sqrt{QR}$ out of the closed form, with $\rho = Q/R$:
#
# $$P_\infty = \sqrt{QR}\,\Big(\sqrt{1 + \rho/4} - \tfrac12\sqrt\rho\Big) = \sqrt{QR}\,\Big(1 - \tfrac12\sqrt\rho + \tfrac18\rho - \dots\Big). \tag{2.2}$$
#
# So by (2.2) the shortcut is too large, by a relative error of about $\tfrac12\sqrt\rho$.
# That is slow to vanish: to halve the error, $Q/R$ has to fall to a quarter.

# %%
shortcut_error = np.sqrt(ratio) / reference - 1
small = ratio <= 1e-2
assert np.allclose(shortcut_error[small], np.sqrt(ratio[small]) / 2, rtol=0.06)

# %% [markdown]
# *Predict the plot:* what does the shortcut say of the gain when $Q$ is larger than $R$, and what is wrong with that?

# %% tags=["hide-input"]
fig, (left, right) = figures.panels(1, 2, height=3.2)
drawn = np.logspace(-6, 2, 200)
left.loglog(drawn, [filters.steady_state(rho, 1.0).gain for rho in drawn],
            color=figures.BLUE, label="exact K∞ = P∞ / R")
left.loglog(drawn, np.sqrt(drawn), "--", color=figures.ORANGE, label="shortcut √(Q/R)")
left.axhline(1, color=figures.GREY, linewidth=0.8, linestyle=":")
figures.label(left, "The steady gain", "Q / R", "gain", legend="upper left")
marked = np.array([1e-6, 1e-4, 1e-2, 1.0])
percent = 100 * (np.sqrt(marked)
                 / [filters.steady_state(rho, 1.0).var for rho in marked] - 1)
right.loglog(marked, percent, "o", color=figures.BLUE, label="exact")
right.loglog(drawn[drawn <= 1], 50 * np.sqrt(drawn[drawn <= 1]), "--",
             color=figures.ORANGE, label="½ √(Q/R)")
for rho, value in zip(marked, percent, strict=True):
    right.annotate(f"{value:.2g} %", (rho, value), (-6, 6), ha="right", fontsize=9,
                   textcoords="offset points")
right.set(xlim=(1e-8, 5), ylim=(0.02, 200))
figures.label(right, "How much too large the shortcut is", "Q / R", "error in %",
              legend="lower right")
figures.show(fig)

# %% tags=["hide-input"]
at = {rho: np.sqrt(rho) / filters.steady_state(rho, 1.0).var - 1
      for rho in (1e-4, 1e-2, 1.0)}
figures.caption(
    f"The shortcut is {100 * at[1e-4]:.1f} % too large at Q/R = 1e-4, "
    f"{100 * at[1e-2]:.0f} % at 1e-2, and {100 * at[1.0]:.0f} % at 1. A gain cannot "
    "exceed one, which the shortcut does not know.",
    alt="Left: the exact steady gain bends towards one as Q over R grows while the "
    "square root goes on rising. Right: the error of the square root in percent "
    "follows one half times the root of the ratio up to about 0.01 and exceeds it at "
    "one.")

# %% [markdown]
# ## A mean that stands still
#
# Before we ask how to follow a moving mean, a word on one that does not move.
# The sample mean of $t$ independent observations of variance $\sigma^2$ has the mean squared error $\sigma^2/t$ (P8), and the filter with $Q = 0$ and a vague prior *is* the sample mean (1.5).
# What if the filter is told, wrongly, that the mean drifts?
# It forgets, and its error cannot fall for ever: a constant gain $k$ on a mean that stands still leaves the error variance $kR/(2 - k)$, as (2.4) below says for $Q = 0$.

# %%
noise = rng.normal(0, np.sqrt(R), (steps, streams))  # a mean of zero, seen through R
vague = filters.Belief(0.0, 1e12)
averaging = filters.filter_series(noise, Q=0, R=R, start=vague).mean
forgetting = filters.filter_series(noise, Q=Q, R=R, start=vague).mean

mse, theory = np.mean(averaging**2, axis=1), R / time_axis
assert np.abs(mse / theory - 1).max() < 6 * np.sqrt(2 / streams)

# %% [markdown]
# *Predict the plot:* on logarithmic axes, what do the errors of the two look like?

# %% tags=["hide-input"]
fig, ax = figures.panels(height=3.4)
gain = filters.steady_state(Q, R).gain
ax.loglog(time_axis, np.mean(forgetting**2, axis=1), color=figures.ORANGE,
          label=f"filter told Q = {Q:g}")
ax.axhline(gain * R / (2 - gain), color=figures.GREEN, linestyle="-.",
           label="k R / (2 − k)")
ax.loglog(time_axis, mse, color=figures.SKY, linewidth=4, label="filter told Q = 0")
ax.loglog(time_axis, theory, color=figures.INK, linestyle="--", linewidth=1,
          label="σ² / t")
figures.label(ax, f"Error on a mean that stands still (n = {streams:,} streams)",
              "step t", "mean squared error", legend="lower left")
figures.show(fig)

# %% tags=["hide-input"]
half_width = 1.96 * np.std(averaging**2, axis=1) / np.sqrt(streams)
covered = np.mean(np.abs(mse - theory) < half_width)
figures.caption(
    "Averaging gets better for ever, and P8 holds: the pointwise 95 % interval covers "
    f"σ²/t at {100 * covered:.0f} % of the steps (neighbouring steps share most of "
    "their data, so they err together). The filter that forgets stops improving.",
    alt="Mean squared error against steps on logarithmic axes: that of the averaging "
    "filter falls along sigma squared over t, that of the filter told a drift levels "
    "off.")

# %% [markdown]
# This is the case in which averaging everything is *right*, and any filter with $Q > 0$ is worse, because it throws old data away.
# The argument for forgetting starts only when the mean moves.

# %% [markdown]
# ## A mean that drifts, and a filter told the wrong story
#
# Now the mean moves as the model says, with the true $Q$ and $R$.
# The filter, however, is told some other $Q'$ and $R'$; in reinforcement learning it always is, since nobody knows them.
# In its steady state it tracks with a constant gain $k = K_\infty(Q'/R')$, and its error obeys
#
# $$e_t = x_t - m_t = (1 - k)(e_{t-1} - w_t) + k\,v_t . \tag{2.3}$$
#
# Square it, take means, and ask for the variance that reproduces itself, $V = (1 - k)^2(V + Q) + k^2 R$, which is (1.3) with $P^- = V + Q$:
#
# $$V_\infty(k) = \frac{(1 - k)^2 Q + k^2 R}{1 - (1 - k)^2}. \tag{2.4}$$
#
# Before using (2.4), we check it against simulated streams: if we start every tracker with an error of that variance, the error at the end must have the same variance again.

# %%
def tracking_mse(k: float, Q: float, R: float) -> float:
    """Return the steady error variance of a constant gain on a random walk, (2.4)."""
    return ((1 - k) ** 2 * Q + k**2 * R) / (1 - (1 - k) ** 2)


latent = np.cumsum(rng.normal(0, np.sqrt(Q), (steps, streams)), axis=0)
observed = latent + rng.normal(0, np.sqrt(R), (steps, streams))

# %% [markdown]
# Each row of the table below is one call of the next function.

# %%
def told_wrongly(factor: float) -> tuple[float, ...]:
    """Tell the filter `factor` times the true Q; return what it does and claims."""
    told = filters.steady_state(factor * Q, R)
    expected = tracking_mse(told.gain, Q, R)
    error = rng.normal(0, np.sqrt(expected), streams)  # of trackers that ran for long
    start = filters.Belief(error, told.var)
    path = filters.filter_series(observed, factor * Q, R, start)
    measured = np.mean((path.mean - latent)[-1] ** 2)
    return factor, told.gain, measured, expected, told.var

# %% tags=["hide-input"]
costs = pd.DataFrame(
    [told_wrongly(factor) for factor in (0.01, 0.1, 1.0, 10.0, 100.0)],
    columns=["Q′ / Q", "gain", "measured MSE", "V∞(k)", "claimed P∞"])
assert np.allclose(costs["measured MSE"], costs["V∞(k)"],
                   rtol=6 * np.sqrt(2 / streams))
(costs.style.hide(axis="index").format({"Q′ / Q": "{:g}"}, precision=4)
 .set_caption(f"n = {streams:,} streams, at step {steps}"))

# %% [markdown]
# Compare the last two columns.
# With the right $Q$ the filter's claim about its own error is true.
# Told that the mean hardly moves, it claims to be far more accurate than it is; told that it moves a lot, it is too modest.
# Keep this in mind: the K-Score divides by the square root of the *claimed* variance.
#
# Both told values can be wrong at once.

# %%
told_Q, told_R = Q * np.logspace(-4, 4, 81), R * np.logspace(-3, 3, 61)
gains = np.array([[filters.steady_state(a, b).gain for a in told_Q] for b in told_R])
best_mse = filters.steady_state(Q, R).var
cost = tracking_mse(gains, Q, R) / best_mse
claim = gains * told_R[:, None] / tracking_mse(gains, Q, R)

# %% [markdown]
# *Predict the plot:* over the plane of told $Q'$ and told $R'$, what shape does the tracking error have? And the claim, in units of the truth?

# %% tags=["hide-input"]
maps = {
    "What it costs": (cost, (1, 1.1, 1.5, 2, 5, 10, 100),
                      "tracking error / best possible"),
    "What is claimed": (claim, (1e-3, 0.01, 0.1, 0.5, 1, 2, 10, 100, 1e3),
                        "claimed variance / true variance"),
}
fig, axes = figures.panels(1, 2, height=4.4, sharey=True)
for ax, (title, (values, levels, meaning)) in zip(axes, maps.items(), strict=True):
    norm = BoundaryNorm(levels, 256, extend="both" if levels[0] < 1 else "max")
    shade = ax.contourf(told_Q / Q, told_R / R, values, levels=levels, norm=norm,
                        extend=norm.extend)
    bar = fig.colorbar(shade, ax=ax, ticks=levels, format="%g", location="bottom",
                       aspect=24, label=meaning)
    bar.ax.tick_params(labelsize=8)
    ax.plot(1, 1, "*", color="white", markeredgecolor=figures.INK, markersize=14)
    ax.set(xscale="log", yscale="log", title=title, xlabel="told Q / true Q")
    ax.minorticks_off()
axes[0].set_ylabel("told R / true R")
axes[1].contour(told_Q / Q, told_R / R, claim, levels=[1], colors="white",
                linewidths=1.5)
axes[1].text(30, 1.15, "the claim is true", color="white", fontsize=9, ha="left")
axes[0].text(30, 30, "same ratio", color="white", fontsize=9, rotation=44,
             ha="center", va="center", rotation_mode="anchor")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "The star is the truth. Left: only the ratio of the two matters for the mean, so "
    "mistakes that cancel cost nothing. Right: the claimed variance is true only on "
    "the white curve, so mistakes that cancel in the mean still spoil the scale.",
    alt="Two maps over told Q and told R, with labelled colour bars and a star at the "
    "truth. Left: a diagonal valley of low tracking error. Right: the ratio of claimed "
    "to true variance, which is one only on an L-shaped white curve through the star.")

# %% tags=["hide-input"]
def extra_cost(factor: float) -> float:
    """Return by how many percent a wrong Q raises the tracking error."""
    gain = filters.steady_state(factor * Q, R).gain
    return 100 * (tracking_mse(gain, Q, R) / best_mse - 1)


scaled = filters.steady_state(100 * Q, 100 * R)
assert np.isclose(scaled.gain, filters.steady_state(Q, R).gain)
Markdown(
    f"The valley is flat near its floor: a $Q'$ half as large as the truth costs "
    f"**{extra_cost(0.5):.1f} %** in tracking error, one twice as large "
    f"**{extra_cost(2):.1f} %**; a tenth costs {extra_cost(0.1):.0f} %, ten times "
    f"{extra_cost(10):.0f} %.\nTold both $Q$ and $R$ a hundred times too large, the "
    "filter tracks *exactly* as well as the best, and claims a variance "
    f"**{scaled.var / best_mse:.0f} times** the true one.")

# %% [markdown]
# The paper does not mention this, and it is worth a pause.
# *The mean needs one number, $Q/R$, and forgives small mistakes about it.*
# *The scale needs both, and a common factor in $Q$ and $R$, which the mean does not notice at all, goes into it in full.*
# A normalizer that subtracts $x$ and divides by $\sqrt P$ inherits the first in its numerator and the second in its denominator.

# %% [markdown]
# ## When it fails: a sudden change
#
# Policies do more than drift.
# Sometimes the agent finds something, and returns jump from one regime to another.
# We simulate a mean that jumps half-way by a few noise standard deviations, and let four trackers follow: the running mean, an EMA with a popular decay, the EMA with the *matched* decay $1 - K_\infty$ (D5), and the filter.
#
# A jump is outside the model: under (P1) with a small $Q$ it would be a miracle.
# The filter does not know that anything special has happened, since its gain does not look at the data; it just keeps correcting a fixed share of each surprise.

# %%
def moving_average(z: np.ndarray, decay: float) -> np.ndarray:
    """Track every stream by an exponential moving average, from zero."""
    level, path = np.zeros(z.shape[1]), np.empty(z.shape)
    for t, z_t in enumerate(z):
        level = decay * level + (1 - decay) * z_t
        path[t] = level
    return path


change, height = steps // 2, jump * np.sqrt(R)
regime = np.where(time_axis > change, height, 0.0)[:, None]
noisy = regime + rng.normal(0, np.sqrt(R), (steps, streams))

# %% [markdown]
# *Predict the plot:* which two curves lie on top of each other, and who is best while nothing changes?

# %%
matched_decay = 1 - filters.steady_state(Q, R).gain
matched_name = f"EMA, matched decay {matched_decay:.3f}"
trackers = {
    "running mean": np.cumsum(noisy, axis=0) / time_axis[:, None],
    f"EMA, decay {popular_decay:g}": moving_average(noisy, popular_decay),
    matched_name: moving_average(noisy, matched_decay),
    f"filter, Q = {Q:g}": filters.filter_series(noisy, Q, R).mean,
}

# %% tags=["hide-input"]
looks = ((figures.SKY, "--", 1.6), (figures.PURPLE, ":", 1.6),
         (figures.GREEN, "-", 5), (figures.ORANGE, "-", 1.6))
fig, (left, right) = figures.panels(1, 2, height=3.6)
left.plot(time_axis, regime, color=figures.INK, linewidth=1, label="true mean")
for (name, path), (color, line, width) in zip(trackers.items(), looks, strict=True):
    look = {"color": color, "linestyle": line, "linewidth": width}
    left.plot(time_axis, np.median(path, axis=1), label=name, **look)
    right.semilogy(time_axis, np.mean((path - regime) ** 2, axis=1), **look)
figures.label(left, f"Median belief (n = {streams:,} streams)", "step t", "belief")
figures.label(right, "Mean squared error", "step t", "MSE")
fig.legend(loc="outside lower center", ncols=3)
figures.show(fig)

# %% tags=["hide-input"]
made_up = np.median(trackers["running mean"][-1]) / height
figures.caption(
    f"Within the {steps - change} steps shown, the running mean makes up "
    f"{100 * made_up:.0f} % of the jump; the filter lies on the matched EMA, and to a "
    "jump they respond alike. (At first the EMAs profit from starting at the truth.)",
    alt="Left: beliefs before and after a jump; the running mean and a slow EMA creep "
    "up, the filter and the matched EMA rise together. Right: their mean squared "
    "errors, lowest before the jump for those that are slowest after it.")

# %% [markdown]
# How long does it take to make up 90 % of the jump?
# For a constant gain the answer is $\ln 0.1/\ln(1 - K)$, whatever the size of the jump; for a running mean with $n$ observations behind it, $9n$.
# Trackers that need longer than we watched are *censored*: all we know is "more than".

# %%
def recovery(path: np.ndarray) -> str:
    """Count the steps until the median belief has made up 90 % of the jump."""
    arrived = np.flatnonzero(np.median(path, axis=1)[change:] >= 0.9 * height)
    return str(arrived[0] + 1) if len(arrived) else f"> {steps - change}"

# %% tags=["hide-input"]
expected = np.log(0.1) / np.log([popular_decay, matched_decay, matched_decay])
kalman_name = list(trackers)[-1]
recoveries = pd.DataFrame({
    "measured": {name: recovery(path) for name, path in trackers.items()}})
recoveries["predicted"] = [f"{value:.0f}" for value in (9 * change, *expected)]
recoveries["MSE before the change"] = [
    f"{np.mean((path - regime)[change - 20:change] ** 2):.4f}"
    for path in trackers.values()]
watched_long_enough = expected[-1] < 0.8 * (steps - change)
if watched_long_enough and jump >= 1:  # a smaller jump is lost in the noise
    measured = int(recoveries["measured"][kalman_name])
    assert abs(measured - expected[-1]) < 0.15 * expected[-1] + 2
late = np.abs(trackers[kalman_name] - trackers[matched_name])[change:].max()
display(recoveries.style.set_caption(
    f"Steps to make up 90 % of the jump (n = {streams:,} streams)"))
Markdown(f"After the change, filter and matched EMA differ by at most **{late:.0e}** "
         f"in any of the {streams:,} streams.")

# %% [markdown]
# The paper's contrast between a filter that adapts and statistics that do not is a contrast between *forgetting and not forgetting*.
# Against a running mean it is real, and large.
# Against a moving average with the same decay it is nil, in this figure and in theory.
# And forgetting has its price, which the last column shows: while nothing changes, the tracker that forgets most has the largest error.
# What the filter brings is a way to *choose* the decay, if one knows $Q/R$, and a warm start.

# %% [markdown]
# ## What this does not show
#
# We verified statements about the filter under its own model, with right and with wrong settings, and in one case outside it (a jump).
# Nothing here involves a policy, and independent noise was assumed throughout; whether the returns of an episode are anything like that is a question for the next chapter.
# That $Q$ and $R$ are constant was assumed, too: the adaptive variant has no steady state of this kind.

# %% [markdown]
# ## Exercises
#
# Each exercise has a cell to fill in, and a check that passes or complains by itself.
#
# **Exercise 1 (recall).** Which $Q$ gives a steady gain of one half when $R = 2$? Complete the function for any gain between 0 and 1.

# %% tags=["stub"]
def drift_for_gain(K: float, R: float) -> float:
    """Return the Q that makes K the steady gain."""


# %% nbgrader={"grade": false, "grade_id": "02-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def drift_for_gain(K: float, R: float) -> float:
    """Return the Q that makes K the steady gain."""
    ### BEGIN SOLUTION
    return R * K**2 / (1 - K)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert np.isclose(drift_for_gain(0.5, 2.0), 1.0), \
    "solve K² + ρK − ρ = 0 for ρ, then multiply by R"
assert np.isclose(filters.steady_state(drift_for_gain(0.13, 7.0), 7.0).gain, 0.13), \
    "a filter with this Q does not settle at the gain asked for"
### BEGIN HIDDEN TESTS
assert np.isclose(drift_for_gain(0.3, 20.0), 10 * drift_for_gain(0.3, 2.0)), \
    "ten times the noise needs ten times the drift"
assert np.isclose(filters.steady_state(drift_for_gain(0.99, 0.5), 0.5).gain, 0.99), \
    "a gain near one"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** The *effective memory* of an EMA with decay $\beta$ is often given as $1/(1 - \beta)$ steps. Write it as a function of $Q$ and $R$, and find the factor by which it grows when $Q$ is divided by 100 in the square-root regime.

# %% tags=["stub"]
def memory(Q: float, R: float) -> float:
    """Return the effective memory of the settled filter, in steps."""


growth = 0.0


# %% nbgrader={"grade": false, "grade_id": "02-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def memory(Q: float, R: float) -> float:
    """Return the effective memory of the settled filter, in steps."""
    ### BEGIN SOLUTION
    return 1 / filters.steady_state(Q, R).gain
    ### END SOLUTION


growth = 0.0
### BEGIN SOLUTION
growth = memory(1e-8, 1.0) / memory(1e-6, 1.0)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "02-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert np.isclose(memory(1.0, 2.0), 2.0), "at Q = 1 and R = 2 the gain is one half"
assert np.isclose(memory(1.0, 1.0), (1 + np.sqrt(5)) / 2), \
    "at Q = R the memory is the golden ratio; no shortcut gives that"
assert 9.9 < growth < 10.1, "memory goes with the square root of R / Q"
### BEGIN HIDDEN TESTS
assert np.isclose(memory(4.0, 8.0), memory(1.0, 2.0)), \
    "only the ratio of Q and R counts"
assert np.isclose(memory(1e4, 1.0), 1.0, atol=1e-3), \
    "a filter that believes everything remembers one step"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (explore).** Given a `(steps, streams)` array of random walks seen through noise, with unknown $Q$ and known $R$: choose, among some candidates, the $Q$ for which the variance of the innovations comes nearest to what the filter claims, $P^- + R$ (nearest in the logarithm, and once the filter has settled). Many methods that *learn* $Q$ grow out of this idea.

# %% tags=["stub"]
def fitted_Q(z: np.ndarray, R: float, candidates: np.ndarray) -> float:
    """Return the candidate whose claimed innovation variance is the nearest.

    The nearest to the measured one, that is, in the logarithm.
    """


# %% nbgrader={"grade": false, "grade_id": "02-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def fitted_Q(z: np.ndarray, R: float, candidates: np.ndarray) -> float:
    """Return the candidate whose claimed innovation variance is the nearest.

    The nearest to the measured one, that is, in the logarithm.
    """
    ### BEGIN SOLUTION
    mismatch, late = [], slice(len(z) // 2, None)
    for candidate in candidates:
        path = filters.filter_series(z, candidate, R)
        measured = np.var((z - path.prior_mean)[late])
        claimed = np.mean((path.prior_var + path.noise)[late])
        mismatch.append(abs(np.log(measured / claimed)))
    return candidates[np.argmin(mismatch)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
candidates = Q * np.logspace(-3, 2, 11)
assert fitted_Q(observed, R, candidates) == candidates[6], \
    "the streams of this chapter drift with the seventh candidate"
slower = (np.cumsum(rng.normal(0, np.sqrt(candidates[3]), observed.shape), axis=0)
          + rng.normal(0, np.sqrt(R), observed.shape))
assert fitted_Q(slower, R, candidates) in candidates[2:5], \
    "off by more than one step of the list"
### BEGIN HIDDEN TESTS
assert fitted_Q(observed, R, candidates[::-1]) == candidates[6], \
    "the order of the list cannot matter"
assert fitted_Q(10 * observed, 100 * R, 100 * candidates) == 100 * candidates[6], \
    "in other units"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** Where have you met a mean that drifts and is seen through noise? Name it, with its unit, guess $Q$ (how far it drifts in a step) and $R$ (how far an observation scatters), both as variances, and compute the effective memory in steps. Is it what you would have chosen by hand? Say so in a sentence or two.

# %% tags=["stub"]
signal, my_Q, my_R, my_memory = "", None, None, None

# %% nbgrader={"grade": true, "grade_id": "02-4", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
signal, my_Q, my_R, my_memory = "", None, None, None
### BEGIN SOLUTION
signal = ("My pulse at rest, in beats per minute, measured each morning: it drifts by "
          "about a beat in a week and scatters by three. A memory of a week seems "
          "short, but a longer one would miss how I recover from a cold.")
my_Q, my_R = 1.0 / 7, 9.0
my_memory = 1 / filters.steady_state(my_Q, my_R).gain
### END SOLUTION

# %% nbgrader={"grade": false, "grade_id": "02-4-check", "locked": true, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert len(signal.split()) >= 10, "a sentence or two, please"
assert my_Q is not None and my_Q > 0 and my_R > 0, "two variances"
assert np.isclose(my_memory, 1 / filters.steady_state(my_Q, my_R).gain), \
    "one over the steady gain"

# %% [markdown]
# ## Summary
#
# **Answer.** With a constant drift and a constant noise the variance settles at (P7), from any start and exponentially fast, and from then on the filter is an exponential moving average whose decay depends on $Q/R$ alone.
# A moving average with the same decay follows a drift, and a jump, just as well.
# The mean forgives small mistakes about $Q/R$ and does not notice a common factor in $Q$ and $R$; the variance that the filter claims takes that factor over in full.

# %% tags=["hide-input"]
agreed = errors.iloc[:, :2].to_numpy().max()
rate_gap = np.abs(speed["measured factor"] / speed["(1 − K∞)²"] - 1).max()
Markdown(f"""
- $P_\\infty$ is verified from Q/R = {lowest_ratio:g} to {highest_ratio:g}: recursion \
and Riccati solver agree with it to **{agreed:.0e}** (relative, worst of \
{2 * ratios} comparisons).
- The approach is exponential with the factor $(1 - K_\\infty)^2$; the measured \
factors agree to {rate_gap:.0e}.
- $\\sqrt{{QR}}$ overestimates $P_\\infty$ by about $\\tfrac12\\sqrt{{Q/R}}$: \
{100 * at[1e-2]:.0f} % at Q/R = 0.01.
- P8 holds: the error of the running mean is $\\sigma^2/t$ (n = {streams:,}).
- A $Q$ wrong by a factor of two costs about {extra_cost(2):.0f} % in tracking, one \
wrong by ten about {extra_cost(10):.0f} %. The *claimed* variance is wrong wherever \
the scale of $Q$ and $R$ is, even when tracking is perfect.
- After a jump the filter and the matched EMA recover in the same \
{recoveries["measured"][kalman_name]} steps; the running mean needs \
{recoveries["measured"]["running mean"]}.
""")

# %% [markdown]
# **References.** R. E. Kalman (1960), as in chapter 01.
# B. D. O. Anderson and J. B. Moore, *Optimal Filtering*, Prentice-Hall (1979), on the Riccati equation and its convergence.
# J. F. Muth, *Optimal Properties of Exponentially Weighted Forecasts*, Journal of the American Statistical Association 55 (1960), on the random walk plus noise and the EMA.
# Z. Xia and Q. Li, *K-Score*, section on theoretical analysis.

# %%
chapter.footer()
