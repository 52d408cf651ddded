"""States of normalizers say what they are of; all that can be reached can be loaded, and nothing that is broken."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples

from kscore.normalizers import NORMALIZERS, make
from kscore.normalizers.groups import OneFilter, PromptFilter

OPTIONS = {
    "none": {},
    "zscore": {"eps": [1e-8, 1.0]},
    "running": {"eps": [1e-8]},
    "ema": {"decay": [0.0, 0.9, 1 - 1e-16]},
    "kscore": {
        "variant": ["simple", "adaptive"],
        "mode": ["stream", "refit", "innovation"],
        "scale": ["belief", "returns"],
        "Q": [0.0, 1e-4, 1e100],
        "R": [1e-2, 1e100],
        "R_timing": ["after", "before"],
    },
    "episode": {
        "judge": ["prior", "posterior"],
        "noise": ["fixed", "learned", "bank"],
        "ratio": [1e-6, 0.1, 100.0],
        "level": ["mean", "first"],
        "transform": ["none", "symlog"],
        "slope": [False, True],
        "robust": [False, True],
        "by_length": [False, True],
    },
    "popart": {"rate": [0.1, 1e-18, 1.0], "debiased": [False, True]},
    "percentile": {"rate": [0.1, 1e-18], "debiased": [False, True]},
    "reward_scale": {"reset": ["episode", "termination", "never"], "gamma": [0.0, 0.99, 1.0]},
    "symlog": {},
    "parts": {"centre": ["none", "episode", "past"], "scale": ["none", "episode", "past"], "fading": [0.0, 0.1, 1.0]},
}


def chosen(name):
    """Options of a normalizer that can be had together."""

    def together(options):
        if options.get("slope"):
            options |= {"noise": "fixed", "robust": False}
        return name, options

    return st.fixed_dictionaries({option: st.sampled_from(some) for option, some in OPTIONS[name].items()}).map(
        together
    )


KINDS = st.sampled_from(sorted(NORMALIZERS)).flatmap(chosen)
SIZES = st.sampled_from([0.0, 1e-300, 1.0, 1e60, 1e100])
EPISODES = st.lists(st.tuples(SIZES, st.lists(st.floats(-1, 1), min_size=1, max_size=6)), min_size=0, max_size=12)


def taught(kind, episodes):
    normalizer = make(kind[0], **kind[1])
    for size, shares in episodes:
        normalizer(size * np.array(shares))
    return normalizer


def same(one, other):
    return one.state_dict() == other.state_dict()


def test_every_normalizer_is_tried():
    assert set(OPTIONS) == set(NORMALIZERS)


@examples()
@given(KINDS, EPISODES, st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6))
def test_whatever_can_be_reached_can_be_saved_and_gone_on_from(kind, episodes, returns):
    normalizer, restored = taught(kind, episodes), make(kind[0], **kind[1])
    restored.load_state_dict(json.loads(json.dumps(normalizer.state_dict(), allow_nan=False)))
    assert same(restored, normalizer)
    scores = restored(returns)
    np.testing.assert_array_equal(scores, normalizer(returns))
    assert np.isfinite(scores).all() and len(scores) == len(returns)


MUTATIONS = [-1.0, 0, -1e-9, 1e300, math.nan, math.inf, "3", None, True, [], {}, [[1.0]], {1, 2}, 10**400, b"1"]


def places(value, at=()):
    """Every place in nested lists at which there is a number."""
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*at, index))
    yield at


def mutated(value, at, mutation):
    if not at:
        return mutation
    return [*value[: at[0]], mutated(value[at[0]], at[1:], mutation), *value[at[0] + 1 :]]


@examples()
@given(KINDS, EPISODES, st.data())
def test_a_broken_state_is_refused_in_a_sentence_or_leads_to_finite_scores(kind, episodes, data):
    normalizer, own = taught(kind, episodes), make(kind[0], **kind[1])
    state, before = normalizer.state_dict(), own.state_dict()
    key = data.draw(st.sampled_from(sorted(state)))
    state[key] = mutated(
        state[key], data.draw(st.sampled_from(sorted(places(state[key])))), data.draw(st.sampled_from(MUTATIONS))
    )
    try:
        own.load_state_dict(state)
    except ValueError as refusal:
        assert "state" in str(refusal) and own.state_dict() == before
    else:
        for returns in ([1.0, -2.0, 3.0], [0.0], [5.0]):
            assert np.isfinite(own(returns)).all()


@pytest.mark.parametrize("state", [None, 3, "state", [], {1, 2}, ["version"], {"version": 1}, {"version": "1"}])
def test_what_is_no_state_gets_a_sentence(state):
    with pytest.raises(ValueError, match=r"^state(\[| of running)"):
        make("running").load_state_dict(state)


@pytest.mark.parametrize("version", [0, 2, 1.0, True, None, "1"])
def test_a_state_of_another_version_is_refused(version):
    with pytest.raises(ValueError, match=r"^state\['version'\] must be 1, got "):
        make("running").load_state_dict(make("running").state_dict() | {"version": version})


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"transform": "none"}, {"transform": "symlog"}, "transform = 'symlog', got 'none'"),
        ({"ratio": 0.1}, {"ratio": 0.2}, "ratio = 0.2, got 0.1"),
        ({"robust": False}, {"robust": True}, "robust = True, got False"),
    ],
)
def test_a_state_of_other_options_is_refused(one, other, said):
    before, normalizer = make("episode", **one), make("episode", **other)
    before([1e5, 2e5])
    with pytest.raises(ValueError, match=f"^state of episode must be of one with {said}"):
        normalizer.load_state_dict(before.state_dict())
    assert not normalizer.episodes


def test_an_option_that_came_later_stands_at_its_default():
    state = make("ema", decay=0.5).state_dict()
    del state["options"]["eps"]
    make("ema", decay=0.5).load_state_dict(state)
    with pytest.raises(ValueError, match="eps = 0.1, got 1e-08"):
        make("ema", decay=0.5, eps=0.1).load_state_dict(state)
    with pytest.raises(ValueError, match=r"^state\['options'\] must be a dict of \['decay', 'eps'\]"):
        make("ema", decay=0.5).load_state_dict(state | {"options": {"decay": 0.5, "unknown": 1}})


def test_a_state_from_before_there_were_versions_is_loaded_if_it_is_of_use():
    plain = make("episode")
    plain([1e5, 2e5])
    old = {key: value for key, value in plain.state_dict().items() if key not in ("version", "options")}
    again = make("episode")
    again.load_state_dict(old)
    assert same(again, plain)
    with pytest.raises(ValueError, match="^state of episode must "):
        make("episode", transform="symlog").load_state_dict(old)


@pytest.mark.parametrize(("key", "row"), [("centre", 1), ("centre", 2), ("centre", 4), ("spread", 1), ("moments", 0)])
def test_counts_and_variances_are_not_negative(key, row):
    normalizer = make("episode", noise="learned")
    for returns in ([1.0, 2.0], [3.0, 5.0], [0.0, 4.0]):
        normalizer(returns)
    state = normalizer.state_dict()
    where = state[key] if key != "moments" else state[key][0]
    where[row] = [-1e-3] if key != "moments" else -1e-3
    with pytest.raises(ValueError, match=f"^state\\['{key}'\\].* negative"):
        normalizer.load_state_dict(state)


# Tiny rates


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["popart", "percentile"])
@pytest.mark.parametrize("rate", [1e-7, 1e-15, 1e-16, 1e-17, 1e-300, 5e-324])
def test_a_tiny_rate_is_a_plain_mean(name, rate):
    normalizer, returns = make(name, rate=rate, debiased=True), np.random.default_rng(0).normal(3, 1, 20)
    for z in returns:
        normalizer([z])
    followed = normalizer.mean if name == "popart" else normalizer.top
    assert followed == pytest.approx(returns.mean(), rel=1e-5)


def test_at_the_rates_of_recorded_runs_a_weight_is_what_it_was_to_the_bit():
    for rate in (1e-6, 1e-5, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0):
        normalizer = make("popart", rate=rate)
        for n in range(1, 2000):
            assert normalizer.gain == rate / (1 - (1 - rate) ** n)
            normalizer.episodes = n


# Prompts


@pytest.mark.parametrize(
    ("prompts", "said"),
    [
        ([2, 2], "must be different and from 0 to 3"),
        ([-1, 0], "must be different and from 0 to 3"),
        ([0, 4], "must be different and from 0 to 3"),
        ([0], "must be 2 whole numbers"),
        ([0.0, 1.0], "must be 2 whole numbers"),
        ([[0, 1]], "must be 2 whole numbers"),
        ([True, False], "must be 2 whole numbers"),
        (None, "must be 2 whole numbers"),
    ],
)
def test_the_prompts_of_a_batch_are_different_ones_that_there_are(prompts, said):
    form = PromptFilter(4)
    with pytest.raises(ValueError, match=f"^prompts {said}"):
        form([[0.0, 1.0], [1.0, 1.0]], prompts)
    assert not form.belief.mean.any()
    form([[0.0, 1.0], [1.0, 1.0]], np.array([3, 1]))
    assert form.belief.mean.tolist() == [0.0, form.belief.mean[1], 0.0, form.belief.mean[3]] and form.belief.mean[1] > 0
    OneFilter()([[0.0, 1.0]], None)
