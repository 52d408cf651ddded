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
# **Claim.** The K-Score is not a z-score: under its own model its standard deviation is $\sqrt{(1 - K)/K}$, not one; and the returns of episodes break that model: the streamed score acts as a high-pass filter. In long CartPole episodes it praises only the beginning, while the released form praises all but about the last $1/K$ steps.
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
# The first half of the claim would be wrong if simulated K-Scores had unit variance, or any other scale than the one we derive.
# The second half would be wrong if the scores of CartPole episodes did not depend on how long ago the episode began, or if both forms depended on it alike.
#
# After this chapter you can
#
# - derive the scale of the K-Score, and say where in a training loop a scale matters;
# - tell the posterior residual from the innovation, and why one of them has unit variance;
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
Q_adaptive: float = 0.1  # adaptive filter, as released for actor-critic and GAE on CartPole [1e-06, 100]
R_adaptive: float = 1.0  # adaptive filter, as released for actor-critic and GAE on CartPole [1e-06, 100]
Q_adaptive_lunar: float = 1.0   # adaptive filter, as released for LunarLander [1e-06, 100]
R_adaptive_lunar: float = 1e-2  # adaptive filter, as released for LunarLander [1e-06, 100]
alpha: float = 0.9       # memory of the adaptive noise level [0.5, 0.95]
ema_decay: float = 0.99  # of the moving Z-Score shown beside [0.5, 0.999]
interactive: bool = False  # sliders to play with, in JupyterLab, instead of a grid of pictures

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
    """Return (steps, streams) observations of a random walk through noise, as the model (P1) says."""
    latent = np.cumsum(rng.normal(0, np.sqrt(Q), (steps, streams)), axis=0)
    return latent + rng.normal(0, np.sqrt(R), (steps, streams))


def both_scores(z: np.ndarray, Q: float, R: float) -> tuple[np.ndarray, np.ndarray]:
    """Return K-Scores and innovation scores of streams, by a filter that starts in its steady state."""
    path = filters.filter_series(z, Q, R, start=filters.Belief(0.0, filters.steady_state(Q, R).var))
    return (z - path.mean) / np.sqrt(path.var), (z - path.prior_mean) / np.sqrt(path.prior_var + path.noise)


rows = []
for ratio in 10.0 ** np.arange(-6, 3):
    kscores, innovations = both_scores(simulate(ratio, 1.0), ratio, 1.0)
    K = filters.steady_state(ratio, 1.0).gain
    assert np.allclose(kscores, np.sqrt((1 - K) / K) * innovations)
    rows.append((ratio, np.sqrt((1 - K) / K), kscores.std(), innovations.std()))
scale = pd.DataFrame(rows, columns=["Q/R", "predicted", "K-Score", "innovation"])
assert np.allclose(scale["K-Score"], scale["predicted"], rtol=0.02) and np.allclose(scale["innovation"], 1, rtol=0.02)

# %% [markdown]
# *Predict the plot:* at which $Q/R$ does a K-Score happen to have unit variance?

# %%
fig, ax = figures.panels()
ax.loglog(scale["Q/R"], scale["predicted"], color=figures.INK, linewidth=1, label="√((1 − K) / K)")
for column, name in (("K-Score", "kscore"), ("innovation", "innovation")):
    look = figures.method(name, marker=True) | {"linestyle": "none", "label": f"{column}, simulated"}
    ax.loglog(scale["Q/R"], scale[column], **look)
ax.axhline(1, color=figures.GREY, linewidth=0.8)
figures.label(ax, f"Standard deviation of the score under the model (n = {streams} streams × {steps:,} steps)", "Q / R", "standard deviation", legend=True)
at = scale.set_index("Q/R")["K-Score"]
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"At Q/R = 1e-4 a K-Score is {at.loc[1e-4]:.1f} times as large as a z-score, "
    f"at 1e-2 {at.loc[1e-2]:.1f} times; the innovation form has unit variance "
    "everywhere.",
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
# - **In the critic's loss**, when it learns *normalized* returns: a smooth-L1 loss is quadratic near zero and linear beyond one, so the scale decides which.
# - **In the advantage** $\hat G - V$: a target ten times as large is ten times as far from the critic's first guess.
# - **With plain SGD, gradient clipping or an entropy bonus**, everywhere.
#
# A change of normalizer that also multiplies the scale by ten is two changes at once, and an experiment that compares them measures both together.

# %% [markdown]
# Before we go on, play with it.
# In JupyterLab, set `interactive = True` in the parameters above and move the sliders; on a page, the columns stand for them.
# Watch three things: $Q/R$ alone decides where the gain settles, $P_0$ decides only how it gets there, and the smaller the gain, the further the K-Score stands out from the innovation score.

# %%
figures.explore(interactive)

# %% [markdown]
# A jump of the mean shows what a score is for, and what it costs.
# A patient filter reports it for many steps; the quick one has forgotten the old mean after two or three, and reports next to nothing.

# %% [markdown]
# ## White under the model
#
# A score built on the innovation has a second property under the model: it is *white*, each step uncorrelated with the others.
# Whatever could have been predicted has been predicted.
# The K-Score, being proportional to it, is white too.
# We measure the autocorrelation on simulated streams, and will shortly measure it again on real ones.

# %%
def autocorrelation(values: np.ndarray, lag: int) -> float:
    """Return the correlation of a series, (time,) or (time, streams), with itself `lag` steps later."""
    early, late = values[:-lag] - values.mean(), values[lag:] - values.mean()
    return float((early * late).mean() / values.var())


model_stream = simulate(Q, R)
model_scores, _ = both_scores(model_stream, Q, R)
model_lags = {lag: autocorrelation(model_scores, lag) for lag in (1, 2, 5, 20)}
assert max(map(abs, model_lags.values())) < 5 / np.sqrt(steps * streams) + 0.01
Markdown("Autocorrelation of the K-Score under the model: " + ", ".join(f"{value:+.3f} at lag {lag}" for lag, value in model_lags.items()) + ".")

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


def random_episodes(name: str) -> list[np.ndarray]:
    """Play episodes with random actions and return the returns of each."""
    env, collected = gym.make(name), []
    env.action_space.seed(seed)
    for episode in range(episodes):
        env.reset(seed=seed if episode == 0 else None)
        rewards, done = [], False
        while not done:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            rewards.append(float(reward))
            done = terminated or truncated
        collected.append(discounted(rewards))
    env.close()
    return collected


played = {name: random_episodes(name) for name in ("CartPole-v1", "LunarLander-v3")}
steps_played = {name: sum(map(len, collected)) for name, collected in played.items()}

# %% [markdown]
# (The paper used LunarLander-v2. The library in use today has only v3: the same task, with fixes to the wind, to determinism and to the observation bounds.)
#
# *Predict the plot:* CartPole pays +1 for every step. Which shape have the returns of one episode, from its first step to its last?

# %%
SIMPLE = {"CartPole-v1": {"Q": Q, "R": R}, "LunarLander-v3": {"Q": Q_lunar, "R": R_lunar}}


def saw_tooth(ax, name: str, title: str, shown: int = 6):
    """Draw consecutive episodes' returns and the streaming filter's belief of their mean."""
    collected = played[name]
    stream = np.concatenate(collected[:shown])
    belief = filters.filter_series(stream, **SIMPLE[name]).mean
    ax.plot(stream, color=figures.GREY, marker=".", markersize=3, linewidth=0.8, label="returns G")
    ax.plot(belief, **figures.method("kscore") | {"label": "filter's belief x"})
    for start in np.cumsum([len(returns) for returns in collected[:shown - 1]]):
        ax.axvline(start, color=figures.INK, linewidth=0.6, linestyle=":")
    return figures.label(ax, title, "step, episode after episode", "return", legend=True)


fig, axes = figures.panels(2, 1, height=2.7)
for ax, name in zip(axes, played, strict=True):
    saw_tooth(ax, name, f"{name}, random policy (6 of {episodes} episodes)")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Within an episode the returns of CartPole fall on a fixed curve; at each "
    "reset they jump up. The filter, expecting a random walk, runs after a "
    "saw-tooth.",
    alt="Two panels of returns over consecutive episodes. CartPole: smooth falling "
    "teeth with jumps at resets. LunarLander: waves with sudden drops, each "
    "episode ending at -100. The filter's belief lags behind both.")

# %% [markdown]
# In CartPole there is *no randomness at all* within an episode: an episode of $N$ steps has $G_t = (1 - \gamma^{N - t})/(1 - \gamma)$ for $t = 0, \dots, N - 1$, whatever happened in it.
# All the information in those returns is the length of the episode.
# The model (P1) would have the mean wander unpredictably, with independent noise on top.
# We put numbers on the difference (D3).

# %%
for returns in played["CartPole-v1"]:
    left = len(returns) - np.arange(len(returns))
    assert np.allclose(returns, (1 - gamma**left) / (1 - gamma))

correlations = {"model (P1)": model_lags}
for name, collected in played.items():
    scores = normalizers.make("kscore", **SIMPLE[name])(np.concatenate(collected))
    correlations[name] = {lag: autocorrelation(scores, lag) for lag in model_lags}
falling = {name: np.mean(np.concatenate([np.diff(returns) for returns in collected]) < 0) for name, collected in played.items()}
white = pd.DataFrame(correlations).T.rename(columns="lag {}".format)
assert falling["CartPole-v1"] == 1.0
white.map(lambda value: f"{value:+.3f}").style.set_caption("Autocorrelation of streamed K-Scores")

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
def measured_response(frequency: float, K: float) -> float:
    """Return the amplitude of the residual when a unit sine wave goes in."""
    t = np.arange(6_000)
    wave = np.sin(2 * np.pi * frequency * t)
    path = filters.filter_series(wave, K**2 / (1 - K), 1.0, start=filters.Belief(0.0, K))
    residual = (wave - path.mean)[3_000:]
    return np.sqrt(2 * np.mean(residual**2))


frequency = np.logspace(-3, np.log10(0.5), 200)
delay = np.exp(-2j * np.pi * frequency)
K_released = filters.steady_state(Q, R).gain
cutoff = frequency[np.argmax(np.abs((1 - K_released) * (1 - delay) / (1 - (1 - K_released) * delay)) > np.sqrt(0.5))]
line = -np.arange(2_000.0)
left_over = (line - filters.filter_series(line, Q, R).mean)[-1]
assert np.isclose(left_over, -(1 - K_released) / K_released)
fig, ax = figures.panels()
for K, color, line, mark in ((0.01, figures.GREEN, "-.", "^"), (K_released, figures.ORANGE, "-", "D"), (0.5, figures.BLUE, "--", "o")):
    ax.loglog(frequency, np.abs((1 - K) * (1 - delay) / (1 - (1 - K) * delay)), color=color, linestyle=line)
    probes = (0.002, 0.01, 0.05, 0.25)
    ax.loglog(probes, [measured_response(p, K) for p in probes], mark, color=color, label=f"K = {K:.3f}")
figures.label(ax, "How much of a wave is left in the residual (lines: theory, marks: measured)", "frequency, cycles per step", "amplitude", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Slow waves are removed, fast ones pass. The released CartPole setting (K = "
    f"{K_released:.3f}) passes less than half the power of a wave that takes "
    f"longer than {1 / cutoff:.0f} steps; of a return that falls by 1 a step it "
    f"leaves {left_over:.1f} for ever.",
    alt="Amplitude response rising with frequency and levelling off, for three "
    "gains; measured marks lie on the curves.")

# %% [markdown]
# What does that mean for an agent?
# As long as episodes are shorter than the cut-off, what distinguishes *one episode from another* is slow, and what happens *within* an episode is fast.
# A policy gradient wants both: better episodes should be praised above worse ones.
# How much of the difference between episodes is left in the scores is easily measured, as the share of their variance that lies between episodes.

# %% [markdown]
# ## Who is praised, who is blamed
#
# Score all episodes with each normalizer, with the settings that were released for each environment.
# First, how much do the scores say about the episode as a whole?

# %%
ADAPTIVE = {"CartPole-v1": {"Q": Q_adaptive, "R": R_adaptive}, "LunarLander-v3": {"Q": Q_adaptive_lunar, "R": R_adaptive_lunar}}
KINDS = {name: {
    "zscore": {"name": "zscore"},
    "running": {"name": "running"},
    "ema": {"name": "ema", "decay": ema_decay},
    "kscore": {"name": "kscore", **SIMPLE[name]},
    "refit": {"name": "kscore", "mode": "refit", **SIMPLE[name]},
    "innovation": {"name": "kscore", "mode": "innovation", **SIMPLE[name]},
    "adaptive": {"name": "kscore", "variant": "adaptive", "alpha": alpha, **ADAPTIVE[name]},
} for name in played}
LABELS = {kind: figures.METHODS[kind]["label"] for kind in KINDS["CartPole-v1"]}


def scored(kind: str, collected: list[np.ndarray], name: str = "CartPole-v1") -> list[np.ndarray]:
    """Score consecutive episodes with a fresh normalizer of this kind, with the settings released for this environment."""
    normalizer = normalizers.make(**KINDS[name][kind])
    return [normalizer(returns) for returns in collected]


def between(scores: list[np.ndarray]) -> float:
    """Return the share of the scores' variance that lies between episodes."""
    means = np.concatenate([np.full(len(episode), episode.mean()) for episode in scores])
    return means.var() / np.concatenate(scores).var()


shares = pd.DataFrame()
for name, collected in played.items():
    shares[name] = pd.Series({"raw returns": between(collected)} | {LABELS[kind]: between(scored(kind, collected, name)) for kind in LABELS})
shares.style.format("{:.0%}").set_caption(f"Variance between episodes, share of all (n = {episodes} episodes each)")

# %% [markdown]
# The per-episode Z-Score removes *all* of it by construction: every episode gets the same mean, good or bad.
# The streamed K-Score removes nearly as much, the running Z-Score least, and `refit` lies in between.
#
# Now the other half, what happens within an episode: cut every episode into ten equal parts and average the score of each part.
# The shape of that curve is what a normalizer says about *position* rather than about *quality*.
# To compare shapes, each curve is divided by the overall standard deviation of its scores.

# %%
def by_position(scores: list[np.ndarray], parts: int = 10) -> np.ndarray:
    """Return the mean score of each tenth of the episodes, in units of the overall spread."""
    long_enough = [episode for episode in scores if len(episode) >= parts]
    means = [[part.mean() for part in np.array_split(episode, parts)] for episode in long_enough]
    return np.mean(means, axis=0) / np.std(np.concatenate(scores))

# %% [markdown]
# *Predict the plot:* for a per-episode z-score the early steps of CartPole always win and the late ones always lose. Does streaming the filter change that?

# %%
fig, axes = figures.panels(1, 2, height=3.6, sharey=True)
tenths = np.arange(5, 100, 10)
for ax, (name, collected) in zip(axes, played.items(), strict=True):
    for kind in ("zscore", "running", "ema", "kscore", "refit", "adaptive"):
        ax.plot(tenths, by_position(scored(kind, collected, name)), **figures.method(kind, marker=True))
    ax.axhline(0, color=figures.INK, linewidth=0.6)
    figures.label(ax, f"{name} (n = {episodes} episodes)", "position in the episode, %", "")
axes[0].set_ylabel("mean score / spread")
handles, names = axes[0].get_legend_handles_labels()
fig.legend(handles, names, loc="outside lower center", ncols=3)
positive = {kind: np.mean(np.concatenate(scored(kind, played["CartPole-v1"])) > 0) for kind in LABELS}
mean_length = np.mean([len(returns) for returns in played["CartPole-v1"]])
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "On CartPole all scores fall with the position. The share of praised steps "
    f"(score above zero) is {100 * positive['zscore']:.0f} % for the per-episode "
    f"Z-Score, {100 * positive['kscore']:.0f} % for the streamed K-Score and "
    f"{100 * positive['refit']:.0f} % for refit. On LunarLander the curves stay "
    "near zero: position matters little there.",
    alt="Mean score against position in the episode for six normalizers in two "
    "environments. On CartPole all fall from positive to negative, the streamed "
    "K-Score steeply at first and refit last; on LunarLander the curves are "
    "nearly flat.")

# %% [markdown]
# On CartPole every normalizer says that early steps were good and late steps were bad.
# That is in the returns themselves, and a baseline that depends on the state is the usual remedy.
# The normalizers differ in *where they change their mind*: the streamed K-Score early, as do the running and moving Z-Scores at this episode length, and `refit` late.

# %%
Markdown(f"A random policy falls after {mean_length:.0f} steps on average, only about {mean_length * K_released:.0f} times the filter's memory of $1/K$ = {1 / K_released:.0f} steps. How does it go on as the agent gets better?")

# %% [markdown]
# ## Long episodes, without playing any
#
# Because CartPole's returns depend on nothing but the length of the episode, we can write down the returns of a policy that survives 500 steps without having one.
# We give each normalizer ten episodes of equal length and look at the last.
#
# *Predict the plot:* which share of the steps gets a positive score, as episodes grow from 10 steps to 500?

# %%
def cartpole_returns(length: int) -> np.ndarray:
    """Return the returns of a CartPole episode of this length; there is only one possibility."""
    return (1 - gamma ** (length - np.arange(length))) / (1 - gamma)


lengths = np.array([10, 20, 50, 100, 200, 350, 500])
praised = {kind: [np.mean(scored(kind, [cartpole_returns(n)] * 10)[-1] > 0) for n in lengths] for kind in LABELS if kind != "innovation"}
fig, ax = figures.panels(height=3.4)
for kind, share in praised.items():
    ax.plot(lengths, 100 * np.array(share), **figures.method(kind, marker=True))
figures.label(ax, "Praised steps (score above zero) in a CartPole episode", "length of the episodes", "% of the steps")
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
# `refit` blames the last steps of a perfect episode all the same; so, more broadly, does the Z-Score.
# Whether any of this speeds up training or slows it down cannot be read off a picture; that is what experiments are for.

# %% [markdown]
# ## Order matters
#
# A z-score does not care in which order its samples come; a filter does.
# For the steps of one episode there is an order.
# But for *exchangeable* samples, such as the rewards of several answers to one prompt, which KRPO (Wang and co-authors, 2025) streams through a filter, any order is as good as another, and so the score of the same sample should not depend on it (D4).
# Take ten rewards of unit variance (an assumption; KRPO's settings expect a far smaller one), shuffle them many times, and follow the score of one of them.

# %%
group = rng.normal(0, 1, 10)
followed = 4


def score_of_followed(order: np.ndarray, kind: dict) -> float:
    """Score the group in this order with a fresh normalizer and return the score of the followed sample."""
    return normalizers.make(**kind)(group[order])[np.flatnonzero(order == followed)[0]]


krpo = {"Q": 1e-5, "R": 1e-2}
orders = [rng.permutation(10) for _ in range(500)]
ordered = {"zscore": {"name": "zscore"}, "kscore": {"name": "kscore", **krpo}, "refit": {"name": "kscore", "mode": "refit", **krpo}}
ranges = {}
for kind, options in ordered.items():
    scores_of_one = [score_of_followed(order, options) for order in orders]
    ranges[LABELS[kind]] = np.ptp(scores_of_one) / np.std(normalizers.make(**options)(group))
assert ranges[LABELS["zscore"]] < 1e-12 < ranges[LABELS["refit"]]
pd.Series(ranges, name=f"range of one sample's score over {len(orders)} orders, in units of the spread of the scores").map("{:.3f}".format).to_frame()

# %% [markdown]
# In `stream` the score of a sample depends on its place more than on its value: whoever comes first meets a filter with $P_0 \gg R$, is adopted as the new mean, and scores almost nothing.
# Even `refit`, which scores the whole group by one final belief, depends on the order, though only slightly: the last samples weigh a little more than the first.
# With $Q = 0$ the final belief would be a plain average, and the dependence would vanish; you can check that in an exercise.

# %% [markdown]
# ## The adaptive variant, in both readings
#
# The paper's adaptive filter re-estimates the noise from squared surprises:
#
# $$R_t = \alpha R_{t-1} + (1 - \alpha)\,(z_t - x_{t-1})^2 . \tag{P6}$$
#
# It does not say whether the gain at step $t$ uses $R_{t-1}$ or the new $R_t$.
# The released code computes the gain first (`R_timing="after"`); the other order is as natural (`"before"`).
# It makes a difference when something unusual happens, so we make two unusual things happen in a stream of unit noise: one outlier, and later one lasting jump.
#
# *Predict the plot:* after the lasting jump we *want* the filter to follow quickly. Does a noise level that rises with surprises raise or lower its gain?

# %%
outlier_at, jump_at, outlier, jump, drift = 60, 140, 15.0, 8.0, 0.05
truth = np.where(np.arange(260) >= jump_at, jump, 0.0)[:, None]
events = truth + rng.normal(0, 1, (260, streams))
events[outlier_at] += outlier
looks = {"fixed R": (filters.filter_series(events, drift, 1.0), figures.ORANGE, "-"),
         "adaptive, R after the gain (released)": (filters.adaptive_filter_series(events, drift, 1.0, alpha), figures.BROWN, "--"),
         "adaptive, R before the gain": (filters.adaptive_filter_series(events, drift, 1.0, alpha, R_timing="before"), figures.BLUE, "-.")}
fig, (top, bottom) = figures.panels(2, 1, height=2.5, sharex=True)
top.plot(truth, color=figures.INK, linewidth=1, label="true mean")
for name, (path, color, line) in looks.items():
    top.plot(np.median(path.mean, axis=1), color=color, linestyle=line, label=name)
    bottom.plot(np.median(path.gain, axis=1), color=color, linestyle=line)
figures.label(top, f"Belief: an outlier at step {outlier_at}, a lasting jump at step {jump_at} (median of n = {streams} streams)", "", "value")
figures.label(bottom, "Gain", "step", "K")
fig.legend(loc="outside lower center", ncols=2)
errors = {name: np.abs(path.mean - truth) for name, (path, _, _) in looks.items()}
fixed, released, alternative = ({"outlier": error[outlier_at:outlier_at + 30].mean(), "jump": error[jump_at:jump_at + 40].mean()}
                                for error in errors.values())
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Surprise lowers the adaptive gain. After the jump that is the wrong way: "
    f"over 40 steps the beliefs are off by {released['jump']:.1f} (released "
    f"order) and {alternative['jump']:.1f} on average, the fixed one by "
    f"{fixed['jump']:.1f}. After the outlier it helps only if R is raised in "
    f"time: over 30 steps {alternative['outlier']:.1f}, against "
    f"{fixed['outlier']:.1f} for the fixed filter and {released['outlier']:.1f} "
    "in the released order.",
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
largest = {timing: np.max(np.abs(normalizers.make("kscore", variant="adaptive", mode="innovation", Q=drift, R=1.0,
                                                  alpha=alpha, R_timing=timing)(events[:, 0]))) for timing in ("after", "before")}
assert largest["before"] <= bound < largest["after"]
Markdown(f"Largest innovation score on one of these streams: **{largest['after']:.1f}** with the old R in the gain, **{largest['before']:.1f}** with the new (bound: {bound:.2f}).")

# %% [markdown]
# ## One outlier, every normalizer
#
# What does one freak return do to the scores: its own, and those of its neighbours?
# We take many streams of quiet unit-variance returns, replace one value by the outlier, and compare scores with and without it.
# All filters use the same $Q$ and $R$ as in the last figure.

# %%
def outlier_effect(kind: str, calm: np.ndarray) -> tuple[float, ...]:
    """Return the outlier's score, and the mean change before it, in the next ten steps, and later, in units of the spread."""
    options = KINDS["CartPole-v1"][kind]
    options = options | ({"Q": drift, "R": 1.0} if options["name"] == "kscore" else {})
    hit = calm.copy()
    hit[outlier_at] = outlier
    clean, spoiled = (normalizers.make(**options)(values) for values in (calm, hit))
    change = np.abs(spoiled - clean) / clean.std()
    after = change[outlier_at + 1:]
    return spoiled[outlier_at] / clean.std(), change[:outlier_at].mean(), after[:10].mean(), after[10:].mean()


calm_streams = rng.normal(0, 1, (streams, 2 * outlier_at))
effects = {LABELS[kind]: np.mean([outlier_effect(kind, calm) for calm in calm_streams], axis=0) for kind in LABELS}
table = pd.DataFrame(effects, index=["score of the outlier", "change before it", "next ten steps", "after that"]).T
table.style.format(precision=2).set_caption(f"In units of the spread of the clean scores, mean of n = {streams} streams")

# %% [markdown]
# Five characters emerge.
# The per-episode Z-Score lets an outlier reach *back in time*: every score of its episode changes, also before it.
# Running and moving deviations are hit afterwards, and for long.
# The simple filter forgets it within some ten steps.
# The adaptive filter is hit hardest in the next steps, because the raised noise level holds its belief and its scale off balance.
# And `refit` does not notice at all: its baseline comes from the end of the episode, and the outlier is long forgotten by then.
# (Move it to the last step, and the other scores of `refit` change most of all; try it.)

# %% [markdown]
# ## `stream` and `refit`
#
# Algorithm 1 of the paper carries the filter's state from step to step and from episode to episode (P9).
# The released code makes a new filter for every episode, runs it to the end, and scores all returns of the episode by the *final* belief (R1, commit 5667b45).
# Within one episode this is $(G_t - a)/b$ with constants $a$ and $b$.
# So `refit` is an affine map of the episode, and any later z-scoring undoes it completely.

# %%
zscore, refit = normalizers.make("zscore"), normalizers.make(**KINDS["CartPole-v1"]["refit"])
undone = max(np.abs(zscore(refit(returns)) - zscore(returns)).max() for collected in played.values() for returns in collected)
streamed_gap = max(np.abs(zscore(s) - zscore(g)).max() for s, g in zip(scored("kscore", played["CartPole-v1"]), played["CartPole-v1"], strict=True))
sizes = pd.DataFrame({name: [np.std(np.concatenate(scored(kind, collected, name))) for kind in LABELS] for name, collected in played.items()}, index=LABELS.values())
assert undone < 1e-5 < streamed_gap
Markdown(f"Z-scoring after `refit` differs from z-scoring the raw returns by at most **{undone:.0e}** over all {2 * episodes} episodes; after `stream`, by up to **{streamed_gap:.1f}** on CartPole.")

# %% [markdown]
# This matters for the paper's experiments, because its released GAE and PPO code z-scores the advantages afterwards, in the Kalman arm too (R2).
# What the policy sees of the normalizer then passes through the critic alone.
#
# What differs most there is the scale.
# Here are the standard deviations of all scores, on the same episodes, each environment with its released settings:

# %%
sizes.style.format(precision=2).set_caption(f"Standard deviation of the scores, random policy, n = {episodes} episodes each")

# %%
final = filters.filter_series(played["CartPole-v1"][0], Q, R).var[-1]
Markdown(f"""With the released CartPole setting the filter ends an episode with $P_N \\approx$ {final:.1e} and divides the returns by $\\sqrt{{P_N}} \\approx$ {np.sqrt(final):.3f}:
the scores are not normalized but *magnified*, by a factor of about {1 / np.sqrt(final):.0f}.
A learning rate and a loss that suit z-scores meet targets of another size.""")

# %% [markdown]
# ## All of them, side by side
#
# The same three CartPole episodes through every normalizer.
# Each panel has its own vertical axis; read the numbers on it.

# %%
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
    for start in np.cumsum([len(returns) for returns in three[:-1]]):
        ax.axvline(start, color=figures.INK, linewidth=0.6, linestyle=":")
for ax in axes[-1]:
    ax.set_xlabel("step, episode after episode")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Dotted lines are resets. The streamed forms respond to resets, the "
    "per-episode forms to position, and the vertical scales differ widely: over "
    f"all {episodes} episodes the spreads range from "
    f"{sizes['CartPole-v1'].min():.1f} to {sizes['CartPole-v1'].max():.0f}.",
    alt="Eight small panels: the raw returns of three CartPole episodes and their "
    "scores under seven normalizers, with very different vertical scales.")

# %% [markdown]
# ## When it fails
#
# We have met the failures on the way: a saw-tooth in place of a random walk, a jump explained as noise, an order that should not matter.
# One more belongs here, the plainest of all.
# Multiply all rewards by a constant, as an environment's author might any day.
# A z-score does not notice; a filter with fixed $Q$ and $R$ does.

# %%
collected = played["CartPole-v1"]
rows = {}
for kind in ("zscore", "running", "kscore", "refit", "adaptive"):
    base = np.std(np.concatenate(scored(kind, collected)))
    rows[LABELS[kind]] = [np.std(np.concatenate(scored(kind, [factor * returns for returns in collected]))) / base for factor in (0.01, 1.0, 100.0)]
sensitivity = pd.DataFrame(rows, index=["rewards × 0.01", "rewards × 1", "rewards × 100"]).T
assert np.allclose(sensitivity.loc["Z-Score, per episode"], 1, rtol=1e-3)
assert np.isclose(sensitivity.loc["K-Score, refit", "rewards × 100"], 100, rtol=0.01)
sensitivity.style.format(precision=3).set_caption("Spread of the scores, relative to unscaled rewards")

# %% [markdown]
# A normalizer that passes the scale of the rewards straight through does not normalize.
# The simple K-Score is a *centring* device with a scale that the user sets through $Q$ and $R$; the adaptive one takes part of the scale from the data.
# It fits that the paper selects $(Q, R)$ anew for each model and environment.

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
# **Exercise 1 (recall).** Write the K-Score of a single return under a given prior as a multiple of the innovation score.

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
assert np.isclose((G - after.mean) / np.sqrt(after.var), kscore_over_innovation(prior, 0.5) * innovation_score)
### BEGIN HIDDEN TESTS
assert np.isclose(kscore_over_innovation(filters.Belief(-3.0, 1.0), 1.0), 1.0), "a gain of one half"
assert np.isclose(kscore_over_innovation(filters.Belief(0.0, 0.2), 5.0), 5.0), "more noise than doubt: the K-Score is the larger one"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** Find a setting of the K-Score in `refit` mode, on the KRPO example, whose scores do *not* depend on the order of the samples.

# %% tags=["stub"]
orderless = {"name": "kscore", "mode": "refit", **krpo}

# %% nbgrader={"grade": false, "grade_id": "03-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
orderless = {"name": "kscore", "mode": "refit", **krpo}
### BEGIN SOLUTION
orderless = {"name": "kscore", "mode": "refit", "Q": 0.0, "R": krpo["R"]}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert orderless["mode"] == "refit" and orderless["R"] == krpo["R"], "change only one number"
assert np.ptp([score_of_followed(order, orderless) for order in orders]) < 1e-9, "the score still depends on the order"
### BEGIN HIDDEN TESTS
other = np.array([3.0, -1.0, 0.5, 8.0])
assert np.allclose(normalizers.make(**orderless)(other)[::-1], normalizers.make(**orderless)(other[::-1]), rtol=0, atol=1e-9), "another group"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (apply).** For CartPole, compute the discounted return of the first step of an episode of $N$ steps, and the shortest length $N$ from which one more step changes it by less than one percent. (From there on the first return hardly tells long episodes from longer ones.)

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
one_percent = next(N for N in range(1, 1000) if first_return(N + 1) / first_return(N) - 1 < 0.01)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert np.isclose(first_return(3), 1 + 0.99 + 0.99**2)
assert one_percent > 0 and first_return(one_percent + 1) < 1.01 * first_return(one_percent), "one more step still changes it by a percent or more"
### BEGIN HIDDEN TESTS
assert np.isclose(first_return(2, gamma=0.5), 1.5) and first_return(1) == 1.0, "another γ, and a single step"
assert one_percent == 69, "the shortest such length"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** Centre the returns of a CartPole episode so that the scores depend much less on the position in the episode, using only what earlier episodes told you. Hint: keep one statistic for each position.

# %% tags=["stub"]
def position_scores(earlier: list[np.ndarray], returns: np.ndarray) -> np.ndarray:
    """Subtract, at each step, the mean return that earlier episodes had at the same step (their last value if shorter)."""


# %% nbgrader={"grade": false, "grade_id": "03-4", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def position_scores(earlier: list[np.ndarray], returns: np.ndarray) -> np.ndarray:
    """Subtract, at each step, the mean return that earlier episodes had at the same step (their last value if shorter)."""
    ### BEGIN SOLUTION
    baseline = [np.mean([episode[min(t, len(episode) - 1)] for episode in earlier]) for t in range(len(returns))]
    return returns - np.array(baseline)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "03-4-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
cartpole = played["CartPole-v1"]
assert np.allclose(position_scores(cartpole[:1], cartpole[0]), 0)
assert np.allclose(position_scores([np.array([4.0, 2.0]), np.array([2.0])], np.array([5.0, 5.0, 5.0])), [2.0, 3.0, 3.0])
half = len(cartpole) // 2
slopes = [np.polyfit(np.arange(len(g)), position_scores(cartpole[:half], g), 1)[0] for g in cartpole[half:] if len(g) >= 10]
raw = [np.polyfit(np.arange(len(g)), g, 1)[0] for g in cartpole[half:] if len(g) >= 10]
assert abs(np.mean(slopes)) < 0.5 * abs(np.mean(raw)), "the scores still fall with the position almost as the returns do"
### BEGIN HIDDEN TESTS
assert np.allclose(position_scores([np.array([3.0, 1.0, 1.0])], np.array([4.0])), [1.0]), "an episode shorter than the earlier ones"
given = np.array([5.0, 4.0])
position_scores([given], given)
assert np.array_equal(given, [5.0, 4.0]), "the returns themselves must stay as they are"
### END HIDDEN TESTS

# %% [markdown]
# ## Summary

# %%
Markdown(f"""
- Under the model the K-Score has the standard deviation $\\sqrt{{(1-K)/K}}$: measured and predicted agree to {100 * np.abs(scale["K-Score"] / scale["predicted"] - 1).max():.1f} % over {len(scale)} ratios; it is the innovation score times a constant.
- Real returns break the model: CartPole's fall at {100 * falling["CartPole-v1"]:.0f} % of the steps, and streamed K-Scores have a lag-one autocorrelation of {correlations["CartPole-v1"][1]:.2f} and {correlations["LunarLander-v3"][1]:.2f} instead of 0 (CartPole and LunarLander; n = {steps_played["CartPole-v1"]:,} and {steps_played["LunarLander-v3"]:,} steps of a random policy).
- Streaming is a high-pass filter. In a CartPole episode of 500 steps it praises the first {100 * praised["kscore"][-1]:.0f} % of the steps; the released `refit` praises the first {100 * praised["refit"][-1]:.0f} %, the per-episode Z-Score {100 * praised["zscore"][-1]:.0f} %.
- The adaptive filter takes every surprise for noise: after a jump of {jump:g} noise deviations it is off by {released["jump"]:.1f} on average over 40 steps where the fixed filter is off by {fixed["jump"]:.1f} (n = {streams} streams).
- `refit` is undone by a later z-scoring, to {undone:.0e}; what remains is the scale that the critic sees.
- Rewards a hundred times as large make `refit` scores {sensitivity.loc["K-Score, refit", "rewards × 100"]:.0f} times as large.
""")

# %% [markdown]
# **References.** Z. Xia and Q. Li, *K-Score*; released code at commit 5667b45 of the repository named in its abstract.
# H. Wang and co-authors, *Kalman Filter Enhanced GRPO for Reinforcement Learning-Based Language Model Reasoning* (KRPO, 2025).
# H. van Hasselt and co-authors, *Learning values across many orders of magnitude* (PopArt, 2016), on scale as a problem of its own.
# T. Kailath, *An innovations approach to least-squares estimation*, IEEE Transactions on Automatic Control 13 (1968).

# %%
chapter.footer()
