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
# # 01 Where the filter comes from
#
# **Claim.** The five lines of the scalar Kalman filter follow from Bayes' rule and two facts about Gaussians (their product and their sum), and no other linear mixture of a prediction and an observation has a smaller mean squared error.
#
# *For* readers who know what a mean, a variance and a normal density are.
# *Know first:* Bayes' rule; nothing about Kalman filters.
# *Runs in* about ten seconds.
# Previous: [00 Start here](00_start_here.ipynb) · Next: [02 The steady state](02_steady_state.ipynb)

# %% [markdown]
# ## Question
#
# The K-Score replaces a running mean by a Kalman filter.
# Before we ask whether that helps, we need to know what the filter *is*: which assumptions go in, and what is bought with them.
# The claim above would be wrong if a brute-force application of Bayes' rule, on a fine grid and without any formula of Kalman's, gave another answer, or if some other gain had a smaller error.
# We try both.
#
# After this chapter you can
#
# - derive the update step from the product of two Gaussians, and the predict step from a sum;
# - say in which sense the gain is optimal, and draw the curve that shows it;
# - run the filter by hand for two steps, with fractions;
# - recognize recursive averaging and the exponential moving average as two of its special cases;
# - name what the filter does *not* notice.

# %% [markdown]
# ## Setup

# %%
from fractions import Fraction

import numpy as np
import sympy as sp
from IPython.display import Markdown

from kscore import chapters, figures, filters

chapter = chapters.begin("01_filter_derivation")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seed: int = 1               # of every random number in this chapter [0, 1000000000]
Q: float = 0.04             # variance of the drift per step, in the simulated streams [0.01, 0.25]
R: float = 1.0              # variance of the observation noise, in the simulated streams [0.25, 4]
steps: int = 200            # length of the simulated streams [60, 100000]
draws: int = 20_000         # Monte Carlo draws for each gain that is tried [1000, 10000000]
grid_points: int = 2_001    # resolution of the brute-force Bayes grid [801, 100001]

# %%
rng = np.random.default_rng(seed)
latent = np.cumsum(rng.normal(0, np.sqrt(Q), steps))
observed = latent + rng.normal(0, np.sqrt(R), steps)

# %% [markdown]
# ## Notation
#
# | symbol | meaning | in code | shape |
# |---|---|---|---|
# | $m_t$ | the latent mean: what we would like to know and never see | `latent` | `(time,)` |
# | $x_t$ | our estimate of $m_t$ after seeing $z_t$ | `belief.mean` | number |
# | $P_t$ | the variance of that estimate's error | `belief.var` | number |
# | $x_t^-,\ P_t^-$ | the same two *before* seeing $z_t$ | `prior.mean`, `prior.var` | number |
# | $z_t$ | an observation (later: a return $G_t$) | `z` | `(time,)` |
# | $Q$ | variance of one step of drift | `Q` | number |
# | $R$ | variance of the observation noise | `R` | number |
# | $K_t$ | the gain: the share of a surprise that the belief takes over | `K` | number |
#
# The model that ties them together has two lines (P1 is its label in our list of facts from the paper; equations without such a label are numbered by chapter):
#
# $$m_t = m_{t-1} + w_t,\quad w_t \sim \mathcal N(0, Q) \qquad\qquad z_t = m_t + v_t,\quad v_t \sim \mathcal N(0, R). \tag{P1}$$
#
# A number we care about wanders a little at every step, and we see it through noise.
# (The paper writes $x_t$ both for the latent mean and for its estimate; we keep $x_t$ for the estimate.)

# %% [markdown]
# ## Two opinions about one number
#
# Suppose you watch an agent balance a pole and someone asks how good its policy is.
# From yesterday you believe its average return is about 20, give or take 3.
# Today you see one episode, and it returns 26; single episodes scatter around the average by about 4.
# What do you believe now?
#
# Surely something between 20 and 26.
# Surely closer to 20, because yesterday's opinion is the sharper one.
# Bayes' rule says exactly how close.
# Write the prior as a Gaussian in the unknown $m$, write the likelihood of seeing $z$ given $m$ as another, multiply, and normalize:
#
# $$p(m \mid z) \;\propto\; \underbrace{\exp\!\Big(-\frac{(m - x^-)^2}{2P^-}\Big)}_{\text{prior}}\; \underbrace{\exp\!\Big(-\frac{(z - m)^2}{2R}\Big)}_{\text{likelihood}}. \tag{1.1}$$
#
# No formula of Kalman's is needed to carry this out: a grid of candidate values and a multiplication will do.

# %%
def normalized(density: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Scale a density on an even grid so that it integrates to one."""
    return density / (density.sum() * (grid[1] - grid[0]))


def gaussian(grid: np.ndarray, mean: float, var: float) -> np.ndarray:
    """Return the normal density, normalized on the grid."""
    return normalized(np.exp(-((grid - mean) ** 2) / (2 * var)), grid)


def moments(density: np.ndarray, grid: np.ndarray) -> filters.Belief:
    """Return mean and variance of a density on an even grid."""
    weights = density / density.sum()
    mean = (weights * grid).sum()
    return filters.Belief(mean, (weights * (grid - mean) ** 2).sum())


grid = np.linspace(0, 50, grid_points)
prior = gaussian(grid, 20, 3**2)
likelihood = gaussian(grid, 26, 4**2)
posterior = normalized(prior * likelihood, grid)
by_grid = moments(posterior, grid)

# %% [markdown]
# *Predict the plot:* where is the peak of the product, and is it wider or narrower than the two curves it comes from?

# %%
fig, ax = figures.panels()
ax.plot(grid, prior, color=figures.BLUE, linestyle="--", label="prior: 20 ± 3")
ax.plot(grid, likelihood, color=figures.ORANGE, linestyle="-.", label="likelihood: 26 ± 4")
ax.plot(grid, posterior, color=figures.INK, label=f"posterior: {by_grid.mean:.2f} ± {np.sqrt(by_grid.var):.2f}")
ax.set_xlim(5, 41)
figures.label(ax, "Bayes' rule on a grid", "average return of the policy, m", "density", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "The product of two Gaussians lies between them, nearer to the sharper one, "
    "and is narrower than both.",
    alt="Three bell curves: a prior at 20, a wider likelihood at 26, and a narrower "
    "posterior between them, nearer to 20.")

# %% [markdown]
# Two things are worth saying out loud.
# The posterior is *sharper than either opinion*: in this model, where $R$ is known, even a poor observation makes us more certain, and so does one that contradicts us.
# And it looks Gaussian again.
# If that is exactly so, two numbers describe it, and we can throw the grid away.

# %% [markdown]
# ## The product of two Gaussians is a Gaussian
#
# Collect the exponent of (1.1) in powers of $m$.
# A Gaussian with mean $x$ and variance $P$ has the exponent $-\tfrac{1}{2P}m^2 + \tfrac{x}{P}m + \text{const}$, so two coefficients are all we have to read off:
#
# $$\frac1P = \frac1{P^-} + \frac1R, \qquad \frac xP = \frac{x^-}{P^-} + \frac zR . \tag{1.2}$$
#
# *Precisions add* (a precision is one over a variance), and the new mean is the precision-weighted average of the two old ones.
# Let a computer algebra system do the collecting, so that no slip of ours goes unnoticed.

# %%
m, x_prior, z, P_prior, r = sp.symbols("m x^- z P^- R", positive=True)
exponent = -((m - x_prior) ** 2) / (2 * P_prior) - (z - m) ** 2 / (2 * r)
in_powers_of_m = sp.Poly(sp.expand(exponent), m)
P = -1 / (2 * in_powers_of_m.coeff_monomial(m**2))
x = in_powers_of_m.coeff_monomial(m) * P
assert in_powers_of_m.degree() == 2                      # nothing beyond m²: the product is a Gaussian
assert sp.simplify(1 / P - (1 / P_prior + 1 / r)) == 0   # precisions add
Markdown(f"$P = {sp.latex(sp.simplify(P))}, \\qquad x = {sp.latex(sp.simplify(x))}$")

# %% [markdown]
# ## From weighted average to gain
#
# The two numbers of (1.2) can be written so that they tell another story.
# Define the **gain**
#
# $$K = \frac{P^-}{P^- + R}, \tag{P3a}$$
#
# a number between 0 and 1: the share of the total uncertainty that is ours rather than the observation's.
# Then
#
# $$x = x^- + K\,(z - x^-) \tag{P3b}$$
#
# $$P = (1 - K)\,P^- \tag{P3c}$$
#
# Read (P3b) from right to left: the observation *surprises* us by $z - x^-$, and we move our belief by the share $K$ of that surprise.
# The surprise has a name of its own, the **innovation**; it will be the hero of [chapter 03](03_from_filter_to_score.ipynb).
# Is the rewriting exact?

# %%
K = P_prior / (P_prior + r)
assert sp.simplify(x - (x_prior + K * (z - x_prior))) == 0   # P3b is the precision-weighted mean
assert sp.simplify(P - (1 - K) * P_prior) == 0               # P3c is the added precision
assert sp.simplify(P - K * r) == 0                           # and P = K R: the gain is the posterior variance in units of R

by_formula = filters.update(filters.Belief(20, 3**2), z=26, R=4**2)
assert np.allclose(by_formula, by_grid, rtol=1e-9)
Markdown(f"By formula the posterior is **{by_formula.mean:.4f} ± {np.sqrt(by_formula.var):.4f}**; "
         f"the grid of {grid_points:,} points said {by_grid.mean:.4f} ± {np.sqrt(by_grid.var):.4f}.")

# %% [markdown]
# The third assertion is a small gift.
# $P = K R$ says that gain and posterior variance are the same number in different units.
# It also matters in floating point: when $P^- \gg R$ the gain is almost 1, and $1 - K$ loses digits.
# `kscore` computes $K R$ for that reason; chapter 02 shows what happens to those who do not.

# %% [markdown]
# ## Why this gain and no other
#
# Forget Gaussians for a moment.
# Suppose somebody hands us *any* number $k$ and we mix with that: $x = x^- + k\,(z - x^-)$.
# The error of the mixture is
#
# $$x - m = (1 - k)\,\underbrace{(x^- - m)}_{\text{variance } P^-} + k\,\underbrace{(z - m)}_{\text{variance } R},$$
#
# and because the two errors are independent, its variance is
#
# $$V(k) = (1 - k)^2 P^- + k^2 R . \tag{1.3}$$
#
# That is a parabola in $k$.
# Setting its slope to zero, $-2(1 - k)P^- + 2kR = 0$, gives $k = P^-/(P^- + R)$: the gain of (P3a) again, this time without assuming that anything is Gaussian.
# If prior and noise are Gaussian, no estimator at all has a smaller mean squared error, because the posterior mean minimizes it.
# Otherwise the filter is still the best *linear* one, as long as the two errors have mean zero, are uncorrelated, and have these variances.
#
# *Predict the plot:* draw the parabola for a noisy and for a precise observation. Where does each one touch bottom, and what is the height of each at $k = 0$ and $k = 1$?

# %%
def simulated_error(k: float, prior_var: float, noise_var: float) -> float:
    """Measure the variance of x - m over many draws of the prior error and the observation noise."""
    prior_error = rng.normal(0, np.sqrt(prior_var), draws)
    noise = rng.normal(0, np.sqrt(noise_var), draws)
    return np.var((1 - k) * prior_error + k * noise)


prior_var = 1.0
tried = np.linspace(0, 1, 21)
fig, ax = figures.panels()
for noise_var, color, line, mark in ((4.0, figures.BLUE, "-", "o"), (1.0, figures.ORANGE, "--", "s"), (0.25, figures.GREEN, "-.", "^")):
    ax.plot(tried, (1 - tried) ** 2 * prior_var + tried**2 * noise_var, color=color, linestyle=line)
    ax.plot(tried, [simulated_error(k, prior_var, noise_var) for k in tried], mark, color=color, label=f"R = {noise_var:g}")
    best = filters.gain(filters.Belief(0, prior_var), noise_var)
    ax.plot(best, best * noise_var, "*", color=figures.INK, markersize=13)
ax.set_ylim(0, 4.2)
figures.label(ax, f"Error of the mixture against its gain (lines: theory, marks: n = {draws:,} draws each)", "gain k", "variance of the error", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Stars mark the gain of (P3a): in each parabola it sits at the bottom, and "
    "the height there is K R.",
    alt="Three parabolas of error variance against gain, for R = 4, 1 and 0.25, each "
    "with a star at its minimum; simulated marks lie on the lines.")

# %% [markdown]
# At $k = 0$ all three meet at $P^-$: we ignore the observation and keep our own error.
# At $k = 1$ we believe the observation blindly and inherit its error $R$.
# The best gain moves from left to right as observations get better, and the parabola is *flat* at the bottom: being a little wrong about the gain costs very little.
# That flatness will come back in chapter 02, when we ask what a wrong $Q$ costs.

# %%
k = sp.Symbol("k")
error = (1 - k) ** 2 * P_prior + k**2 * r
assert sp.solve(sp.diff(error, k), k) == [sp.simplify(K)]
assert sp.simplify(error.subs(k, K) - K * r) == 0
at_best = {P_prior: 1, r: 4}
best = K.subs(at_best)
extra = {f: float((error.subs(k, f * best) / error.subs(k, best)).subs(at_best)) - 1 for f in (0.5, 2)}
Markdown(f"With $P^- = {at_best[P_prior]}$ and $R = {at_best[r]}$ the best gain is {float(best)}. Half that gain costs **{100 * extra[0.5]:.0f} %** "
         f"more error variance, double that gain **{100 * extra[2]:.0f} %**.")

# %% [markdown]
# ## Letting time pass
#
# Between two observations the latent mean drifts by $w \sim \mathcal N(0, Q)$.
# The sum of two independent Gaussians is a Gaussian whose means and variances add, so the *predict* step has nothing to calculate:
#
# $$x_t^- = x_{t-1}, \qquad P_t^- = P_{t-1} + Q. \tag{P2}$$
#
# In terms of densities, adding an independent variable is a convolution.
# That is again something a grid can do without knowing the formula.

# %%
centred = np.linspace(-10, 10, grid_points | 1)
spacing = centred[1] - centred[0]
belief_density, drift_density = gaussian(centred, 1.0, 0.5), gaussian(centred, 0.0, 0.8)
drifted = normalized(np.convolve(belief_density, drift_density, mode="same"), centred)
assert np.allclose(moments(drifted, centred), filters.predict(filters.Belief(1.0, 0.5), Q=0.8), atol=1e-6)
Markdown(f"Convolving $\\mathcal N(1, 0.5)$ with a drift of variance 0.8 gives variance **{moments(drifted, centred).var:.6f}**, as (P2) says.")

# %% [markdown]
# ## The whole filter, and two steps by hand
#
# Here are the five lines, two to predict and three to update:
#
# $$x_t^- = x_{t-1}, \qquad P_t^- = P_{t-1} + Q, \qquad K_t = \frac{P_t^-}{P_t^- + R}, \qquad x_t = x_t^- + K_t\,(z_t - x_t^-), \qquad P_t = (1 - K_t)\,P_t^- . \tag{1.4}$$
#
# And here is a case that works out in fractions.
# We start at $x_0 = 0$ with variance $P_0 = 5$; the drift has $Q = 1$ and the noise $R = 2$.
# We observe $z_1 = 4$, then $z_2 = 12$.
#
# *Step 1.* Predict: $P^- = 5 + 1 = 6$. Gain: $K = 6/(6 + 2) = 3/4$. The surprise is $4 - 0 = 4$, so $x = 0 + \tfrac34\cdot 4 = 3$ and $P = \tfrac34 \cdot 2 = \tfrac32$.
#
# *Step 2.* Predict: $P^- = \tfrac32 + 1 = \tfrac52$. Gain: $K = \tfrac52 / \tfrac92 = \tfrac59$. The surprise is $12 - 3 = 9$, so $x = 3 + \tfrac59 \cdot 9 = 8$ and $P = \tfrac59\cdot 2 = \tfrac{10}9$.
#
# The function below is the whole filter.
# It works on fractions as well as on floats, so we can let it check our arithmetic exactly.

# %%
def my_step(x, P, z, Q, R):
    """Predict (P2), then update (P3); return the new belief and the gain."""
    x_prior, P_prior = x, P + Q
    K = P_prior / (P_prior + R)
    return x_prior + K * (z - x_prior), (1 - K) * P_prior, K


x, P, by_hand = Fraction(0), Fraction(5), []
for z in (Fraction(4), Fraction(12)):
    x, P, K = my_step(x, P, z, Q=Fraction(1), R=Fraction(2))
    by_hand.append((x, P, K))
assert by_hand == [(3, Fraction(3, 2), Fraction(3, 4)), (8, Fraction(10, 9), Fraction(5, 9))]

# %% [markdown]
# Notice that the gain fell from 3/4 to 5/9 although the second surprise was more than twice the first.
# The observations never enter the gain.
# It depends on $P_0$, $Q$, $R$ and the number of steps alone, and we could have computed every gain before seeing any data.

# %% [markdown]
# ## From scratch, then imported
#
# Run the step over a stream, and hold the result against three others: `kscore`, an independent library (`filterpy`, written by others, for general matrices), and the brute-force grid.
# If we had derived the wrong formula, the grid would tell; if we had programmed the right formula wrongly, the peer would.

# %%
def my_filter(z, Q, R, x=0.0, P=1.0):
    """Run `my_step` over a stream; return the means and the variances."""
    path = []
    for z_t in z:
        x, P, _ = my_step(x, P, z_t, Q, R)
        path.append((x, P))
    return np.array(path).T


mine = my_filter(observed, Q, R)
ours = filters.filter_series(observed, Q, R)
assert np.allclose(mine, (ours.mean, ours.var), rtol=0, atol=1e-12)

# %% [markdown]
# The peer knows nothing of scalars: it multiplies 1 × 1 matrices, and updates the covariance by a formula of its own (the "Joseph form").
# It is installed with the tests (`pip install filterpy`), not with the collection itself.

# %%
from filterpy.kalman import KalmanFilter

peer = KalmanFilter(dim_x=1, dim_z=1)
peer.F, peer.H = np.eye(1), np.eye(1)
peer.x, peer.P = np.zeros((1, 1)), np.eye(1)
peer.Q, peer.R = np.array([[Q]]), np.array([[R]])
peer_means, peer_vars, _, _ = peer.batch_filter(observed)
peers = np.array([peer_means.ravel(), peer_vars.ravel()])
gaps = {name: np.abs(other - (ours.mean, ours.var)).max() for name, other in (("our own lines", mine), ("filterpy", peers))}
assert max(gaps.values()) < 1e-12
Markdown(f"Largest difference to `kscore` in means and variances over {steps} steps: " + ", ".join(f"{name} **{gap:.1e}**" for name, gap in gaps.items()) + ".")

# %% [markdown]
# Last, the witness that knows no filter at all.
# At each step it convolves its density with the drift and multiplies by the likelihood.

# %%
wide = np.linspace(-15, 15, grid_points | 1)
drift = gaussian(wide, 0, Q)
density, by_bayes = gaussian(wide, 0.0, 1.0), []
for z_t in observed[:30]:
    density = np.convolve(density, drift, mode="same")
    density = normalized(density * np.exp(-((z_t - wide) ** 2) / (2 * R)), wide)
    by_bayes.append(moments(density, wide))
gap = np.abs(np.array(by_bayes) - np.column_stack([ours.mean, ours.var])[:30]).max()
assert gap < 1e-9
Markdown(f"After 30 rounds of brute force the grid differs from the filter by at most **{gap:.1e}**.")

# %% [markdown]
# *Predict the plot:* the filter starts with $P_0 = 1$ and the noise has the same variance. How wide is its band of belief at first, and does it keep shrinking?

# %%
fig, ax = figures.panels()
time_axis = np.arange(1, steps + 1)
band = 2 * np.sqrt(ours.var)
inside = np.mean(np.abs(latent - ours.mean) < band)
many_latent = np.cumsum(rng.normal(0, np.sqrt(Q), (steps, 1_000)), axis=0)
many = filters.filter_series(many_latent + rng.normal(0, np.sqrt(R), (steps, 1_000)), Q, R)
inside_many = np.mean(np.abs(many_latent - many.mean) < 2 * np.sqrt(many.var))
assert abs(inside_many - 0.9545) < 0.01
ax.plot(time_axis, observed, ".", color=figures.GREY, label="observations z")
ax.plot(time_axis, latent, color=figures.INK, linestyle="--", linewidth=1.2, label="latent mean (hidden from the filter)")
ax.plot(time_axis, ours.mean, color=figures.ORANGE, label="belief x ± 2 √P")
ax.fill_between(time_axis, ours.mean - band, ours.mean + band, color=figures.ORANGE, alpha=0.2, linewidth=0)
figures.label(ax, f"A drifting mean, seen through noise (n = {steps} steps, Q = {Q:g}, R = {R:g})", "step t", "value", legend="upper left")
ax.set_ylim(top=ax.get_ylim()[1] + 2.5)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "The belief follows the hidden mean; the band of two standard deviations "
    f"holds it in {100 * inside:.0f} % of these steps, and in "
    f"{100 * inside_many:.1f} % over 1,000 such streams (a Gaussian promises 95.4 "
    "%).",
    alt="Scattered observations, a dashed hidden mean and the filter's belief with a "
    "band around it that covers the hidden mean most of the time.")

# %% [markdown]
# The band settles to a constant width within a few steps.
# It cannot shrink for ever, because every step of drift brings new doubt.
# Where it settles is the subject of [chapter 02](02_steady_state.ipynb).

# %% [markdown]
# ## Two old friends
#
# **With $Q = 0$ the filter averages.**
# If the mean does not move, precisions simply pile up by (1.2): after $t$ observations $1/P_t = 1/P_0 + t/R$.
# The belief is then the average of all observations, with the prior counted as $n_0 = R/P_0$ extra observations at $x_0$:
#
# $$x_t = \frac{n_0 x_0 + z_1 + \dots + z_t}{n_0 + t}, \qquad K_t = \frac{1}{n_0 + t}. \tag{1.5}$$
#
# With a vague prior ($P_0 \to \infty$) this is the plain running mean, $K_t = 1/t$.

# %%
start = filters.Belief(mean=3.0, var=0.5)
prior_count = R / start.var
still = filters.filter_series(observed, Q=0, R=R, start=start)
averaged = (prior_count * start.mean + np.cumsum(observed)) / (prior_count + time_axis)
assert np.allclose(still.mean, averaged, atol=1e-12)
assert np.allclose(still.gain, 1 / (prior_count + time_axis), atol=1e-12)

vague = filters.filter_series(observed, Q=0, R=R, start=filters.Belief(0.0, 1e12))
assert np.allclose(vague.mean, np.cumsum(observed) / time_axis, atol=1e-9)

# %% [markdown]
# **With $Q > 0$ it becomes an exponential moving average.**
# Once the gain has settled at $K_\infty$, the update reads $x_t = (1 - K_\infty)\,x_{t-1} + K_\infty z_t$, which is the EMA with decay $\beta = 1 - K_\infty$ (D5).
# Started *in* the steady state the two agree from the first step on; started elsewhere, their difference shrinks by the factor $1 - K_\infty$ every step.

# %%
steady = filters.steady_state(Q, R)


def my_ema(z, decay, x=0.0):
    """Run the exponential moving average, x ← β x + (1 - β) z."""
    path = []
    for z_t in z:
        x = decay * x + (1 - decay) * z_t
        path.append(x)
    return np.array(path)


ema = my_ema(observed, decay=1 - steady.gain)
settled = filters.filter_series(observed, Q, R, start=filters.Belief(0.0, steady.var))
assert np.allclose(settled.mean, ema, atol=1e-12)

# %%
fig, (left, right) = figures.panels(1, 2, height=3.0)
left.loglog(time_axis, vague.gain, color=figures.SKY, linestyle="--", label="Q = 0, vague prior: 1/t")
left.loglog(time_axis, ours.gain, color=figures.ORANGE, label=f"Q = {Q:g}")
left.axhline(steady.gain, color=figures.GREEN, linestyle="-.", label="steady gain")
figures.label(left, "Gain", "step t", "K", legend="lower left")
right.semilogy(time_axis, np.maximum(np.abs(ours.mean - ema), 1e-17), color=figures.ORANGE)
figures.label(right, f"Filter from P₀ = 1, minus EMA (n = {steps})", "step t", "absolute difference")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Left: averaging lets the gain fall for ever, drift holds it up. Right: "
    "after the transient the filter is an EMA, down to rounding.",
    alt="Left panel: gains on logarithmic axes, one falling as one over t, one "
    "levelling off. Right panel: the difference between filter and EMA falls "
    "exponentially to rounding error.")

# %% [markdown]
# So what does the filter add to an EMA?
# After the transient, *nothing to the mean*.
# What it adds is a principled start, a rule that derives the decay from $Q/R$, and the variance $P$, a statement about its own error.
# Whether that statement is the right thing to divide by is the question of chapter 03.

# %% [markdown]
# ## When it fails
#
# The variance never looks at the data.
# Let us hurt the filter on purpose: one observation in the middle of the stream is off by 40 noise standard deviations, as when a lander crashes.
#
# *Predict the plot:* what happens to the belief, and what happens to the width of its band?

# %%
spoiled = observed.copy()
spoiled[steps // 2] += 40 * np.sqrt(R)
hurt = filters.filter_series(spoiled, Q, R)
window = slice(steps // 2 - 15, min(steps, steps // 2 + 45))
fig, ax = figures.panels()
ax.plot(time_axis[window], latent[window], color=figures.INK, linestyle="--", linewidth=1.2, label="latent mean")
ax.annotate("the outlier is up there", (steps // 2 + 1, 1), xycoords=("data", "axes fraction"), xytext=(8, -8), textcoords="offset points", fontsize=9)
ax.axvline(steps // 2 + 1, color=figures.GREY, linewidth=0.8, linestyle=":")
ax.plot(time_axis[window], hurt.mean[window], color=figures.ORANGE, label="belief ± 2 √P, with the outlier")
ax.fill_between(time_axis[window], (hurt.mean - band)[window], (hurt.mean + band)[window], color=figures.ORANGE, alpha=0.2, linewidth=0)
ax.plot(time_axis[window], ours.mean[window], color=figures.BLUE, linestyle=":", label="belief without it")
figures.label(ax, "One observation off by 40 standard deviations (n = 1 stream)", "step t", "value", legend=True)
assert np.array_equal(hurt.var, ours.var)
off = (np.abs(hurt.mean - latent) > band)[steps // 2 + 1:steps // 2 + 31]
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "The belief jumps by the share K of the outlier and is wrong by more than "
    f"its band in {int(off.sum())} of the next {len(off)} steps; the band itself "
    "does not change by a hair.",
    alt="After an outlier the filter's belief jumps far from the hidden mean and "
    "decays back slowly while its band keeps the same width.")


# %% [markdown]
# The assertion in that cell says it exactly: the variances with and without the outlier are *equal*, not just close.
# A Kalman filter with fixed $Q$ and $R$ is confident on schedule.
# The adaptive variant of the paper is an answer to this; chapter 03 looks at what kind of answer it is.

# %% [markdown]
# ## What this does not show
#
# Everything here took the model at its word: a random walk, independent noise, known $Q$ and $R$.
# The returns of a reinforcement-learning episode are none of these things.
# We have shown that the filter is optimal *for its model*; nothing in this chapter says that the model fits, and nothing says that dividing by $\sqrt{P}$ is a good normalization.

# %% [markdown]
# ## Exercises
#
# Each exercise has a cell to fill in, and a check that passes or complains by itself.
#
# **Exercise 1 (recall).** Two sensors measure the same constant with noise variances 2 and 6. What is the variance of the best combination of both?

# %% tags=["stub"]
def combined_variance(first: float, second: float) -> float:
    """Return the variance of the optimal mixture of two independent unbiased measurements."""


# %% nbgrader={"grade": false, "grade_id": "01-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def combined_variance(first: float, second: float) -> float:
    """Return the variance of the optimal mixture of two independent unbiased measurements."""
    ### BEGIN SOLUTION
    return 1 / (1 / first + 1 / second)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert np.isclose(combined_variance(2, 6), 1.5)
assert np.isclose(combined_variance(5, 5), 2.5)
assert combined_variance(1, 1e12) < 1, "even a very poor second sensor must not make things worse"
### BEGIN HIDDEN TESTS
assert np.isclose(combined_variance(0.1, 0.3), 0.075), "variances below one"
assert np.isclose(combined_variance(4, 1), combined_variance(1, 4)), "the order of the sensors cannot matter"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** The agent is not watched for $n$ steps: $n$ predictions, no update. Then one observation arrives, with no further prediction before it. Return the gain it gets, and convince yourself that it approaches 1 as $n$ grows.

# %% tags=["stub"]
def gain_after_gap(P: float, Q: float, R: float, n: int) -> float:
    """Return the gain of the first observation after n predictions in a row."""


# %% nbgrader={"grade": false, "grade_id": "01-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def gain_after_gap(P: float, Q: float, R: float, n: int) -> float:
    """Return the gain of the first observation after n predictions in a row."""
    ### BEGIN SOLUTION
    belief = filters.Belief(0.0, P)
    for _ in range(n):
        belief = filters.predict(belief, Q)
    return filters.gain(belief, R)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert np.isclose(gain_after_gap(P=1, Q=1, R=2, n=1), 0.5)
assert np.isclose(gain_after_gap(P=2, Q=1, R=4, n=2), 0.5)
assert np.isclose(gain_after_gap(P=1, Q=3, R=10, n=3), 0.5)
assert gain_after_gap(P=1, Q=1, R=2, n=10_000) > 0.999
### BEGIN HIDDEN TESTS
assert np.isclose(gain_after_gap(P=3, Q=1, R=1, n=0), 0.75), "without a gap the prior is the belief itself"
assert np.isclose(gain_after_gap(P=1, Q=0, R=3, n=50), 0.25), "without drift a gap changes nothing"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (extend).** Missing data: write a filter that skips the update wherever an observation is `NaN`, but lets time pass. Its variance must grow during the gap.

# %% tags=["stub"]
def filter_with_gaps(z: np.ndarray, Q: float, R: float) -> list[filters.Belief]:
    """Return the belief after each step, from the released start x0 = 0, P0 = 1."""


# %% nbgrader={"grade": false, "grade_id": "01-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def filter_with_gaps(z: np.ndarray, Q: float, R: float) -> list[filters.Belief]:
    """Return the belief after each step, from the released start x0 = 0, P0 = 1."""
    ### BEGIN SOLUTION
    belief, path = filters.START, []
    for z_t in z:
        belief = filters.predict(belief, Q)
        if not np.isnan(z_t):
            belief = filters.update(belief, z_t, R)
        path.append(belief)
    return path
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
gappy = observed[:20].copy()
gappy[8:12] = np.nan
path = filter_with_gaps(gappy, Q, R)
assert np.allclose(path[:8], np.column_stack([ours.mean, ours.var])[:8])
assert np.allclose(np.diff([belief.var for belief in path[7:12]]), Q), "the variance must grow by Q while nothing is seen"
assert np.ptp([belief.mean for belief in path[7:12]]) == 0, "the mean must not move while nothing is seen"
assert np.allclose(path[12], filters.update(filters.predict(path[11], Q), gappy[12], R)), "after the gap, learn as usual"
### BEGIN HIDDEN TESTS
late = filter_with_gaps(np.array([np.nan, 1.0, np.nan]), 0.5, 2.0)
assert len(late) == 3 and np.allclose(late[0], (0.0, 1.5)), "a gap at the start: time passes from P0 = 1"
assert np.allclose(late[1], filters.update(filters.Belief(0.0, 2.0), 1.0, 2.0)), "the first observation after a gap at the start"
assert np.allclose(late[2], filters.predict(late[1], 0.5)), "a gap at the end"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** One outlier of 40 standard deviations was enough to mislead the belief. Invent an update that is not so easily impressed, from above or below: a surprise of up to one standard deviation of what the filter expects, $\sqrt{P^- + R}$, must count as in (P3), and one of 40 must move the mean no further than one of 4 would there. What does your update give up when the signal really jumps?

# %% tags=["stub"]
def robust_update(prior: filters.Belief, z: float, R: float) -> filters.Belief:
    """Return the belief after an observation that may be an outlier."""


# %% nbgrader={"grade": false, "grade_id": "01-4", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def robust_update(prior: filters.Belief, z: float, R: float) -> filters.Belief:
    """Return the belief after an observation that may be an outlier."""
    ### BEGIN SOLUTION
    # a surprise counts up to three standard deviations; after a real jump the belief is late
    reach = 3 * np.sqrt(prior.var + R)
    return filters.update(prior, prior.mean + np.clip(z - prior.mean, -reach, reach), R)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-4-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
prior, expected = filters.Belief(1.0, 0.5), np.sqrt(0.5 + 2.0)
for surprise in (-1.0, 0.0, 0.5, 1.0):
    z = prior.mean + surprise * expected
    assert np.allclose(robust_update(prior, z, 2.0), filters.update(prior, z, 2.0)), f"a surprise of {surprise:g} is an ordinary one"
far = robust_update(prior, prior.mean + 40 * expected, 2.0)
assert 0 <= far.mean - prior.mean <= filters.update(prior, prior.mean + 4 * expected, 2.0).mean - prior.mean, "the outlier still moves it too far"
### BEGIN HIDDEN TESTS
below = robust_update(prior, prior.mean - 40 * expected, 2.0)
assert np.isclose(prior.mean - below.mean, far.mean - prior.mean), "from below as from above"
elsewhere = filters.Belief(-300.0, 0.5)
assert np.allclose(robust_update(elsewhere, -301.0, 2.0), filters.update(elsewhere, -301.0, 2.0)), "the surprise counts, not the observation"
assert 0 < far.var <= prior.var + 1e-12, "an observation must not make the belief less certain than it was"
### END HIDDEN TESTS

# %% [markdown]
# ## Summary

# %%
Markdown(f"""
- Bayes' rule with Gaussians gives (P2)-(P3): the symbolic identities hold exactly, and over 30 steps the grid agrees with the filter to {gap:.0e}.
- The gain minimizes the error variance $(1-k)^2P^- + k^2R$ over all $k$, Gaussian or not; the minimum is $K R$.
- Our own lines, `kscore.filters` and filterpy agree to {max(gaps.values()):.0e} over {steps} steps.
- $Q = 0$ is recursive averaging; $Q > 0$ is an EMA with decay {1 - steady.gain:.3f} (for $Q$ = {Q:g}, $R$ = {R:g}) after a transient.
- Gains and variances do not depend on the data: an outlier of 40 standard deviations leaves them unchanged.
""")

# %% [markdown]
# **References.** R. E. Kalman, *A New Approach to Linear Filtering and Prediction Problems*, Journal of Basic Engineering 82 (1960).
# G. Welch and G. Bishop, *An Introduction to the Kalman Filter*, University of North Carolina TR 95-041 (1995).
# R. Labbe, *Kalman and Bayesian Filters in Python* (the `filterpy` book).
# Z. Xia and Q. Li, *K-Score: Kalman Filter as a Principled Alternative to Reward Normalization in Reinforcement Learning*.

# %%
chapter.footer()
