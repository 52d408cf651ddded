"""A recorded run: parsed once, into a type, and known by its settings and its seed.

A record holds every setting of its run, those of its normalizers and those at their defaults among them, so that a
later change of a default cannot change what it means. A setting that did not exist when it was written stands at the
value that does what was done then (`LATER`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

import numpy as np
import orjson
import pandas as pd

from kscore import checks, normalizers, provenance
from kscore.rl.config import PRESETS, PROTOCOL_VERSION, RunConfig

Key = tuple[bytes, int]
CRITERIA = ("evaluation", "training")  # which returns have to reach the threshold

LATER = {
    "advantage_normalizer": None,
    "value_scale": None,
    "head": None,
    "episodes_per_update": 1,
    "reward_normalizer": None,
    "reward_scale": 1.0,
    "stop": True,
    "disturbance": None,
}
"""Settings that came after the first recorded runs, with the value that leaves everything as it was."""

LATER_OPTIONS: dict[str, dict[str, object]] = {}
"""The same for options of normalizers, by the normalizer's name."""

DOORS = {
    "reward_normalizer": "rewards",
    "normalizer": "returns",
    "advantage_normalizer": "advantages",
    "value_scale": "critic",
}
"""The settings that are normalizers, and the doors that they stand at."""


class Unusable(ValueError):
    """A line of a store that is no record of this study; `kind` says of which sort, `what` names it."""

    def __init__(self, kind: str, what: str = "") -> None:
        super().__init__(f"{kind} {what}".strip())
        self.kind, self.what = kind, what


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """One run as it was recorded; data/README.md explains the fields."""

    protocol: int
    config: dict
    seed: int
    status: str
    reason: str | None
    solved: bool
    episodes: int
    train_returns: np.ndarray
    eval_returns: np.ndarray
    train_steps: int
    eval_steps: int
    solved_at: dict[str, int | None]
    steps: int
    seconds: float
    versions: dict[str, str]
    machine: str
    cpu_seconds: float | None = None  # older records do not say it

    @classmethod
    def parse(cls, line: bytes) -> "Record":
        """Read a line of a store; raise `Unusable` if it is damaged, foreign, incomplete or of something unknown."""
        try:
            record = orjson.loads(line)
            if checks.whole("protocol", record["protocol"], low=0) != PROTOCOL_VERSION:
                raise Unusable("foreign", str(record["protocol"]))
            return cls.of(record)
        except Unusable:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Unusable("damaged") from None

    @classmethod
    def of(cls, record: dict) -> "Record":
        """Return what `train` returned, or a line said, as a record."""
        values = {name: record[name] for name in FIELDS if name != "cpu_seconds"}
        values |= {"cpu_seconds": record.get("cpu_seconds")}
        values |= {name: _numbers(name, record[name]) for name in ("train_returns", "eval_returns")}
        for name in ("episodes", "train_steps", "eval_steps", "steps"):
            checks.whole(name, record[name], low=0)
        checks.seed("seed", record["seed"])
        checks.number("seconds", record["seconds"], low=0)
        if values["cpu_seconds"] is not None:
            checks.number("cpu_seconds", values["cpu_seconds"], low=0)
        checks.flag("solved", record["solved"])
        checks.choice("status", record["status"], STATUSES)
        for criterion in CRITERIA:
            if record["solved_at"][criterion] is not None:
                checks.whole("solved_at", record["solved_at"][criterion], high=record["episodes"])
        _check_settings(record["config"])
        _check_agreement(record)
        made = cls(**values)
        _ = made.key, described(made.config)  # what cannot have them is no record
        return made

    @property
    def key(self) -> Key:
        """What the run is known by."""
        return _settings_key(self.config), self.seed


FIELDS = tuple(f.name for f in fields(Record))
STATUSES = {"solved": "arrived", "censored": "censored", "diverged": "diverged", "failed": "failed"}
"""The statuses of a record, in the words of the analysis."""


def failed(config: RunConfig, seed: int, reason: str, seconds: float, cpu_seconds: float) -> dict:
    """Return the record of a run that could not be trained, because its environment raised, for one."""
    nothing = {
        "solved": False,
        "episodes": 0,
        "train_returns": [],
        "eval_returns": [],
        "train_steps": 0,
        "eval_steps": 0,
        "solved_at": dict.fromkeys(CRITERIA),
        "steps": 0,
    }
    legible = reason.encode(errors="backslashreplace").decode()  # half a surrogate pair would make the record damaged
    return {
        "protocol": PROTOCOL_VERSION,
        "config": config.to_dict(),
        "seed": seed,
        "status": "failed",
        "reason": legible,
        **nothing,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "versions": provenance.versions(),
        "machine": provenance.machine(),
    }


FIRST_SETTINGS = {f.name for f in fields(RunConfig)} - set(LATER)


def _numbers(name: str, values: list) -> np.ndarray:
    if not isinstance(values, list) or not set(map(type, values)) <= {int, float}:
        raise ValueError(f"{name} must be a list of numbers, got {values!r:.80}")
    return np.array(values, float)


def _check_settings(config: dict) -> None:
    """Refuse settings that are not all there, and those of a normalizer or an environment that is not known here."""
    if not FIRST_SETTINGS <= set(config):
        raise ValueError(f"config must hold every setting, got none of {sorted(FIRST_SETTINGS - set(config))}")
    for name in ("max_episodes", "evaluate_every"):
        checks.whole(name, config[name])
    checks.whole("episodes_per_update", config.get("episodes_per_update", LATER["episodes_per_update"]))
    for door in DOORS:
        if door == "normalizer" or config.get(door) is not None:
            _check_normalizer(config[door])
    if not _known_environment(config["env"]):
        raise Unusable("unknown", f"environment {config['env']!r}")


def _check_agreement(record: dict) -> None:
    """Refuse a record that says one thing in one place and another in another."""
    episodes, most = record["episodes"], record["config"]["max_episodes"]
    steps = record["train_steps"] + record["eval_steps"]
    if len(record["train_returns"]) != episodes or episodes > min(most, record["train_steps"]):
        raise ValueError(f"episodes must be as many as returns, and at most {most} and the steps, got {episodes}")
    if record["steps"] != steps:
        raise ValueError(f"steps must be {steps}, those of training and evaluation, got {record['steps']}")
    if record["solved"] != (record["status"] == "solved"):
        raise ValueError(f"solved must agree with the status {record['status']!r}, got {record['solved']}")


def _check_normalizer(options: dict) -> None:
    name = options["name"]
    if ":" in name:
        return  # one from outside is not imported to read a record
    if name not in normalizers.NORMALIZERS:
        raise Unusable("unknown", f"normalizer {name!r}")
    if not set(normalizers.option_names(name)) - set(LATER_OPTIONS.get(name, {})) <= set(options):
        raise Unusable("incomplete")


def _known_environment(env: str) -> bool:
    if env in PRESETS or ":" in env:
        return True
    import gymnasium  # here, because the environments of the presets need no look at its list

    return env in gymnasium.registry


def key(config: RunConfig, seed: int) -> Key:
    """Return what a run is known by: all of its settings, and its seed."""
    return settings_key(config), seed


def settings_key(config: RunConfig) -> bytes:
    """Return what the runs of a configuration have in common in what they are known by."""
    return _settings_key(config.to_dict())


def names_from_outside(config: RunConfig) -> bool:
    """Say whether a configuration names code of its own, by its place."""
    doors = (getattr(config, door) for door in DOORS)
    names = config.env, config.head, *(options["name"] for options in doors if options)
    return any(":" in name and not name.startswith("kscore.") for name in names if name)


def _settings_key(config: dict) -> bytes:
    settings = _without(config, LATER)
    for door in DOORS:
        if settings.get(door):
            settings[door] = _without(settings[door], LATER_OPTIONS.get(settings[door]["name"], {}))
    return orjson.dumps(settings, option=orjson.OPT_SORT_KEYS)


def _without(settings: dict, later: dict) -> dict:
    return {name: value for name, value in settings.items() if name not in later or value != later[name]}


# The frame

COLUMNS = (
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
)


def frame(
    records: Mapping[object, Iterable[Record]], columns: Mapping[object, Mapping[str, str]] | None = None
) -> pd.DataFrame:
    """Return one row for each run.

    Columns: `arm`; `learner`, `env`, `rate` (of learning), `z_scored` (whether advantages are, by the episode); what
    normalizes, `normalizer`, at which `doors`, and under which `condition`, the first and the last as `columns` has
    them, where the plan says more of an arm; `seed`, `status` ("arrived", "censored", "diverged"), `episodes`
    (trained), `cap`, `every` (training episodes between two evaluations); for each criterion the censored time, as the
    episode `evaluation` or `training` and whether it `evaluation_arrived` or `training_arrived`; `train_returns` and
    `eval_returns` as arrays; `steps`, `seconds`.
    """
    rows = [_row(arm, record) | (columns or {}).get(arm, {}) for arm, several in records.items() for record in several]
    return pd.DataFrame(rows, columns=COLUMNS)


def described(config: Mapping) -> dict[str, object]:
    """Return the columns that say what a configuration is."""
    config = LATER | config
    at = {door: config[door]["name"] for door in DOORS if config[door] and config[door]["name"] != "none"}
    doors = [config["signal"] if door == "normalizer" else DOORS[door] for door in at]
    changed = config["disturbance"] or {"name": "clean" if config["reward_scale"] == 1 else "scale"}
    return {
        "learner": config["algorithm"],
        "env": config["env"],
        "normalizer": at.get("normalizer") or next(iter(at.values()), "none"),
        "rate": config["learning_rate"],
        "z_scored": config["normalize_advantages"],
        "doors": "both" if doors == ["returns", "advantages"] else " and ".join(doors) or "none",
        "condition": changed["name"],
    }


def _row(arm: object, record: Record) -> dict:
    cap = record.config["max_episodes"]
    never = cap if record.status == "diverged" else record.episodes  # a diverged run will not arrive any more
    row = {
        name: getattr(record, name)
        for name in ("seed", "episodes", "steps", "seconds", "train_returns", "eval_returns")
    }
    for criterion in CRITERIA:
        at = record.solved_at[criterion]
        row |= {criterion: never if at is None else at, f"{criterion}_arrived": at is not None}
    every = record.config.get("episodes_per_update", LATER["episodes_per_update"]) * record.config["evaluate_every"]
    return {"arm": arm, "cap": cap, "every": every, "status": STATUSES[record.status]} | described(record.config) | row
