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
# **Claim.** With fixed $Q > 0$ and $R$ the filter's variance settles at $P_\infty = \tfrac12\big(\sqrt{Q^2 + 4QR} - Q\big)$, from any start and exponentially fast; from then on the filter is an exponential moving average whose decay is a function of $Q/R$ alone.
#
# *For* readers of chapter 01.
# *Know first:* the five lines of the filter, and the logarithm.
# *Runs in* under half a minute.
# Previous: [01 Where the filter comes from](01_filter_derivation.ipynb) · Next: [03 From filter to score](03_from_filter_to_score.ipynb)

# %% [markdown]
# ## Question
#
# The paper states the steady state in one line and builds its argument on it: because $P_\infty > 0$, the filter never stops learning.
# That line would be wrong if the recursion settled elsewhere for some ratio $Q/R$, or if an independent solver disagreed.
# And the argument would be weak if a plain moving average did the same.
# We check the first over sixteen orders of magnitude, and look at the second with a regime change.
#
# After this chapter you can
#
# - derive $P_\infty$, the steady gain $K_\infty$, and how fast they are reached;
# - say when $P_\infty \approx \sqrt{QR}$ may be used, and how wrong it is;
# - predict how much a wrong $Q$ or $R$ costs, and see which part of it costs nothing;
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
seed: int = 2                  # of every random number in this chapter [0, 1000000000]
lowest_ratio: float = 1e-8     # smallest Q / R at which the steady state is verified [1e-08, 0.01]
highest_ratio: float = 1e8     # largest Q / R [100, 1e+08]
ratios: int = 33               # how many ratios in between, evenly spaced in the logarithm [5, 1000]
streams: int = 2_000           # independent simulated streams for each Monte Carlo estimate [500, 1000000]
steps: int = 300               # length of the simulated streams [120, 100000]
Q: float = 0.01                # drift of the simulated streams [0.001, 10]
R: float = 1.0                 # observation noise of the simulated streams [0.1, 2]
jump: float = 5.0              # size of the regime change, in standard deviations of the noise [0.1, 1000]
popular_decay: float = 0.99    # of the moving average shown beside the filter [0.5, 0.9999]

# %%
rng = np.random.default_rng(seed)
time_axis = np.arange(1, steps + 1)

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

# %% [markdown]
# ## Where the variance comes to rest
#
# One step of the variance recursion adds $Q$ and then shrinks by $1 - K$:
#
# $$P_t = f(P_{t-1}), \qquad f(P) = \frac{(P + Q)\,R}{P + Q + R}. \tag{2.1}$$
#
# At rest $P = f(P)$, which is a quadratic, $P^2 + QP - QR = 0$.
# It has one positive root, and the gain follows from it:
#
# $$P_\infty = \tfrac12\Big(\sqrt{Q^2 + 4QR} - Q\Big), \qquad K_\infty = P_\infty / R. \tag{P7}$$

# %%
P, q, r = sp.symbols("P Q R", positive=True)
f = (P + q) * r / (P + q + r)
roots = sp.solve(sp.Eq(P, f), P)
P_inf = (sp.sqrt(q**2 + 4 * q * r) - q) / 2
assert len(roots) == 1 and sp.simplify(roots[0] - P_inf) == 0
K_inf = sp.simplify((P_inf + q) / (P_inf + q + r))
assert sp.simplify(P_inf - K_inf * r) == 0                  # P∞ = K∞ R
slope = sp.simplify(sp.diff(f, P))
assert sp.simplify(slope - r**2 / (P + q + r) ** 2) == 0
assert sp.simplify(slope.subs(P, P_inf) - (1 - K_inf) ** 2) == 0
Markdown(f"$P_\\infty = {sp.latex(P_inf)}, \\qquad P_\\infty^- = P_\\infty + Q, \\qquad K_\\infty = P_\\infty / R$")

# %% [markdown]
# The last two assertions are about *speed*.
# For every $P \ge 0$ the slope is $0 < f'(P) = R^2/(P + Q + R)^2 \le \big(R/(Q + R)\big)^2$, which is less than one when $Q > 0$: $f$ is a contraction, so every start leads to $P_\infty$.
# Close to the fixed point the slope is $(1 - K_\infty)^2$, and a small deviation shrinks by that factor every step:
#
# $$P_{t+1} - P_\infty \approx (1 - K_\infty)^2\,(P_t - P_\infty). \tag{D1}$$
#
# Everything on this page depends on $Q$ and $R$ through their ratio $\rho = Q/R$, up to units.
# Divide the quadratic by $R^2$ and it speaks of $K_\infty = P_\infty/R$ and $\rho$ only: $K^2 + \rho K - \rho = 0$.
# For the *mean*, one of the two knobs is only a unit.
#
# It helps to picture the recursion as a tug of war.
# Every step of drift pulls the variance up by $Q$; every observation pushes it down, the harder the larger it is.
# Far above the fixed point the observation wins, far below it the drift wins, and in between there is one place where neither does.
# If $Q = 0$ nobody pulls upwards, and the variance sinks to zero: the filter becomes sure of itself and stops learning.

# %% [markdown]
# ## Four witnesses
#
# How sure can we be of a formula?
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
    """Iterate the variance recursion from P = 1 until a step changes nothing but the last digit."""
    P = 1.0
    for _ in range(300_000):                 # a limit, because rounding may also end in a cycle
        P_prior = P + Q
        K = P_prior / (P_prior + R)
        previous, P = P, (1 - K) * P_prior if textbook else K * R
        if abs(P - previous) < 3e-16 * P:
            break
    return P


def riccati(Q: float, R: float) -> float:
    """Solve the Riccati equation of the 1 x 1 system and return the posterior variance."""
    one = np.eye(1)
    prior_var = solve_discrete_are(one, one, Q * one, R * one).item()
    return prior_var * R / (prior_var + R)

# %% [markdown]
# *Predict the plot:* all five are algebraically right; two are numerically fragile. Which ones, and at which end of the axis?

# %%
ratio = np.logspace(np.log10(lowest_ratio), np.log10(highest_ratio), ratios)
reference = np.array([filters.steady_state(rho, 1.0).var for rho in ratio])
witnesses = {
    "recursion, P = K R": [settle(rho, 1.0) for rho in ratio],
    "Riccati solver (scipy)": [riccati(rho, 1.0) for rho in ratio],
    "closed form as printed": (np.sqrt(ratio**2 + 4 * ratio) - ratio) / 2,
    "recursion, P = (1 − K) P⁻": [settle(rho, 1.0, textbook=True) for rho in ratio],
}
errors = pd.DataFrame({name: np.abs(values - reference) / reference for name, values in witnesses.items()}, index=ratio)
errors.index.name = "Q/R"
assert errors.iloc[:, :2].to_numpy().max() < 1e-10

# %%
fig, ax = figures.panels(height=3.6)
marks = (("o", figures.BLUE), ("s", figures.GREEN), ("^", figures.ORANGE), ("v", figures.RED))
for (name, error), (mark, color) in zip(errors.items(), marks, strict=True):
    ax.loglog(error.index, np.maximum(error, 1e-17), mark, color=color, label=name, fillstyle="none")
ax.axhline(1e-10, color=figures.INK, linewidth=0.8, linestyle="--")
ax.annotate("1e-10", (lowest_ratio, 1.3e-10), fontsize=9)
figures.label(ax, f"Relative difference to kscore.steady_state (n = {ratios} ratios)", "Q / R", "relative difference", legend="upper center")
ax.set_ylim(1e-18, 1e-3)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"All agree to {errors.to_numpy().max():.0e}. The two printed formulas lose "
    "digits where Q is much larger than R; recursion and solver lose a few where "
    "it is much smaller, as they converge slowly there. Points at 1e-17 equal "
    "the reference.",
    alt="Relative error against Q over R on logarithmic axes: two methods stay below "
    "1e-10 everywhere, two rise above it on the right.")

# %% [markdown]
# Both fragile formulas subtract two nearly equal numbers: $\sqrt{Q^2 + 4QR} - Q$ when $Q \gg R$, and $1 - K$ when $K \approx 1$.
# The mathematics is right; about half of the digits are gone.

# %%
worst = errors.max().map("{:.1e}".format).rename("largest relative difference").to_frame()
worst["below 1e-10"] = np.where(errors.max() < 1e-10, "yes", "no")
worst

# %% [markdown]
# ## How fast it gets there
#
# A deviation from $P_\infty$ shrinks by $(1 - K_\infty)^2$ per step (D1).
# So the number of steps to halve it is $\ln 2 / (-2\ln(1 - K_\infty))$: few for a quick filter, many for a patient one.
# We measure the factor on the recursion itself: late enough that the deviation is small, early enough that it is not yet rounding error.

# %%
def measured_rate(rho: float) -> float:
    """Fit the factor by which |P_t - P∞| shrinks per step, between 1e-3 and 1e-8 of P∞."""
    steady = filters.steady_state(rho, 1.0)
    length = int(20 / steady.gain) + 40
    path = filters.filter_series(np.zeros(length), rho, 1.0, start=filters.Belief(0.0, 4 * steady.var)).var
    deviation = np.abs(path / steady.var - 1)
    use = np.flatnonzero((deviation < 1e-3) & (deviation > 1e-8))
    return np.exp(np.polyfit(use, np.log(deviation[use]), 1)[0])


speed = pd.DataFrame({"Q/R": [1e-6, 1e-4, 1e-2, 1e-1, 1.0]})
speed["K∞"] = [filters.steady_state(rho, 1.0).gain for rho in speed["Q/R"]]
speed["(1 − K∞)²"] = (1 - speed["K∞"]) ** 2
speed["measured factor"] = [measured_rate(rho) for rho in speed["Q/R"]]
speed["steps to halve"] = np.log(2) / -np.log(speed["(1 − K∞)²"])
assert np.allclose(speed["measured factor"], speed["(1 − K∞)²"], rtol=1e-3)
speed.style.format({"Q/R": "{:g}", "steps to halve": "{:.1f}"}, precision=6).hide(axis="index")

# %% [markdown]
# Read the last column as a warm-up time.
# A filter with $Q/R = 10^{-4}$, the smallest value in the paper's Table 2, takes dozens of steps to halve its distance from the steady state; one with $Q/R = 1$ forgets where it started almost at once.
# Nothing in this table depends on the data, so a user can look the warm-up up before training begins.
#
# *Predict the plot:* on a logarithmic axis, what shape has $|P_t - P_\infty|$, and what tells the three curves apart?

# %%
fig, ax = figures.panels()
for rho, color, line in ((1.0, figures.BLUE, "-"), (1e-2, figures.ORANGE, "--"), (1e-4, figures.GREEN, "-.")):
    steady = filters.steady_state(rho, 1.0)
    for P0 in (10 * steady.var, 0.1 * steady.var):
        path = filters.filter_series(np.zeros(steps), rho, 1.0, start=filters.Belief(0.0, P0)).var
        label = f"Q/R = {rho:g}" if P0 > steady.var else None
        ax.semilogy(time_axis, np.maximum(np.abs(path / steady.var - 1), 1e-16), color=color, linestyle=line, label=label)
figures.label(ax, "Distance from the steady state, from above and from below", "step t", "|P / P∞ − 1|", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Straight after the first steps, down to rounding: the approach is "
    "exponential, from a start ten times too uncertain (upper line of each pair) "
    "as well as ten times too sure. A patient filter (small Q/R) is slow to "
    "settle too.",
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
fig, ax = figures.panels(height=3.0)
ax.loglog(ratio, shortcut_error, "o", color=figures.BLUE, fillstyle="none", label="exact: √(QR) / P∞ − 1")
ax.loglog(ratio, np.sqrt(ratio) / 2, "--", color=figures.ORANGE, label="predicted: ½ √(Q/R)")
ax.set_xlim(lowest_ratio / 2, 1e2)
ax.set_ylim(1e-5, 1e2)
figures.label(ax, f"Relative error of P∞ ≈ √(QR) ({np.sum(ratio <= 1e2)} ratios)", "Q / R", "relative error", legend="upper left")
at = {rho: np.sqrt(rho) / filters.steady_state(rho, 1.0).var - 1 for rho in (1e-4, 1e-2, 1.0)}
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"The shortcut is {100 * at[1e-4]:.1f} % too large at Q/R = 1e-4, "
    f"{100 * at[1e-2]:.0f} % at 1e-2, and {100 * at[1.0]:.0f} % at 1.",
    alt="Error of the square-root approximation against Q over R: it follows one "
    "half times the square root of the ratio up to about 0.1 and exceeds it "
    "afterwards.")

# %% [markdown]
# ## A mean that stands still
#
# Before we ask how to follow a moving mean, a word on one that does not move.
# The sample mean of $t$ independent observations of variance $\sigma^2$ has the mean squared error $\sigma^2/t$ (P8), and the filter with $Q = 0$ and a vague prior *is* the sample mean (1.5), so its own variance $P_t$ should say the same.
# We simulate many streams and let them vote.

# %%
noise = rng.normal(0, np.sqrt(R), (steps, streams))                   # a mean of zero, seen through noise
averaging = filters.filter_series(noise, Q=0, R=R, start=filters.Belief(0.0, 1e12))
squared = averaging.mean**2
mse, half_width = squared.mean(axis=1), 1.96 * squared.std(axis=1) / np.sqrt(streams)
theory = R / time_axis
inside = np.mean(np.abs(mse - theory) < half_width)
assert np.allclose(averaging.var[:, 0], theory, rtol=1e-9)
assert np.abs(mse / theory - 1).max() < 6 * np.sqrt(2 / streams)

# %%
fig, ax = figures.panels(height=3.0)
ax.axhline(1, color=figures.INK, linestyle="--", label="σ² / t")
ax.semilogx(time_axis, mse / theory, color=figures.SKY, label="measured, with 95 % interval")
ax.fill_between(time_axis, (mse - half_width) / theory, (mse + half_width) / theory, color=figures.SKY, alpha=0.3, linewidth=0)
ax.set_ylim(0.8, 1.2)
figures.label(ax, f"Error of the running mean on a stationary stream (n = {streams:,} streams)", "step t", "MSE in units of σ² / t", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"P8 holds: the pointwise 95 % interval covers σ²/t at {100 * inside:.0f} % "
    "of the steps (neighbouring steps share most of their data, so they err "
    "together).",
    alt="Measured mean squared error divided by sigma squared over t: a band around "
    "one for every step.")


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
    """Return the steady error variance of a tracker with constant gain k on a random walk."""
    return ((1 - k) ** 2 * Q + k**2 * R) / (1 - (1 - k) ** 2)


latent = np.cumsum(rng.normal(0, np.sqrt(Q), (steps, streams)), axis=0)
observed = latent + rng.normal(0, np.sqrt(R), (steps, streams))
rows = []
for factor in (0.01, 0.1, 1.0, 10.0, 100.0):
    told = filters.steady_state(factor * Q, R)
    settled = rng.normal(0, np.sqrt(tracking_mse(told.gain, Q, R)), streams)   # the error of a tracker that has run for long
    path = filters.filter_series(observed, factor * Q, R, start=filters.Belief(settled, told.var))
    measured = np.mean((path.mean - latent)[-1] ** 2)
    rows.append((factor, told.gain, measured, tracking_mse(told.gain, Q, R), told.var))
costs = pd.DataFrame(rows, columns=["Q′ / Q", "gain", "measured MSE", "V∞(k)", "claimed P∞"])
assert np.allclose(costs["measured MSE"], costs["V∞(k)"], rtol=6 * np.sqrt(2 / streams))
costs.style.format({"Q′ / Q": "{:g}"}, precision=4).hide(axis="index").set_caption(f"n = {streams:,} streams, at step {steps}")

# %% [markdown]
# Compare the last two columns.
# With the right $Q$ the filter's claim about its own error is true.
# Told that the mean hardly moves, it claims to be far more accurate than it is; told that it moves a lot, it claims to be somewhat less accurate.
# Keep this in mind: the K-Score divides by the square root of the *claimed* variance.
#
# *Predict the plot:* over the plane of told $Q'$ and told $R'$, which shape has the tracking error? Which shape has the claim?

# %%
told_Q = Q * np.logspace(-4, 4, 81)
told_R = R * np.logspace(-3, 3, 61)
gains = np.array([[filters.steady_state(a, b).gain for a in told_Q] for b in told_R])
best = filters.steady_state(Q, R).var
cost = tracking_mse(gains, Q, R) / best
claim = gains * told_R[:, None] / tracking_mse(gains, Q, R)

fig, axes = figures.panels(1, 2, height=3.4, sharey=True)
maps = ((cost, (1, 1.1, 1.5, 2, 3, 5, 10, 30, 100, 1000), "Tracking error / best possible"),
        (claim, (1e-4, 1e-3, 0.01, 0.1, 0.5, 2, 10, 100, 1e3), "Claimed variance / true variance"))
for ax, (values, levels, title) in zip(axes, maps, strict=True):
    shade = ax.contourf(told_Q / Q, told_R / R, values, levels=levels, norm=BoundaryNorm(levels, 256, extend="max"), cmap="cividis", extend="max")
    fig.colorbar(shade, ax=ax, ticks=levels[::2], format="%g", location="bottom", aspect=30)
    ax.plot(1, 1, "*", color="white", markeredgecolor=figures.INK, markersize=13)
    ax.set(xscale="log", yscale="log", title=title, xlabel="told Q / true Q")
axes[0].set_ylabel("told R / true R")
axes[1].contour(told_Q / Q, told_R / R, claim, levels=[1], colors="white", linewidths=1.2)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Left: only the ratio of the two matters for the mean, so mistakes that "
    "cancel cost nothing. Right: the claimed variance is true only on the white "
    "curve, so mistakes that cancel in the mean still spoil the scale.",
    alt="Two maps over told Q and told R, a star at the truth. Left: a diagonal "
    "valley of low tracking error. Right: the ratio of claimed to true variance, "
    "near one only on an L-shaped curve through the star.")

# %%
costly = {factor: tracking_mse(filters.steady_state(factor * Q, R).gain, Q, R) / best - 1 for factor in (0.5, 2.0, 0.1, 10.0)}
scaled = filters.steady_state(100 * Q, 100 * R)
assert np.isclose(scaled.gain, filters.steady_state(Q, R).gain)
Markdown(f"""The valley is flat near its floor: a $Q'$ half as large as the truth costs **{100 * costly[0.5]:.1f} %** in tracking error, one twice as large **{100 * costly[2.0]:.1f} %**;
a tenth costs {100 * costly[0.1]:.0f} %, ten times {100 * costly[10.0]:.0f} %.
Told both $Q$ and $R$ a hundred times too large, the filter tracks *exactly* as well as the best, and claims a variance **{scaled.var / best:.0f} times** the true one.""")

# %% [markdown]
# The paper does not mention this, and it is worth a pause.
# *The mean needs one number, $Q/R$, and forgives small mistakes about it.*
# *The scale needs both, and a common factor in $Q$ and $R$, which the mean does not notice at all, goes into it in full.*
# A normalizer that subtracts $x$ and divides by $\sqrt P$ inherits the first in its numerator and the second in its denominator.

# %% [markdown]
# ## When it fails: a sudden change
#
# Policies do not only drift.
# Sometimes the agent finds something, and returns jump from one regime to another.
# We simulate a mean that jumps half-way by a few noise standard deviations, and let four trackers follow: the running mean, an EMA with a popular decay, the EMA with the *matched* decay $1 - K_\infty$, and the filter.
#
# A jump is outside the model: under (P1) with a small $Q$ it would be a miracle.
# The filter does not know that anything special has happened, since its gain does not look at the data; it just keeps correcting a fixed share of each surprise.
#
# *Predict the plot:* which two curves lie on top of each other?

# %%
change = steps // 2
regime = np.where(time_axis > change, jump * np.sqrt(R), 0.0)[:, None]
noisy = regime + rng.normal(0, np.sqrt(R), (steps, streams))
steady = filters.steady_state(Q, R)


def constant_gain(z: np.ndarray, k: float) -> np.ndarray:
    """Track every stream by an exponential moving average, from zero."""
    return filters.filter_series(z, Q=k**2 / (1 - k), R=1.0, start=filters.Belief(0.0, k)).mean


kalman = filters.filter_series(noisy, Q, R).mean
trackers = {
    "running mean": (np.cumsum(noisy, axis=0) / time_axis[:, None], figures.SKY, "--"),
    f"EMA, decay {popular_decay:g}": (constant_gain(noisy, 1 - popular_decay), figures.PURPLE, ":"),
    f"EMA, matched decay {1 - steady.gain:.3f}": (constant_gain(noisy, steady.gain), figures.GREEN, "-."),
    f"filter, Q = {Q:g}": (kalman, figures.ORANGE, "-"),
}

# %% [markdown]
# (Any EMA is a filter in its steady state: solving $K^2 + \rho K - \rho = 0$ for $\rho$ gives $\rho = K^2/(1 - K)$, which is what the function above uses.)

# %%
fig, (left, right) = figures.panels(1, 2, height=3.4)
left.plot(time_axis, regime, color=figures.INK, linewidth=1, label="true mean")
for name, (path, color, line) in trackers.items():
    look = {"color": color, "linestyle": line, "linewidth": 5 if "matched" in name else 1.6}
    left.plot(time_axis, np.median(path, axis=1), label=name, **look)
    right.semilogy(time_axis, np.mean((path - regime) ** 2, axis=1), **look)
figures.label(left, f"Median belief (n = {streams:,} streams)", "step t", "belief")
figures.label(right, "Mean squared error", "step t", "MSE")
fig.legend(loc="outside lower center", ncols=3)
quiet = {name: np.mean((path - regime)[change - 20:change] ** 2) for name, (path, _, _) in trackers.items()}
made_up = np.median(trackers["running mean"][0][-1]) / (jump * np.sqrt(R))
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"Within the {steps - change} steps shown, the running mean makes up "
    f"{100 * made_up:.0f} % of the jump; the filter lies on the matched EMA, and "
    "to a jump they respond alike. (At first the EMAs profit from starting at "
    "the truth.)",
    alt="Left: beliefs after a jump; the running mean creeps, the filter and matched "
    "EMA rise together. Right: their mean squared errors.")


# %% [markdown]
# How long does it take to make up 90 % of the jump?
# For a constant gain the answer is $\ln 0.1/\ln(1 - K)$, whatever the size of the jump; for a running mean with $n$ observations behind it, $9n$.
# Trackers that need longer than we watched are *censored*: all we know is "more than".

# %%
def recovery(path: np.ndarray) -> str:
    """Return the steps after the change until the median belief has made up 90 % of the jump, or that they ran out."""
    arrived = np.flatnonzero(np.median(path, axis=1)[change:] >= 0.9 * jump * np.sqrt(R))
    return str(arrived[0] + 1) if len(arrived) else f"> {steps - change}"


matched = np.log(0.1) / np.log(1 - steady.gain)
predicted = (9 * change, np.log(0.1) / np.log(popular_decay), matched, matched)
recoveries = pd.DataFrame({"measured": {name: recovery(path) for name, (path, _, _) in trackers.items()}})
recoveries["predicted"] = [f"{value:.0f}" for value in predicted]
recoveries["MSE before the change"] = pd.Series(quiet).map("{:.4f}".format)
assert matched > 0.8 * (steps - change) or abs(int(recovery(kalman)) - matched) < 0.15 * matched + 2  # if watched for long enough
late = np.abs(kalman - trackers[f"EMA, matched decay {1 - steady.gain:.3f}"][0])[change:].max()
display(recoveries.style.set_caption(f"Steps to make up 90 % of the jump (n = {streams:,} streams)"))
Markdown(f"After the change, filter and matched EMA differ by at most **{late:.0e}** in any of the {streams:,} streams.")

# %% [markdown]
# The paper's contrast between a filter that adapts and statistics that do not is a contrast between *forgetting and not forgetting*.
# Against a running mean it is real, and large.
# Against a moving average with the same decay it is nil, in this figure and in theory.
# And forgetting has its price, which the last column shows: while nothing changes, the tracker that forgets most has the largest error.
# What the filter brings is a way to *choose* the decay, if one knows $Q/R$, and a warm start.

# %% [markdown]
# ## What this does not show
#
# We verified statements about the filter under its own model, plus one violation (a jump).
# Nothing here involves a policy, and independent noise was assumed throughout: real returns within an episode are anything but independent, as the next chapter shows.
# That $Q$ and $R$ are constant is also part of the claim; the adaptive variant has no steady state of this kind.

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** Which $Q$ gives a steady gain of one half when $R = 2$?

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
assert np.isclose(drift_for_gain(0.5, 2.0), 1.0)
assert np.isclose(filters.steady_state(drift_for_gain(0.13, 7.0), 7.0).gain, 0.13)
### BEGIN HIDDEN TESTS
assert np.isclose(drift_for_gain(0.3, 20.0), 10 * drift_for_gain(0.3, 2.0)), "ten times the noise needs ten times the drift"
assert np.isclose(filters.steady_state(drift_for_gain(0.99, 0.5), 0.5).gain, 0.99), "a gain near one"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** The *effective memory* of an EMA with decay $\beta$ is often given as $1/(1 - \beta)$ steps. Write it as a function of $Q$ and $R$, and find by which factor it grows when $Q$ is divided by 100 in the square-root regime.

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
assert np.isclose(memory(1.0, 2.0), 2.0)
assert np.isclose(memory(1.0, 1.0), (1 + np.sqrt(5)) / 2)
assert 9.9 < growth < 10.1, "memory goes with the square root of R / Q"
### BEGIN HIDDEN TESTS
assert np.isclose(memory(4.0, 8.0), memory(1.0, 2.0)), "only the ratio of Q and R counts"
assert np.isclose(memory(1e4, 1.0), 1.0, atol=1e-3), "a filter that believes everything remembers one step"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (explore).** Given a `(steps, streams)` array of random walks seen through noise, with unknown $Q$ and known $R$: choose $Q$ by making the innovations' variance equal to what the filter claims, $P^- + R$. This is the seed of many methods that *learn* $Q$.

# %% tags=["stub"]
def fitted_Q(z: np.ndarray, R: float, candidates: np.ndarray) -> float:
    """Return the candidate Q whose claimed innovation variance is closest to the measured one, in the logarithm."""


# %% nbgrader={"grade": false, "grade_id": "02-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def fitted_Q(z: np.ndarray, R: float, candidates: np.ndarray) -> float:
    """Return the candidate Q whose claimed innovation variance is closest to the measured one, in the logarithm."""
    ### BEGIN SOLUTION
    mismatch = []
    for candidate in candidates:
        path = filters.filter_series(z, candidate, R)
        late = slice(len(z) // 2, None)
        measured = np.var((z - path.prior_mean)[late])
        mismatch.append(abs(np.log(measured / np.mean((path.prior_var + path.noise)[late]))))
    return candidates[np.argmin(mismatch)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
candidates = Q * np.logspace(-3, 2, 11)
assert fitted_Q(observed, R, candidates) == candidates[6]
slower = np.cumsum(rng.normal(0, np.sqrt(candidates[3]), observed.shape), axis=0) + rng.normal(0, np.sqrt(R), observed.shape)
assert fitted_Q(slower, R, candidates) in candidates[2:5], "off by more than one step of the list"
### BEGIN HIDDEN TESTS
assert fitted_Q(observed, R, candidates[::-1]) == fitted_Q(observed, R, candidates), "the order of the list cannot matter"
assert fitted_Q(10 * observed, 100 * R, 100 * candidates) == 100 * fitted_Q(observed, R, candidates), "in other units"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** Where have you met a mean that drifts and is seen through noise? Name it, with its unit, guess $Q$ (how far it drifts in a step) and $R$ (how far an observation scatters), both as variances, and compute the effective memory in steps. Is it what you would have chosen by hand? Say so in a sentence or two.

# %% tags=["stub"]
signal, my_Q, my_R, my_memory = "", None, None, None

# %% nbgrader={"grade": true, "grade_id": "02-4", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
signal, my_Q, my_R, my_memory = "", None, None, None
### BEGIN SOLUTION
signal = ("My pulse at rest, in beats a minute, measured each morning: it drifts by about a beat in a week and scatters by three. "
          "A memory of three weeks seems long, but a shorter one would follow a bad night.")
my_Q, my_R = 1.0 / 7, 9.0
my_memory = 1 / filters.steady_state(my_Q, my_R).gain
### END SOLUTION

# %% nbgrader={"grade": false, "grade_id": "02-4-check", "locked": true, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert len(signal.split()) >= 10, "a sentence or two, please"
assert my_Q is not None and my_Q > 0 and my_R > 0, "two variances"
assert np.isclose(my_memory, 1 / filters.steady_state(my_Q, my_R).gain), "one over the steady gain"

# %% [markdown]
# ## Summary

# %%
Markdown(f"""
- $P_\\infty$ is verified from Q/R = {lowest_ratio:g} to {highest_ratio:g}: recursion and Riccati solver agree with it to **{errors.iloc[:, :2].to_numpy().max():.0e}** (relative, worst of {2 * ratios} comparisons).
- The approach is exponential with the factor $(1 - K_\\infty)^2$; the measured factors agree to {np.abs(speed["measured factor"] / speed["(1 − K∞)²"] - 1).max():.0e}.
- $\\sqrt{{QR}}$ overestimates $P_\\infty$ by about $\\tfrac12\\sqrt{{Q/R}}$: {100 * at[1e-2]:.0f} % at Q/R = 0.01.
- P8 holds: the error of the running mean is $\\sigma^2/t$ (n = {streams:,}).
- A $Q$ wrong by a factor of two costs about {100 * costly[2.0]:.0f} % in tracking, one wrong by ten about {100 * costly[10.0]:.0f} %. The *claimed* variance is wrong wherever the scale of $Q$ and $R$ is, even when tracking is perfect.
- After a jump the filter and the matched EMA recover in the same {recovery(kalman)} steps; the running mean needs {recovery(trackers['running mean'][0])}.
""")

# %% [markdown]
# **References.** R. E. Kalman (1960), as in chapter 01.
# B. D. O. Anderson and J. B. Moore, *Optimal Filtering*, Prentice-Hall (1979), on the Riccati equation and its convergence.
# J. F. Muth, *Optimal Properties of Exponentially Weighted Forecasts*, Journal of the American Statistical Association 55 (1960), on the random walk plus noise and the EMA.
# Z. Xia and Q. Li, *K-Score*, section on theoretical analysis.

# %%
chapter.footer()
