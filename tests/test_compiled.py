"""Compiled episodes: the same records as the plain loop's, whatever is trained, or else the plain loop plays."""

import dataclasses
import itertools
import json
import subprocess
import sys

import gymnasium as gym
import numpy as np
import outside
import pytest
from small_runs import tiny

from kscore import study
from kscore.rl import RunConfig, compiled, environments, train, training
from kscore.study import workers

WIDTHS = (2, 5, 128, 300)
NORMALIZERS = (
    {"name": "zscore"},
    {"name": "none"},
    {"name": "kscore", "variant": "adaptive", "mode": "stream", "Q": 0.01, "R": 0.1},
    {"name": "kscore", "variant": "simple", "mode": "refit", "Q": 0.01, "R": 0.1},
    {"name": "running"},
    {"name": "episode"},
)


@pytest.fixture(autouse=True)
def a_new_process(monkeypatch):
    """As if nothing had been played or compiled yet; afterwards nothing broken is left."""
    monkeypatch.setattr(compiled, "_updates", 0)
    monkeypatch.setattr(compiled, "_ahead", 0)


@pytest.fixture
def compiled_anew():
    compiled._fault.cache_clear()
    compiled._machine_code.cache_clear()
    yield
    compiled._fault.cache_clear()
    compiled._machine_code.cache_clear()


def preset(learner="actor_critic", **changes):
    return dataclasses.replace(RunConfig.preset("CartPole-v1", learner), **{"max_episodes": 40, **changes})


def told(record):
    """A whole record but for how long it took."""
    return json.dumps({name: value for name, value in record.items() if "seconds" not in name})


def plain(config, seed):
    with pytest.MonkeyPatch.context() as patch:
        loop = compiled.Loop(environments.play, environments.evaluate, "asked for")
        patch.setattr(compiled, "loop_for", lambda *_: loop)
        return train(config, seed)


def early(config, seed):
    """Train by the compiled loop from the first episode on, wherever it can be used."""
    compiled.expect(compiled.ENOUGH * compiled.EARLY)
    return train(config, seed)


# The same records


def crossed(learner):
    """Settings of a learner that cross normalizers, widths, dropouts and doors."""
    doors = [{}, {"signal": "advantages"}] if learner != "reinforce" else [{}]
    settings = itertools.product(NORMALIZERS, (0.5, 0.0), doors)
    for seed, ((normalizer, dropout, door), width) in enumerate(zip(settings, itertools.cycle(WIDTHS))):
        yield seed, preset(learner, normalizer=normalizer, dropout=dropout, hidden=(width,), **door)


@pytest.mark.parametrize("learner", ("reinforce", "actor_critic", "gae", "ppo"))
def test_both_loops_give_the_same_records(learner):
    runs = list(crossed(learner))
    assert len(runs) >= 12 and {config.hidden[0] for _, config in runs} == set(WIDTHS)
    for seed, config in runs:
        assert training.why_plain(config) is None
        assert told(early(config, seed)) == told(plain(config, seed))


SPECIAL = {
    "whole": preset("reinforce", max_episodes=500),
    "fixed horizon": preset("reinforce", max_episodes=150, stop=False, threshold=30.0),
    "diverges": preset("actor_critic", learning_rate=1e30),
    "several episodes": preset("gae", episodes_per_update=3, evaluate_every=2),
    "scales": preset("ppo", value_scale={"name": "popart"}, reward_normalizer={"name": "running"}, reward_scale=0.1),
    "noise": preset(disturbance={"name": "noise", "deviation": 3.0, "after": 4}),
    "outliers": preset(disturbance={"name": "outliers", "share": 0.1}),
    "units": preset("gae", disturbance={"name": "change", "factor": 10.0, "offset": 1.0, "after": 10}),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_so_they_do_in_special_cases(name):
    assert training.why_plain(SPECIAL[name]) is None
    record = early(SPECIAL[name], 3)
    assert told(record) == told(plain(SPECIAL[name], 3))
    assert (record["status"] == "diverged") == (name == "diverges")


def test_long_episodes_are_the_same():
    config = preset("reinforce", max_episodes=500)
    record = early(config, 0)
    assert max(record["train_returns"]) > 4 * environments.BLOCK and max(record["eval_returns"]) == 500
    assert told(record) == told(plain(config, 0))


def test_a_width_whose_products_may_differ_gives_the_same_record():
    config = preset(hidden=(1,))
    assert told(early(config, 0)) == told(plain(config, 0))


CONFIGS = [preset(learner, dropout=dropout) for learner in ("reinforce", "ppo") for dropout in (0.5, 0.0)]


def check_elsewhere(executor):
    """Have runs trained by the compiled loop in other processes, and compare them with the plain one's here."""
    futures = [executor.submit(outside.trained_early, config, 5) for config in CONFIGS]
    for config, future in zip(CONFIGS, futures, strict=True):
        record, why_plain = future.result()
        assert why_plain is None and told(record) == told(plain(config, 5))


def test_spawned_workers_give_the_same_records():
    with workers.processes(workers=1) as pool:
        check_elsewhere(pool)


@pytest.mark.slow
def test_dask_gives_the_same_records():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        check_elsewhere(client.get_executor(pure=False))


def test_the_arithmetic_is_gymnasiums():
    env, rng = gym.make("CartPole-v1").unwrapped, np.random.default_rng(0)
    pole, ends = compiled._pole(env), set()
    for state in rng.normal(0, [1.5, 2, 0.15, 2], (2000, 4)):
        for action in (0, 1):
            env.reset(seed=0)
            env.state, own = state.copy(), state.copy()
            over = env.step(action)[2]
            assert compiled.moved(own, action, pole) == over and own.tobytes() == env.state.tobytes()
            ends.add(over)
    assert ends == {True, False}


# When


def test_a_short_training_compiles_nothing():
    script = (
        "import sys\nfrom kscore.rl import RunConfig, train\n"
        "train(RunConfig(env='CartPole-v1', algorithm='reinforce', threshold=None, max_episodes=3), 0)\n"
        "assert 'torch' in sys.modules and 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def loops_of(monkeypatch, config, seed=0):
    """Train, and return for every update whether the compiled loop was in use, and the record."""
    used, loop_for = [], compiled.loop_for

    def noted(*arguments):
        loop = loop_for(*arguments)
        used.append(loop.why_plain is None)
        return loop

    monkeypatch.setattr(compiled, "loop_for", noted)
    return train(config, seed), used


def test_a_process_compiles_once_it_has_played_enough(monkeypatch):
    monkeypatch.setattr(compiled, "ENOUGH", 10)
    record, used = loops_of(monkeypatch, preset())
    assert used == 9 * [False] + 31 * [True]
    assert told(record) == told(plain(preset(), 0))


def test_or_when_enough_is_to_come(monkeypatch):
    compiled.expect(compiled.ENOUGH * compiled.EARLY)
    assert all(loops_of(monkeypatch, preset())[1])
    compiled.expect(compiled.ENOUGH * compiled.EARLY // 2)
    assert not any(loops_of(monkeypatch, preset())[1])


def test_a_study_says_what_is_to_come(tmp_path, monkeypatch):
    expected = []
    monkeypatch.setattr(compiled, "expect", expected.append)
    configs = {"short": tiny(), "elsewhere": tiny(env="Acrobot-v1", max_episodes=1)}

    class Pool(outside.Here):
        processes = 2

    study.run(configs, range(5), tmp_path / "runs.jsonl", Pool(), progress=False)
    assert expected == 10 * [5 * 3 // 2]
    study.run(configs, [7], tmp_path / "runs.jsonl", outside.Here(), progress=False)
    assert expected[10:] == 2 * [0], "how many processes there are is not known"


# When not


def refused(monkeypatch, config):
    """Train early; return why the plain loop played, after a look at the record."""
    compiled.expect(compiled.ENOUGH * compiled.EARLY)
    record, used = loops_of(monkeypatch, config)
    assert not any(used)
    assert told(record) == told(plain(config, 0))
    return training.why_plain(config)


UNSUITED = {
    "disturbance": preset(disturbance={"name": "swap"}),
    "environment": RunConfig(env="Acrobot-v1", algorithm="reinforce", threshold=None, max_episodes=1),
    "head": preset(head="outside:Reluctant"),
    "hidden layer": preset(hidden=(8, 8)),
    "one hidden layer": preset(hidden=()),
    "ReLU": preset(activation="prelu"),
}


@pytest.mark.parametrize("word", UNSUITED)
def test_what_is_not_compiled_is_played_plainly(word, monkeypatch):
    config = dataclasses.replace(UNSUITED[word], max_episodes=min(5, UNSUITED[word].max_episodes))
    assert word in refused(monkeypatch, config)


@pytest.mark.parametrize(
    "attribute, value", [("kinematics_integrator", "semi-implicit"), ("_sutton_barto_reward", True)]
)
def test_a_cartpole_with_other_rules_is_played_plainly(attribute, value, monkeypatch):
    make = environments.make

    def other(*arguments):
        made = make(*arguments)
        setattr(made.env, attribute, value)
        return made

    monkeypatch.setattr(environments, "make", other)
    assert "rules" in refused(monkeypatch, preset(max_episodes=5))


def test_without_numba_the_plain_loop_plays(monkeypatch, compiled_anew):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert "numba is not installed" in refused(monkeypatch, preset(max_episodes=5))


def test_without_numpys_own_library_the_plain_loop_plays(monkeypatch, compiled_anew, tmp_path):
    monkeypatch.setattr(np, "__file__", str(tmp_path / "numpy" / "__init__.py"))
    assert "no OpenBLAS of its own" in refused(monkeypatch, preset(max_episodes=5))


# The check at first use


def test_a_step_that_is_wrong_in_the_last_bit_is_noticed(monkeypatch, compiled_anew):
    right = compiled.moved

    def wrong(state, action, pole):
        gravity, mass, total, moment, length, push, tau, farthest, steepest = pole
        x, velocity, angle, turning = state
        over = abs(x + tau * velocity) > farthest or abs(angle + tau * turning) > steepest
        state[0], state[2] = x + tau * velocity, angle + tau * turning
        cos, sin = np.cos(angle), np.sin(angle)
        pushed = ((push if action == 1 else -push) + moment * (turning * turning) * sin) / total
        twist = (gravity * sin - cos * pushed) / (length * (4.0 / 3.0 - mass * (cos * cos) / total))
        state[1], state[3] = velocity + tau * (pushed - moment * (twist * cos) / total), turning + tau * twist
        return over

    states = np.random.default_rng(0).normal(0, 0.1, (50, 4))
    pole = compiled._pole(gym.make("CartPole-v1").unwrapped)
    here, there = states.copy(), states.copy()
    assert [right(one, 1, pole) for one in here] == [wrong(one, 1, pole) for one in there]
    np.testing.assert_allclose(here, there, rtol=1e-12)  # the product of three in another order: a bit, now and then
    monkeypatch.setattr(compiled, "moved", wrong)
    assert "steps differ" in refused(monkeypatch, preset(max_episodes=5))


def test_a_product_that_is_wrong_in_the_last_bit_is_noticed(monkeypatch, compiled_anew):
    import numba

    right, nearly = compiled._numpys_product(), np.nextafter(np.float32(1), np.float32(2))

    @numba.njit
    def wrong(order, way, rows, columns, factor, matrix, lead, x, x_step, other, y, y_step):
        right(order, way, rows, columns, nearly, matrix, lead, x, x_step, other, y, y_step)

    monkeypatch.setattr(compiled, "_numpys_product", lambda: wrong)
    assert "products differ" in refused(monkeypatch, preset(max_episodes=5))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_check_takes_nothing_from_the_run(width, compiled_anew):
    """The first use of a width, with its check, and a later one give the same record."""
    assert told(early(preset(hidden=(width,), max_episodes=5), 0)) == told(
        early(preset(hidden=(width,), max_episodes=5), 0)
    )
