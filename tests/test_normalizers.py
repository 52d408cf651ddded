"""Every normalizer against closed forms, numpy, the filter it is built on, and its own promises."""

import json
import re
from math import sqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sizes import examples

from kscore.filters import Belief, adaptive_filter_series, filter_series, steady_state
from kscore.normalizers import NORMALIZERS, Normalizer, make, option_names, spelled_out

MODES = ("stream", "refit", "innovation")
CONFIGS = {
    "none": {"name": "none"},
    "zscore": {"name": "zscore"},
    "running": {"name": "running"},
    "ema": {"name": "ema", "decay": 0.9},
    **{f"simple-{mode}": {"name": "kscore", "variant": "simple", "mode": mode, "Q": 0.1, "R": 2.0} for mode in MODES},
    **{
        f"adaptive-{mode}-{timing}": {
            "name": "kscore",
            "variant": "adaptive",
            "mode": mode,
            "R_timing": timing,
            "Q": 0.1,
            "R": 2.0,
            "alpha": 0.8,
        }
        for mode in MODES
        for timing in ("after", "before")
    },
}
CARRIES_ON = [label for label in CONFIGS if label not in ("none", "zscore") and "refit" not in label]
KSCORES = [label for label, config in CONFIGS.items() if config["name"] == "kscore"]
HAS_STATE = ["running", "ema", *KSCORES]
NO_EPS = 1e-30

property_test = examples(40)
every_config = pytest.mark.parametrize("label", CONFIGS)
episodes = st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=20).map(np.array)


def built(label: str, **changes: object) -> Normalizer:
    return make(**{**CONFIGS[label], **changes})


def returns_of(steps: int, seed: int = 0) -> np.ndarray:
    """Returns that fall towards the end of the episode, as discounted returns do, with some noise."""
    return np.linspace(20.0, 1.0, steps) + np.random.default_rng(seed).normal(0.0, 2.0, steps)


EPISODES = [returns_of(steps, seed) for seed, steps in enumerate((7, 1, 12))]


def close(actual, expected, rtol: float = 1e-10, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def rejects(call, name: str, shown: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s)^{re.escape(name)} must .*got .*{re.escape(shown)}"):
        call()


def filtered(config: dict, returns: np.ndarray):
    if config["variant"] == "simple":
        return filter_series(returns, config["Q"], config["R"])
    return adaptive_filter_series(returns, config["Q"], config["R"], config["alpha"], R_timing=config["R_timing"])


# --- the promise: finite scores of the same length, whatever the episode -------------------------------------------


def learned(normalizer):
    """What a normalizer has learned, without what it was made with."""
    return {key: value for key, value in normalizer.state_dict().items() if key not in ("version", "options")}


def test_the_list_of_configurations_is_complete():
    elsewhere = {"episode", "popart", "percentile", "reward_scale", "symlog", "parts"}  # tested in files of their own
    assert {config["name"] for config in CONFIGS.values()} == set(NORMALIZERS) - elsewhere


@every_config
@property_test
@given(st.lists(episodes, min_size=1, max_size=3))
@example([np.zeros(1)])
@example([np.full(50, 0.1)])
@example([np.full(50, -1e100), np.full(2, 1e100)])
@example([np.array([1e60, -1e60]), np.array([1.0, 2.0])])
@example([np.array([5e-324, -5e-324, 0.0])])
@example([np.full(3, 1e-200), np.full(3, -1e-200)])
def test_scores_are_finite_and_as_many_as_the_returns(label, seen):
    normalizer = built(label)
    for returns in seen:
        scores = normalizer(returns)
        assert scores.shape == returns.shape
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("label", KSCORES)
@pytest.mark.parametrize("extreme", [{"Q": 0.0}, {"P0": 0.0}, {"Q": 0.0, "P0": 0.0}, {"R": 1e-12}, {"R": 1e12}])
def test_kscore_is_finite_at_the_edges_of_its_options(label, extreme):
    normalizer = built(label, **extreme)
    for returns in (*EPISODES, np.zeros(100)):
        assert np.isfinite(normalizer(returns)).all()


@pytest.mark.parametrize("label", [label for label in KSCORES if "adaptive" in label])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_adaptive_kscore_is_finite_at_the_edges_of_alpha(label, alpha):
    normalizer = built(label, alpha=alpha, Q=0.0)
    for returns in (*EPISODES, np.zeros(100)):
        assert np.isfinite(normalizer(returns)).all()


@every_config
def test_scores_differ_from_the_returns_unless_there_is_no_normalizer(label):
    scores = built(label)(EPISODES[0])
    assert np.array_equal(scores, EPISODES[0]) == (label == "none")


# --- closed forms --------------------------------------------------------------------------------------------------

UNIT = {"Q": 0.0, "R": 1.0, "x0": 0.0, "P0": 1.0}
# simple: K = 1/2 then 1/3, so x = 1, 2 and P = 1/2, 1/3
# adaptive, after, alpha = 1/2: K = 1/2 then (1/2) / (1/2 + 5/2) = 1/6, so x = 1, 3/2 and P = 1/2, 5/12
# adaptive, before, alpha = 0: R = 4, 4, so K = 1/5, 1/6, x = 2/5, 11/15 and P = 4/5, 2/3
AFTER = {"variant": "adaptive", "alpha": 0.5, **UNIT}
BEFORE = {"variant": "adaptive", "alpha": 0.0, "R_timing": "before", **UNIT}
BY_HAND = [
    ("none", {}, [2, 4], [2, 4]),
    ("zscore", {}, [1, 2, 3], [-sqrt(3 / 2), 0, sqrt(3 / 2)]),
    ("zscore", {}, [5], [0]),
    ("running", {}, [1, 3, 5], [0, 1, 2 / sqrt(8 / 3)]),
    ("ema", {"decay": 0.5}, [0, 3], [0, 1 / sqrt(2)]),  # weights 1/3 and 2/3: mean 2, variance 2
    ("ema", {"decay": 0.0}, [7, 9], [0, 0]),  # only the newest return counts
    ("kscore", {"mode": "stream", **UNIT}, [2, 4], [sqrt(2), 2 * sqrt(3)]),
    ("kscore", {"mode": "refit", **UNIT}, [2, 4], [0, 2 * sqrt(3)]),
    ("kscore", {"mode": "innovation", **UNIT}, [2, 4], [sqrt(2), sqrt(6)]),
    ("kscore", {"mode": "stream", **AFTER}, [2, 4], [sqrt(2), sqrt(15)]),
    ("kscore", {"mode": "refit", **AFTER}, [2, 4], [sqrt(0.6), sqrt(15)]),
    ("kscore", {"mode": "innovation", **AFTER}, [2, 4], [sqrt(2), sqrt(3)]),
    ("kscore", {"mode": "stream", **BEFORE}, [2, 2.4], [sqrt(3.2), sqrt(25 / 6)]),
    ("kscore", {"mode": "refit", **BEFORE}, [2, 2.4], [19 / 15 * sqrt(1.5), sqrt(25 / 6)]),
    ("kscore", {"mode": "innovation", **BEFORE}, [2, 2.4], [2 / sqrt(5), 2 / sqrt(4.8)]),
]


@pytest.mark.parametrize(("name", "options", "returns", "scores"), BY_HAND)
def test_scores_worked_out_by_hand(name, options, returns, scores):
    eps = {} if name == "none" else {"eps": NO_EPS}
    close(make(name, **options, **eps)(returns), scores, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "options", "returns", "scores"),
    [
        ("zscore", {}, [1, 3], [-1 / 4, 1 / 4]),  # P5 adds eps = 3 to the deviation
        ("running", {}, [1, 3], [0, 1 / 4]),
        ("ema", {"decay": 0.5}, [0, 3], [0, 1 / (sqrt(2) + 3)]),
        ("kscore", {"mode": "stream", **UNIT}, [2], [1 / sqrt(0.5 + 3)]),  # P4 adds it to the variance
        ("kscore", {"mode": "refit", **UNIT}, [2], [1 / sqrt(0.5 + 3)]),
        ("kscore", {"mode": "innovation", **UNIT}, [2], [2 / sqrt(1 + 1 + 3)]),
    ],
)
def test_eps_stands_where_the_equations_put_it(name, options, returns, scores):
    close(make(name, **options, eps=3.0)(returns), scores, rtol=1e-14)


def test_kscore_starts_from_its_own_belief():
    scores = make("kscore", mode="innovation", Q=0.0, R=1.0, x0=10.0, P0=3.0)([12.0])
    close(scores, [2 / sqrt(3 + 1)], rtol=1e-8)


def test_the_released_settings_are_the_defaults():
    close(make("kscore")(EPISODES[0]), make("kscore", variant="simple", mode="stream", Q=1e-4, R=1e-2)(EPISODES[0]))
    released = make("kscore", variant="adaptive", alpha=0.9, R_timing="after")
    close(make("kscore", variant="adaptive")(EPISODES[0]), released(EPISODES[0]))


# --- running and moving statistics (P5) ----------------------------------------------------------------------------


def weighted_scores(returns: np.ndarray, weights_of, eps: float = 1e-8) -> np.ndarray:
    """Score each return by the weighted mean and deviation of all returns up to it."""
    scores = []
    for n in range(1, len(returns) + 1):
        seen, weights = returns[:n], weights_of(n)
        mean = np.average(seen, weights=weights)
        scores.append((seen[-1] - mean) / (np.sqrt(np.average((seen - mean) ** 2, weights=weights)) + eps))
    return np.array(scores)


def test_running_is_numpy_over_everything_seen():
    running, seen = make("running"), []
    for returns in EPISODES:
        for G, score in zip(returns, running(returns), strict=True):
            seen.append(G)
            close(score, (G - np.mean(seen)) / (np.std(seen) + 1e-8), atol=1e-6)
    assert learned(running) == pytest.approx({"count": len(seen), "mean": np.mean(seen), "var": np.var(seen)})


@pytest.mark.parametrize("decay", [0.1, 0.9, 0.999])
def test_ema_is_the_explicitly_weighted_mean_and_deviation(decay):
    ema = make("ema", decay=decay)
    scores = np.concatenate([ema(returns) for returns in EPISODES])
    close(scores, weighted_scores(np.concatenate(EPISODES), lambda n: decay ** np.arange(n)[::-1]), atol=1e-6)


def test_running_is_the_limit_of_ema():
    returns = np.concatenate(EPISODES)
    running = make("running")(returns)
    errors = [np.abs(make("ema", decay=1 - distance)(returns) - running).max() for distance in (1e-2, 1e-4, 1e-6)]
    assert errors[0] > 1e-3
    close(errors[1:], np.multiply(errors[:-1], 1e-2), rtol=0.1)  # a hundred times nearer each time


# --- modes of the K-Score ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", CARRIES_ON)
def test_the_state_is_carried_on_from_episode_to_episode(label):
    normalizer, whole = built(label), built(label)
    close(np.concatenate([normalizer(returns) for returns in EPISODES]), whole(np.concatenate(EPISODES)))
    assert learned(normalizer) == pytest.approx(learned(whole), rel=1e-12)


@pytest.mark.parametrize("label", [label for label in KSCORES if "stream" in label])
def test_stream_scores_by_the_belief_that_has_seen_the_return(label):  # P4, P9
    normalizer, belief = built(label), filtered(CONFIGS[label], np.concatenate(EPISODES))
    scores = np.concatenate([normalizer(returns) for returns in EPISODES])
    close(scores, (np.concatenate(EPISODES) - belief.mean) / np.sqrt(belief.var + 1e-8))


@pytest.mark.parametrize("label", [label for label in KSCORES if "innovation" in label])
def test_innovation_scores_by_the_prediction_before_the_return(label):  # D2
    normalizer, belief = built(label), filtered(CONFIGS[label], np.concatenate(EPISODES))
    scores = np.concatenate([normalizer(returns) for returns in EPISODES])
    expected = (np.concatenate(EPISODES) - belief.prior_mean) / np.sqrt(belief.prior_var + belief.noise + 1e-8)
    close(scores, expected)


REFITS = [label for label in KSCORES if "refit" in label]


@pytest.mark.parametrize("label", REFITS)
def test_refit_scores_all_returns_by_the_final_belief(label):  # R1
    for returns in EPISODES:
        final = filtered(CONFIGS[label], returns).last
        close(built(label)(returns), (returns - final.mean) / np.sqrt(final.var + 1e-8))


@pytest.mark.parametrize("label", REFITS)
def test_refit_is_one_affine_map_of_the_episode(label):
    returns = EPISODES[0]
    slope, offset = np.polyfit(returns, scores := built(label)(returns), 1)
    assert slope > 0
    close(scores, slope * returns + offset)


@pytest.mark.parametrize("label", [*REFITS, "zscore", "none"])
def test_what_does_not_carry_on_forgets_other_episodes(label):
    normalizer = built(label)
    normalizer(1000 + EPISODES[0])
    np.testing.assert_array_equal(normalizer(EPISODES[2]), built(label)(EPISODES[2]))


def centres(label: str) -> list[np.ndarray]:
    """What the returns of each episode are held against, from the filter alone."""
    if "refit" in label:
        return [np.full(len(returns), filtered(CONFIGS[label], returns).mean[-1]) for returns in EPISODES]
    belief = filtered(CONFIGS[label], np.concatenate(EPISODES))
    ends = np.cumsum([len(returns) for returns in EPISODES])[:-1]
    return np.split(belief.prior_mean if "innovation" in label else belief.mean, ends)


@pytest.mark.parametrize("label", KSCORES)
def test_the_scale_can_be_the_deviation_of_the_episodes_returns(label):  # R4
    mixed, plain = built(label, scale="returns"), built(label)
    for returns, centre in zip(EPISODES, centres(label), strict=True):
        scores, own = mixed(returns), plain(returns)
        close(scores, (returns - centre) / (returns.std() + 1e-8))
        assert len(returns) == 1 or not np.allclose(scores, own)
        assert learned(mixed) == learned(plain)
    mixed.frozen = True
    close(mixed(EPISODES[0]), (EPISODES[0] - mixed.x) / (EPISODES[0].std() + 1e-8))


def test_order_matters_to_the_kscore_and_not_to_the_zscore():  # D4
    returns = EPISODES[0]
    backwards = {name: make(name)(returns[::-1])[::-1] for name in ("kscore", "zscore")}
    close(backwards["zscore"], make("zscore")(returns))
    assert np.abs(backwards["kscore"] - make("kscore")(returns)).max() > 1


def simulated(Q: float, R: float, steps: int) -> np.ndarray:
    """Observations drawn from the model itself (P1), with x_0 = 0 and P_0 at the steady state."""
    rng = np.random.default_rng(20)
    x = rng.normal(0, sqrt(steady_state(Q, R).var)) + np.cumsum(rng.normal(0, sqrt(Q), steps))
    return x + rng.normal(0, sqrt(R), steps)


@pytest.mark.parametrize(("Q", "R"), [(1e-4, 1.0), (0.1, 1.0), (4.0, 0.5)])
def test_on_its_own_model_innovation_is_white_with_unit_variance_and_the_kscore_is_not(Q, R):  # D2
    steps, steady = 40_000, steady_state(Q, R)
    G, options = simulated(Q, R, steps), {"Q": Q, "R": R, "P0": steady.var, "eps": NO_EPS}
    innovation = make("kscore", mode="innovation", **options)(G)
    score = make("kscore", mode="stream", **options)(G)
    factor = sqrt((1 - steady.gain) / steady.gain)

    sampling_error = 4 / sqrt(steps)
    assert abs(innovation.mean()) < sampling_error
    assert abs(innovation.var() - 1) < sqrt(2) * sampling_error
    for lag in (1, 2, 3, 10):
        assert abs(np.mean(innovation[lag:] * innovation[:-lag])) < sampling_error
    close(score, factor * innovation, rtol=1e-9)
    assert score.std() == pytest.approx(factor, rel=sampling_error)


def test_the_kscore_is_ten_times_a_zscore_at_small_Q():  # D2: Q = 1e-4, R = 1
    G = simulated(1e-4, 1.0, 40_000)
    score = make("kscore", Q=1e-4, R=1.0, P0=steady_state(1e-4, 1.0).var)(G)
    assert score.std() == pytest.approx(10, rel=0.03)


# --- properties ----------------------------------------------------------------------------------------------------

moderate = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20).map(np.array).filter(lambda a: a.std() > 1e-3)


@property_test
@given(moderate, st.floats(1e-2, 1e2), st.floats(-1e3, 1e3))
def test_zscore_does_not_see_a_shift_or_a_positive_scale(returns, scale, shift):
    zscore = make("zscore", eps=NO_EPS)
    close(zscore(scale * returns + shift), zscore(returns), rtol=1e-6, atol=1e-6)


@property_test
@given(moderate)
def test_zscore_has_mean_zero_and_deviation_one(returns):
    scores = make("zscore", eps=NO_EPS)(returns)
    close(scores.mean(), 0, atol=1e-9)
    close(scores.std(), 1, rtol=1e-9)


@property_test
@given(moderate, st.integers(-10, 10).map(lambda k: 2.0**k), st.floats(-1e3, 1e3))
@pytest.mark.parametrize("label", KSCORES)
def test_kscore_does_not_see_a_change_of_units(label, returns, scale, shift):
    units = {"Q": scale**2 * 0.1, "R": scale**2 * 2.0, "P0": scale**2, "x0": shift, "eps": NO_EPS}
    plain = built(label, eps=NO_EPS)(returns)
    close(built(label, **units)(scale * returns + shift), plain, rtol=1e-5, atol=1e-5)


# --- what was learned: saved, loaded, held still -------------------------------------------------------------------


@every_config
def test_saving_and_loading_through_json_goes_on_as_if_uninterrupted(label):
    uninterrupted, restored = built(label), built(label)
    uninterrupted(EPISODES[0])
    restored.load_state_dict(json.loads(json.dumps(uninterrupted.state_dict())))
    for returns in EPISODES[1:]:
        np.testing.assert_array_equal(restored(returns), uninterrupted(returns))
    assert restored.state_dict() == uninterrupted.state_dict()


@every_config
@pytest.mark.parametrize("size", [1.0, -1.0, 1e90])
def test_a_state_is_plain_numbers_that_can_be_loaded_again(label, size):
    normalizer, other = built(label), built(label)
    for returns in ([0.0], size * EPISODES[0]):
        state = normalizer.state_dict()
        assert all(type(value) in (int, float) for value in learned(normalizer).values())
        other.load_state_dict(state)
        assert other.state_dict() == state
        normalizer(returns)
    other.load_state_dict(normalizer.state_dict())
    assert other.state_dict() == normalizer.state_dict()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", [np.float32, np.float64, np.int64])
def test_a_state_is_plain_numbers_even_if_the_options_came_from_numpy(number):
    made = make("kscore", Q=number(1), R=number(2), x0=number(3), P0=number(4))
    assert json.loads(json.dumps(learned(made))) == {"x": 3, "P": 4, "noise": 2}
    assert json.loads(json.dumps(made.state_dict()))["options"] == made.options


def test_only_what_learns_has_a_state():
    assert {label for label in CONFIGS if learned(built(label))} == set(HAS_STATE)


def test_a_state_dict_is_a_copy():
    normalizer = built("running")
    state = normalizer.state_dict()
    state["mean"] = 99.0
    assert normalizer.state_dict()["mean"] == 0.0


NAN = float("nan")
BAD_STATES = {
    "running": [{"mean": NAN}, {"var": -1.0}, {"count": -2}, {"count": "3"}, {"var": True}, {"mean": None}],
    "ema": [{"mean": float("inf")}, {"var": -1e-9}, {"count": -1}],
    "simple-stream": [{"x": NAN}, {"P": -1e-9}, {"noise": -3.0}],
    "adaptive-refit-after": [{"x": float("-inf")}, {"P": NAN}, {"noise": NAN}],
    "adaptive-stream-before": [{"noise": 0.0}, {"P": -0.5}, {"x": "zero"}],
}


@pytest.mark.parametrize(("label", "change"), [(label, bad) for label in BAD_STATES for bad in BAD_STATES[label]])
def test_a_bad_state_is_named_and_changes_nothing(label, change):
    normalizer = built(label)
    normalizer(EPISODES[0])
    before = normalizer.state_dict()
    ((key, value),) = change.items()
    better = before | {name: number + 1 for name, number in learned(normalizer).items()}
    rejects(lambda: normalizer.load_state_dict({**better, **change}), f"state[{key!r}]", str(value))
    assert normalizer.state_dict() == before


@every_config
def test_a_state_with_other_keys_is_named_and_changes_nothing(label):
    normalizer = built(label)
    normalizer(EPISODES[0])
    before = normalizer.state_dict()
    name = f"state of {CONFIGS[label]['name']}"
    rejects(lambda: normalizer.load_state_dict({**before, "sigma": 1.0}), name, "'sigma'")
    if learned(normalizer):
        rejects(lambda: normalizer.load_state_dict({}), name, "[]")
    assert normalizer.state_dict() == before


@every_config
def test_frozen_learns_nothing(label):
    normalizer = built(label)
    normalizer(EPISODES[0])
    normalizer.frozen = True
    before = normalizer.state_dict()
    once, again = normalizer(EPISODES[2]), normalizer(EPISODES[2])
    np.testing.assert_array_equal(once, again)
    assert normalizer.state_dict() == before
    normalizer.frozen = False
    thawed, never_frozen = normalizer(EPISODES[1]), built(label)
    never_frozen(EPISODES[0])
    np.testing.assert_array_equal(thawed, never_frozen(EPISODES[1]))


@pytest.mark.parametrize("label", HAS_STATE)
def test_frozen_scores_each_return_by_what_was_known_whatever_stands_beside_it(label):
    normalizer = built(label)
    normalizer(EPISODES[0])
    normalizer.frozen = True
    state = normalizer.state_dict()
    if label in ("running", "ema"):
        centre, scale = state["mean"], sqrt(state["var"]) + 1e-8
    else:
        to_come = 0.1 + state["noise"] if "innovation" in label else 0.0  # the prediction's P + Q, and R
        centre, scale = state["x"], sqrt(state["P"] + to_come + 1e-8)
    close(normalizer(EPISODES[2]), (EPISODES[2] - centre) / scale)
    close([normalizer([G])[0] for G in EPISODES[2]], normalizer(EPISODES[2]))


@every_config
def test_frozen_before_the_first_episode_is_finite(label):
    normalizer = built(label)
    normalizer.frozen = True
    assert np.isfinite(normalizer(EPISODES[0])).all()


# --- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "nearest"), [("kscor", "kscore"), ("z-score", "zscore"), ("EMA", None), (3, None)])
def test_an_unknown_name_is_answered_with_the_nearest(word, nearest):
    hint = f"{word!r} (did you mean {nearest!r}?)" if nearest else repr(word)
    rejects(lambda: make(word), "normalizer", hint)


@pytest.mark.parametrize(
    ("name", "option", "nearest"),
    [("kscore", "alhpa", "alpha"), ("kscore", "timing", "R_timing"), ("ema", "dcay", "decay"), ("zscore", "ep", "eps")],
)
def test_an_unknown_option_is_answered_with_the_nearest(name, option, nearest):
    hint = f"{option!r} (did you mean {nearest!r}?)"
    rejects(lambda: make(name, **{option: 1.0}), f"option of normalizer {name!r}", hint)


@pytest.mark.parametrize(("name", "option"), [("none", "eps"), ("zscore", "decay"), ("running", "decay"), ("ema", "Q")])
def test_an_option_of_another_normalizer_is_refused(name, option):
    with pytest.raises(ValueError, match=rf"normalizer '{name}' .*got '{option}'"):
        make(name, **{option: 0.5})


@pytest.mark.parametrize("hidden", ["frozen", "x", "P", "noise"])
def test_state_is_not_an_option(hidden):
    rejects(lambda: make("kscore", **{hidden: 1.0}), "option of normalizer 'kscore'", repr(hidden))


BAD_OPTIONS = {
    "Q": [-1e-9],
    "R": [0, -1.0],
    "alpha": [-0.1, 1.1],
    "P0": [-1.0],
    "x0": [],
    "eps": [0, -1e-8],
    "variant": ["simpel"],
    "mode": ["streem", None],
    "scale": ["return", None],
    "R_timing": ["now"],
}
NOT_A_NUMBER = [NAN, float("inf"), "0.5", True, None]
WORDS = ("variant", "mode", "scale", "R_timing")


@pytest.mark.parametrize(
    ("option", "value"),
    [(o, v) for o, bad in BAD_OPTIONS.items() for v in bad + ([] if o in WORDS else NOT_A_NUMBER)],
)
def test_bad_options_of_the_kscore_are_named_with_their_value(option, value):
    rejects(lambda: make("kscore", **{option: value}), option, str(value))


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, *NOT_A_NUMBER])
def test_a_bad_decay_is_named_with_its_value(value):
    rejects(lambda: make("ema", decay=value), "decay", str(value))


@pytest.mark.parametrize("name", ["zscore", "running", "ema"])
@pytest.mark.parametrize("value", [0, -1.0, *NOT_A_NUMBER])
def test_a_bad_eps_is_named_with_its_value(name, value):
    rejects(lambda: make(name, eps=value), "eps", str(value))


@every_config
@pytest.mark.parametrize(
    ("returns", "shown"),
    [
        ([], "(0,)"),
        ([1.0, NAN], "nan at index 1"),
        ([-np.inf], "-inf at index 0"),
        ([[1.0, 2.0]], "(1, 2)"),
        (3.0, "()"),
        (["a"], "a"),
        ([1e101], "1e+101 at index 0"),
    ],
    ids=str,
)
def test_a_bad_episode_is_named_with_its_value_and_teaches_nothing(label, returns, shown):
    normalizer = built(label)
    before = normalizer.state_dict()
    rejects(lambda: normalizer(returns), "returns", shown)
    assert normalizer.state_dict() == before


# --- settings ------------------------------------------------------------------------------------------------------


def test_a_normalizer_spelled_out_has_every_option_and_makes_the_same():
    assert spelled_out("none") == {"name": "none"}
    assert spelled_out("running") == {"name": "running", "eps": 1e-8}
    assert spelled_out("ema", decay=np.float32(0.5)) == {"name": "ema", "eps": 1e-8, "decay": 0.5}
    assert spelled_out("kscore", mode="refit", Q=1) == {
        "name": "kscore",
        "variant": "simple",
        "mode": "refit",
        "scale": "belief",
        "Q": 1.0,
        "R": 1e-2,
        "alpha": 0.9,
        "R_timing": "after",
        "x0": 0.0,
        "P0": 1.0,
        "eps": 1e-8,
    }


@every_config
def test_spelling_out_twice_changes_nothing(label):
    once = spelled_out(**CONFIGS[label])
    assert spelled_out(**once) == once == json.loads(json.dumps(once))
    assert list(once) == ["name", *option_names(CONFIGS[label]["name"])]
    np.testing.assert_array_equal(make(**once)(EPISODES[0]), built(label)(EPISODES[0]))


# --- manners -------------------------------------------------------------------------------------------------------


@every_config
@pytest.mark.parametrize("frozen", [False, True])
def test_the_returns_are_not_modified_and_the_scores_are_new_memory(label, frozen):
    returns = EPISODES[0].copy()
    normalizer = built(label)
    normalizer.frozen = frozen
    scores = normalizer(returns)
    np.testing.assert_array_equal(returns, EPISODES[0])
    assert not np.shares_memory(scores, returns)
    scores[:] = 0.0  # a caller may write to them


def test_none_returns_the_returns_untouched():
    for returns in (*EPISODES, np.array([1e100, -5e-324, 0.1])):
        np.testing.assert_array_equal(make("none")(returns), returns)


@every_config
def test_lists_and_whole_numbers_are_episodes_too(label):
    np.testing.assert_array_equal(built(label)([3, 2, 1]), built(label)(np.array([3.0, 2.0, 1.0])))


def test_a_start_belief_is_kept_apart_in_each_normalizer():
    one, two = built("simple-stream"), built("simple-stream")
    one(EPISODES[0])
    assert learned(two) == {"x": 0.0, "P": 1.0, "noise": 2.0}
    assert Belief(one.x, one.P) == filtered(CONFIGS["simple-stream"], EPISODES[0]).last
