"""What README and the page on wrappers tell people to write runs, and says what it is said to say."""

import re

import gymnasium as gym
import matplotlib
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from kscore.analysis import stats
from kscore.labs import sb3_study
from kscore.project import NOTEBOOKS, ROOT
from kscore.wrappers import sb3
from kscore.wrappers.sb3 import VecKScore


def blocks(name):
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


PAGE = blocks("docs/wrappers.md")
(TEN_LINES,) = (block for block in blocks("README.md") if "stable_baselines3" in block)


def run(code):
    names = {}
    exec(compile(code, "example", "exec"), names)
    return names


def test_every_wrapper_has_an_example():
    offered = ("NormalizeReward", "VectorNormalizeReward", "VecKScore", "NormalizedRolloutBuffer", "KeepScores")
    assert len(PAGE) >= 5 and all(any(re.search(rf"\b{name}\(|={name}\b", block) for block in PAGE) for name in offered)


@pytest.mark.parametrize("block", PAGE, ids=range(len(PAGE)))
def test_an_example_runs(block):
    run(block)


def test_the_ten_lines_of_the_readme_are_ten_and_draw_a_curve(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    assert len(TEN_LINES.splitlines()) == 10 and TEN_LINES.count("40_000") == 1
    names = run(TEN_LINES.replace("40_000", "1024"))
    assert names["model"].num_timesteps >= 1024 and names["env"].ret_rms.count > 0
    assert {path.name for path in tmp_path.iterdir()} == {"cartpole.zip", "cartpole_scale.pkl", "cartpole.png"}
    returns = [one for lane in names["env"].env_method("get_episode_rewards") for one in lane]
    assert min(returns) >= 8 and all(float(one).is_integer() for one in returns)  # as they are: 1 for every step


def test_the_ten_lines_need_one_change_for_the_wrapper_of_the_library(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    monkeypatch.setattr(sb3, "VecKScore", VecNormalize)
    names = run(TEN_LINES.replace("40_000", "512"))
    assert type(names["env"]) is VecNormalize


def test_what_is_said_to_be_kept_is_kept():
    page = (ROOT / "docs" / "wrappers.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `VecNormalize`: "))
    kept = re.findall(r"`(\w+)`", row.split("|")[1])[1:]
    assert len(kept) == 8
    code = VecKScore.__init__.__code__
    assert set(kept) <= set(code.co_varnames[: code.co_argcount])


def test_the_chapter_has_the_line_of_the_readme():
    line = next(line for line in TEN_LINES.splitlines() if line.startswith("env = "))
    assert line in (NOTEBOOKS / "18_in_your_own_code.py").read_text(encoding="utf-8").splitlines()


def test_what_the_readme_says_of_the_trials_is_what_was_recorded():
    """Below the ten lines: VecKScore cannot be told from VecNormalize; rewards as they are depend on the task."""
    areas = sb3_study.read().pivot(index=["task", "seed"], columns="arm", values="area")
    over = {
        (task, arm): stats.paired_difference(own[arm], own.vecnormalize)
        for task, own in areas.groupby("task")
        for arm in ("veckscore", "buffer", "raw")
    }
    asked = [name for name in over if name[1] != "raw"]
    adjusted = dict(zip(asked, stats.adjusted([over[name][1] for name in asked]), strict=True))
    assert all(adjusted[task, "veckscore"] > stats.ALPHA for task in sb3_study.TASKS)
    assert over["CartPole-v1", "raw"][0].low > 0
    assert all(over[task, "raw"][0].high < 0 for task in ("LunarLander-v3", "Pendulum-v1"))


def test_the_rewards_that_are_said_to_come_of_a_sparse_goal_come_of_it():
    page = (ROOT / "docs" / "wrappers.md").read_text(encoding="utf-8")
    assert (
        "becomes 36, not only the first, if it comes at the tenth step of ten and γ is 0.99 (`VecNormalize`: 3.3)"
        in page
    )

    def at_the_goal(env):
        env.reset()
        return [env.step([0])[1][0] for _ in range(1000)][-1]

    class Goal(gym.Env):
        observation_space = gym.spaces.Box(0, 1, (1,))
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            self.at = 0
            return np.zeros(1, np.float32), {}

        def step(self, action):
            self.at += 1
            return np.zeros(1, np.float32), float(self.at == 10), self.at == 10, False, {}

    lane, options = DummyVecEnv([Goal]), {"norm_obs": False, "clip_reward": 1e9}
    paid = [at_the_goal(env) for env in (VecKScore(lane, **options), VecNormalize(lane, **options))]
    paid += [at_the_goal(VecKScore(lane, norm_obs=False, floor=floor)) for floor in (0.0, 0.1)]
    assert paid == pytest.approx([36.4, 3.3, 10, 10], rel=0.02)
