"""The experiments are those of data/PLAN.md, and the recorded runs are theirs and say what their returns say."""

import copy
import dataclasses
import fnmatch
import json
import math
import re
from collections import Counter
from functools import cache

import numpy as np
import pytest

from kscore import DATA, NOTEBOOKS, experiments, study
from kscore.experiments import ARMS, LIVE_SEEDS, RESULT_SEEDS, TUNING_SEEDS
from kscore.normalizers import KScore
from kscore.training import RunConfig, train

EVERY = experiments.experiments()
PLANNED = {  # the table of data/PLAN.md: how many arms and seeds each file has
    "lunarlander_actor_critic": (6, 10), "lunarlander_ppo": (6, 10), "lunarlander_released": (2, 10),
    "cartpole_reinforce": (10, 50), "cartpole_actor_critic": (10, 50), "cartpole_gae": (10, 50),
    "cartpole_ppo": (10, 50), "cartpole_gae_switched": (10, 50), "cartpole_ppo_switched": (10, 50),
    "cartpole_ppo_released": (2, 50), "cartpole_gae_advantages": (8, 50),
    "process_noise_stream": (5, 50), "process_noise_refit": (5, 50),
    **{f"tuning_{algorithm}_{kind}": (25, 8) for algorithm in ("actor_critic", "ppo")
       for kind in ("stream", "refit", "ema")},
}
TUNED = ("tuned_actor_critic", "tuned_ppo")
CARTPOLE_ARMS = [name for name in EVERY if name.startswith("cartpole_") and "released" not in name]
every_experiment = pytest.mark.parametrize("name", EVERY)


# The plan

def test_the_experiments_are_those_of_the_plan():
    assert {name: (len(part.configs), len(part.seeds)) for name, part in EVERY.items()} == PLANNED


def test_the_plan_lists_every_experiment_as_a_file():
    plan = (DATA / "PLAN.md").read_text(encoding="utf-8")
    for name in (*EVERY, *TUNED):
        family, *rest = name.split("_", 1) if name.startswith("tun") else (name,)
        shortened = f"`_{name.removeprefix('cartpole_')}`"  # `cartpole_reinforce`, `_gae`, ...
        assert f"`{name}`" in plan or shortened in plan or (rest and f"`{family}_{{actor_critic,ppo}}" in plan), name


@every_experiment
def test_configurations_survive_json_and_have_a_key_each(name):
    configs = EVERY[name].configs.values()
    assert all(RunConfig(**json.loads(json.dumps(config.to_dict()))) == config for config in configs)
    assert len({study.key(config, 0) for config in configs}) == len(configs)


@every_experiment
def test_every_arm_has_the_environment_and_algorithm_of_its_file(name):
    env = "LunarLander-v3" if name.startswith("lunarlander") else "CartPole-v1"
    algorithm = next((word for word in ("reinforce", "actor_critic", "gae", "ppo") if word in name), None)
    algorithm = algorithm or ("ppo" if name.startswith("process_noise") else "actor_critic")
    found = {(config.env, config.algorithm) for config in EVERY[name].configs.values()}
    assert found == {(env, algorithm)}


@every_experiment
def test_seeds_are_as_many_as_planned_and_not_shared_with_tuning(name):
    seeds = EVERY[name].seeds
    first, fewest = (TUNING_SEEDS, 8) if name.startswith("tuning") else (RESULT_SEEDS, 50)
    assert seeds[0] == first and len(seeds) >= (10 if name.startswith("lunarlander") else fewest)
    assert len(set(seeds)) == len(seeds)


def test_results_tuning_and_live_runs_share_no_seed():
    results, tuning = (set().union(*(part.seeds for name, part in EVERY.items() if name.startswith("tuning") == tuned))
                       for tuned in (False, True))
    assert not results & tuning
    assert min(results) >= 1000  # development used the seeds below
    assert max(results | tuning) < LIVE_SEEDS


# The arms

RELEASED = {  # data/PLAN.md: "The filter's settings are the released ones"
    ("CartPole-v1", "reinforce"): {"simple": (1e-4, 1e-2), "adaptive": (0.1, 1.0)},
    ("CartPole-v1", "actor_critic"): {"simple": (1e-4, 1e-2), "adaptive": (0.1, 1.0)},
    ("CartPole-v1", "gae"): {"simple": (1e-4, 1e-2), "adaptive": (0.1, 1.0)},
    ("CartPole-v1", "ppo"): {"simple": (1e-4, 1e-2), "adaptive": (1e-2, 0.1)},
    ("LunarLander-v3", "actor_critic"): {"simple": (1e-2, 1.0), "adaptive": (1.0, 1e-2)},
    ("LunarLander-v3", "ppo"): {"simple": (1e-2, 1.0), "adaptive": (1.0, 1e-2)},
}
FILTERS = {
    "kscore": ("simple", "stream"), "refit": ("simple", "refit"), "innovation": ("simple", "innovation"),
    "adaptive": ("adaptive", "stream"), "adaptive_refit": ("adaptive", "refit"),
    "adaptive_innovation": ("adaptive", "innovation"),
}


@pytest.mark.parametrize(("env", "algorithm"), RELEASED)
def test_arms_have_the_released_filter_settings(env, algorithm):
    arms = experiments.arms(env, algorithm)
    assert tuple(arms) == ARMS == ("none", "zscore", "running", "ema", *FILTERS)
    for name in ("none", "zscore", "running", "ema"):
        assert arms[name].normalizer == {"name": name}  # all at its defaults; ema: decay 0.99
    for name, (variant, mode) in FILTERS.items():
        Q, R = RELEASED[env, algorithm][variant]
        assert arms[name].normalizer == {"name": "kscore", "variant": variant, "mode": mode, "Q": Q, "R": R}
    preset = RunConfig.preset(env, algorithm)
    assert all(dataclasses.replace(arm, normalizer=preset.normalizer) == preset for arm in arms.values())


def test_the_filters_start_and_adapt_as_planned():
    assert (KScore().x0, KScore().P0, KScore().alpha) == (0.0, 1.0, 0.9)


@pytest.mark.parametrize("name", ["lunarlander_actor_critic", "lunarlander_ppo"])
def test_lunar_runs_go_on_until_both_criteria_are_met(name):
    configs = EVERY[name].configs
    assert list(configs) == ["none", "zscore", "running", "refit", "adaptive_refit", "adaptive"]
    assert {(config.criterion, config.threshold, config.max_episodes) for config in configs.values()} == \
        {("both", 200.0, 1500)}


def test_cartpole_runs_stop_by_evaluation_at_475_or_500_episodes():
    found = {(config.criterion, config.threshold, config.window, config.max_episodes)
             for name, part in EVERY.items() if not name.startswith("lunarlander") for config in part.configs.values()}
    assert found == {("evaluation", 475.0, 25, 500)}


@pytest.mark.parametrize("algorithm", ["reinforce", "actor_critic", "gae", "ppo"])
def test_switched_arms_differ_only_in_the_advantages(algorithm):
    usual, switched = experiments.arms("CartPole-v1", algorithm), experiments.switched(algorithm)
    assert list(switched) == list(usual)
    for name, config in switched.items():
        assert config.normalize_advantages is not usual[name].normalize_advantages
        assert dataclasses.replace(config, normalize_advantages=usual[name].normalize_advantages) == usual[name]


@pytest.mark.parametrize("algorithm", ["gae", "ppo"])
def test_the_recorded_switch_is_off(algorithm):
    on, off = (EVERY[f"cartpole_{algorithm}{suffix}"].configs.values() for suffix in ("", "_switched"))
    assert all(config.normalize_advantages for config in on)
    assert not any(config.normalize_advantages for config in off)


def test_changes_are_made_to_all_arms():
    made = [
        experiments.arms("CartPole-v1", "gae", max_episodes=7), experiments.switched("ppo", max_episodes=7),
        experiments.released_ppo(max_episodes=7), experiments.normalized_advantages(max_episodes=7),
        experiments.process_noise("refit", max_episodes=7), experiments.released_lunar(max_episodes=7),
        experiments.kalman_grid("gae", "stream", max_episodes=7), experiments.ema_grid("gae", max_episodes=7),
    ]
    assert {config.max_episodes for configs in made for config in configs.values()} == {7}


def test_the_released_ppo_arms():
    configs = EVERY["cartpole_ppo_released"].configs
    assert {name: (config.normalizer["name"], config.normalize_advantages, config.full_window)
            for name, config in configs.items()} == \
        {"adaptive_refit": ("kscore", True, False), "none": ("none", False, False)}
    assert configs["adaptive_refit"].normalizer["mode"] == "refit"


def test_the_released_lunar_arms():
    configs = EVERY["lunarlander_released"].configs
    assert {config.criterion for config in configs.values()} == {"training"}
    assert configs["750"].normalizer == {"name": "kscore", "mode": "refit", "scale": "returns", "Q": 1e-2, "R": 1.0}
    assert configs["991"].normalizer == {"name": "kscore", "mode": "refit", "variant": "adaptive", "Q": 1.0, "R": 1e-2}


def test_normalized_advantages_go_through_the_normalizer_once():
    configs = EVERY["cartpole_gae_advantages"].configs
    assert list(configs) == ["zscore", "running", *FILTERS]
    assert {(config.signal, config.normalize_advantages) for config in configs.values()} == {("advantages", False)}
    assert {config.signal for name in CARTPOLE_ARMS if name != "cartpole_gae_advantages"
            for config in EVERY[name].configs.values()} == {"returns"}


@pytest.mark.parametrize("mode", ["stream", "refit"])
def test_process_noise_is_that_of_the_papers_table(mode):
    configs = EVERY[f"process_noise_{mode}"].configs.values()
    assert [config.normalizer for config in configs] == \
        [{"name": "kscore", "mode": mode, "Q": Q, "R": 1.0} for Q in (1e-4, 1e-3, 1e-2, 1e-1, 1.0)]


# Tuning

@pytest.mark.parametrize("algorithm", ["actor_critic", "ppo"])
def test_every_method_is_tuned_over_equally_many_settings(algorithm):
    grids = [EVERY[f"tuning_{algorithm}_{kind}"].configs for kind in ("stream", "refit", "ema")]
    assert [len(grid) for grid in grids] == [25, 25, 25]
    assert len({study.key(config, 0) for grid in grids for config in grid.values()}) == 75


def test_the_kalman_grid_has_every_pair():
    grid = experiments.kalman_grid("ppo", "refit")
    Qs, Rs = [1e-4, 1e-3, 1e-2, 1e-1, 1.0], [1e-2, 1e-1, 1.0, 10.0, 100.0]
    assert [config.normalizer for config in grid.values()] == \
        [{"name": "kscore", "mode": "refit", "Q": Q, "R": R} for Q in Qs for R in Rs]  # this order decides ties


def test_the_ema_grid_forgets_at_different_rates_around_the_default():
    grid = experiments.ema_grid("ppo").values()
    assert {config.normalizer["name"] for config in grid} == {"ema"}
    rates = [1 - config.normalizer["decay"] for config in grid]
    assert rates == sorted(set(rates)) and 0 < rates[0] < 0.009 and 0.011 < rates[-1] < 1
    assert 0.99 in [config.normalizer["decay"] for config in grid]


# A smaller study

def test_a_smaller_study_has_the_same_arms_on_fewer_seeds_and_episodes():
    small = experiments.experiments(seeds=3, lunar_seeds=2, tuning_seeds=1, first_seed=LIVE_SEEDS, max_episodes=7,
                                    lunar_max_episodes=9)
    assert list(small) == list(EVERY)
    for name, part in small.items():
        lunar, tuning = name.startswith("lunarlander"), name.startswith("tuning")
        first, count = (TUNING_SEEDS, 1) if tuning else (LIVE_SEEDS, 2 if lunar else 3)
        assert list(part.seeds) == list(range(first, first + count))
        assert {config.max_episodes for config in part.configs.values()} == {9 if lunar else 7}
        assert {arm: dataclasses.replace(config, max_episodes=1500 if lunar else 500)
                for arm, config in part.configs.items()} == EVERY[name].configs


# Choosing

@pytest.mark.parametrize("chapter", sorted(NOTEBOOKS.glob("*.py")), ids=lambda path: path.stem)
def test_a_chapter_means_the_parts_that_it_reads(chapter):
    patterns = re.findall(r"\{store\}/(\S+)\.jsonl", chapter.read_text(encoding="utf-8"))
    patterns = {pattern.replace("{algorithm}", tuned) for pattern in patterns for tuned in experiments.TUNED_ALGORITHMS}
    read = {name for pattern in patterns for name in fnmatch.filter(EVERY, re.sub(r"\{\w+\}", "*", pattern))}
    assert bool(read) == (int(chapter.stem[:2]) in experiments.CHAPTERS)
    if read:
        assert read <= set(experiments.chosen([chapter.stem[:2]]))


def test_a_chapter_without_experiments_gets_a_sentence():
    with pytest.raises(ValueError, match="chapter with experiments must be one of '5', .*, got '3'"):
        experiments.chosen(["03"])


def test_all_experiments_are_chosen_without_a_pattern():
    assert list(experiments.chosen()) == list(experiments.chosen([])) == list(EVERY)


@pytest.mark.parametrize(("patterns", "names"), [
    (["cartpole_ppo"], ["cartpole_ppo"]),
    (["lunarlander_*"], ["lunarlander_actor_critic", "lunarlander_ppo", "lunarlander_released"]),
    (["*_switched", "cartpole_gae"], ["cartpole_gae", "cartpole_gae_switched", "cartpole_ppo_switched"]),
    (["process_noise_stream", "process_*"], ["process_noise_stream", "process_noise_refit"]),
])
def test_experiments_are_chosen_by_name_and_glob_in_the_order_of_the_study(patterns, names):
    assert list(experiments.chosen(patterns)) == names


@pytest.mark.parametrize(("pattern", "nearest"), [
    ("cartpole_pp", "cartpole_ppo"), ("lunarlander_pppo", "lunarlander_ppo"), ("tuning_ppo_emma", "tuning_ppo_ema"),
])
def test_an_unknown_experiment_is_an_error_that_names_the_nearest(pattern, nearest):
    with pytest.raises(ValueError, match=rf"experiment must be one of .*did you mean '{nearest}'\?"):
        experiments.chosen(["cartpole_gae", pattern])


def test_an_unknown_arm_is_an_error_that_names_the_nearest():
    with pytest.raises(ValueError, match=r"arm must be one of .*did you mean 'refit'\?"):
        experiments.arms("CartPole-v1", "ppo", ["refitt"])


@every_experiment
def test_runs_are_stored_under_the_name_of_their_experiment(name):
    assert experiments.store(name) == DATA / "runs" / f"{name}.jsonl"


# The recorded runs. A study may be writing at this moment: files may be missing or unfinished, and a last line without
# its end is not looked at. The names are fixed here, not listed from the folder, because two pytest workers have to
# collect the same tests while files appear.

def expected(name):
    """What a file may hold, settings and seeds; a tuned one, any cell of its algorithm's grids on the result seeds."""
    if name in TUNED:
        algorithm = name.removeprefix("tuned_")
        seeds = EVERY[f"cartpole_{algorithm}"].seeds
        configs = [config for kind in ("stream", "refit", "ema")
                   for config in EVERY[f"tuning_{algorithm}_{kind}"].configs.values()]
    else:
        seeds, configs = EVERY[name].seeds, EVERY[name].configs.values()
    return {study.key(config, 0)[0] for config in configs}, set(seeds)


def configuration(record):
    """The configuration of a record, and the settings it is known by."""
    return _configuration(json.dumps(record["config"]))


@cache  # thousands of records share a few hundred configurations
def _configuration(text):
    fields = json.loads(text)
    config = RunConfig(**fields)
    assert config.to_dict() == fields and config.evaluate_every == 1
    return config, study.key(config, 0)[0]


def first_arrival(returns, config):
    """The first number of returns whose last window has a mean at the threshold; None if there is none."""
    if config.threshold is None or not returns:
        return None
    sums = np.cumsum(np.append(0.0, returns))
    ends = np.arange(config.window if config.full_window else 1, len(returns) + 1)
    starts = np.maximum(ends - config.window, 0)
    reached = ends[(sums[ends] - sums[starts]) / (ends - starts) >= config.threshold - 1e-9]
    return int(reached[0]) if len(reached) else None


def check(record):
    """Hold a record against itself: its status, its times and its returns have to tell the same story."""
    config, _ = configuration(record)
    assert all(record["versions"][package] for package in ("python", "numpy", "torch", "gymnasium", "kscore"))
    assert record["machine"] and record["seconds"] > 0

    trained, evaluated, episodes = record["train_returns"], record["eval_returns"], record["episodes"]
    assert all(map(math.isfinite, trained)) and all(map(math.isfinite, evaluated))
    assert len(trained) == episodes <= config.max_episodes
    assert len(evaluated) == episodes or (record["status"] == "diverged" and len(evaluated) == episodes - 1)
    assert record["steps"] == record["train_steps"] + record["eval_steps"]
    if config.env == "CartPole-v1":  # which pays 1 a step
        assert (record["train_steps"], record["eval_steps"]) == (sum(trained), sum(evaluated))

    met = record["solved_at"]
    assert met == {"evaluation": first_arrival(evaluated, config), "training": first_arrival(trained, config)}
    wanted = [at for criterion, at in met.items() if config.criterion in (criterion, "both")]
    assert record["solved"] == (record["status"] == "solved") == (None not in wanted)
    match record["status"]:
        case "solved":
            assert max(wanted) == episodes and record["reason"] is None
        case "censored":
            assert episodes == config.max_episodes and record["reason"] is None
        case status:
            assert status == "diverged" and record["reason"]


def whole_lines(path):
    content = path.read_bytes()
    return content[:content.rfind(b"\n") + 1].splitlines()


@pytest.mark.parametrize("name", [*EVERY, *TUNED])
def test_recorded_runs_belong_to_their_experiment_and_agree_with_themselves(name):
    path = experiments.store(name)
    if not path.exists():
        pytest.skip("not recorded yet")
    records = [json.loads(line) for line in whole_lines(path)]
    assert {record["protocol"] for record in records} <= {study.PROTOCOL_VERSION}
    for record in records:
        check(record)
    runs = Counter((configuration(record)[1], record["seed"]) for record in records)
    assert not [run for run, times in runs.items() if times > 1]
    configs, seeds = expected(name)
    found = {settings for settings, _ in runs}
    assert found <= configs and {seed for _, seed in runs} <= seeds
    if name in TUNED:
        assert len(found) <= 3  # the best cell of each grid


def test_there_are_no_runs_of_anything_else():
    assert {path.name for path in experiments.RUNS.glob("*.jsonl")} <= {f"{name}.jsonl" for name in (*EVERY, *TUNED)}


# The check itself

@pytest.fixture(scope="module")
def recorded():
    """Real records: solved by evaluation before training arrived, and censored."""
    fast = RunConfig(env="CartPole-v1", algorithm="reinforce", threshold=9.0, hidden=(8,), window=2, max_episodes=9)
    return {"solved": train(fast, 1), "censored": train(dataclasses.replace(fast, threshold=499.0), 1),
            "both": train(dataclasses.replace(fast, criterion="both"), 1)}


def diverged(record):
    record["eval_returns"].pop()
    return record | {"status": "diverged", "solved": False, "reason": "the loss is not finite",
                     "eval_steps": sum(record["eval_returns"]),
                     "steps": sum(record["eval_returns"]) + record["train_steps"]}


def test_real_records_pass_the_check(recorded):
    assert {name: record["status"] for name, record in recorded.items()} == \
        {"solved": "solved", "censored": "censored", "both": "solved"}
    for record in recorded.values():
        check(record)
    check(diverged(copy.deepcopy(recorded["censored"])))


def changed(**fields):
    return lambda record: record | fields


def changed_returns(kind, change):
    return lambda record: record | {kind: change(record[kind])}


BROKEN = {
    "status": ("solved", changed(status="censored", solved=False)),
    "flag": ("solved", changed(solved=False)),
    "solved without arriving": ("censored", changed(status="solved", solved=True)),
    "arrival at another time": ("solved", lambda r: r | {"solved_at": r["solved_at"] | {"evaluation": 1}}),
    "arrival forgotten": ("both", lambda r: r | {"solved_at": r["solved_at"] | {"training": None}}),
    "longer than its episodes": ("censored", changed_returns("train_returns", lambda some: [*some, 9.0])),
    "evaluations missing": ("censored", changed_returns("eval_returns", lambda some: some[:-1])),
    "not finite": ("censored", changed_returns("train_returns", lambda some: [math.nan, *some[1:]])),
    "infinite": ("censored", changed_returns("eval_returns", lambda some: [*some[:-1], math.inf])),
    "other returns": ("censored", changed_returns("eval_returns", lambda some: [*some[:-1], some[-1] + 1])),
    "censored before the cap": ("censored", lambda r: r | {"config": r["config"] | {"max_episodes": 10}}),
    "no machine": ("solved", changed(machine="")),
    "no versions": ("solved", changed(versions={})),
    "reason": ("solved", changed(reason="the loss is not finite")),
    "diverged without a reason": ("censored", lambda r: diverged(r) | {"reason": None}),
    "another status": ("censored", changed(status="stopped")),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_records_do_not_pass_the_check(recorded, name):
    which, broken = BROKEN[name]
    with pytest.raises((AssertionError, KeyError)):
        check(broken(copy.deepcopy(recorded[which])))
