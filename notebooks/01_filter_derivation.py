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
# **Question.** Which assumptions lead to the Kalman filter, and could another mixture of a prediction and an observation do better?
#
# *For* readers who know what a mean, a variance and a normal density are.
# *Know first:* Bayes' rule; nothing about Kalman filters.
# *Runs in* under half a minute.
# Previous: [00 Start here](00_start_here.ipynb) · Next: [02 The steady state](02_steady_state.ipynb)

# %% [markdown]
# ## Question
#
# Where the Z-Score has a mean and a standard deviation, the K-Score has a Kalman filter.
# Before we ask whether that helps, we need to know what the filter *is*: what has to be assumed, and what the assumptions buy.
#
# One might expect five lines of such fame to need heavy machinery.
# Our claim is that they follow from Bayes' rule and two facts about Gaussians: the product of two Gaussian densities is Gaussian again, up to a factor, and so is the sum of two independent Gaussian variables.
# That would be wrong if Bayes' rule, applied by brute force on a fine grid and without any formula of Kalman's, gave another answer, or if some other mixture of prediction and observation had a smaller error.
# We try both.
#
# After this chapter you can
#
# - derive the update step from the product of two Gaussians, and the predict step from a sum;
# - say in which sense the gain is optimal, and draw the curve that shows it;
# - run the filter by hand for two steps, with fractions;
# - recognize recursive averaging and the exponential moving average as special cases, and read off how long each of them remembers;
# - name what the filter does *not* notice.

# %% [markdown]
# ## Setup

# %%
from fractions import Fraction

import numpy as np
import sympy as sp
from IPython.display import Image, Markdown

from kscore import chapters, figures, filters
from kscore.labs import film

chapter = chapters.begin("01_filter_derivation")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seed: int = 1               # of every random number in this chapter [0, 1000000000]
Q: float = 0.04             # variance of the simulated drift per step [0.01, 0.25]
R: float = 1.0              # variance of the simulated observation noise [0.25, 4]
steps: int = 200            # length of the simulated streams [60, 100000]
draws: int = 20_000         # simulated errors for each gain tried [1000, 10000000]
grid_points: int = 2_001    # resolution of the grid for Bayes' rule [801, 100001]

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

# %%
rng = np.random.default_rng(seed)
time_axis = np.arange(1, steps + 1)
latent = np.cumsum(rng.normal(0, np.sqrt(Q), steps))
observed = latent + rng.normal(0, np.sqrt(R), steps)

# %% [markdown]
# ## Two opinions about one number
#
# Suppose you watch an agent balance a pole, and someone asks how good its policy is.
# After watching it yesterday, you believe that its average return is about 20, give or take 3.
# Today you see one episode, with a return of 26; single episodes scatter around the average by about 4.
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

# %% [markdown]
# The whole of Bayes' rule is then the last line of the next cell.

# %%
candidates = np.linspace(0, 50, grid_points)
prior_density = gaussian(candidates, 20, 3**2)
likelihood = gaussian(candidates, 26, 4**2)
posterior_density = normalized(prior_density * likelihood, candidates)

# %% [markdown]
# *Predict the plot:* where is the peak of the product, and is it wider or narrower than the two curves it comes from?

# %% tags=["hide-input"]
fig, ax = figures.panels()
ax.plot(candidates, prior_density, color=figures.BLUE, linestyle="--",
        label="prior: 20 ± 3")
ax.plot(candidates, likelihood, color=figures.GREY, linestyle="-.",
        label="likelihood: 26 ± 4")
ax.plot(candidates, posterior_density, color=figures.ORANGE, label="posterior")
ax.set_xlim(5, 41)
figures.label(ax, "Bayes' rule on a grid", "average return of the policy, m",
              "density", legend=True)
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
# We leave the collecting to a computer algebra system, which makes fewer slips than we do.

# %%
m, z, x_prior, P_prior, r = sp.symbols("m z x^- P^- R", positive=True)
exponent = sp.Poly(
    -((m - x_prior) ** 2) / (2 * P_prior) - (z - m) ** 2 / (2 * r), m)
assert exponent.degree() == 2  # nothing beyond m²: the product is a Gaussian
P_post = sp.simplify(-1 / (2 * exponent.coeff_monomial(m**2)))
x_post = sp.simplify(exponent.coeff_monomial(m) * P_post)
Markdown(f"$P = {sp.latex(P_post)}, \\qquad x = {sp.latex(x_post)}$")

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
# The surprise has a name of its own, the **innovation**; [chapter 03](03_from_filter_to_score.ipynb) makes much of it.
# Is the rewriting exact?

# %%
gain = P_prior / (P_prior + r)
assert sp.simplify(x_post - (x_prior + gain * (z - x_prior))) == 0  # (P3b)
assert sp.simplify(P_post - (1 - gain) * P_prior) == 0              # (P3c)
assert sp.simplify(P_post - gain * r) == 0                          # P = K R

# %% [markdown]
# It is, and the third line is a small gift.
# $P = K R$ says that gain and posterior variance are the same number in different units.
# It also matters in floating point: when $P^- \gg R$ the gain is almost 1, and $1 - K$ loses digits.
# `kscore` computes $K R$ for that reason; chapter 02 shows what happens otherwise.
#
# The question about the agent now takes one call.

# %%
answer = filters.update(filters.Belief(mean=20, var=3**2), z=26, R=4**2)
Markdown(f"By formula the posterior is **{answer.mean:.2f} ± "
         f"{np.sqrt(answer.var):.2f}**, which is the curve drawn above.")

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
#
# In which sense is it the best, then?
# If prior and noise are Gaussian, no estimator at all has a smaller mean squared error, because the posterior mean minimizes it.
# Otherwise the filter is still the best *linear* one, as long as the two errors have mean zero, are uncorrelated, and have these variances.

# %%
def error_variance(k, prior_var, noise_var):
    """Return the variance of the mixture's error, (1.3)."""
    return (1 - k) ** 2 * prior_var + k**2 * noise_var


def simulated_variance(k, prior_var, noise_var):
    """Measure it, over many draws of the prior's error and of the noise."""
    prior_error = rng.normal(0, np.sqrt(prior_var), draws)
    noise = rng.normal(0, np.sqrt(noise_var), draws)
    return np.var((1 - k) * prior_error + k * noise)

# %% [markdown]
# *Predict the plot:* with $P^- = 1$, draw the parabola for a noisy observation ($R = 4$), a middling one ($R = 1$) and a precise one ($R = 0.25$).
# Where does each touch bottom, and how high is each at $k = 0$ and at $k = 1$?

# %% tags=["hide-input"]
tried = np.linspace(0, 1, 21)
looks = {4.0: (figures.BLUE, "-", "o"), 1.0: (figures.ORANGE, "--", "s"),
         0.25: (figures.GREEN, "-.", "^")}
fig, ax = figures.panels(height=3.6)
for noise_var, (color, line, mark) in looks.items():
    ax.plot(tried, error_variance(tried, 1.0, noise_var), color=color, linestyle=line)
    ax.plot(tried, [simulated_variance(k, 1.0, noise_var) for k in tried], mark,
            color=color, label=f"R = {noise_var:g}")
    lowest = filters.gain(filters.Belief(0, 1.0), noise_var)
    ax.plot(lowest, lowest * noise_var, "*", color=figures.INK, markersize=14)
ax.set_ylim(0, 4.2)
figures.label(ax, f"Error of the mixture, P⁻ = 1 (marks: n = {draws:,} draws each)",
              "gain k", "variance of the error", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Lines are (1.3), marks are simulated. Stars mark the gain of (P3a): in each "
    "parabola it sits at the bottom, and the height there is K R.",
    alt="Three parabolas of error variance against gain, for R = 4, 1 and 0.25, all "
    "starting at one, each with a star at its minimum; simulated marks lie on the "
    "lines.")

# %% [markdown]
# At $k = 0$ all three meet at $P^-$: we ignore the observation and keep our own error.
# At $k = 1$ we believe the observation blindly and inherit its error $R$.
# The best gain moves from left to right as observations get better, and the parabola is *flat* at the bottom: being a little wrong about the gain costs very little.

# %%
best = filters.gain(filters.Belief(0, 1.0), R=4.0)
extra = {factor: error_variance(factor * best, 1.0, 4.0)
         / error_variance(best, 1.0, 4.0) - 1 for factor in (0.5, 2)}
Markdown(f"With $P^- = 1$ and $R = 4$ the best gain is {best:g}. Half that gain costs "
         f"**{100 * extra[0.5]:.0f} %** more error variance, double that gain "
         f"**{100 * extra[2]:.0f} %**.")

# %% [markdown]
# That flatness will come back in chapter 02, when we ask what a wrong $Q$ costs.

# %% [markdown]
# ## Letting time pass
#
# Between two observations the latent mean drifts by $w \sim \mathcal N(0, Q)$.
# Two independent Gaussian variables add up to a third, and both their means and their variances add, so the *predict* step leaves almost nothing to calculate:
#
# $$x_t^- = x_{t-1}, \qquad P_t^- = P_{t-1} + Q. \tag{P2}$$
#
# An observation makes us more certain; time makes us less certain again.
# In terms of densities, adding an independent variable is a convolution, and a grid can carry that out, too, without knowing the formula.
# We shall use this in a moment.

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
# In code the filter is one small function, and a loop around it.

# %%
def my_step(x, P, z, Q, R):
    """Predict (P2), then update (P3); return the new belief and the gain."""
    x_prior, P_prior = x, P + Q
    K = P_prior / (P_prior + R)
    return x_prior + K * (z - x_prior), (1 - K) * P_prior, K


def my_filter(z, Q, R, x=0.0, P=1.0):
    """Run `my_step` over a stream; return means, variances and gains."""
    path = []
    for z_t in z:
        x, P, K = my_step(x, P, z_t, Q, R)
        path.append((x, P, K))
    return path

# %% [markdown]
# It works on fractions as well as on floats, so it can check our arithmetic exactly.

# %%
by_hand = my_filter([4, 12], Q=1, R=2, x=Fraction(0), P=Fraction(5))
assert by_hand == [(3, Fraction(3, 2), Fraction(3, 4)),
                   (8, Fraction(10, 9), Fraction(5, 9))]

# %% [markdown]
# Notice that the gain fell from 3/4 to 5/9 although the second surprise was more than twice the first.
# The observations never enter the gain.
# It depends on $P_0$, $Q$, $R$ and the number of steps alone, and we could have computed every gain before seeing any data.

# %% [markdown]
# ## The filter at work
#
# Before we test the filter, watch it.
# Every step has two pictures: first the filter says what it expects, then it sees an observation and makes up its mind.
#
# *Predict the film:* what happens to the width of the belief between two observations, and what at each observation? Which of the two wins?

# %% tags=["hide-input"]
Image(film.of_filter(Q=Q, R=R, P0=4 * R, form="png"), alt=(
    "A film of 30 steps. Above, the filter's belief follows a hidden mean through "
    "scattered observations; a bar shows the prior of the present step, a band the "
    "posteriors so far. Beside it, the same as bell curves. Below, the gain falls "
    "from high to a constant level within a few steps."))

# %% [markdown]
# *Each step in two pictures. The bar is the prior, the cross an observation, the band the posterior with two standard deviations; on the right the same as densities, below the gain.*
#
# Early on the filter knows little, takes over most of every surprise, and its belief sharpens fast.
# Then each observation wins back just as much certainty as the drift has cost, and the gain stays where it is.

# %% [markdown]
# ## From scratch, then imported
#
# We have derived a formula and programmed it, and both can go wrong.
# So we hold our lines against three others that share as little as possible: `kscore`, an independent library (`statsmodels`, written by others, for state-space models of any size), and Bayes' rule by brute force.
# If we had derived the wrong formula, the brute force would tell; if we had programmed the right formula wrongly, the peer would.

# %%
ours = filters.filter_series(observed, Q, R)
mine = np.array([(x, P) for x, P, _ in my_filter(observed, Q, R)])

# %% [markdown]
# The peer knows nothing of scalars: it multiplies 1 × 1 matrices, in compiled code of its own.
# It calls our model the *local level* and starts from the first prior, $x_1^- = x_0$ with the variance $P_0 + Q$.

# %%
from statsmodels.tsa.statespace.structural import UnobservedComponents

peer = UnobservedComponents(observed, "local level")
peer.ssm.initialize_known(np.zeros(1), np.eye(1) * (1 + Q))
peer.ssm.tolerance = 0  # let no gain settle early
peer_path = peer.filter([R, Q])
peer_means = np.ravel(peer_path.filtered_state)
peer_vars = np.ravel(peer_path.filtered_state_cov)

# %% [markdown]
# The third knows no filter at all.
# At each step it convolves its density with the drift and multiplies by the likelihood, on a grid, and only then do we ask for the mean and the variance of what it has.

# %%
grid = np.linspace(-15, 15, grid_points | 1)  # odd, so that zero is a point of it
drift = gaussian(grid, 0, Q)
density, by_bayes = gaussian(grid, 0.0, 1.0), []
for z_t in observed[:30]:
    density = np.convolve(density, drift, mode="same")
    density = normalized(density * np.exp(-((z_t - grid) ** 2) / (2 * R)), grid)
    mean = np.average(grid, weights=density)
    by_bayes.append((mean, np.average((grid - mean) ** 2, weights=density)))

# %% tags=["hide-input"]
reference = np.column_stack([ours.mean, ours.var])
peers = np.column_stack([peer_means, peer_vars])
gaps = {"our own lines": np.abs(mine - reference).max(),
        "statsmodels": np.abs(peers - reference).max()}
bayes_gap = np.abs(np.array(by_bayes) - reference[:30]).max()
assert max(gaps.values()) < 1e-12 and bayes_gap < 1e-9
Markdown(
    f"Largest difference from `kscore` in means and variances over {steps} steps: "
    + ", ".join(f"{name} **{gap:.1e}**" for name, gap in gaps.items())
    + f".\n\nAfter 30 rounds of brute force the grid differs from the filter by at "
    f"most **{bayes_gap:.1e}**.")

# %% [markdown]
# All four agree, to rounding.
# So the filter is what Bayes' rule says; what remains is to see whether it tells the truth about its own error.
#
# *Predict the plot:* the filter starts with $P_0 = 1$. How wide is its band of belief at first, does it keep shrinking, and how often will the hidden mean lie outside it? (The band reaches two standard deviations to either side.)

# %% tags=["hide-input"]
band = 2 * np.sqrt(ours.var)
fig, ax = figures.panels()
ax.plot(time_axis, observed, ".", color=figures.GREY, label="observations z")
ax.plot(time_axis, latent, color=figures.INK, linestyle="--", linewidth=1.2,
        label="latent mean (hidden from the filter)")
ax.plot(time_axis, ours.mean, color=figures.ORANGE, label="belief x ± 2 √P")
ax.fill_between(time_axis, ours.mean - band, ours.mean + band, color=figures.ORANGE,
                alpha=0.2, linewidth=0)
ax.set_ylim(top=ax.get_ylim()[1] + 2.5)
figures.label(ax, f"A drifting mean, seen through noise (n = {steps} steps, "
              f"Q = {Q:g}, R = {R:g})", "step t", "value", legend="upper left")
figures.show(fig)

# %% tags=["hide-input"]
inside = np.mean(np.abs(latent - ours.mean) < band)
many_latent = np.cumsum(rng.normal(0, np.sqrt(Q), (steps, 1_000)), axis=0)
many_observed = many_latent + rng.normal(0, np.sqrt(R), (steps, 1_000))
many = filters.filter_series(many_observed, Q, R)
inside_many = np.mean(np.abs(many_latent - many.mean) < 2 * np.sqrt(many.var))
assert abs(inside_many - 0.9545) < 0.01
figures.caption(
    "The belief follows the hidden mean; the band of two standard deviations holds it "
    f"in {100 * inside:.0f} % of these steps, and in {100 * inside_many:.1f} % over "
    "1,000 such streams (a Gaussian promises 95.4 %).",
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
still = filters.filter_series(observed, Q=0, R=R, start=start)
extra_count = R / start.var
averaged = ((extra_count * start.mean + np.cumsum(observed))
            / (extra_count + time_axis))
assert np.allclose(still.mean, averaged, atol=1e-12)

# %% [markdown]
# **With $Q > 0$ it becomes an exponential moving average.**
# Once the gain has settled at $K_\infty$, the update reads $x_t = (1 - K_\infty)\,x_{t-1} + K_\infty z_t$, which is the EMA with decay $\beta = 1 - K_\infty$ (D5).
# Insert it into itself, and the weight of an observation that is $j$ steps old turns out to be $K_\infty (1 - K_\infty)^j$.
# The weights add up to one, and a rectangle as high as the first of them has the same area if it is $1/K_\infty$ steps long.
# In that sense the filter remembers $1/K_\infty$ steps, and a running mean remembers all of them.

# %%
steady = filters.steady_state(Q, R)
memory_steps = 1 / steady.gain
age = np.arange(0, 31)
ema_weights = steady.gain * (1 - steady.gain) ** age

# %% [markdown]
# *Predict the plot:* two filters see the same stream, one with drift and one without. How do their gains develop, and how much weight does each still give to an observation that is twenty steps old?

# %% tags=["hide-input"]
vague = filters.filter_series(observed, Q=0, R=R, start=filters.Belief(0.0, 1e12))
fig, (left, right) = figures.panels(1, 2, height=3.4)
left.loglog(time_axis, vague.gain, color=figures.SKY, linestyle="--",
            label="Q = 0, vague prior: 1/t")
left.loglog(time_axis, ours.gain, color=figures.ORANGE, label=f"Q = {Q:g}")
left.axhline(steady.gain, color=figures.GREEN, linestyle="-.", label="steady gain K∞")
figures.label(left, "Gain", "step t", "K", legend="lower left")
right.bar(age, ema_weights, color=figures.ORANGE, alpha=0.6, width=0.8, align="edge",
          label="EMA: K∞ (1 − K∞)ʲ")
right.step([0, memory_steps, memory_steps], [steady.gain, steady.gain, 0],
           where="post", color=figures.GREEN, linestyle="-.",
           label=f"same area: 1/K∞ = {memory_steps:.1f} steps")
right.step([0, 31], [1 / 31] * 2, color=figures.SKY, linestyle="--",
           label="running mean at t = 31")
right.set(xlim=(0, 31), ylim=(0, 1.25 * steady.gain))
figures.label(right, "Weight of an observation in the belief", "age j in steps",
              "weight", legend="upper right")
figures.show(fig)

# %% tags=["hide-input"]
recent = 1 - (1 - steady.gain) ** memory_steps
figures.caption(
    "Left: averaging lets the gain fall for ever; drift holds it up. Right: the EMA "
    f"gives {100 * recent:.0f} % of its weight to the last {memory_steps:.1f} steps, "
    "its memory, while the running mean weights all it has seen alike.",
    alt="Left: gains on logarithmic axes, one falling as one over t, one levelling "
    "off. Right: bars of weights that decay with age, a rectangle of the same area "
    "as high as the first bar, and the flat low line of the running mean.")

# %% [markdown]
# How soon is the filter an EMA?
# Give both the same start $x_0$, but let the filter begin with $P_0$ instead of $P_\infty$.
# Subtract one update from the other, and the difference $d_t$ of their means obeys
#
# $$d_t = (1 - K_\infty)\,d_{t-1} + (K_t - K_\infty)(z_t - x_{t-1}). \tag{1.6}$$
#
# The first term shrinks the difference by the factor $1 - K_\infty$ per step.
# The second feeds it with fresh surprises until the gain has settled; chapter 02 shows that $K_t - K_\infty$ dies out like $(1 - K_\infty)^{2t}$, faster than the difference itself.
# So the factor $1 - K_\infty$ holds *in the long run*, and nothing says that the first steps must look like it.

# %%
ema, level = [], 0.0
for z_t in observed:
    level = (1 - steady.gain) * level + steady.gain * z_t
    ema.append(level)
difference = np.abs(ours.mean - ema)
ratios = difference[1:] / np.maximum(difference[:-1], 1e-300)
clear = difference[1:] > 1e-12  # below this it is mostly rounding

# %% [markdown]
# *Predict the plot:* does the difference fall from the first step on?

# %% tags=["hide-input"]
fig, (left, right) = figures.panels(1, 2, height=3.0)
left.semilogy(time_axis, np.maximum(difference, 1e-17), color=figures.ORANGE)
left.set_xlim(0, 200)
figures.label(left, f"Filter from P₀ = 1, minus EMA (n = {steps})", "step t",
              "absolute difference")
shown = np.flatnonzero(clear)[:40]
right.plot(time_axis[1:][shown], ratios[shown], "o", color=figures.ORANGE,
           label="measured")
right.axhline(1 - steady.gain, color=figures.GREEN, linestyle="-.", label="1 − K∞")
right.set(ylim=(0, max(1.4, 1.05 * ratios[shown].max())))
figures.label(right, "Factor from one step to the next", "step t",
              "ratio of differences", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
off = np.abs(ratios[clear] / (1 - steady.gain) - 1)
settled_at = 2 + np.flatnonzero(off > 0.01).max(initial=-1) + 1
first = ", ".join(f"{value:.2f}" for value in ratios[:4])
later = (f"from step {settled_at} on all are within 1 % of" if settled_at < steps - 5
         else f"{steps} steps are too few for them to settle at")
figures.caption(
    f"The first four factors are {first}; {later} 1 − K∞ = {1 - steady.gain:.2f}.",
    alt="Left: the difference between filter and EMA on a logarithmic axis falls in a "
    "straight line to rounding error after the first steps. Right: measured factors "
    "scatter at first and then lie on the line one minus K infinity.")

# %% [markdown]
# What, then, does the filter add to an EMA?
# After the transient, *nothing to the mean*.
# It does add a principled start, a rule that derives the decay from $Q/R$, and the variance $P$, which is a statement about its own error.
# Whether that statement is the right thing to divide by is the question of chapter 03.

# %% [markdown]
# ## When it fails
#
# The variance never looks at the data.
# Let us hurt the filter on purpose: one observation in the middle of the stream is off by 40 noise standard deviations, as when a lander crashes.

# %%
spoiled = observed.copy()
spoiled[steps // 2] += 40 * np.sqrt(R)
hurt = filters.filter_series(spoiled, Q, R)
assert np.array_equal(hurt.var, ours.var)

# %% [markdown]
# *Predict the plot:* what happens to the belief, and what happens to the width of its band? The assertion gives half of it away.

# %% tags=["hide-input"]
when = slice(steps // 2 - 15, min(steps, steps // 2 + 45))
t_window, low, high = (values[when] for values in
                       (time_axis, hurt.mean - band, hurt.mean + band))
fig, ax = figures.panels()
ax.plot(t_window, latent[when], color=figures.INK, linestyle="--", linewidth=1.2,
        label="latent mean")
ax.axvline(steps // 2 + 1, color=figures.GREY, linewidth=0.8, linestyle=":")
ax.annotate("the outlier is up there", (steps // 2 + 1, 1), (8, -8), fontsize=9,
            xycoords=("data", "axes fraction"), textcoords="offset points")
ax.plot(t_window, hurt.mean[when], color=figures.ORANGE,
        label="belief ± 2 √P, with the outlier")
ax.fill_between(t_window, low, high, color=figures.ORANGE, alpha=0.2, linewidth=0)
ax.plot(t_window, ours.mean[when], color=figures.BLUE, linestyle=":",
        label="belief without it")
figures.label(ax, "One observation off by 40 standard deviations (n = 1 stream)",
              "step t", "value", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
missed = (np.abs(hurt.mean - latent) > band)[steps // 2 + 1:steps // 2 + 31]
figures.caption(
    "The belief jumps by the share K of the outlier and is wrong by more than its "
    f"band in {int(missed.sum())} of the next {len(missed)} steps; the band itself "
    "does not change by a hair.",
    alt="After an outlier the filter's belief jumps far from the hidden mean and "
    "decays back slowly while its band keeps the same width.")

# %% [markdown]
# The variances with and without the outlier are *equal*, not just close.
# A Kalman filter with fixed $Q$ and $R$ is confident on schedule.
# The adaptive variant of the paper is an answer to this; chapter 03 looks at what kind of answer it is.

# %% [markdown]
# ## What this does not show
#
# Everything here took the model at its word: a random walk, independent noise, known $Q$ and $R$.
# We have shown that the filter is optimal *for its model*.
# Nothing in this chapter says that the model fits the returns of an episode, and nothing says that dividing by $\sqrt{P}$ is a good normalization.

# %% [markdown]
# ## Exercises
#
# Each exercise has a cell to fill in, and a check that passes or complains by itself.
#
# **Exercise 1 (recall).** Two sensors measure the same constant with noise variances 2 and 6. What is the variance of the best combination of both? Complete the function for any two variances.

# %% tags=["stub"]
def combined_variance(first: float, second: float) -> float:
    """Return the variance of the best mixture of two independent measurements."""


# %% nbgrader={"grade": false, "grade_id": "01-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def combined_variance(first: float, second: float) -> float:
    """Return the variance of the best mixture of two independent measurements."""
    ### BEGIN SOLUTION
    return 1 / (1 / first + 1 / second)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "01-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert np.isclose(combined_variance(2, 6), 1.5), \
    "precisions add: 1/2 + 1/6 = 2/3, and the variance is one over that"
assert np.isclose(combined_variance(5, 5), 2.5), \
    "two equally good sensors halve the variance"
assert combined_variance(1, 1e12) < 1, \
    "even a very poor second sensor must not make things worse"
### BEGIN HIDDEN TESTS
assert np.isclose(combined_variance(0.1, 0.3), 0.075), "variances below one"
assert np.isclose(combined_variance(4, 1), combined_variance(1, 4)), \
    "the order of the sensors cannot matter"
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
assert np.isclose(gain_after_gap(P=1, Q=1, R=2, n=1), 0.5), \
    "after one prediction the prior variance is 1 + 1, as large as the noise"
assert np.isclose(gain_after_gap(P=2, Q=1, R=4, n=2), 0.5), \
    "every prediction adds Q once"
assert np.isclose(gain_after_gap(P=1, Q=3, R=10, n=3), 0.5), \
    "three predictions add 3 Q"
assert gain_after_gap(P=1, Q=1, R=2, n=10_000) > 0.999, \
    "after a very long gap an observation is believed almost blindly"
### BEGIN HIDDEN TESTS
assert np.isclose(gain_after_gap(P=3, Q=1, R=1, n=0), 0.75), \
    "without a gap the prior is the belief itself"
assert np.isclose(gain_after_gap(P=1, Q=0, R=3, n=50), 0.25), \
    "without drift a gap changes nothing"
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
with_gaps = filter_with_gaps(gappy, Q, R)
assert np.allclose(with_gaps[:8], reference[:8]), \
    "before the gap, the filter as it was"
assert np.allclose(np.diff([belief.var for belief in with_gaps[7:12]]), Q), \
    "the variance must grow by Q while nothing is seen"
assert np.ptp([belief.mean for belief in with_gaps[7:12]]) == 0, \
    "the mean must not move while nothing is seen"
after = filters.update(filters.predict(with_gaps[11], Q), gappy[12], R)
assert np.allclose(with_gaps[12], after), "after the gap, learn as usual"
### BEGIN HIDDEN TESTS
late_start = filter_with_gaps(np.array([np.nan, 1.0, np.nan]), 0.5, 2.0)
assert len(late_start) == 3 and np.allclose(late_start[0], (0.0, 1.5)), \
    "a gap at the start: time passes from P0 = 1"
after = filters.update(filters.Belief(0.0, 2.0), 1.0, 2.0)
assert np.allclose(late_start[1], after), \
    "the first observation after a gap at the start"
assert np.allclose(late_start[2], filters.predict(late_start[1], 0.5)), \
    "a gap at the end"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** One outlier of 40 standard deviations was enough to mislead the belief. Invent an update that is not so easily impressed, from above or below: a surprise of up to one standard deviation of what the filter expects, $\sqrt{P^- + R}$, must count as in (P3), and one of 40 must move the mean no further than (P3) would for one of 4.
#
# Then measure the price. Let a filter rest in its steady state at 0, with $Q = 0.04$ and $R = 1$, and let the signal really jump: from now on every observation is exactly 40. Count the steps, with a prediction before each update, until the belief has reached 36, once with your update and once with `filters.update`. (Stop counting at 1,000.) How many steps later is yours?

# %% tags=["stub"]
def robust_update(prior: filters.Belief, z: float, R: float) -> filters.Belief:
    """Return the belief after an observation that may be an outlier."""


steps_later = 0


# %% nbgrader={"grade": false, "grade_id": "01-4", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def robust_update(prior: filters.Belief, z: float, R: float) -> filters.Belief:
    """Return the belief after an observation that may be an outlier."""
    ### BEGIN SOLUTION
    # a surprise counts up to three standard deviations
    reach = 3 * np.sqrt(prior.var + R)
    surprise = np.clip(z - prior.mean, -reach, reach)
    return filters.update(prior, prior.mean + surprise, R)
    ### END SOLUTION


steps_later = 0
### BEGIN SOLUTION
def steps_to_follow(update) -> int:
    belief = filters.Belief(0.0, filters.steady_state(0.04, 1.0).var)
    for step in range(1, 1_000):
        belief = update(filters.predict(belief, 0.04), 40.0, 1.0)
        if belief.mean >= 36:
            return step
    return 1_000


steps_later = steps_to_follow(robust_update) - steps_to_follow(filters.update)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "01-4-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
before, expected = filters.Belief(1.0, 0.5), np.sqrt(0.5 + 2.0)
for surprise in (-1.0, 0.0, 0.5, 1.0):
    seen = before.mean + surprise * expected
    assert np.allclose(robust_update(before, seen, 2.0),
                       filters.update(before, seen, 2.0)), \
        f"a surprise of {surprise:g} is an ordinary one"
far = robust_update(before, before.mean + 40 * expected, 2.0)
four = filters.update(before, before.mean + 4 * expected, 2.0)
assert 0 <= far.mean - before.mean <= four.mean - before.mean, \
    "the outlier still moves it too far"
assert 0 < steps_later < 1_000, "being careful costs steps when the jump is real"
### BEGIN HIDDEN TESTS
below = robust_update(before, before.mean - 40 * expected, 2.0)
assert np.isclose(before.mean - below.mean, far.mean - before.mean), \
    "from below as from above"
elsewhere = filters.Belief(-300.0, 0.5)
assert np.allclose(robust_update(elsewhere, -301.0, 2.0),
                   filters.update(elsewhere, -301.0, 2.0)), \
    "the surprise counts, not the observation"
assert 0 < far.var <= before.var + 1e-12, \
    "an observation must not make the belief less certain than it was"
counted = []
for follow in (robust_update, filters.update):
    belief_now = filters.Belief(0.0, filters.steady_state(0.04, 1.0).var)
    counted.append(1_000)
    for step in range(1, 1_000):
        belief_now = follow(filters.predict(belief_now, 0.04), 40.0, 1.0)
        if belief_now.mean >= 36:
            counted[-1] = step
            break
assert steps_later == counted[0] - counted[1], \
    "count the updates of both until the mean is 36 or more"
### END HIDDEN TESTS

# %% [markdown]
# ## Summary
#
# **Answer.** A drifting mean, independent noise and known variances, all of it Gaussian: from these, Bayes' rule gives the five lines of the filter.
# No estimator then has a smaller mean squared error; without the Gaussians, no other *linear* mixture has.
# The estimate itself is an old acquaintance: without drift it is the running mean, and with drift it turns into an exponential moving average that remembers $1/K_\infty$ steps.
# What is new is that the filter states its own error, and that it does so without ever looking at the data.

# %% tags=["hide-input"]
Markdown(f"""
- Bayes' rule with Gaussians gives (P2) and (P3): the rewriting is exact, and over \
30 steps a grid that knows no formula agrees with the filter to {bayes_gap:.0e}.
- The gain minimizes the error variance $(1-k)^2P^- + k^2R$ over all $k$, Gaussian or \
not; the minimum is $K R$.
- Our own lines, `kscore.filters` and statsmodels agree to {max(gaps.values()):.0e} \
over {steps} steps.
- $Q = 0$ is recursive averaging; $Q > 0$ is, after a transient, an EMA with decay \
{1 - steady.gain:.3f} and a memory of {memory_steps:.1f} steps (for $Q$ = {Q:g}, \
$R$ = {R:g}).
- Gains and variances do not depend on the data: an outlier of 40 standard \
deviations leaves them unchanged.
""")

# %% [markdown]
# **References.** R. E. Kalman, *A New Approach to Linear Filtering and Prediction Problems*, Journal of Basic Engineering 82 (1960).
# G. Welch and G. Bishop, *An Introduction to the Kalman Filter*, University of North Carolina TR 95-041 (1995).
# R. Labbe, *Kalman and Bayesian Filters in Python* (a book of notebooks).
# Z. Xia and Q. Li, *K-Score: Kalman Filter as a Principled Alternative to Reward Normalization in Reinforcement Learning*.

# %%
chapter.footer()
