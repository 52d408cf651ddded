"""Gymnasium's interface is kept: one environment or many, every mode of autoreset, specs, freezing, saving."""

import warnings
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import Autoreset, RecordEpisodeStatistics, TimeLimit
from outside import LevelAndSlope, Watching

from kscore.normalizers import NORMALIZERS, Normalizer, Scaling, make
from kscore.wrappers.gymnasium import EPSILON, FLOOR, InvalidBound, NormalizeReward, VectorNormalizeReward
from kscore.wrappers.scaling import ReturnScale

EPISODES = [[1.0, 2.0, -100.0], [4.0, 5.0], [7.0, 8.0, 9.0, 10.0], [3.0], [6.0, -2.0]]
WATCHED = {"name": "outside:Watching"}
FORWARDS = {"largest": 0.0, "mean": 0.0, "steps": 0}  # what comes of steps, not of whole episodes


class Script(gym.Env):
    """Episodes that are written down: each reward, and whether they terminate or are cut off."""

    action_space, observation_space = gym.spaces.Discrete(2), gym.spaces.Box(0, 99, (1,), np.float32)

    def __init__(self, episodes=EPISODES, cut=False, first=0):
        self.episodes, self.cut, self.number = episodes, cut, first - 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number, self.at = (self.number + 1) % len(self.episodes), 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        rewards = self.episodes[self.number]
        reward, self.at = rewards[self.at], self.at + 1
        over = self.at == len(rewards)
        return np.full(1, self.at, np.float32), reward, over and not self.cut, over and self.cut, {}


gym.register("Script-v0", f"{__name__}:Script")


def play(env, count=1):
    """Play whole episodes, and return the rewards of each."""
    played = []
    for _ in range(count):
        env.reset()
        played.append([])
        over = False
        while not over:
            _, reward, terminated, truncated, _ = env.step(0)
            played[-1].append(reward)
            over = terminated or truncated
    return played


def learned(episodes, normalizer="episode", gamma=0.9):
    """What is known after some episodes, without any environment."""
    known = ReturnScale(normalizer, gamma, FLOOR, EPSILON)
    for rewards in episodes:
        known.learn(rewards)
    return known


def taught():
    """The series that a watching normalizer was given: the first of each pair, the second asks for the scale."""
    return [series for _, series in Watching.seen[::2]]


@pytest.fixture(autouse=True)
def nothing_seen():
    Watching.seen.clear()


# One environment


@pytest.mark.parametrize("name", NORMALIZERS)
@pytest.mark.parametrize("cut", [False, True])
def test_every_episode_is_divided_by_what_the_ones_before_it_taught(name, cut):
    env = NormalizeReward(Script(cut=cut), normalizer=name, gamma=0.9)
    for k, scaled in enumerate(play(env, 5)):
        scale = learned(EPISODES[:k], name).scale
        assert not scale or np.allclose(scaled, np.array(EPISODES[k]) / scale, rtol=1e-12)
    assert env.state_dict() | FORWARDS == learned(EPISODES, name).state_dict() | FORWARDS


@pytest.mark.parametrize("cut", [False, True])
def test_no_end_and_no_reset_leaks_into_the_next_episode(cut):
    env = NormalizeReward(Script(cut=cut), normalizer=WATCHED, gamma=0.0)
    play(env, 1)
    env.reset()
    env.step(0)  # the second episode, left unfinished
    play(env, 1)
    assert taught() == [EPISODES[0], EPISODES[2]]


def test_a_time_limit_outside_of_the_wrapper_is_a_reset_in_the_middle():
    env = TimeLimit(NormalizeReward(Script(), normalizer=WATCHED, gamma=0.0), 2)
    for _ in range(2):
        play(env)
    assert taught() == [EPISODES[1]]  # of the first the wrapper has seen no end; the second was over by itself


def test_a_time_limit_inside_is_an_end():
    play(NormalizeReward(TimeLimit(Script(), 2), normalizer=WATCHED, gamma=0.0), 2)
    assert taught() == [EPISODES[0][:2], EPISODES[1]]


def test_the_step_in_which_an_environment_resets_itself_is_no_episode():
    env = NormalizeReward(Autoreset(Script()), normalizer=WATCHED, gamma=0.0)
    env.reset()
    rewards = [env.step(0)[1] for _ in range(3 + 1 + 2 + 1 + 4)]
    assert taught() == EPISODES[:3] and rewards[3] == rewards[6] == 0


def test_the_interface_is_gymnasiums():
    env = NormalizeReward(gym.make("CartPole-v1"))
    assert isinstance(env, gym.Wrapper) and env.gamma == 0.99 and env.update_running_mean is True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is a wrapper, and of the environment's own bounds
        check_env(NormalizeReward(gym.make("CartPole-v1").unwrapped), skip_render_check=True)
    theirs = gym.wrappers.NormalizeReward(gym.make("CartPole-v1"))
    for name in ("update_running_mean", "gamma", "return_rms", "spec", "unwrapped"):
        assert hasattr(theirs, name) and hasattr(env, name)
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(0)
    assert type(reward) is float and np.ndim(reward) == 0 and info == {} and env.raw_reward == 1.0
    assert env.get_wrapper_attr("raw_reward") == 1.0 and {"mean", "var", "count"} <= set(dir(env.return_rms))


def test_freezing_is_told_as_in_gymnasium():
    env = NormalizeReward(Script(), normalizer="running", gamma=0.9)
    play(env, 2)
    before = env.state_dict()
    env.update_running_mean = False
    assert env.update_running_mean is False
    scaled = play(env, 2)
    assert env.state_dict() == before and np.allclose(scaled[0], np.array(EPISODES[2]) / env.return_rms.scale)
    env.update_running_mean = np.bool_(True)  # a comparison of numbers
    assert env.update_running_mean is True
    play(env, 1)
    assert env.return_rms.count == 3
    with pytest.raises(ValueError, match="update_running_mean must be True or False, got 1"):
        env.update_running_mean = 1


def test_an_environment_can_be_made_again_from_its_spec():
    env = NormalizeReward(gym.make("Script-v0"), normalizer={"name": "ema", "decay": 0.5}, gamma=0.8)
    play(env, 2)
    for spec in (env.spec, EnvSpec.from_json(env.spec.to_json())):
        again = gym.make(spec)
        assert isinstance(again, NormalizeReward) and again.gamma == 0.8 and again.return_rms.count == 0
        assert again.return_rms.normalizer == make("ema", decay=0.5)


def test_a_normalizer_of_ones_own_is_copied_and_made_anew_from_the_spec():
    normalizer = make("running")
    env = NormalizeReward(gym.make("Script-v0"), normalizer=normalizer)
    play(env, 1)
    again = gym.make(env.spec)
    assert normalizer.count == 0 and again.return_rms.normalizer.count == 0
    assert env.return_rms.normalizer.count == 3


@pytest.mark.parametrize("normalizer", [make("ema", decay=0.5), make("episode"), LevelAndSlope(drift=(0.5, 0.1))])
def test_environments_made_from_one_spec_have_a_normalizer_each(normalizer):
    spec = NormalizeReward(gym.make("Script-v0"), normalizer=normalizer).spec
    for own in (spec, EnvSpec.from_json(spec.to_json())):
        one, other = gym.make(own), gym.make(own)
        play(one, 2)
        assert other.state_dict() == gym.make(own).state_dict() != one.state_dict()
        assert repr(other.return_rms.normalizer) == repr(normalizer)


def test_a_spec_keeps_a_normalizer_that_its_name_would_not_make():
    learned, frozen = make("running"), make("running")
    learned.learn(np.array([1.0, 2.0]))
    frozen.frozen = True

    @dataclass
    class Local(Normalizer):
        def recall(self, returns):
            return Scaling(0.0, 2.0)

    for normalizer in (learned, frozen, Local()):
        again = gym.make(NormalizeReward(gym.make("Script-v0"), normalizer=normalizer).spec).return_rms.normalizer
        assert again == normalizer and again is not normalizer


def test_statistics_inside_see_the_rewards_as_they_are():
    env = NormalizeReward(RecordEpisodeStatistics(Script()))
    play(env, 5)
    assert list(env.env.return_queue) == [sum(rewards) for rewards in EPISODES]


def test_what_was_learned_can_be_saved_loaded_and_gone_on_from(tmp_path):
    env, other = (NormalizeReward(Script(first=first), normalizer="popart") for first in (0, 3))
    play(env, 3)
    env.save(tmp_path / "scale.json")
    other.load(tmp_path / "scale.json")
    assert other.state_dict() == env.state_dict() and play(other, 2) == play(env, 2)
    third = NormalizeReward(Script(first=0), normalizer="popart")
    third.load_state_dict(env.state_dict())
    assert play(third, 1) == play(env, 1)


def test_bad_input_gets_a_sentence():
    for arguments, told in (
        ({"gamma": 1.5}, "gamma must be between 0 and 1, got 1.5"),
        ({"normalizer": 0.99}, "normalizer must be a name, .* got 0.99"),
        ({"normalizer": "kalman"}, "normalizer must be one of"),
    ):
        with pytest.raises(ValueError, match=told):
            NormalizeReward(Script(), **arguments)
    env = NormalizeReward(Script([[1.0, float("nan")]]))
    env.reset()
    env.step(0)
    with pytest.raises(ValueError, match="rewards must be finite"):
        env.step(0)


def test_the_arguments_of_gymnasiums_wrapper_come_first_and_in_its_order():
    env = NormalizeReward(Script(), 0.9, 1e-8)
    assert (env.gamma, env.epsilon) == (0.9, 1e-8)
    envs = VectorNormalizeReward(SyncVectorEnv([Script]), 0.8, 1e-4)
    assert (envs.gamma, envs.epsilon) == (0.8, 1e-4)


@pytest.mark.parametrize(
    "setting", [{"gamma": 1.5}, {"gamma": -0.1}, {"epsilon": 0}, {"epsilon": -1e-8}, {"floor": 2}, {"clip_reward": 0}]
)
@pytest.mark.parametrize("kind", [NormalizeReward, VectorNormalizeReward])
def test_a_setting_out_of_bounds_is_gymnasiums_error_and_pythons(kind, setting):
    env = Script() if kind is NormalizeReward else SyncVectorEnv([Script])
    (name,) = setting
    for error in (gym.error.InvalidBound, ValueError, InvalidBound):
        with pytest.raises(error, match=f"^{name} must be"):
            kind(env, **setting)


def test_gamma_can_be_set_and_counts_from_the_next_episode_that_ends():
    env = NormalizeReward(Script(), normalizer=WATCHED, gamma=0.0)
    env.gamma = 0.5
    play(env, 1)
    assert env.gamma == 0.5 and taught() == [[1 + 1 - 25, 2 - 50, -100]]
    with pytest.raises(gym.error.InvalidBound, match="gamma must be between 0 and 1, got 2"):
        env.gamma = 2


@pytest.mark.parametrize("kind", [NormalizeReward, VectorNormalizeReward])
def test_rewards_from_outside_are_scaled_and_teach_nothing(kind):
    env = kind(Script() if kind is NormalizeReward else SyncVectorEnv([Script]), clip_reward=3.0)
    env.reset()
    for _ in range(3):
        env.step(0 if kind is NormalizeReward else np.zeros(1, int))
    before = env.state_dict()
    rewards = np.array([[1.0, -2.0, 1e6]])
    np.testing.assert_allclose(env.normalize(rewards), [[1 / env.return_rms.scale, -2 / env.return_rms.scale, 3.0]])
    assert env.normalize(1.0) == 1 / env.return_rms.scale and env.state_dict() == before


def test_a_sparse_goal_does_not_spike():
    """A task that pays 1 at its last step, ten steps from its first: their spread is next to nothing."""
    goal = Script([[0.0] * 9 + [1.0]])
    assert max(play(NormalizeReward(goal), 20)[-1]) < 11 and max(play(NormalizeReward(goal, floor=0.0), 20)[-1]) > 30
    assert max(play(NormalizeReward(goal, floor=0.0, clip_reward=5.0), 20)[-1]) == 5.0


def test_what_is_known_can_be_seen_in_the_info_at_an_episodes_end():
    env = NormalizeReward(Script(), normalizer={"name": "ema", "decay": 0.75}, info_key="return_scale", gamma=0.9)
    env.reset()
    infos = [env.step(0)[4] for _ in range(3)]
    assert infos[:2] == [{}, {}] and infos[2] == {"return_scale": env.return_rms.report()}
    report = infos[2]["return_scale"]
    assert report["scale"] == env.return_rms.scale and report["count"] == 1 and 0.25 < report["gain"] < 1
    assert report["centre"] == env.return_rms.normalizer.mean and NormalizeReward(Script()).info_key is None
    with pytest.raises(ValueError, match="info_key must be a text or None, got 3"):
        NormalizeReward(Script(), info_key=3)


# Many


def makers(cut=False):
    """Lanes that play the same episodes, each beginning with another one."""
    return [lambda first=first: Script(cut=cut, first=first) for first in (0, 2)]


def lane_by_lane(steps, mode):
    """What two lanes teach, in order, and the rewards as they come, (steps, lanes): played by hand."""
    number, own, waiting, order, raw = [0, 2], [[], []], [False, False], [], []
    for _ in range(steps):
        row = []
        for lane in range(2):
            if waiting[lane]:
                waiting[lane] = False
                row.append(0.0)
                continue
            own[lane].append(EPISODES[number[lane]][len(own[lane])])
            row.append(own[lane][-1])
            if len(own[lane]) == len(EPISODES[number[lane]]):
                order.append(own[lane])
                own[lane], number[lane] = [], (number[lane] + 1) % len(EPISODES)
                waiting[lane] = mode == AutoresetMode.NEXT_STEP
        raw.append(row)
    return order, np.array(raw)


@pytest.mark.parametrize("vector", [SyncVectorEnv, AsyncVectorEnv])
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
@pytest.mark.parametrize("cut", [False, True])
def test_in_every_mode_of_autoreset_each_episode_is_learned_from_whole_and_once(vector, mode, cut):
    envs = VectorNormalizeReward(vector(makers(cut), autoreset_mode=mode), normalizer=WATCHED, gamma=0.0)
    envs.reset(seed=0)
    raw = []
    for _ in range(15):
        _, scaled, terminations, truncations, _ = envs.step(np.zeros(2, int))
        raw.append(envs.raw_reward)
        over = terminations | truncations
        if mode == AutoresetMode.DISABLED and over.any():
            envs.reset(options={"reset_mask": over})
    envs.close()
    order, expected = lane_by_lane(15, mode)
    assert taught() == order and (np.array(raw) == expected).all() and scaled.dtype == float


@pytest.mark.parametrize("name", NORMALIZERS)
def test_many_learn_from_the_same_episodes_what_one_learns(name):
    envs = VectorNormalizeReward(SyncVectorEnv(makers()[:1]), normalizer=name, gamma=0.9)
    one = NormalizeReward(Script(), normalizer=name, gamma=0.9)
    envs.reset()
    played = [envs.step(np.zeros(1, int))[1][0] for _ in range(sum(map(len, EPISODES)) + 4)]
    expected = [0.0]
    for scaled in play(one, 5):
        expected += [*scaled, 0.0]  # and the step that resets
    assert played == expected[1:-1] and envs.state_dict() == one.state_dict()


def test_a_reset_drops_unfinished_episodes_of_all_lanes_or_of_those_in_the_mask():
    envs = VectorNormalizeReward(
        SyncVectorEnv(makers(), autoreset_mode=AutoresetMode.DISABLED), normalizer=WATCHED, gamma=0.0
    )
    act = np.zeros(2, int)
    envs.reset()
    envs.step(act)
    envs.reset(options={"reset_mask": np.array([True, False])})
    for _ in range(2):
        envs.step(act)
    assert taught() == [EPISODES[1]]  # lane 0 is in its second episode, lane 1 goes on with its first
    envs.reset(options={"reset_mask": np.array([True, False])})
    envs.step(act)
    assert taught() == [EPISODES[1], EPISODES[2]]
    envs.reset()
    envs.step(act)
    assert taught()[2:] == 2 * [EPISODES[3]]  # and nothing of what lane 0 had begun
    with pytest.raises(TypeError, match="reset_mask"):
        envs.reset(options={"reset_mask": [True, False]})


def test_a_reset_after_an_end_begins_an_episode_at_once():
    envs = VectorNormalizeReward(SyncVectorEnv([Script]), normalizer=WATCHED, gamma=0.0)  # NEXT_STEP
    envs.reset()
    for _ in range(3):
        envs.step(np.zeros(1, int))
    envs.reset()  # by hand, before the environment would
    for _ in range(2):
        envs.step(np.zeros(1, int))
    assert taught() == EPISODES[:2]


def test_vectors_that_are_no_lists_of_environments_work_too():
    envs = gym.make_vec("CartPole-v1", 3, vectorization_mode="vector_entry_point")
    inner = gym.wrappers.vector.RecordEpisodeStatistics(envs)
    envs = VectorNormalizeReward(inner, normalizer=WATCHED, gamma=0.0)
    envs.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(150):
        envs.step(rng.integers(2, size=3))
    envs.close()
    assert sorted(map(len, taught())) == sorted(inner.length_queue) and len(taught()) > 5
    assert all(set(series) == {1.0} for series in taught())


def test_the_interface_of_many_is_gymnasiums(tmp_path):
    envs = VectorNormalizeReward(gym.make_vec("CartPole-v1", 2), gamma=0.9)
    assert isinstance(envs, gym.vector.VectorWrapper) and envs.update_running_mean and envs.gamma == 0.9
    assert envs.spec.id == "CartPole-v1" and envs.num_envs == 2 and "VectorNormalizeReward" in repr(envs)
    envs.reset(seed=0)
    _, rewards, _, _, infos = envs.step(np.zeros(2, int))
    assert rewards.shape == (2,) and rewards.dtype == float and infos == {} and envs.raw_reward.tolist() == [1.0, 1.0]
    for _ in range(30):
        envs.step(np.zeros(2, int))
    envs.update_running_mean = False
    before = envs.state_dict()
    for _ in range(30):
        envs.step(np.zeros(2, int))
    assert envs.state_dict() == before and before["count"] >= 4
    envs.save(tmp_path / "scale.json")
    one = NormalizeReward(gym.make("CartPole-v1"), gamma=0.9)
    one.load(tmp_path / "scale.json")  # what many have learned serves one
    one.reset(seed=0)
    assert one.step(0)[1] == 1 / envs.return_rms.scale
    envs.close()


def test_what_is_known_can_be_seen_in_the_infos_of_lanes_that_ended():
    envs = VectorNormalizeReward(SyncVectorEnv(makers()), info_key="scale")
    envs.reset()
    infos = [envs.step(np.zeros(2, int))[4] for _ in range(4)]
    assert infos[:2] == [{}, {}] and infos[2]["_scale"].tolist() == [True, False]
    assert infos[3]["_scale"].tolist() == [False, True] and infos[3]["scale"]["count"].tolist() == [2, 2]
    assert infos[3]["scale"]["scale"].tolist() == 2 * [envs.return_rms.scale]
    listed = gym.wrappers.vector.DictInfoToList(VectorNormalizeReward(SyncVectorEnv(makers()), info_key="scale"))
    listed.reset()
    assert [listed.step(np.zeros(2, int))[4] for _ in range(3)][-1][0]["scale"]["count"] == 1


def test_environments_that_do_not_say_when_they_reset_are_taken_for_the_usual_kind_and_told_so():
    envs = SyncVectorEnv(makers())
    envs.metadata = {}
    with pytest.warns(
        UserWarning, match=r"env.metadata\['autoreset_mode'\] must say .*, got None: taken for .*NEXT_STEP"
    ):
        VectorNormalizeReward(envs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for mode in AutoresetMode:
            VectorNormalizeReward(SyncVectorEnv(makers(), autoreset_mode=mode))
        envs.metadata = {"autoreset_mode": "SameStep"}
        VectorNormalizeReward(envs)


def test_what_was_loaded_in_the_middle_waits_for_the_next_episode():
    envs = VectorNormalizeReward(SyncVectorEnv(makers()), normalizer=WATCHED, gamma=0.0)
    envs.reset()
    envs.step(np.zeros(2, int))
    envs.load_state_dict(envs.state_dict())
    for _ in range(3):
        envs.step(np.zeros(2, int))
    assert taught() == []
    for _ in range(3):
        envs.step(np.zeros(2, int))
    assert taught() == [EPISODES[1], EPISODES[3]]


def test_many_environments_that_reuse_their_arrays_are_not_misread():
    class Reused(gym.vector.VectorEnv):
        num_envs, metadata = 2, {"autoreset_mode": AutoresetMode.SAME_STEP}
        observation_space = single_observation_space = gym.spaces.Box(0, 1, (2,))
        action_space = single_action_space = gym.spaces.Discrete(2)
        rewards = np.zeros(2)

        def step(self, actions):
            self.rewards += 1
            return None, self.rewards, self.rewards == 3, np.zeros(2, bool), {}

        def reset(self, *, seed=None, options=None):
            return None, {}

    envs = VectorNormalizeReward(Reused(), normalizer=WATCHED, gamma=0.0)
    envs.reset()
    kept = [envs.step(None) and envs.raw_reward for _ in range(3)]
    assert taught() == [[1.0, 2.0, 3.0]] * 2 and [row.tolist() for row in kept] == [[1, 1], [2, 2], [3, 3]]
