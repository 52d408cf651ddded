"""Doors for what comes next: each thing is added from outside of the package, and trained with in other processes."""

import dataclasses
import json
import subprocess
import sys
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import outside
import pandas as pd
import pytest
import torch

from kscore import normalizers, study
from kscore.rl import RunConfig, algorithms, environments, train, training
from kscore.rl.algorithms import Adam, Agent, Batch
from kscore.rl.config import PRESETS
from kscore.rl.environments import Episode
from kscore.rl.networks import Dropout, Memory, Network
from kscore.rl.policies import Categorical, Gaussian, Head, Policy, head_for
from kscore.rl.units import Units
from kscore.study.records import LATER, Record, key

ALL = tuple(algorithms.ALGORITHMS)
SEEDS = range(2)
PRESET = {
    "": {"threshold": None, "max_episodes": 4, "hidden": (8,), "dropout": 0.2},
    "ppo": {"epochs": 2, "normalize_advantages": True},
}


def rng(seed=0):
    return np.random.default_rng(seed)


def small(env="outside:Line-v0", algorithm="actor_critic", **changes):
    fields = {"env": env, "algorithm": algorithm, "threshold": None, "hidden": (8,), "max_episodes": 4}
    return RunConfig(**{**fields, **changes})


@pytest.fixture(autouse=True)
def one_thread():
    """As in `train`: these networks are too small for more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# Runs in other processes


class Runs(NamedTuple):
    configs: dict
    frame: pd.DataFrame
    store: object


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Every door once, in one study: starting processes is what takes long."""
    store = tmp_path_factory.mktemp("doors") / "runs.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "outside:Line-v0", PRESET)
        preset = RunConfig.preset("outside:Line-v0", "ppo")
    configs = {
        "normalizer": small("CartPole-v1", normalizer={"name": "outside:LevelAndSlope", "drift": [0.2, 0.0]}),
        "gaussian": small("Pendulum-v1", "ppo", max_episodes=2),
        "laplace": small("Pendulum-v1", head="outside:Laplace", max_episodes=2),
        "discrete": small(head="outside:Reluctant"),
        "environment": preset,
        "value scale": small("outside:Dear-v0", normalizer={"name": "none"}, value_scale={"name": "running"}),
        "value scale from outside": small("outside:Dear-v0", "ppo", value_scale={"name": "outside:Span"}),
        "three episodes": small("CartPole-v1", "gae", episodes_per_update=3),
        "two doors": small(
            "CartPole-v1", normalizer={"name": "ema"}, advantage_normalizer={"name": "outside:LevelAndSlope"}
        ),
    }
    return Runs(configs, study.run(configs, SEEDS, store, progress=False), store)


@pytest.mark.parametrize(
    "arm",
    [
        "normalizer",
        "gaussian",
        "laplace",
        "discrete",
        "environment",
        "value scale",
        "value scale from outside",
        "three episodes",
        "two doors",
    ],
)
def test_what_other_processes_trained_is_what_this_one_trains_and_is_read_back(runs, arm):
    config, rows = runs.configs[arm], runs.frame[runs.frame.arm == arm]
    back = study.recorded({arm: config}, SEEDS, runs.store)
    assert rows.seed.tolist() == back.seed.tolist() == list(SEEDS)
    for seed, row, again in zip(SEEDS, rows.itertuples(), back.itertuples(), strict=True):
        here = train(config, seed)
        assert row.status == "censored" and row.episodes == config.max_episodes
        for column in ("train_returns", "eval_returns"):
            assert getattr(row, column).tolist() == getattr(again, column).tolist() == here[column]
    assert rows.train_returns.iloc[0].tolist() != rows.train_returns.iloc[1].tolist()


def test_a_store_can_be_read_where_nothing_from_outside_can_be_imported(runs):
    code = (
        "import sys; from kscore import study; sys.path = [p for p in sys.path if not p.endswith('tests')]; "
        f"contents = study.read({str(runs.store)!r}); print(len(contents.records), contents[1:], "
        "'outside' in sys.modules)"
    )
    fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert fresh.stdout.strip() == f"{len(runs.configs) * len(SEEDS)} (0, 0, 0, {{}}) False"


def test_what_is_recorded_trains_nothing_when_it_is_asked_for_again(runs):
    before = runs.store.read_bytes()
    again = study.run(runs.configs, SEEDS, runs.store, executor=NobodyWorks(), progress=False)
    assert again.train_returns.map(list).tolist() == runs.frame.train_returns.map(list).tolist()
    assert runs.store.read_bytes() == before


class NobodyWorks:
    def submit(self, *_):
        raise AssertionError("something was trained again")


# A normalizer with a vector and a matrix

LEVEL = {"name": "outside:LevelAndSlope"}
RAMPS = [np.arange(steps, dtype=float) + rng(steps).normal(size=steps) for steps in (9, 4, 12)]


def test_a_vector_and_a_matrix_go_through_json_and_go_on_as_if_uninterrupted():
    kept, restored = normalizers.make(**LEVEL), normalizers.make(**LEVEL)
    kept(RAMPS[0])
    restored.load_state_dict(json.loads(json.dumps(kept.state_dict())))
    assert np.shape(kept.state_dict()["x"]) == (2,) and np.shape(kept.state_dict()["P"]) == (2, 2)
    for returns in RAMPS[1:]:
        assert np.array_equal(restored(returns), kept(returns))
    assert restored.state_dict() == kept.state_dict() != normalizers.make(**LEVEL).state_dict()


def test_a_saved_state_is_a_copy():
    normalizer = normalizers.make(**LEVEL)
    state = normalizer.state_dict()
    state["x"][0] = 99.0
    other = np.zeros(2)
    normalizer.load_state_dict({"x": other, "P": np.eye(2)})
    other[0] = 99.0
    assert normalizer.state_dict()["x"] == [0.0, 0.0]


def test_a_normalizer_from_outside_is_held_still_like_any_other():
    normalizer = normalizers.make(**LEVEL)
    normalizer(RAMPS[0])
    normalizer.frozen, before = True, normalizer.state_dict()
    once, again = normalizer(RAMPS[1]), normalizer(RAMPS[1])
    assert np.array_equal(once, again) and normalizer.state_dict() == before
    x, P = np.array(before["x"]), np.array(before["P"])
    scale = np.sqrt(P[0, 0] + 2 * P[0, 1] + P[1, 1] + 0.1 + 2.0)
    assert np.allclose(once, (RAMPS[1] - x.sum()) / scale, rtol=1e-12)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"x": [1.0, 2.0, 3.0]}, r"^state\['x'\] must have the shape \(2,\), got \(3,\)"),
        ({"x": 1.0}, r"^state\['x'\] must have the shape \(2,\), got \(\)"),
        ({"P": [1.0, 2.0, 3.0, 4.0]}, r"^state\['P'\] must have the shape \(2, 2\), got \(4,\)"),
        ({"P": [[1.0, 2.0], [3.0]]}, r"^state\['P'\] must be an array of numbers, got \[\[1.0, 2.0\], \[3.0\]\]"),
        ({"P": [[1.0, 0.0], [0.0, float("nan")]]}, r"^state\['P'\] must be finite .*got nan at index 3"),
        ({"x": ["0", "1"]}, r"^state\['x'\] must be an array of numbers, got"),
        ({"x": None}, r"^state\['x'\] must be an array of numbers, got"),
        ({"x": []}, r"^state\['x'\] must hold at least one value, got shape \(0,\)"),
        ({"x": np.ma.array([1.0, 2.0], mask=[False, True])}, r"^state\['x'\] must be an array without a mask, got"),
        ({"slope": 1.0}, r"^state of LevelAndSlope must have the keys \['P', 'x'\], got \['x', 'P', 'slope'\]"),
    ],
    ids=str,
)
def test_a_bad_vector_or_matrix_is_refused_in_a_sentence_and_changes_nothing(bad, sentence):
    normalizer = normalizers.make(**LEVEL)
    normalizer(RAMPS[0])
    before = normalizer.state_dict()
    with pytest.raises(ValueError, match=sentence):
        normalizer.load_state_dict({"x": [0.0, 0.0], "P": [[1.0, 0.0], [0.0, 1.0]], **bad})
    assert normalizer.state_dict() == before


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("no_such_module:Mine", {}, "normalizer must name a class that can be imported .*got 'no_such_module:Mine'"),
        ("outside:Missing", {}, "normalizer must name a class that can be imported .*got 'outside:Missing'"),
        (".outside:Fixed", {}, "normalizer must name a class that can be imported .*got '.outside:Fixed'"),
        (":Fixed", {}, "normalizer must name a class that can be imported .*got ':Fixed'"),
        (
            "outside:Line",
            {},
            "normalizer must name a subclass of kscore.normalizers.base.Normalizer, got 'outside:Line'",
        ),
        ("outside:INFINITY", {}, "normalizer must name a subclass of kscore.normalizers.base.Normalizer"),
        ("outside:NoDataclass", {}, "normalizer must name a dataclass.*got 'outside:NoDataclass'"),
        ("outside:Demanding", {}, "normalizer 'outside:Demanding' must be given the option 'size', got {}"),
        ("outside:Fixed", {"wdith": 2.0}, "got 'wdith' .did you mean 'width'"),
        ("outside:Span", {"low": 2.0}, "normalizer 'outside:Span' takes no options, got 'low'"),
        ("outside:LevelAndSlope", {"drift": [1.0]}, r"drift must have the shape \(2,\), got \(1,\)"),
    ],
)
def test_what_is_no_normalizer_from_outside_is_refused_in_a_sentence(name, options, sentence):
    for refuse in (lambda: normalizers.make(name, **options), lambda: small(normalizer={"name": name, **options})):
        with pytest.raises(ValueError, match=f"^{sentence}|^option of .*{sentence}"):
            refuse()


def test_a_normalizer_that_needs_an_option_is_made_with_it():
    assert normalizers.make("outside:Demanding", size=4.0)([2.0]).tolist() == [0.5]


def test_every_option_of_a_normalizer_from_outside_is_in_the_config_and_survives_json():
    config = small(normalizer={**LEVEL, "R": np.float32(3.0)})
    assert config.normalizer == {**LEVEL, "drift": [0.1, 0.01], "R": 3.0}
    assert RunConfig(**json.loads(json.dumps(config.to_dict()))) == config


# Heads

BOX = gym.spaces.Box(-1, 1, (2,))
OUTPUTS, ACTIONS = rng(1).normal(size=(6, 2)), rng(2).normal(size=(6, 2))


def new_head(kind, dtype=torch.float64, values=(-0.5, 0.7)):
    """A head for two numbers, with its parameters somewhere, and the memory that they lie in."""
    memory = Memory(kind.parameters(BOX), dtype)
    head = kind(BOX, memory)
    if values is not None:
        memory.parameters.copy_(torch.tensor(values))
    return head, memory


@pytest.mark.parametrize(
    ("kind", "peer"), [(Gaussian, torch.distributions.Normal), (outside.Laplace, torch.distributions.Laplace)]
)
def test_log_probabilities_are_those_of_torchs_distributions(kind, peer):
    head, memory = new_head(kind)
    outputs, actions = torch.from_numpy(OUTPUTS), torch.from_numpy(ACTIONS)
    expected = peer(outputs, memory.parameters.exp()).log_prob(actions).sum(1)
    assert torch.allclose(head.log_probs(outputs, actions), expected, rtol=1e-12)


def test_entropies_are_those_of_torchs_distributions_and_so_are_their_gradients():
    head, memory = new_head(Gaussian)
    outputs = torch.from_numpy(OUTPUTS)
    expected = torch.distributions.Normal(outputs, memory.parameters.exp()).entropy().sum(1)
    assert torch.allclose(head.entropy(outputs), expected, rtol=1e-12)
    head.entropy(outputs).sum().backward()
    assert torch.allclose(memory.gradient, torch.full((2,), float(len(OUTPUTS)), dtype=torch.float64))
    logits = outputs.clone().requires_grad_()
    theirs = torch.distributions.Categorical(logits=logits).entropy()
    ours = Categorical(gym.spaces.Discrete(2), memory).entropy(logits)
    assert torch.allclose(ours, theirs, rtol=1e-12)
    slopes = [torch.autograd.grad(entropy.sum(), logits)[0] for entropy in (ours, theirs)]
    assert torch.allclose(*slopes, rtol=1e-9)


@pytest.mark.parametrize("kind", [Gaussian, outside.Laplace])
def test_gradients_of_log_probabilities_against_finite_differences(kind):
    head, memory = new_head(kind)
    outputs, weights = torch.from_numpy(OUTPUTS.copy()).requires_grad_(), torch.from_numpy(rng(3).normal(size=6))

    def loss():
        return head.log_probs(outputs, torch.from_numpy(ACTIONS)) @ weights

    loss().backward()
    for values, gradient in ((memory.parameters, memory.gradient), (outputs.detach(), outputs.grad)):
        flat = values.view(-1)
        for i in range(len(flat)):
            with torch.no_grad():
                flat[i] += 1e-6
                above = loss().item()
                flat[i] -= 2e-6
                slope = (above - loss().item()) / 2e-6
                flat[i] += 1e-6
            assert gradient.view(-1)[i].item() == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(("kind", "deviation"), [(Gaussian, 1.0), (outside.Laplace, np.sqrt(2))])
def test_drawn_actions_have_the_mean_and_the_width_of_the_distribution(kind, deviation):
    head, memory = new_head(kind, torch.float32)
    noise = head.noise(rng(4), 40_000)
    assert noise.shape == (40_000, 2) and noise.dtype == np.float32
    mean = np.array([1.0, -2.0], np.float32)
    drawn = np.array([head.act(mean, one) for one in noise])
    assert drawn.dtype == np.float32
    assert np.allclose(drawn.mean(axis=0), mean, atol=0.05)
    assert np.allclose(drawn.std(axis=0), deviation * np.exp([-0.5, 0.7]), rtol=0.02)
    greedy = head.greedy(mean)
    assert np.array_equal(greedy, mean) and greedy is not mean  # the next forward pass overwrites its outputs


def test_a_gaussian_starts_with_half_the_range_to_either_side():
    head, memory = new_head(Gaussian, values=None)
    assert memory.parameters.tolist() == [0.0, 0.0]
    assert head.act(np.zeros(2), np.ones(2)).tolist() == [1.0, 1.0]
    assert Gaussian.outputs(BOX) == Gaussian.parameters(BOX) == 2


def test_the_head_suits_the_action_space_and_one_that_does_not_is_refused():
    assert head_for(gym.spaces.Discrete(3)) is Categorical and head_for(BOX) is Gaussian
    assert head_for(BOX, "outside:Laplace") is outside.Laplace
    with pytest.raises(ValueError, match=r"^head must be one for .*Discrete\(2\), got 'outside:Laplace'.*Box"):
        train(small(head="outside:Laplace"), 0)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("Gaussian", "the place of a class"),
        (5, "the place of a class"),
        ("outside:Gone", "can be imported"),
        ("outside:Line", "a subclass of kscore.rl.policies.Head"),
        ("no_such_module:Head", "can be imported"),
    ],
)
def test_a_bad_head_is_an_error_at_once(head, reason):
    with pytest.raises(ValueError, match=f"^head must .*{reason}.*got {head!r}"):
        small(head=head)


def test_the_parameters_of_a_head_learn():
    config = small("Pendulum-v1", "reinforce", head="outside:Laplace")
    environment = environments.make("Pendulum-v1", 0)
    agent = training.make_agent(config, 3, environment.actions, rng(), rng(1))
    episode = environments.play(environment, Policy(agent.actor, agent.head), rng(2), agent.dropout)
    assert agent.memory.parameters[-1] == 0
    algorithms.reinforce(agent, Batch.of([episode]), algorithms.normalization(config), config)
    assert agent.memory.gradient[-1] != 0 and agent.head.log_width.item() == agent.memory.parameters[-1] != 0
    assert len(agent.memory.parameters) == Network.size((3, 8, 1), "relu") + 1


def test_without_parameters_of_its_own_a_head_takes_no_memory():
    for head in (None, "outside:Reluctant"):
        agent = training.make_agent(small(head=head), 2, gym.spaces.Discrete(2), rng(), rng(1))
        outputs = 2 if head is None else 1
        assert len(agent.memory.parameters) == sum(Network.size((2, 8, width), "relu") for width in (outputs, 1))


class Forgetful(Head):
    """Implements nothing."""


@pytest.mark.parametrize(
    "ask",
    [
        lambda head: Forgetful(BOX, Memory(0)),
        lambda head: head.outputs(BOX),
        lambda head: head.noise(rng(), 1),
        lambda head: head.act(OUTPUTS, ACTIONS),
        lambda head: head.greedy(OUTPUTS),
        lambda head: head.log_probs(torch.zeros(1), torch.zeros(1)),
    ],
)
def test_what_a_head_does_not_implement_is_not_made_up(ask):
    with pytest.raises(NotImplementedError):
        ask(Forgetful.__new__(Forgetful))


class Says:
    """A policy that says what it is told to, one action after the other."""

    def __init__(self, actions):
        self.head, self.rest = self, list(actions)
        self.sample = lambda *_: self.rest.pop(0)
        self.greedy = lambda *_: self.rest.pop(0)

    def noise(self, rng, steps):
        return np.zeros((steps, 2))


SAID = np.array([[0, 0], [1, -1], [0.5, 0.5], [-1, 1], [7, -7], [-7, 7], *4 * [[0, 0]]], np.float32)


@pytest.mark.parametrize(
    ("env", "received"),
    [
        ("Uneven-v0", [[1, 5], [3, 0], [2, 7.5], [-1, 10], [3, 0], [-1, 10]]),
        ("Open-v0", [[0, 0], [1, -1], [0.5, 0.5], [-1, 1], [7, -7], [-7, 7]]),
        ("HalfOpen-v0", [[1, 0], [3, 0], [2, 0.5], [-1, 1], [3, 0], [-1, 7]]),
        ("Vast-v0", [[0, 0], [1, -1], [0.5, 0.5], [-1, 1], [7, -1], [-7, 1]]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_an_environment_receives_its_own_units_within_its_bounds_and_the_record_has_what_was_drawn(env, received):
    environment = environments.make(env, 0)
    assert environment.actions == gym.spaces.Box(-np.inf, np.inf, (2,)) and environment.observation_size == 2
    episode = environments.play(environment, Says(SAID), rng(), Dropout(0.0, (), rng()))
    assert np.array(environment.env.unwrapped.received[:6]).tolist() == received
    assert {action.dtype for action in environment.env.unwrapped.received} == {np.dtype(np.float32)}
    assert episode.actions.tolist() == SAID.tolist()
    environment.env.unwrapped.received.clear()
    environments.evaluate(environment, Says(SAID))
    assert np.array(environment.env.unwrapped.received[:6]).tolist() == received


@pytest.mark.parametrize("env", ["Uneven-v0", "Open-v0"])
@pytest.mark.parametrize("learning_rate", [0.01, 1e30])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_no_environment_receives_an_action_that_is_not_finite(env, learning_rate):
    """`Dial` asserts that what it receives is in its action space."""
    record = train(small(env, learning_rate=learning_rate), 0)
    assert record["status"] == ("censored" if learning_rate == 0.01 else "diverged")


@pytest.mark.parametrize(("env", "bad"), [("Uneven-v0", [0, np.nan]), ("Open-v0", [np.inf, 0])])
def test_an_action_that_is_not_finite_ends_the_run(env, bad):
    environment = environments.make(env, 0)
    with pytest.raises(environments.Diverged, match="an action is not finite"):
        environments.evaluate(environment, Says([np.array(bad, np.float32)]))
    assert environment.env.unwrapped.received == []


@pytest.mark.parametrize("algorithm", ALL)
def test_every_algorithm_acts_in_real_numbers(algorithm):
    record = train(small("Uneven-v0", algorithm, episodes_per_update=2, value_scale=None, max_episodes=3), 0)
    assert record["status"] == "censored" and record["train_returns"] == [10.0] * 3


# An environment with a preset of its own


def test_an_environment_gets_a_preset_by_an_entry(monkeypatch):
    with pytest.raises(ValueError, match="^env of a preset must be one of .*got 'outside:Line-v0'"):
        RunConfig.preset("outside:Line-v0", "ppo")
    monkeypatch.setitem(PRESETS, "outside:Line-v0", PRESET)
    ppo, reinforce = (RunConfig.preset("outside:Line-v0", algorithm) for algorithm in ("ppo", "reinforce"))
    assert (ppo.max_episodes, ppo.hidden, ppo.dropout, ppo.epochs, ppo.normalize_advantages) == (4, (8,), 0.2, 2, True)
    assert (reinforce.hidden, reinforce.epochs, reinforce.normalize_advantages) == ((8,), 5, False)
    assert ppo.env == "outside:Line-v0" and ppo.algorithm == "ppo" and ppo.normalizer["name"] == "zscore"


def test_a_line_pays_what_it_should(runs):
    returns = np.concatenate(runs.frame[runs.frame.arm == "environment"].train_returns.tolist())
    assert ((returns >= 10) & (returns <= 20)).all() and len(returns) == 8


# A value scale

SCALES = [
    {"name": "running"},
    {"name": "ema", "decay": 0.9},
    {"name": "zscore"},
    {"name": "kscore"},
    {"name": "outside:Span"},
]


def critic_agent(scale, dtype=torch.float64):
    shapes = [(2, 6, 2), (2, 6, 1)]
    memory = Memory(sum(Network.size(shape, "prelu") for shape in shapes), dtype)
    actor, critic = (Network(shape, "prelu", rng(7), memory) for shape in shapes)
    memory.parameters += 0.3 * torch.from_numpy(rng(8).normal(size=len(memory.parameters)))
    head, units = Categorical(gym.spaces.Discrete(2), memory), Units(normalizers.make(**scale))
    return Agent(actor, head, critic, memory, Dropout(0.0, (6,), rng(9)), Adam(memory, 1e-3), units)


def some_batch(*steps, dtype=float):
    return Batch.of(
        [
            Episode(
                rng(n).normal(size=(n, 2)).astype(dtype),
                rng(n).integers(2, size=n),
                rng(n).normal(5, 3, n).tolist(),
                None,
            )
            for n in steps
        ]
    )


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale["name"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_new_units_leave_every_value_as_it_was(scale, dtype, tolerance):
    agent, peer = critic_agent(scale, dtype), normalizers.make(**scale)
    batch = some_batch(30, dtype=agent.memory.parameters.numpy().dtype)
    before, outputs = agent.values(batch).detach(), agent.critic(batch.observations).detach().clone()
    size = before.abs().max().item()
    for targets in (rng(1).normal(3, 2, 25), rng(2).normal(100, 40, 25), rng(3).normal(-1, 0.5, 25)):
        agent.rescale(targets)
        peer.learn(targets)
        assert (agent.units.centre, agent.units.scale) == pytest.approx(tuple(peer.recall(targets)), rel=1e-12)
        size = max(size, abs(agent.units.centre))  # what the numbers on the way were rounded at
        assert (agent.values(batch) - before).abs().max() <= tolerance * size
        assert (agent.critic(batch.observations) - outputs).abs().max() > 0.01  # in other units


def test_units_start_as_those_of_the_targets():
    agent, batch = critic_agent({"name": "running"}), some_batch(5)
    assert torch.equal(agent.values(batch), agent.critic(batch.observations).squeeze(1))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_critics_loss_is_that_of_its_own_units(reduction):
    agent, batch, config = critic_agent({"name": "running"}), some_batch(8), small(value_reduction=reduction)
    targets = rng(5).normal(50, 20, 8)
    agent.rescale(targets)
    centre, scale = targets.mean(), targets.std() + 1e-8
    error = np.abs(agent.values(batch).detach().numpy() - targets) / scale
    steps = np.where(error < 1, error**2 / 2, error - 0.5)
    expected = steps.mean() if reduction == "mean" else steps.sum() / 2
    assert agent.value_loss(agent.values(batch), targets, config, episodes=2).item() == pytest.approx(expected, 1e-9)
    outputs = torch.from_numpy((targets - centre) / scale)
    assert torch.allclose(agent.units.outputs(torch.from_numpy(targets)), outputs, rtol=1e-12)


@pytest.mark.parametrize("algorithm", ["actor_critic", "gae", "ppo"])
def test_algorithms_use_values_in_the_units_of_their_targets_and_advantages_in_the_critics(algorithm, monkeypatch):
    monkeypatch.setattr(outside.Watching, "seen", [])
    config = small(
        algorithm=algorithm,
        normalizer={"name": "none"},
        value_scale={"name": "running"},
        epochs=1,
        advantage_normalizer={"name": "outside:Watching"},
    )
    agent, batch = critic_agent({"name": "running"}), some_batch(8)
    values = agent.values(batch).detach().numpy()  # the units change, the values do not
    algorithms.ALGORITHMS[algorithm](agent, batch, algorithms.normalization(config), config)
    returns = batch.returns(config.gamma)
    expected = batch.gae_advantages(values, config.gamma, config.lam) if algorithm == "gae" else returns - values
    assert agent.units.centre == pytest.approx(returns.mean())
    assert np.allclose(outside.Watching.seen[0][1], expected / agent.units.scale, rtol=1e-9)  # in the critic's units


def critic_error(env, value_scale):
    """Train a critic for a while, and return how far it then is from the returns, in shares of them."""
    config = small(
        env,
        normalizer={"name": "none"},
        value_scale=value_scale,
        dropout=0.0,
        learning_rate=0.02,
        normalize_advantages=True,
    )
    environment = environments.make(env, 0)
    agent = training.make_agent(config, 2, environment.actions, rng(0), rng(1))
    policy, normalize = Policy(agent.actor, agent.head), algorithms.normalization(config)
    for _ in range(150):
        batch = Batch.of([environments.play(environment, policy, rng(2), agent.dropout)])
        algorithms.actor_critic(agent, batch, normalize, config)
    returns = batch.returns(config.gamma)
    return np.abs(agent.values(batch).detach().numpy() - returns).mean() / returns.mean()


def test_with_a_value_scale_a_critic_learns_whatever_the_size_of_the_rewards():
    """Without one, returns of thousands are far beyond the reach of its steps."""
    assert critic_error("Line-v0", {"name": "running"}) < 0.1 and critic_error("Dear-v0", {"name": "running"}) < 0.1
    assert critic_error("Dear-v0", None) > 0.9


@pytest.mark.parametrize("env", ["Line-v0", "Dear-v0"])
@pytest.mark.parametrize("algorithm", ["actor_critic", "gae", "ppo"])
def test_a_value_scale_trains_on_small_and_large_rewards(env, algorithm):
    record = train(small(env, algorithm, value_scale={"name": "ema"}, normalizer={"name": "none"}), 0)
    assert record["status"] == "censored" and record["episodes"] == 4
    assert record["train_returns"] != train(small(env, algorithm, normalizer={"name": "none"}), 1)["train_returns"]


def test_reinforce_has_no_critic_to_scale():
    with pytest.raises(ValueError, match="^value_scale must be None with reinforce, which has no critic, got .*run"):
        small(algorithm="reinforce", value_scale={"name": "running"})


@pytest.mark.parametrize("what", ["centre", "scale"])
def test_a_value_scale_with_one_number_a_step_is_refused_in_a_sentence(what):
    scale = {"name": "outside:ByTheStep", "what": what}
    with pytest.raises(ValueError, match="^value_scale must name a normalizer with one centre and one scale .*got {"):
        small(value_scale=scale)
    with pytest.raises(ValueError, match="^value_scale must have one centre and one scale for all steps, got one a"):
        train(small(value_scale={**scale, "late": True}), 0)


@pytest.mark.parametrize(
    "bad",
    [{"width": 0.0}, {"width": -1.0}, {"width": np.inf}, {"width": np.nan}, {"centre": np.nan}, {"centre": -np.inf}],
)
def test_units_that_cannot_be_end_the_run(bad):
    record = train(small(value_scale={"name": "outside:Fixed", **bad}), 0)
    assert record["status"] == "diverged" and "critic's units" in record["reason"]


# Several episodes an update


def averages(log_probs, advantages, values, targets, lengths, config):
    """The loss of several episodes, written out: the average over episodes, or over steps."""
    policy, value, steps = [], [], sum(lengths)
    for stretch in np.split(np.arange(steps), np.cumsum(lengths)[:-1]):
        policy.append(-sum(log_probs[t] * advantages[t] for t in stretch))
        distances = [(values[t] - targets[t]).abs() for t in stretch]
        value.append(sum(d**2 / 2 if d < 1 else d - 0.5 for d in distances))
    policy_share = len(lengths) if config.policy_reduction == "sum" else steps
    value_share = len(lengths) if config.value_reduction == "sum" else steps
    return sum(policy) / policy_share + (sum(value) / value_share if config.algorithm != "reinforce" else 0)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("algorithm", ALL)
def test_the_gradient_of_several_episodes_is_that_of_their_average(algorithm, reduction):
    config = small(
        algorithm=algorithm,
        policy_reduction=reduction,
        epochs=1,
        normalizer={"name": "running"},
        value_reduction="mean" if reduction == "sum" else "sum",
        advantage_normalizer={"name": "zscore"},
    )
    agent, batch = dataclasses.replace(critic_agent({"name": "none"}), units=None), some_batch(7, 4, 9)
    running, targets, advantages = normalizers.make("running"), [], []
    values = agent.values(batch).detach().numpy()
    for rewards, own in zip(batch.rewards, np.split(values, [7, 11]), strict=True):
        targets.append(running(algorithms.discounted_returns(rewards, config.gamma)))
        signal = {
            "reinforce": targets[-1],
            "actor_critic": targets[-1] - own,
            "ppo": targets[-1] - own,
            "gae": algorithms.gae_advantages(rewards, own, config.gamma, config.lam),
        }[algorithm]
        advantages.append(normalizers.make("zscore")(signal))
    averages(
        agent.log_probs(batch, None),
        np.concatenate(advantages),
        agent.values(batch),
        np.concatenate(targets),
        [7, 4, 9],
        config,
    ).backward()
    expected = agent.memory.gradient.clone()
    algorithms.ALGORITHMS[algorithm](agent, batch, algorithms.normalization(config), config)
    assert expected.abs().max() > 0.01
    assert torch.allclose(agent.memory.gradient, expected, rtol=1e-9, atol=1e-12)


def test_episodes_are_put_one_after_the_other_with_their_masks():
    episodes = [
        Episode(
            rng(n).normal(size=(n, 2)),
            rng(n).integers(2, size=n),
            [float(n)] * n,
            [mask.astype(float) for mask in Dropout(0.5, (6,), rng(n)).draw(n)],
        )
        for n in (3, 5)
    ]
    agent, batch = critic_agent({"name": "none"}), Batch.of(episodes)
    alone = [agent.log_probs(Batch.of([episode]), episode.masks) for episode in episodes]
    assert torch.allclose(agent.log_probs(batch, batch.masks), torch.cat(alone), rtol=1e-12)
    assert batch.lengths == [3, 5] and batch.masks[0].shape == (8, 6)
    assert batch.rewards == [[3.0] * 3, [5.0] * 5]


@pytest.mark.parametrize("algorithm", ALL)
def test_normalizers_see_one_episode_at_a_time_and_in_order(algorithm, monkeypatch, plain_loop):
    monkeypatch.setattr(outside.Watching, "seen", [])
    played, original = [], environments.play
    monkeypatch.setattr(environments, "play", lambda *a: played.append(original(*a)) or played[-1])
    train(
        small("CartPole-v1", algorithm, normalizer={"name": "outside:Watching"}, episodes_per_update=3, max_episodes=7),
        0,
    )
    expected = [algorithms.discounted_returns(episode.rewards, 0.99).tolist() for episode in played]
    assert [seen for _, seen in outside.Watching.seen] == expected and len(expected) == 7


@pytest.mark.parametrize(("episodes_per_update", "after"), [(1, [1, 2, 3, 4, 5, 6, 7]), (3, [3, 6, 7]), (9, [7])])
def test_the_cap_is_respected_whatever_the_episodes_an_update(episodes_per_update, after):
    seen = []
    record = train(
        small(episodes_per_update=episodes_per_update, max_episodes=7),
        0,
        progress=lambda history, policy: seen.append(history.episodes),
    )
    assert seen == after and record["episodes"] == len(record["train_returns"]) == 7
    assert len(record["eval_returns"]) == len(after)


def test_updates_are_counted_for_evaluations_not_episodes():
    record = train(small(episodes_per_update=2, evaluate_every=2, max_episodes=8), 0)
    assert len(record["train_returns"]) == 8 and len(record["eval_returns"]) == 2


@pytest.mark.parametrize("algorithm", ALL)
def test_one_episode_an_update_is_the_loss_of_that_episode(algorithm):
    log_probs, advantages = torch.from_numpy(rng(1).normal(size=5)), rng(2).normal(size=5)
    for reduction in ("sum", "mean"):
        config = small(algorithm=algorithm, policy_reduction=reduction, value_reduction=reduction)
        assert config.episodes_per_update == 1
        for loss in (algorithms.policy_loss, algorithms.value_loss):
            assert loss(log_probs, advantages, config) == loss(log_probs, advantages, config, 1)


# Two doors


def test_each_door_sees_its_own_signal_only(monkeypatch):
    monkeypatch.setattr(outside.Watching, "seen", [])
    config = small(
        normalizer={"name": "outside:Watching", "label": "returns", "factor": 2.0},
        advantage_normalizer={"name": "outside:Watching", "label": "advantages", "factor": 3.0},
    )
    agent, batch = dataclasses.replace(critic_agent({"name": "none"}), units=None), some_batch(4, 6)
    values = agent.values(batch).detach().numpy()
    algorithms.actor_critic(agent, batch, algorithms.normalization(config), config)
    returns = batch.returns(config.gamma)
    expected = [
        ("returns", returns[:4]),
        ("returns", returns[4:]),
        ("advantages", (2 * returns - values)[:4]),
        ("advantages", (2 * returns - values)[4:]),
    ]
    assert [label for label, _ in outside.Watching.seen] == [label for label, _ in expected]
    for (_, seen), (_, signal) in zip(outside.Watching.seen, expected, strict=True):
        assert np.allclose(seen, signal, rtol=1e-12)


def test_each_door_has_a_state_of_its_own():
    config = small(normalizer={"name": "running"}, advantage_normalizer={"name": "running"})
    doors, signal = algorithms.normalization(config), rng(1).normal(5, 2, 10)
    first = doors.returns(signal, [10])
    assert np.array_equal(doors.advantages(signal, [10]), first)  # nothing known yet at this door
    assert not np.array_equal(doors.returns(signal, [10]), first)
    again = algorithms.normalization(config)
    assert np.array_equal(again.returns(signal, [10]), first)  # nor by the doors of another run


FILTER = {"name": "kscore", "variant": "adaptive", "Q": 0.1, "R": 1.0}


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize(
    ("short", "spelled_out"),
    [
        (
            {"signal": "advantages", "normalizer": FILTER},
            {"normalizer": {"name": "none"}, "advantage_normalizer": FILTER},
        ),
        (
            {"normalizer": FILTER, "normalize_advantages": True},
            {"normalizer": FILTER, "advantage_normalizer": {"name": "zscore"}},
        ),
    ],
    ids=["signal", "normalize_advantages"],
)
def test_the_older_settings_are_short_for_a_normalizer_at_the_door_of_the_advantages(algorithm, short, spelled_out):
    ours, theirs, without = (
        updated(small(algorithm=algorithm, **settings))
        for settings in (short, spelled_out, {"normalizer": spelled_out["normalizer"]})
    )
    assert torch.equal(ours, theirs) and not torch.allclose(ours, without)


def updated(config):
    """The parameters after two updates, the second of them on two episodes."""
    agent, normalize = dataclasses.replace(critic_agent({"name": "none"}), units=None), algorithms.normalization(config)
    for batch in (some_batch(5), some_batch(8, 3)):
        algorithms.ALGORITHMS[config.algorithm](agent, batch, normalize, config)
    return agent.memory.parameters


@pytest.mark.parametrize(
    ("other", "named"),
    [({"signal": "advantages"}, "signal 'advantages'"), ({"normalize_advantages": True}, "normalize_advantages")],
)
def test_two_settings_for_one_door_are_refused_in_a_sentence(other, named):
    with pytest.raises(ValueError, match=f"^advantage_normalizer must be None with {named}, .*got .*'ema'"):
        small(advantage_normalizer={"name": "ema"}, **other)


@pytest.mark.parametrize(
    "bad",
    [
        {"advantage_normalizer": "zscore"},
        {"advantage_normalizer": {"eps": 1.0}},
        {"value_scale": "running"},
        {"advantage_normalizer": {"name": "nosuch"}},
        {"value_scale": {"name": "nosuch"}},
        {"normalizer": {"name": "nosuch"}},
        {"value_scale": {}},
        {"advantage_normalizer": {"name": "zscore", 3: 1}},
        {"episodes_per_update": 0},
        {"episodes_per_update": 2.0},
        {"episodes_per_update": True},
        {"normalize_advantages": 1},
    ],
)
def test_a_bad_value_of_a_newer_setting_is_an_error_at_once(bad):
    ((name, value),) = bad.items()
    with pytest.raises(ValueError, match=f"^{name} must .*got"):
        small(**bad)


# Older records


def test_settings_that_came_later_do_not_change_what_an_older_record_is_known_by():
    config = small("CartPole-v1", normalizer=FILTER)
    older = train(dataclasses.replace(config, max_episodes=1), 3)
    assert set(LATER) == {
        "advantage_normalizer",
        "value_scale",
        "head",
        "episodes_per_update",
        "reward_normalizer",
        "reward_scale",
        "stop",
        "disturbance",
    }
    assert {name: older["config"].pop(name) for name in LATER} == LATER
    assert Record.of(older).key == key(dataclasses.replace(config, max_episodes=1), 3)
    newer = [
        dataclasses.replace(config, **change)
        for change in (
            {"advantage_normalizer": {"name": "ema"}},
            {"value_scale": {"name": "ema"}},
            {"episodes_per_update": 2},
            {"head": "outside:Reluctant"},
        )
    ]
    assert len({key(one, 3) for one in (config, *newer)}) == 5
