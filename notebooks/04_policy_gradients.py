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
# **Claim.** In a policy-gradient method a normalizer acts in one line; written out in the open and called through `kscore`, that line gives the same update, and which normalizer stands in it changes the length of the first updates by orders of magnitude and their direction as well.
#
# *For* readers of chapter 03 who want to see the score at work.
# *Know first:* the chain rule, a little PyTorch, what a policy is.
# *Runs in* about a minute.
# Previous: [03 From filter to score](03_from_filter_to_score.ipynb) · Back to [00 Start here](00_start_here.ipynb)

# %% [markdown]
# ## Question
#
# Chapters 01 to 03 treated scores as numbers.
# Here they become gradients.
# We derive the policy gradient, write the paper's Algorithm 1 as a plain loop, do the same with the library that the experiments use, and look at what the choice of normalizer does to the very first updates.
# The claim would be wrong if the loop and the library disagreed on an update, or if all normalizers gave nearly the same one.
#
# After this chapter you can
#
# - derive the policy gradient, and say why subtracting a baseline changes its variance but not its mean;
# - write Algorithm 1 from memory;
# - set up a run with `RunConfig`, change any of its settings, and read its record;
# - predict which normalizers change the direction of an update and which only its length.

# %% [markdown]
# ## Setup

# %%
import dataclasses
import os
import sys
import time

import gymnasium as gym
import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown
from torch import nn
from tqdm.std import tqdm

from kscore import algorithms, networks, normalizers, plots, provenance, rollouts, training

started = time.perf_counter()
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # the film is rendered without a screen
torch.set_num_threads(1)
plots.use_style()

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seed: int = 4                 # of every random number in this chapter
open_episodes: int = 40       # episodes of the loop written in the open
env: str = "CartPole-v1"      # environment of the live run
algorithm: str = "actor_critic"  # of the live run: reinforce, actor_critic, gae or ppo
normalizer: dict = {"name": "zscore"}  # of the live run
max_episodes: int = 300       # cap of the live run
draws: int = 20_000           # Monte Carlo draws in the bandit
film_frames: int = 6          # pictures in a film strip

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
# $$\nabla J = \nabla\sum_a \pi_\theta(a)\,G(a) = \sum_a \pi_\theta(a)\,\nabla\log\pi_\theta(a)\,G(a) = \mathbb E\big[\nabla\log\pi_\theta(a)\;G(a)\big].$$
#
# The right-hand side can be estimated by acting: sample an action, weigh the gradient of its log-probability by what it brought.
# For an episode of many decisions the same argument gives a sum over its steps, and since an action cannot change rewards that came before it, step $t$ is weighed by the return $G_t$ from $t$ on:
#
# $$\nabla J = \mathbb E\Big[\sum_t \nabla\log\pi_\theta(a_t \mid s_t)\;G_t\Big].$$
#
# (With discounting, the exact gradient has a further factor $\gamma^t$; practically everybody leaves it out, and so do we.)
#
# Subtracting a baseline $b$ that does not depend on the action changes nothing on average, because $\mathbb E[\nabla\log\pi] = \sum_a\nabla\pi(a) = \nabla 1 = 0$.
# But it changes the *scatter*.
# A bandit with three arms is enough to see it.

# %%
arms = np.array([10.0, 11.0, 12.0])                     # what each arm pays, plus unit noise
theta = np.array([0.5, 0.0, -0.5])                      # preferences of a softmax policy
pi = np.exp(theta) / np.exp(theta).sum()
exact = pi * (arms - pi @ arms)                         # the gradient by theta, from the sum over arms


def estimates(baseline: float) -> np.ndarray:
    """Return one gradient estimate a draw, (draws, 3): ∇ log π(a) (G - b), where ∇ log π(a) = 1_a - π."""
    chosen = rng.choice(3, size=draws, p=pi)
    rewards = arms[chosen] + rng.normal(0, 1, draws)
    return (np.eye(3)[chosen] - pi) * (rewards - baseline)[:, None]


for baseline in (0.0, 11.0, 20.0):
    sample = estimates(baseline)
    assert np.all(np.abs(sample.mean(axis=0) - exact) < 5 * sample.std(axis=0) / np.sqrt(draws))

# %% [markdown]
# Each of the three baselines, even a silly one, passes the check: the average is the exact gradient.
#
# *Predict the plot:* how does the scatter of a single estimate depend on the baseline, and where is it smallest?

# %%
tried = np.linspace(0, 22, 23)
scatter = [estimates(b).var(axis=0).sum() for b in tried]
lowest = np.polynomial.Polynomial.fit(tried, scatter, 2).deriv().roots()[0].real
fig, ax = plots.panels(height=2.8)
ax.plot(tried, scatter, "o-", color=plots.BLUE)
ax.axvline(pi @ arms, color=plots.ORANGE, linestyle="--", label=f"expected return, {pi @ arms:.2f}")
plots.label(ax, f"Variance of one gradient estimate (n = {draws:,} draws each)", "baseline b", "variance", legend=True)
raw, centred = (estimates(b).var(axis=0).sum() for b in (0.0, pi @ arms))
plots.show(fig, f"A parabola with its bottom at {lowest:.1f}, close to the expected return. Without a baseline one estimate scatters {raw / centred:.0f} times as much as with it.",
           "Variance of the gradient estimate against the baseline: a parabola with its minimum near the expected return.")

# %% [markdown]
# This is the case for *centring* returns: same mean, far less scatter.
# Dividing by a *scale* is a different matter.
# It multiplies the whole gradient, so it is a statement about the step size, and the optimizer may or may not undo it.
#
# A caution for later.
# The argument needs a baseline that does not depend on the action.
# The mean of an episode contains the return it is subtracted from, and a filter that reads an episode in order has seen $G_{t-1} = r_{t-1} + \gamma G_t$ before it meets $G_t$.
# Both know something of what the action brought, and the neat "nothing changes on average" holds for neither exactly.
# Exercise 2 measures how much.

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
# We let it play for a few episodes, once with the streamed K-Score and once with the Z-Score.

# %%
first_steps = {"kscore": algorithm_1(normalizers.make("kscore"), open_episodes, seed),
               "zscore": algorithm_1(normalizers.make("zscore"), open_episodes, seed)}
Markdown("Mean length of the last ten episodes: " + ", ".join(f"{plots.METHODS[kind]['label']} **{np.mean(lengths[-10:]):.0f}**" for kind, lengths in first_steps.items())
         + f" (one run of {open_episodes} episodes each, so this ranks nothing; the first episodes had {first_steps['zscore'][0]} steps).")

# %% [markdown]
# ## The same through `kscore`
#
# The loop above calls torch for every action, which is slow, and has no evaluation, no critic and no stopping rule.
# The library has all that, for four algorithms, as functions that read like the loop.
# A run is described by a `RunConfig`: frozen, checked, every setting in one place.
# The presets hold the released settings of the paper's repository (commit 5667b45); here they are, beside each other.

# %%
presets = {name: dataclasses.asdict(training.RunConfig.preset("CartPole-v1", name)) for name in algorithms.ALGORITHMS}
presets["ppo, LunarLander"] = dataclasses.asdict(training.RunConfig.preset("LunarLander-v3", "ppo"))
pd.DataFrame(presets).map(str)

# %% [markdown]
# Is it the same update?
# We take an untrained agent without dropout, copy its weights into a plain torch network, let both learn from the same episode, and compare all parameters afterwards.

# %%
config = dataclasses.replace(training.RunConfig.preset("CartPole-v1", "reinforce"), dropout=0.0, policy_reduction="mean")
cartpole = rollouts.make("CartPole-v1", seed)
agent = training.make_agent(config, cartpole.observation_size, cartpole.actions, np.random.default_rng([seed, 2]), np.random.default_rng([seed, 4]))
twin = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2))
with torch.no_grad():
    for mine, theirs in ((twin[0], agent.actor.hidden[0].weight.T), (twin[2], agent.actor.last.weight)):
        mine.weight.copy_(theirs)
        mine.bias.zero_()                               # biases start at zero in both

episode = rollouts.play(cartpole, networks.Policy(agent.actor), rng, agent.dropout)
returns = algorithms.discounted_returns(episode.rewards, config.gamma)
scores = torch.as_tensor(normalizers.make("kscore")(returns), dtype=torch.float32)
log_probs = torch.log_softmax(twin(torch.as_tensor(episode.observations)), dim=1)[torch.arange(len(returns)), torch.as_tensor(episode.actions)]
optimizer = torch.optim.Adam(twin.parameters(), lr=config.learning_rate)
(-(log_probs * scores).mean()).backward()
optimizer.step()

# %% [markdown]
# That was the loop's way; now the library's, in one call.

# %%
normalize = algorithms.normalization(normalizers.make("kscore"), config.signal, config.normalize_advantages)
algorithms.reinforce(agent, episode, normalize, config)
pairs = ((twin[0].weight, agent.actor.hidden[0].weight.T), (twin[2].weight, agent.actor.last.weight), (twin[0].bias, agent.actor.hidden[0].bias), (twin[2].bias, agent.actor.last.bias))
gap = max((mine - theirs).abs().max().item() for mine, theirs in pairs)
assert gap < 1e-5
Markdown(f"After one update of length {config.learning_rate} the two networks differ by at most **{gap:.0e}** in any weight or bias.")

# %% [markdown]
# ## What each normalizer makes of the first updates
#
# Now the question that matters for the experiments: give the same untrained agent the same five episodes, and look at what each normalizer says about the fifth.
# (The first four only warm up those normalizers that carry a state.)

# %%
fresh = training.make_agent(config, cartpole.observation_size, cartpole.actions, np.random.default_rng([seed, 2]), np.random.default_rng([seed, 4]))
policy = networks.Policy(fresh.actor)
warm_up = [rollouts.play(cartpole, policy, rng, fresh.dropout) for _ in range(5)]
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
# *Predict the plot:* which of the eight panels have the same shape up to a stretch, and which do not?

# %%
fig, axes = plots.panels(4, 2, height=1.6, sharex=True)
for ax, (kind, scores) in zip(axes.flat, fifth.items(), strict=True):
    ax.plot(scores, color=plots.METHODS[kind]["color"])
    ax.axhline(0, color=plots.INK, linewidth=0.5)
    plots.label(ax, plots.METHODS[kind]["label"], "", "")
for ax in axes[-1]:
    ax.set_xlabel("step of the fifth episode")
plots.show(fig, f"The same episode of {len(fifth['none'])} steps under eight normalizers. None, Z-Score and refit are stretched copies of one curve; the streamed forms bend it.",
           "Eight small panels with the scores of one CartPole episode under each normalizer; all fall, with different curvature, zero crossing and vertical scale.")

# %% [markdown]
# A score is only half of an update; the other half is $\nabla\log\pi$.
# So we compute the gradient that each of these score curves gives, and compare its length and its direction with the gradient of the Z-Score.

# %%
def gradient(scores: np.ndarray) -> np.ndarray:
    """Return the policy gradient of the fifth episode under these scores, as one long vector."""
    fresh.memory.gradient.zero_()
    loss = algorithms.policy_loss(fresh.log_probs(warm_up[-1], None), scores, config)
    loss.backward()
    return fresh.memory.gradient.numpy().copy()


gradients = {kind: gradient(scores) for kind, scores in fifth.items()}
lengths = {kind: np.linalg.norm(g) for kind, g in gradients.items()}
cosines = {kind: g @ gradients["zscore"] / (lengths[kind] * lengths["zscore"]) for kind, g in gradients.items()}
updates = pd.DataFrame({"length / length with Z-Score": lengths, "cosine with the Z-Score's": cosines, "positive scores": {k: np.mean(s > 0) for k, s in fifth.items()}})
updates["length / length with Z-Score"] /= lengths["zscore"]
updates.index = [plots.METHODS[kind]["label"] for kind in updates.index]
updates.style.format({"length / length with Z-Score": "{:.2f}", "cosine with the Z-Score's": "{:+.3f}", "positive scores": "{:.0%}"}).set_caption("Gradient of the fifth episode, untrained agent (n = 1 episode)")

# %% [markdown]
# Lengths differ by orders of magnitude, and directions differ too.
# The optimizer matters here.
# Adam divides by a running size of the gradient, so a *constant* factor hardly reaches the weights; a factor that changes from episode to episode does, and so does a change of direction.
# Note also the column of positive scores.
# Where it says 100 % every action of the episode is praised, whatever it was; where it says 0 % every one is blamed, because the episode was shorter than those before it.
# Only the running and moving Z-Scores, and no normalization at all, can say such a thing of a whole CartPole episode; the others always divide it.

# %% [markdown]
# ## One live run
#
# The library plays, learns and evaluates until the mean of the last 25 greedy evaluation episodes reaches the threshold, or the cap comes first.
# The callback draws the progress bar, and keeps the policy so that we can film it afterwards.

# %%
live = dataclasses.replace(training.RunConfig.preset(env, algorithm), normalizer=normalizer, max_episodes=max_episodes)
kept = {}
with tqdm(total=max_episodes, desc=f"{env}, {algorithm}", file=sys.stdout, mininterval=5, ascii=True, ncols=88) as bar:
    def watch(history: training.History, policy: networks.Policy) -> None:
        """Move the bar and keep the policy."""
        bar.update()
        kept["policy"] = policy

    record = training.train(live, seed, progress=watch)
summary = {key: record[key] for key in ("status", "episodes", "steps", "seconds", "protocol")}
Markdown("The record of the run: " + ", ".join(f"`{key}` = {value:.1f}" if isinstance(value, float) else f"`{key}` = {value}" for key, value in summary.items()) + ".")

# %% [markdown]
# *Predict the plot:* training episodes are played with dropout and sampled actions, evaluation episodes greedily and without. Which curve is higher, which one jumps more?

# %%
def smoothed(values: list[float], window: int = 25) -> np.ndarray:
    """Return the mean of the last `window` values at each step, of fewer at the start."""
    return np.array([np.mean(values[max(0, i + 1 - window):i + 1]) for i in range(len(values))])


fig, ax = plots.panels(height=3.4)
for key, name, color, line in (("train_returns", "training", plots.BLUE, "--"), ("eval_returns", "greedy evaluation", plots.ORANGE, "-")):
    ax.plot(record[key], ".", color=color, alpha=0.35, markersize=4)
    ax.plot(smoothed(record[key]), color=color, linestyle=line, label=f"{name} (dots: episodes, line: mean of the last 25)")
ax.axhline(live.threshold, color=plots.INK, linewidth=0.8, linestyle=":", label=f"threshold, {live.threshold:g}")
plots.label(ax, f"{env}, {algorithm}, {record['status']} after {record['episodes']} episodes (n = 1 run)", "training episode", "return of the episode")
fig.legend(loc="outside lower center", ncols=2)
plots.show(fig, f"One run, seed {seed}: it says what a run looks like, not how good the method is.",
           "Returns of training and evaluation episodes over one run, with running means and the threshold.")

# %% [markdown]
# ## The film
#
# Numbers are one way to look at a policy.
# Gymnasium renders the other, without a screen.
# The upper strip is an untrained policy, the lower one is the policy at the end of the run above; both act greedily from the same start.

# %%
def film(policy: networks.Policy) -> tuple[list[np.ndarray], int]:
    """Play one greedy episode and return all its frames, and its length."""
    stage = gym.make(env, render_mode="rgb_array")
    observation, _ = stage.reset(seed=seed)
    frames, done = [stage.render()], False
    while not done:
        observation, _, terminated, truncated, _ = stage.step(policy.greedy(observation))
        frames.append(stage.render())
        done = terminated or truncated
    stage.close()
    return frames, len(frames) - 1


untrained = training.make_agent(live, *rollouts.make(env, seed)[1:3], np.random.default_rng([seed, 2]), np.random.default_rng([seed, 4]))
fig, axes = plots.panels(2, film_frames, height=1.3, width=9)
films = {"untrained": film(networks.Policy(untrained.actor)), "trained": film(kept["policy"])}
for row, (name, (frames, length)) in zip(axes, films.items(), strict=True):
    for ax, at in zip(row, np.linspace(0, length, film_frames).astype(int), strict=True):
        ax.imshow(frames[at])
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{name}, step {at}", fontsize=8)
plots.show(fig, f"Before and after: {films['untrained'][1]} steps untrained, {films['trained'][1]} steps after {record['episodes']} training episodes.",
           "Two film strips of the environment: the untrained policy above, the trained policy below.")

# %% [markdown]
# ## When it fails
#
# The same seed, the same settings, another normalizer: here is the run with the streamed K-Score of Algorithm 1, in the setting released for CartPole's simple filter.

# %%
other = training.train(dataclasses.replace(live, normalizer={"name": "kscore"}), seed)
fig, ax = plots.panels(height=2.8)
for kind, run in (("zscore", record), ("kscore", other)):
    label = live.normalizer["name"] if run is record else "K-Score, stream"
    ax.plot(smoothed(run["eval_returns"]), **plots.method(kind) | {"label": f"{label}: {run['status']} after {run['episodes']} episodes"})
plots.label(ax, f"{env}, {algorithm}: greedy evaluation, mean of the last 25 (n = 1 run each)", "training episode", "return")
fig.legend(loc="outside lower center", ncols=2)
plots.show(fig, f"Mean of the last ten evaluation returns: {np.mean(record['eval_returns'][-10:]):.0f} and {np.mean(other['eval_returns'][-10:]):.0f}.",
           "Smoothed evaluation returns of two single runs with the same seed and different normalizers.")

# %% [markdown]
# One pair of runs, so it ranks nothing; whether it is typical is what experiments with many seeds are for.
# But it shows that the line under study can decide a run.
#
# A study of many runs must not stop because one of them breaks, and must not hide that it broke.
# We break one on purpose, with an absurd learning rate.

# %%
broken = training.train(dataclasses.replace(live, learning_rate=1e30, max_episodes=20), seed)
assert broken["status"] == "diverged" and not broken["solved"]
Markdown(f"The record says `status` = **{broken['status']}** (\"{broken['reason']}\") after {broken['episodes']} episode(s), and keeps what it had: returns {broken['train_returns']}.")

# %% [markdown]
# A mistake in a setting is caught earlier, with a sentence.

# %%
for mistake in ({"algorithm": "pppo"}, {"dropout": 1.5}, {"normalizer": {"name": "kscore", "Q": -1}}, {"env": "Pendulum-v1"}):
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
# **Exercise 1 (recall).** Write the REINFORCE loss of an episode from log-probabilities and scores, so that one step *down* its gradient makes praised actions more likely.

# %% tags=["solution"]
def reinforce_loss(log_probs: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Return the loss, averaged over the timesteps as in Algorithm 1."""
    ### BEGIN SOLUTION
    return -(log_probs * scores).mean()
    ### END SOLUTION


# %% tags=["check"]
preferences = torch.zeros(2, requires_grad=True)
reinforce_loss(torch.log_softmax(preferences, 0)[[0, 0, 1]], torch.tensor([1.0, 2.0, -3.0])).backward()
assert preferences.grad[0] < 0 < preferences.grad[1], "a step down must favour action 0"
assert torch.allclose(preferences.grad, torch.tensor([-1.0, 1.0]))

# %% [markdown]
# **Exercise 2 (derive, then measure).** In the bandit, take `n` draws and subtract their own mean. By which factor does the *expected* gradient shrink, compared with a baseline that does not contain the sample? Write the factor as a function of `n`.

# %% tags=["solution"]
def shrinkage(n: int) -> float:
    """Return the factor on the expected gradient when the baseline is the mean of the n samples themselves."""
    ### BEGIN SOLUTION
    return (n - 1) / n
    ### END SOLUTION


# %% tags=["check"]
for n in (2, 5):
    chosen = rng.choice(3, size=(200_000, n), p=pi)
    rewards = arms[chosen] + rng.normal(0, 1, chosen.shape)
    own_mean = rewards - rewards.mean(axis=1, keepdims=True)
    measured = ((np.eye(3)[chosen] - pi) * own_mean[..., None]).mean(axis=(0, 1)) @ exact / (exact @ exact)
    assert abs(measured - shrinkage(n)) < 0.05, f"n = {n}: measured {measured:.3f}"

# %% [markdown]
# **Exercise 3 (apply).** Make a configuration for REINFORCE on CartPole with the adaptive K-Score in innovation form, no dropout, and the stopping rule on *training* returns.

# %% tags=["solution"]
mine = training.RunConfig.preset("CartPole-v1", "ppo")
### BEGIN SOLUTION
mine = dataclasses.replace(training.RunConfig.preset("CartPole-v1", "reinforce"), dropout=0.0, criterion="training",
                           normalizer={"name": "kscore", "variant": "adaptive", "mode": "innovation"})
### END SOLUTION

# %% tags=["check"]
assert mine.algorithm == "reinforce" and mine.dropout == 0 and mine.criterion == "training"
assert (mine.normalizer["name"], mine.normalizer["variant"], mine.normalizer["mode"]) == ("kscore", "adaptive", "innovation")
assert mine.hidden == (128,) and mine.learning_rate == 0.01, "leave the other settings as released"

# %% [markdown]
# ## Summary

# %%
Markdown(f"""
- The policy gradient is an average of $\\nabla\\log\\pi$ weighed by returns; a good baseline cuts its variance, here by a factor of {raw / centred:.0f}, and leaves its mean.
- The loop in the open and `kscore` agree on an update to {gap:.0e}.
- On one episode of an untrained agent the gradient is between {updates.iloc[:, 0].min():.2g} and {updates.iloc[:, 0].max():.0f} times as long as with the Z-Score, and its cosine with the Z-Score's gradient ranges from {updates.iloc[:, 1].min():+.2f} to {updates.iloc[:, 1].max():+.2f}.
- The live run ({algorithm}, seed {seed}) was {record["status"]} after {record["episodes"]} episodes and {record["steps"]:,} steps, in {record["seconds"]:.0f} seconds.
""")

# %% [markdown]
# **References.** R. J. Williams, *Simple statistical gradient-following algorithms for connectionist reinforcement learning*, Machine Learning 8 (1992).
# R. S. Sutton, D. McAllester, S. Singh and Y. Mansour, *Policy gradient methods for reinforcement learning with function approximation*, NeurIPS (1999).
# J. Schulman and co-authors, *High-dimensional continuous control using generalized advantage estimation* (2015) and *Proximal policy optimization algorithms* (2017).
# B. Trevett, *pytorch-rl*, the public tutorial that the released code follows.
# Z. Xia and Q. Li, *K-Score*, Algorithm 1.

# %%
provenance.footer(started, seed=seed, open_episodes=open_episodes, env=env, algorithm=algorithm, normalizer=normalizer, max_episodes=max_episodes, draws=draws, film_frames=film_frames)
