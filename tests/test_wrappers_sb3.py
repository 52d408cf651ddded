"""Stable-Baselines3's interface is kept, rewards are scaled by whole episodes, returns normalized where it learns."""

import copy
import json
import pickle
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from outside import Watching
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecFrameStack,
    VecNormalize,
    sync_envs_normalization,
    unwrap_vec_normalize,
)

from kscore.normalizers import NORMALIZERS, make
from kscore.wrappers.sb3 import KeepScores, LogScale, NormalizedDictRolloutBuffer, NormalizedRolloutBuffer, VecKScore
from kscore.wrappers.scaling import ReturnScale

WATCHED = {"name": "outside:Watching"}


class Pays(gym.Env):
    """The n-th step of an episode pays n, or 1 throughout; it ends or is cut off after some steps."""

    action_space = spaces.Discrete(2)

    def __init__(self, steps=4, cut=False, alike=False, dicts=False):
        self.steps, self.cut, self.alike, self.dicts = steps, cut, alike, dicts
        box = spaces.Box(-99, 99, (2,), np.float32)
        self.observation_space = spaces.Dict({"seen": box, "other": box}) if dicts else box

    def _seen(self):
        seen = np.array([self.at, -self.at], np.float32)
        return {"seen": seen, "other": 2 * seen} if self.dicts else seen

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self._seen(), {}

    def step(self, action):
        self.at += 1
        over = self.at == self.steps
        return self._seen(), 1.0 if self.alike else float(self.at), over and not self.cut, over and self.cut, {}


def lanes(*steps, **options):
    return DummyVecEnv([lambda steps=own: Pays(steps, **options) for own in steps])


def taught():
    """The series that a watching normalizer was given: the first of each pair, the second asks for the scale."""
    return [series for _, series in Watching.seen[::2]]


def go(env, steps):
    return np.array([env.step([0] * env.num_envs)[1] for _ in range(steps)])


@pytest.fixture(autouse=True)
def nothing_seen():
    torch.set_num_threads(1)
    Watching.seen.clear()


# Rewards: a VecNormalize


@pytest.mark.parametrize("name", NORMALIZERS)
@pytest.mark.parametrize("cut", [False, True])
def test_every_episode_is_divided_by_what_the_ones_before_it_taught(name, cut):
    env, known = VecKScore(lanes(3, cut=cut), normalizer=name, gamma=0.9, clip_reward=1e9), ReturnScale(name, 0.9)
    env.reset()
    for k in range(4):
        scaled = go(env, 3)[:, 0]
        assert scaled.dtype == np.float32
        if k or known.scale:
            np.testing.assert_allclose(scaled, np.array([1, 2, 3]) / known.scale, rtol=1e-6)
        known.learn([1.0, 2.0, 3.0])
    forwards = {"largest": 0.0, "mean": 0.0, "steps": 0}  # what comes of steps, not of whole episodes
    assert env.ret_rms.state_dict() | forwards == known.state_dict()


@pytest.mark.parametrize("cut", [False, True])
def test_no_end_and_no_reset_leaks_into_the_next_episode(cut):
    env = VecKScore(lanes(3, 2, cut=cut), normalizer=WATCHED, gamma=0.0)
    env.reset()
    go(env, 4)
    env.reset()
    go(env, 3)
    assert taught() == [[1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0, 3.0]]


@pytest.mark.parametrize("dicts", [False, True])
def test_observations_are_those_of_vec_normalize(dicts):
    ours, theirs = (kind(lanes(4, 7, dicts=dicts), clip_obs=1.2) for kind in (VecKScore, VecNormalize))
    pairs = [(ours.reset(), theirs.reset())]
    for _ in range(20):
        (mine, _, dones, infos), (other, _, same, others) = (env.step([0, 1]) for env in (ours, theirs))
        assert (dones == same).all()
        pairs += [
            (mine, other),
            *(
                (info["terminal_observation"], at_end["terminal_observation"])
                for info, at_end, done in zip(infos, others, dones, strict=True)
                if done
            ),
        ]
        pairs.append((ours.get_original_obs(), theirs.get_original_obs()))
    for mine, other in pairs:
        for one, same in zip(*(list(seen.values()) if dicts else [seen] for seen in (mine, other)), strict=True):
            np.testing.assert_array_equal(one, same)


def test_original_rewards_stay_reachable_and_the_first_do_not_spike():
    env = VecKScore(make_vec_env("CartPole-v1", 2, seed=0), clip_reward=1e9)
    env.reset()
    rewards = go(env, 5)
    assert np.abs(rewards).max() <= 2 and env.get_original_reward().tolist() == [1.0, 1.0]
    original = env.get_original_reward()
    original[:] = 7
    assert env.get_original_reward().tolist() == [1.0, 1.0]


def test_normalizing_from_outside_goes_by_the_newest_scale_and_learns_nothing():
    env = VecKScore(lanes(5, 5), gamma=0.9, clip_reward=2.0)
    env.reset()
    go(env, 12)
    before = copy.deepcopy(env.ret_rms.state_dict())
    rewards = np.array([[0.1], [-0.2], [0.3]])  # as a replay buffer has them
    scaled = env.normalize_reward(rewards)
    assert scaled.shape == rewards.shape and scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, rewards / env.ret_rms.scale, rtol=1e-6)
    np.testing.assert_allclose(env.unnormalize_reward(scaled), rewards, rtol=1e-6)
    assert env.normalize_reward(np.array([1e6, -1e6])).tolist() == [2.0, -2.0]
    assert env.normalize_reward(0.1) == scaled[0, 0]  # one number, as there
    assert env.ret_rms.state_dict() == before
    latest = go(env, 1)[0]
    np.testing.assert_allclose(env.normalize_reward(env.get_original_reward()), latest, rtol=1e-6)


def test_rewards_are_clipped():
    env = VecKScore(lanes(5, 3), clip_reward=0.5)
    env.reset()
    assert np.abs(go(env, 20)).max() == 0.5


def test_rewards_are_left_alone_where_that_is_asked_for_and_learned_from_all_the_same():
    env = VecKScore(lanes(3), norm_reward=False)
    env.reset()
    rewards = go(env, 6)
    assert rewards[:, 0].tolist() == [1, 2, 3, 1, 2, 3] and rewards.dtype == np.float32 and env.ret_rms.count == 2
    assert env.norm_reward is False and env.unnormalize_reward(rewards) is rewards
    assert env.normalize_reward(np.array([5.0])).tolist() == [5.0]


def test_a_wrapper_that_is_not_training_learns_nothing():
    env = VecKScore(lanes(3), normalizer="running")
    env.reset()
    go(env, 6)
    env.training, before = False, copy.deepcopy(env.ret_rms.state_dict())
    mean = env.obs_rms.mean.copy()
    scaled = go(env, 6)[:, 0]
    assert env.ret_rms.state_dict() == before and (env.obs_rms.mean == mean).all()
    np.testing.assert_allclose(scaled, np.array([1, 2, 3, 1, 2, 3]) / env.ret_rms.scale, rtol=1e-6)


@pytest.mark.parametrize("load", [VecKScore.load, VecNormalize.load])
@pytest.mark.parametrize("others", [1, 2, 5])
def test_saved_and_loaded_it_goes_on(tmp_path, load, others):
    env = VecKScore(lanes(3, 3), normalizer={"name": "popart", "rate": 0.3}, gamma=0.8, clip_reward=3.0, clip_obs=2.0)
    env.reset()
    go(env, 7)
    env.save(tmp_path / "vec.pkl")
    again = load(tmp_path / "vec.pkl", lanes(*[3] * others))
    assert isinstance(again, VecKScore) and again.num_envs == others
    assert again.ret_rms.state_dict() == env.ret_rms.state_dict() and again.ret_rms.normalizer.rate == 0.3
    assert (again.gamma, again.clip_reward, again.clip_obs, again.training) == (0.8, 3.0, 2.0, True)
    assert (again.obs_rms.mean == env.obs_rms.mean).all()
    again.reset()
    env.reset()
    np.testing.assert_array_equal(go(again, 3)[:, 0], go(env, 3)[:, 0])  # nothing of the unfinished episodes
    with pytest.raises(ValueError, match="already initialized"):
        again.set_venv(lanes(3))


def test_a_pickle_holds_no_environment_and_a_plain_vec_normalize_is_refused(tmp_path):
    env = VecKScore(lanes(3))
    env.reset()
    go(env, 4)
    again = pickle.loads(pickle.dumps(env))
    assert again.venv is None and again.ret_rms.count == 1
    VecNormalize(lanes(3)).save(tmp_path / "theirs.pkl")
    with pytest.raises(ValueError, match="load_path must name a file of a VecKScore, got .*theirs.pkl.* VecNormalize"):
        VecKScore.load(tmp_path / "theirs.pkl", lanes(3))


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path, env = tmp_path / "vec.pkl", VecKScore(lanes(3))
    env.save(path)
    whole = path.read_bytes()
    env.ret_rms.normalizer.kept = lambda: None  # cannot be pickled
    with pytest.raises((AttributeError, pickle.PicklingError)):
        env.save(path)
    assert path.read_bytes() == whole and [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: b"",
        lambda whole: whole[:200],
        lambda whole: b"hello",
        lambda whole: b'{"scale": 1}',
        lambda whole: whole.replace(b"kscore", b"kscorf"),
    ],
)
def test_a_file_that_is_damaged_or_of_another_kind_is_told(tmp_path, change):
    VecKScore(lanes(3)).save(tmp_path / "vec.pkl")
    (tmp_path / "bad.pkl").write_bytes(change((tmp_path / "vec.pkl").read_bytes()))
    with pytest.raises(ValueError, match="load_path must name a file of a VecKScore, got .*bad.pkl'"):
        VecKScore.load(tmp_path / "bad.pkl", lanes(3))


@pytest.mark.parametrize("dicts", [False, True])
@pytest.mark.parametrize("norm_obs", [False, True])
def test_all_that_was_learned_can_be_saved_and_loaded_as_json(tmp_path, dicts, norm_obs):
    env, other = (VecKScore(lanes(3, 5, dicts=dicts), norm_obs=norm_obs, normalizer="popart") for _ in range(2))
    env.reset()
    go(env, 9)
    env.save_json(tmp_path / "vec.json")
    other.reset()
    other.load_json(tmp_path / "vec.json")
    assert other.state_dict() == env.state_dict() == json.loads((tmp_path / "vec.json").read_text())
    again, seen = env.reset(), other.reset()
    for one, same in zip(*(list(each.values()) if dicts else [each] for each in (again, seen)), strict=True):
        np.testing.assert_allclose(one, same, rtol=1e-2)  # each has learned from its own reset
    np.testing.assert_array_equal(go(other, 4), go(env, 4))


@pytest.mark.parametrize(
    "change, told",
    [
        ({"version": 0}, r"state\['version'\] must be 1"),
        ({"settings": {"observations": {"": [3]}}}, r"state\['settings'\].* must be \[2\], as here, got \[3\]"),
        ({"observations": {}}, r"state\['observations'\] must have the keys \[''\], got {}"),
        ({"observations": {"": {"mean": [0, 0], "var": [1, 1]}}}, r"must have the keys \['count', 'mean', 'var'\]"),
        (
            {"observations": {"": {"mean": [0, 0], "var": [1, -1], "count": 1}}},
            r"\['var'\] must not be negative, got -1",
        ),
        ({"observations": {"": {"mean": [0], "var": [1, 1], "count": 1}}}, r"\['mean'\] must have the shape \(2,\)"),
        ({"observations": {"": {"mean": [0, 0], "var": [1, 1], "count": 0}}}, r"\['count'\] must be positive"),
        ({"returns": {}}, "state must have the keys"),
    ],
)
def test_a_bad_state_of_the_wrapper_changes_nothing_and_is_told(change, told):
    env = VecKScore(lanes(3))
    env.reset()
    go(env, 5)
    before = env.state_dict()
    with pytest.raises(ValueError, match=told):
        env.load_state_dict(before | change)
    assert env.state_dict() == before


def test_a_file_of_json_runs_nothing(tmp_path):
    """A pickle can run code while it is read; this file names a class, and it is not imported."""
    env = VecKScore(lanes(3))
    state = env.state_dict()
    state["returns"] = json.loads(json.dumps(state["returns"]))
    state["returns"]["settings"]["normalizer"] = {"name": "this:Zen"}
    (tmp_path / "bad.json").write_text(json.dumps(state))
    with pytest.raises(ValueError, match="must be .*'episode'.*, as here, got .*this:Zen"):
        env.load_json(tmp_path / "bad.json")
    assert "this" not in sys.modules


def test_a_pickle_of_another_version_is_refused(tmp_path, monkeypatch):
    env = VecKScore(lanes(3))
    with monkeypatch.context() as patch:
        patch.setattr("kscore.wrappers.sb3.VERSION", 0)
        env.save(tmp_path / "old.pkl")
    with pytest.raises(ValueError, match="load_path must name .*version 1 of a VecKScore, got 0"):
        VecKScore.load(tmp_path / "old.pkl", lanes(3))


def test_sums_are_followed_as_in_the_wrapper_of_the_library():
    ours, theirs = (kind(lanes(4, 7), gamma=0.9) for kind in (VecKScore, VecNormalize))
    for env in (ours, theirs):
        env.reset()
    for _ in range(30):
        for env in (ours, theirs):
            go(env, 1)
        np.testing.assert_allclose(ours.returns, theirs.returns)
        assert ours.ret_rms.mean == pytest.approx(theirs.ret_rms.mean, rel=1e-3)  # theirs begins with a bit of a 0


def test_a_floor_can_be_asked_for():
    env = VecKScore(lanes(3, alike=True), floor=1.0, gamma=1.0)
    env.reset()
    assert go(env, 6)[-1] == pytest.approx(1 / np.sqrt((1 + 4 + 9) / 3))


def test_what_was_learned_can_be_had_without_a_pickle():
    env, other = VecKScore(lanes(3)), VecKScore(lanes(3))
    env.reset()
    go(env, 6)
    other.ret_rms.load_state_dict(json.loads(json.dumps(env.ret_rms.state_dict())))
    other.reset()
    np.testing.assert_array_equal(go(other, 3), go(env, 3))


def test_an_evaluation_gets_what_was_learned_and_keeps_it_to_itself():
    env = VecFrameStack(VecKScore(lanes(3, 3)), 2)
    eval_env = VecFrameStack(VecKScore(lanes(3), training=False), 2)
    env.reset()
    eval_env.reset()
    go(env, 6)
    rewards, ours, theirs = np.array([1.0, 2.0]), unwrap_vec_normalize(env), unwrap_vec_normalize(eval_env)
    assert not np.allclose(ours.normalize_reward(rewards), theirs.normalize_reward(rewards))
    sync_envs_normalization(env, eval_env)
    np.testing.assert_array_equal(ours.normalize_reward(rewards), theirs.normalize_reward(rewards))
    eval_env.reset()
    np.testing.assert_allclose(go(eval_env, 3)[:, 0], np.array([1, 2, 3]) / ours.ret_rms.scale, rtol=1e-6)
    before = copy.deepcopy(theirs.ret_rms.state_dict())
    go(env, 6)
    assert theirs.ret_rms.state_dict() == before != ours.ret_rms.state_dict()


def test_a_plain_vec_normalize_can_be_given_its_scale_but_has_none_to_give():
    env, plain = VecKScore(lanes(3), norm_obs=False), VecNormalize(lanes(3), norm_obs=False, training=False)
    env.reset()
    go(env, 6)
    sync_envs_normalization(env, plain)
    plain.reset()
    np.testing.assert_allclose(go(plain, 3)[:, 0], np.array([1, 2, 3]) / env.ret_rms.scale, rtol=1e-5)
    before = env.ret_rms.state_dict()
    with pytest.raises(ValueError, match="ret_rms must be the ReturnScale of a VecKScore, got a RunningMeanStd"):
        sync_envs_normalization(VecNormalize(lanes(3), norm_obs=False), env)
    env.reset()
    assert env.ret_rms.state_dict() == before


def test_gamma_is_checked_and_can_be_set():
    with pytest.raises(ValueError, match="gamma must be between 0 and 1, got 1.1"):
        VecKScore(lanes(3), gamma=1.1)
    env = VecKScore(lanes(3), normalizer=WATCHED, gamma=0.0)
    env.gamma = 0.5
    env.reset()
    go(env, 3)
    assert env.gamma == 0.5 and taught() == [[1 + 1 + 0.75, 2 + 1.5, 3.0]]
    with pytest.raises(ValueError, match="gamma must be a number"):
        env.gamma = "0.9"


def test_processes_of_their_own_are_no_other_case():
    env = VecKScore(
        make_vec_env("CartPole-v1", 2, vec_env_cls=SubprocVecEnv, env_kwargs={"max_episode_steps": 5}),
        normalizer=WATCHED,
        gamma=0.0,
    )
    env.reset()
    assert go(env, 10).dtype == np.float32 and taught() == 4 * [[1.0] * 5]  # cut off, and learned from
    env.close()


def test_a_reward_that_is_not_finite_is_told():
    class Broken(Pays):
        def step(self, action):
            return self._seen(), float("nan"), False, False, {}

    env = VecKScore(DummyVecEnv([Broken]))
    env.reset()
    with pytest.raises(ValueError, match="rewards must be finite"):
        go(env, 1)
    assert env.norm_reward is True


@pytest.mark.parametrize("algorithm", [PPO, A2C])
def test_real_training_with_an_evaluation(algorithm, tmp_path):
    env, eval_env = (VecKScore(make_vec_env("CartPole-v1", n, seed=n), training=n == 2) for n in (2, 1))
    rollout = {"n_steps": 64, "batch_size": 64, "n_epochs": 2} if algorithm is PPO else {"n_steps": 32}
    model = algorithm("MlpPolicy", env, device="cpu", seed=0, **rollout)
    callback = EvalCallback(eval_env, n_eval_episodes=2, eval_freq=64, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.learn(256, callback=callback)
    assert model.get_vec_normalize_env() is env and env.ret_rms.count > 4
    assert eval_env.ret_rms.count > 0 and 5 < callback.last_mean_reward < 500  # in rewards as they are
    model.save(tmp_path / "model")
    again = algorithm.load(tmp_path / "model", env=env, device="cpu")
    again.learn(128)
    assert evaluate_policy(again, eval_env, 1, warn=False)[0] > 0


def test_learners_that_keep_rewards_for_later_scale_them_when_they_learn():
    env = VecKScore(make_vec_env("CartPole-v1", 1, seed=0))
    model = DQN("MlpPolicy", env, learning_starts=50, buffer_size=200, device="cpu", seed=0).learn(120)
    assert set(model.replay_buffer.rewards[:100].ravel()) == {1.0}
    sampled = model.replay_buffer.sample(20, env=env).rewards.numpy()
    np.testing.assert_allclose(sampled, 1 / env.ret_rms.scale, rtol=1e-6)


# Seen while training


def logged(folder, model, callback, steps=256):
    """What a model writes into its log while it learns."""
    model.set_logger(configure(str(folder), ["json"]))
    model.learn(steps, callback=callback, log_interval=1)
    return [json.loads(line) for line in (folder / "progress.json").read_text().splitlines()]


def test_what_a_wrapper_learns_is_in_the_log(tmp_path):
    env = VecKScore(make_vec_env("CartPole-v1", 2, seed=0), gamma=0.9)
    model = A2C("MlpPolicy", VecFrameStack(env, 2), gamma=0.9, n_steps=32, device="cpu", seed=0)
    rows = logged(tmp_path, model, LogScale())
    assert [row["kscore/count"] for row in rows] == sorted(row["kscore/count"] for row in rows)
    assert (
        rows[-1]["kscore/scale"] == pytest.approx(env.ret_rms.scale) and rows[-1]["kscore/count"] == env.ret_rms.count
    )
    assert 0 < rows[-1]["kscore/gain"] < 1 < rows[-1]["kscore/centre"]


def test_what_a_buffer_learns_is_in_the_log(tmp_path):
    model = A2C(
        "MlpPolicy",
        lanes(4),
        n_steps=8,
        device="cpu",
        rollout_buffer_class=NormalizedRolloutBuffer,
        rollout_buffer_kwargs={"normalizer": "zscore"},
    )
    rows = logged(tmp_path, model, [KeepScores(), LogScale()], 16)
    assert rows[-1]["kscore/scale"] == pytest.approx(model.rollout_buffer.scale) and rows[-1]["kscore/count"] == 4
    assert rows[-1]["kscore/centre"] == pytest.approx(model.rollout_buffer.centre)
    assert "kscore/gain" not in rows[-1]  # a Z-Score has none


def test_a_learner_that_fills_a_replay_buffer_logs_it_too(tmp_path):
    env = VecKScore(make_vec_env("CartPole-v1", 1, seed=0))
    rows = logged(tmp_path, DQN("MlpPolicy", env, learning_starts=50, device="cpu", seed=0), LogScale(), 120)
    assert rows[-1]["kscore/count"] > 0


@pytest.mark.parametrize("gamma, warned", [(0.9, True), (0.99, False)])
def test_a_discount_that_is_not_the_models_is_told(gamma, warned):
    model = A2C("MlpPolicy", VecKScore(lanes(4), gamma=gamma), gamma=0.99, device="cpu")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.learn(5, callback=LogScale())
    assert warned == any(
        "gamma must be the same in VecKScore and in the model, got 0.9 and" in str(w.message) for w in told
    )


def test_a_log_of_nothing_is_refused():
    with pytest.raises(ValueError, match="LogScale must be used with a VecKScore or a rollout_buffer_class"):
        A2C("MlpPolicy", VecNormalize(lanes(4)), device="cpu").learn(5, callback=LogScale())


# Returns and advantages: a rollout buffer


def filled(rng, steps=30, n_envs=2, last_done=(True, False), **options):
    """A buffer of random steps, the arrays that went in, and what it was told last."""
    buffer = NormalizedRolloutBuffer(
        steps, Pays().observation_space, spaces.Discrete(2), "cpu", 0.9, 0.8, n_envs, **options
    )
    return buffer, *refill(buffer, rng, last_done)


def refill(buffer, rng, last_done=(True, False)):
    shape = buffer.buffer_size, buffer.n_envs
    rewards, values = rng.normal(5, 2, shape), rng.normal(0, 1, shape)
    starts = rng.uniform(size=shape) < 0.2
    starts[0] = True
    last = rng.normal(size=buffer.n_envs)
    buffer.reset()
    for t in range(shape[0]):
        buffer.add(
            np.zeros((shape[1], 2)),
            np.zeros(shape[1]),
            rewards[t],
            starts[t],
            torch.tensor(values[t]),
            torch.zeros(shape[1]),
        )
    buffer.compute_returns_and_advantage(torch.tensor(last)[:, None], np.array(last_done))
    return rewards, values, starts, last


def returns_by_hand(rewards, values, starts, last, done, gamma=0.8, gae_lambda=0.9):
    """Return the returns of one lane that GAE aims at, values in units of rewards: backwards, one step at a time."""
    returns, advantage = np.zeros(len(rewards)), 0.0
    for t in reversed(range(len(rewards))):
        over, after = (done, last) if t == len(rewards) - 1 else (starts[t + 1], values[t + 1])
        advantage = rewards[t] - values[t] + (0.0 if over else gamma * (after + gae_lambda * advantage))
        returns[t] = advantage + values[t]
    return returns


def pieces(starts):
    cuts = [0, *(np.flatnonzero(starts[1:]) + 1), len(starts)]
    return [slice(*pair) for pair in zip(cuts, cuts[1:], strict=False)]


@pytest.mark.parametrize("name", [name for name in NORMALIZERS if name != "symlog"])
@pytest.mark.parametrize("by", ["episode", "rollout"])
def test_returns_are_made_in_units_of_rewards_and_scored_piece_by_piece(name, by):
    rng = np.random.default_rng(0)
    buffer = NormalizedRolloutBuffer(
        30, Pays().observation_space, spaces.Discrete(2), "cpu", 0.9, 0.8, 2, normalizer=name, by=by
    )
    normalizer, centre, scale = make(name), 0.0, 1.0
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nobody says where time limits are: there are none
            rewards, values, starts, last = refill(buffer, rng)
        own = [
            returns_by_hand(
                rewards[:, lane],
                centre + scale * values[:, lane],
                starts[:, lane],
                centre + scale * last[lane],
                lane == 0,
            )
            for lane in range(2)
        ]
        series = (
            [np.concatenate(own)]
            if by == "rollout"
            else [returns[piece] for lane, returns in enumerate(own) for piece in pieces(starts[:, lane])]
        )
        scores = []
        for returns in series:
            centres, scales = normalizer.learn(returns)
            scores.append((returns - centres) / scales)
            centre, scale = (float(np.ravel(each)[-1]) for each in (centres, scales))
        scores = np.concatenate(scores).reshape(2, 30).T
        np.testing.assert_allclose(buffer.returns, scores, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(buffer.advantages, scores - values, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(buffer.values, values, rtol=1e-6)
        assert (buffer.centre, buffer.scale) == pytest.approx((centre, scale), rel=1e-5)
        assert {buffer.returns.dtype, buffer.advantages.dtype, buffer.values.dtype} == {np.dtype(np.float32)}


@pytest.mark.filterwarnings("ignore:The buffer learns")
def test_a_critic_of_logarithms_is_read_as_such():
    rng = np.random.default_rng(1)
    buffer, rewards, values, starts, last = filled(rng, normalizer="symlog", n_envs=1, last_done=(False,))
    logs = np.sign(values) * np.expm1(np.abs(values))
    returns = returns_by_hand(rewards[:, 0], logs[:, 0], starts[:, 0], np.sign(last[0]) * np.expm1(abs(last[0])), False)
    np.testing.assert_allclose(buffer.returns[:, 0], np.sign(returns) * np.log1p(np.abs(returns)), rtol=1e-5)


def test_without_normalizers_everything_is_as_in_stable_baselines():
    buffer, rewards, values, starts, last = filled(np.random.default_rng(2), normalizer=None)
    plain = RolloutBuffer(30, Pays().observation_space, spaces.Discrete(2), "cpu", 0.9, 0.8, 2)
    for t in range(30):
        plain.add(np.zeros((2, 2)), np.zeros(2), rewards[t], starts[t], torch.tensor(values[t]), torch.zeros(2))
    plain.compute_returns_and_advantage(torch.tensor(last)[:, None], np.array([True, False]))
    for name in ("returns", "advantages", "values", "rewards"):
        np.testing.assert_array_equal(getattr(buffer, name), getattr(plain, name))

    def trained(**options):
        model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=32, n_epochs=2, device="cpu", seed=3, **options)
        return torch.cat([own.detach().ravel() for own in model.learn(128).policy.parameters()])

    assert torch.equal(
        trained(), trained(rollout_buffer_class=NormalizedRolloutBuffer, rollout_buffer_kwargs={"normalizer": None})
    )


@pytest.mark.parametrize("normalizer", [None, "episode"])
@pytest.mark.parametrize("by", ["episode", "rollout"])
def test_advantages_have_a_normalizer_of_their_own(normalizer, by):
    rng = np.random.default_rng(4)
    with_one = filled(copy.deepcopy(rng), normalizer=normalizer, advantage_normalizer={"name": "running"}, by=by)
    without, *_, starts, _ = filled(rng, normalizer=normalizer, by=by)
    buffer, running = with_one[0], make("running")
    for lane in range(2):
        for piece in pieces(starts[:, lane]) if by == "episode" else [slice(None)]:
            np.testing.assert_allclose(
                buffer.advantages[piece, lane], running(without.advantages[piece, lane]), rtol=1e-3, atol=1e-5
            )
    np.testing.assert_array_equal(buffer.returns, without.returns)


def limited(steps, v=0.5, callback=None, normalizer=None, state=None, cut=True, algorithm=PPO):
    """Let a model with a critic that says `v` of every state play steps that pay 1; return its buffer."""
    sizes = {"batch_size": steps, "n_epochs": 1} if algorithm is PPO else {}
    model = algorithm(
        "MlpPolicy",
        lanes(4, cut=cut, alike=True),
        n_steps=steps,
        gamma=0.5,
        gae_lambda=1.0,
        device="cpu",
        rollout_buffer_class=NormalizedRolloutBuffer,
        seed=0,
        rollout_buffer_kwargs={"normalizer": normalizer or {"name": "outside:Fixed", "centre": 3.0, "width": 2.0}},
        **sizes,
    )
    with torch.no_grad():
        model.policy.value_net.weight.zero_()
        model.policy.value_net.bias.fill_(v)
    if state:
        model.rollout_buffer.load_state_dict(model.rollout_buffer.state_dict() | state)
    model.learn(steps, callback=callback)
    return model.rollout_buffer


STATE = {"centre": 10.0, "scale": 4.0}


@pytest.mark.parametrize("algorithm", [PPO, A2C])
@pytest.mark.parametrize("v", [0.5, 0.0])
def test_a_time_limit_is_worth_what_the_critic_says_in_units_of_rewards(algorithm, v):
    """Four steps of 1, cut off: R_t = 1 + ... + 0.5^(4-t) value, value = 10 + 4 v; two steps more go on."""
    buffer = limited(6, v, KeepScores(), state=STATE, algorithm=algorithm)
    value = 10 + 4 * v
    returns = [sum(0.5**k for k in range(left)) + 0.5**left * value for left in (4, 3, 2, 1, 2, 1)]
    np.testing.assert_allclose(buffer.returns.ravel(), (np.array(returns) - 3) / 2, rtol=1e-6)
    np.testing.assert_allclose(buffer.advantages.ravel(), (np.array(returns) - 3) / 2 - v, rtol=1e-6)
    assert (buffer.centre, buffer.scale) == (3.0, 2.0)


def test_a_termination_is_worth_nothing_more():
    buffer = limited(4, 0.5, KeepScores(), state=STATE, cut=False)
    returns = [sum(0.5**k for k in range(left)) for left in (4, 3, 2, 1)]
    np.testing.assert_allclose(buffer.returns.ravel(), (np.array(returns) - 3) / 2, rtol=1e-6)


def test_a_time_limit_in_logarithms():
    buffer = limited(4, 0.5, KeepScores(), normalizer="symlog")
    returns = [sum(0.5**k for k in range(left)) + 0.5**left * np.expm1(0.5) for left in (4, 3, 2, 1)]
    np.testing.assert_allclose(buffer.returns.ravel(), np.log1p(returns), rtol=1e-6)


def test_who_does_not_say_where_time_limits_are_is_warned_once_and_gets_an_output_for_a_value():
    with pytest.warns(UserWarning, match=r"callback=KeepScores\(\)") as told:
        buffer = limited(4, 0.5, state=STATE)
    assert len([one for one in told if "KeepScores" in str(one.message)]) == 1
    assert buffer.returns[3].item() == pytest.approx((1 + 0.5 * 0.5 - 3) / 2)  # off by 0.5 (10 + 3 * 0.5), scaled
    with pytest.warns(UserWarning, match="is lost when the model is saved"):
        limited(3, 0.5)  # nothing ended, but something is learned
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        limited(4, 0.5, KeepScores(), state=STATE)


class Stops(BaseCallback):
    """Stop after some steps, in the middle of a rollout."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def _on_step(self):
        return self.n_calls < self.steps


def test_what_was_said_of_an_unfinished_rollout_does_not_count_for_the_next():
    model = A2C(
        "MlpPolicy",
        lanes(4, cut=True, alike=True),
        n_steps=6,
        gamma=0.5,
        device="cpu",
        seed=0,
        rollout_buffer_class=NormalizedRolloutBuffer,
        rollout_buffer_kwargs={"normalizer": "outside:Fixed"},
    )
    model.rollout_buffer.load_state_dict(model.rollout_buffer.state_dict() | STATE)
    model.learn(6, callback=[KeepScores(), Stops(4)])  # the fourth step is cut off, and never comes to the buffer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.learn(6)
    assert model.rollout_buffer.rewards[0] == 1.0


def test_who_stops_saying_where_time_limits_are_is_warned():
    model = A2C("MlpPolicy", lanes(4, cut=True), n_steps=6, device="cpu", rollout_buffer_class=NormalizedRolloutBuffer)
    model.learn(12, callback=KeepScores())
    with pytest.warns(UserWarning, match=r"callback=KeepScores\(\)") as told:
        model.learn(24)
    assert len([one for one in told if "KeepScores" in str(one.message)]) == 1


def test_models_that_are_made_alike_do_not_learn_from_each_other():
    normalizer = make("running")
    options = {
        "device": "cpu",
        "rollout_buffer_class": NormalizedRolloutBuffer,
        "rollout_buffer_kwargs": {"normalizer": normalizer, "advantage_normalizer": normalizer},
    }
    first = A2C("MlpPolicy", lanes(4), **options).learn(5, callback=KeepScores())
    second = A2C("MlpPolicy", lanes(4), **options)
    assert first.rollout_buffer.normalizer.count == first.rollout_buffer.advantage_normalizer.count == 5
    assert second.rollout_buffer.normalizer.count == normalizer.count == 0


def test_every_stretch_of_an_episode_is_a_series():
    model = PPO(
        "MlpPolicy",
        lanes(4, 3, alike=True),
        n_steps=6,
        batch_size=12,
        n_epochs=1,
        gamma=0.0,
        gae_lambda=1.0,
        device="cpu",
        rollout_buffer_class=NormalizedRolloutBuffer,
        rollout_buffer_kwargs={"normalizer": WATCHED},
    )
    model.learn(24, callback=KeepScores())
    assert [series for _, series in Watching.seen] == [
        [1.0] * n for n in (4, 2, 3, 3, 2, 4, 3, 3)
    ]  # what is left of an episode goes on in the next rollout


@pytest.mark.parametrize(
    "algorithm, options",
    [
        (PPO, {"normalizer": "episode", "advantage_normalizer": "zscore"}),
        (PPO, {"normalizer": {"name": "kscore", "variant": "adaptive", "Q": 0.01, "R": 0.1}}),
        (PPO, {"normalizer": None, "advantage_normalizer": "episode"}),
        (A2C, {"normalizer": "running", "by": "rollout"}),
        (A2C, {"normalizer": "popart", "by": "rollout"}),
    ],
)
def test_real_training_with_normalized_returns(algorithm, options, tmp_path):
    sizes = {"n_steps": 64, "batch_size": 64, "n_epochs": 2, "normalize_advantage": False} if algorithm is PPO else {}
    model = algorithm(
        "MlpPolicy",
        make_vec_env("CartPole-v1", 2, seed=0),
        device="cpu",
        seed=0,
        **sizes,
        rollout_buffer_class=NormalizedRolloutBuffer,
        rollout_buffer_kwargs=options,
    )
    model.learn(256, callback=CallbackList([KeepScores()]))
    buffer, kept = model.rollout_buffer, model.rollout_scores
    assert np.isfinite(buffer.returns).all() and np.isfinite(buffer.advantages).all()
    assert json.loads(json.dumps(kept)) == kept == buffer.state_dict()
    model.save(tmp_path / "model")
    again = algorithm.load(tmp_path / "model", env=model.get_env(), device="cpu")
    assert again.rollout_scores == kept == again.rollout_buffer.state_dict()  # before any callback
    again.learn(128, callback=KeepScores())
    assert again.rollout_scores == again.rollout_buffer.state_dict() != kept


def test_a_model_that_was_loaded_keeps_the_units_of_its_critic_without_a_callback(tmp_path):
    options = {"normalizer": {"name": "outside:Fixed", "centre": 3.0, "width": 2.0}}
    shared = {"device": "cpu", "rollout_buffer_class": NormalizedRolloutBuffer, "rollout_buffer_kwargs": options}
    model = A2C("MlpPolicy", lanes(4), n_steps=8, **shared).learn(8, callback=KeepScores())
    model.save(tmp_path / "model")
    again = A2C.load(tmp_path / "model", env=lanes(4), device="cpu")
    assert (again.rollout_buffer.centre, again.rollout_buffer.scale) == (3.0, 2.0)
    with pytest.warns(UserWarning, match=r"learns without callback=KeepScores\(\)"):
        again.learn(8)
    assert options.keys() == {"normalizer"}  # another model may be made with the same dict
    assert A2C("MlpPolicy", lanes(4), **shared).rollout_buffer.centre == 0.0


def test_a_buffer_is_not_given_the_state_of_another_kind():
    state = NormalizedRolloutBuffer(2, Pays().observation_space, spaces.Discrete(2), "cpu").state_dict()
    for options, told in (
        ({"normalizer": {"name": "episode", "transform": "symlog"}}, r"\['transform'\] must be 'symlog', as here"),
        ({"by": "rollout"}, r"\['by'\] must be 'rollout', as here, got 'episode'"),
    ):
        with pytest.raises(ValueError, match=told):
            NormalizedRolloutBuffer(2, Pays().observation_space, spaces.Discrete(2), "cpu", **options, state=state)


def test_a_buffer_that_has_a_state_is_not_overwritten_by_what_was_kept():
    model = PPO(
        "MlpPolicy",
        lanes(4),
        n_steps=8,
        batch_size=8,
        n_epochs=1,
        device="cpu",
        rollout_buffer_class=NormalizedRolloutBuffer,
        rollout_buffer_kwargs={"normalizer": "running"},
    )
    model.learn(8, callback=KeepScores())
    model.rollout_buffer.load_state_dict(model.rollout_scores | {"centre": 5.0})
    model.learn(0, callback=KeepScores())
    assert model.rollout_buffer.centre == 5.0


def test_observations_that_are_dicts():
    model = PPO(
        "MultiInputPolicy",
        lanes(4, 3, dicts=True),
        n_steps=16,
        batch_size=16,
        n_epochs=1,
        device="cpu",
        seed=0,
        rollout_buffer_class=NormalizedDictRolloutBuffer,
        rollout_buffer_kwargs={"normalizer": "episode"},
    ).learn(64, callback=KeepScores())
    assert model.rollout_buffer.normalizer.episodes > 8


@pytest.mark.filterwarnings("ignore:The buffer learns")
@pytest.mark.parametrize("name", NORMALIZERS)
def test_a_frozen_normalizer_goes_on_scoring_and_what_was_learned_survives_json(name):
    rng = np.random.default_rng(5)
    buffer, *_ = filled(copy.deepcopy(rng), normalizer=name, advantage_normalizer="ema")
    other, *_ = filled(np.random.default_rng(6), normalizer=name, advantage_normalizer="ema")
    other.load_state_dict(json.loads(json.dumps(buffer.state_dict())))
    assert other.state_dict() == buffer.state_dict()
    for one in (buffer, other):
        one.normalizer.frozen = one.advantage_normalizer.frozen = one._told = True
    learned = {key: copy.deepcopy(buffer.state_dict()[key]) for key in ("normalizer", "advantage_normalizer")}
    refill(buffer, copy.deepcopy(rng))
    refill(other, copy.deepcopy(rng))
    np.testing.assert_array_equal(buffer.advantages, other.advantages)
    assert buffer.state_dict() | learned == buffer.state_dict() and np.isfinite(buffer.advantages).all()


@pytest.mark.parametrize(
    "change",
    [
        {"scale": 0.0},
        {"centre": float("nan")},
        {"normalizer": None},
        {"normalizer": {"count": -1, "mean": 0.0, "var": 1.0}},
        {"advantage_normalizer": {"count": 1.0}},
        {"advantage_normalizer": None},
        {"more": 1},
    ],
)
def test_a_bad_state_changes_nothing_and_is_told(change):
    buffer, *_ = filled(np.random.default_rng(7), normalizer="running", advantage_normalizer="ema")
    before = copy.deepcopy(buffer.state_dict())
    fresh = NormalizedRolloutBuffer(
        2, Pays().observation_space, spaces.Discrete(2), "cpu", normalizer="running", advantage_normalizer="ema"
    ).state_dict()
    with pytest.raises(ValueError, match="state"):
        buffer.load_state_dict(fresh | change)
    with pytest.raises(ValueError, match="state must have the keys"):
        buffer.load_state_dict(None)
    assert buffer.state_dict() == before


def test_values_of_outputs_are_told():
    buffer, *_ = filled(np.random.default_rng(8), normalizer="zscore")
    np.testing.assert_allclose(buffer.values_of([0.0, 1.0]), [buffer.centre, buffer.centre + buffer.scale])


def test_bad_input_gets_a_sentence():
    space = Pays().observation_space
    for options, told in (
        ({"by": "step"}, "by must be one of 'episode', 'rollout', got 'step'"),
        ({"normalizer": "z"}, "normalizer must be one of"),
        ({"normalizer": 3}, "must be a name"),
    ):
        with pytest.raises(ValueError, match=told):
            NormalizedRolloutBuffer(2, space, spaces.Discrete(2), "cpu", **options)
    with pytest.raises(ValueError, match="KeepScores must be used with .* got RolloutBuffer"):
        A2C("MlpPolicy", lanes(4), device="cpu").learn(5, callback=KeepScores())
    buffer = NormalizedRolloutBuffer(1, space, spaces.Discrete(2), "cpu")
    buffer.add(np.zeros((1, 2)), np.zeros(1), np.array([np.nan]), np.ones(1), torch.zeros(1), torch.zeros(1))
    with pytest.raises(ValueError, match="returns must be finite"):
        buffer.compute_returns_and_advantage(torch.zeros(1), np.zeros(1, bool))


def test_returns_that_are_not_finite_teach_nothing():
    buffer = NormalizedRolloutBuffer(
        1, Pays().observation_space, spaces.Discrete(2), "cpu", n_envs=2, normalizer="running"
    )
    buffer.add(np.zeros((2, 2)), np.zeros(2), np.array([1.0, np.nan]), np.ones(2), torch.ones(2), torch.zeros(2))
    before = buffer.state_dict()
    with pytest.raises(ValueError, match=r"returns must be finite .* got nan at index \(0, 1\)"):
        buffer.compute_returns_and_advantage(torch.zeros(2), np.zeros(2, bool))
    assert buffer.state_dict() == before and buffer.values.tolist() == [[1.0, 1.0]]
