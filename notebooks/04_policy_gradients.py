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
# **Claim.** In Algorithm 1 a normalizer acts in one line; written out in the open and called through `kscore`, that line gives the same gradient and the same update. Which normalizer stands in it changes the length of a gradient by orders of magnitude, and its direction as well; Adam hides most of the first difference, not the second.
#
# *For* readers of chapter 03 who want to see the score at work.
# *Know first:* the chain rule, a little PyTorch, what a policy is.
# *Runs in* under half a minute.
# Previous: [03 From filter to score](03_from_filter_to_score.ipynb) · Next: [05 Actor-critic on CartPole](05_actor_critic_cartpole.ipynb)

# %% [markdown]
# ## Question
#
# Chapters 01 to 03 treated scores as numbers.
# Here they become gradients.
# We derive the policy gradient, write the paper's Algorithm 1 as a plain loop, do the same with the library that the experiments use, and look at what the choice of normalizer does to a first gradient.
# The claim would be wrong if the loop and the library disagreed on a gradient, or if all normalizers gave nearly the same one.
#
# After this chapter you can
#
# - derive the policy gradient, say why subtracting a baseline changes its variance but not its mean, and when that argument fails;
# - write Algorithm 1 from memory;
# - set up a run with `RunConfig`, change any of its settings, and read its record;
# - predict which normalizers change the direction of an update and which only its length.

# %% [markdown]
# ## Setup

# %%
import dataclasses
import os
import sys

import gymnasium as gym
import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown
from torch import nn
from tqdm.std import tqdm

from kscore import chapters, figures, filters, normalizers
from kscore.rl import RunConfig, algorithms, environments, train
from kscore.rl.networks import Network
from kscore.rl.policies import Policy
from kscore.rl.training import History, make_agent

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # the film is rendered without a screen
torch.set_num_threads(1)
chapter = chapters.begin("04_policy_gradients")

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seed: int = 4                 # of every random number in this chapter [0, 1000000000]
open_episodes: int = 40       # episodes of the loop written in the open [5, 10000]
env: str = "CartPole-v1"      # environment of the live run; the rest stays CartPole {CartPole-v1, LunarLander-v3}
algorithm: str = "actor_critic"  # of the live run {reinforce, actor_critic, gae, ppo}
normalizer: dict = {"name": "zscore"}  # of the live run (with papermill: -y "{normalizer: {name: ema}}")
max_episodes: int = 300       # cap of the live run; LunarLander needs 1,000 or more [1, 100000]
draws: int = 20_000           # Monte Carlo draws in the bandit [1000, 1000000]
film_frames: int = 6          # pictures in a film strip [2, 20]

# %%
rng = np.random.default_rng(seed)

# %% [markdown]
# ## Notation
#
# | symbol | meaning | in code | shape |
# |---|---|---|---|
# | $\pi_\theta(a \mid s)$ | the policy: probability of action $a$ in state $s$ | `policy` | `(actions,)` |
# | $\theta$ | its parameters | `policy.parameters()` | |
# | $J(\theta)$ | expected return under the policy | | number |
# | $b$ | a baseline: subtracted from the return | `baseline` | number |
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
# The right-hand side of (4.1) can be estimated by acting: sample an action, weigh the gradient of its log-probability by what it brought.
# For an episode $\tau$ of many decisions, $p_\theta(\tau) = \rho(s_0)\prod_t \pi_\theta(a_t \mid s_t)\,p(s_{t+1} \mid s_t, a_t)$, so $\nabla\log p_\theta(\tau) = \sum_t\nabla\log\pi_\theta(a_t \mid s_t)$: the environment drops out.
# A reward that came before $a_t$ is already fixed when $a_t$ is drawn, and $\mathbb E[\nabla\log\pi_\theta(a_t \mid s_t)\mid s_t] = \sum_a\nabla\pi_\theta(a \mid s_t) = \nabla 1 = 0$, so it contributes nothing.
# What is left weighs step $t$ by the return $G_t$ from $t$ on:
#
# $$\nabla J = \mathbb E\Big[\sum_t \nabla\log\pi_\theta(a_t \mid s_t)\;G_t\Big]. \tag{4.2}$$
#
# (With discounting, the exact gradient of $\mathbb E[G_0]$ has a further factor $\gamma^t$; most implementations leave it out, and so do we.)
#
# For the same reason, subtracting a baseline that depends only on $s_t$ and on what was known *before* $a_t$ changes nothing on average.
# But it changes the *scatter*.
# A bandit with three arms is enough to see it.

# %%
bandit = np.array([10.0, 11.0, 12.0])                   # what each arm pays, plus unit noise
theta = np.array([0.5, 0.0, -0.5])                      # preferences of a softmax policy
pi = np.exp(theta) / np.exp(theta).sum()
exact = pi * (bandit - pi @ bandit)                         # the gradient by theta, from the sum over arms


def estimates(baseline: float) -> np.ndarray:
    """Return one gradient estimate a draw, (draws, 3): ∇ log π(a) (G - b), where ∇ log π(a) = 1_a - π."""
    chosen = rng.choice(3, size=draws, p=pi)
    rewards = bandit[chosen] + rng.normal(0, 1, draws)
    return (np.eye(3)[chosen] - pi) * (rewards - baseline)[:, None]


for baseline in (0.0, 11.0, 20.0):
    sample = estimates(baseline)
    assert np.all(np.abs(sample.mean(axis=0) - exact) < 5 * sample.std(axis=0) / np.sqrt(draws))

# %% [markdown]
# Each of the three baselines, even a silly one, passes the check: the average is the exact gradient, within five standard errors in each of its three coordinates.
# A baseline of 20 makes every single weight negative, and so tells the policy to avoid whatever it has just done; only the average over many draws puts that right.
# How many draws are many depends on the scatter.
#
# *Predict the plot:* how does the scatter of a single estimate depend on the baseline, and where is it smallest?

# %%
tried = np.linspace(0, 22, 23)
scatter = [estimates(b).var(axis=0).sum() for b in tried]
squares = ((np.eye(3) - pi) ** 2).sum(axis=1)              # |∇ log π(a)|² of each arm
lowest = (pi * squares) @ bandit / (pi @ squares)
fig, ax = figures.panels(height=2.8)
ax.plot(tried, scatter, "o-", color=figures.BLUE)
ax.axvline(pi @ bandit, color=figures.ORANGE, linestyle="--", label=f"expected return, {pi @ bandit:.2f}")
ax.axvline(lowest, color=figures.GREEN, linestyle=":", label=f"best baseline, {lowest:.2f}")
figures.label(ax, f"Variance of one gradient estimate (n = {draws:,} draws each)", "baseline b", "variance", legend=True)
raw, centred = (estimates(b).var(axis=0).sum() for b in (0.0, pi @ bandit))
figures.show(fig)

# %% tags=["hide-input"]
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
# The argument needed a baseline that was known before the action.
# The K-Score's is not: its belief $x_t$ has seen $G_t$ itself, with weight $K$, and before that the earlier returns of the episode, each of which contains $G_t$ too, since $G_{t-j} = r_{t-j} + \dots + \gamma^j G_t$.
# With a constant gain, $x_t$ holds $G_t$ with the total weight $K\sum_{j=0}^t \big((1-K)\gamma\big)^j$; everything else in it was settled before $a_t$ and averages out.
# So what remains of the expected gradient at step $t$ is the fraction
#
# $$c_t = 1 - K\sum_{j=0}^{t}\big((1 - K)\gamma\big)^j . \tag{4.3}$$
#
# The reasoning of (4.3) applies to the mean of the episode as well, which holds $G_t$ with the weight $\tfrac1N\sum_{j=0}^t\gamma^j$.
# To check both, we need an environment in which the expected gradient is known: $N$ coin flips, each paid by its own outcome.
#
# *Predict the plot:* which steps keep most of their gradient, the early ones or the late ones?

# %%
gamma, flips_long, trials = 0.99, 40, 10 * draws
released = {"Q": 1e-4, "R": 1e-2}
K, start_var = filters.steady_state(**released).gain, filters.steady_state(**released).var
flips = rng.integers(0, 2, (flips_long, trials))
coin_returns = np.zeros((flips_long + 1, trials))
for t in reversed(range(flips_long)):
    coin_returns[t] = flips[t] + gamma * coin_returns[t + 1]
coin_returns = coin_returns[:-1]
belief = filters.filter_series(coin_returns, **released, start=filters.Belief(0.0, start_var)).mean
kept_gradient = {"kscore": coin_returns - belief, "zscore": coin_returns - coin_returns.mean(axis=0)}
products = {kind: (flips - 0.5) * signal / 0.25 for kind, signal in kept_gradient.items()}   # ∇ log π = a - 1/2; exact: 1/4
measured = {kind: product.mean(axis=1) for kind, product in products.items()}
j = np.arange(flips_long)
theory = {"kscore": 1 - K * np.cumsum(((1 - K) * gamma) ** j), "zscore": 1 - np.cumsum(gamma**j) / flips_long}
for kind in theory:
    assert np.all(np.abs(measured[kind] - theory[kind]) < 5 * products[kind].std(axis=1) / np.sqrt(trials))

# %%
fig, ax = figures.panels(height=3.0)
for kind, name in (("kscore", "posterior belief of the streamed filter"), ("zscore", "mean of the episode")):
    look = figures.method(kind, marker=True)
    ax.plot(theory[kind], color=look["color"], linestyle=look["linestyle"], label=f"{name}: theory")
    ax.plot(measured[kind], look["marker"], color=look["color"], label=f"{name}: measured", fillstyle="none")
ax.axhline(1, color=figures.GREY, linewidth=0.8)
figures.label(ax, f"Fraction of the expected gradient that is left (n = {trials:,} episodes of {flips_long} flips)", "step t", "fraction c")
fig.legend(loc="outside lower center", ncols=2)
limit = (1 - K) * (1 - gamma) / (1 - gamma * (1 - K))
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    "A baseline that has seen the return takes part of the gradient with it. For "
    f"the released filter (K = {K:.3f}) the fraction falls to "
    f"{theory['kscore'][-1]:.2f} within {flips_long} steps, and to {limit:.3f} in "
    f"the end; for the mean of the episode it falls to {theory['zscore'][-1]:.2f} "
    "at the last step.",
    alt="Fraction of the expected gradient against the step: for the filter it "
    "decays within about twenty steps to below one tenth, for the episode mean "
    "it falls in nearly a straight line to near zero.")


# %% [markdown]
# This is the high-pass filter (3.3) of chapter 03 again, now in the gradient: after the first steps of an episode, most of what an action brought is subtracted away again.
# It does not say that the Z-Score is better, which treats the end of an episode in the same way.
# It says that neither is the harmless baseline of the theorem, and that the early steps of an episode do most of the learning under both.

# %% [markdown]
# ## Algorithm 1 in the open
#
# Here is the paper's Algorithm 1 (P9) as a loop, with nothing hidden.
# The line under study is marked.

# %%
def algorithm_1(normalizer, episodes: int, seed: int, gamma: float = 0.99) -> list[int]:
    """Train a CartPole policy by the paper's Algorithm 1; return the length of each episode."""
    torch.manual_seed(seed)
    env, lengths = gym.make("CartPole-v1"), []
    policy = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        log_probs, rewards, done = [], [], False
        while not done:
            choice = torch.distributions.Categorical(logits=policy(torch.as_tensor(observation)))
            action = choice.sample()
            log_probs.append(choice.log_prob(action))
            observation, reward, terminated, truncated, _ = env.step(action.item())
            rewards.append(float(reward))
            done = terminated or truncated
        returns = algorithms.discounted_returns(rewards, gamma)
        scores = torch.as_tensor(normalizer(returns), dtype=torch.float32)      # <- the line under study
        loss = -(torch.stack(log_probs) * scores).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(len(rewards))
    return lengths

# %% [markdown]
# Twenty-odd lines, and one of them is what this whole collection is about.
# (`.mean()` is Algorithm 1's; it divides by the length of the episode, which the actions decide, and so departs a little from the exact gradient (4.2). The presets below sum instead.)
# We let it play for a few episodes, once with the streamed K-Score and once with the Z-Score.

# %%
first_steps = {"kscore": algorithm_1(normalizers.make("kscore"), open_episodes, seed),
               "zscore": algorithm_1(normalizers.make("zscore"), open_episodes, seed)}
Markdown("Mean length of the last ten episodes: " + ", ".join(f"{figures.METHODS[kind]['label']} **{np.mean(lengths[-10:]):.0f}**" for kind, lengths in first_steps.items())
         + f" (one run of {open_episodes} episodes each, so this ranks nothing; the first episode of both had {first_steps['zscore'][0]} steps, and a policy can also get worse).")

# %% [markdown]
# ## The same through `kscore`
#
# The loop above calls torch for every action, which is slow, and has no evaluation, no critic and no stopping rule.
# The library has all that, for four algorithms, as functions that read like the loop.
# A run is described by a `RunConfig`: frozen, checked, every setting in one place.
# The presets hold the released settings (commit 5667b45), except where we say so: a full window of evaluations before a run may stop, a cap of 1,500 episodes on LunarLander, v3 of it for v2, and an actor-critic that uses its critic, as the text has it.
# Here they are beside each other; `lam`, `epochs` and `clip` matter only to the algorithms that have them.

# %%
presets = {name: dataclasses.asdict(RunConfig.preset("CartPole-v1", name)) for name in algorithms.ALGORITHMS}
presets["ppo, LunarLander"] = dataclasses.asdict(RunConfig.preset("LunarLander-v3", "ppo"))
pd.DataFrame(presets).map(str)

# %% [markdown]
# Reading down a column, you can see what kind of method it is: whether the returns or the advantages are normalized, whether a second z-scoring follows, how the loss is reduced, what the networks look like, and when the run may stop.
# `dataclasses.replace(config, field=value)` makes a variant; a value that cannot be right is refused at once.
# Two runs with the same configuration and the same seed give the same record, on the same machine; the environment, the evaluation, the initial weights, the actions and the dropout each have a random stream of their own, so that looking more often does not change what is learned.
#
# Is it the same update?
# We take an untrained agent without dropout, copy its weights into a plain torch network, let both learn from the same episode, and compare the gradients and, after one step of Adam, all parameters.
# (The parameters alone would not do: Adam's first step is nearly the same whatever the length of the gradient.)

# %%
def new_agent(config: RunConfig, environment: environments.Environment) -> algorithms.Agent:
    """Make the agent that a run with this chapter's seed starts from."""
    initialization, dropout = np.random.default_rng([seed, 2]), np.random.default_rng([seed, 4])
    return make_agent(config, environment.observation_size, environment.actions, initialization, dropout)


config = dataclasses.replace(RunConfig.preset("CartPole-v1", "reinforce"), dropout=0.0, policy_reduction="mean")
cartpole = environments.make("CartPole-v1", seed)
agent = new_agent(config, cartpole)
twin = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2))


def in_torch_order(actor: Network, of=lambda parameter: parameter) -> tuple[torch.Tensor, ...]:
    """Return weights and biases, or what `of` takes from them, in the order and orientation of `nn.Linear`."""
    first, last = actor.hidden[0], actor.last
    return of(first.weight).T, of(first.bias), of(last.weight), of(last.bias)


with torch.no_grad():
    for mine, theirs in zip(twin.parameters(), in_torch_order(agent.actor), strict=True):
        mine.copy_(theirs)

# %% [markdown]
# Both start from the same weights.
# Now the loop's way: one episode, its scores, the loss, one step of Adam.

# %%
episode = environments.play(cartpole, Policy(agent.actor, agent.head), rng, agent.dropout)
returns = algorithms.discounted_returns(episode.rewards, config.gamma)
scores = torch.as_tensor(normalizers.make("kscore")(returns), dtype=torch.float32)
log_policy = torch.log_softmax(twin(torch.as_tensor(episode.observations)), dim=1)
log_probs = log_policy[torch.arange(len(returns)), torch.as_tensor(episode.actions)]
optimizer = torch.optim.Adam(twin.parameters(), lr=config.learning_rate)
(-(log_probs * scores).mean()).backward()
optimizer.step()

# %% [markdown]
# And the library's, in one call.

# %%
normalize = algorithms.normalization(dataclasses.replace(config, normalizer={"name": "kscore"}))
algorithms.reinforce(agent, algorithms.Batch.of([episode]), normalize, config)
weights = zip(twin.parameters(), in_torch_order(agent.actor), strict=True)
gap = max((mine - theirs).abs().max().item() for mine, theirs in weights)
slopes = zip((p.grad for p in twin.parameters()), in_torch_order(agent.actor, lambda p: p.grad), strict=True)
gradient_gap = max(((mine - theirs).abs().max() / mine.abs().max()).item() for mine, theirs in slopes)
assert gap < 1e-5 and gradient_gap < 1e-4
Markdown(f"The gradients differ by at most **{gradient_gap:.0e}** of their largest entry; after one Adam step (at most {config.learning_rate} for each weight) the networks differ by at most **{gap:.0e}**.")

# %% [markdown]
# ## What each normalizer makes of a first gradient
#
# So much for the machinery.
# Now the question that matters for the experiments: give the same untrained agent the same five episodes, and look at what each normalizer says about the fifth.
# (The first four only warm up those normalizers that carry a state. All have their default settings, which for the simple filter are those released for CartPole.)

# %%
fresh = new_agent(config, cartpole)
policy = Policy(fresh.actor, fresh.head)
warm_up = [environments.play(cartpole, policy, rng, fresh.dropout) for _ in range(5)]
KINDS = {
    "none": {"name": "none"}, "zscore": {"name": "zscore"}, "running": {"name": "running"}, "ema": {"name": "ema"},
    "kscore": {"name": "kscore"}, "refit": {"name": "kscore", "mode": "refit"}, "innovation": {"name": "kscore", "mode": "innovation"},
    "adaptive": {"name": "kscore", "variant": "adaptive", "Q": 0.1, "R": 1.0},
}


def fifth_scores(options: dict) -> np.ndarray:
    """Return the scores of the fifth episode, after the normalizer has seen the four before it."""
    normalizer = normalizers.make(**options)
    return [normalizer(algorithms.discounted_returns(played.rewards, config.gamma)) for played in warm_up][-1]


fifth = {kind: fifth_scores(options) for kind, options in KINDS.items()}

# %% [markdown]
# *Predict the plot:* which of the eight panels show the same curve up to a shift and a stretch, and which two up to a stretch alone?

# %%
fig, axes = figures.panels(4, 2, height=1.6, sharex=True)
for ax, (kind, scores) in zip(axes.flat, fifth.items(), strict=True):
    ax.plot(scores, color=figures.METHODS[kind]["color"])
    ax.axhline(0, color=figures.INK, linewidth=0.5)
    figures.label(ax, figures.METHODS[kind]["label"], "", "")
for ax in axes[-1]:
    ax.set_xlabel("step of the fifth episode")
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"The same episode of {len(fifth['none'])} steps under eight normalizers; "
    "mind the vertical axes. None, Z-Score and refit are shifted and stretched "
    "copies of one curve; the innovation form is a pure stretch of the streamed "
    "K-Score; streaming bends the curve, the running Z-Score hardly.",
    alt="Eight small panels with the scores of one CartPole episode under each "
    "normalizer; all fall, with different curvature, zero crossing and vertical "
    "scale.")


# %% [markdown]
# A score is only half of a gradient; the other half is $\nabla\log\pi$.
# So we compute the gradient that each of these score curves gives, and compare its length and its direction with those of the Z-Score's.
# Beside it stands the first step that Adam would make of it, $\eta\,g/(|g| + \varepsilon)$ in every coordinate.

# %%
def gradient(scores: np.ndarray) -> np.ndarray:
    """Return the policy gradient of the fifth episode under these scores, as one long vector."""
    fresh.memory.gradient.zero_()
    loss = algorithms.policy_loss(fresh.log_probs(algorithms.Batch.of(warm_up[-1:]), None), scores, config)
    loss.backward()
    return fresh.memory.gradient.numpy().copy()


def compared(vectors: dict[str, np.ndarray]) -> tuple[dict, dict]:
    """Return each vector's length and cosine, relative to the Z-Score's."""
    base = vectors["zscore"] / np.linalg.norm(vectors["zscore"])
    lengths = {kind: np.linalg.norm(v) for kind, v in vectors.items()}
    relative = {kind: length / lengths["zscore"] for kind, length in lengths.items()}
    return relative, {kind: vector @ base / lengths[kind] for kind, vector in vectors.items()}


gradients = {kind: gradient(scores) for kind, scores in fifth.items()}
adam_steps = {kind: config.learning_rate * g / (np.abs(g) + 1e-8) for kind, g in gradients.items()}
columns = ("gradient: length", "gradient: cosine", "Adam's step: length", "Adam's step: cosine")
updates = pd.DataFrame(dict(zip(columns, (*compared(gradients), *compared(adam_steps)), strict=True)))
updates["positive scores"] = pd.Series({kind: np.mean(scores > 0) for kind, scores in fifth.items()})
updates.index = [figures.METHODS[kind]["label"] for kind in updates.index]
others = updates.drop(figures.METHODS["zscore"]["label"])
caption = "Fifth episode of an untrained agent, relative to the Z-Score (n = 1 episode)"
updates.style.format("{:.2f}").format("{:.0%}", subset=["positive scores"]).set_caption(caption)

# %% [markdown]
# The gradients' lengths differ by orders of magnitude, and their directions differ too, on this episode; others give other numbers, as you can see by changing the seed.
# Adam takes the lengths away at the first step, because it divides every coordinate by its own size, and keeps the signs.
# Later it divides by a running size, so a *constant* factor hardly reaches the weights; a factor that changes from episode to episode does, and so does a change of direction.
#
# Note also the last column.
# Without normalization every action of an episode is praised, whatever it was; the other extreme, an episode that is blamed as a whole, exists too, when it is short and those before it were long.

# %%
nine_after_hundred = {}
for kind, options in KINDS.items():
    fresh_normalizer = normalizers.make(**options)
    scores_of_both = [fresh_normalizer(algorithms.discounted_returns([1.0] * n, config.gamma)) for n in (100, 9)]
    nine_after_hundred[figures.METHODS[kind]["label"]] = f"{np.mean(scores_of_both[1] > 0):.0%}"
pd.Series(nine_after_hundred, name="praised steps of a CartPole episode of 9 steps after one of 100").to_frame()

# %% [markdown]
# Only the normalizers that start afresh with every episode, the per-episode Z-Score and `refit`, always divide an episode into praise and blame.
# The others can say that a whole episode was bad, and here they do: a short one after a long one.

# %% [markdown]
# ## One live run
#
# The library plays, learns and evaluates until the mean over a window of greedy evaluation episodes reaches the threshold, or the cap comes first; then the run is *censored*.
# By default this is an actor-critic: a second network, the critic, learns to predict the normalized return, and the policy is weighed by the advantage $A_t = \hat G_t - V(s_t)$.
# The normalizer then acts on the critic's target too.
# In GAE as released it acts *only* there, and in GAE and PPO the advantages are z-scored once more afterwards (R2); the settings `signal` and `normalize_advantages` control both.
# The callback draws the progress bar, and keeps the policy so that we can film it afterwards.

# %%
live = dataclasses.replace(RunConfig.preset(env, algorithm), normalizer=normalizer, max_episodes=max_episodes)
kept = {}
with tqdm(total=max_episodes, desc=f"{env}, {algorithm}", file=sys.stdout, mininterval=5, ascii=True, ncols=88) as bar:
    def watch(history: History, policy: Policy) -> None:
        """Move the bar and keep the policy."""
        bar.update()
        kept["policy"] = policy

    record = train(live, seed, progress=watch)
summary = {key: record[key] for key in ("status", "episodes", "steps", "seconds", "protocol")}
Markdown("The record of the run: " + ", ".join(f"`{key}` = {value:.1f}" if isinstance(value, float) else f"`{key}` = {value}" for key, value in summary.items()) + ".")

# %% [markdown]
# *Predict the plot:* training episodes are played with dropout and sampled actions, evaluation episodes greedily and without. Which curve is higher?

# %%
def smoothed(values: list[float]) -> np.ndarray:
    """Return the mean over the run's window at each step, over fewer values at the start."""
    window = live.window
    return np.array([np.mean(values[max(0, i + 1 - window):i + 1]) for i in range(len(values))])


fig, ax = figures.panels(height=3.4)
for key, name, color, line in (("train_returns", "training", figures.BLUE, "--"), ("eval_returns", "greedy evaluation", figures.ORANGE, "-")):
    ax.plot(record[key], ".", color=color, alpha=0.35, markersize=4)
    ax.plot(smoothed(record[key]), color=color, linestyle=line, label=f"{name} (dots: episodes, line: mean of the last {live.window})")
ax.axhline(live.threshold, color=figures.INK, linewidth=0.8, linestyle=":", label=f"threshold, {live.threshold:g}")
figures.label(ax, f"{env}, {algorithm}, {figures.ended(record)} (n = 1 run)", "training episode", "return of the episode")
fig.legend(loc="outside lower center", ncols=2)
above = np.mean(smoothed(record["eval_returns"]) > smoothed(record["train_returns"])[:len(record["eval_returns"])])
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"One run, seed {seed}: it says what a run looks like, not how good the "
    f"method is. The evaluation curve is the higher one at {100 * above:.0f} % of "
    "the episodes.",
    alt="Returns of training and evaluation episodes over one run, with running "
    "means and the threshold.")


# %% [markdown]
# ## The film
#
# Numbers are one way to look at a policy, and an average can hide how it fails: by letting the pole fall, or by driving off the track with the pole upright.
# Gymnasium renders the other, without a screen.
# The upper strip is the policy that the run started from, the lower one the policy it ended with; both act greedily from the same start.

# %%
def watched_episode(policy: Policy, pictures: tuple[int, ...] = ()) -> tuple[list[np.ndarray], int, float]:
    """Play one greedy episode; return pictures of the named steps, its length and its return."""
    stage = gym.make(env, render_mode="rgb_array")
    observation, _ = stage.reset(seed=seed)
    frames, rewards, done = [], [], False
    while not done:
        if len(rewards) in pictures:
            frames.append(stage.render())
        observation, reward, terminated, truncated, _ = stage.step(policy.greedy(observation))
        rewards.append(float(reward))
        done = terminated or truncated
    stage.close()
    return frames, len(rewards), sum(rewards)


def film(policy: Policy) -> tuple[tuple[int, ...], list[np.ndarray], float]:
    """Play once for the length, and again for the pictures; return their steps, the pictures and the return."""
    _, length, total = watched_episode(policy)
    steps = tuple(np.linspace(0, length - 1, film_frames).astype(int).tolist())
    return steps, watched_episode(policy, steps)[0], total

# %% [markdown]
# Playing twice keeps memory small: only the frames that are shown are ever drawn.

# %%
untrained = new_agent(live, environments.make(env, seed))
films = {"start": film(Policy(untrained.actor, untrained.head)), "end": film(kept["policy"])}
fig, axes = figures.panels(2, film_frames, height=1.3, width=9, squeeze=False)
for row, (name, (steps, frames, _)) in zip(axes, films.items(), strict=True):
    for ax, at, frame in zip(row, steps, frames, strict=True):
        ax.imshow(frame)
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{name}, step {at}", fontsize=8)
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"One episode each: return {films['start'][2]:.0f} at the start of the run, "
    f"{films['end'][2]:.0f} after {record['episodes']} training episodes. (The "
    f"run's rule looks at the mean of {live.window} episodes, so a single one may "
    "lie below the threshold.)",
    alt="Two film strips of the environment: the policy at the start of the run "
    "above, the policy at its end below.")

# %% [markdown]
# ## When it fails
#
# The same seed and the same settings with two normalizers: the per-episode Z-Score, and the streamed K-Score of Algorithm 1 in the setting released for the simple filter in this environment.

# %%
simple = {"name": "kscore"} | ({"Q": 1e-2, "R": 1.0} if env.startswith("LunarLander") else {"Q": 1e-4, "R": 1e-2})
arms = {"zscore": {"name": "zscore"}, "kscore": simple}
runs = {}
for kind, options in arms.items():
    runs[kind] = record if normalizers.spelled_out(**options) == live.normalizer else train(dataclasses.replace(live, normalizer=options), seed)
fig, ax = figures.panels(height=2.8)
for kind, run in runs.items():
    look = figures.method(kind)
    ax.plot(smoothed(run["eval_returns"]), **look | {"label": f"{look['label']}: {figures.ended(run)}"})
figures.label(ax, f"{env}, {algorithm}: greedy evaluation, mean of the last {live.window} (n = 1 run each)", "training episode", "return")
fig.legend(loc="outside lower center", ncols=2)
best = {kind: smoothed(run["eval_returns"]).max() for kind, run in runs.items()}
figures.show(fig)

# %% tags=["hide-input"]
figures.caption(
    f"The highest point of each curve is {best['zscore']:.0f} (Z-Score) and "
    f"{best['kscore']:.0f} (K-Score); the threshold is {live.threshold:g}.",
    alt="Smoothed evaluation returns of two single runs with the same seed and "
    "different normalizers.")

# %% [markdown]
# One pair of runs, so it ranks nothing; whether it is typical is what experiments with many seeds are for.
# But it shows that the line under study can decide a run.
#
# A study of many runs must not stop because one of them breaks, and must not hide that it broke.
# We break one on purpose, with an absurd learning rate.

# %%
broken = train(dataclasses.replace(live, learning_rate=1e30, max_episodes=20), seed)
assert broken["status"] == "diverged" and not broken["solved"]
Markdown(f"The record says `status` = **{broken['status']}** (\"{broken['reason']}\") after {broken['episodes']} episode(s), and keeps what it had: returns {broken['train_returns']}.")

# %% [markdown]
# Such a run is counted as it is: neither dropped, nor repeated with a luckier seed, nor taken for one that reached its cap.
#
# A mistake in a setting is caught earlier, with a sentence.

# %%
for mistake in ({"algorithm": "pppo"}, {"dropout": 1.5}, {"normalizer": {"name": "kscore", "Q": -1}}, {"env": "FrozenLake-v1"}):
    try:
        dataclasses.replace(live, **mistake)
        raise AssertionError("this should have been refused")
    except ValueError as sentence:
        print(f"{sentence}\n")

# %% [markdown]
# ## What this does not show
#
# One run per setting shows how things work, not which setting works better.
# In chapter 00 we saw how far two single runs of *equal* methods can lie apart.
# The gradients above are those of an untrained agent on one episode; later ones look different.

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
reinforce_loss(torch.log_softmax(preferences, 0)[[0, 0, 1]], torch.tensor([1.0, 2.0, -1.0])).backward()
assert preferences.grad[0] < 0 < preferences.grad[1], "a step down must favour action 0"
assert torch.allclose(preferences.grad, torch.tensor([-2 / 3, 2 / 3]))
### BEGIN HIDDEN TESTS
assert torch.isclose(reinforce_loss(torch.tensor([-1.0, -2.0]), torch.tensor([1.0, 3.0])), torch.tensor(3.5)), "the mean over two steps"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (derive, then measure).** In the bandit, take `n` draws and subtract their own mean. By which factor does the *expected* gradient shrink, compared with a baseline that does not contain the sample? Write the factor as a function of `n`. (A sample's own reward is in the mean with the weight $1/n$; what do the others contribute?)

# %% tags=["stub"]
def shrinkage(n: int) -> float:
    """Return the factor on the expected gradient when the baseline is the mean of the n samples themselves."""


# %% nbgrader={"grade": false, "grade_id": "04-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def shrinkage(n: int) -> float:
    """Return the factor on the expected gradient when the baseline is the mean of the n samples themselves."""
    ### BEGIN SOLUTION
    return (n - 1) / n
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "04-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
for n in (2, 5):
    chosen = rng.choice(3, size=(200_000, n), p=pi)
    rewards = bandit[chosen] + rng.normal(0, 1, chosen.shape)
    own_mean = rewards - rewards.mean(axis=1, keepdims=True)
    measured = ((np.eye(3)[chosen] - pi) * own_mean[..., None]).mean(axis=(0, 1)) @ exact / (exact @ exact)
    assert abs(measured - shrinkage(n)) < 0.05, f"n = {n}: measured {measured:.3f}"
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
mine = dataclasses.replace(RunConfig.preset("CartPole-v1", "reinforce"), dropout=0.0, criterion="training",
                           normalizer={"name": "kscore", "variant": "adaptive", "mode": "innovation"})
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert (mine.normalizer["name"], mine.normalizer["variant"], mine.normalizer["mode"]) == ("kscore", "adaptive", "innovation")
released_reinforce = RunConfig.preset("CartPole-v1", "reinforce")
expected = dataclasses.replace(released_reinforce, dropout=0.0, criterion="training", normalizer=mine.normalizer)
assert mine == expected, "another setting differs: did you start from another algorithm's preset?"
### BEGIN HIDDEN TESTS
assert (mine.algorithm, mine.dropout, mine.criterion) == ("reinforce", 0.0, "training"), "REINFORCE, no dropout, training returns"
default = normalizers.make("kscore", variant="adaptive", mode="innovation")
assert np.allclose(normalizers.make(**mine.normalizer)([3.0, 2.0, 1.0]), default([3.0, 2.0, 1.0])), "Q and R as they are by default"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open).** Design a baseline for `n` rewards of the same state that leaves the expected gradient alone: what is subtracted from a reward must not contain it. It should still take away most of what the rewards have in common. There is more than one; which one has the least scatter?

# %% tags=["stub"]
def fair_baseline(rewards: np.ndarray) -> np.ndarray:
    """Return a baseline for each of the rewards, (n,), that does not depend on this reward."""


# %% nbgrader={"grade": false, "grade_id": "04-4", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def fair_baseline(rewards: np.ndarray) -> np.ndarray:
    """Return a baseline for each of the rewards, (n,), that does not depend on this reward."""
    ### BEGIN SOLUTION
    return (rewards.sum() - rewards) / (len(rewards) - 1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "04-4-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
sample = np.array([10.0, 13.0, 11.0, 12.0, 9.0])
for i in range(len(sample)):
    changed = sample + 100 * (np.arange(len(sample)) == i)
    assert np.isclose(fair_baseline(changed)[i], fair_baseline(sample)[i]), "a reward must not help to judge itself"
assert np.mean((sample - fair_baseline(sample)) ** 2) < np.mean(sample**2) / 4, "what the rewards have in common is still there"
### BEGIN HIDDEN TESTS
high = np.array([1000.0, 1001.0])
assert np.isclose(fair_baseline(high + [50.0, 0.0])[0], fair_baseline(high)[0]), "two rewards"
assert fair_baseline(high).shape == (2,) and np.isfinite(fair_baseline(high)).all(), "one baseline for each reward"
### END HIDDEN TESTS

# %% [markdown]
# ## Summary

# %%
Markdown(f"""
- The policy gradient is an average of $\\nabla\\log\\pi$ weighed by returns; a good baseline cuts its variance, in the bandit by a factor of {raw / centred:.0f}, and leaves its mean.
- A baseline that has seen the return does not leave the mean: of the expected gradient at step {flips_long} the streamed filter leaves {100 * theory["kscore"][-1]:.0f} %, the mean of an episode of that length {100 * theory["zscore"][-1]:.0f} %.
- The loop in the open and `kscore` agree on a gradient to {gradient_gap:.0e} and on an update to {gap:.0e}.
- On one episode of an untrained agent the other normalizers' gradients are {others.iloc[:, 0].min():.1f} to {others.iloc[:, 0].max():.0f} times as long as the Z-Score's, with cosines from {others.iloc[:, 1].min():+.2f} to {others.iloc[:, 1].max():+.2f}; Adam's first steps are all equally long, with cosines from {others.iloc[:, 3].min():+.2f} to {others.iloc[:, 3].max():+.2f}.
- The live run ({algorithm}, seed {seed}) {figures.ended(record)} and {record["steps"]:,} steps, in {record["seconds"]:.1f} s.
""")

# %% [markdown]
# **References.** R. J. Williams, *Simple statistical gradient-following algorithms for connectionist reinforcement learning*, Machine Learning 8 (1992).
# R. S. Sutton, D. McAllester, S. Singh and Y. Mansour, *Policy gradient methods for reinforcement learning with function approximation*, NeurIPS (1999).
# J. Schulman and co-authors, *High-dimensional continuous control using generalized advantage estimation* (2015) and *Proximal policy optimization algorithms* (2017).
# B. Trevett, *pytorch-rl*, the public tutorial that the released code follows.
# Z. Xia and Q. Li, *K-Score*, Algorithm 1.

# %%
chapter.footer()
