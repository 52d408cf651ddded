"""Records: parsed once, into a type; known by all of their settings; and what is no record is named as what it is."""

import dataclasses
import json
import random
import sys
import warnings

import gymnasium
import pytest
import small_runs
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples
from small_runs import ARMS, SEEDS, key_of, record, run, tiny, without_seconds

from kscore import normalizers, project, study
from kscore.normalizers import NORMALIZERS, Ema, KScore
from kscore.rl.config import PROTOCOL_VERSION, RunConfig
from kscore.study import records
from kscore.study.records import LATER, Record, Unusable, key


@pytest.fixture(scope="session")
def whole():
    """The lines of an uninterrupted study."""
    return small_runs.lines()


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.jsonl"


@pytest.fixture(autouse=True)
def every_warning_is_expected():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def changed(line, **changes):
    """A line whose record has other values; `config` and `normalizer` are changed in part."""
    made = json.loads(line)
    options = changes.pop("normalizer", {})
    made["config"] |= changes.pop("config", {})
    made["config"]["normalizer"] = made["config"]["normalizer"] | options
    return json.dumps(made | changes, separators=(",", ":")).encode() + b"\n"


def without(line, *path):
    """A line whose record lacks something, a field or a field of a field."""
    made = json.loads(line)
    *way, last = path
    inner = made
    for name in way:
        inner = inner[name]
    del inner[last]
    return json.dumps(made, separators=(",", ":")).encode() + b"\n"


# A record


def test_a_record_is_typed_and_holds_what_was_trained(whole):
    plain, typed = json.loads(whole[0]), Record.parse(whole[0])
    for name, value in plain.items():
        found = getattr(typed, name)
        assert (found.tolist() if name.endswith("returns") else found) == value
    assert set(plain) == {field.name for field in dataclasses.fields(Record)}
    assert typed.train_returns.dtype == typed.eval_returns.dtype == float
    with pytest.raises(dataclasses.FrozenInstanceError):
        typed.seed = 1


def test_a_line_is_parsed_once(store, whole, monkeypatch):
    store.write_bytes(b"".join(whole))
    parse, seen = Record.parse, []
    monkeypatch.setattr(Record, "parse", lambda line: seen.append(line) or parse(line))
    assert len(study.recorded(ARMS, SEEDS, store)) == 6
    assert seen == whole


def test_a_record_holds_every_option_of_its_normalizer(whole):
    for line in whole:
        options = json.loads(line)["config"]["normalizer"]
        assert set(options) == {"name", *normalizers.option_names(options["name"])}


@pytest.mark.parametrize("returns", [[], [1, 2.5], [1, 2], [1.0]])
def test_returns_may_be_none_at_all_and_whole_numbers_or_not(whole, returns):
    found = Record.parse(changed(whole[0], eval_returns=returns)).eval_returns
    assert found.tolist() == returns and found.dtype == float


def test_two_records_are_told_apart_by_their_keys_alone(whole):
    one, same = Record.parse(whole[0]), Record.parse(whole[0])
    assert one.key == same.key and len({one, same}) == 2  # arrays cannot be compared at once


# What is passed over


def passed_over(store, lines, sentence):
    """Write a store with one bad line, run the study on it, and return what was trained and what the store holds."""
    store.write_bytes(b"".join(lines))
    with pytest.warns(UserWarning, match=rf"^runs\.jsonl: {sentence}"):
        frame, trained = run(store)
    assert len(frame) == 6
    assert store.read_bytes().startswith(b"".join(lines))
    return trained, study.read(store)


def damaged(store, whole, line):
    """Put a line in the place of the third: its run is done again, and all others are found."""
    trained, contents = passed_over(store, [*whole[:2], line, *whole[3:]], "1 damaged lines were passed over$")
    assert trained == [key_of(whole[2])]
    assert contents[1:] == (1, 0, 0, {})
    assert without_seconds(contents.records) == without_seconds(map(Record.parse, whole))


@pytest.mark.parametrize("kept", [1, 0.5, -2])
def test_a_torn_last_line_is_counted_and_its_run_done_again(store, whole, kept):
    *others, last = whole
    torn = last[: int(len(last) * kept)] if isinstance(kept, float) else last[:kept]
    trained, contents = passed_over(store, [*others, torn], "1 damaged lines were passed over$")
    assert trained == [key_of(last)]
    assert (contents.damaged, contents.foreign) == (1, 0)
    assert without_seconds(contents.records) == without_seconds(map(Record.parse, whole))
    assert store.read_bytes().startswith(b"".join(others) + torn + b"\n")  # the next record has a line of its own


def test_a_last_line_that_only_lacks_its_end_is_whole(store, whole):
    store.write_bytes(b"".join(whole[:-1])[:-1])
    _, trained = run(store)
    assert trained == [key_of(whole[-1])]
    contents = study.read(store)
    assert contents.damaged == 0 and len(contents.records) == 6


@pytest.mark.parametrize(
    "corrupt",
    [
        lambda line: line.replace(b'"config"', b'"confug"', 1),
        lambda line: line[:40] + line[90:],
        lambda line: b"\x00" * len(line) + b"\n",
        lambda line: line.replace(b'"seed"', b'"s\xff\xfed"'),
        lambda line: b"[1, 2]\n",
        lambda line: b"17\n",
        lambda line: b"null\n",
        lambda line: b'"text"\n',
        lambda line: b"{}\n",
    ],
    ids=["field", "gap", "zeros", "bytes", "list", "number", "null", "text", "empty"],
)
def test_a_corrupted_middle_line_is_counted_and_its_run_done_again(store, whole, corrupt):
    damaged(store, whole, corrupt(whole[2]))


@pytest.mark.parametrize(
    "path",
    [
        *((field.name,) for field in dataclasses.fields(Record) if field.name != "cpu_seconds"),
        ("solved_at", "evaluation"),
        ("solved_at", "training"),
        *(("config", name) for name in sorted(records.FIRST_SETTINGS)),
        ("config", "normalizer", "name"),
    ],
    ids=".".join,
)
def test_a_record_that_lacks_something_is_damaged(whole, path):
    with pytest.raises(Unusable, match="^damaged$"):
        Record.parse(without(whole[2], *path))


def test_older_records_do_not_say_their_processor_time(whole):
    line = json.loads(whole[2])
    assert Record.parse(whole[2]).cpu_seconds == line.pop("cpu_seconds") > 0
    assert Record.parse(json.dumps(line).encode()).cpu_seconds is None


WRONG = {
    "protocol": [True, 1.0, "1", None, [1], -1],
    "seed": [2**63, 2**64, -1, 1.0, True, "1", None, [1]],
    "status": ["arrived", "stopped", None, 1, ["solved"]],
    "solved": [1, 0, None, "true"],
    "train_returns": [None, [1.0, None], [1.0, "x"], ["1.0"], "123", [[1.0]], {"0": 1.0}, [1.0, True], [True], 7, [{}]],
    "solved_at": [
        None,
        [],
        {"evaluation": 1.5, "training": None},
        {"evaluation": True, "training": None},
        {"evaluation": None, "training": 0},
        {"evaluation": "3", "training": None},
    ],
    "seconds": [None, "1", True, -0.5, [1.0]],
    "cpu_seconds": ["1", True, -0.5, [1.0]],
    "config": [None, [], "text", {}],
} | {count: ["3", 3.0, -1, None, True, [3]] for count in ("episodes", "train_steps", "eval_steps", "steps")}
WRONG["eval_returns"] = WRONG["train_returns"]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_record_of_the_wrong_type_is_damaged(whole, name, value):
    line = json.dumps(json.loads(whole[2]) | {name: value}).encode()
    with pytest.raises(Unusable, match="^damaged$"):
        Record.parse(line)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_episodes", 0),
        ("max_episodes", 3.0),
        ("max_episodes", True),
        ("max_episodes", None),
        ("normalizer", None),
        ("normalizer", {}),
        ("normalizer", "zscore"),
        ("normalizer", {"name": 7}),
        ("normalizer", {"name": ["zscore"]}),
        ("normalizer", []),
        ("advantage_normalizer", {}),
        ("value_scale", {"eps": 1.0}),
        ("value_scale", []),
        ("env", None),
        ("env", 7),
        ("env", ["CartPole-v1"]),
    ],
)
def test_settings_of_the_wrong_type_are_damaged(whole, name, value):
    made = json.loads(whole[2])
    made["config"][name] = value
    with pytest.raises(Unusable, match="^damaged$"):
        Record.parse(json.dumps(made).encode())


@pytest.mark.parametrize(
    "change",
    [
        {"episodes": "3"},
        {"train_returns": [1.0, None]},
        {"eval_returns": [True, 1.0]},
        {"seed": 1.0},
        {"seed": 2**63},
    ],
    ids=str,
)
def test_the_run_of_a_damaged_record_is_done_again(store, whole, change):
    damaged(store, whole, changed(whole[2], **change))


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999"])
def test_a_number_that_json_does_not_have_is_damaged(store, whole, number):
    line = whole[2].replace(b'"train_returns":[', b'"train_returns":[%s,' % number)
    assert line != whole[2]
    damaged(store, whole, line)


def test_empty_lines_do_no_harm(store, whole):
    store.write_bytes(b"\n" + b"\n".join(whole) + b"\n\n")
    contents = study.read(store)
    assert len(contents.records) == 6 and contents.damaged == 0


def test_records_of_another_protocol_are_passed_over(store, whole):
    old = [
        line.replace(b'"protocol":%d' % PROTOCOL_VERSION, b'"protocol":%d' % (PROTOCOL_VERSION - 1)).replace(
            b'"episodes":3', b'"episodes":999'
        )
        for line in whole[:4]
    ]
    store.write_bytes(b"".join(old + whole[4:]))
    with pytest.warns(UserWarning, match=rf"4 records of another protocol version than {PROTOCOL_VERSION} were passed"):
        assert len(study.recorded(ARMS, SEEDS, store)) == 2
    with pytest.warns(UserWarning, match="another protocol"):
        frame, trained = run(store)
    assert sorted(trained) == sorted(map(key_of, whole[:4]))
    assert list(frame.episodes) == [3] * 6
    assert study.read(store).foreign == 4  # they stay for whoever checks out the old code
    assert without_seconds(study.read(store).records) == without_seconds(map(Record.parse, whole))


def test_another_protocol_may_have_other_fields(whole):
    with pytest.raises(Unusable) as caught:
        Record.parse(b'{"protocol":2,"anything":"else"}')
    assert (caught.value.kind, caught.value.what) == ("foreign", "2")


def test_records_that_lack_options_are_passed_over(store, whole):
    line = without(whole[0], "config", "normalizer", "eps")
    trained, contents = passed_over(
        store,
        [line, *whole[1:]],
        "1 records do not hold every option of their normalizer and were passed over$",
    )
    assert trained == [key_of(whole[0])] and contents[1:] == (0, 0, 1, {})


@pytest.mark.parametrize("door", ["advantage_normalizer", "value_scale"])
def test_every_normalizer_of_a_record_has_to_be_complete_and_known(whole, door):
    for options, kind in (({"name": "ema", "eps": 1e-8}, "incomplete"), ({"name": "wscore"}, "unknown")):
        with pytest.raises(Unusable) as caught:
            Record.parse(changed(whole[0], config={door: options}))
        assert caught.value.kind == kind


UNKNOWN = {
    "normalizer 'wscore'": {"normalizer": {"name": "wscore"}},
    "environment 'NoSuch-v0'": {"config": {"env": "NoSuch-v0"}},
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_is_not_known_here_is_named_and_not_called_damaged(store, whole, what):
    line = changed(whole[0], **UNKNOWN[what])
    trained, contents = passed_over(
        store, [line, *whole[1:], line], f"2 records of the unknown {what} were passed over$"
    )
    assert trained == [key_of(whole[0])]
    assert contents[1:] == (0, 0, 0, {what: 2})


def test_each_unknown_thing_is_counted_by_itself(store, whole):
    store.write_bytes(b"".join(changed(whole[0], **change) for change in UNKNOWN.values()) + whole[1])
    contents = study.read(store)
    assert contents.unknown == dict.fromkeys(UNKNOWN, 1) and len(contents.records) == 1
    with pytest.warns(UserWarning) as told:
        study.recorded(ARMS, SEEDS, store)
    assert [warning.filename for warning in told] == [__file__] * 2  # it points at whoever asked


def test_an_environment_is_known_as_soon_as_it_is_registered(whole):
    line = changed(whole[0], config={"env": "MadeUp-v0"})
    with pytest.raises(Unusable, match="unknown environment 'MadeUp-v0'"):
        Record.parse(line)
    gymnasium.register("MadeUp-v0", "gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=20)
    try:
        assert Record.parse(line).config["env"] == "MadeUp-v0"
    finally:
        del gymnasium.registry["MadeUp-v0"]


def test_an_environment_without_its_version_is_refused_before_it_is_trained():
    with (
        pytest.raises(ValueError, match="env must name its version, .*; CartPole means CartPole-v1 here"),
        warnings.catch_warnings(action="ignore"),
    ):
        tiny(env="CartPole")


TRAP = """
from pathlib import Path
Path(__file__).with_name("sprung").touch()
"""


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": {"name": "a_trap_for_tests:Score"}},
        {"config": {"env": "a_trap_for_tests:Trap-v0"}},
        {"config": {"head": "a_trap_for_tests:Head"}},
        {"config": {"value_scale": {"name": "a_trap_for_tests:Score"}}},
    ],
    ids=["normalizer", "env", "head", "value_scale"],
)
def test_reading_a_record_imports_nothing_that_it_names(tmp_path, store, whole, monkeypatch, change):
    (tmp_path / "a_trap_for_tests.py").write_text(TRAP)
    monkeypatch.syspath_prepend(tmp_path)
    store.write_bytes(changed(whole[0], **change))
    contents = study.read(store)
    assert len(contents.records) == 1 and contents[1:] == (0, 0, 0, {})
    assert study.recorded(ARMS, SEEDS, store).empty
    assert "a_trap_for_tests" not in sys.modules and not (tmp_path / "sprung").exists()


# Keys

CHANGED = {
    "env": "Acrobot-v1",
    "algorithm": "ppo",
    "normalizer": {"name": "none"},
    "signal": "advantages",
    "advantage_normalizer": {"name": "none"},
    "normalize_advantages": True,
    "gamma": 0.9,
    "lam": 0.9,
    "epochs": 3,
    "clip": 0.1,
    "policy_reduction": "mean",
    "value_reduction": "sum",
    "learning_rate": 0.02,
    "hidden": (8, 8),
    "activation": "prelu",
    "dropout": 0.1,
    "head": "kscore.rl.policies:Categorical",
    "threshold": 9.0,
    "criterion": "both",
    "window": 3,
    "full_window": False,
    "evaluate_every": 2,
    "max_episodes": 4,
    "episodes_per_update": 2,
    "value_scale": {"name": "none"},
    "reward_normalizer": {"name": "none"},
    "reward_scale": 10.0,
    "stop": False,
    "disturbance": {"name": "noise"},
}
CHANGED_OPTIONS = {
    "none": {},
    "zscore": {"eps": 1e-6},
    "running": {"eps": 1e-6},
    "ema": {"eps": 1e-6, "decay": 0.9},
    "kscore": {
        "variant": "adaptive",
        "mode": "refit",
        "scale": "returns",
        "Q": 0.5,
        "R": 0.5,
        "alpha": 0.5,
        "x0": 1.0,
        "P0": 2.0,
        "R_timing": "before",
        "eps": 1e-6,
    },
    "episode": {
        "judge": "posterior",
        "noise": "bank",
        "ratio": 0.2,
        "level": "first",
        "transform": "symlog",
        "slope": True,
        "robust": True,
        "by_length": True,
        "eps": 1e-7,
    },
    "popart": {"rate": 0.2, "debiased": False, "least": 1e-3, "most": 1e5},
    "percentile": {"rate": 0.2, "debiased": True, "low": 10.0, "high": 90.0, "least": 0.5},
    "reward_scale": {"gamma": 0.9, "reset": "never", "start": 1.0, "eps": 1e-7},
    "symlog": {},
    "parts": {"centre": "none", "scale": "episode", "fading": 0.1, "eps": 1e-7},
}


def defaults(kind):
    return {f.name: f.default for f in dataclasses.fields(kind) if f.init and f.default is not dataclasses.MISSING}


def test_the_lists_of_settings_are_complete():
    assert set(CHANGED) == {f.name for f in dataclasses.fields(RunConfig)}
    assert {name: set(options) for name, options in CHANGED_OPTIONS.items()} == {
        name: set(normalizers.option_names(name)) for name in NORMALIZERS
    }


def test_every_changed_setting_and_seed_has_a_key_of_its_own():
    start = tiny(algorithm="gae")  # which may have a value scale
    changed = [dataclasses.replace(start, **{name: value}) for name, value in CHANGED.items()]
    found = {key(config, 0) for config in [start, *changed]} | {key(start, 1)}
    assert len(found) == len(CHANGED) + 2


@pytest.mark.parametrize("door", records.DOORS)
@pytest.mark.parametrize("name", CHANGED_OPTIONS)
def test_every_changed_option_has_a_key_of_its_own(door, name):
    options = [{}, *({option: value} for option, value in CHANGED_OPTIONS[name].items())]
    found = {key(tiny(**{"algorithm": "gae", door: {"name": name, **some}}), 0) for some in options}
    assert len(found) == len(options)


def test_one_and_one_point_zero_are_the_same_setting():
    whole, broken = (tiny(normalizer={"name": "kscore", "Q": Q}) for Q in (1, 1.0))
    assert key(whole, 0) == key(broken, 0)


def test_a_setting_may_be_left_out_where_it_stands_at_its_default():
    bare = {"env": "CartPole-v1", "algorithm": "ppo", "threshold": None}
    explicit = RunConfig(**bare, **defaults(RunConfig), normalizer={"name": "zscore"})
    assert key(RunConfig(**bare), 0) == key(explicit, 0)


@pytest.mark.parametrize(("name", "kind"), NORMALIZERS.items())
def test_the_order_of_options_does_not_count_nor_whether_a_default_is_spelled_out(name, kind):
    options = list({"name": name, **defaults(kind)}.items())
    random.Random(0).shuffle(options)
    assert key(tiny(normalizer=dict(options)), 0) == key(tiny(normalizer={"name": name}), 0)
    some = [("name", name), *(item for item in CHANGED_OPTIONS[name].items() if item[0] != "slope")]  # it stands alone
    assert key(tiny(normalizer=dict(some)), 0) == key(tiny(normalizer=dict(reversed(some))), 0)


def test_a_record_has_the_key_of_its_configuration(whole):
    for config, seed, line in zip([*ARMS.values()] * 3, [0, 0, 1, 1, 2, 2], whole, strict=True):
        assert key_of(line) == key(config, seed)


@pytest.mark.parametrize("setting", LATER)
def test_a_run_recorded_before_a_setting_existed_is_still_valid(store, whole, setting):
    store.write_bytes(b"".join(without(line, "config", setting) for line in whole))
    assert run(store)[1] == []
    spelled_out = tiny(**{setting: LATER[setting]})
    assert key(spelled_out, 0) == key_of(without(whole[0], "config", setting))


def test_settings_that_came_later_stand_at_what_leaves_everything_as_it_was():
    assert {f.name: f.default for f in dataclasses.fields(RunConfig) if f.name in LATER} == LATER


def test_the_first_runs_have_all_settings_but_those_that_came_later():
    first = json.loads((project.ARCHIVE / "cartpole_ppo.jsonl").open().readline())["config"]
    assert set(first) == records.FIRST_SETTINGS  # a new setting has to be listed in LATER


@pytest.mark.parametrize("door", records.DOORS)
def test_an_option_that_came_later_may_be_missing_and_then_stands_at_its_neutral_value(whole, monkeypatch, door):
    config = tiny(algorithm="gae", **{door: {"name": "ema"}})
    line = changed(whole[0], config=config.to_dict())
    monkeypatch.setitem(records.LATER_OPTIONS, "ema", {"decay": 0.99})
    old = without(line, "config", door, "decay")
    assert key_of(old) == key_of(line) == key(config, 0)
    assert key(tiny(algorithm="gae", **{door: {"name": "ema", "decay": 0.9}}), 0) != key(config, 0)
    monkeypatch.delitem(records.LATER_OPTIONS, "ema")
    with pytest.raises(Unusable, match="incomplete"):
        Record.parse(old)


# A default that changes


def new_default(monkeypatch, kind, option, value):
    """Let a normalizer have another default, as if its class had been edited."""
    before = [parameter.default for parameter in dataclasses.fields(kind) if parameter.name == option][0]
    init = kind.__init__
    names = list(init.__code__.co_varnames[1 : init.__code__.co_argcount])
    values = list(init.__defaults__)
    values[names.index(option) - len(names)] = value
    monkeypatch.setattr(init, "__defaults__", tuple(values))
    assert getattr(kind(), option) == value
    return before


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [
        (KScore, "Q", 0.5),
        (KScore, "mode", "refit"),
        (KScore, "eps", 1e-3),
        (Ema, "decay", 0.5),
    ],
)
def test_a_changed_default_leaves_recorded_runs_what_they_are_and_makes_another_run(
    store, monkeypatch, kind, option, value
):
    before = {"arm": tiny(normalizer={"name": kind.name})}
    run(store, before, [0])
    (recorded,), line = study.read(store).records, store.read_bytes()
    old = new_default(monkeypatch, kind, option, value)

    (again,) = study.read(store).records
    assert again.key == recorded.key and again.config["normalizer"][option] == old
    spelled_out = {"arm": tiny(normalizer={"name": kind.name, option: old})}
    assert len(study.recorded(spelled_out, [0], store)) == 1
    assert run(store, spelled_out, [0])[1] == [] and store.read_bytes() == line

    bare = {"arm": tiny(normalizer={"name": kind.name})}
    assert study.recorded(bare, [0], store).empty
    assert len(run(store, bare, [0])[1]) == 1
    assert [made.config["normalizer"][option] for made in study.read(store).records] == [old, value]


def test_a_changed_default_does_not_reach_the_archive(monkeypatch):
    part = study.part("cartpole_ppo", seeds=1)
    assert len(study.recorded(part.configs, part.seeds, project.ARCHIVE / part.file)) == 10
    new_default(monkeypatch, Ema, "decay", 0.5)
    part = study.part("cartpole_ppo", seeds=1)
    found = study.recorded(part.configs, part.seeds, project.ARCHIVE / part.file)
    assert set(part.configs) - set(found.arm) == {"ema"}  # which leaves its decay to the default


# The archive


@pytest.mark.parametrize("path", sorted(project.ARCHIVE.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_record_of_the_archive_is_complete(path):
    contents = study.read(path)
    assert contents[1:] == (0, 0, 0, {}) and contents.records
    for made in contents.records:
        options = made.config["normalizer"]
        assert set(options) == {"name", *normalizers.option_names(options["name"])}
    for made in contents.records[::25]:
        assert key(RunConfig(**made.config), made.seed) == made.key


# The frame

NEVER = {"evaluation": None, "training": None}
SEEN = {  # (evaluation, arrived, training, arrived)
    "arrived": (record(5, "40"), (40, True, 40, False)),  # training was watched only until the run stopped
    "arrived by training": (record(5, "40", solved_at={"evaluation": None, "training": 40}), (40, False, 40, True)),
    "arrived by both": (record(5, "40", solved_at={"evaluation": 31, "training": 40}), (31, True, 40, True)),
    "censored": (record(5, "100+"), (100, False, 100, False)),
    "censored in one": (record(5, "100+", solved_at={"evaluation": 60, "training": None}), (60, True, 100, False)),
    "diverged": (record(5, "7x"), (100, False, 100, False)),
    "diverged after one": (record(5, "70x", solved_at={"evaluation": 60, "training": None}), (60, True, 100, False)),
}


@pytest.mark.parametrize("name", SEEN)
def test_the_frame_has_censored_times_for_both_criteria(name):
    made, expected = SEEN[name]
    row = study.frame({"arm": [made]}).iloc[0]
    assert (row.evaluation, row.evaluation_arrived, row.training, row.training_arrived) == expected
    assert (row.arm, row.seed, row.cap, row.status, row.episodes) == ("arm", 5, 100, name.split()[0], made.episodes)
    assert row.train_returns is made.train_returns and row.eval_returns is made.eval_returns
    assert (row.steps, row.seconds) == (1, 0.1)


def test_the_frame_has_one_row_a_run_and_plain_columns():
    frame = study.frame({(0.1, 1.0): [record(1, "9"), record(2, "9")], (0.2, 1.0): [SEEN["diverged"][0]]})
    assert list(frame.arm) == [(0.1, 1.0), (0.1, 1.0), (0.2, 1.0)] and list(frame.seed) == [1, 2, 5]
    assert list(frame.evaluation_arrived) == [True, True, False] and frame.evaluation_arrived.dtype == bool
    assert frame.evaluation.dtype.kind == frame.training.dtype.kind == "i"
    assert (
        list(study.frame({}).columns)
        == list(frame.columns)
        == [
            "arm",
            "learner",
            "env",
            "normalizer",
            "rate",
            "z_scored",
            "doors",
            "condition",
            "seed",
            "status",
            "episodes",
            "cap",
            "every",
            "evaluation",
            "evaluation_arrived",
            "training",
            "training_arrived",
            "train_returns",
            "eval_returns",
            "steps",
            "seconds",
        ]
    )


WHAT = ["learner", "env", "normalizer", "rate", "z_scored", "doors", "condition"]


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({}, {}),
        ({"learning_rate": 0.5, "normalize_advantages": True}, {"rate": 0.5, "z_scored": True}),
        ({"normalizer": {"name": "none"}}, {"normalizer": "none", "doors": "none"}),
        ({"signal": "advantages"}, {"doors": "advantages"}),
        ({"advantage_normalizer": {"name": "episode"}}, {"doors": "both"}),
        (
            {"normalizer": {"name": "none"}, "advantage_normalizer": {"name": "episode"}},
            {"normalizer": "episode", "doors": "advantages"},
        ),
        (
            {"normalizer": {"name": "none"}, "value_scale": {"name": "popart"}},
            {"normalizer": "popart", "doors": "critic"},
        ),
        ({"reward_normalizer": {"name": "reward_scale"}}, {"doors": "rewards and returns"}),
        ({"disturbance": {"name": "swap", "after": 3}}, {"condition": "swap"}),
        ({"reward_scale": 10.0}, {"condition": "scale"}),
    ],
)
def test_the_frame_says_what_a_run_is(changes, changed):
    config = (
        tiny(algorithm="gae", normalizer={"name": "running"}) if "normalizer" not in changes else tiny(algorithm="gae")
    )
    config = dataclasses.replace(config, **changes)
    row = study.frame({"mine": [record(0, "9", config=config.to_dict())]}).iloc[0]
    usual = dict(zip(WHAT, ("gae", "CartPole-v1", "running", 0.01, False, "returns", "clean"), strict=True))
    assert row[WHAT].to_dict() == usual | changed


def test_what_a_record_of_old_does_not_say_is_as_it_was():
    old = {name: value for name, value in tiny().to_dict().items() if name not in records.LATER}
    row = study.frame({"mine": [record(0, "9", config=old)]}).iloc[0]
    assert (row.doors, row.condition) == ("returns", "clean")


def test_the_plan_says_more_of_an_arm():
    part = study.part("disturbed_reinforce_noise", seeds=1)
    runs = study.recorded(part.configs, part.seeds, project.ARCHIVE / part.file, columns=part.columns)
    assert set(runs.condition) == {f"noise {deviation:g}" for deviation in (0.1, 0.3, 1, 3, 10)}
    assert set(runs.normalizer) == {*study.part("short_bandit_reinforce").configs}
    assert (runs.arm == runs.normalizer + ", " + runs.condition).all()
    assert study.runs(part)[WHAT].equals(runs[WHAT])


def test_the_frame_of_real_runs_agrees_with_their_records(store):
    configs = {
        criterion: tiny(threshold=20.0, window=2, max_episodes=5, criterion=criterion)
        for criterion in ("evaluation", "training", "both")
    }
    frame, _ = run(store, configs, range(4))
    by_key = {made.key: made for made in study.read(store).records}
    for row in frame.itertuples():
        made = by_key[key(configs[row.arm], row.seed)]
        assert list(row.train_returns) == list(made.train_returns) and list(row.eval_returns) == list(made.eval_returns)
        for criterion in ("evaluation", "training"):
            at = made.solved_at[criterion]
            expected = (row.episodes, False) if at is None else (at, True)
            assert (getattr(row, criterion), getattr(row, f"{criterion}_arrived")) == expected
    assert set(frame.evaluation_arrived) == set(frame.training_arrived) == {True, False}


# The first records

FIRST = {  # the defaults with which the first runs were recorded; they never change again
    "none": {},
    "zscore": {"eps": 1e-8},
    "running": {"eps": 1e-8},
    "ema": {"eps": 1e-8, "decay": 0.99},
    "kscore": {
        "variant": "simple",
        "mode": "stream",
        "scale": "belief",
        "Q": 1e-4,
        "R": 1e-2,
        "alpha": 0.9,
        "R_timing": "after",
        "x0": 0.0,
        "P0": 1.0,
        "eps": 1e-8,
    },
}


def test_the_archive_was_completed_with_the_defaults_of_that_time():
    found = {}
    for made in study.read(project.ARCHIVE / "cartpole_ppo.jsonl").records:
        options = dict(made.config["normalizer"])
        for chosen in ("variant", "mode", "Q", "R"):  # by the plan, for every arm
            options.pop(chosen, None)
        found.setdefault(options.pop("name"), []).append(options)
    assert set(found) == set(FIRST)
    for name, several in found.items():
        expected = {
            option: value for option, value in FIRST[name].items() if option not in ("variant", "mode", "Q", "R")
        }
        assert all(options == expected for options in several)


# What a record says of itself


def nested(deep):
    value = 1
    for _ in range(deep):
        value = [value]
    return value


def put(record, at, value):
    if not at:
        return value
    return record | {at[0]: put(record[at[0]], at[1:], value)}


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (["config", "normalizer", "name"], [":"]),
        (["config", "normalizer", "name"], {":": 1}),
        (["config", "normalizer"], {"name": "none", "deep": nested(300)}),
        (["config", "hidden"], nested(300)),
        (["config", "evaluate_every"], 0),
        (["config", "evaluate_every"], "5"),
        (["config", "max_episodes"], 1),
        (["episodes"], 999_999),
        (["episodes"], 2),
        (["train_returns"], [1.0]),
        (["steps"], 777),
        (["train_steps"], 0),
        (["solved"], True),
        (["status"], "solved"),
        (["solved_at", "training"], 4),
        (["solved_at"], []),
        (["seed"], [1]),
    ],
)
def test_a_record_that_cannot_be_true_is_passed_over_and_hides_no_other(tmp_path, at, value):
    good = [json.loads(line) for line in small_runs.lines()]
    lines = [json.dumps(record) for record in (good[0], put(good[1], at, value), *good[2:])]
    (tmp_path / "runs.jsonl").write_text("\n".join(lines))
    contents = study.read(tmp_path / "runs.jsonl")
    assert contents.damaged == 1 and len(contents.records) == len(good) - 1
    with pytest.warns(UserWarning, match="1 damaged lines were passed over"):
        assert len(study.store.held(tmp_path / "runs.jsonl")) == len(good) - 1


ODD = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers(), max_size=3)
)


@examples()
@given(st.data())
def test_a_line_is_a_record_that_can_be_used_or_is_passed_over(data):
    line = json.loads(small_runs.lines()[0])
    at, inside = [], line
    while isinstance(inside, dict) and inside:
        at.append(data.draw(st.sampled_from(sorted(inside))))
        inside = inside[at[-1]]
        if data.draw(st.booleans()):
            break
    text = json.dumps(put(line, at, data.draw(ODD)))
    text = text[: data.draw(st.integers(0, len(text)))] if data.draw(st.booleans()) else text
    try:
        made = Record.parse(text.encode())
    except Unusable as reason:
        assert reason.kind in ("damaged", "foreign", "incomplete", "unknown")
    else:
        row = records.frame({"arm": [made]}).iloc[0]
        assert made.key[1] == row.seed and len(row.train_returns) == row.episodes <= row.cap
