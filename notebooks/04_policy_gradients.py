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
# # 04 From the policy gradient to Algorithm 1
#
# **Question.** What does the choice of a normalizer do to a policy gradient: to its mean, its length and its direction?
#
# *For* readers of chapter 03 who want to see the score at work.
# *Know first:* the chain rule, what a policy is.
# *Runs in* about a minute.
# Previous: [03 From filter to score](03_from_filter_to_score.ipynb) · Next: [05 Actor-critic on CartPole](05_actor_critic_cartpole.ipynb)

# %% [markdown]
# ## Question
#
# Chapters 01 to 03 treated scores as numbers.
# Here they become gradients.
# Textbooks promise that subtracting a baseline from the returns leaves the expected gradient alone, so one might expect all normalizers to pull a policy the same way on average, some with more scatter and some with a longer step.
# That would be wrong if a normalizer took away part of the expected gradient itself, and took more of it from some steps than from others.
# So we derive the policy gradient, look for the place where the promise depends on *when* the baseline is known, and measure what each normalizer keeps.
# Then we write the paper's Algorithm 1 by hand, in numpy and with every gradient in the open, let it train, and check that the library which runs the experiments takes the same step.
#
# After this chapter you can
#
# - derive the policy gradient, and say why a baseline changes its scatter but not its mean;
# - say which part of a baseline is harmless, prove it, and predict what the rest costs;
# - write Algorithm 1 from memory, and point to the normalizer in REINFORCE, actor-critic, GAE and PPO;
# - set up a run with `RunConfig` and read its record.

# %% [markdown]
# ## Setup

# %%
import dataclasses

import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

from kscore import chapters, figures, filters, normalizers
from kscore.labs import by_hand, by_hand_times, doors, kept_gradient
from kscore.project import DATA
from kscore.rl import RunConfig, algorithms, cartpoles, environments, train
from kscore.rl.policies import Policy
from kscore.rl.training import make_agent

torch.set_num_threads(1)
chapter = chapters.begin("04_policy_gradients")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seed: int = 4                 # of every random number in this chapter [0, 1000000000]
open_episodes: int = 150      # episodes of the loop written by hand [5, 10000]
env: str = "CartPole-v1"      # of the live run {CartPole-v1, LunarLander-v3}
algorithm: str = "actor_critic"  # of the live run {reinforce, actor_critic, gae, ppo}
normalizer: dict = {"name": "zscore"}  # of the live run, a dict with a name
max_episodes: int = 300       # cap of the live run; LunarLander needs 1,000 [1, 100000]
draws: int = 20_000           # Monte Carlo draws in the bandit [1000, 1000000]

# %%
rng = np.random.default_rng(seed)
gamma = 0.99                           # discount, as released
crowd_size = min(5 * draws, 200_000)   # CartPole episodes played at once
agents = 40                            # whose first gradients we compare

# %% [markdown]
# ## Notation
#
# | symbol | meaning | in code | shape |
# |---|---|---|---|
# | $\pi_\theta(a \mid s)$ | the policy: probability of action $a$ in state $s$ | `policy` | `(actions,)` |
# | $J(\theta)$ | expected return under the policy | | number |
# | $g_t = \nabla\log\pi_\theta(a_t \mid s_t)$ | the direction that makes $a_t$ more likely | `slopes` | `(N,)` along one axis |
# | $b_t$ | a baseline: subtracted from the return | `baseline`, `centre` | `(N,)` |
# | $\mathcal H_t$ | everything settled before $a_t$ is drawn: $s_t$, what came before it, all earlier episodes | | |
# | $c_t$ | the share of the expected gradient at step $t$ that a baseline keeps | `share` | `(N,)` |
# | $V(s)$ | the critic's estimate of the return from state $s$ | `values` | `(N,)` |
# | $A_t = \hat G_t - V(s_t)$ | advantage | `advantages` | `(N,)` |

# %% [markdown]
# ## The gradient of an expectation
#
# We want to raise $J(\theta) = \mathbb E_{\pi_\theta}[G]$, but the expectation depends on $\theta$ through the *probabilities*, not through $G$.
# One identity moves the derivative inside: $\nabla p = p\,\nabla\log p$.
# For a single decision among actions with rewards $G(a)$,
#
# $$\nabla J = \nabla\sum_a \pi_\theta(a)\,G(a) = \sum_a \pi_\theta(a)\,\nabla\log\pi_\theta(a)\,G(a) = \mathbb E\big[\nabla\log\pi_\theta(a)\;G(a)\big]. \tag{4.1}$$
#
# The right-hand side of (4.1) can be estimated by acting: sample an action, and weight the gradient of its log-probability by what it brought.
# An episode $\tau$ of many decisions has the probability
#
# $$p_\theta(\tau) = p(s_0)\prod_t \pi_\theta(a_t \mid s_t)\,p(s_{t+1} \mid s_t, a_t),$$
#
# so $\nabla\log p_\theta(\tau) = \sum_t\nabla\log\pi_\theta(a_t \mid s_t)$: the environment drops out.
# A reward that came before $a_t$ is already fixed when $a_t$ is drawn, and
#
# $$\mathbb E\big[\nabla\log\pi_\theta(a_t \mid s_t)\mid s_t\big] = \sum_a\nabla\pi_\theta(a \mid s_t) = \nabla 1 = 0,$$
#
# so it contributes nothing.
# What is left weights step $t$ by the return $G_t$ from $t$ on:
#
# $$\nabla J = \mathbb E\Big[\sum_t \nabla\log\pi_\theta(a_t \mid s_t)\;G_t\Big]. \tag{4.2}$$
#
# (With discounting, the exact gradient of $\mathbb E[G_0]$ has a further factor $\gamma^t$; most implementations leave it out, and so do we.)
#
# For the same reason, subtracting a baseline that depends only on $s_t$ and on what was known *before* $a_t$ changes nothing on average.
# What it changes is the *scatter*, and a bandit with three arms is enough to see it.

# %%
bandit = np.array([10.0, 11.0, 12.0])    # what each arm pays, plus unit noise
theta = np.array([0.5, 0.0, -0.5])       # preferences of a softmax policy
pi = np.exp(theta) / np.exp(theta).sum()
exact = pi * (bandit - pi @ bandit)      # the gradient by theta, from the sum over arms


def estimates(baseline: float) -> np.ndarray:
    """Return a gradient estimate for each draw: (1_a - π)(G - b), (draws, 3)."""
    chosen = rng.choice(3, size=draws, p=pi)
    rewards = bandit[chosen] + rng.normal(0, 1, draws)
    return (np.eye(3)[chosen] - pi) * (rewards - baseline)[:, None]


for baseline in (0.0, 11.0, 20.0):
    sample = estimates(baseline)
    error = sample.std(axis=0) / np.sqrt(draws)
    assert np.all(np.abs(sample.mean(axis=0) - exact) < 5 * error)

# %% [markdown]
# Each of the three baselines, even a silly one, passes the check: the average is the exact gradient, within five standard errors in each of its three coordinates.
# A baseline of 20 makes nearly every weight negative, and so tells the policy to avoid whatever it has just done; only the average over many draws puts that right.
# How many draws are enough depends on the scatter.
#
# *Predict the plot:* how does the scatter of a single estimate depend on the baseline, and where is it smallest?

# %% tags=["hide-input"]
tried = np.linspace(0, 22, 23)
scatter = [estimates(b).var(axis=0).sum() for b in tried]
squares = ((np.eye(3) - pi) ** 2).sum(axis=1)  # |∇ log π(a)|² of each arm
lowest = (pi * squares) @ bandit / (pi @ squares)
fig, ax = figures.panels(height=2.8)
ax.plot(tried, scatter, "o-", color=figures.BLUE)
ax.axvline(pi @ bandit, color=figures.ORANGE, linestyle="--",
           label=f"expected return, {pi @ bandit:.2f}")
ax.axvline(lowest, color=figures.GREEN, linestyle=":",
           label=f"best baseline, {lowest:.2f}")
figures.label(ax, f"Variance of one gradient estimate (n = {draws:,} draws each)",
              "baseline b", "variance", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
raw, centred = (estimates(b).var(axis=0).sum() for b in (0.0, pi @ bandit))
figures.caption(
    f"A parabola. Its bottom is at E[|∇log π|² G] / E[|∇log π|²] = {lowest:.2f}, "
    "near the expected return. Without a baseline one estimate has "
    f"{raw / centred:.0f} times the variance that it has with the expected return "
    "as baseline.",
    alt="Variance of the gradient estimate against the baseline: a parabola with its "
    "minimum near the expected return.")

# %% [markdown]
# This is the case for *centring* returns: same mean, far less scatter.
# Dividing by a *scale* is a different matter.
# One constant scale multiplies the whole gradient, so it is a statement about the step size; a scale that differs from episode to episode or from step to step reweights them, and changes the direction of the average.

# %% [markdown]
# ## A baseline that knows the answer
#
# The argument needed a baseline that was known before the action, and the K-Score's is not.
# Its belief $x_t$ has seen $G_t$ itself, with weight $K$, and before that the earlier returns of the episode, each of which contains $G_t$ too, since $G_{t-j} = r_{t-j} + \dots + \gamma^j G_t$.
# With a constant gain, $x_t$ holds $G_t$ with the total weight $K\sum_{j=0}^t \big((1-K)\gamma\big)^j$.
# Everything else in it was settled before $a_t$, and averages out.
# So what remains of the expected gradient at step $t$ is the share
#
# $$c_t = 1 - K\sum_{j=0}^{t}\big((1 - K)\gamma\big)^j . \tag{4.3}$$
#
# The mean of the episode holds $G_t$ as well, with the weight $\tfrac1N\sum_{j=0}^t\gamma^j$, but it also holds the *later* returns $G_{t+1}, \dots, G_{N-1}$, and those were anything but settled when $a_t$ was drawn.
# To see what they cost we need the general statement.

# %% [markdown]
# ## What was settled before the action
#
# Let $\mathcal H_t$ be everything that is settled when $a_t$ is drawn, and $g_t = \nabla\log\pi_\theta(a_t \mid s_t)$.
# For *any* baseline, whatever it has seen,
#
# $$\mathbb E\big[g_t\,(G_t - b_t)\big] = \mathbb E[g_t\,G_t] - \mathbb E\big[g_t\,\big(b_t - \mathbb E[b_t \mid \mathcal H_t]\big)\big]. \tag{4.4}$$
#
# *Proof.* $\mathbb E[b_t \mid \mathcal H_t]$ is settled before $a_t$, and $\mathbb E[g_t \mid \mathcal H_t] = 0$; so
#
# $$\mathbb E\big[g_t\,\mathbb E[b_t \mid \mathcal H_t]\big] = \mathbb E\big[\mathbb E[g_t \mid \mathcal H_t]\;\mathbb E[b_t \mid \mathcal H_t]\big] = 0,$$
#
# and it may be added. (We set $g_t = 0$ at steps that an episode does not reach; both sides are then zero there.) ∎
#
# In words: **only the part of a baseline that is settled before $a_t$ is harmless.**
# The rest enters with a minus sign, exactly as if it were a cost: the policy is trained to raise $G_t$ and, at the same time, to *lower* whatever the baseline still owes to $a_t$.
#
# Now let the baseline be a weighted sum of returns, $b_t = \sum_j w_{tj} G_j$, with fixed weights.
# An earlier return, $j \le t$, splits into $r_j + \dots + \gamma^{t-j-1} r_{t-1}$, which is settled, and $\gamma^{t-j} G_t$, which is not.
# A later one, $j > t$, stays as it is.
# With $\rho_{tj} = \mathbb E[g_t\,G_j]\,/\,\mathbb E[g_t\,G_t]$, the influence of $a_t$ on a later return compared with its influence on its own, along whichever direction of the parameters we look, (4.4) becomes
#
# $$c_t = 1 - \sum_{j \le t} w_{tj}\,\gamma^{t-j} - \sum_{j > t} w_{tj}\,\rho_{tj} . \tag{4.5}$$
#
# Four remarks, and then we measure.
#
# - Returns of *earlier episodes* are settled, with whatever weight. A baseline fixed before the episode begins keeps everything.
# - The streamed filter uses no later returns, so (4.3) is (4.5) for it: in every environment, for every policy, and along every direction of the parameters. The innovation form stops one return earlier and gains one step: it keeps at step $t + 1$ little more than the K-Score keeps at $t$, because the *earlier* returns have given $G_t$ away already.
# - The last sum vanishes only if $a_t$ has no influence on later returns. Coin flips are like that; control problems are not, or nobody would need to plan.
# - If the weights are random, they stay inside: the term of $G_j$ is $\mathbb E[g_t\,w_{tj} G_j]$. The weights $1/N$ of the episode's mean are of this kind, because $a_t$ helps to decide how long the episode lasts. There is no shortcut then; we have to measure.

# %% [markdown]
# ## Coin flips, where theory is exact
#
# First a game in which all of (4.5) is known: $N$ coin flips, each paid by its own outcome, $g_t = a_t - \tfrac12$ and $\rho_{tj} = 0$ for $j > t$.
# The length is fixed, so the mean's weights are fixed too, and its share is $1 - \tfrac1N\sum_{j=0}^t\gamma^j$.
#
# *Predict the plot:* which steps keep most of their gradient, the early ones or the late ones?

# %%
flips_long, trials = 40, min(10 * draws, 400_000)
released = {"Q": 1e-4, "R": 1e-2}
settled = filters.steady_state(**released)
K = settled.gain
flips = rng.integers(0, 2, (flips_long, trials))
coin_returns = np.zeros((flips_long + 1, trials))
for t in reversed(range(flips_long)):
    coin_returns[t] = flips[t] + gamma * coin_returns[t + 1]
coin_returns = coin_returns[:-1]
start = filters.Belief(0.0, settled.var)
coin_centres = {
    "kscore": filters.filter_series(coin_returns, **released, start=start).mean,
    "zscore": np.broadcast_to(coin_returns.mean(axis=0), coin_returns.shape),
}

# %% [markdown]
# `kept_gradient.kept` does the arithmetic: it averages $g_t G_t$ and $g_t b_t$ over the episodes, step by step, and returns one minus their ratio with its standard error.

# %%
on_coins = {kind: kept_gradient.kept(flips - 0.5, coin_returns, centre)
            for kind, centre in coin_centres.items()}
j = np.arange(flips_long)
theory = {"kscore": 1 - K * np.cumsum(((1 - K) * gamma) ** j),
          "zscore": 1 - np.cumsum(gamma**j) / flips_long}
for kind, (share, error) in on_coins.items():
    assert np.all(np.abs(share - theory[kind]) < 5 * error + 1e-9)

# %% tags=["hide-input"]
fig, ax = figures.panels(height=3.0)
coin_names = {"kscore": "belief of the streamed filter",
              "zscore": "mean of the episode"}
for kind, name in coin_names.items():
    look = figures.method(kind, marker=True)
    ax.plot(theory[kind], color=look["color"], linestyle=look["linestyle"],
            label=f"{name}: theory")
    ax.plot(on_coins[kind].share, look["marker"], color=look["color"],
            label=f"{name}: measured", fillstyle="none")
ax.axhline(1, color=figures.GREY, linewidth=0.8)
figures.label(ax, f"Gradient kept (n = {trials:,} episodes of {flips_long} coin flips)",
              "step t", "share c")
ax.set_ylim(0, 1.05)
fig.legend(loc="outside lower center", ncols=2)
figures.show(fig)

# %% tags=["hide-input"]
limit = (1 - K) * (1 - gamma) / (1 - gamma * (1 - K))
figures.caption(
    f"Coin flips. For the released filter (K = {K:.3f}) the share falls to "
    f"{theory['kscore'][20]:.2f} at step 20, to {theory['kscore'][-1]:.2f} at step "
    f"{flips_long - 1}, and to {limit:.3f} in the end; for the mean of the episode "
    f"it falls almost in a straight line, to {theory['zscore'][-1]:.2f} at the last "
    "step. The marks lie on the lines.",
    alt="Share of the expected gradient that is kept, against the step, in a game of "
    "forty coin flips. For the filter it decays quickly at first and levels off "
    "near a tenth; for the episode's mean it falls in nearly a straight line to "
    "a value not far above zero. Measured marks lie on both theoretical curves.")

# %% [markdown]
# For the filter this is the high-pass filter (3.3) of chapter 03 again, now in the gradient: after the first steps of an episode, most of what an action brought is subtracted away again.
#
# For the mean, the straight line is a property of coins.
# In CartPole a good action lengthens the episode and so raises every later return, and the last sum of (4.5) is anything but zero.

# %% [markdown]
# ## On real episodes
#
# To measure $c_t$ on CartPole we need very many episodes of one fixed policy.
# `kscore.rl.cartpoles` moves ten thousand carts at a time with gymnasium's equations.
# The policy chooses at random; seen as a logistic policy with all weights zero, its gradient is $g_t = (a_t - \tfrac12)\,s_t$, and we follow it along one direction: *push to the side to which the pole leans and turns*.

# %%
crowd = cartpoles.play(crowd_size, rng)
lean = crowd.observations[:, 2] + crowd.observations[:, 3]   # angle + angular velocity
slopes = (crowd.actions - 0.5) * lean                        # (steps, episodes)
crowd_returns = crowd.returns(gamma)


def cartpole_returns(length: int) -> np.ndarray:
    """Return the returns of a CartPole episode; its length decides them all."""
    return (1 - gamma ** (length - np.arange(length))) / (1 - gamma)

# %% [markdown]
# Every normalizer first sees the same ten episodes, with the settings released for actor-critic; then we ask what it would subtract in each of the others.
# Since the returns depend on nothing but the length of the episode, so do the centres.
# `prior` is the belief of the streamed filter before the episode begins, held for the whole of it.

# %%
earlier = [cartpole_returns(n) for n in crowd.lengths[:kept_gradient.WARM_UP]]
ready = kept_gradient.warmed_up("CartPole-v1", earlier)


def centres_of(kind: str) -> np.ndarray:
    """Return what this normalizer subtracts in every episode, (steps, episodes)."""
    by_length = [kept_gradient.centres(ready[kind], cartpole_returns(n))
                 for n in range(1, crowd.lengths.max() + 1)]
    return kept_gradient.columns(by_length, keep=len(slopes))[:, crowd.lengths - 1]

# %% [markdown]
# Two results are known beforehand: the streamed filter must follow (4.3) here as it did on coins, and by the first remark the prior must keep everything.

# %%
on_cartpole = {kind: kept_gradient.kept(slopes, crowd_returns, centres_of(kind))
               for kind in ready}
share, error = on_cartpole["kscore"]
assert np.all(np.abs(share - theory["kscore"][:len(share)]) < 5 * error + 0.01)
assert np.allclose(on_cartpole["prior"].share, 1)

# %% [markdown]
# LunarLander is simulated one step at a time, so its numbers were measured once and stored (`data/kept_gradient.csv`; `data/README.md` says by which command).
# There the direction is *tilted to the left, fire the right engine, and the other way round*.

# %%
lander = pd.read_csv(DATA / "kept_gradient.csv")
on_lander = {kind: kept_gradient.Kept(rows.share.to_numpy(), rows.error.to_numpy())
             for kind, rows in lander.groupby("kind", sort=False)}

# %% [markdown]
# *Predict the plot:* at which steps will the episode's mean now keep more than the streamed filter? And what will become of the refitted filter, whose centre is the level of the *last* few returns of the episode?

# %% tags=["hide-input"]
PRIOR = {"color": figures.INK, "linestyle": (0, (1, 1)),
         "label": "prior of the episode"}
shown = {kind: figures.method(kind) for kind in
         ("running", "adaptive", "refit", "zscore", "kscore")}
shown = {"prior": PRIOR} | shown
measured_on = {f"CartPole (n = {crowd_size:,} episodes)": on_cartpole,
               f"LunarLander (n = {lander.episodes[0]:,} episodes)": on_lander}
fig, axes = figures.panels(2, 1, height=3.1)
for ax, (title, result) in zip(axes, measured_on.items(), strict=True):
    for kind, look in shown.items():
        share, error = result[kind]
        at = np.arange(len(share))
        ax.plot(at, share, **look)
        ax.fill_between(at, share - 2 * error, share + 2 * error, alpha=0.2,
                        color=look["color"], linewidth=0)
    ax.set_ylim(0, 1.05)
    figures.label(ax, title, "step t", "gradient kept, share c")
handles, words = axes[0].get_legend_handles_labels()
fig.legend(handles, words, loc="outside lower center", ncols=2)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "The share of the expected gradient that is left when the centre is subtracted "
    "(bands: two standard errors). At steps 2, 10 and 20 of CartPole the streamed "
    "filter keeps "
    + ", ".join(f"{on_cartpole['kscore'].share[t]:.2f}" for t in (2, 10, 20))
    + " and the mean of the episode "
    + ", ".join(f"{on_cartpole['zscore'].share[t]:.2f}" for t in (2, 10, 20)) + ".",
    alt="Two panels, CartPole and LunarLander: the share of the gradient kept, against "
    "the step. The prior stays at one and the running mean near it. The streamed "
    "filter decays from nine tenths to near a tenth. The mean of the episode stays "
    "almost level, near one half on CartPole and one third on LunarLander. The "
    "refitted filter rises from three quarters towards one on CartPole and stays "
    "near three quarters on LunarLander; the adaptive stream falls a little, and "
    "lies above the refitted filter on LunarLander.")

# %% [markdown]
# The curves fall into three families.
#
# - The **streamed filter** and its innovation form keep the beginning of an episode and little else. The decay is that of (4.3): it depends on $K$ and $\gamma$, not on the environment.
# - The **mean of the episode** and the **refitted filter** lose something at every step, early or late, but without that decay. The mean looks ahead: even at the first step it holds returns that the first action helps to decide. What is lost evenly amounts to a smaller step, and Adam makes up for much of that.
# - What is known **before the episode**, or nearly so, keeps all or nearly all of the gradient: the prior, and the running mean, in which one episode is a small part of everything seen, and a smaller one with every episode that passes. The moving average forgets, and so lies below the running mean; the adaptive filter, which takes the saw-tooth for noise, has a small gain and keeps much more than the simple one. (How much depends on its noise level when the episode begins, and so on the ten episodes that came before.)
#
# ### What this predicts
#
# Write your own guess down before you read on to [chapter 05](05_actor_critic_cartpole.ipynb).
# If the share kept is what decides:
#
# - Runs with the *simple stream* should learn mainly from the first $1/K$ steps or so of an episode. The handicap should grow with training: it matters less while episodes last twenty steps, and more when the pole has to be saved at step 300.
# - The *per-episode Z-Score* and *refit* should not suffer much from what they lose, since they lose it without that decay. Between those two the share gives little reason for a difference.
# - The *running Z-Score* should learn from whole episodes; the *adaptive stream* nearly so.
# - Over all the arms of chapter 11, memory should matter: the longer a normalizer remembers beyond the episode, the more of the gradient it keeps.
#
# A simple stream that learned as fast as a running Z-Score would show that the share kept is *not* what decides.
# It need not be: scale, scatter and the critic are at work as well, and none of them is in this figure.

# %% [markdown]
# ## Algorithm 1 in the open
#
# Here is the paper's Algorithm 1 (P9) with nothing hidden: numpy, and the chain rule.
# The policy is a network with one hidden layer, which gives a preference for each of the two actions.

# %%
def forward(weights: list, states: np.ndarray) -> np.ndarray:
    """Return the preferences for left and right, (..., 2), in states (..., 4)."""
    W1, b1, W2, b2 = weights
    return np.maximum(states @ W1 + b1, 0) @ W2 + b2

# %% [markdown]
# It pushes to the right with the probability $1 / (1 + e^{\ell - r})$, where $\ell$ and $r$ are the two preferences.
# `by_hand.push` moves the cart by gymnasium's equations.

# %%
def play(weights: list, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Play one episode; return its states, (N, 4), and the actions taken, (N,)."""
    state, states, actions = rng.uniform(-0.05, 0.05, 4).tolist(), [], []
    for chance in rng.random(500):
        left, right = forward(weights, np.array(state))
        actions.append(int(chance * (1 + np.exp(left - right)) < 1))
        states.append(state)
        state, fallen = by_hand.push(state, actions[-1])
        if fallen:
            break
    return np.array(states), np.array(actions)

# %% [markdown]
# Now (4.2) asks for the gradient of $\log\pi(a)$. With respect to the preferences of a softmax it is $\mathbf 1_a - \pi$: one for the action taken and zero for the other, minus the two probabilities.
# The chain rule carries it back through the layers; a hidden unit that was off passes nothing on.

# %%
def gradient_of(weights: list, states, actions, scores) -> list[np.ndarray]:
    """Return the gradient of -Σ_t log π(a_t | s_t) score_t / N by the weights."""
    W1, b1, W2, b2 = weights
    hidden = np.maximum(states @ W1 + b1, 0)                       # (N, units)
    pi = by_hand.probabilities(hidden @ W2 + b2)                   # (N, 2)
    slopes = scores[:, None] * (pi - np.eye(2)[actions]) / len(scores)
    below = (slopes @ W2.T) * (hidden > 0)                         # (N, units)
    return [states.T @ below, below.sum(axis=0),
            hidden.T @ slopes, slopes.sum(axis=0)]

# %% [markdown]
# What is left is the loop itself. The line under study is marked; Adam is the usual one, ten lines in `by_hand`.

# %%
def algorithm_1(normalizer, episodes: int, seed: int) -> list[int]:
    """Train a CartPole policy; return the length of each episode."""
    rng = np.random.default_rng(seed)
    weights, lengths = by_hand.network(2, rng), []
    adam = by_hand.Adam(weights, learning_rate=0.01)
    for _ in range(episodes):
        states, actions = play(weights, rng)
        returns = by_hand.discounted(len(actions), gamma)
        scores = normalizer(returns)                         # <- the line under study
        adam.step(gradient_of(weights, states, actions, scores))
        lengths.append(len(actions))
    return lengths

# %% [markdown]
# (The division by $N$ is Algorithm 1's. Since the actions decide $N$, it departs a little from the exact gradient (4.2); the presets below sum instead.)
#
# `by_hand.Learner` is the same loop, with a critic if you ask for one and room for a normalizer of the advantages. We run both: they have to agree, episode by episode.

# %%
by_hand_runs = {kind: algorithm_1(normalizers.make(kind), open_episodes, seed)
           for kind in ("running", "kscore")}
for kind, lengths in by_hand_runs.items():
    learner = by_hand.Learner(seed, {"name": kind}, policy_reduction="mean")
    imported = by_hand.train(learner, open_episodes)   # stops once it has solved it
    assert imported == lengths[:len(imported)]

# %% tags=["hide-input"]
fig, ax = figures.panels(height=2.9)
for kind, lengths in by_hand_runs.items():
    look = figures.method(kind)
    ax.plot(lengths, ".", color=look["color"], alpha=0.4, markersize=4)
    ax.plot(pd.Series(lengths).rolling(25, min_periods=1).mean(), **look)
figures.label(ax, f"One run each says what a run looks like (seed {seed})",
              "training episode", "steps of the episode (500 is the most)", legend=True)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "Algorithm 1 by hand with two normalizers: dots are episodes, lines the mean of "
    "the last 25. One run each ranks nothing.",
    alt="Steps of each training episode over one run for the running Z-Score and for "
    "the streamed K-Score, with running means.")

# %% [markdown]
# On how many seeds would the other one have come first?
# [The page that trains](http://localhost:8000/#seeds=20) runs this learner in your browser over twenty seeds, with the pole, the belief and the gain beside the curves (`make play` builds it, `python3 -m http.server -d build/play` serves it).

# %% [markdown]
# ## Where the normalizer stands
#
# Algorithm 1 is REINFORCE: no critic, and the score goes straight to the policy.
# The experiments use three more algorithms, and the same normalizer acts at different places in them.

# %% tags=["hide-input"]
figures.show(doors.draw())

# %% tags=["hide-input"]
figures.caption(
    "The four algorithms on CartPole with their released settings (actor-critic with "
    "the advantage of the text). Orange: the normalizer under study. Blue: a "
    "per-episode z-scoring of the advantages that follows it.",
    alt="Four diagrams of boxes and arrows. REINFORCE: returns, normalizer, policy. "
    "Actor-critic: returns, normalizer, advantage, policy; the normalized return is "
    "also the critic's target, and the critic's value is subtracted in the advantage. "
    "GAE: rewards and the critic's values make the advantage, which is z-scored and "
    "goes to the policy; the normalizer comes only before the critic. PPO: as "
    "actor-critic, with a z-scoring between advantage and policy.")

# %% [markdown]
# - In **actor-critic** and **PPO** the policy is weighted by $A_t = \hat G_t - V(s_t)$. The critic's $V(s_t)$ depends on the state alone, so it was settled before the action, and by (4.4) it is harmless. For the same reason it is no remedy: what the normalizer took from the expected gradient, no critic gives back.
# - In **PPO** and **GAE** the advantages are then z-scored once more (R2), by the mean of the whole episode, to which (4.4) applies again.
# - In **GAE** as released the normalizer reaches the policy *only* through the critic.

# %% [markdown]
# ## The same through `kscore`
#
# The library has four algorithms, dropout, evaluation and a stopping rule, as functions that read like the loop.
# A run is described by a `RunConfig`: frozen, checked, every setting in one place.
# The presets hold the released settings (commit 5667b45), except where we say so: a full window of evaluations before a run may stop, a cap of 1,500 episodes on LunarLander, v3 of that environment in place of v2, and an actor-critic that uses its critic, as written.
# `dataclasses.replace(config, field=value)` makes a variant; a value that cannot be right is refused at once.

# %% tags=["hide-input"]
names_of = {name: ("CartPole-v1", name) for name in algorithms.ALGORITHMS}
names_of["ppo, LunarLander"] = ("LunarLander-v3", "ppo")
settings = {column: dataclasses.asdict(RunConfig.preset(*which))
            for column, which in names_of.items()}
pd.DataFrame(settings).map(str)

# %% [markdown]
# Is it the same update?
# We take an untrained agent of the library, without dropout, and let it play one episode.

# %% tags=["hide-input"]
def new_agent(config: RunConfig, world: environments.Environment, seed: int):
    """Make the agent that a run with this seed starts from."""
    initialization, dropout = (np.random.default_rng([seed, i]) for i in (2, 4))
    return make_agent(config, world.observation_size, world.actions, initialization,
                      dropout)


def by_layer(actor, of=lambda parameter: parameter.detach()) -> list[np.ndarray]:
    """Return weights and biases, or what `of` takes from them, as the loop has them."""
    first, last = actor.hidden[0], actor.last
    parts = of(first.weight), of(first.bias), of(last.weight).T, of(last.bias)
    return [part.numpy().copy() for part in parts]


config = dataclasses.replace(RunConfig.preset("CartPole-v1", "reinforce"), dropout=0.0,
                             policy_reduction="mean", normalizer={"name": "kscore"})
cartpole = environments.make("CartPole-v1", seed)
agent = new_agent(config, cartpole, seed)
episode = environments.play(cartpole, Policy(agent.actor, agent.head), rng,
                            agent.dropout)

# %% [markdown]
# First its gradient by the formula above, then the library's own update, in one call.

# %%
scores = normalizers.make("kscore")(by_hand.discounted(len(episode.actions), gamma))
ours = gradient_of(by_layer(agent.actor), episode.observations, episode.actions, scores)

normalize = algorithms.normalization(config)
algorithms.reinforce(agent, algorithms.Batch.of([episode]), normalize, config)
theirs = by_layer(agent.actor, lambda parameter: parameter.grad)

# %% tags=["hide-input"]
gradient_gap = max(np.abs(a - b).max() / np.abs(a).max()
                   for a, b in zip(ours, theirs, strict=True))
assert gradient_gap < 1e-4
codes = pd.read_csv(DATA / "by_hand.csv")
reinforce_by_hand, critic_by_hand = (by_hand_times.compare(codes, learner)
                                     for learner in by_hand_times.LEARNERS)
assert all(found.factor.low < 1 < found.factor.high
           for found in (reinforce_by_hand, critic_by_hand))
Markdown(f"The gradients differ by at most **{gradient_gap:.0g}** of their largest "
         "entry. Nor does it matter for whole runs which code trains: with nothing "
         "dropped, to a mean of 475 over 25 training episodes, the learner by hand "
         "takes as many episodes as the library's, a factor of "
         f"{reinforce_by_hand.factor:.2f} with REINFORCE and "
         f"{critic_by_hand.factor:.2f} with the actor-critic "
         f"(n = {critic_by_hand.factor.n} seeds each, running Z-Score).")

# %% [markdown]
# ## What each normalizer makes of a first gradient
#
# The share kept is about the *average* over very many episodes.
# A run learns from one episode at a time, so now we look at single gradients.
# We give untrained agents five CartPole episodes each and ask what every normalizer says about the fifth.
# (The first four warm up those normalizers that carry a state. All have their default settings, which for the simple filter are those released for CartPole. How the score curves look can be seen in chapter 03.)

# %%
plain = ("none", "zscore", "running", "ema", "kscore")
KINDS = {kind: {"name": kind} for kind in plain}
KINDS["refit"] = {"name": "kscore", "mode": "refit"}
KINDS["innovation"] = {"name": "kscore", "mode": "innovation"}
KINDS["adaptive"] = {"name": "kscore", "variant": "adaptive", "Q": 0.1, "R": 1.0}


def fifth_scores(options: dict, five: list) -> np.ndarray:
    """Return the scores of the fifth episode, after the four before it."""
    fresh = normalizers.make(**options)
    returns = [algorithms.discounted_returns(e.rewards, config.gamma) for e in five]
    return [fresh(own) for own in returns][-1]

# %% [markdown]
# A score is half of a gradient; the other half is $\nabla\log\pi$.

# %%
def gradient(agent, episode, scores: np.ndarray) -> np.ndarray:
    """Return the policy gradient of an episode under these scores, as one vector."""
    agent.memory.gradient.zero_()
    log_probs = agent.log_probs(algorithms.Batch.of([episode]), None)
    algorithms.policy_loss(log_probs, scores, config).backward()
    return agent.memory.gradient.numpy().copy()

# %% [markdown]
# We compare the length and the direction of each gradient with those of the per-episode Z-Score's on the same episode.
# Beside it we put the first step that Adam would take with it, $\eta\,g/(|g| + \varepsilon)$ in every coordinate, with the learning rate $\eta$.

# %% tags=["hide-input"]
def compared(agent_seed: int) -> pd.DataFrame:
    """Return one agent's gradients, compared with the Z-Score's."""
    world = environments.make("CartPole-v1", agent_seed)
    agent = new_agent(config, world, agent_seed)
    policy, dice = Policy(agent.actor, agent.head), np.random.default_rng(agent_seed)
    five = [environments.play(world, policy, dice, agent.dropout) for _ in range(5)]
    scores = {kind: fifth_scores(options, five) for kind, options in KINDS.items()}
    g = {kind: gradient(agent, five[-1], own) for kind, own in scores.items()}
    adam = {kind: own / (np.abs(own) + 1e-8) for kind, own in g.items()}
    length = {kind: np.linalg.norm(own) for kind, own in g.items()}
    return pd.DataFrame([{
        "normalizer": figures.METHODS[kind]["label"],
        "gradient: length": length[kind] / length["zscore"],
        "gradient: cosine": cosine(g[kind], g["zscore"]),
        "Adam's step: cosine": cosine(adam[kind], adam["zscore"]),
        "positive scores": np.mean(scores[kind] > 0)} for kind in KINDS])


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    """Return the cosine of the angle between two vectors."""
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)

# %% [markdown]
# *Predict the table:* which normalizers only shift and stretch the scores of an episode? Does that leave the direction of its gradient alone?

# %% tags=["hide-input"]
first = pd.concat([compared(seed + i) for i in range(agents)])
by_kind = first.groupby("normalizer", sort=False)
updates = by_kind.median()
low, middle, high = (by_kind.quantile(q).map("{:.2f}".format)
                     for q in (0.25, 0.5, 0.75))
worded = middle + " [" + low + ", " + high + "]"
lengths = by_kind["gradient: length"]
low, middle, high = (lengths.quantile(q).map("{:.3g}".format)
                     for q in (0.25, 0.5, 0.75))
worded["gradient: length"] = middle + " [" + low + ", " + high + "]"
worded["positive scores"] = updates["positive scores"].map("{:.0%}".format)
worded.index.name = None
others = updates.drop(figures.METHODS["zscore"]["label"])
worded.style.set_caption(
    f"Fifth episode, relative to the Z-Score: median [quartiles] of n = {agents} "
    "untrained agents")

# %% [markdown]
# The lengths differ by orders of magnitude.
# Adam's first step does away with that, because it divides every coordinate by its own size and keeps little more than the signs.
# Later it divides by a running size, so a *constant* factor hardly reaches the weights; a factor that changes from episode to episode does.
#
# The directions differ too.
# Even a shift, which apart from a stretch is all that distinguishes `none`, the Z-Score and `refit` within an episode, turns the gradient of a *single* episode, because it adds a multiple of $\sum_t g_t$, which is zero only on average.
# The quartiles show how much this varies from one agent to the next, and why a single episode would have told us little.
#
# The last column holds another difference.
# Without normalization every action of a CartPole episode is praised, whatever it was.
# The per-episode Z-Score and `refit` divide every episode into praise and blame, because they start afresh with each.
# The normalizers that carry a memory can blame an episode as a whole, when it is short and those before it were long.

# %% [markdown]
# ## One live run
#
# `train` plays, learns and evaluates until the mean over a window of greedy evaluation episodes reaches the threshold; if the cap comes first, the run is *censored*.
# Two runs with the same configuration and the same seed give the same record, on the same machine.

# %%
live = dataclasses.replace(RunConfig.preset(env, algorithm), normalizer=normalizer,
                           max_episodes=max_episodes)
record = train(live, seed)

# %% tags=["hide-input"]
Markdown(f"The run ({env}, {algorithm}): {figures.ended(record)}, with "
         f"{record['train_steps']:,} steps of training and {record['eval_steps']:,} "
         f"more of evaluation, which teach it nothing, in {record['seconds']:.1f} s.")

# %% [markdown]
# *Predict the plot:* training episodes are played with dropout and sampled actions, evaluation episodes greedily and without. Which curve is higher?

# %% tags=["hide-input"]
def smoothed(values: list[float]) -> np.ndarray:
    """Return the mean over the run's window, over fewer values at the start."""
    windows = [values[max(0, i - live.window):i] for i in range(1, len(values) + 1)]
    return np.array([np.mean(window) for window in windows])


fig, ax = figures.panels(height=3.4)
for key, name, color, line in (
        ("train_returns", "training", figures.BLUE, "--"),
        ("eval_returns", "greedy evaluation", figures.ORANGE, "-")):
    ax.plot(record[key], ".", color=color, alpha=0.35, markersize=4)
    ax.plot(smoothed(record[key]), color=color, linestyle=line,
            label=f"{name}, mean of the last {live.window}")
ax.axhline(live.threshold, color=figures.INK, linewidth=0.8, linestyle=":",
           label=f"threshold, {live.threshold:g}")
figures.label(ax, f"{env}, {algorithm}, {figures.ended(record)} (n = 1 run)",
              "training episode", "return of the episode")
fig.legend(loc="outside lower center", ncols=2)
figures.show(fig)

# %% tags=["hide-input"]
evaluated, trained = (smoothed(record[f"{kind}_returns"]) for kind in ("eval", "train"))
above = np.mean(evaluated > trained[:len(evaluated)])
figures.caption(
    f"One run, seed {seed}: it says what a run looks like, not how good the "
    f"method is. Dots are episodes. The evaluation curve is the higher one at "
    f"{100 * above:.0f} % of the episodes.",
    alt="Returns of training and evaluation episodes over one run, with running "
    "means and the threshold.")

# %% [markdown]
# ## When it fails
#
# A study of many runs must not stop because one of them breaks, and must not hide that it broke.
# We break one on purpose, with an absurd learning rate.

# %%
broken = train(dataclasses.replace(live, learning_rate=1e30, max_episodes=20), seed)
assert broken["status"] == "diverged" and not broken["solved"]

# %% tags=["hide-input"]
Markdown(f"The record says `status` = **{broken['status']}** (\"{broken['reason']}\") "
         f"in episode {broken['episodes']}, and keeps what it had: the returns "
         f"{broken['train_returns']}.")

# %% [markdown]
# Such a run is counted as it is: neither dropped, nor repeated with a luckier seed, nor taken for one that reached its cap.
#
# A mistake in a setting is caught earlier, with a sentence that says what is wrong.

# %%
for mistake in ({"algorithm": "pppo"}, {"normalizer": {"name": "kscore", "Q": -1}}):
    try:
        dataclasses.replace(live, **mistake)
        raise AssertionError("this should have been refused")
    except ValueError as sentence:
        print(f"{sentence}\n")

# %% [markdown]
# ## What this does not show
#
# The shares were measured for centring alone, along one direction of the parameters, under a random policy; a trained policy has other episodes, and so other shares for every normalizer whose centre looks ahead.
# A baseline that keeps everything need not be a good one: subtracting nothing keeps everything too, with all its scatter.
# One live run shows how things work, not which setting works better.

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** Write the REINFORCE loss of an episode from log-probabilities and scores, averaged over the steps, so that one step *down* its gradient makes praised actions more likely.

# %% tags=["stub"]
def reinforce_loss(log_probs: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Return the loss, averaged over the timesteps as in Algorithm 1."""


# %% nbgrader={"grade": false, "grade_id": "04-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def reinforce_loss(log_probs: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Return the loss, averaged over the timesteps as in Algorithm 1."""
    ### BEGIN SOLUTION
    return -(log_probs * scores).mean()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "04-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
preferences = torch.zeros(2, requires_grad=True)
log_probs_of_three = torch.log_softmax(preferences, 0)[[0, 0, 1]]
reinforce_loss(log_probs_of_three, torch.tensor([1.0, 2.0, -1.0])).backward()
assert preferences.grad[0] < 0 < preferences.grad[1], (
    "action 0 was praised twice and action 1 blamed, so one step down the gradient "
    "should favour action 0: check the sign of the loss")
assert torch.allclose(preferences.grad, torch.tensor([-2 / 3, 2 / 3])), (
    "the direction is right, the size is not: divide by the number of steps, here 3; "
    f"got {preferences.grad.tolist()} instead of [-2/3, 2/3]")
### BEGIN HIDDEN TESTS
two_steps = reinforce_loss(torch.tensor([-1.0, -2.0]), torch.tensor([1.0, 3.0]))
assert torch.isclose(two_steps, torch.tensor(3.5)), (
    "log-probabilities -1, -2 with scores 1, 3 have the loss (1 + 6) / 2 = 3.5, "
    f"got {two_steps}")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (derive, then measure).** In the bandit, take `n` draws and subtract their own mean. By which factor does the *expected* gradient shrink, compared with a baseline that does not contain the sample? Write the factor as a function of `n`. (Use (4.4): a sample's own reward is in the mean with the weight $1/n$, and the others were drawn without regard to it.)

# %% tags=["stub"]
def shrinkage(n: int) -> float:
    """Return what is left of the gradient if the baseline is the samples' own mean."""


# %% nbgrader={"grade": false, "grade_id": "04-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def shrinkage(n: int) -> float:
    """Return what is left of the gradient if the baseline is the samples' own mean."""
    ### BEGIN SOLUTION
    return (n - 1) / n
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "04-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
for n in (2, 5):
    chosen = rng.choice(3, size=(200_000, n), p=pi)
    rewards = bandit[chosen] + rng.normal(0, 1, chosen.shape)
    own_mean = rewards - rewards.mean(axis=1, keepdims=True)
    products = (np.eye(3)[chosen] - pi) * own_mean[..., None]
    found = products.mean(axis=(0, 1)) @ exact / (exact @ exact)
    assert abs(found - shrinkage(n)) < 0.05, (
        f"n = {n}: a simulation keeps {found:.3f} of the gradient, "
        f"your formula says {shrinkage(n)}")
### BEGIN HIDDEN TESTS
assert shrinkage(1) == 0, "a single sample is its own mean, and nothing is left"
assert np.isclose(shrinkage(100), 0.99), "with many samples hardly anything is lost"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (apply).** Make a configuration for REINFORCE on CartPole with the adaptive K-Score in innovation form (its default $Q$ and $R$), no dropout, and the stopping rule on *training* returns; everything else as released for REINFORCE.

# %% tags=["stub"]
mine = RunConfig.preset("CartPole-v1", "ppo")

# %% nbgrader={"grade": false, "grade_id": "04-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
mine = RunConfig.preset("CartPole-v1", "ppo")
### BEGIN SOLUTION
mine = dataclasses.replace(
    RunConfig.preset("CartPole-v1", "reinforce"), dropout=0.0, criterion="training",
    normalizer={"name": "kscore", "variant": "adaptive", "mode": "innovation"})
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
wanted = {"name": "kscore", "variant": "adaptive", "mode": "innovation"}
assert mine.normalizer | wanted == mine.normalizer, (
    f"the normalizer should have {wanted}, got {mine.normalizer}")
expected = dataclasses.replace(
    RunConfig.preset("CartPole-v1", "reinforce"), dropout=0.0, criterion="training",
    normalizer=mine.normalizer)
assert mine == expected, (
    "another setting differs: did you start from another algorithm's preset?")
### BEGIN HIDDEN TESTS
assert (mine.algorithm, mine.dropout, mine.criterion) == (
    "reinforce", 0.0, "training"), "it takes REINFORCE, no dropout, training returns"
assert mine.normalizer == normalizers.spelled_out(**wanted), (
    "all other options of the normalizer, Q and R too, should keep their defaults")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** Design a baseline for `n` rewards of the same state that leaves the expected gradient alone: what is subtracted from a reward must not contain it. It should still take away most of what the rewards have in common. There is more than one; the check asks for these two things and no more.

# %% tags=["stub"]
def fair_baseline(rewards: np.ndarray) -> np.ndarray:
    """Return a baseline for each reward, (n,), that does not depend on this reward."""


# %% nbgrader={"grade": false, "grade_id": "04-4", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def fair_baseline(rewards: np.ndarray) -> np.ndarray:
    """Return a baseline for each reward, (n,), that does not depend on this reward."""
    ### BEGIN SOLUTION
    return (rewards.sum() - rewards) / (len(rewards) - 1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "04-4-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
sample = np.array([10.0, 13.0, 11.0, 12.0, 9.0])
for i in range(len(sample)):
    changed = sample + 100 * (np.arange(len(sample)) == i)
    assert np.isclose(fair_baseline(changed)[i], fair_baseline(sample)[i]), (
        f"reward {i} helps to judge itself: its baseline changed when it did")
left = np.mean((sample - fair_baseline(sample)) ** 2)
assert left < np.mean(sample**2) / 4, "what the rewards have in common is still there"
### BEGIN HIDDEN TESTS
high = np.array([1000.0, 1001.0])
assert np.isclose(fair_baseline(high + [50.0, 0.0])[0], fair_baseline(high)[0]), (
    "of two rewards, the first helps to judge itself")
both = fair_baseline(high)
assert both.shape == (2,) and np.isfinite(both).all(), (
    "there should be one finite baseline for each of two rewards")
### END HIDDEN TESTS

# %% [markdown]
# ## Summary
#
# **Answer.** A normalizer changes more than the scatter of a policy gradient.
# Only the part of its centre that was settled before the action is harmless; the rest is taken from the expected gradient.
# The streamed filter takes more and more as the episode goes on, the mean of the episode and the refitted filter take something from every step without such a decay, and what is known before the episode takes nothing.
# The length of a single gradient varies by orders of magnitude, which Adam's first step hides; its direction varies too, and that stays.

# %% tags=["hide-input"]
kept_at = {kind: [f"{on_cartpole[kind].share[t]:.2f}" for t in (2, 10, 20)]
           for kind in ("kscore", "zscore", "refit", "running")}
lander_20 = {kind: f"{on_lander[kind].share[20]:.2f}" for kind in on_lander}
length_of, cosine_of, adam_of = (others.iloc[:, i] for i in range(3))
points = [
    "The policy gradient is an average of $\\nabla\\log\\pi$ weighted by returns; a "
    f"good baseline cuts its variance, in the bandit by a factor of "
    f"{raw / centred:.0f}, and leaves its mean.",
    "A baseline that has seen the return does not leave the mean: at steps 2, 10 and "
    f"20 of CartPole the streamed filter keeps {', '.join(kept_at['kscore'])} of the "
    f"expected gradient, the mean of the episode {', '.join(kept_at['zscore'])}, the "
    f"refitted filter {', '.join(kept_at['refit'])}, and the running mean "
    f"{', '.join(kept_at['running'])} (n = {crowd_size:,} episodes).",
    "At step 20 of LunarLander the same four keep "
    f"{lander_20['kscore']}, {lander_20['zscore']}, {lander_20['refit']} and "
    f"{lander_20['running']} (n = {lander.episodes[0]:,} episodes).",
    "The loop by hand and `kscore` differ by at most "
    f"{gradient_gap:.0g} in a gradient.",
    "On one episode of an untrained agent the other normalizers' gradients are "
    f"{length_of.min():.1f} to {length_of.max():.0f} times as long as the Z-Score's, "
    f"with cosines from {cosine_of.min():+.2f} to {cosine_of.max():+.2f}, and from "
    f"{adam_of.min():+.2f} to {adam_of.max():+.2f} between Adam's first steps (medians "
    f"over {agents} agents).",
    f"The live run ({algorithm}, seed {seed}): {figures.ended(record)}, with "
    f"{record['train_steps']:,} training steps, and {record['eval_steps']:,} more in "
    "evaluation.",
]
Markdown("\n".join(f"- {point}" for point in points))

# %% [markdown]
# **References.** R. J. Williams, *Simple statistical gradient-following algorithms for connectionist reinforcement learning*, Machine Learning 8 (1992).
# R. S. Sutton, D. McAllester, S. Singh and Y. Mansour, *Policy gradient methods for reinforcement learning with function approximation*, NeurIPS (1999).
# J. Schulman and co-authors, *High-dimensional continuous control using generalized advantage estimation* (2015) and *Proximal policy optimization algorithms* (2017).
# B. Trevett, *pytorch-rl*, the public tutorial that the released code follows.
# Z. Xia and Q. Li, *K-Score*, Algorithm 1.

# %%
chapter.footer()
