"""The trainer: forward passes, gradients, signals, environments, stopping, and runs that repeat."""

import dataclasses
import json
import math

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

from kscore import normalizers
from kscore.rl import PROTOCOL_VERSION, RunConfig, algorithms, environments, train, training
from kscore.rl.algorithms import Adam, Agent, Batch, Normalization, discounted_returns, gae_advantages
from kscore.rl.environments import Episode
from kscore.rl.networks import Dropout, Forward, Memory, Network
from kscore.rl.policies import Categorical, Policy


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def one_thread():
    """As in `train`: these networks are too small for more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def away_from_start(memory, size=0.1):
    memory.parameters += size * torch.from_numpy(rng(8).normal(size=len(memory.parameters)))


def network(sizes, activation, dtype=torch.float32):
    """A network with every parameter away from where it starts."""
    memory = Memory(Network.size(sizes, activation), dtype)
    made = Network(sizes, activation, rng(), memory)
    away_from_start(memory)
    return made


def tiny_agent(activation="prelu", learning_rate=1e-3):
    """An agent in double precision, without dropout of its own."""
    shapes = [(4, 6, 5, 3), (4, 6, 5, 1)]
    memory = Memory(sum(Network.size(shape, activation) for shape in shapes), torch.float64)
    actor, critic = (Network(shape, activation, rng(7), memory) for shape in shapes)
    away_from_start(memory, 0.3)
    head = Categorical(gym.spaces.Discrete(3), memory)
    return Agent(actor, head, critic, memory, Dropout(0.0, (6, 5), rng(9)), Adam(memory, learning_rate))


def tiny_episode(steps=12, dropout=0.5):
    masks = Dropout(dropout, (6, 5), rng(3)).draw(steps)
    return Episode(
        rng(1).normal(size=(steps, 4)),
        rng(2).integers(3, size=steps),
        rng(4).normal(size=steps).tolist(),
        masks and [mask.astype(float) for mask in masks],
    )


def tiny_batch(steps=12, dropout=0.5):
    return Batch.of([tiny_episode(steps, dropout)])


def discrete_policy(actor):
    count = len(actor.last.bias)
    return Policy(actor, Categorical(gym.spaces.Discrete(count), Memory(0)))


def tiny_config(**changes):
    fields = {"env": "CartPole-v1", "algorithm": "ppo", "threshold": None, "hidden": (8,), "max_episodes": 5}
    return RunConfig(**{**fields, **changes})


def numerical_gradient(function, parameters, step=1e-6):
    gradient = np.zeros_like(parameters)
    for i in range(len(parameters)):
        kept = parameters[i]
        parameters[i] = kept + step
        above = function()
        parameters[i] = kept - step
        gradient[i] = (above - function()) / (2 * step)
        parameters[i] = kept
    return gradient


# Networks


def as_modules(made):
    """The same network as torch's own modules, with copies of its parameters."""
    modules = []
    for layer in (*made.hidden, made.last):
        weight = layer.weight if layer is made.last else layer.weight.T
        linear, prelu = nn.Linear(*weight.T.shape, dtype=weight.dtype), nn.PReLU(dtype=weight.dtype)
        linear.weight, linear.bias = nn.Parameter(weight.detach().clone()), nn.Parameter(layer.bias.detach().clone())
        if layer.slope is not None:
            prelu.weight = nn.Parameter(layer.slope.detach().clone())
        modules += [linear, nn.ReLU() if layer.slope is None else prelu]
    return nn.Sequential(*modules[:-1])


@pytest.mark.parametrize("activation", ["relu", "prelu"])
@pytest.mark.parametrize("hidden", [(), (128,), (128, 64)])
def test_forward_in_torch_and_numpy_is_that_of_torchs_modules(activation, hidden):
    made = network((4, *hidden, 3), activation)
    x = rng(5).normal(size=(20, 4)).astype(np.float32)
    with torch.no_grad():
        expected, ours = (forward(torch.from_numpy(x)).numpy() for forward in (as_modules(made), made))
    outputs, tolerance = Forward(made), 1e-6 * max(1, np.abs(expected).max())
    assert np.abs(ours - expected).max() < tolerance
    for row, logits in zip(x, expected, strict=True):
        assert np.abs(outputs(row) - logits).max() < tolerance


@pytest.mark.parametrize("slope", [-0.5, 0.3, 1.5])
def test_forward_under_dropout_is_the_same_for_one_and_for_many(slope):
    made = network((4, 32, 16, 2), "prelu")
    made.hidden[0].slope.data.fill_(slope)
    x = rng(5).normal(size=(20, 4)).astype(np.float32)
    masks = Dropout(0.3, (32, 16), rng(6)).draw(20)
    outputs, expected = Forward(made), made(torch.from_numpy(x), masks).detach().numpy()
    for i in range(20):
        assert np.allclose(outputs(x[i], [mask[i] for mask in masks]), expected[i], atol=1e-6)


@pytest.mark.parametrize("activation", ["relu", "prelu"])
def test_backward_is_that_of_torchs_modules(activation):
    made = network((4, 16, 8, 3), activation, torch.float64)
    x, weights = torch.from_numpy(rng(5).normal(size=(30, 4))), torch.from_numpy(rng(6).normal(size=(30, 3)))
    modules = as_modules(made)
    for forward in (made, modules):
        (forward(x) * weights).sum().backward()
    ours = [
        p.grad for layer in (*made.hidden, made.last) for p in (layer.weight, layer.bias, layer.slope) if p is not None
    ]
    for gradient, parameter in zip(ours, modules.parameters(), strict=True):
        gradient = gradient if gradient.shape == parameter.shape else gradient.T
        assert torch.allclose(gradient, parameter.grad)


def test_what_the_optimizer_writes_the_policy_sees_at_once():
    memory = Memory(Network.size((4, 8, 2), "prelu"))
    outputs = Forward(Network((4, 8, 2), "prelu", rng(), memory))
    memory.parameters.fill_(1.0)
    assert outputs(np.ones(4, np.float32)).tolist() == [41.0, 41.0]  # 8 hidden units of 4 + 1, then + 1


def test_new_networks_are_xavier_normal_with_zero_biases():
    memory = Memory(Network.size((200, 300, 2), "prelu"))
    made = Network((200, 300, 2), "prelu", rng(), memory)
    weights = made.hidden[0].weight
    assert abs(weights.std() / math.sqrt(2 / 500) - 1) < 0.01 and abs(weights.mean()) < 0.001
    assert (made.hidden[0].bias == 0).all() and (made.last.bias == 0).all() and made.hidden[0].slope == 0.25


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_keeps_the_mean(p):
    first, second = Dropout(p, (128, 64), rng()).draw(3000)
    assert first.shape == (3000, 128) and second.shape == (3000, 64)
    assert np.unique(first).tolist() == pytest.approx([0, 1 / (1 - p)], abs=1e-4)
    assert abs((first == 0).mean() - p) < 0.003 and abs(first.mean() - 1) < 0.005


def test_actions_follow_the_softmax():
    made = network((4, 8, 3), "relu")
    policy, x = discrete_policy(made), np.ones(4, np.float32)
    logits = policy.outputs(x).copy()
    gumbel = rng().gumbel(size=(20000, 3)).astype(np.float32)
    counts = np.bincount([policy.sample(x, None, g) for g in gumbel], minlength=3)
    assert np.allclose(counts / 20000, np.exp(logits) / np.exp(logits).sum(), atol=0.015)
    assert policy.greedy(x) == logits.argmax()


# Signals


def test_discounted_returns_and_gae_against_double_loops():
    rewards, values, gamma, lam = rng().normal(size=30).tolist(), rng(1).normal(size=30), 0.9, 0.7
    T = len(rewards)
    G = [sum(gamma ** (k - t) * rewards[k] for k in range(t, T)) for t in range(T)]
    delta = [rewards[t] + gamma * (values[t + 1] if t + 1 < T else 0) - values[t] for t in range(T)]
    A = [sum((gamma * lam) ** (k - t) * delta[k] for k in range(t, T)) for t in range(T)]
    assert np.allclose(discounted_returns(rewards, gamma), G)
    assert np.allclose(gae_advantages(rewards, values, gamma, lam), A)
    assert np.allclose(gae_advantages(rewards, values, gamma, 1.0), np.array(G) - values)  # Monte Carlo
    assert np.allclose(gae_advantages(rewards, values, gamma, 0.0), delta)  # one-step temporal difference


def test_with_none_nothing_touches_the_returns(monkeypatch):
    seen = {}
    original = algorithms.policy_loss
    monkeypatch.setattr(
        algorithms,
        "policy_loss",
        lambda log_probs, advantages, *rest: (
            seen.update(advantages=advantages) or original(log_probs, advantages, *rest)
        ),
    )
    episode, config = tiny_episode(), tiny_config(algorithm="reinforce", normalizer={"name": "none"})
    algorithms.reinforce(tiny_agent(), Batch.of([episode]), algorithms.normalization(config), config)
    assert (seen["advantages"] == discounted_returns(episode.rewards, 0.99)).all()


FILTER = {"name": "kscore", "Q": 0.1, "R": 2.0}
SIGNAL = rng(11).normal(3, 2, 12)


def filtered(signal=SIGNAL):
    return normalizers.make(**FILTER)(signal)


def zscored(signal):
    return normalizers.make("zscore")(signal)


@pytest.mark.parametrize(
    ("settings", "returns", "advantages"),
    [
        ({}, filtered(), SIGNAL),
        ({"normalize_advantages": True}, filtered(), zscored(SIGNAL)),
        ({"signal": "advantages"}, SIGNAL, filtered()),
        ({"signal": "advantages", "normalize_advantages": True}, SIGNAL, zscored(filtered())),
        ({"advantage_normalizer": {"name": "running"}}, filtered(), normalizers.make("running")(SIGNAL)),
    ],
    ids=["neither", "zscored", "moved", "moved and zscored", "one at each"],
)
def test_the_settings_say_what_stands_at_which_door(settings, returns, advantages):
    doors = algorithms.normalization(tiny_config(normalizer=FILTER, **settings))
    assert np.array_equal(doors.returns(SIGNAL, [12]), returns)
    assert np.array_equal(doors.advantages(SIGNAL, [12]), advantages)


# Losses and gradients


def loss_of(name, agent, batch, A, old, config):
    if name == "value":
        return algorithms.value_loss(agent.values(batch), A, config)
    log_probs = agent.log_probs(batch, batch.masks)
    if name == "policy":
        return algorithms.policy_loss(log_probs, A, config)
    weights = torch.as_tensor(A, dtype=log_probs.dtype)
    return algorithms.clipped_loss(log_probs, old, weights, algorithms.clip_bounds(weights, config.clip), config)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("activation", ["relu", "prelu"])
@pytest.mark.parametrize("name", ["policy", "clipped", "value"])
def test_gradients_against_finite_differences(name, activation, reduction):
    agent, batch = tiny_agent(activation), tiny_batch()
    config = tiny_config(policy_reduction=reduction, value_reduction=reduction)
    A = rng(5).normal(size=12)
    old = agent.log_probs(batch, batch.masks).detach() + torch.from_numpy(rng(6).normal(0, 0.2, 12))
    loss_of(name, agent, batch, A, old, config).backward()
    with torch.no_grad():
        expected = numerical_gradient(
            lambda: loss_of(name, agent, batch, A, old, config).item(), agent.memory.parameters.numpy()
        )
    assert np.abs(expected).max() > 0.01
    assert np.allclose(agent.memory.gradient, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.1, 2.0, -2.2, -2.2),
        (1.5, 2.0, -2.4, 0.0),
        (0.5, 2.0, -1.0, -1.0),
        (0.9, -2.0, 1.8, 1.8),
        (0.5, -2.0, 1.6, 0.0),
        (1.5, -2.0, 3.0, 3.0),
    ],
)
def test_clipped_loss_by_hand(ratio, advantage, loss, slope):
    """Clipping at 0.2 takes away what is gained by going further, never what is lost."""
    log_prob = torch.tensor([math.log(ratio)], dtype=torch.float64, requires_grad=True)
    config, weights = tiny_config(), torch.tensor([advantage], dtype=log_prob.dtype)
    bounds = algorithms.clip_bounds(weights, config.clip)
    computed = algorithms.clipped_loss(log_prob, torch.zeros_like(log_prob), weights, bounds, config)
    computed.backward()
    assert computed.item() == pytest.approx(loss) and log_prob.grad.item() == pytest.approx(slope)


@pytest.mark.parametrize("algorithm", ["reinforce", "actor_critic", "gae", "ppo"])
def test_algorithms_descend_their_losses_with_the_signals_held_fixed(algorithm):
    agent, batch = tiny_agent(), tiny_batch(dropout=0.0)
    parameters, config = agent.memory.parameters.numpy(), tiny_config(algorithm=algorithm, epochs=1)
    held = {}
    hold = Normalization(
        lambda x, _: x, lambda x, _: held.setdefault("targets", x), lambda x, _: held.setdefault("advantages", x)
    )
    before = parameters.copy()
    algorithms.ALGORITHMS[algorithm](agent, batch, hold, config)
    parameters[:] = before

    def loss():
        total = algorithms.policy_loss(agent.log_probs(batch, None), held["advantages"], config)
        if algorithm != "reinforce":
            total = total + algorithms.value_loss(agent.values(batch), held["targets"], config)
        return total.item()

    with torch.no_grad():
        assert np.allclose(agent.memory.gradient, numerical_gradient(loss, parameters), atol=1e-6)


def test_first_epoch_of_ppo_without_dropout_is_the_plain_policy_gradient():
    config = tiny_config(epochs=1, normalize_advantages=True)
    updated = []
    for update in (algorithms.ppo, algorithms.actor_critic):
        agent = tiny_agent()
        update(agent, tiny_batch(dropout=0.0), algorithms.normalization(config), config)
        updated.append(agent.memory.parameters)
    assert torch.allclose(*updated, atol=1e-12)


def test_adam_takes_the_steps_of_torchs_class():
    memory, theirs = Memory(50), torch.zeros(50)
    ours, optimizer = Adam(memory, 0.01), torch.optim.Adam([theirs], lr=0.01)
    for i in range(20):
        theirs.grad = memory.gradient.copy_(torch.from_numpy(rng(i).normal(size=50))).clone()
        ours.step()
        optimizer.step()
    assert torch.allclose(memory.parameters, theirs, atol=1e-6)


def test_actor_critic_reuses_the_masks_of_acting_and_ppo_draws_new_ones_every_epoch(monkeypatch):
    used, original = [], Agent.log_probs
    monkeypatch.setattr(
        Agent, "log_probs", lambda agent, batch, masks: used.append(masks) or original(agent, batch, masks)
    )
    normalize, batch = algorithms.normalization(tiny_config()), tiny_batch()
    agent = dataclasses.replace(tiny_agent(), dropout=Doubles(0.5, (6, 5), rng(9)))
    algorithms.actor_critic(agent, batch, normalize, tiny_config())
    algorithms.ppo(agent, batch, normalize, tiny_config(epochs=3))
    assert [masks is batch.masks for masks in used] == [True, True, False, False, False]
    assert len({masks[0].tobytes() for masks in used}) == 4


class Doubles(Dropout):
    def draw(self, batch):
        return [mask.astype(float) for mask in super().draw(batch)]


# Environments


class Corridor(gym.Env):
    """Pays 1 a step and never ends by itself; actions are 5 and 6, observations doubles."""

    action_space = gym.spaces.Discrete(2, start=5)
    observation_space = gym.spaces.Box(-1, 1, (3,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 3), {}

    def step(self, action):
        assert action in (5, 6)
        return self.np_random.uniform(-1, 1, 3), 1.0, False, False, {}


class Pictures(Corridor):
    observation_space = gym.spaces.Box(0, 255, (8, 8, 3), np.uint8)


class Drawers(Corridor):
    observation_space = gym.spaces.Dict({"seen": gym.spaces.Discrete(3)})


class Album(Corridor):
    observation_space = gym.spaces.Tuple([gym.spaces.Discrete(3), gym.spaces.Box(0, 1, (2,))])


class Levers(Corridor):
    action_space = gym.spaces.MultiDiscrete([2, 3])


class Grid(Corridor):
    action_space = gym.spaces.Box(-1, 1, (2, 2))


class Steps(Corridor):
    action_space = gym.spaces.Box(0, 9, (2,), np.int64)


gym.register("Corridor-v0", Corridor, max_episode_steps=70)
gym.register("Endless-v0", Corridor)
for toy in (Pictures, Drawers, Album, Levers, Grid, Steps):
    gym.register(f"{toy.__name__}-v0", toy, max_episode_steps=70)


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ("Pictures-v0", "flat Box of numbers as observation"),
        ("Drawers-v0", r"flat Box of numbers.*has Dict\("),
        ("Album-v0", r"flat Box of numbers.*has Tuple\(Discrete\(3\), Box"),
        ("Levers-v0", r"discrete actions or a flat Box of real numbers.*MultiDiscrete\(\[2 3\]\)"),
        ("Grid-v0", r"discrete actions or a flat Box of real numbers.*\(2, 2\)"),
        ("Steps-v0", "discrete actions or a flat Box of real numbers.*int64"),
        ("Endless-v0", "time limit"),
        ("CartPole", "name its version.*CartPole means CartPole-v1 here"),
        ("CartPole-v999", "gymnasium can make"),
        ("no such env", "gymnasium can make"),
        ("no_such_module:Env-v0", "gymnasium can make"),
        (":Env-v0", "gymnasium can make"),
        ("a:b:c", "gymnasium can make"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*unversioned environment:UserWarning")
def test_what_cannot_work_is_refused_with_the_reason(env, reason):
    with pytest.raises(ValueError, match=reason):
        tiny_config(env=env)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_an_episode_at_the_time_limit_just_ends(dropout):
    """No bootstrapping: the last return is the last reward (P9)."""
    environment = environments.make("Corridor-v0", 0)
    made = network((3, 8, 2), "relu")
    episode = environments.play(environment, discrete_policy(made), rng(), Dropout(dropout, (8,), rng()))
    assert episode.observations.shape == (70, 3) and episode.observations.dtype == np.float32
    assert set(episode.actions) == {0, 1} and episode.rewards == [1.0] * 70
    assert episode.masks is None if dropout == 0 else episode.masks[0].shape == (70, 8)
    returns = discounted_returns(episode.rewards, 0.99)
    assert returns[-1] == 1 and returns[0] == pytest.approx((1 - 0.99**70) / 0.01)
    assert environments.evaluate(environment, discrete_policy(made)) == (70.0, 70)


class Tariff(Corridor):
    """Pays what the action costs: -1 for action 5, -3 for action 6."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, float(9 - 2 * action), *rest


gym.register("Tariff-v0", Tariff, max_episode_steps=70)


def test_evaluation_is_the_undiscounted_sum_of_rewards():
    class Always:
        def __init__(self, action):
            self.greedy = lambda observation: action

    environment = environments.make("Tariff-v0", seed=0)
    assert environments.evaluate(environment, Always(0)) == (-70.0, 70)
    assert environments.evaluate(environment, Always(1)) == (-210.0, 70)


class Cut(Corridor):
    """Cut off by itself, or at its end, after nine steps."""

    def __init__(self, truncated):
        self.truncated = truncated

    def reset(self, **options):
        self.left = 9
        return super().reset(**options)

    def step(self, action):
        self.left -= 1
        observation, reward, *_ = super().step(action)
        over = self.left == 0
        return observation, reward, over and not self.truncated, over and self.truncated, {}


gym.register("Cut-v0", Cut, max_episode_steps=70, kwargs={"truncated": True})
gym.register("Ended-v0", Cut, max_episode_steps=70, kwargs={"truncated": False})


@pytest.mark.parametrize("env", ["Cut-v0", "Ended-v0"])
def test_an_episode_that_is_cut_off_or_at_its_end_is_over(env):
    environment, policy = environments.make(env, 0), discrete_policy(network((3, 8, 2), "relu"))
    episode = environments.play(environment, policy, rng(), Dropout(0.5, (8,), rng()))
    assert episode.rewards == [1.0] * 9 and len(episode.observations) == len(episode.actions) == 9
    assert episode.masks[0].shape == (9, 8)
    assert environments.evaluate(environment, policy) == (9.0, 9)


def test_recorded_masks_are_those_the_actions_were_chosen_with():
    environment, made = environments.make("CartPole-v1", 0), network((4, 128, 2), "relu")
    episode = environments.play(environment, discrete_policy(made), rng(1), Dropout(0.5, (128,), rng()))
    gumbel = np.concatenate([rng(1).gumbel(size=(environments.BLOCK, 2))])[: len(episode.actions)]
    logits = made(torch.from_numpy(episode.observations), episode.masks).detach().numpy()
    steps = min(len(gumbel), len(logits))
    assert ((logits[:steps] + gumbel[:steps]).argmax(axis=1) == episode.actions[:steps]).all()


@pytest.mark.parametrize("env", ["Acrobot-v1", "MountainCar-v0", "Corridor-v0", "Pendulum-v1"])
def test_other_environments_train(env):
    record = train(tiny_config(env=env, max_episodes=2), 0)
    assert record["episodes"] == 2 and record["status"] == "censored"


# Configurations


def test_presets_are_the_released_settings():
    cart, lunar = (RunConfig.preset(env, "ppo") for env in ("CartPole-v1", "LunarLander-v3"))
    assert (cart.hidden, cart.activation, cart.dropout, cart.learning_rate) == ((128,), "relu", 0.5, 0.01)
    assert (lunar.hidden, lunar.activation, lunar.dropout, lunar.learning_rate) == ((128, 128), "prelu", 0.1, 0.0005)
    assert (cart.threshold, cart.max_episodes, lunar.threshold, lunar.max_episodes) == (475, 500, 200, 1500)
    assert (cart.policy_reduction, lunar.policy_reduction, cart.value_reduction) == ("sum", "mean", "mean")
    assert (cart.gamma, cart.lam, cart.epochs, cart.clip, cart.window) == (0.99, 0.99, 5, 0.2, 25)
    flags = {
        (env, algorithm): RunConfig.preset(env, algorithm).normalize_advantages
        for env in ("CartPole-v1", "LunarLander-v3")
        for algorithm in algorithms.ALGORITHMS
    }
    off = {key for key, flag in flags.items() if not flag}
    assert off == {("CartPole-v1", "reinforce"), ("CartPole-v1", "actor_critic"), ("LunarLander-v3", "reinforce")}
    assert cart.normalizer == {"name": "zscore", "eps": 1e-8}


@pytest.mark.parametrize(
    "bad",
    [
        {"algorithm": "a2c"},
        {"normalizer": {"name": "zsocre"}},
        {"normalizer": "zscore"},
        {"signal": "rewards"},
        {"gamma": 1.5},
        {"lam": -1},
        {"epochs": 0},
        {"epochs": 2.0},
        {"clip": 0},
        {"learning_rate": math.nan},
        {"hidden": (0,)},
        {"activation": "tanh"},
        {"dropout": 1.0},
        {"threshold": "high"},
        {"criterion": "test"},
        {"hidden": 128},
        {"hidden": None},
        {"env": 5},
        {"env": []},
        {"dropout": -1},
        {"window": 0},
        {"full_window": 1},
        {"evaluate_every": 0},
        {"max_episodes": True},
        {"policy_reduction": "max"},
        {"value_reduction": None},
        {"normalize_advantages": "yes"},
        {"hidden": "128"},
        {"threshold": math.inf},
        {"gamma": -0.1},
        {"lam": 1.1},
        {"learning_rate": 0},
        {"learning_rate": -1.0},
        {"clip": -0.2},
        {"normalizer": {}},
    ],
)
def test_a_bad_field_is_an_error_at_once(bad):
    with pytest.raises(ValueError, match=f"^{next(iter(bad))} must .*got"):
        tiny_config(**bad)


@pytest.mark.parametrize(
    "edge",
    [
        {"gamma": 0},
        {"gamma": 1},
        {"lam": 0},
        {"lam": 1},
        {"dropout": 0},
        {"hidden": []},
        {"threshold": None},
        {"max_episodes": 1},
        {"window": 1},
        {"epochs": 1},
    ],
)
def test_the_edges_of_what_is_allowed_are_allowed(edge):
    ((name, value),) = edge.items()
    stored = getattr(tiny_config(**edge), name)
    assert stored == (tuple(value) if name == "hidden" else value)


def test_bounds_of_a_fraction_are_said_together():
    with pytest.raises(ValueError, match="dropout must be at least 0 and less than 1, got -1"):
        tiny_config(dropout=-1)


def test_numbers_of_numpy_are_plain_in_a_config():
    config = tiny_config(normalizer={"name": "kscore", "R": np.int64(1), "Q": np.float32(0.5)})
    assert config == tiny_config(normalizer={"name": "kscore", "R": 1, "Q": 0.5})
    assert {type(value) for value in config.normalizer.values()} == {str, float}


def test_a_dropout_of_nearly_one_trains():
    assert train(tiny_config(dropout=0.999999, max_episodes=2), 0)["status"] == "censored"


def test_a_policy_without_hidden_layers_trains_whatever_its_dropout():
    assert train(tiny_config(hidden=(), dropout=0.5, max_episodes=2), 0)["status"] == "censored"


def test_a_config_survives_json():
    config = RunConfig.preset("LunarLander-v3", "gae")
    assert RunConfig(**json.loads(json.dumps(config.to_dict()))) == config


# Runs


def without_seconds(record):
    return {key: value for key, value in record.items() if key not in ("seconds", "cpu_seconds")}


@pytest.mark.parametrize("algorithm", algorithms.ALGORITHMS)
def test_a_run_repeats_and_is_json(algorithm):
    config = tiny_config(algorithm=algorithm)
    first, second, other = train(config, 3), train(config, 3), train(config, 4)
    assert without_seconds(first) == without_seconds(second) == json.loads(json.dumps(without_seconds(first)))
    assert first["train_returns"] != other["train_returns"]
    assert first["steps"] == sum(first["train_returns"]) + sum(first["eval_returns"])  # CartPole pays 1 a step


def test_a_seed_of_numpy_is_plain_in_the_record():
    record = train(tiny_config(max_episodes=1), np.int64(3))
    assert json.loads(json.dumps(record))["seed"] == 3
    with pytest.raises(ValueError, match="^seed must be a whole number of at least 0 .*got -1"):
        train(tiny_config(), -1)


def test_evaluating_less_often_does_not_change_training():
    every, third = (train(tiny_config(max_episodes=12, evaluate_every=n), 0) for n in (1, 3))
    assert every["train_returns"] == third["train_returns"]
    assert len(every["eval_returns"]) == 12 and len(third["eval_returns"]) == 4


def test_a_run_that_goes_on_notes_when_it_arrived_and_is_the_same_until_then():
    stopped, gone_on = (
        train(tiny_config(threshold=5.0, window=3, max_episodes=12, stop=stop), 0) for stop in (True, False)
    )
    assert stopped["status"] == gone_on["status"] == "solved"
    assert stopped["solved_at"] == gone_on["solved_at"]
    assert stopped["solved_at"]["evaluation"] == stopped["episodes"] == 3
    assert gone_on["episodes"] == 12 and len(gone_on["eval_returns"]) == 12
    assert gone_on["eval_returns"][:3] == stopped["eval_returns"]
    never = train(tiny_config(threshold=501.0, max_episodes=4, stop=False), 0)
    assert never["status"] == "censored" and not never["solved"]


def test_progress_sees_every_episode():
    seen = []

    def watch(history, policy):
        action = policy.greedy(np.zeros(4))
        seen.append((history.episodes, history.train_returns[-1], len(history.eval_returns), action))

    record = train(tiny_config(evaluate_every=2), 0, progress=watch)
    episodes, returns, evaluations, actions = map(list, zip(*seen, strict=True))
    assert episodes == [1, 2, 3, 4, 5] and evaluations == [0, 1, 1, 2, 2]
    assert returns == record["train_returns"]
    assert set(actions) <= {0, 1}


def test_train_uses_one_thread_and_restores_the_setting():
    seen = []
    torch.set_num_threads(2)
    train(tiny_config(max_episodes=1), 0, progress=lambda *_: seen.append(torch.get_num_threads()))
    assert seen == [1] and torch.get_num_threads() == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"learning_rate": 1e30},
        {"learning_rate": 1e30, "signal": "advantages"},
        {"learning_rate": 1e30, "algorithm": "reinforce"},
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_diverging_run_says_so(changes):
    record = train(tiny_config(**changes), 0)
    assert record["status"] == "diverged" and not record["solved"] and "not finite" in record["reason"]
    assert 1 <= record["episodes"] == len(record["train_returns"])
    json.dumps(record, allow_nan=False)


class Broken(Corridor):
    """Pays `reward` from the 60th step of an environment's life on."""

    def __init__(self, reward):
        self.reward, self.steps = reward, 0

    def step(self, action):
        self.steps += 1
        observation, reward, *rest = super().step(action)
        return observation, reward if self.steps < 60 else self.reward, *rest


gym.register("NaN-v0", Broken, max_episode_steps=20, kwargs={"reward": math.nan})
gym.register("Infinite-v0", Broken, max_episode_steps=20, kwargs={"reward": math.inf})
gym.register("Huge-v0", Broken, max_episode_steps=20, kwargs={"reward": 1e200})


@pytest.mark.parametrize("algorithm", algorithms.ALGORITHMS)
@pytest.mark.parametrize("signal", ["returns", "advantages"])
@pytest.mark.parametrize(
    ("env", "reason", "episodes"),
    [
        ("NaN-v0", "training episode is not finite", 2),
        ("Infinite-v0", "training episode is not finite", 2),
        ("Huge-v0", "normalizer refused", 3),
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rewards_that_are_not_numbers_to_learn_from_end_the_run(env, reason, episodes, algorithm, signal):
    record = train(tiny_config(env=env, algorithm=algorithm, signal=signal), 0)
    assert record["status"] == "diverged" and reason in record["reason"] and record["episodes"] == episodes
    json.dumps(record, allow_nan=False)


@pytest.mark.parametrize("returned", [math.nan, math.inf, -math.inf])
def test_an_evaluation_that_is_not_finite_ends_the_run_and_is_left_out(monkeypatch, plain_loop, returned):
    evaluations = iter([(12.0, 12), (returned, 7)])
    monkeypatch.setattr(environments, "evaluate", lambda *_: next(evaluations))
    record = train(tiny_config(), 0)
    assert record["status"] == "diverged" and record["reason"] == "the return of an evaluation episode is not finite"
    assert record["episodes"] == 2 and record["eval_returns"] == [12.0] and record["eval_steps"] == 12


def test_huge_rewards_without_a_normalizer_end_the_run_by_the_loss():
    record = train(tiny_config(env="Huge-v0", algorithm="reinforce", normalizer={"name": "none"}), 0)
    assert record["status"] == "diverged" and record["reason"]


def test_stopping_rule():
    full = tiny_config(threshold=10.0, window=3)
    released = dataclasses.replace(full, full_window=False)
    assert not training.arrived([], released) and not training.arrived([20.0, 20.0], full)
    assert training.arrived([20.0], released) and training.arrived([0.0, 10.0, 10.0, 10.0], full)
    assert not training.arrived([9.0, 10.0, 10.0], full)
    assert not training.arrived([20.0] * 9, dataclasses.replace(full, threshold=None))


def test_runs_stop_by_their_criterion_and_record_both():
    config = tiny_config(threshold=9.0, window=2, max_episodes=50)
    runs = {
        criterion: train(dataclasses.replace(config, criterion=criterion), 1)
        for criterion in ("evaluation", "training", "both")
    }
    for criterion in ("evaluation", "training"):
        assert (
            runs[criterion]["episodes"]
            == runs[criterion]["solved_at"][criterion]
            == runs["both"]["solved_at"][criterion]
        )
    assert runs["both"]["episodes"] == max(runs["both"]["solved_at"].values())
    assert all(run["solved"] for run in runs.values())


def test_training_learns_cartpole():
    config = dataclasses.replace(RunConfig.preset("CartPole-v1", "ppo"), max_episodes=150, threshold=195.0)
    assert train(config, 0)["solved"]


NORMALIZERS = {
    "none": {"name": "none"},
    "zscore": {"name": "zscore"},
    "running": {"name": "running"},
    "ema": {"name": "ema"},
    "simple stream": {"name": "kscore"},
    "adaptive refit": {"name": "kscore", "variant": "adaptive", "mode": "refit", "Q": 0.1, "R": 1.0},
    "adaptive innovation": {"name": "kscore", "variant": "adaptive", "mode": "innovation", "Q": 0.1, "R": 1.0},
}

PINNED = {  # six training returns, then six evaluation returns
    ("reinforce", "none"): [22, 42, 48, 29, 34, 32, 53, 91, 33, 19, 15, 26],
    ("reinforce", "zscore"): [22, 40, 37, 33, 43, 45, 10, 115, 119, 500, 144, 89],
    ("reinforce", "running"): [22, 14, 24, 25, 44, 72, 10, 9, 54, 91, 104, 500],
    ("reinforce", "ema"): [22, 14, 24, 25, 44, 72, 10, 9, 53, 89, 100, 500],
    ("reinforce", "simple stream"): [22, 15, 26, 23, 39, 72, 10, 9, 63, 393, 151, 244],
    ("reinforce", "adaptive refit"): [22, 40, 113, 32, 41, 11, 160, 91, 114, 116, 95, 11],
    ("reinforce", "adaptive innovation"): [22, 24, 39, 87, 23, 41, 117, 90, 112, 95, 101, 127],
    ("actor_critic", "none"): [22, 45, 44, 29, 23, 41, 53, 91, 119, 44, 24, 56],
    ("actor_critic", "zscore"): [22, 20, 20, 22, 17, 21, 10, 9, 8, 9, 8, 10],
    ("actor_critic", "running"): [22, 19, 28, 25, 31, 26, 10, 9, 10, 10, 43, 198],
    ("actor_critic", "ema"): [22, 19, 30, 21, 63, 45, 10, 9, 8, 37, 60, 105],
    ("actor_critic", "simple stream"): [22, 20, 20, 22, 27, 85, 10, 9, 8, 9, 8, 10],
    ("actor_critic", "adaptive refit"): [22, 45, 38, 129, 53, 25, 160, 105, 151, 500, 215, 197],
    ("actor_critic", "adaptive innovation"): [22, 42, 33, 96, 20, 41, 125, 122, 123, 500, 147, 222],
    ("gae", "none"): [22, 45, 44, 29, 23, 41, 53, 91, 122, 42, 23, 55],
    ("gae", "zscore"): [22, 20, 20, 22, 64, 44, 10, 9, 8, 9, 8, 239],
    ("gae", "running"): [22, 20, 20, 22, 25, 24, 10, 9, 8, 9, 8, 10],
    ("gae", "ema"): [22, 20, 20, 22, 25, 24, 10, 9, 8, 9, 8, 10],
    ("gae", "simple stream"): [22, 20, 20, 22, 28, 27, 10, 9, 8, 9, 44, 10],
    ("gae", "adaptive refit"): [22, 45, 38, 65, 43, 117, 160, 106, 154, 208, 134, 181],
    ("gae", "adaptive innovation"): [22, 42, 33, 120, 45, 143, 137, 95, 116, 500, 128, 253],
    ("ppo", "none"): [22, 31, 23, 18, 19, 20, 27, 26, 28, 22, 30, 16],
    ("ppo", "zscore"): [22, 37, 28, 77, 23, 13, 10, 39, 45, 34, 10, 9],
    ("ppo", "running"): [22, 15, 19, 28, 25, 77, 10, 9, 10, 46, 79, 42],
    ("ppo", "ema"): [22, 15, 23, 23, 13, 14, 10, 9, 10, 31, 15, 9],
    ("ppo", "simple stream"): [22, 16, 21, 26, 20, 18, 10, 9, 24, 30, 47, 201],
    ("ppo", "adaptive refit"): [22, 54, 69, 59, 105, 27, 113, 54, 185, 151, 103, 82],
    ("ppo", "adaptive innovation"): [22, 19, 10, 9, 9, 10, 11, 9, 10, 10, 10, 9],
}


def pinned_run(algorithm, normalizer):
    record = train(
        RunConfig(
            env="CartPole-v1",
            algorithm=algorithm,
            normalizer=NORMALIZERS[normalizer],
            threshold=None,
            signal="advantages" if algorithm == "gae" else "returns",
            learning_rate=0.05,
            max_episodes=6,
            hidden=(16,),
        ),
        0,
    )
    return [int(G) for G in record["train_returns"] + record["eval_returns"]]


@pytest.mark.parametrize("algorithm", algorithms.ALGORITHMS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_first_episodes_are_pinned(algorithm, normalizer):
    """After a change on purpose, raise PROTOCOL_VERSION and pin anew: `python tests/test_rl.py` prints this."""
    assert PROTOCOL_VERSION == 1
    assert pinned_run(algorithm, normalizer) == PINNED[algorithm, normalizer]


if __name__ == "__main__":
    for a in algorithms.ALGORITHMS:
        for n in NORMALIZERS:
            print(f'    ("{a}", "{n}"): {pinned_run(a, n)},')
