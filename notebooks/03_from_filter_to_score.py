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
# # 03 From filter to score
#
# **Question.** What does the K-Score do to a signal: to its scale, and to the returns of real episodes?
#
# *For* readers of chapters 01 and 02.
# *Know first:* the gain, the innovation, the steady state; what a discounted return is.
# *Runs in* under a minute.
# Previous: [02 The steady state](02_steady_state.ipynb) · Next: [04 From the policy gradient to Algorithm 1](04_policy_gradients.ipynb)

# %% [markdown]
# ## Question
#
# A policy-gradient method multiplies each step's log-probability by a score.
# The paper proposes to make the score from the filter,
#
# $$\hat G_t = \frac{G_t - x_t}{\sqrt{P_t + \varepsilon}}, \tag{P4}$$
#
# in place of a z-score.
# We ask what this does to a signal, before any learning is involved.
# It looks like a z-score with a better mean, and one might expect two things of it: that its values have about unit variance, and that it tells good steps from bad ones whatever their place in the episode.
# The first would be wrong if simulated K-Scores had another scale; the second, if the scores of CartPole episodes depended on how long ago the episode began.
#
# After this chapter you can
#
# - derive the scale of the K-Score, and say where in a training loop a scale matters;
# - tell the posterior residual from the innovation, and say why one of them has unit variance;
# - explain what the returns of an episode look like to a filter that expects a random walk;
# - say what `stream`, `refit` and `adaptive` do differently, and which of these differences survives a later z-scoring.

# %% [markdown]
# ## Setup

# %%
import gymnasium as gym
import numpy as np
import pandas as pd
from IPython.display import Markdown

from kscore import chapters, figures, filters, normalizers
from kscore.labs import sliders

chapter = chapters.begin("03_from_filter_to_score")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seed: int = 3            # of every random number in this chapter [0, 1000000000]
streams: int = 200       # simulated streams for each setting [20, 10000]
steps: int = 1_000       # length of the simulated streams [300, 100000]
episodes: int = 60       # episodes of a random policy in each environment [10, 10000]
gamma: float = 0.99      # discount, as released [0.9, 0.999]
Q: float = 1e-4          # simple filter, as released for CartPole [1e-05, 0.1]
R: float = 1e-2          # simple filter, as released for CartPole [0.0001, 0.1]
Q_lunar: float = 1e-2    # simple filter, as released for LunarLander [1e-06, 100]
R_lunar: float = 1.0     # simple filter, as released for LunarLander [1e-06, 100]
Q_adaptive: float = 0.1  # adaptive, released for actor-critic, CartPole [1e-06, 100]
R_adaptive: float = 1.0  # adaptive, released for actor-critic, CartPole [1e-06, 100]
Q_adaptive_lunar: float = 1.0   # adaptive, as released for LunarLander [1e-06, 100]
R_adaptive_lunar: float = 1e-2  # adaptive, as released for LunarLander [1e-06, 100]
alpha: float = 0.9       # memory of the adaptive noise level [0.5, 0.95]
ema_decay: float = 0.99  # of the moving Z-Score shown beside [0.5, 0.999]

# %%
rng = np.random.default_rng(seed)

# %% [markdown]
# ## Notation
#
# | symbol | meaning | in code |
# |---|---|---|
# | $G_t$ | discounted return from step $t$ to the end of its episode | `returns` |
# | $\hat G_t$ | a score: the normalized return | `scores` |
# | $\nu_t = G_t - x_t^-$ | innovation: the surprise *before* learning from $G_t$ | `z - prior_mean` |
# | $S_t = P_t^- + R$ | the variance that the filter expects of $\nu_t$ | `prior_var + noise` |
# | $G_t - x_t$ | posterior residual: what is left of the surprise *after* learning from it | `z - mean` |

# %% [markdown]
# ## The scale of a K-Score
#
# There are two natural things to call a surprise.
# The *innovation* $\nu_t = G_t - x_t^-$ compares the return with what was expected of it.
# The *posterior residual* $G_t - x_t$ compares it with an opinion that has already been moved towards it.
# The K-Score uses the second.
# Since $x_t = x_t^- + K_t\nu_t$, the two are proportional:
#
# $$G_t - x_t = (1 - K_t)\,\nu_t . \tag{3.1}$$
#
# Under the model the innovation has variance $S_t = P_t^- + R$; and from $K = P^-/(P^- + R)$ follow $S = R/(1 - K)$ and $P = KR$.
# Put together, with ε neglected:
#
# $$\operatorname{Var}[\hat G] = \frac{(1 - K)^2 S}{P} = \frac{(1 - K)^2}{K R}\cdot\frac{R}{1 - K} = \frac{1 - K}{K}. \tag{D2}$$
#
# The filter divides by $\sqrt P$, its doubt about the *mean*, where a z-score divides by the spread of the *returns*.
# A confident filter has a small $P$, so its scores are large; the more patient the filter, the larger.
# Dividing the innovation by its own expected spread, $\nu_t/\sqrt{S_t}$, would give unit variance.
# We simulate the model over eight orders of magnitude and see.

# %%
def simulate(Q: float, R: float) -> np.ndarray:
    """Return (steps, streams) observations of a random walk through noise (P1)."""
    latent = np.cumsum(rng.normal(0, np.sqrt(Q), (steps, streams)), axis=0)
    return latent + rng.normal(0, np.sqrt(R), (steps, streams))


def both_scores(z: np.ndarray, Q: float, R: float) -> tuple[np.ndarray, np.ndarray]:
    """Return K-Scores and innovation scores, by a filter in its steady state."""
    start = filters.Belief(0.0, filters.steady_state(Q, R).var)
    path = filters.filter_series(z, Q, R, start=start)
    innovation = (z - path.prior_mean) / np.sqrt(path.prior_var + path.noise)
    return (z - path.mean) / np.sqrt(path.var), innovation

# %% [markdown]
# At every ratio the K-Score should be the innovation score times $\sqrt{(1 - K)/K}$, step by step.

# %%
rows = []
for ratio in 10.0 ** np.arange(-6, 3):
    kscores, innovations = both_scores(simulate(ratio, 1.0), ratio, 1.0)
    K = filters.steady_state(ratio, 1.0).gain
    assert np.allclose(kscores, np.sqrt((1 - K) / K) * innovations)
    rows.append((ratio, np.sqrt((1 - K) / K), kscores.std(), innovations.std()))
scale = pd.DataFrame(rows, columns=["Q/R", "predicted", "K-Score", "innovation"])
assert np.allclose(scale["K-Score"], scale["predicted"], rtol=0.02)
assert np.allclose(scale["innovation"], 1, rtol=0.02)

# %% [markdown]
# *Predict the plot:* at which $Q/R$ does a K-Score happen to have unit variance?

# %% tags=["hide-input"]
fig, ax = figures.panels()
ax.loglog(scale["Q/R"], scale["predicted"], color=figures.INK, linewidth=1,
          label="√((1 − K) / K)")
for column, name in (("K-Score", "kscore"), ("innovation", "innovation")):
    look = figures.method(name, marker=True)
    look |= {"linestyle": "none", "label": f"{column}, simulated"}
    ax.loglog(scale["Q/R"], scale[column], **look)
ax.axhline(1, color=figures.GREY, linewidth=0.8)
title = f"Spread of the score under the model (n = {streams} streams × {steps:,} steps)"
figures.label(ax, title, "Q / R", "standard deviation", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
at = scale.set_index("Q/R")["K-Score"]
figures.caption(
    f"At Q/R = 1e-4 a K-Score is {at.loc[1e-4]:.1f} times as large as a z-score, "
    f"and at 1e-2 it is {at.loc[1e-2]:.1f} times as large; the innovation form has "
    "unit variance everywhere.",
    alt="Standard deviation of K-Scores falling with Q over R along the predicted "
    "curve; innovation scores stay at one.")

# %% [markdown]
# The curve crosses one where $K = \tfrac12$, that is at $Q/R = \tfrac12$, and nowhere else.
#
# The assertion inside the loop says more than the picture.
# By (3.1), at every step the K-Score is *exactly* $\sqrt{(1 - K_t)/K_t}$ times the innovation score; in the steady state that factor is one constant for all.
# The direction of a policy gradient made from one or the other is then the same; only its length differs.
# So where does the length matter?
#
# - **Not much** for the policy under Adam, which divides a constant factor out again, up to its small ε.
# - **In the critic's loss**, when the critic learns *normalized* returns: a smooth-L1 loss is quadratic near zero and linear beyond one, so the scale decides which part is in use.
# - **In the advantage** $\hat G - V$, where $V$ is the critic's estimate of the score: a target ten times as large is ten times as far from the critic's first guess.
# - **With plain SGD, gradient clipping or an entropy bonus**, everywhere.
#
# A change of normalizer that also multiplies the scale by ten is two changes at once, and an experiment that compares the normalizers measures both together.

# %% [markdown]
# Before we go on, play with it: move the sliders, and find out three things.
# Which of $Q$, $R$ and $P_0$ decide where the gain comes to rest, and which only how it gets there?
# When does the K-Score stand out furthest from the innovation score?
# And what happens to the scores when the mean jumps?

# %%
sliders.explore()

# %% [markdown]
# Where the gain comes to rest depends on $Q/R$ alone; $P_0$ decides only how it gets there.
# The smaller the gain, the further the K-Score stands out, as (D2) says.
# And the jump shows what a score is for, and what it costs: a patient filter reports it for many steps, while a quick one has forgotten the old mean after two or three and reports next to nothing.

# %% [markdown]
# ## White under the model
#
# A score built on the innovation has a second property under the model: it is *white*, each step uncorrelated with the others.
# Whatever could have been predicted has been predicted.
# The K-Score, being proportional to it, is white too.
# We measure the autocorrelation on simulated streams, and will shortly measure it again on real ones.

# %%
def autocorrelation(values: np.ndarray, lag: int) -> float:
    """Return the correlation of a series, over time, with itself `lag` steps later."""
    early, late = values[:-lag] - values.mean(), values[lag:] - values.mean()
    return float((early * late).mean() / values.var())


model_scores, _ = both_scores(simulate(Q, R), Q, R)
model_lags = {lag: autocorrelation(model_scores, lag) for lag in (1, 2, 5, 20)}
assert max(map(abs, model_lags.values())) < 5 / np.sqrt(steps * streams) + 0.01

# %% tags=["hide-input"]
Markdown("Autocorrelation of the K-Score under the model: " + ", ".join(
    f"{value:+.3f} at lag {lag}" for lag, value in model_lags.items()) + ".")

# %% [markdown]
# ## What an episode really looks like
#
# Now the real thing: CartPole and LunarLander, played by a policy that chooses at random.
# The return of step $t$ is $G_t = r_t + \gamma G_{t+1}$, computed backwards from the end of the episode.

# %%
def discounted(rewards: list[float]) -> np.ndarray:
    """Return the discounted return of every step, by the backward recursion."""
    returns, later = [], 0.0
    for reward in reversed(rewards):
        later = reward + gamma * later
        returns.append(later)
    return np.array(returns[::-1])

# %% [markdown]
# An episode is played to its end, whatever ends it.

# %%
def random_episode(env: gym.Env, **options) -> np.ndarray:
    """Play one episode with random actions and return its returns."""
    env.reset(**options)
    rewards, done = [], False
    while not done:
        _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        rewards.append(float(reward))
        done = terminated or truncated
    return discounted(rewards)

# %% [markdown]
# (The paper used LunarLander-v2. The library in use today has only v3: the same task, with fixes to the wind, to determinism and to the observation bounds.)

# %%
played = {}
for name in ("CartPole-v1", "LunarLander-v3"):
    env = gym.make(name)
    env.action_space.seed(seed)
    played[name] = [random_episode(env, seed=None if i else seed)
                    for i in range(episodes)]
    env.close()

# %% [markdown]
# *Predict the plot:* CartPole pays +1 for every step. What do the returns of one episode look like, from its first step to its last?

# %% tags=["hide-input"]
SIMPLE = {"CartPole-v1": {"Q": Q, "R": R},
          "LunarLander-v3": {"Q": Q_lunar, "R": R_lunar}}
fig, axes = figures.panels(2, 1, height=2.7)
for ax, (name, collected) in zip(axes, played.items(), strict=True):
    six = collected[:6]
    in_a_row = np.concatenate(six)
    belief = filters.filter_series(in_a_row, **SIMPLE[name]).mean
    ax.plot(in_a_row, color=figures.GREY, marker=".", markersize=3, linewidth=0.8,
            label="returns G")
    ax.plot(belief, **figures.method("kscore") | {"label": "filter's belief x"})
    for reset in np.cumsum([len(returns) for returns in six[:-1]]):
        ax.axvline(reset, color=figures.INK, linewidth=0.6, linestyle=":")
    figures.label(ax, f"{name}, random policy (6 of {episodes} episodes)",
                  "step, episode after episode", "return", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Within an episode the returns of CartPole fall on a fixed curve; at each "
    "reset (dotted) they jump up. The filter, expecting a random walk, runs after a "
    "saw-tooth.",
    alt="Two panels of returns over consecutive episodes. CartPole: smooth falling "
    "teeth with jumps at resets. LunarLander: waves with sudden drops, each "
    "episode ending at -100. The filter's belief lags behind both.")

# %% [markdown]
# In CartPole, once the length $N$ of an episode is known, there is *no randomness at all* in its returns: $G_t = (1 - \gamma^{N - t})/(1 - \gamma)$ for $t = 0, \dots, N - 1$, whatever happened on the way.
# All the information in them is the length of the episode.
# The model (P1) would have the mean wander unpredictably, with independent noise on top.
# We put numbers on the difference (D3).

# %%
def cartpole_returns(length: int) -> np.ndarray:
    """Return the returns of a CartPole episode of this length; no others exist."""
    return (1 - gamma ** (length - np.arange(length))) / (1 - gamma)


for returns in played["CartPole-v1"]:
    assert np.allclose(returns, cartpole_returns(len(returns)))

correlations = {"model (P1)": model_lags}
for name, collected in played.items():
    scores = normalizers.make("kscore", **SIMPLE[name])(np.concatenate(collected))
    correlations[name] = {lag: autocorrelation(scores, lag) for lag in model_lags}

# %% tags=["hide-input"]
white = pd.DataFrame(correlations).T.rename(columns="lag {}".format)
white.map(lambda value: f"{value:+.3f}").style.set_caption(
    "Autocorrelation of streamed K-Scores")

# %% [markdown]
# Under the model the scores are white.
# On real episodes neighbouring scores are strongly correlated, because returns change smoothly within an episode: in CartPole the filter is surprised upwards for a while after a reset and downwards until the next; in LunarLander the spells of surprise go either way.

# %% [markdown]
# ## A high-pass filter
#
# With a constant gain the residual $d_t = G_t - x_t$ obeys a short recursion.
# Subtract $x_t = (1 - K)x_{t-1} + K G_t$ from $G_t$, and write $G_t - x_{t-1}$ as $d_{t-1} + G_t - G_{t-1}$:
#
# $$d_t = (1 - K)\,(d_{t-1} + G_t - G_{t-1}), \tag{3.2}$$
#
# or, with the delay $B G_t = G_{t-1}$:
#
# $$d = \frac{(1 - K)(1 - B)}{1 - (1 - K)B}\;G . \tag{3.3}$$
#
# That is a textbook first-order high-pass filter: the numerator *differences* the signal, the denominator forgets.
# A constant is removed completely; a straight line of slope $s$ leaves the constant $s(1 - K)/K$, so a steadily falling return is scored as steadily bad; fast changes pass.
# We feed sine waves of known frequency and measure what comes out.

# %%
def response(frequency: np.ndarray, K: float) -> np.ndarray:
    """Return the amplitude that (3.3) leaves of a wave of this frequency."""
    delay = np.exp(-2j * np.pi * frequency)
    return np.abs((1 - K) * (1 - delay) / (1 - (1 - K) * delay))


def measured_response(frequency: float, K: float) -> float:
    """Return the amplitude of the residual when a unit sine wave goes in."""
    wave = np.sin(2 * np.pi * frequency * np.arange(6_000))
    settled = filters.Belief(0.0, K)
    path = filters.filter_series(wave, K**2 / (1 - K), 1.0, start=settled)
    residual = (wave - path.mean)[3_000:]
    return np.sqrt(2 * np.mean(residual**2))

# %% [markdown]
# And the straight line: of returns that fall by one per step the filter should leave $-(1 - K)/K$.

# %%
K_released = filters.steady_state(Q, R).gain
line = -np.arange(2_000.0)
left_over = (line - filters.filter_series(line, Q, R).mean)[-1]
assert np.isclose(left_over, -(1 - K_released) / K_released)

# %% [markdown]
# *Predict the plot:* which waves come through, the slow ones or the fast ones, and what does a larger gain change?

# %% tags=["hide-input"]
frequency = np.logspace(-3, np.log10(0.5), 200)
probes = (0.002, 0.01, 0.05, 0.25)
looks = ((0.01, figures.GREEN, "-.", "^"), (K_released, figures.ORANGE, "-", "D"),
         (0.5, figures.BLUE, "--", "o"))
fig, ax = figures.panels()
for K, color, stroke, mark in looks:
    ax.loglog(frequency, response(frequency, K), color=color, linestyle=stroke)
    ax.loglog(probes, [measured_response(p, K) for p in probes], mark, color=color,
              label=f"K = {K:.3f}")
figures.label(ax, "What the residual keeps of a wave (lines: theory, marks: measured)",
              "frequency, cycles per step", "amplitude", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
cutoff = frequency[np.argmax(response(frequency, K_released) > np.sqrt(0.5))]
figures.caption(
    "Slow waves are removed, fast ones pass. The released CartPole setting (K = "
    f"{K_released:.3f}) passes less than half the power of a wave that takes "
    f"longer than {1 / cutoff:.0f} steps; of a return that falls by 1 per step it "
    f"leaves {left_over:.1f} for ever.",
    alt="Amplitude response rising with frequency and levelling off, for three "
    "gains; measured marks lie on the curves.")

# %% [markdown]
# What does that mean for an agent?
# As long as episodes are shorter than the waves that are removed, what distinguishes *one episode from another* is slow, and what happens *within* an episode is fast.
# A policy gradient wants both, since the steps of a better episode should be praised above those of a worse one.
# How much of the difference between episodes is left in the scores is easily measured: it is the share of their variance that lies between episodes.

# %% [markdown]
# ## Who is praised, who is blamed
#
# We score all episodes with each normalizer, using the settings that were released for each environment.
# First, how much do the scores say about the episode as a whole?

# %%
ADAPTIVE = {"CartPole-v1": {"Q": Q_adaptive, "R": R_adaptive},
            "LunarLander-v3": {"Q": Q_adaptive_lunar, "R": R_adaptive_lunar}}
KINDS = {name: {
    "zscore": {"name": "zscore"},
    "running": {"name": "running"},
    "ema": {"name": "ema", "decay": ema_decay},
    "kscore": {"name": "kscore", **SIMPLE[name]},
    "refit": {"name": "kscore", "mode": "refit", **SIMPLE[name]},
    "innovation": {"name": "kscore", "mode": "innovation", **SIMPLE[name]},
    "adaptive": {"name": "kscore", "variant": "adaptive", "alpha": alpha,
                 **ADAPTIVE[name]},
} for name in played}
LABELS = {kind: figures.METHODS[kind]["label"] for kind in KINDS["CartPole-v1"]}

# %% [markdown]
# A fresh normalizer sees the episodes one after the other; then we compare the variance of the episodes' means with that of all scores.

# %%
def scored(kind: str, collected: list, name: str = "CartPole-v1") -> list[np.ndarray]:
    """Score consecutive episodes with a fresh normalizer of this kind."""
    normalizer = normalizers.make(**KINDS[name][kind])
    return [normalizer(returns) for returns in collected]


def between(scores: list[np.ndarray]) -> float:
    """Return the share of the scores' variance that lies between episodes."""
    means = [np.full(len(episode), episode.mean()) for episode in scores]
    return np.concatenate(means).var() / np.concatenate(scores).var()

# %% tags=["hide-input"]
pd.DataFrame({
    name: {"raw returns": between(collected)}
    | {LABELS[kind]: between(scored(kind, collected, name)) for kind in LABELS}
    for name, collected in played.items()
}).style.format("{:.0%}").set_caption(
    f"Variance between episodes, share of all (n = {episodes} episodes each)")

# %% [markdown]
# The per-episode Z-Score removes the difference between episodes *completely*, by construction: every episode gets the same mean, good or bad.
# The streamed K-Score removes nearly as much, the running Z-Score least, and `refit` lies in between.
#
# Now the other half, what happens within an episode: we cut every episode into ten equal parts and average the score of each part.
# The shape of that curve is what a normalizer says about *position* rather than about *quality*.
# To compare shapes, each curve is divided by the overall standard deviation of its scores.

# %%
def by_position(scores: list[np.ndarray], parts: int = 10) -> np.ndarray:
    """Return the mean score of each tenth of the episodes, in units of the spread."""
    means = [[part.mean() for part in np.array_split(episode, parts)]
             for episode in scores if len(episode) >= parts]
    return np.mean(means, axis=0) / np.std(np.concatenate(scores))

# %% [markdown]
# *Predict the plot:* for a per-episode z-score the early steps of CartPole always win and the late ones always lose. Does streaming the filter change that?

# %% tags=["hide-input"]
fig, axes = figures.panels(1, 2, height=3.6, sharey=True)
tenths = np.arange(5, 100, 10)
for ax, (name, collected) in zip(axes, played.items(), strict=True):
    for kind in ("zscore", "running", "ema", "kscore", "refit", "adaptive"):
        curve = by_position(scored(kind, collected, name))
        ax.plot(tenths, curve, **figures.method(kind, marker=True))
    ax.axhline(0, color=figures.INK, linewidth=0.6)
    figures.label(ax, f"{name} (n = {episodes} episodes)",
                  "position in the episode, %", "")
axes[0].set_ylabel("mean score / spread")
handles, names = axes[0].get_legend_handles_labels()
fig.legend(handles, names, loc="outside lower center", ncols=3)
figures.show(fig)

# %% tags=["hide-input"]
positive = {kind: np.mean(np.concatenate(scored(kind, played["CartPole-v1"])) > 0)
            for kind in LABELS}
figures.caption(
    "On CartPole all scores fall with the position. The share of praised steps "
    f"(score above zero) is {100 * positive['zscore']:.0f} % for the per-episode "
    f"Z-Score, {100 * positive['kscore']:.0f} % for the streamed K-Score and "
    f"{100 * positive['refit']:.0f} % for refit. On LunarLander the curves stay "
    "near zero: position matters little there.",
    alt="Mean score against position in the episode for six normalizers in two "
    "environments. On CartPole all fall from positive to negative, the streamed "
    "K-Score at once and refit only near the end; on LunarLander the curves are "
    "nearly flat.")

# %% [markdown]
# On CartPole every normalizer says that early steps were good and late steps were bad.
# That is in the returns themselves, and a baseline that depends on the state is the usual remedy.
# The normalizers differ in *where they change their mind*: the streamed K-Score early, as do the running and moving Z-Scores at this episode length, and `refit` late.

# %% tags=["hide-input"]
mean_length = np.mean([len(returns) for returns in played["CartPole-v1"]])
Markdown(f"A random policy falls after {mean_length:.0f} steps on average, only about "
         f"{mean_length * K_released:.0f} times the filter's memory of $1/K$ = "
         f"{1 / K_released:.0f} steps. What happens as the agent gets better?")

# %% [markdown]
# ## Long episodes, without playing any
#
# Because CartPole's returns depend on nothing but the length of the episode, we can write down the returns of a policy that survives 500 steps without having one.
# We give each normalizer ten episodes of equal length and look at the last.
#
# *Predict the plot:* what share of the steps gets a positive score, as episodes grow from 10 steps to 500?

# %%
lengths = np.array([10, 20, 50, 100, 200, 350, 500])
praised = {}
for kind in ("zscore", "running", "ema", "kscore", "refit", "adaptive"):
    tenth = [scored(kind, [cartpole_returns(n)] * 10)[-1] for n in lengths]
    praised[kind] = [np.mean(scores > 0) for scores in tenth]

# %% tags=["hide-input"]
fig, ax = figures.panels(height=3.4)
for kind, share in praised.items():
    ax.plot(lengths, 100 * np.array(share), **figures.method(kind, marker=True))
figures.label(ax, "Praised steps (score above zero) in a CartPole episode",
              "length of the episodes", "% of the steps")
ax.set(ylim=(0, 100))
fig.legend(loc="outside lower center", ncols=3)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "In an episode of 500 steps the streamed K-Score praises the first "
    f"{100 * praised['kscore'][-1]:.0f} %, the Z-Score the first "
    f"{100 * praised['zscore'][-1]:.0f} %, and refit the first "
    f"{100 * praised['refit'][-1]:.0f} %: all but the last "
    f"{500 * (1 - praised['refit'][-1]):.0f} steps.",
    alt="Share of steps with a positive score against episode length: falling for "
    "the streamed K-Score, rising towards one hundred percent for refit, between "
    "50 and 70 percent for the others.")

# %% [markdown]
# Here is the sharpest contrast of this chapter, and it lies *between two readings of the same method*.
# The streaming filter catches up with the episode and is disappointed ever after.
# The released form takes its baseline from the end of the filter's path, and since the filter remembers only about $1/K$ steps, that is the level of the *last few returns of the episode*: everything before them looks good.
#
# In an episode that ends with a fall, those last steps are the ones that led to it, and blaming them may be good advice.
# In an episode of 500 steps nothing fell: the time limit ended it, and the returns run down to 1 only because the protocol does not estimate what would have come after.
# `refit` blames the last steps of a perfect episode all the same, and the Z-Score blames still more of them.
# Whether any of this speeds up training or slows it down cannot be read off a picture; that is what experiments are for.

# %% [markdown]
# ## Order matters
#
# A z-score does not care in which order its samples come; a filter does.
# The steps of an episode have a natural order.
# *Exchangeable* samples have none: the rewards of several answers to one prompt, say, which KRPO (Wang and co-authors, 2025) streams through a filter.
# Any order is then as good as another, and a sample's score should not depend on it (D4).
# We take ten rewards of unit variance (an assumption; KRPO's settings expect a far smaller one), shuffle them many times, and follow the score of one of them.

# %%
group = rng.normal(0, 1, 10)
followed = 4
krpo = {"Q": 1e-5, "R": 1e-2}
orders = [rng.permutation(10) for _ in range(500)]


def score_of_followed(order: np.ndarray, kind: dict) -> float:
    """Score the group in this order, afresh; return the followed sample's score."""
    scores = normalizers.make(**kind)(group[order])
    return scores[np.flatnonzero(order == followed)[0]]

# %% [markdown]
# For three normalizers we record the range that the score of this one sample covers over the shuffled orders.

# %%
ordered = {"zscore": {"name": "zscore"}, "kscore": {"name": "kscore", **krpo},
           "refit": {"name": "kscore", "mode": "refit", **krpo}}
ranges = {}
for kind, options in ordered.items():
    spread = np.std(normalizers.make(**options)(group))
    of_one = [score_of_followed(order, options) for order in orders]
    ranges[LABELS[kind]] = np.ptp(of_one) / spread

# %% tags=["hide-input"]
assert ranges[LABELS["zscore"]] < 1e-12 < ranges[LABELS["refit"]]
pd.Series(ranges, name="range of one sample's score").map("{:.3f}".format).to_frame(
).style.set_caption(f"Over {len(orders)} orders, in units of the spread of the scores")

# %% [markdown]
# In `stream` the same sample gets very different scores.
# Is it the *place* that decides, then, rather than the value?
# We ask how much of the variance of all ten samples' scores, over the same orders, is explained by the value alone, by the place alone, and by the two together.

# %%
def explained(scores: pd.DataFrame, by: list[str]) -> float:
    """Return the share of the scores' variance that lies between these groups."""
    return scores.groupby(by).score.transform("mean").var() / scores.score.var()


stream_scores = pd.concat([pd.DataFrame({
    "value": group[order], "place": np.arange(10),
    "score": normalizers.make(**ordered["kscore"])(group[order])}) for order in orders])
by_value, by_place, by_both = (explained(stream_scores, by) for by in
                               (["value"], ["place"], ["value", "place"]))
first_size = stream_scores[stream_scores.place == 0].score.abs().mean()
later_size = stream_scores[stream_scores.place > 0].score.abs().mean()

# %% tags=["hide-input"]
Markdown(f"Value alone explains **{100 * by_value:.0f} %** of the variance, place "
         f"alone **{100 * by_place:.0f} %**, both together **{100 * by_both:.0f} %**.")

# %% [markdown]
# The value explains most of the score, and the place by itself explains next to nothing: on average, no place is praised above another.
# What the place does decide is how much the value counts.

# %% tags=["hide-input"]
Markdown("A sample that comes first meets a filter with $P_0 \\gg R$, is adopted as "
         f"the new mean, and scores almost nothing: {first_size:.2f} in absolute "
         f"value, on average, against {later_size:.1f} at later places. The remaining "
         f"{100 * (1 - by_both):.0f} % of the variance depends on the order of the "
         "others.")

# %% [markdown]
# Even `refit`, which scores the whole group by one final belief, depends on the order, though only slightly: the last samples weigh a little more than the first.
# With $Q = 0$ the final belief would be a plain average, and the dependence would vanish; you can check that in an exercise.

# %% [markdown]
# ## The adaptive variant, in both readings
#
# The paper's adaptive filter re-estimates the noise from squared surprises, with a memory $\alpha$ for what it thought before:
#
# $$R_t = \alpha R_{t-1} + (1 - \alpha)\,(z_t - x_{t-1})^2 . \tag{P6}$$
#
# It does not say whether the gain at step $t$ uses $R_{t-1}$ or the new $R_t$.
# The released code computes the gain first (`R_timing="after"`); the other order (`"before"`) is just as natural.
# It makes a difference when something unusual happens, so we make two unusual things happen in a stream of unit noise: one outlier, and later one lasting jump.
#
# *Predict the plot:* after the lasting jump we *want* the filter to follow quickly. Does a noise level that rises with surprises raise or lower its gain?

# %%
outlier_at, jump_at, outlier, jump, drift = 60, 140, 15.0, 8.0, 0.05
truth = np.where(np.arange(260) >= jump_at, jump, 0.0)[:, None]
events = truth + rng.normal(0, 1, (260, streams))
events[outlier_at] += outlier
paths = {
    "fixed": filters.filter_series(events, drift, 1.0),
    "after": filters.adaptive_filter_series(events, drift, 1.0, alpha),
    "before": filters.adaptive_filter_series(events, drift, 1.0, alpha,
                                             R_timing="before"),
}

# %% tags=["hide-input"]
looks = {"fixed": ("fixed R", figures.ORANGE, "-"),
         "after": ("adaptive, R after the gain (as released)", figures.BROWN, "--"),
         "before": ("adaptive, R before the gain", figures.BLUE, "-.")}
fig, (top, bottom) = figures.panels(2, 1, height=2.5, sharex=True)
top.plot(truth, color=figures.INK, linewidth=1, label="true mean")
for kind, (name, color, stroke) in looks.items():
    top.plot(np.median(paths[kind].mean, axis=1), color=color, linestyle=stroke,
             label=name)
    bottom.plot(np.median(paths[kind].gain, axis=1), color=color, linestyle=stroke)
figures.label(top, f"Belief: outlier at step {outlier_at}, lasting jump at {jump_at} "
              f"(median of n = {streams} streams)", "", "value")
figures.label(bottom, "Gain", "step", "K")
fig.legend(loc="outside lower center", ncols=2)
figures.show(fig)

# %% tags=["hide-input"]
errors = {kind: np.abs(path.mean - truth) for kind, path in paths.items()}
after_outlier = {kind: error[outlier_at:outlier_at + 30].mean()
                 for kind, error in errors.items()}
after_jump = {kind: error[jump_at:jump_at + 40].mean()
              for kind, error in errors.items()}
figures.caption(
    "Surprise lowers the adaptive gain. After the jump that is the wrong way: "
    f"over 40 steps the beliefs are off by {after_jump['after']:.1f} (released "
    f"order) and {after_jump['before']:.1f} on average, the fixed one by "
    f"{after_jump['fixed']:.1f}. After the outlier it helps only if R is raised in "
    f"time: over 30 steps {after_outlier['before']:.1f}, against "
    f"{after_outlier['fixed']:.1f} for the fixed filter and "
    f"{after_outlier['after']:.1f} in the released order.",
    alt="Beliefs and gains of three filters around an outlier and a jump; the "
    "adaptive gains collapse at both events, and the adaptive beliefs follow the "
    "jump later.")

# %% [markdown]
# The adaptive filter explains every surprise as noise; it has no means to explain it as change, because only $R$ adapts and $Q$ does not.
# "Adaptive" here does not mean *quicker to adapt*.
# With the new $R_t$ in the gain it means *robust to outliers and slower to follow*.
# In the released order the outlier has already moved the belief when the gain falls, and the low gain then holds the belief where the outlier put it.
#
# The two readings differ in one more way.
# With the new $R_t$ in the gain, a surprise is partly measured against itself: $S_t \ge (1 - \alpha)\,\nu_t^2$, so the innovation score can never exceed $1/\sqrt{1 - \alpha}$.
# The released order has no such bound; nor has the K-Score itself in either order, since it divides by $\sqrt P$, not by $\sqrt S$.

# %%
bound = 1 / np.sqrt(1 - alpha)
options = {"variant": "adaptive", "mode": "innovation", "Q": drift, "R": 1.0}
largest = {}
for timing in ("after", "before"):
    adaptive = normalizers.make("kscore", alpha=alpha, R_timing=timing, **options)
    largest[timing] = np.abs(adaptive(events[:, 0])).max()
assert largest["before"] <= bound < largest["after"]

# %% tags=["hide-input"]
Markdown("Largest innovation score on one of these streams: "
         f"**{largest['after']:.1f}** with the old R in the gain, "
         f"**{largest['before']:.1f}** with the new (bound: {bound:.2f}).")

# %% [markdown]
# ## One outlier, every normalizer
#
# What does one freak return do to the scores: its own, and those of its neighbours?
# We take many streams of quiet unit-variance returns, replace one value by the outlier, and compare scores with and without it.
# All filters use the same $Q$ and $R$ as in the last figure.

# %%
def outlier_effect(kind: str, calm: np.ndarray) -> tuple[float, ...]:
    """Return the outlier's score, and the change before it, soon after, and later."""
    options = KINDS["CartPole-v1"][kind]
    options = options | ({"Q": drift, "R": 1.0} if options["name"] == "kscore" else {})
    hit = calm.copy()
    hit[outlier_at] = outlier
    clean, spoiled = (normalizers.make(**options)(values) for values in (calm, hit))
    change = np.abs(spoiled - clean) / clean.std()
    before, after = change[:outlier_at], change[outlier_at + 1:]
    own = spoiled[outlier_at] / clean.std()
    return own, before.mean(), after[:10].mean(), after[10:].mean()

# %% tags=["hide-input"]
calm_streams = rng.normal(0, 1, (streams, 2 * outlier_at))
effects = {LABELS[kind]: np.mean([outlier_effect(kind, calm) for calm in calm_streams],
                                 axis=0) for kind in LABELS}
columns = ["score of the outlier", "change before it", "next ten steps", "after that"]
pd.DataFrame(effects, index=columns).T.style.format(precision=2).set_caption(
    f"In units of the spread of the clean scores, mean of n = {streams} streams")

# %% [markdown]
# They respond in five different ways.
# The per-episode Z-Score lets an outlier reach *back in time*: every score of its episode changes, even those that came before it.
# The running and the moving Z-Score are hit afterwards, and for a long time, because their deviations have swallowed the outlier.
# The simple filter, in its streamed and its innovation form, has all but forgotten it after ten steps.
# The adaptive filter is hit hardest in the next steps, because the raised noise level holds its belief where the outlier put it and distorts its scale.
# And `refit` does not notice at all: its baseline comes from the end of the episode, and the outlier is long forgotten by then.
# (Move it to the last step, and the other scores of `refit` change most of all; try it.)

# %% [markdown]
# ## `stream` and `refit`
#
# Algorithm 1 of the paper carries the filter's state from step to step and from episode to episode (P9).
# The released code makes a new filter for every episode, runs it to the end, and scores all returns of the episode by the *final* belief (R1, commit 5667b45).
# Within one episode this is $(G_t - a)/b$ with constants $a$ and $b$.
# So `refit` is an affine map of the episode, and any later z-scoring of that episode undoes it, up to rounding and ε.

# %%
zscore = normalizers.make("zscore")


def undoing_gap(kind: str, name: str) -> float:
    """Return how far z-scored scores and z-scored returns lie apart at most."""
    pairs = zip(scored(kind, played[name], name), played[name], strict=True)
    return max(np.abs(zscore(scores) - zscore(returns)).max()
               for scores, returns in pairs)


undone = max(undoing_gap("refit", name) for name in played)
streamed_gap = undoing_gap("kscore", "CartPole-v1")
assert undone < 1e-5 < streamed_gap

# %% tags=["hide-input"]
Markdown(f"Z-scoring after `refit` differs from z-scoring the raw returns by at most "
         f"**{undone:.0e}** over all {2 * episodes} episodes; after `stream`, by up to "
         f"**{streamed_gap:.1f}** on CartPole.")

# %% [markdown]
# This matters for the paper's experiments, because its released GAE and PPO code z-scores the advantages afterwards, in the Kalman arm too (R2).
# Of an affine normalization, only what passes through the critic is then left.
#
# What the critic gets to see differs most in its scale.
# Here are the standard deviations of all scores on the same episodes, with the settings released for each environment:

# %% tags=["hide-input"]
sizes = pd.DataFrame({
    name: {LABELS[kind]: np.std(np.concatenate(scored(kind, collected, name)))
           for kind in LABELS} for name, collected in played.items()})
sizes.style.format(precision=2).set_caption(
    f"Standard deviation of the scores, random policy, n = {episodes} episodes each")

# %% tags=["hide-input"]
final = filters.filter_series(played["CartPole-v1"][0], Q, R).var[-1]
Markdown("With the released CartPole setting the filter ends an episode with "
         f"$P_N \\approx$ {final:.1e} and divides the returns by "
         f"$\\sqrt{{P_N}} \\approx$ {np.sqrt(final):.3f}: the scores are not "
         f"normalized but *magnified*, by a factor of about {1 / np.sqrt(final):.0f}. "
         "A learning rate and a loss that suit z-scores meet targets of another size.")

# %% [markdown]
# ## All of them, side by side
#
# To close, the same three CartPole episodes go through every normalizer.
# Each panel has its own vertical axis; read the numbers on it.
#
# *Predict the plot:* which of the panels show the same curve within each episode up to a shift and a stretch, and which two up to a stretch alone?

# %% tags=["hide-input"]
fig, axes = figures.panels(4, 2, height=1.7, sharex=True)
three = played["CartPole-v1"][:3]
axes[0, 0].plot(np.concatenate(three), color=figures.GREY)
figures.label(axes[0, 0], "returns", "", "")
for ax, kind in zip(axes.flat[1:], LABELS, strict=True):
    look = figures.method(kind)
    ax.plot(np.concatenate(scored(kind, three)), color=look["color"])
    ax.axhline(0, color=figures.INK, linewidth=0.5)
    figures.label(ax, look["label"], "", "")
for ax in axes.flat:
    for reset in np.cumsum([len(returns) for returns in three[:-1]]):
        ax.axvline(reset, color=figures.INK, linewidth=0.6, linestyle=":")
for ax in axes[-1]:
    ax.set_xlabel("step, episode after episode")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Dotted lines are resets. Returns, per-episode Z-Score and refit are shifted and "
    "stretched copies of one another within each episode; the innovation form is a "
    "stretch of the streamed K-Score once the gain has settled. The vertical scales "
    f"differ widely: over all {episodes} episodes the spreads range from "
    f"{sizes['CartPole-v1'].min():.1f} to {sizes['CartPole-v1'].max():.0f}.",
    alt="Eight small panels: the raw returns of three CartPole episodes and their "
    "scores under seven normalizers, with very different vertical scales.")

# %% [markdown]
# ## When it fails
#
# We have met several failures on the way: a saw-tooth in place of a random walk, a jump explained as noise, an order that should not matter.
# One more belongs here, the plainest of all.
# Multiply all rewards by a constant, as an environment's author might any day.
# A z-score does not notice; a filter with fixed $Q$ and $R$ does.

# %%
def spread_of(kind: str, factor: float) -> float:
    """Return the spread of the CartPole scores when all rewards are multiplied."""
    collected = [factor * returns for returns in played["CartPole-v1"]]
    return np.std(np.concatenate(scored(kind, collected)))


factors = (0.01, 1.0, 100.0)
sensitivity = pd.DataFrame({
    LABELS[kind]: {f"rewards × {factor:g}": spread_of(kind, factor)
                   / spread_of(kind, 1.0) for factor in factors}
    for kind in ("zscore", "running", "kscore", "refit", "adaptive")}).T

# %% tags=["hide-input"]
assert np.allclose(sensitivity.loc[LABELS["zscore"]], 1, rtol=1e-3)
assert np.isclose(sensitivity.loc[LABELS["refit"], "rewards × 100"], 100, rtol=0.01)
sensitivity.style.format(precision=3).set_caption(
    "Spread of the scores, relative to unscaled rewards")

# %% [markdown]
# A normalizer that passes the scale of the rewards straight through does not normalize.
# The simple K-Score is a *centring* device with a scale that the user sets through $Q$ and $R$; the adaptive one takes part of the scale from the data.
# This fits the paper's practice of selecting $(Q, R)$ anew for each model and environment.

# %% [markdown]
# ## What this does not show
#
# No policy was trained here.
# A score with an odd scale or shape may still train well; Adam, for one, forgives a constant scale.
# The random policy is the start of training, not its course, and LunarLander's later episodes cannot be written down as CartPole's can.
# Which normalizer trains faster is a question for experiments with many seeds, not for this chapter.

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** Write the K-Score of a single return under a given prior as a multiple of its innovation score, and let the function return the factor (neglect ε).

# %% tags=["stub"]
def kscore_over_innovation(prior: filters.Belief, R: float) -> float:
    """Return the factor between (G - x)/√P and (G - x⁻)/√(P⁻ + R)."""


# %% nbgrader={"grade": false, "grade_id": "03-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def kscore_over_innovation(prior: filters.Belief, R: float) -> float:
    """Return the factor between (G - x)/√P and (G - x⁻)/√(P⁻ + R)."""
    ### BEGIN SOLUTION
    K = filters.gain(prior, R)
    return np.sqrt((1 - K) / K)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "03-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
prior, G = filters.Belief(2.0, 3.0), 7.0
after = filters.update(prior, G, R=0.5)
innovation_score = (G - prior.mean) / np.sqrt(prior.var + 0.5)
own_score = (G - after.mean) / np.sqrt(after.var)
factor = kscore_over_innovation(prior, 0.5)
assert factor is not None, "the function returns nothing yet"
assert np.isclose(own_score, factor * innovation_score), (
    f"with the prior {prior} and R = 0.5 the return {G} has the K-Score "
    f"{own_score:.3f}, but your factor {factor:.3f} times the innovation score gives "
    f"{factor * innovation_score:.3f}")
### BEGIN HIDDEN TESTS
assert np.isclose(kscore_over_innovation(filters.Belief(-3.0, 1.0), 1.0), 1.0), (
    "at a gain of one half, P⁻ = R, the two scores should be equal")
assert np.isclose(kscore_over_innovation(filters.Belief(0.0, 0.2), 5.0), 5.0), (
    "with P⁻ = 0.2 and R = 5 the K-Score should be five times as large")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** Find a setting of the K-Score in `refit` mode, on the KRPO example, whose scores do *not* depend on the order of the samples. One number has to change.

# %% tags=["stub"]
orderless = {"name": "kscore", "mode": "refit", **krpo}

# %% nbgrader={"grade": false, "grade_id": "03-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
orderless = {"name": "kscore", "mode": "refit", **krpo}
### BEGIN SOLUTION
orderless = {"name": "kscore", "mode": "refit", "Q": 0.0, "R": krpo["R"]}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert orderless["mode"] == "refit" and orderless["R"] == krpo["R"], (
    "change only one number, and leave the mode and R as they are")
of_one = [score_of_followed(order, orderless) for order in orders]
assert np.ptp(of_one) < 1e-9, "the score still depends on the order"
### BEGIN HIDDEN TESTS
other = np.array([3.0, -1.0, 0.5, 8.0])
forth, back = (normalizers.make(**orderless)(values) for values in (other, other[::-1]))
assert np.allclose(forth[::-1], back, rtol=0, atol=1e-9), (
    "for another group of four the scores still depend on the order")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (apply).** For CartPole, compute the discounted return of the first step of an episode of $N$ steps, and find the shortest length $N$ from which one more step changes it by less than one percent (`one_percent`, for the default discount). From there on the first return hardly tells long episodes from longer ones.

# %% tags=["stub"]
def first_return(N: int, gamma: float = 0.99) -> float:
    """Return G at the first step of a CartPole episode of N steps."""


one_percent = 0


# %% nbgrader={"grade": false, "grade_id": "03-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def first_return(N: int, gamma: float = 0.99) -> float:
    """Return G at the first step of a CartPole episode of N steps."""
    ### BEGIN SOLUTION
    return (1 - gamma**N) / (1 - gamma)
    ### END SOLUTION


one_percent = 0
### BEGIN SOLUTION
one_percent = next(N for N in range(1, 1000)
                   if first_return(N + 1) / first_return(N) - 1 < 0.01)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert first_return(3) is not None, "the function returns nothing yet"
assert np.isclose(first_return(3), 1 + 0.99 + 0.99**2), (
    f"three steps bring 1 + 0.99 + 0.99² = 2.9701, got {first_return(3)}")
assert one_percent > 0, "one_percent is still to be found"
assert first_return(one_percent + 1) < 1.01 * first_return(one_percent), (
    f"from {one_percent} steps on, one more still changes it by a percent or more")
### BEGIN HIDDEN TESTS
assert np.isclose(first_return(2, gamma=0.5), 1.5), "with γ = 0.5 two steps bring 1.5"
assert np.isclose(first_return(1), 1.0), "a single step brings 1"
assert one_percent == 69, f"{one_percent} is long enough, but not the shortest length"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** Centre the returns of a CartPole episode so that the scores depend much less on the position in the episode, using only what earlier episodes told you. Hint: keep one statistic for each position.

# %% tags=["stub"]
def position_scores(earlier: list[np.ndarray], returns: np.ndarray) -> np.ndarray:
    """Subtract the mean return of earlier episodes at the same step.

    An episode that was shorter counts with its last return.
    """


# %% nbgrader={"grade": false, "grade_id": "03-4", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def position_scores(earlier: list[np.ndarray], returns: np.ndarray) -> np.ndarray:
    """Subtract the mean return of earlier episodes at the same step.

    An episode that was shorter counts with its last return.
    """
    ### BEGIN SOLUTION
    baseline = [np.mean([episode[min(t, len(episode) - 1)] for episode in earlier])
                for t in range(len(returns))]
    return returns - np.array(baseline)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "03-4-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
cartpole = played["CartPole-v1"]
assert position_scores(cartpole[:1], cartpole[0]) is not None, (
    "the function returns nothing yet")
assert np.allclose(position_scores(cartpole[:1], cartpole[0]), 0), (
    "an episode held against itself should score 0 at every step")
two = [np.array([4.0, 2.0]), np.array([2.0])]
assert np.allclose(position_scores(two, np.array([5.0, 5.0, 5.0])), [2.0, 3.0, 3.0]), (
    "after [4, 2] and [2], the returns [5, 5, 5] should score [2, 3, 3]")
half = len(cartpole) // 2
long_ones = [returns for returns in cartpole[half:] if len(returns) >= 10]


def slope(values: np.ndarray) -> float:
    """Return by how much the values rise per step."""
    return np.polyfit(np.arange(len(values)), values, 1)[0]


slopes = [slope(position_scores(cartpole[:half], returns)) for returns in long_ones]
raw = [slope(returns) for returns in long_ones]
assert abs(np.mean(slopes)) < 0.5 * abs(np.mean(raw)), (
    "the scores still fall with the position almost as the returns do")
### BEGIN HIDDEN TESTS
short = position_scores([np.array([3.0, 1.0, 1.0])], np.array([4.0]))
assert np.allclose(short, [1.0]), (
    "an episode of one step after one of three should score its one step only")
given = np.array([5.0, 4.0])
position_scores([given], given)
assert np.array_equal(given, [5.0, 4.0]), "the returns themselves must stay as they are"
### END HIDDEN TESTS

# %% [markdown]
# ## Summary
#
# **Answer.** The K-Score is not a z-score.
# Under its own model its standard deviation follows from the gain, and only the innovation form has unit variance.
# The returns of episodes break that model: they change smoothly instead of wandering, in CartPole they only ever fall, and a filter that is streamed over them removes what is slow.
# In long CartPole episodes it therefore praises only the beginning, while the released form praises all but the end.

# %% tags=["hide-input"]
falling = np.mean(np.concatenate([np.diff(g) for g in played["CartPole-v1"]]) < 0)
cartpole_steps, lunar_steps = (sum(map(len, own)) for own in played.values())
worst = 100 * np.abs(scale["K-Score"] / scale["predicted"] - 1).max()
of_500 = {kind: f"{100 * share[-1]:.0f} %" for kind, share in praised.items()}
points = [
    "Under the model the K-Score has the standard deviation $\\sqrt{(1-K)/K}$: "
    f"measured and predicted agree to {worst:.1f} % over {len(scale)} ratios; it is "
    "the innovation score times a constant.",
    f"Real returns break the model: CartPole's fall at {100 * falling:.0f} % of the "
    "steps, and streamed K-Scores have a lag-one autocorrelation of "
    f"{correlations['CartPole-v1'][1]:.2f} and {correlations['LunarLander-v3'][1]:.2f} "
    f"instead of 0 (CartPole and LunarLander; n = {cartpole_steps:,} and "
    f"{lunar_steps:,} steps of a random policy).",
    "Streaming is a high-pass filter. In a CartPole episode of 500 steps it praises "
    f"the first {of_500['kscore']} of the steps; the released `refit` praises the "
    f"first {of_500['refit']}, the per-episode Z-Score {of_500['zscore']}.",
    f"The adaptive filter takes every surprise for noise: after a jump of {jump:g} "
    f"noise deviations it is off by {after_jump['after']:.1f} on average over 40 "
    f"steps where the fixed filter is off by {after_jump['fixed']:.1f} "
    f"(n = {streams} streams).",
    f"Exchangeable samples get scores that depend on their order: of the variance of "
    f"streamed scores the value explains {100 * by_value:.0f} %, the value and the "
    f"place together {100 * by_both:.0f} %.",
    f"`refit` is undone by a later z-scoring, to {undone:.0e}; what remains is the "
    "scale that the critic sees.",
    "Rewards a hundred times as large make `refit` scores "
    f"{sensitivity.loc[LABELS['refit'], 'rewards × 100']:.0f} times as large.",
]
Markdown("\n".join(f"- {point}" for point in points))

# %% [markdown]
# **References.** Z. Xia and Q. Li, *K-Score*; released code at commit 5667b45 of the repository named in its abstract.
# H. Wang and co-authors, *Kalman Filter Enhanced GRPO for Reinforcement Learning-Based Language Model Reasoning* (KRPO, 2025).
# H. van Hasselt and co-authors, *Learning values across many orders of magnitude* (PopArt, 2016), on scale as a problem of its own.
# T. Kailath, *An innovations approach to least-squares estimation*, IEEE Transactions on Automatic Control 13 (1968).

# %%
chapter.footer()
