"""One plan: data/PLAN.md, the code, the claims, the chapters and the archive say the same of every experiment."""

import ast
import copy
import csv
import dataclasses
import itertools
import json
import math
import pkgutil
import re
from collections import Counter
from functools import cache

import numpy as np
import orjson
import pytest

from kscore import analysis, study
from kscore.analysis.claims import Pairing
from kscore.labs import contest
from kscore.normalizers import KScore, spelled_out
from kscore.project import ARCHIVE, DATA, NOTEBOOKS, ROOT
from kscore.rl import PROTOCOL_VERSION, RunConfig, train
from kscore.study import page, plan
from kscore.study.records import key

PARTS = {name: entry for name, entry in plan.parts().items() if entry.keep == "records"}
TUNED = ("tuned_actor_critic", "tuned_ppo")
EVERY = {name: plan.part(name) for name in PARTS if name not in TUNED}
CARTPOLE_ARMS = [name for name in EVERY if name.startswith("cartpole_") and "released" not in name]
every_part = pytest.mark.parametrize("name", EVERY)
PLAN = (DATA / "PLAN.md").read_text(encoding="utf-8")


def recorded(part):
    """The runs of a part in the archive."""
    return study.recorded(part.configs, part.seeds, ARCHIVE / part.file, columns=part.columns)


@cache
def tuned_part(name):
    """A tuned part as it was recorded: the winners of its recorded grids."""
    grids = {arm: EVERY[grid] for arm, grid in plan.grids_of(name).items()}
    return plan.part(name, winners={arm: grid.configs[analysis.best(recorded(grid))] for arm, grid in grids.items()})


# The file


@pytest.fixture
def other(tmp_path, monkeypatch):
    """Puts a changed plan in the place of this one."""

    def changed(before, after):
        text = plan.PATH.read_text(encoding="utf-8")
        assert before in text
        path = tmp_path / "plan.toml"
        path.write_text(text.replace(before, after, 1), encoding="utf-8")
        monkeypatch.setattr(plan, "PATH", path)
        forget()

    yield changed
    monkeypatch.undo()
    forget()


def forget():
    plan.parts.cache_clear()
    plan._read.cache_clear()


END = 'says = "running, twice, at 0.01, advantages not z-scored"'  # of a part with a rate, a family and an arm


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (END, f"{END}\nlerning_rate = 1", "key of part 'controls_actor_critic_doors' must be .*mean 'learning_rate'"),
        (END, f'{END}\nsettings = "mine"', "settings of part 'controls_actor_critic_doors' must be one of 'own', "),
        (END, f'{END}\nconditions = ["rain"]', "condition of part .* must be one of 'noise 0.1', .*got 'rain'"),
        (END, f'{END}\nmark = "later"', "mark of part .* must be one of 'planned', 'added', .*got 'later'"),
        (END, f'{END}\nenv = "CartPole-v2"', "env of part .* must be one of .*did you mean 'CartPole-v1'"),
        (END, f'{END}\nfamily = "contests"', "family of part .* must be one of .*did you mean 'contest'"),
        (END, f'{END}\nbeside = ["fair"]', "best_of or beside of part .* must be one of .*got 'fair'"),
        (END, f'{END}\nkeep = "all"', "keep of part .* must be one of 'records', 'outcomes', got 'all'"),
        (END, f"{END}\nseeds = 0", "seeds of part .* must be a whole number of at least 1, got 0"),
        (END, f"{END}\nfirst_seed = 999", "seeds of part .* must be from 1000 on and leave out .*got 999 to 1048"),
        (END, f"{END}\nfirst_seed = 2951", "seeds of part .* leave out 3000 to 3999, .*got 2951 to 3000"),
        (END, f"{END}\nfirst_seed = 3999", "seeds of part .* leave out 3000 to 3999, .*got 3999 to 4048"),
        (END, f"{END}\nchapters = 17", "chapters of part .* must be a list of their numbers, got 17"),
        (END, f"{END}\nz_scored = {{fading = [true]}}", "z_scored of part .* must say '[*]', what all other arms have"),
        (END, "", "part 'controls_actor_critic_doors' must have name, says, .*, got no says"),
        ('arms = ["running_twice"]', 'arms = ["runing"]', "arm of part 'controls_.*did you mean 'running'"),
        ('arms = ["running_twice"]', 'arms = "fives"', "arms of part 'controls_.*did you mean 'five'"),
        ('name = "controls_gae_again"', 'name = "fair_gae"', "name of a part must be its own, got 'fair_gae' twice"),
        ('name = "controls_gae_again"', 'name = "a {b}"', "name of a part must be letters, digits .*got 'a {b}'"),
        ('name = "controls_gae_again"', "", "a part must have a name, and its table one in `table`, got {"),
        ("symlog = {", "symlogs = {colour = 1}\nsymlog = {", "setting of arm 'symlogs' of relatives must be one of .*"),
        ('like = "replication.none"', 'like = "contest.none"', "like of arm 'none', an arm that stands before "),
        ("outliers = {", "rain = {wet = true}\noutliers = {", "setting of condition 'rain' must be one of .*got 'wet'"),
        ("[settings.own.ppo]", "[settings.own.dqn]", "learner of settings 'own' must be one of .*got 'dqn'"),
        ("[groups]", "[group]", "section must be one of .*did you mean 'groups'"),
        ("[groups]", "[groups", "Expected ']' at the end of a table declaration"),
    ],
)  # fmt: skip
def test_a_bad_entry_gets_a_sentence(other, before, after, sentence):
    other(before, after)
    with pytest.raises(ValueError, match=f"^plan.toml: {sentence}"):
        plan.parts()


def test_an_entry_is_all_that_a_part_needs(other):
    other(
        '\n[[tables.parts]]\nname = "controls_gae_again"',
        """
[[tables.parts]]
name = "narrow_{learner}{pace}"
says = "two arms with narrow networks"
seeds = 5
first_seed = 7000
pace = {"" = {}, _slow = {rate = 0.001}}
learner = ["reinforce", "gae"]
family = "contest"
arms = ["running", "fading"]
hidden = [16]

[[tables.parts]]
name = "controls_gae_again\"""",
    )
    assert plan.chosen(["narrow_*"]) == ["narrow_reinforce", "narrow_gae", "narrow_reinforce_slow", "narrow_gae_slow"]
    part = plan.part("narrow_gae_slow")
    assert part.seeds == range(7000, 7005) and list(part.configs) == ["running", "fading"]
    assert part.configs["running"] == dataclasses.replace(
        RunConfig.preset("CartPole-v1", "gae"),
        normalizer={"name": "running"},
        normalize_advantages=False,
        learning_rate=0.001,
        hidden=(16,),
    )
    assert plan.part("narrow_reinforce").configs["fading"].advantage_normalizer is None
    row = "| `narrow_{reinforce,gae}{,_slow}` | two arms with narrow networks | 5 from 7000 |\n"
    assert row not in PLAN and row in page.rendered(PLAN)


# The plan in words

FIVE = ("zscore", "running", "adaptive", "adaptive_refit", "episode_filter")
ELEVEN = tuple(EVERY["fair_ppo"].configs)
CONTROLS = ("running_twice", "fading")
PLACES = ("none", "episode", "past")
DOORS = {  # what the contest has instead, and what changes
    "zscore at the returns": ("zscore", {"normalize_advantages": False}),
    "adaptive_refit at the returns": ("adaptive_refit", {"normalize_advantages": False}),
    "episode_filter at the returns": ("episode_filter", {"advantage_normalizer": None}),
    "episode_filter at the advantages": ("episode_filter", {"normalizer": {"name": "none"}}),
    **{f"{name}, z-scored": (name, {"normalize_advantages": True}) for name in ("none", "running", "ema")},
}


def rows(table):
    """The cells of the tables of the plan that begin with these words."""
    lines = [line for text in PLAN.split(f"\n{table}")[1:] for line in text.split("\n\n")[0].splitlines()[2:]]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_tables_of_parts_are_those_of_the_plan():
    assert page.rendered(PLAN) == PLAN
    changed = PLAN.replace("| 50 from 4000 |", "| 49 from 4000 |", 1)
    assert changed != PLAN == page.rendered(changed)


@pytest.mark.parametrize("change", [("<!-- parts: swap -->\n", ""), ("\n## Changes", "\n<!-- parts: swap -->\n")])
def test_a_table_has_one_place(change):
    with pytest.raises(ValueError, match="^PLAN.md must have one line '<!-- parts: swap -->', got [02]$"):
        page.rendered(PLAN.replace(*change))


def test_a_heading_that_marks_its_parts_says_what_the_plan_says():
    marked, heading = {}, {}
    for line in PLAN.splitlines():
        if found := re.match(r"(#+) ", line):
            heading = {depth: words for depth, words in heading.items() if depth < len(found[1])}
            heading[len(found[1])] = line
        if found := re.fullmatch(r"<!-- parts: (.+) -->", line):
            marked[found[1]] = "\n".join(heading.values())
    for name, entry in plan.parts().items():
        words = marked[entry.table]
        if "(added)" in words or "(exploratory)" in words:
            assert entry.mark == ("added" if "(added)" in words else "after seeing"), name
    assert {entry.mark for entry in plan.parts().values() if entry.table == plan.REPLICATION} == {"planned"}
    assert sum("(added)" in words or "(exploratory)" in words for words in marked.values()) >= 3


@every_part
def test_the_number_of_arms_is_the_one_that_the_plan_says(name):
    said = plan.parts()[name].words["says"]
    counts = {"the eleven arms": 11, "eight arms": 8, "five arms": 5, "the five arms": 5, "the two controls": 2}
    for words, count in counts.items():
        if said.startswith(words):
            arms = {columns["normalizer"] for columns in EVERY[name].columns.values()}
            assert len(arms) == count
    if cells := re.search(r"(\d+) (?:cells|decays)", said):
        assert len(EVERY[name].configs) == int(cells[1])


def test_the_seeds_are_those_of_the_plan():
    assert "results use 1000 to 1049 (CartPole) and 1000 to 1009 (LunarLander)" in PLAN
    assert "tuned on 2000 to\n2007" in PLAN and "use 3000 and up" in PLAN
    seeds = [plan.parts()[name].seeds for name in ("cartpole_ppo", "lunarlander_ppo", "tuning_ppo_ema")]
    assert seeds == [(1000, 50), (1000, 10), (2000, 8)] and plan.LIVE == range(3000, 4000)


@pytest.mark.parametrize("name", ["PLAN.md", "README.md"])
def test_the_code_that_is_named_beside_the_data_is_there(name):
    text = (DATA / name).read_text(encoding="utf-8")
    moved = dict(re.findall(r"`(kscore[./][\w./]+)` is now\s`(kscore[./][\w./]+)`", text))
    named = re.findall(r"(?:`|python -m )(kscore[./][\w./]+)", text)
    assert len(named) >= 3
    for place in named:
        for old, new in moved.items():
            place = re.sub(rf"^{re.escape(old)}\b", new, place)
        if "/" in place:
            assert (ROOT / place).is_file(), place
        else:
            assert pkgutil.resolve_name(place), place


@every_part
def test_configurations_survive_json_and_have_a_key_each(name):
    configs = EVERY[name].configs.values()
    assert all(RunConfig(**json.loads(json.dumps(config.to_dict()))) == config for config in configs)
    assert len({key(config, 0) for config in configs}) == len(configs)


CONTINUOUS = {  # tasks with real actions, and their caps
    "pendulum": ("Pendulum-v1", 1000),
    "lunarlander": ("LunarLanderContinuous-v3", 600),
    "halfcheetah": ("HalfCheetah-v5", 300),
    "bipedalwalker": ("BipedalWalker-v3", 300),
}
SMALL = {  # short tasks and Acrobot, and their caps
    "bandit": ("kscore.rl.tasks:Bandit-v0", 1000),
    "drylake": ("kscore.rl.tasks:DryLake-v1", 1000),
    "frozenlake": ("FrozenLake-v1", 8000),
    "blackjack": ("kscore.rl.tasks:TimedBlackjack-v1", 3000),
    "acrobot": ("Acrobot-v1", 300),
}


def task_of(name):
    """The environment that the name of a part means, and its cap."""
    if name.startswith("continuous"):
        return CONTINUOUS[name.rpartition("_")[2]]
    if "_swap" in name:
        return "CartPole-v1", 1500 if "_swap_longer" in name else 400
    for task, found in SMALL.items():
        if task in name:
            return found
    return ("LunarLander-v3", 1500) if "lunarlander" in name else ("CartPole-v1", 500)


@every_part
def test_every_arm_has_the_environment_and_algorithm_of_its_part(name):
    env, _ = task_of(name)
    algorithm = next((word for word in ("reinforce", "actor_critic", "gae", "ppo") if word in name), None)
    algorithm = algorithm or ("ppo" if name.startswith(("process_noise", "continuous")) else "actor_critic")
    found = {(config.env, config.algorithm) for config in EVERY[name].configs.values()}
    assert found == {(env, algorithm)}


def test_results_tuning_and_live_runs_share_no_seed():
    results, tuning = (
        set().union(*(part.seeds for name, part in EVERY.items() if ("tuning" in name) == tuned))
        for tuned in (False, True)
    )
    assert not results & tuning
    assert min(results) >= 1000  # development used the seeds below
    assert not (results | tuning) & set(plan.LIVE)


@every_part
def test_a_part_knows_its_file_and_how_many_runs_it_has(name):
    part = EVERY[name]
    assert part.name == name and part.file == f"{name}.jsonl"
    assert part.runs == len(part.configs) * len(part.seeds)


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
    "kscore": ("simple", "stream"),
    "refit": ("simple", "refit"),
    "innovation": ("simple", "innovation"),
    "adaptive": ("adaptive", "stream"),
    "adaptive_refit": ("adaptive", "refit"),
    "adaptive_innovation": ("adaptive", "innovation"),
}


@pytest.mark.parametrize(("env", "algorithm"), RELEASED)
def test_arms_have_the_released_filter_settings(env, algorithm):
    arms = {name: plan.arm("replication", name, algorithm, env) for name in EVERY["cartpole_ppo"].configs}
    assert tuple(arms) == ("none", "zscore", "running", "ema", *FILTERS)
    for name in ("none", "zscore", "running", "ema"):
        assert arms[name].normalizer == spelled_out(name)  # all at its defaults
    assert arms["ema"].normalizer["decay"] == 0.99
    for name, (variant, mode) in FILTERS.items():
        Q, R = RELEASED[env, algorithm][variant]
        assert arms[name].normalizer == spelled_out("kscore", variant=variant, mode=mode, Q=Q, R=R)
    preset = RunConfig.preset(env, algorithm)
    assert all(dataclasses.replace(arm, normalizer=preset.normalizer) == preset for arm in arms.values())


def test_the_released_filter_settings_are_those_that_the_plan_writes_down():
    written = re.search(r"settings are the released ones: (.*?); x₀ = 0, P₀ = 1, α = 0.9\.", PLAN, re.DOTALL)[1]
    found = {}
    for half in written.split(";"):
        variant = half.split()[0]
        for Q, R, where in re.findall(r"Q = (\S+),\s+R = (\S+) \(([^)]*)\)", half):
            found[variant, where] = (float(Q), float(R))
    in_words = {
        ("CartPole-v1", "ppo"): ("PPO on CartPole", "CartPole"),
        "LunarLander-v3": ("LunarLander",),
        "CartPole-v1": ("the other algorithms on CartPole", "CartPole"),
    }
    for (env, algorithm), settings in RELEASED.items():
        for variant, setting in settings.items():
            names = in_words.get((env, algorithm), in_words[env])
            assert next(found[variant, name] for name in names if (variant, name) in found) == setting
    assert len(found) == 5


def test_the_filters_start_and_adapt_as_planned():
    assert (KScore().x0, KScore().P0, KScore().alpha) == (0.0, 1.0, 0.9)


@pytest.mark.parametrize("name", ["lunarlander_actor_critic", "lunarlander_ppo"])
def test_lunar_runs_go_on_until_both_criteria_are_met(name):
    configs = EVERY[name].configs
    assert list(configs) == ["none", "zscore", "running", "refit", "adaptive_refit", "adaptive"]
    assert {(config.criterion, config.threshold, config.max_episodes) for config in configs.values()} == {
        ("both", 200.0, 1500)
    }


def test_cartpole_runs_stop_by_evaluation_at_475_or_500_episodes():
    cartpole = [part for name, part in EVERY.items() if task_of(name) == ("CartPole-v1", 500)]
    found = {
        (config.criterion, config.threshold, config.window, config.max_episodes)
        for part in cartpole
        for config in part.configs.values()
    }
    assert found == {("evaluation", 475.0, 25, 500)}


@pytest.mark.parametrize("name", [name for name in PARTS if name.startswith("continuous")])
def test_runs_with_real_actions_go_on_to_their_cap_and_are_looked_at_every_fourth_episode(name):
    found = {
        (config.stop, config.max_episodes, config.episodes_per_update * config.evaluate_every, config.window)
        for config in EVERY[name].configs.values()
    }
    assert found == {(False, task_of(name)[1], 4, 10)}


@pytest.mark.parametrize("name", ["pendulum", "lunarlander"])
def test_the_rate_of_an_arm_is_that_of_the_largest_mean_area_on_the_tuning_seeds(name):
    grid, chosen = EVERY[f"continuous_tuning_{name}"], EVERY[f"continuous_{name}"].configs
    runs = recorded(grid)
    for arm, own in runs.groupby("normalizer"):
        areas = {rate: analysis.areas(one, one.arm.iloc[0]).mean() for rate, one in own.groupby("rate")}
        assert max(areas, key=areas.get) == chosen[arm].learning_rate and len(areas) == len(grid.configs) // 5


@pytest.mark.parametrize("algorithm", ["gae", "ppo"])
def test_switched_arms_differ_only_in_the_advantages(algorithm):
    usual, switched = (EVERY[f"cartpole_{algorithm}{suffix}"].configs for suffix in ("", "_switched"))
    assert list(switched) == list(usual)
    for name, config in switched.items():
        assert config.normalize_advantages is not usual[name].normalize_advantages
        assert dataclasses.replace(config, normalize_advantages=usual[name].normalize_advantages) == usual[name]


@pytest.mark.parametrize("algorithm", ["gae", "ppo"])
def test_the_recorded_switch_is_off(algorithm):
    on, off = (EVERY[f"cartpole_{algorithm}{suffix}"].configs.values() for suffix in ("", "_switched"))
    assert all(config.normalize_advantages for config in on)
    assert not any(config.normalize_advantages for config in off)


def test_the_released_ppo_arms():
    configs = EVERY["cartpole_ppo_released"].configs
    assert {
        name: (config.normalizer["name"], config.normalize_advantages, config.full_window)
        for name, config in configs.items()
    } == {"adaptive_refit": ("kscore", True, False), "none": ("none", False, False)}
    assert configs["adaptive_refit"].normalizer["mode"] == "refit"


def test_the_released_lunar_arms():
    configs = EVERY["lunarlander_released"].configs
    assert {config.criterion for config in configs.values()} == {"training"}
    assert configs["750"].normalizer == spelled_out("kscore", mode="refit", scale="returns", Q=1e-2, R=1.0)
    assert configs["991"].normalizer == spelled_out("kscore", mode="refit", variant="adaptive", Q=1.0, R=1e-2)


def test_normalized_advantages_go_through_the_normalizer_once():
    configs = EVERY["cartpole_gae_advantages"].configs
    assert list(configs) == ["zscore", "running", *FILTERS]
    assert {(config.signal, config.normalize_advantages) for config in configs.values()} == {("advantages", False)}
    assert {
        config.signal
        for name in CARTPOLE_ARMS
        if name != "cartpole_gae_advantages"
        for config in EVERY[name].configs.values()
    } == {"returns"}


@pytest.mark.parametrize("mode", ["stream", "refit"])
def test_process_noise_is_that_of_the_papers_table(mode):
    configs = EVERY[f"process_noise_{mode}"].configs.values()
    assert [config.normalizer for config in configs] == [
        spelled_out("kscore", mode=mode, Q=Q, R=1.0) for Q in (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    ]


# The fair fight


@pytest.mark.parametrize("learner", ["reinforce", "actor_critic", "gae", "ppo"])
def test_arms_of_the_fair_fight_differ_from_the_preset_only_where_they_normalize(learner):
    doors = {
        "normalizer": {"name": "zscore"},
        "advantage_normalizer": None,
        "value_scale": None,
        "normalize_advantages": False,
    }
    bare = dataclasses.replace(RunConfig.preset("CartPole-v1", learner), **doors)
    for name in (*ELEVEN, *CONTROLS):
        for z_scored in (False, True):
            arm = plan.arm("contest", name, learner, z_scored=z_scored)
            assert dataclasses.replace(arm, **doors) == bare
            assert arm.normalize_advantages is (z_scored and learner != "reinforce")  # which has none


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: plan.arm("contests", "none", "ppo"), "family must be one of .*did you mean 'contest'"),
        (lambda: plan.arm("contest", "nobody", "ppo"), "arm must be one of 'none', 'zscore', .*got 'nobody'"),
        (lambda: plan.arm("contest", "*", "ppo"), "arm must be one of 'none', 'zscore', .*got '[*]'"),
        (lambda: plan.arm("contest", "none", "dqn"), "algorithm must be one of 'reinforce', .*got 'dqn'"),
        (lambda: plan.arm("contest", "none", "ppo", rates=1), "setting of arm 'none' must be one of .*got 'rates'"),
        (lambda: plan.arm("contest", "none", "ppo", rate=-1), "learning_rate must be positive, got -1"),
        (lambda: plan.part("fair_ppo", arms=["nobody"]), "arm must be one of 'none', 'zscore', .*got 'nobody'"),
        (lambda: plan.part("fair_ppo", rate=0.1), "setting must be one of .*got 'rate'"),
        (
            lambda: plan.part("tuning_ppo_ema", grid={"Q": [1]}),
            "option of the grid must be one of '1 - decay', got 'Q'",
        ),
        (lambda: plan.condition("rain"), "condition must be one of 'noise 0.1', .*got 'rain'"),
    ],
)
def test_what_is_not_in_the_plan_gets_a_sentence(made, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        made()


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("fair_tuning_ppo", {"learning_rate": 0.5}),
        ("fair_tuning_ppo", {"normalize_advantages": True}),
        ("disturbed_reinforce_noise", {"disturbance": None}),
        ("disturbed_actor_critic_scale", {"reward_scale": 2.0}),
        ("fair_networks_ppo", {"dropout": 0.1}),
    ],
)
def test_what_the_names_of_arms_say_cannot_be_changed(part, change):
    with pytest.raises(
        ValueError, match=f"^{next(iter(change))} must be left as the names of these arms have it, got "
    ):
        plan.part(part, **change)


def test_filters_over_episodes_and_controls_stand_at_both_doors_unless_advantages_are_z_scored_or_there_are_none():
    for name, filtered in (
        ("episode_filter", spelled_out("episode")),
        ("filter_bank", spelled_out("episode", noise="bank")),
        ("running_twice", spelled_out("running")),
        ("fading", spelled_out("parts", centre="past", scale="past", fading=0.1)),
    ):
        for learner, z_scored, at_advantages in (
            ("ppo", False, filtered),
            ("ppo", True, None),
            ("reinforce", False, None),
        ):
            arm = plan.arm("contest", name, learner, z_scored=z_scored)
            assert (arm.normalizer, arm.advantage_normalizer) == (filtered, at_advantages)


def test_popart_gives_units_to_a_critic_and_scores_returns_where_there_is_none():
    popart = spelled_out("popart", rate=0.03)
    with_critic, without = (plan.arm("contest", "popart", learner) for learner in ("gae", "reinforce"))
    assert (with_critic.value_scale, with_critic.normalizer) == (popart, spelled_out("none"))
    assert (without.value_scale, without.normalizer) == (None, popart)


@pytest.mark.parametrize("name", ["kscore", "ema"])
def test_settings_that_chapter_10_found_are_those_of_its_winners(name):
    for algorithm, learners in (("actor_critic", ("actor_critic", "reinforce", "gae")), ("ppo", ("ppo",))):
        winner = tuned_part(f"tuned_{algorithm}").configs[name].normalizer
        assert all(plan.arm("contest", name, learner).normalizer == winner for learner in learners)


LEARNERS = ("reinforce", "actor_critic", "gae", "ppo")
COMMON_RATES = dict(zip(LEARNERS, (0.003, 0.01, 0.01, 0.003), strict=True))


@cache
def tuning_means(learner, part="fair_tuning"):
    return contest.grid_means(recorded(EVERY[f"{part}_{learner}"]))


def settings(name):
    """The setting of every arm of a part."""
    return contest.settings_of(EVERY[name])


@pytest.mark.parametrize("learner", ["reinforce", "actor_critic", "gae", "ppo"])
def test_the_settings_of_the_fair_fight_are_those_that_the_tuning_seeds_chose(learner):
    means = tuning_means(learner)
    own, common = contest.own_settings(means), contest.common_settings(means)
    assert settings(f"fair_{learner}") == own
    moved = {arm: common[arm] for arm in common if common[arm] != own[arm]}
    assert moved == (settings(f"fair_common_{learner}") if f"fair_common_{learner}" in EVERY else {})
    assert {setting.rate for setting in common.values()} == {COMMON_RATES[learner]}
    assert means["running"][own["running"]] < means["zscore"][own["zscore"]]  # so the running one is the reference


@pytest.mark.parametrize("learner", ["reinforce", "actor_critic", "gae", "ppo"])
def test_the_settings_of_the_controls_are_those_that_the_same_tuning_seeds_chose(learner):
    found = contest.own_settings(tuning_means(learner, "controls_tuning"))
    assert settings(f"controls_{learner}").items() >= found.items() and set(found) <= set(CONTROLS)
    controls, contest_grid = (EVERY[f"{part}_{learner}"] for part in ("controls_tuning", "fair_tuning"))
    assert controls.seeds == contest_grid.seeds
    tried, tried_before = ({*contest.settings_of(part).values()} for part in (controls, contest_grid))
    assert tried == tried_before  # as many settings, and the same


@pytest.mark.parametrize("learner", ["actor_critic", "ppo"])
def test_the_settings_on_lunarlander_are_those_that_its_tuning_seeds_chose(learner):
    means = tuning_means(learner, "fair_tuning_lunarlander")
    own = contest.own_settings(means)
    assert settings(f"fair_lunarlander_{learner}") == own
    assert means["zscore"][own["zscore"]] < means["running"][own["running"]]  # the reference here
    assert set(means["adaptive"].values()) == {1500.0}  # which is why the rule falls back on the lowest rate


SETTING_TITLES = dict(
    zip(
        ELEVEN,
        (
            "none",
            "Z-Score per episode",
            "running",
            "EMA",
            "K-Score as written",
            "adaptive stream",
            "adaptive refit",
            "episode filter",
            "episode filter, bank",
            "PopArt",
            "percentile",
        ),
        strict=True,
    )
)
SETTING_TITLES |= {"running_twice": "running, twice", "fading": "fading"}


@pytest.mark.parametrize(
    ("header", "grid", "results", "arms", "learners"),
    [
        ("| arm | REINFORCE |", "fair_tuning", "fair", ELEVEN, LEARNERS),
        ("| control | REINFORCE |", "controls_tuning", "controls", CONTROLS, LEARNERS),
        (
            "| arm | LunarLander, actor-critic |",
            "fair_tuning_lunarlander",
            "fair_lunarlander",
            FIVE,
            ("actor_critic", "ppo"),
        ),
    ],
)
def test_the_plan_writes_down_the_settings_that_were_found(header, grid, results, arms, learners):
    written = {row[0]: row[1:] for row in rows(header)}
    for arm in arms:
        for learner, cell in zip(learners, written.pop(SETTING_TITLES[arm]), strict=True):
            own = settings(f"{results}_{learner}")
            if arm not in own:
                assert cell == "none"
                continue
            rate, z_scored = own[arm]
            mean = tuning_means(learner, grid)[arm][own[arm]]
            setting, number = cell.split(": ")
            assert setting == f"{rate:g}{' z' if z_scored else ''}"
            assert float(number) == pytest.approx(mean, abs=0.5 + 1e-9)  # processors differ in a sum's last digit
    assert not written


@pytest.mark.parametrize("learner", ["reinforce", "actor_critic"])
def test_under_a_condition_an_arm_differs_from_the_clean_one_by_that_alone(learner):
    clean, asked = EVERY[f"fair_{learner}"].configs, 0
    for kind in ("noise", "scale", "shift", "swap"):
        part = EVERY.get(f"disturbed_{learner}_{kind}", plan.Part("", {}, range(0)))
        for title, config in part.configs.items():
            arm, condition = part.columns[title].values()
            assert title == f"{arm}, {condition}"
            changes = plan.condition(condition) | ({"max_episodes": 400} if condition == "swap" else {})
            assert config == dataclasses.replace(clean[arm], **changes) != clean[arm]
            asked += 1
    assert asked == {"actor_critic": 13, "reinforce": 9}[learner] * 8


@pytest.mark.parametrize("learner", ["reinforce", "actor_critic", "gae", "ppo"])
def test_the_arms_beside_the_controls_are_those_of_the_contest(learner):
    found, contest_arms = EVERY[f"controls_{learner}"].configs, EVERY[f"fair_{learner}"].configs
    assert {arm: config for arm, config in found.items() if arm not in CONTROLS} == {
        arm: contest_arms[arm] for arm in ("running", "episode_filter", "filter_bank")
    }
    if learner in ("actor_critic", "reinforce"):
        swapped, earlier = (EVERY[f"{part}_{learner}_swap_longer"].configs for part in ("controls", "disturbed"))
        assert all(swapped[arm] == earlier[arm] for arm in swapped if not arm.startswith("fading"))
        assert swapped["fading, swap"] == dataclasses.replace(
            found["fading"], **plan.condition("swap"), max_episodes=1500
        )


@pytest.mark.parametrize(
    ("name", "rate", "parts"),
    [
        ("reinforce_slower", 0.003, ("disturbed_reinforce_noise", "disturbed_reinforce_shift")),
        ("reinforce_faster", 0.01, ("disturbed_reinforce_noise", "disturbed_reinforce_shift")),
        ("reinforce_rates", None, ("controls_reinforce",)),
    ],
)
def test_arms_at_another_rate_differ_by_that_alone(name, rate, parts):
    usual = {title: config for part in parts for title, config in EVERY[part].configs.items()}
    for title, config in EVERY[f"controls_{name}"].configs.items():
        other = {0.003: 0.01, 0.01: 0.003}[usual[title].learning_rate]
        assert config == dataclasses.replace(usual[title], learning_rate=other) and rate in (None, other)


def test_at_the_second_door_of_the_actor_critic_is_a_running_z_score():
    (door,) = EVERY["controls_actor_critic_doors"].configs.values()
    running = EVERY["controls_actor_critic"].configs["running"]
    assert door == dataclasses.replace(running, advantage_normalizer=spelled_out("running")) != running


@pytest.mark.parametrize(("name", "condition"), [("swap_longer_doors", "swap"), ("outliers", "outliers")])
def test_arms_with_something_else_at_a_door_differ_from_those_of_the_contest_by_that_alone(name, condition):
    beside = EVERY["disturbed_actor_critic_swap_longer" if condition == "swap" else "disturbed_actor_critic_shift"]
    for title, config in EVERY[f"controls_actor_critic_{name}"].configs.items():
        usual, change = DOORS[title]
        assert (
            config
            == dataclasses.replace(beside.configs[f"{usual}, {condition}"], **change)
            != beside.configs[f"{usual}, {condition}"]
        )


def test_the_running_z_score_after_the_swap_has_the_rate_of_those_it_is_held_against():
    usual = EVERY["controls_reinforce_swap_longer"].configs
    (faster,) = EVERY["controls_reinforce_swap_longer_faster"].configs.values()
    assert faster == dataclasses.replace(usual["running, swap"], learning_rate=usual["fading, swap"].learning_rate)
    assert faster != usual["running, swap"]


@pytest.mark.parametrize("learner", ["reinforce", "ppo"])
def test_the_cells_of_the_factorial_differ_in_their_parts_alone(learner):
    cells = EVERY[f"fair_parts_{learner}"].configs
    assert len({key(config, 0) for config in cells.values()}) == 14
    bare = dataclasses.replace(
        RunConfig.preset("CartPole-v1", learner),
        normalize_advantages=False,
        learning_rate=COMMON_RATES[learner],
    )
    assert all(dataclasses.replace(config, normalizer=bare.normalizer) == bare for config in cells.values())
    found = {(one.normalizer["centre"], one.normalizer["scale"], one.normalizer["fading"]) for one in cells.values()}
    assert found == {(c, s, f) for c in PLACES for s in PLACES for f in (0.0, 0.1) if "past" in (c, s) or not f}


@pytest.mark.parametrize("learner", ["actor_critic", "ppo"])
def test_other_networks_change_the_network_alone(learner):
    usual = EVERY[f"fair_{learner}"].configs
    for title, config in EVERY[f"fair_networks_{learner}"].configs.items():
        arm, network = title.split(", ")
        changes = {
            "no dropout": {"dropout": 0.0},
            "half the width": {"hidden": (64,)},
            "double width": {"hidden": (256,)},
        }[network]
        assert config == dataclasses.replace(usual[arm], **changes) != usual[arm]


# Tuning


@pytest.mark.parametrize("algorithm", ["actor_critic", "ppo"])
def test_every_method_is_tuned_over_equally_many_settings(algorithm):
    grids = [EVERY[f"tuning_{algorithm}_{kind}"].configs for kind in ("stream", "refit", "ema")]
    assert [len(grid) for grid in grids] == [25, 25, 25]
    assert len({key(config, 0) for grid in grids for config in grid.values()}) == 75


def test_settings_that_agree_in_six_digits_stay_two_arms():
    grid = plan.part("tuning_ppo_stream", grid={"Q": [0.1, 0.1000000001], "R": [1]}).configs
    assert list(grid) == ["Q = 0.1, R = 1", "Q = 0.1000000001, R = 1"]
    assert [arm.normalizer["Q"] for arm in grid.values()] == [0.1, 0.1000000001]
    assert len(plan.part("tuning_ppo_ema", grid={"1 - decay": [0.01, 0.01 + 1e-9]}).configs) == 2


def test_the_kalman_grid_has_every_pair():
    grid = EVERY["tuning_ppo_refit"].configs
    Qs, Rs = [1e-4, 1e-3, 1e-2, 1e-1, 1.0], [1e-2, 1e-1, 1.0, 10.0, 100.0]
    assert [config.normalizer for config in grid.values()] == [
        spelled_out("kscore", mode="refit", Q=Q, R=R) for Q in Qs for R in Rs
    ]  # this order decides ties


def test_the_ema_grid_forgets_at_different_rates_around_the_default():
    grid = EVERY["tuning_ppo_ema"].configs.values()
    assert {config.normalizer["name"] for config in grid} == {"ema"}
    rates = [1 - config.normalizer["decay"] for config in grid]
    assert rates == sorted(set(rates)) and 0 < rates[0] < 0.009 and 0.011 < rates[-1] < 1
    assert 0.99 in [config.normalizer["decay"] for config in grid]


# A smaller study


@every_part
def test_a_smaller_part_has_the_same_arms_on_fewer_seeds_and_episodes(name):
    small = plan.part(name, seeds=3, first_seed=3000, max_episodes=7)
    assert small.seeds == range(3000, 3003) and small.runs == 3 * len(EVERY[name].configs)
    _, cap = task_of(name)
    assert {arm: dataclasses.replace(config, max_episodes=cap) for arm, config in small.configs.items()} == EVERY[
        name
    ].configs
    assert {config.max_episodes for config in small.configs.values()} == {7}


def test_fewer_seeds_begin_where_the_planned_ones_do():
    assert plan.part("tuning_ppo_ema", seeds=2).seeds == range(2000, 2002)
    assert plan.part("cartpole_ppo", first_seed=5).seeds == range(5, 55)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"first_seed": 2**64},
            f"first_seed must be a whole number of at least 0 and at most {2**63 - 1}, got {2**64}",
        ),
        ({"first_seed": -1}, "first_seed must be a whole number of at least 0"),
        ({"first_seed": 1.0}, "first_seed must be a whole number of at least 0"),
        ({"seeds": 0}, "seeds must be a whole number of at least 1"),
        ({"seeds": True}, "seeds must be a whole number of at least 1"),
        ({"seeds": 2**64}, f"seeds must be a whole number of at least 1 and at most {2**63 - 1000}, got {2**64}"),
        ({"first_seed": 2**63 - 1, "seeds": 2}, "seeds must be a whole number of at least 1 and at most 1, got 2"),
        ({"first_seed": 2**63 - 1}, "seeds must be a whole number of at least 1 and at most 1, got 50"),
        ({"gamma": 7}, "gamma must be between 0 and 1, got 7"),
    ],
)
def test_a_size_that_cannot_be_gets_a_sentence(change, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        plan.part("cartpole_ppo", **change)


def test_the_very_last_seed_can_be_asked_for():
    assert list(plan.part("cartpole_ppo", first_seed=2**63 - 2, seeds=2).seeds) == [2**63 - 2, 2**63 - 1]


def test_an_unknown_part_is_an_error_that_names_the_nearest():
    with pytest.raises(ValueError, match=r"part of the study must be one of .*did you mean 'cartpole_ppo'\?"):
        plan.part("cartpole_pppo")


@pytest.mark.parametrize("name", TUNED)
def test_a_tuned_part_is_made_of_the_winners_of_its_grids(name):
    grids = plan.grids_of(name)
    kinds = {"kscore": "stream", "refit": "refit", "ema": "ema"}
    assert grids == {arm: name.replace("tuned", "tuning") + f"_{kind}" for arm, kind in kinds.items()}
    winners = {arm: list(EVERY[grid].configs.values())[7] for arm, grid in grids.items()}
    part = plan.part(name, winners=winners)
    assert part.configs == winners
    assert part.seeds == EVERY["cartpole_ppo"].seeds


@every_part
def test_only_tuned_parts_have_grids(name):
    assert plan.grids_of(name) == {}


def test_a_tuned_part_without_its_winners_gets_a_sentence():
    with pytest.raises(ValueError, match=r"a tuned part needs winners, .* of its grids \(kscore, refit, ema\), got"):
        plan.part("tuned_ppo")
    with pytest.raises(ValueError, match="arm of winners must be one of 'kscore', 'refit', 'ema', got 'stream'"):
        plan.part("tuned_ppo", winners={"stream": RunConfig.preset("CartPole-v1", "ppo")})


# Choosing

VALUES = {
    "mode": ("stream", "refit"),
    **dict.fromkeys(("algorithm", "learner"), ("actor_critic", "ppo")),
    "kind": ("stream", "refit", "ema"),
    "each": ("reinforce", "actor_critic", "gae", "ppo"),
    "suffix": ("", "_slower"),
    "told": ("", "_small", "_large"),
    "mover": ("reinforce", "gae", "ppo"),
    "apart": ("reinforce", "ppo"),
    "unseen": ("acrobot", "drylake"),
    "task": ("pendulum", "lunarlander"),
    "other": ("halfcheetah", "bipedalwalker"),
}


def asked_for(chapter):
    """The names that a chapter gives to `plan.part`, with those of its loops filled in; None for a variable."""
    calls = [
        node
        for node in ast.walk(ast.parse(chapter.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "part"
    ]
    for call in calls:
        name = call.args[0]
        if not isinstance(name, ast.JoinedStr):
            yield name.value if isinstance(name, ast.Constant) else None
            continue
        words = [[piece.value] if isinstance(piece, ast.Constant) else VALUES[piece.value.id] for piece in name.values]
        yield from map("".join, itertools.product(*words))


@pytest.mark.parametrize("chapter", sorted(NOTEBOOKS.glob("*.py")), ids=lambda path: path.stem)
def test_a_chapter_reads_the_parts_that_the_plan_gives_it(chapter):
    number = int(chapter.stem[:2])
    read = list(asked_for(chapter))
    own = {name for name, declared in PARTS.items() if number in declared.chapters}
    if number == plan.REPORT:
        assert set(read) == {None, "cartpole_ppo", *TUNED} and 'plan.chosen(["11"])' in chapter.read_text("utf-8")
    elif f'plan.chosen(["{number}"])' in chapter.read_text(encoding="utf-8"):
        assert None in read and set(read) - {None} <= own  # all that are its own, by its number
    else:
        assert set(read) - ({None} if number > plan.REPORT else set()) == own  # and curves of the replication, by name


@pytest.mark.parametrize("number", [5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17])
def test_a_chapter_means_its_parts(number):
    own = [name for name, declared in PARTS.items() if number in declared.chapters]
    assert own and plan.chosen([f"{number:02}"]) == plan.chosen([str(number)]) == own


BEYOND = ("episodes", "relatives", "continuous", "fair", "controls", "disturbed", "short")
REPLICATION = [name for name in PARTS if not name.startswith(BEYOND)]


def test_the_report_means_all_of_the_replication():
    assert plan.chosen(["11"]) == REPLICATION


@pytest.mark.parametrize("number", ["03", "0", "99"])
def test_a_chapter_without_experiments_gets_a_sentence(number):
    with pytest.raises(ValueError, match=f"chapter with experiments must be one of '5', .*'11', .*got '{int(number)}'"):
        plan.chosen([number])


def test_all_parts_are_chosen_without_a_pattern():
    assert plan.chosen() == plan.chosen([]) == list(plan.parts())


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["cartpole_ppo"], ["cartpole_ppo"]),
        (["lunarlander_*"], ["lunarlander_actor_critic", "lunarlander_ppo", "lunarlander_released"]),
        (["*_switched", "cartpole_gae"], ["cartpole_gae", "cartpole_gae_switched", "cartpole_ppo_switched"]),
        (["process_noise_stream", "process_*"], ["process_noise_stream", "process_noise_refit"]),
        (["09", "cartpole_gae"], ["lunarlander_ppo", "cartpole_gae"]),
        (["tuned_ppo"], ["tuning_ppo_stream", "tuning_ppo_refit", "tuning_ppo_ema", "tuned_ppo"]),
    ],
)
def test_parts_are_chosen_by_name_and_glob_in_the_order_of_the_study(patterns, names):
    assert plan.chosen(patterns) == names


def test_grids_come_before_the_tuned_parts_that_need_them():
    order = list(PARTS)
    for name in TUNED:
        assert max(order.index(grid) for grid in plan.grids_of(name).values()) < order.index(name)


@pytest.mark.parametrize(
    ("pattern", "nearest"),
    [
        ("cartpole_pp", "cartpole_ppo"),
        ("lunarlander_pppo", "lunarlander_ppo"),
        ("tuning_ppo_emma", "tuning_ppo_ema"),
    ],
)
def test_an_unknown_pattern_is_an_error_that_names_the_nearest(pattern, nearest):
    with pytest.raises(ValueError, match=rf"part of the study must be one of .*did you mean '{nearest}'\?"):
        plan.chosen(["cartpole_gae", pattern])


def test_an_unknown_arm_is_an_error_that_names_the_nearest():
    with pytest.raises(ValueError, match=r"arm must be one of .*did you mean 'refit'\?"):
        plan.arm("replication", "refitt", "ppo")


WITH_COMMANDS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "Makefile",
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "slides").glob("*.md"),
    *NOTEBOOKS.glob("*.py"),
    DATA / "README.md",
]


def test_commands_that_are_written_down_name_parts_of_the_study():
    commands = [
        words
        for path in WITH_COMMANDS
        for words in re.findall(r"kscore study ((?:(?:[\w*]+)(?: |$))+)", path.read_text(encoding="utf-8"))
    ]
    assert len(commands) >= 2
    for words in commands:
        assert plan.chosen(words.split())


# The claims

CLAIMS = {row["id"]: row for row in csv.DictReader((DATA / "paper" / "claims.csv").open(encoding="utf-8"))}
CELLS = [
    (claim, reading) for claim, row in CLAIMS.items() for reading in ("written", "released") if row["kind"] != "summary"
]
PLANNED_ARMS = {
    "simple stream": "kscore",
    "simple refit": "refit",
    "adaptive stream": "adaptive",
    "adaptive refit": "adaptive_refit",
    **{name: name for name in ("running", "zscore", "750", "991")},
}


def planned_claims():
    """What the plan's table says: {(experiment, reading): {part: (arms, criterion)}}; no arms: all of the part's."""
    return {
        (experiment, reading): dict(map(planned_pairing, re.sub(r"\(.*?\)", "", cell).split(";")))
        for name, *cells in rows("| claim | as written")
        for experiment in re.findall(r"\b[ET]\d[ab]?\b", name)
        for reading, cell in zip(("written", "released"), cells, strict=True)
    }


def planned_pairing(text):
    part, named = re.search(r"`(\w+)`:?(.*)", text).groups()
    named, _, criterion = named.partition(", by ")
    names = [PLANNED_ARMS[word.strip()] for word in named.split(",") if word.strip()]
    criterion = criterion.strip().removesuffix(" returns") or "evaluation"
    return part, (tuple(names) or tuple(EVERY[part].configs), criterion)


def in_order(some, all_of_them):
    """Say whether some of the arms are named, in the same order."""
    places = [all_of_them.index(arm) for arm in some]
    return places == sorted(places)


def test_the_plans_table_of_claims_is_read():
    planned = planned_claims()
    assert {experiment for experiment, _ in planned} == {"E1", "E2", "E3", "E4", "T1a", "T1b", "T2"}
    assert planned["E1", "released"] == {"cartpole_reinforce": (("adaptive_refit", "zscore"), "evaluation")}
    assert planned["T1b", "released"] == {"lunarlander_released": (("750", "991"), "training")}
    assert list(planned["T1a", "released"]) == ["cartpole_ppo", "cartpole_ppo_released"]


def experiment_of(claim):
    """E1.3 is about E1; of Table 1, PPO on CartPole is the first half; S.4 says something of E1."""
    if claim == "S.4":
        return "E1"
    first = claim.split(".")[0]
    return first if first != "T1" else "T1a" if "CartPole" in CLAIMS[claim]["says"] else "T1b"


@pytest.mark.parametrize(("claim", "reading"), CELLS)
def test_a_claim_is_judged_by_arms_of_a_part_that_the_plan_pairs(claim, reading):
    pairing = Pairing.parse(CLAIMS[claim][reading])
    assert pairing.part in PARTS and set(pairing.arms) <= set(EVERY[pairing.part].configs)
    arms, criterion = planned_claims()[experiment_of(claim), reading][pairing.part]
    assert pairing.criterion == criterion
    assert in_order(pairing.arms, arms)  # the K-Score before what it is held against


@pytest.mark.parametrize(("experiment", "reading"), planned_claims())
def test_every_planned_pair_stands_behind_a_claim(experiment, reading):
    used = [
        Pairing.parse(CLAIMS[claim][reading])
        for claim, of in CELLS
        if of == reading and experiment_of(claim) == experiment
    ]
    planned = planned_claims()[experiment, reading]
    if (experiment, reading) == ("E4", "released"):
        del planned["cartpole_ppo_released"]  # "T1a also ..."
    assert {one.part for one in used} == set(planned)
    for part, (arms, _) in planned.items() if experiment != "T1a" else ():  # whose arms are those of E4
        assert {arm for one in used if one.part == part for arm in one.arms or arms} == set(arms)


def test_every_experiment_has_claims_and_every_summary_names_some():
    assert {experiment_of(claim) for claim, _ in CELLS} == {experiment for experiment, _ in planned_claims()}
    summaries = [row for row in CLAIMS.values() if row["kind"] == "summary"]
    assert summaries and {row["id"].split(".")[0] for row in summaries} == {"S"}
    for row in summaries:
        assert row["written"] == row["released"] and set(row["written"].split()) <= set(CLAIMS) - {row["id"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cartpole_ppo: kscore / running", ("cartpole_ppo", ("kscore", "running"), "evaluation")),
        ("cartpole_ppo: running", ("cartpole_ppo", ("running",), "evaluation")),
        ("process_noise_refit", ("process_noise_refit", (), "evaluation")),
        ("process_noise_refit by training", ("process_noise_refit", (), "training")),
        ("lunarlander_released: 750 / 991 by training", ("lunarlander_released", ("750", "991"), "training")),
        ("lunarlander_released: 991 by training", ("lunarlander_released", ("991",), "training")),
        ("tuning: Q = 0.0001, R = 1", ("tuning", ("Q = 0.0001, R = 1",), "evaluation")),
        ("tuning: Q = 1, R = 1 / Q = 1, R = 2", ("tuning", ("Q = 1, R = 1", "Q = 1, R = 2"), "evaluation")),
    ],
)
def test_pairings_are_read(text, expected):
    assert Pairing.parse(text) == expected


@pytest.mark.parametrize("text", ["", "two words", "part:", ": arm"])
def test_a_pairing_that_cannot_be_read_gets_a_sentence(text):
    with pytest.raises(ValueError, match=f"a pairing must be 'part: arm / arm by criterion', got '{text}'"):
        Pairing.parse(text)


# The archive: it holds exactly what was planned, and every run agrees with itself


def configuration(record):
    """The configuration of a record, and the settings it is known by."""
    return _configuration(json.dumps(record["config"]))


@cache  # thousands of records share a few hundred configurations
def _configuration(text):
    fields = json.loads(text)
    config = RunConfig(**fields)
    assert config.to_dict().items() >= fields.items()
    return config, key(config, 0)[0]


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
    every = config.episodes_per_update * config.evaluate_every
    assert len(evaluated) == episodes // every or (
        record["status"] == "diverged" and len(evaluated) == episodes // every - 1
    )
    assert record["steps"] == record["train_steps"] + record["eval_steps"]
    if config.env == "CartPole-v1":  # which pays 1 a step
        assert (record["train_steps"], record["eval_steps"]) == (sum(trained), sum(evaluated))

    met = record["solved_at"]
    looked_at = [first_arrival(evaluated, config), first_arrival(trained, config)]
    if every > 1:  # training returns are looked at after an update only
        looked_at = [looked_at[0] and every * looked_at[0], met["training"]]
    assert list(met.values()) == looked_at and list(met) == ["evaluation", "training"]
    wanted = [at for criterion, at in met.items() if config.criterion in (criterion, "both")]
    assert record["solved"] == (record["status"] == "solved") == (None not in wanted)
    match record["status"]:
        case "solved":
            assert record["reason"] is None
            assert max(wanted) == episodes if config.stop else episodes == config.max_episodes
        case "censored":
            assert episodes == config.max_episodes and record["reason"] is None
        case status:
            assert status == "diverged" and record["reason"]


@pytest.mark.parametrize("name", PARTS)
def test_the_archive_holds_the_planned_runs_of_a_part_and_each_agrees_with_itself(name):
    part = tuned_part(name) if name in TUNED else EVERY[name]
    file = ARCHIVE / part.file
    records = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    assert {record["protocol"] for record in records} == {PROTOCOL_VERSION}
    for record in records:
        check(record)
    found = Counter((configuration(record)[1], record["seed"]) for record in records)
    planned = Counter(key(config, seed) for config in part.configs.values() for seed in part.seeds)
    assert found == planned


def test_the_archive_holds_nothing_else():
    there = {path.name for path in ARCHIVE.iterdir()}
    assert there - {".gitkeep"} == {f"{name}.jsonl" for name in PARTS}
    parts = [tuned_part(name) if name in TUNED else EVERY[name] for name in REPLICATION]
    assert sum(part.runs for part in parts) == 5640


# The check itself


@pytest.fixture(scope="module")
def real():
    """Real records: solved by evaluation before training arrived, and censored."""
    fast = RunConfig(env="CartPole-v1", algorithm="reinforce", threshold=9.0, hidden=(8,), window=2, max_episodes=9)
    return {
        "solved": train(fast, 1),
        "censored": train(dataclasses.replace(fast, threshold=499.0), 1),
        "both": train(dataclasses.replace(fast, criterion="both"), 1),
    }


def diverged(record):
    record["eval_returns"].pop()
    return record | {
        "status": "diverged",
        "solved": False,
        "reason": "the loss is not finite",
        "eval_steps": sum(record["eval_returns"]),
        "steps": sum(record["eval_returns"]) + record["train_steps"],
    }


def test_real_records_pass_the_check(real):
    assert {name: record["status"] for name, record in real.items()} == {
        "solved": "solved",
        "censored": "censored",
        "both": "solved",
    }
    for record in real.values():
        check(record)
    check(diverged(copy.deepcopy(real["censored"])))


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
def test_broken_records_do_not_pass_the_check(real, name):
    which, broken = BROKEN[name]
    with pytest.raises((AssertionError, KeyError)):
        check(broken(copy.deepcopy(real[which])))
