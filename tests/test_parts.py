"""The normalizer that is put together from parts."""

import doctest
import json

import numpy as np
import pytest
from small_runs import close

from kscore.normalizers import make, parts
from kscore.normalizers.parts import PLACES

EPISODES = [np.random.default_rng(n).normal(3 * n, 1 + n, size) for n, size in enumerate((5, 1, 20, 7, 3))]


def by_hand(centre, scale, fading=0.0):
    """The scores of all episodes, from lists of what came before each."""
    means, squares, weights, scores = [], [], [], []
    for returns in EPISODES:
        past = np.array(weights)
        place = {"none": 0.0, "episode": returns.mean(), "past": past @ means if means else returns.mean()}[centre]
        own = np.mean((returns - place) ** 2)
        square = {"none": 1.0, "episode": own, "past": past @ squares if squares else own}[scale]
        scores.append((returns - place) / (np.sqrt(square) if square else 1.0))
        new = max(1 / (len(means) + 1), fading)
        weights = [*((1 - new) * past), new]
        means, squares = [*means, returns.mean()], [*squares, own]
    return scores


@pytest.mark.parametrize("fading", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("scale", PLACES)
@pytest.mark.parametrize("centre", PLACES)
def test_every_pair_of_parts_is_what_a_list_of_all_episodes_gives(centre, scale, fading):
    parts = make("parts", centre=centre, scale=scale, fading=fading)
    for returns, expected in zip(EPISODES, by_hand(centre, scale, fading), strict=True):
        close(parts(returns), expected, rtol=1e-6, atol=1e-6)


def test_both_parts_from_the_episode_are_the_z_score_and_none_is_none():
    for options, name in (
        ({"centre": "episode", "scale": "episode"}, "zscore"),
        ({"centre": "none", "scale": "none"}, "none"),
    ):
        parts, peer = make("parts", **options), make(name)
        for returns in EPISODES:
            close(parts(returns), peer(returns), rtol=1e-6, atol=1e-6)


def test_nothing_of_an_episode_is_in_what_it_is_held_against():
    parts = make("parts", fading=0.5)
    parts(EPISODES[0])
    before = parts.recall(EPISODES[2])
    assert parts.learn(EPISODES[3]) == before != parts.recall(EPISODES[3])


def test_frozen_it_goes_on_scoring_and_its_state_survives_json():
    parts, other = make("parts", fading=0.2), make("parts", fading=0.2)
    for returns in EPISODES[:3]:
        parts(returns)
    other.load_state_dict(json.loads(json.dumps(parts.state_dict())))
    other.frozen = True
    close(other(EPISODES[3]), other(EPISODES[3]))
    close(other(EPISODES[3]), parts(EPISODES[3]))


def test_the_example_holds():
    assert doctest.testmod(parts) == (0, 2)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"centre": "running"}, "centre must be one of 'none', 'episode', 'past', got 'running'"),
        ({"scale": None}, "scale must be one of 'none', 'episode', 'past', got None"),
        ({"fading": 1.5}, "fading must be between 0 and 1, got 1.5"),
        ({"eps": 0.0}, "eps must be positive, got 0.0"),
    ],
)
def test_bad_input_gets_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        make("parts", **options)
