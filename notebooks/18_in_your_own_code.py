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
# # 18 In your own code
#
# **Question.** How do the normalizers get into a training script that you already have, what do they do to its rewards, and does PPO of Stable-Baselines3 learn better with them than with `VecNormalize`?
#
# *For* people who train with Gymnasium or Stable-Baselines3 and would like to keep their loop.
# *Know first:* what a Stable-Baselines3 training script looks like; chapter 15 for what the wrappers do; chapter 08 for the intervals.
# *Runs in* about half a minute from the recorded runs; to record them anew takes an hour or two on one core.
# Previous: [17 A fair fight](17_a_fair_fight.ipynb)

# %% [markdown]
# ## Question
#
# So far we have trained with code of our own, in which the line under study can be seen.
# Hardly anybody else does. People train with a library, and in the library's script there is one line for this: the environment is wrapped in `VecNormalize`, and rewards come out smaller.
# Whoever wants to try a filter there should have to change that line, and nothing else.
#
# One might expect that the change matters: chapter 15 found that the wrappers spike at the start and never forget, and of all arms that it trained, the one with a filter over episodes needed the fewest episodes (noticed afterwards, and not tested).
# Or one might expect no visible effect. PPO of Stable-Baselines3 z-scores the advantages of every batch, so that the scale of the rewards all but cancels in the loss of the policy and is left in that of the critic.
# The plan (`data/PLAN.md`, "Part III: in the code of others") bets on the second, and says what would change our mind: either of ours better on two of the three tasks, or `VecKScore` worse on two. It was written before the runs that are judged here.
#
# After this chapter you can
#
# - put a normalizer into a script of Stable-Baselines3, in front of any learner or inside PPO and A2C;
# - say what a reward is divided by, and when that number changes;
# - save, load and freeze what was learned, for evaluations that can be compared;
# - name the cases in which you had better leave rewards alone.

# %% [markdown]
# ## Setup
#
# In a project of your own, `pip install -c constraints.txt '.[sb3]'` from a checkout of this collection brings what the wrappers need; the trials of this chapter also need pandas, and LunarLander needs `gymnasium[box2d]`.

# %%
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import gymnasium as gym
import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecNormalize,
    sync_envs_normalization,
)

from kscore import analysis, chapters, figures
from kscore.analysis import stats, verdicts
from kscore.analysis.comparisons import Difference
from kscore.labs import sb3_study
from kscore.wrappers.sb3 import KeepScores, NormalizedRolloutBuffer, VecKScore
from kscore.wrappers.scaling import RewardScaling, discounted_returns

chapter = chapters.begin("18_in_your_own_code")
torch.set_num_threads(1)      # networks as small as these gain nothing from more

# %% [markdown]
# ## Parameters

# %% tags=["parameters"]
seeds: int = 10               # recorded runs per arm and task [2, 10]
live_steps: int = 8192        # steps of the training before your eyes [2048, 1000000]
seed: int = 3018              # of every random number in this chapter [0, 1000000000]

# %% [markdown]
# ## Notation
#
# | symbol | meaning | in code | shape |
# |---|---|---|---|
# | lane | one of several environments that are played side by side | `n_envs`, `lanes` | |
# | rollout | the steps of all lanes between two updates | `n_steps` | `(steps, lanes)` |
# | $s_k$ | what the rewards of episode $k$ are divided by | `env.ret_rms.scale` | number |
# | $G_t$ | the discounted return from step $t$ on, in rewards as they came | `discounted_returns` | `(steps,)` |
# | $V$, $\hat G$ | the critic's output, and the score that it learns | `values`, `returns` of the buffer | `(steps, lanes)` |
# | area | the mean of all evaluation returns of a run | `area` | number |

# %% [markdown]
# ## Ten lines
#
# This is a whole training script, much like the one in the README. Imports aside, one line of it is ours, the one with `VecKScore`; with `VecNormalize` there it would be a script like many others.
# (Here it trains for a few seconds, and files go to a folder that will be thrown away.)

# %%
shelf = TemporaryDirectory()
policy_file, scale_file = (Path(shelf.name, name) for name in ("model", "scale.pkl"))

env = VecKScore(make_vec_env("CartPole-v1", n_envs=8), norm_obs=False, gamma=0.98)
model = PPO("MlpPolicy", env, gamma=0.98, gae_lambda=0.8, learning_rate=1e-3,
            n_steps=32, batch_size=256, n_epochs=20, device="cpu", seed=seed)
model.learn(live_steps)
model.save(policy_file)                               # the policy
env.save(scale_file)                                  # what the wrapper has learned
returns = env.env_method("get_episode_rewards")       # as they were, lane by lane

# %% [markdown]
# Two things about it are worth knowing.
# The learner's discount stands there twice, because a wrapper that learns the size of returns has to know which returns are meant.
# And the training curve is in *raw* rewards: `make_vec_env` puts a `Monitor` around every environment, inside our wrapper, where nobody has scaled anything yet.

# %% tags=["hide-input"]
ends = env.env_method("get_episode_lengths")
fig, ax = figures.panels(height=2.8)
for lane, (lengths, own) in enumerate(zip(ends, returns, strict=True)):
    ax.plot(8 * np.cumsum(lengths), own, "o", markersize=3, color=figures.ORANGE,
            alpha=0.6, label="one episode" if lane == 0 else None)
figures.label(ax, f"Ten lines later: CartPole, {model.num_timesteps:,} steps (n = 1)",
              "training step, over all lanes", "return", legend="upper left")
figures.show(fig)

# %% tags=["hide-input"]
played = np.concatenate(returns)
at_first, at_last = (np.mean([own[k] for own in returns]) for k in (0, -1))
figures.caption(
    f"The return of each of {len(played)} training episodes of one run. Mean over the "
    f"eight lanes: {at_first:.0f} in their first episode, {at_last:.0f} in their "
    "last.",
    alt="Returns of training episodes on CartPole against the training step: a cloud "
    "of marks that begins low and rises.")

# %% [markdown]
# ## What becomes of a reward
#
# To a reward, `VecKScore` does one thing: it *divides* it (and clips the quotient at ±10, as `VecNormalize` does). By what, is settled in three steps:
#
# 1. An episode begins, and takes along the scale $s_k$ that is known now. All of its rewards are divided by that one number.
# 2. It ends, by itself or at a time limit. Its returns $G_t$, discounted backwards from the last reward, go to the normalizer, which is the filter of episodes of chapter 12 unless you name another one.
# 3. What the normalizer knows then is the scale of every episode that begins later:
#
# $$\tilde r_t = \frac{r_t}{s_k}, \qquad s_k = \operatorname{scale}\big(\text{episodes that ended before episode } k \text{ began}\big). \tag{18.1}$$
#
# Nothing is subtracted, because a constant off every reward changes the task (chapter 15).
# Until a first episode has ended, with returns that differ, there is no scale. Rewards are then divided by the largest size so far of the running sum $A_t = \gamma A_{t-1} + r_t$. Since $r_t = A_t - \gamma A_{t-1}$, no quotient is beyond $1 + \gamma$ in size, and so none beyond 2.
# In the open, for one environment and the plainest of all normalizers, one that has the deviation of all returns so far:

# %%
def scaled_by_hand(episodes: list[np.ndarray], gamma: float) -> list[np.ndarray]:
    """Return the rewards of episodes, each divided by what was known before it."""
    known, scaled = [], []
    for rewards in episodes:
        if known:
            divisors = np.std(np.concatenate(known))
        else:                            # none has ended: the largest sum so far
            sums = discounted_returns(rewards[::-1], gamma)[::-1]
            divisors = np.maximum.accumulate(np.abs(sums))
        scaled.append(rewards / divisors)
        known.append(discounted_returns(rewards, gamma))
    return scaled

# %% [markdown]
# The library does the same, step by step as the rewards come in:

# %%
rng = np.random.default_rng(seed)
some = [rng.normal(1.0, 3.0, size) for size in (5, 12, 3, 30)]
scaling = RewardScaling("running", lanes=1, gamma=0.98)
by_hand = scaled_by_hand(some, 0.98)
for rewards, mine in zip(some, by_hand, strict=True):
    last = len(rewards) - 1
    by_library = [scaling.step([one], [t == last]) for t, one in enumerate(rewards)]
    assert np.allclose(np.ravel(by_library), mine)
assert np.abs(by_hand[0]).max() <= 1.98        # before there was a scale: 1 + γ

# %% [markdown]
# ## Beside VecNormalize, on the same episodes
#
# Now both wrappers get the same stream of real rewards: CartPole, and LunarLander with its -100 for a crash, both with random actions and one lane. We switch off the clipping at 10 in both, to see what is underneath.

# %%
def through(make_env, wrapper, actions: int, steps: int) -> pd.DataFrame:
    """Play at random through a wrapper; return raw and scaled rewards, and ends."""
    env = wrapper(DummyVecEnv([make_env]), norm_obs=False, clip_reward=np.inf)
    env.seed(seed)
    env.reset()
    draw, rows = np.random.default_rng(seed), []
    for _ in range(steps):
        _, reward, ended, _ = env.step(draw.integers(actions, size=1))
        rows.append((env.get_original_reward()[0], reward[0], ended[0]))
    return pd.DataFrame(rows, columns=["raw", "scaled", "ended"])

# %%
wrappers = {"vecnormalize": VecNormalize, "veckscore": VecKScore}
streams = {
    "CartPole": {arm: through(lambda: gym.make("CartPole-v1"), wrapper, 2, 120)
                 for arm, wrapper in wrappers.items()},
    "LunarLander": {arm: through(lambda: gym.make("LunarLander-v3"), wrapper, 4, 700)
                    for arm, wrapper in wrappers.items()}}
for pair in streams.values():
    assert pair["vecnormalize"].raw.equals(pair["veckscore"].raw)

# %% [markdown]
# **Predict the plot.** On the left, every raw reward is 1. On the right we show what each reward was divided by. Which of the two divisors changes within an episode, and what will the first rewards look like?

# %% tags=["hide-input"]
fig, axes = figures.panels(1, 2, height=3.4, width=9.0)
for arm, looked in streams["CartPole"].items():
    axes[0].plot(np.arange(1, len(looked) + 1), looked.scaled,
                 **figures.method(arm, marker=True) | {"markersize": 3})
for arm, looked in streams["LunarLander"].items():
    axes[1].plot(np.arange(1, len(looked) + 1), looked.raw / looked.scaled,
                 **figures.method(arm))
for ax, pair in zip(axes, streams.values(), strict=True):
    for end in np.flatnonzero(pair["veckscore"].ended):
        ax.axvline(end + 1, color=figures.GREY, linewidth=0.6, linestyle=":")
    ax.set_yscale("log")
figures.label(axes[0], "CartPole (n = 1)", "step", "scaled reward", legend=True)
figures.label(axes[1], "LunarLander (n = 1)", "step", "divided by")
figures.show(fig)

# %% tags=["hide-input"]
theirs, ours = (streams["CartPole"][arm].scaled for arm in wrappers)
figures.caption(
    "Left: the reward of 1 as the learner gets it. VecNormalize begins at "
    f"{theirs.iloc[0]:.0f}, where its clipping would cut it to 10; ours begins at "
    f"{ours.iloc[0]:.1f} and is never beyond {ours.max():.1f}. Right: what a reward is "
    "divided by. Dotted: an episode ends.",
    alt="Two panels on logarithmic axes. Left, scaled rewards of CartPole: "
    "VecNormalize begins at about seventy and falls quickly, VecKScore begins at one. "
    "Right, divisors on LunarLander: that of VecNormalize moves at every step, that of "
    "VecKScore is a staircase whose steps are the ends of episodes.")

# %% [markdown]
# Two of the complaints of chapter 15 are gone by construction. Before there is a scale nothing spikes, and nothing of an episode is carried into the next one but what was learned from it as a whole.
# That an episode has one divisor can be checked (its rounding to 32 bits aside):

# %%
landed = streams["LunarLander"]["veckscore"]
episode = landed.ended.cumsum().shift(fill_value=0)
divisor = (landed.raw / landed.scaled)[episode > 0]          # from the second one on
spread = divisor.groupby(episode).agg(lambda own: own.max() / own.min() - 1)
assert spread.max() < 1e-4

# %% [markdown]
# The price is patience. `VecNormalize` knows something after a single step, ours after a whole episode. We come back to that under "When not to use it".

# %% [markdown]
# ## Does PPO learn better with it?
#
# Ten seeds, three tasks, and Stable-Baselines3's PPO at settings that are known to work (close to those of RL Baselines3 Zoo: a constant rate on CartPole, shorter rollouts on LunarLander, shorter training everywhere), equal in all arms:
#
# - **VecNormalize**, as Stable-Baselines3 has it, for rewards only;
# - **VecKScore**, ours in its place, with the filter of episodes;
# - **normalizing buffer**: rewards as they are, and the filter of episodes on the returns inside PPO, where the K-Score belongs (a section below says how);
# - **rewards as they are**, to see whether anything of this is needed. This arm gets no verdict.
#
# A seed gives all arms the same networks and the same environments to start from. Every so many steps the greedy policy plays five episodes in environments of its own, and the mean of all these evaluations is the *area* of a run.

# %%
runs = sb3_study.read()
chosen = sorted(runs.seed.unique())[:seeds]
runs = runs[runs.seed.isin(chosen)]
counts = runs.groupby("arm").seed.nunique()
n_runs = counts["vecnormalize"]
labels = {arm: look["label"] for arm, look in figures.WRAPPER_METHODS.items()}
arms = [arm for arm in labels if arm in counts]


def curves(task: str, arm: str) -> np.ndarray:
    """Return the evaluation returns of one arm, (seeds, evaluations)."""
    own = runs[(runs.task == task) & (runs.arm == arm)].sort_values("seed")
    return np.stack(own.returns)

# %% [markdown]
# Around each mean there is a band, a 95 % bootstrap interval over seeds, point by point.
#
# **Predict the plot.** On which of the three tasks would you expect the size of rewards to matter most? CartPole pays 1 per step and is discounted with 0.98; Pendulum pays between -16 and 0, with 0.9; LunarLander pays a few points per step and 100 more or less at the end, with 0.999.

# %% tags=["hide-input"]
def band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a 95 % bootstrap interval of the mean over seeds, at every evaluation."""
    draws = np.random.default_rng(seed).integers(len(values), size=(2000, len(values)))
    return tuple(np.quantile(values[draws].mean(axis=1), [0.025, 0.975], axis=0))


fig, axes = figures.panels(1, 3, height=3.8, width=9.5)
for ax, task in zip(axes, sb3_study.TASKS, strict=True):
    at = runs[runs.task == task].steps.iloc[0] / 1000
    for arm in arms:
        values, look = curves(task, arm), figures.method(arm)
        ax.fill_between(at, *band(values), color=look["color"], alpha=0.15, linewidth=0)
        ax.plot(at, values.mean(axis=0), **look)
    figures.label(ax, f"{task} (n = {n_runs})", "thousand steps",
                  "evaluation return" if ax is axes[0] else "")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
figures.show(fig)

# %% tags=["hide-input"]
areas = runs.groupby(["task", "arm"]).area.mean()
figures.caption(
    "Mean evaluation return while learning, with bands over seeds. Mean area: "
    + "; ".join(f"{task} " + ", ".join(f"{labels[arm]} {areas[task, arm]:.0f}"
                                       for arm in arms)
                for task in sb3_study.TASKS) + ".",
    alt="Three panels of learning curves, CartPole, LunarLander and Pendulum, one line "
    "with a band for each treatment of the rewards. On CartPole the line of the buffer "
    "stays far below the others, on LunarLander that of rewards as they are; elsewhere "
    "most bands overlap.")

# %% [markdown]
# Bands that overlap say little about runs that share their seeds. The plan asks for the paired difference: area with ours less area with `VecNormalize`, on the same seed. There are six comparisons, and they are adjusted as one family.

# %%
def against(task: str, arm: str, outcome: str = "area") -> Difference:
    """Return by how much an arm exceeds VecNormalize on the same seeds."""
    table = runs[runs.task == task].pivot(index="seed", columns="arm", values=outcome)
    table = table[[arm, "vecnormalize"]].dropna()
    found = stats.paired_difference(table[arm], table.vecnormalize)
    return Difference(arm, "vecnormalize", len(table), *found)


compared = {(task, arm): against(task, arm)
            for task in sb3_study.TASKS for arm in ("veckscore", "buffer")}
judged = analysis.differences(compared)
judged.index = pd.MultiIndex.from_tuples(judged.index, names=["task", "arm"])

# %% tags=["hide-input"]
finals = {name: against(*name, outcome="final").difference for name in compared}
written = pd.DataFrame({
    "n": [one.n for one in compared.values()],
    "area": [f"{areas[name]:.0f}" for name in compared],
    "area, VecNormalize": [f"{areas[task, 'vecnormalize']:.0f}"
                           for task, _ in compared],
    "difference": [f"{found:z.0f}" for found in judged.difference],
    "difference at the end": [f"{found:z.0f}" for found in finals.values()],
    "adjusted p": judged["adjusted p"], "verdict": judged.verdict.map(str)},
    index=judged.index)
figures.table(written)

# %% [markdown]
# The verdict is on the difference of areas; that at the end, the last evaluation alone, stands beside it without a test. As a picture, with the arm that gets no verdict:

# %% tags=["hide-input"]
fig, axes = figures.panels(1, 3, height=2.6, width=10.5)
for ax, task in zip(axes, sb3_study.TASKS, strict=True):
    lines = [(labels[arm], against(task, arm).difference, arm)
             for arm in arms if arm != "vecnormalize"]
    for place, (_, found, arm) in enumerate(lines):
        look = figures.method(arm, marker=True)
        ax.plot([found.low, found.high], [place, place], color=look["color"])
        ax.plot(found.estimate, place, color=look["color"], marker=look["marker"])
    ax.axvline(0, color=figures.INK, linewidth=0.8, linestyle=":")
    ax.set_yticks(range(len(lines)),
                  [name if ax is axes[0] else "" for name, _, _ in lines])
    ax.set_ylim(len(lines) - 0.5, -0.5)
    figures.label(ax, f"{task} (n = {n_runs})", "area less that of VecNormalize", "")
figures.show(fig)

# %% tags=["hide-input"]
def told(word: str) -> list[str]:
    """Return the comparisons that got a word."""
    return [f"{labels[arm]} on {task.split('-')[0]}"
            for (task, arm), said in judged.verdict.items() if said == word]


BETTER, WORSE, UNTOLD = (str(word) for word in verdicts.Change)
figures.caption(
    "Paired differences of areas with 95 % intervals over seeds; to the right of 0 an "
    f"arm is better than VecNormalize. Better: {'; '.join(told(BETTER)) or 'none'}. "
    f"Worse: {'; '.join(told(WORSE)) or 'none'}. Cannot be told: "
    f"{'; '.join(told(UNTOLD)) or 'none'}.",
    alt="Three small forest plots, one for each task: the difference in area between "
    "each of three arms and VecNormalize, with its interval, around a dotted line at "
    "zero.")

# %% [markdown]
# What had the plan expected? At least four of six that cannot be told, and a buffer that is not better on CartPole, whose rollouts of 32 steps cut an episode into stretches that the filter takes for whole ones.
# We would have changed our mind if either of ours had been better on two tasks, or `VecKScore` worse on two.

# %% tags=["hide-input"]
def tasks_with(word: str, arm: str) -> int:
    """Return on how many tasks an arm of ours got a word."""
    return sum(judged.verdict[task, arm] == word for task in sb3_study.TASKS)


untold = len(told(UNTOLD))
expected = {
    f"at least four cannot be told ({untold} cannot)": untold >= 4,
    "the buffer is not better on CartPole":
        judged.verdict["CartPole-v1", "buffer"] != BETTER}
convincing = {
    "one of ours better on two tasks":
        max(tasks_with(BETTER, arm) for arm in ("veckscore", "buffer")) >= 2,
    "VecKScore worse on two tasks": tasks_with(WORSE, "veckscore") >= 2}
wide = {task: max(found.high - found.low for found in judged.difference[task])
        for task in sb3_study.TASKS}
Markdown(
    "What was expected: "
    + "; ".join(f"{sentence}, {'as expected' if true else 'which is not so'}"
                for sentence, true in expected.items())
    + ". What would have changed our mind: "
    + "; ".join(f"{sentence}, which {'happened' if true else 'did not happen'}"
                for sentence, true in convincing.items())
    + ". Ten seeds make the first of these likely in any case. \"Cannot be told\" is "
    "not \"as good\": the intervals are up to "
    + ", ".join(f"{width:.0f} wide on {task.split('-')[0]}"
                for task, width in wide.items()) + ".")

# %% [markdown]
# ### What a scale can do here
#
# PPO z-scores the advantages of every minibatch. Multiply all rewards, and all of the critic's values, by a constant, and the policy's loss stays as it was. The critic's does not. The critic is a network of its own here, so that the policy hears of its troubles in two ways only: through the quality of the advantages, and through the gradient, which is clipped as a whole, so that a critic with huge errors can shorten the steps of the policy as well.
# In numbers, which is arithmetic and no training: let a critic be perfect in either unit; then the advantages of a batch, once z-scored, are the same.

# %%
raw = rng.normal(size=256)                     # advantages with perfect values
for scale in (0.01, 1.0, 300.0):
    seen = raw / scale
    assert np.allclose((seen - seen.mean()) / seen.std(),
                       (raw - raw.mean()) / raw.std())

# %% [markdown]
# So far as its divisor hardly changes within a batch, a wrapper of rewards is, with this learner, a device for the critic. Where episodes of one batch have different divisors, it also decides which of them counts for more, and z-scoring does not undo that.
# Where the critic can cope with the returns as they are, it has little to do; and where returns are in the hundreds, `rewards as they are` is the arm to look at.

# %% tags=["hide-input"]
plain = {task: against(task, "raw") for task in sb3_study.TASKS if "raw" in counts}
Markdown(
    ("Rewards as they are, against VecNormalize, by area (intervals, no test): "
     + "; ".join(f"{task.split('-')[0]} {one.difference:z.0f} (n = {one.n})"
                 for task, one in plain.items()) + ". "
     "Only an interval that lies on one side of 0 hints that the wrapper does "
     "something for the task or against it: "
     + ("; ".join(f"{task.split('-')[0]}, where rewards as they are do "
                  + ("worse" if one.difference.high < 0 else "better")
                  for task, one in plain.items()
                  if one.difference.high < 0 or one.difference.low > 0)
        or "there is none") + ".") if plain else
    "The runs with rewards as they are have not been recorded yet.")

# %% [markdown]
# ## Saving, loading, freezing
#
# What a wrapper has learned belongs to the model. A policy that goes on learning with a scale that begins anew gets rewards of another size; and if observations are normalized too, the policy is worthless without the statistics.
# `save` and `load` work as in `VecNormalize`. Episodes that are under way are not part of what is saved.

# %%
again = VecKScore.load(scale_file, make_vec_env("CartPole-v1", n_envs=8))
assert again.ret_rms.state_dict() == env.ret_rms.state_dict()
model = PPO.load(policy_file, env=again, device="cpu")
model.learn(2048)                                     # goes on where it was
assert again.ret_rms.count > env.ret_rms.count

# %% [markdown]
# (The file is a pickle, as Stable-Baselines3 has it; load only what you trust. `env.ret_rms.state_dict()` is a dict of plain numbers and lists for those who prefer JSON.)
#
# *Freezing* is a matter of two switches. `training = False` stops learning, `norm_reward = False` hands out rewards as they are; an evaluation wants both, so that its returns mean the same in all experiments.
# `EvalCallback` does the rest: before each evaluation it copies what the training environment knows into the other one, if both are wrapped in the same way.

# %%
judge = VecKScore(make_vec_env("CartPole-v1", n_envs=2, seed=seed), training=False,
                  norm_obs=False, norm_reward=False, gamma=0.98)
evaluation = EvalCallback(judge, eval_freq=128, n_eval_episodes=4, verbose=0)
model.learn(2048, callback=evaluation)
assert judge.ret_rms.count > 0                        # copied, and nothing of its own
assert evaluation.last_mean_reward >= 8               # as they are, not scaled

# %% tags=["hide-input"]
Markdown(
    "At the last evaluation the mean return was "
    f"{evaluation.last_mean_reward:.0f}, in steps that the pole stood; the training "
    f"environment had learned from {again.ret_rms.count} episodes by then and divided "
    f"rewards by {again.ret_rms.scale:.1f}.")

# %% [markdown]
# That a frozen wrapper learns nothing, whatever it is shown, is soon checked:

# %%
before = judge.ret_rms.state_dict()
judge.reset()
for _ in range(200):
    judge.step(np.array([0, 0]))                      # falls over, again and again
assert judge.ret_rms.state_dict() == before

# %% [markdown]
# ## Inside PPO and A2C
#
# A wrapper can only reach rewards. The K-Score acts one door further in: on returns, with a centre.
# Stable-Baselines3 lets us replace the buffer in which a rollout is kept, and that is where `NormalizedRolloutBuffer` does its work, with returns $R$ in units of the rewards:
#
# $$R = \text{returns by GAE}, \qquad \hat G = \operatorname{normalizer}(R), \qquad A = \hat G - V(s). \tag{18.2}$$
#
# The critic learns $\hat G$, so that its outputs are scores; `values_of` turns them back.

# %%
inside = {"rollout_buffer_class": NormalizedRolloutBuffer,
          "rollout_buffer_kwargs": {"normalizer": "episode"}}
ppo = PPO("MlpPolicy", "CartPole-v1", n_steps=256, batch_size=64, device="cpu",
          seed=seed, **inside)
ppo.learn(2048, callback=KeepScores())
buffer = ppo.rollout_buffer
outputs = buffer.values[:, 0]
assert np.allclose(buffer.values_of(outputs), buffer.centre + buffer.scale * outputs)

# %% [markdown]
# The callback is needed. At a time limit Stable-Baselines3 adds the critic's output for the last state, discounted, to the last reward, and does so *before* the buffer is asked; the output is a score and the reward is not. `KeepScores` tells the buffer where that happened, and keeps what the normalizer has learned in the model, where `model.save` finds it:

# %%
ppo.save(policy_file)
loaded = PPO.load(policy_file, env=make_vec_env("CartPole-v1"), device="cpu")
assert loaded.rollout_scores == ppo.rollout_buffer.state_dict()
loaded = loaded.learn(256, callback=KeepScores())     # goes on from these

# %% [markdown]
# A2C learns from five steps at a time, which is nothing like an episode. With `by="rollout"` the five steps of all lanes are one series:

# %%
a2c = A2C("MlpPolicy", make_vec_env("CartPole-v1", n_envs=4), device="cpu", seed=seed,
          rollout_buffer_class=NormalizedRolloutBuffer,
          rollout_buffer_kwargs={"normalizer": "running", "by": "rollout"})
a2c.learn(1000, callback=KeepScores())
assert a2c.rollout_buffer.normalizer.count == 1000

# %% tags=["hide-input"]
Markdown(
    f"One unit of this PPO's critic stands for {buffer.scale:.1f} points of return, "
    f"around a centre of {buffer.centre:.1f}; one of A2C's for "
    f"{a2c.rollout_buffer.scale:.1f}, around {a2c.rollout_buffer.centre:.1f}.")

# %% [markdown]
# ## When it fails: episodes that never end
#
# Ours learns from whole episodes. What if there are none?
# A Pendulum whose time limit lies far beyond the training is such a task: a controller that is never reset.
# We let it swing with random torques, in one lane, and look at what each reward is divided by.

# %%
def endless() -> gym.Env:
    """Return a pendulum that is not reset within any training."""
    return gym.make("Pendulum-v1", max_episode_steps=10**9)


def divisors(wrapper, steps: int) -> np.ndarray:
    """Return what rewards are divided by while a pendulum swings at random."""
    env = wrapper(DummyVecEnv([endless]), norm_obs=False, clip_reward=np.inf, gamma=0.9)
    env.seed(seed)
    env.reset()
    draw, found = np.random.default_rng(seed), []
    for _ in range(steps):
        _, reward, _, _ = env.step(draw.uniform(-2, 2, size=(1, 1)))
        found.append(env.get_original_reward()[0] / reward[0])
    return np.array(found)


swinging = {arm: divisors(wrapper, 3000) for arm, wrapper in wrappers.items()}

# %% [markdown]
# **Predict the plot.** Ours falls back on the largest discounted sum that it has met. What will that do over time?

# %% tags=["hide-input"]
fig, ax = figures.panels(height=2.8)
for arm, found in swinging.items():
    ax.plot(np.arange(1, len(found) + 1), found, **figures.method(arm))
ax.set_xscale("log")
figures.label(ax, "A pendulum that is never reset (n = 1)", "step", "divided by",
              legend="upper left")
figures.show(fig)

# %% tags=["hide-input"]
stuck, moving = swinging["veckscore"], swinging["vecnormalize"]
figures.caption(
    f"After {len(stuck):,} steps VecNormalize divides by {moving[-1]:.1f}, the "
    f"deviation of its sums; ours divides by {stuck[-1]:.1f}, the largest sum of all, "
    "which can only rise. Rewards come out "
    f"smaller by a factor of {stuck[-1] / moving[-1]:.1f}.",
    alt="Divisors against the step on a logarithmic axis: that of VecNormalize goes up "
    "and down and settles, that of VecKScore rises in steps and stays at the top.")

# %% [markdown]
# Nothing breaks: rewards keep a sensible size, and a learner can still learn. But no normalizer is at work, and the first outlier decides the scale for good.
# Where episodes are not endless but very long, the same holds for the part of the training that passes before the first of them has ended. Exercise 3 asks how large that part is.

# %% [markdown]
# ## When it fails: a critic whose units move
#
# The buffer has a weakness of its own, and we found it only when the first runs on CartPole were there.
# The critic speaks in scores, and an output $V$ stands for the value $\text{centre} + \text{scale}\cdot V$. After every rollout the filter has moved both, and what the critic had learned stands for other values than before. PopArt rewrites the last layer for this very reason (15.2); a buffer cannot reach it.
# That does little harm where returns are made of rewards. Where a rollout is short, they are mostly made of the critic's own values, and these feed back into the filter that sets the units.
# So we watch the centre during training, in rollouts of 32 steps per lane, as in the study, of 128 and of 512.

# %%
class Watch(BaseCallback):
    """Write down the centre that the buffer has after each rollout."""

    def _init_callback(self) -> None:
        self.at, self.centres = [], []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self.at.append(self.num_timesteps)
        self.centres.append(self.model.rollout_buffer.centre)


as_studied = sb3_study.TrialConfig.preset("CartPole-v1", "buffer")
watched = {rollout: Watch() for rollout in (32, 128, 512)}
for rollout, watch in watched.items():
    own = replace(as_studied, rollout=rollout, every=8 * rollout, steps=8 * rollout)
    sb3_study.learner(own, seed).learn(
        2 * live_steps, callback=CallbackList([KeepScores(), watch]))
highest = 1 / (1 - as_studied.gamma)          # the return of a pole that never falls

# %% [markdown]
# **Predict the plot.** No return of CartPole can be larger than $1/(1-\gamma)$. Will the centre stay below it?

# %% tags=["hide-input"]
fig, ax = figures.panels(height=3.0)
for (rollout, watch), color, line in zip(
        watched.items(), (figures.RED, figures.TEAL, figures.BLUE), ("-", "--", "-."),
        strict=True):
    ax.plot(watch.at, watch.centres, color=color, linestyle=line,
            label=f"rollouts of {rollout} steps")
ax.axhline(highest, color=figures.INK, linewidth=0.8, linestyle=":",
           label="the highest return there is")
figures.label(ax, "What the buffer takes for the level of returns (n = 1 run each)",
              "training step, over all lanes", "centre", legend="below")
figures.show(fig)

# %% tags=["hide-input"]
beyond = {rollout: np.mean(np.array(watch.centres) > highest)
          for rollout, watch in watched.items()}
figures.caption(
    f"No return is above {highest:.0f} (dotted). The centre is, after this share of "
    "the rollouts: " + "; ".join(
        f"{rollout} steps {share:.0%} of {len(watched[rollout].centres)}"
        for rollout, share in beyond.items())
    + ". Its largest value is " + ", ".join(
        f"{max(watch.centres):.0f}" for watch in watched.values())
    + ", in the same order. Longer rollouts are fewer, and their centre has fewer "
    "occasions to move; so this says little about length, and only that a centre can "
    "leave the range of all returns.",
    alt="The centre of the buffer's filter during training on CartPole for three "
    "lengths of rollouts, with a dotted line at the highest return there is; the line "
    "of the shortest rollouts swings most widely.")

# %% [markdown]
# Single runs, looked at after the fact: they show how it can happen, and are no test. The plan had feared for the buffer on CartPole, too, but for another reason, that a filter would take stretches of 32 steps for episodes.
# We would give the buffer rollouts that hold whole episodes, or most of one; that was not tested.

# %% [markdown]
# ## When not to use it
#
# - **Rewards are of a good size already.** If returns are around 1 to 10, or if the arm with rewards as they are keeps up in a trial of your own, leave them alone: a wrapper is one more thing to save and to explain.
# - **Training is very short.** The scale is that of the episodes so far, and the first dozen of a policy that knows nothing are no guide to the rest.
# - **Episodes are very long, or never end.** See above; `VecNormalize` learns at every step, and may be the better choice there, as may a time limit. (Nothing was trained to find out.)
# - **The only reward comes at the end.** With a discount close to 1, all returns of such an episode are nearly the same number. Their deviation, which is the first scale, is then tiny, and the next reward comes out enormous, to be clipped at 10. `VecNormalize` has a trouble of its own there: its sum is zero at all steps but one, so that the reward comes out at about the square root of the episode's length, and is clipped at 10 from some hundred steps on.
# - **The centre matters.** If every step pays 1000 and a good one 1001, dividing is not enough, and subtracting would change the task. A critic in units of its own (the buffer above, or PopArt in chapter 15) has a centre where it belongs.
# - **Rollouts are much shorter than episodes.** Then leave the buffer alone; the wrapper of rewards does not depend on rollouts.
# - **A replay buffer of your own keeps scaled rewards.** They were scaled by what was known when they came; with a scale that moves, old and new ones do not fit together. (The replay buffers of Stable-Baselines3 keep raw rewards and scale them when they learn, with ours as with `VecNormalize`.)
# - **You compare runs by their training rewards.** Scaled rewards of two runs are in two units. Compare evaluations in raw rewards, or what the `Monitor` inside has seen.

# %% [markdown]
# ## What this does not show
#
# Three small tasks, one learner, one set of settings per task, and training that stops early: on LunarLander at about an eighth of what the settings were made for. An arm that is ahead early may fall behind.
# The settings were found by others with rewards as they are, and not for any of the wrappers; nobody knows what each arm would do at its own best rate.
# With ten seeds, differences of one to one and a half standard deviations of the paired differences are found with a probability of 80 %; smaller ones will mostly be missed. Six times "cannot be told" would not be six ties.
# Observations were not normalized. On tasks with observations of awkward size that is most of what `VecNormalize` is used for, and `VecKScore` does it in the same way.
# Nothing is said of speed: `make bench` measures what a step through the wrappers costs.

# %% [markdown]
# ## Exercises
#
# **Exercise 1 (recall).** Make an environment to evaluate in: one lane of `task`, with the `gamma` of the training environment `trained`, which knows what that one has learned, learns nothing itself, and hands out rewards as they are. Observations are to be normalized, if they are in training.

# %% tags=["stub"]
def to_evaluate_in(task: str, trained: VecKScore) -> VecKScore:
    """Return a frozen environment that gives raw rewards."""


# %% nbgrader={"grade": false, "grade_id": "18-1", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def to_evaluate_in(task: str, trained: VecKScore) -> VecKScore:
    """Return a frozen environment that gives raw rewards."""
    ### BEGIN SOLUTION
    frozen = VecKScore(make_vec_env(task), training=False, norm_obs=trained.norm_obs,
                       norm_reward=False, gamma=trained.gamma)
    sync_envs_normalization(trained, frozen)
    return frozen
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "18-1-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
def trained_for(steps: int, **options) -> VecKScore:
    """Return a wrapped CartPole that was played at random for some steps."""
    played = VecKScore(make_vec_env("CartPole-v1", n_envs=2, seed=1), **options)
    played.reset()
    for action in np.random.default_rng(1).integers(2, size=(steps, 2)):
        played.step(action)
    return played


teacher = trained_for(200)
frozen = to_evaluate_in("CartPole-v1", teacher)
assert isinstance(frozen, VecKScore), "return a VecKScore"
assert not frozen.training, "it must not learn"
assert frozen.num_envs == 1, "one lane"
frozen.reset()
assert frozen.step(np.array([0]))[1] == 1, "a step of CartPole pays 1, as it is"
### BEGIN HIDDEN TESTS
assert frozen.ret_rms.state_dict() == teacher.ret_rms.state_dict(), (
    "it should know what the training environment has learned of returns")
assert np.array_equal(frozen.obs_rms.mean, teacher.obs_rms.mean), (
    "observations should be normalized by what was learned in training")
plainly = to_evaluate_in("CartPole-v1", trained_for(50, norm_obs=False))
assert not plainly.norm_obs, "observations as in training: there they were left alone"
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 2 (apply).** A `VecKScore(..., normalizer="running")` has seen whole episodes with these `rewards`, one list for each. What will it divide the rewards of the next episode by? (Without `kscore`: the returns that it learns from, and their deviation, for which there is `np.std`.)

# %% tags=["stub"]
def next_divisor(rewards: list[list[float]], gamma: float) -> float:
    """Return what the rewards of the next episode are divided by."""


# %% nbgrader={"grade": false, "grade_id": "18-2", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def next_divisor(rewards: list[list[float]], gamma: float) -> float:
    """Return what the rewards of the next episode are divided by."""
    ### BEGIN SOLUTION
    learned = []
    for episode in rewards:
        G = 0.0
        for reward in reversed(episode):
            G = reward + gamma * G
            learned.append(G)
    return float(np.std(learned))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "18-2-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
assert next_divisor([[1.0, 3.0]], 1.0) is not None, "return a number"
assert np.isclose(next_divisor([[1.0, 3.0]], 1.0), 0.5), (
    "the returns are 4 and 3; their deviation is 0.5")
### BEGIN HIDDEN TESTS
for number in range(4):
    chance = np.random.default_rng(number)
    listed = [chance.normal(1, 2, size).tolist() for size in chance.integers(2, 9, 4)]
    library = RewardScaling("running", lanes=1, gamma=0.9)
    for episode in listed:
        for t, reward in enumerate(episode, start=1):
            library.step([reward], [t == len(episode)])
    found = 1 / library.step([1.0], [False]).item()
    assert np.isclose(next_divisor(listed, 0.9), found), (
        f"after episodes of {[len(one) for one in listed]} steps, discounted by 0.9, "
        f"the library divides by {found:.4f}")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 3 (think).** Each of `lanes` lanes begins with an episode of `length` steps. What share of a training of `steps` steps, counted over all lanes, has passed before an episode begins with a scale? Then give `hovering`, that share for a LunarLander that hovers until its time limit of 1,000 steps in 16 lanes, over the 131,072 steps of the study. What do more lanes do to it?

# %% tags=["stub"]
def share_without_scale(length: int, lanes: int, steps: int) -> float:
    """Return the share of the training in which no scale is known."""


hovering = None

# %% nbgrader={"grade": false, "grade_id": "18-3", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def share_without_scale(length: int, lanes: int, steps: int) -> float:
    """Return the share of the training in which no scale is known."""
    ### BEGIN SOLUTION
    # a step of all lanes is one step of the training for each of them
    return min(1.0, length * lanes / steps)
    ### END SOLUTION


hovering = None
### BEGIN SOLUTION
hovering = share_without_scale(1000, 16, 131_072)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "18-3-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
def counted(length: int, lanes: int, steps: int) -> float:
    """Count the rewards that are scaled before anything was learned."""
    chance, before = np.random.default_rng(0), 0
    library = RewardScaling("running", lanes=lanes)
    for step in range(1, steps // lanes + 1):
        before += lanes * (library.known.count == 0)
        library.step(chance.normal(size=lanes), np.full(lanes, step % length == 0))
    return before / steps


assert share_without_scale(10, 2, 100) is not None, "return a share"
assert np.isclose(share_without_scale(10, 2, 100), counted(10, 2, 100)), (
    "ten steps of two lanes are twenty steps of the training")
assert hovering is not None, "and `hovering`, for the LunarLander that hovers"
### BEGIN HIDDEN TESTS
for case in ((25, 4, 400), (7, 1, 70), (50, 4, 100), (20, 5, 1000)):
    assert np.isclose(share_without_scale(*case), counted(*case)), (
        f"length, lanes and steps {case}: {counted(*case):.3f} by counting")
assert np.isclose(hovering, 16_000 / 131_072, rtol=2e-3), (
    "1,000 steps, 16 lanes, 131,072 steps")
### END HIDDEN TESTS

# %% [markdown]
# **Exercise 4 (open: train a small study).** Is there something to see in the first steps, where `VecNormalize` has its spike? Train some arms of `trials` on CartPole with the settings of the study, but for `steps=steps` and `every=1024`, on several seeds. Return a table of the area of each run, the mean of its `returns`, whose index is the seeds and whose columns are the names of the arms.
# Then set `ahead` to the share of the seeds 3900, 3901 and 3902 on which `"veckscore"` has the larger area than `"vecnormalize"` over 2,048 steps. (And try more steps: does it last?)

# %% tags=["stub"]
def arm_study(names: list[str], numbers: list[int], steps: int) -> pd.DataFrame:
    """Return areas, a row for each seed and a column for each arm."""


ahead = None

# %% nbgrader={"grade": false, "grade_id": "18-4", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["solution", "hide-input"]
def arm_study(names: list[str], numbers: list[int], steps: int) -> pd.DataFrame:
    """Return areas, a row for each seed and a column for each arm."""
    ### BEGIN SOLUTION
    table = pd.DataFrame(index=list(numbers), columns=list(names), dtype=float)
    for name in names:
        config = replace(sb3_study.TrialConfig.preset("CartPole-v1", name), steps=steps,
                         every=1024)
        for one in numbers:
            record = sb3_study.train_trial(config, one)
            table.loc[one, name] = np.mean(record["returns"])
    return table
    ### END SOLUTION


ahead = None
### BEGIN SOLUTION
small = arm_study(["veckscore", "vecnormalize"], [3900, 3901, 3902], 2048)
ahead = float(np.mean(small["veckscore"] > small["vecnormalize"]))
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "18-4-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} tags=["check", "hide-input"]
def one_area(name: str, one: int, steps: int) -> float:
    """Return the area of one run of the small study."""
    config = replace(sb3_study.TrialConfig.preset("CartPole-v1", name), steps=steps,
                     every=1024)
    return float(np.mean(sb3_study.train_trial(config, one)["returns"]))


trial = arm_study(["raw"], [3900, 3901], 1024)
assert trial is not None, "return a table"
assert trial.shape == (2, 1), "a row for each seed, a column for each arm"
assert set(trial.index) == {3900, 3901}, "label the rows by seed"
assert np.isclose(trial.loc[3901, "raw"], one_area("raw", 3901, 1024)), (
    "each entry is the mean of `returns` of the run with its arm and seed, with the "
    "settings of the study but for steps and every=1024")
assert ahead is not None and 0 <= ahead <= 1, "a share of the seeds"
### BEGIN HIDDEN TESTS
other = arm_study(["buffer"], [3907], 1024).loc[3907, "buffer"]
assert np.isclose(other, one_area("buffer", 3907, 1024)), "any arms, seeds and lengths"
larger = [one_area("veckscore", one, 2048) > one_area("vecnormalize", one, 2048)
          for one in (3900, 3901, 3902)]
assert np.isclose(ahead, np.mean(larger)), (
    "on how many of the three seeds is VecKScore ahead after 2,048 steps?")
### END HIDDEN TESTS

# %% [markdown]
# ## Summary

# %% tags=["hide-input"]
Markdown(
    "**Answer.** One line of a script changes: `VecKScore` in place of "
    "`VecNormalize`, or a buffer inside PPO. Against `VecNormalize`, with PPO of "
    f"Stable-Baselines3 at equal settings (n = {n_runs} seeds per arm and task), "
    f"better by area: {'; '.join(told(BETTER)) or 'neither of ours on any task'}; "
    f"worse: {'; '.join(told(WORSE)) or 'neither on any task'}; in {untold} of "
    f"{len(judged)} comparisons it cannot be told. The differences: "
    + "; ".join(f"{labels[arm]} on {task.split('-')[0]} {found:z.0f}"
                for (task, arm), found in judged.difference.items())
    + f" (not adjusted for there being six, and with {n_runs} seeds somewhat too "
    "narrow; the smallest adjusted p of those that cannot be told is "
    f"{judged['adjusted p'][judged.verdict == UNTOLD].min():.3f}). That ours can stand "
    "in for VecNormalize without loss is not shown"
    + ". The first episode has no spike, and every episode has one divisor; in return "
    "nothing is known until an episode has ended.")

# %% tags=["hide-input"]
points = [
    f"A first reward of 1 leaves VecNormalize as {theirs.iloc[0]:.0f} before clipping, "
    f"and VecKScore as {ours.iloc[0]:.0f}; no reward of ours is beyond 2 while there "
    "is no scale.",
    "Within an episode all rewards are divided by the same number (checked to "
    f"{spread.max():.0e}).",
    "What is learned survives saving and loading, and `training = False` freezes it; "
    "evaluate with `norm_reward = False`.",
    f"On a pendulum that is never reset ours divides by {stuck[-1]:.1f} after "
    f"{len(stuck):,} steps, VecNormalize by {moving[-1]:.1f}: no episode, no scale.",
    "The buffer's centre on CartPole rose to "
    f"{max(watched[32].centres):.0f} with rollouts of 32 steps, where no return is "
    f"above {highest:.0f} (one run).",
    *(f"Rewards as they are on {task.split('-')[0]}: {one.difference:z.0f} against "
      f"VecNormalize (n = {one.n}; no test)." for task, one in plain.items()),
]
Markdown("\n".join(f"- {point}" for point in points))

# %% [markdown]
# **References.** A. Raffin, A. Hill, A. Gleave, A. Kanervisto, M. Ernestus and N. Dormann, *Stable-Baselines3: reliable reinforcement learning implementations*, Journal of Machine Learning Research 22 (2021).
# A. Raffin, *RL Baselines3 Zoo* (2020; the settings of the study are taken from it).
# M. Towers and others, *Gymnasium: a standard interface for reinforcement learning environments*, arXiv:2407.17032 (2024).
# J. Schulman, F. Wolski, P. Dhariwal, A. Radford and O. Klimov, *Proximal policy optimization algorithms*, arXiv:1707.06347 (2017).

# %%
chapter.footer()
