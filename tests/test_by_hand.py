"""The learner by hand: its physics are gymnasium's, its gradients are right, and its steps are the trainer's."""

import dataclasses

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
import torch

from kscore.labs import by_hand, by_hand_times
from kscore.labs.by_hand import Learner
from kscore.project import DATA
from kscore.rl import RunConfig, algorithms, environments
from kscore.rl.training import make_agent

NORMALIZERS = [{"name": "running"}, {"name": "kscore"}, {"name": "episode"}]


def test_the_cart_moves_as_gymnasiums_does():
    world, rng = gym.make("CartPole-v1"), np.random.default_rng(0)
    for seed in range(50):
        world.reset(seed=seed)
        state, done = list(world.unwrapped.state), False
        while not done:
            action = int(rng.integers(2))
            state, fallen = by_hand.push(state, action)
            _, _, done, _, _ = world.step(action)
            assert state == list(world.unwrapped.state) and fallen == done


def test_an_episode_ends_at_the_limit():
    """A policy that pushes against the lean for ever would balance; the one here does so by its two weights."""
    hidden = np.zeros((4, by_hand.HIDDEN))
    hidden[:, :2] = 10 * np.array([[0.1, -0.1], [0.2, -0.2], [1.0, -1.0], [1.0, -1.0]])
    out = np.zeros((by_hand.HIDDEN, 2))
    out[:2] = [[-9, 9], [9, -9]]
    policy = [hidden, np.zeros(by_hand.HIDDEN), out, np.zeros(2)]
    episode = by_hand.play(policy, np.random.default_rng(0))
    assert episode.states.shape == (500, 4) and episode.actions.shape == (500,)


def test_actions_are_drawn_from_the_policy(monkeypatch):
    monkeypatch.setattr(by_hand, "push", lambda state, action: (state, False))
    policy = by_hand.network(2, np.random.default_rng(1))
    policy[3][:] = [0.0, 1.0]
    taken = [by_hand.play(policy, np.random.default_rng(seed)) for seed in range(40)]
    right = np.mean([by_hand.probabilities(by_hand.forward(policy, e.states))[0, 1] for e in taken])
    assert abs(np.mean([e.actions.mean() for e in taken]) - right) < 4 * 0.5 / np.sqrt(40 * 500)


def test_returns_are_those_of_a_task_that_pays_one_a_step():
    assert np.allclose(by_hand.discounted(7, 0.9), algorithms.discounted_returns([1.0] * 7, 0.9))
    assert by_hand.discounted(3, 1.0).tolist() == [3, 2, 1]


# Gradients


def smooth_l1(x):
    return np.where(np.abs(x) < 1, x**2 / 2, np.abs(x) - 0.5)


def loss_of(learner, episode, targets, advantages):
    """The whole loss, from its definition."""
    logits = by_hand.forward(learner.policy, episode.states)
    chosen = np.log(by_hand.probabilities(logits))[np.arange(len(targets)), episode.actions]
    loss = -(chosen @ advantages) / (len(targets) if learner.policy_reduction == "mean" else 1)
    if learner.critic:
        loss += smooth_l1(by_hand.forward(learner.values, episode.states)[:, 0] - targets).mean()
    return loss


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("critic", [False, True])
def test_gradients_are_the_differences_of_the_loss(critic, reduction):
    learner = Learner(3, {"name": "running"}, {"name": "kscore"}, critic=critic, policy_reduction=reduction)
    episode = by_hand.play(learner.policy, learner.rng)
    targets, advantages = learner.scores(episode)
    rng, step = np.random.default_rng(5), 1e-6
    for weights, slopes in zip(learner.optimizer.weights, learner.gradient(episode, targets, advantages), strict=True):
        for at in rng.choice(weights.size, min(weights.size, 8), replace=False):
            values = []
            for change in (step, -2 * step):
                weights.flat[at] += change
                values.append(loss_of(learner, episode, targets, advantages))
            weights.flat[at] += step
            assert (values[0] - values[1]) / (2 * step) == pytest.approx(slopes.flat[at], rel=1e-5, abs=1e-7)


def test_adam_is_torchs():
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(3, 2)), rng.normal(size=2)]
    theirs = [torch.tensor(array, requires_grad=True) for array in weights]
    ours, peer = by_hand.Adam(weights, 0.03), torch.optim.Adam(theirs, lr=0.03)
    for _ in range(20):
        gradient = [rng.normal(size=array.shape) for array in weights]
        ours.step(gradient)
        for tensor, g in zip(theirs, gradient, strict=True):
            tensor.grad = torch.tensor(g)
        peer.step()
    for array, tensor in zip(weights, theirs, strict=True):
        assert np.allclose(array, tensor.detach().numpy(), rtol=1e-12, atol=1e-14)


# The trainer


def in_order(agent, of=lambda parameter: parameter.detach()):
    """The trainer's weights, or what `of` takes from them, in the order and the shapes of those by hand."""
    found = []
    for net in filter(None, (agent.actor, agent.critic)):
        first, last = net.hidden[0], net.last
        found += [of(first.weight), of(first.bias), of(last.weight).T, of(last.bias)]
    return found


@pytest.mark.parametrize("door", ["normalizer", "advantage_normalizer"])
@pytest.mark.parametrize("options", NORMALIZERS, ids=lambda options: options["name"])
@pytest.mark.parametrize("algorithm", by_hand_times.LEARNERS)
def test_an_update_is_the_trainers(algorithm, options, door):
    doors = {"normalizer": {"name": "none"}} | {door: options}
    config = dataclasses.replace(RunConfig.preset("CartPole-v1", algorithm), dropout=0.0, **doors)
    learner = Learner(7, **doors, critic=algorithm == "actor_critic")
    world = environments.make("CartPole-v1", 0)
    agent = make_agent(config, world.observation_size, world.actions, *map(np.random.default_rng, (0, 1)))
    normalize = algorithms.normalization(config)
    for _ in range(4):  # the later ones are judged by what the normalizers remember
        for theirs, ours in zip(in_order(agent), learner.optimizer.weights, strict=True):
            theirs.copy_(torch.from_numpy(ours))
        episode = by_hand.play(learner.policy, learner.rng)
        observations, rewards = episode.states.astype(np.float32), [1.0] * len(episode.actions)
        batch = algorithms.Batch.of([environments.Episode(observations, episode.actions, rewards, None)])
        getattr(algorithms, algorithm)(agent, batch, normalize, config)
        gradient = learner.gradient(episode, *learner.scores(episode))
        for theirs, ours in zip(in_order(agent, lambda parameter: parameter.grad), gradient, strict=True):
            assert np.allclose(theirs.numpy(), ours, rtol=1e-3, atol=1e-4 * np.abs(ours).max())
        learner.optimizer.step(gradient)


FEW = 8


@pytest.fixture(scope="module")
def few():
    return by_hand_times.table(FEW)


@pytest.mark.parametrize("learner", by_hand_times.LEARNERS)
def test_its_times_are_the_trainers(few, learner):
    found = by_hand_times.compare(few, learner)
    assert found.factor.n == FEW and found.p > 0.01 and 0.5 < found.factor.estimate < 2


@pytest.mark.parametrize("learner", by_hand_times.LEARNERS)
def test_the_recorded_times_are_of_a_hundred_seeds_and_agree(few, learner):
    recorded = pd.read_csv(DATA / "by_hand.csv")
    found = by_hand_times.compare(recorded, learner)
    assert found.factor.n == 100 and found.factor.low < 1 < found.factor.high
    both = recorded.merge(few, on=["learner", "code", "seed"])
    ours = both[both.code == "by hand"]  # the trainer's 32 bits are rounded differently by other processors
    assert len(ours) == 2 * FEW and (ours.episodes_x == ours.episodes_y).mean() > 0.5


def test_a_learner_that_takes_longer_is_seen():
    runs = pd.read_csv(DATA / "by_hand.csv")
    runs.loc[runs.code == "by hand", "episodes"] = (1.4 * runs.episodes).clip(upper=500).astype(int)
    for learner in by_hand_times.LEARNERS:
        found = by_hand_times.compare(runs, learner)
        assert found.factor.high < 1 and found.p < 0.05


# Runs


def test_a_seed_decides_a_run():
    first, again, other = (by_hand.train(Learner(seed, {"name": "running"}), 20) for seed in (1, 1, 2))
    assert first == again != other and len(first) == 20


def test_a_run_stops_when_it_has_solved_the_task():
    assert by_hand.solved([475] * 25) and not by_hand.solved([475] * 24) and not by_hand.solved([475] * 24 + [474])
    assert by_hand.solved([1] + [500] * 25) and by_hand.solved([20, 30], threshold=25, window=2)
    lengths = by_hand.train(Learner(0, {"name": "running"}), 500, threshold=40.0, window=5)
    assert 5 <= len(lengths) < 500 and sum(lengths[-5:]) >= 200 > sum(lengths[-6:-1])


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"learning_rate": 0.0}, "learning_rate must be positive, got 0.0"),
        ({"gamma": 1.5}, "gamma must be between 0 and 1, got 1.5"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"critic": 1}, "critic must be True or False, got 1"),
        ({"policy_reduction": "sun"}, "did you mean 'sum'"),
        ({"normalizer": {"name": "kscore", "R": 0.0}}, "R must be positive, got 0.0"),
        ({"normalizer": {"R": 1.0}}, "normalizer must be None or a dict with a 'name'"),
    ],
)
def test_a_bad_setting_gets_a_sentence(settings, words):
    with pytest.raises(ValueError, match=words):
        Learner(**{"seed": 0} | settings)
