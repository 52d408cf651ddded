"""Advantages in groups of answers, against brute force over all orders."""

from itertools import permutations

import numpy as np
import pytest

from kscore.filters import Belief, filter_series
from kscore.normalizers import groups
from kscore.normalizers.groups import FORMS, OneFilter, PromptFilter, grpo, krpo, krpo_averaged, leave_one_out

ONE_OF_TWELVE = np.eye(12)  # row i: the right answer stands at place i


def rng(seed=0):
    return np.random.default_rng(seed)


# One group at a time


def test_one_right_answer_of_twelve_in_a_group():
    """KRPO's advantage depends on where the right answer stands, GRPO's does not."""
    by_place = np.diag(krpo(ONE_OF_TWELVE))
    assert by_place[0] == pytest.approx(0.10, abs=0.005) and by_place[-1] == pytest.approx(31, abs=1)
    assert (np.diff(by_place) > 0).all()
    for form, value in ((grpo, 11 / 12 / np.sqrt(1 / 12)), (leave_one_out, 1.0)):
        assert np.diag(form(ONE_OF_TWELVE)) == pytest.approx(value)


def test_krpo_by_hand():
    """Two answers, 1 and 0: K = P / (P + R) with P = 1 + Q, then again from there."""
    Q, R = 1e-5, 1e-2
    K1 = (1 + Q) / (1 + Q + R)
    P1 = K1 * R
    K2 = (P1 + Q) / (P1 + Q + R)
    expected = [(1 - K1) / np.sqrt(P1 + 1e-8), -(K1 * (1 - K2)) / np.sqrt(K2 * R + 1e-8)]
    assert krpo([[1.0, 0.0]])[0] == pytest.approx(expected, rel=1e-12)


def test_the_average_over_orders_is_that_over_all_orders():
    rewards = rng(1).normal(size=5)
    found = np.zeros(5)
    orders = list(permutations(range(5)))
    for order in orders:
        found[list(order)] += krpo(rewards[None, list(order)])[0] / len(orders)
    assert krpo_averaged(rewards[None])[0] == pytest.approx(found, rel=1e-10)


@pytest.mark.parametrize("form", [grpo, leave_one_out, krpo_averaged])
def test_the_order_of_the_answers_does_not_matter_to_the_others(form):
    rewards, order = rng(2).normal(size=(3, 6)), rng(3).permutation(6)
    assert np.allclose(form(rewards[:, order]), form(rewards)[:, order])
    assert not np.allclose(krpo(rewards[:, order]), krpo(rewards)[:, order])


def test_leave_one_out_by_brute_force():
    rewards = rng(4).normal(size=(3, 5))
    for i, group in enumerate(rewards):
        for j in range(5):
            assert leave_one_out(rewards)[i, j] == pytest.approx(group[j] - np.delete(group, j).mean())


def test_a_group_of_equal_rewards_teaches_grpo_and_leave_one_out_nothing():
    for form in (grpo, leave_one_out):
        assert (form(np.full((2, 4), 0.3)) == pytest.approx(0)) and np.isfinite(form(np.zeros((1, 2)))).all()


# Filters in time


def test_a_prompts_filter_holds_answers_against_the_belief_from_before_and_leaves_other_prompts_alone():
    form, seen = PromptFilter(prompts=4, ratio=0.2), {2: [], 0: []}
    for rewards in rng(5).normal(size=(6, 2, 3)):
        chosen = np.array([2, 0])
        expected = []
        for prompt in chosen:
            path = filter_series(seen[prompt], 0.2, 1.0).last if seen[prompt] else Belief(0.0, 1.0)
            expected.append(path.mean)
        assert np.allclose(form(rewards, chosen), rewards - np.array(expected)[:, None], rtol=1e-12)
        for prompt, own in zip(chosen, rewards, strict=True):
            seen[prompt].append(own.mean())
    assert form.belief.mean[[1, 3]].tolist() == [0, 0] and form.belief.var[[1, 3]].tolist() == [1, 1]


def test_one_filter_follows_the_mean_of_all_answers():
    form, batches = OneFilter(ratio=0.3), rng(6).normal(size=(5, 2, 3))
    path = filter_series([batch.mean() for batch in batches], 0.3, 1.0)
    for batch, before in zip(batches, path.prior_mean, strict=True):
        assert np.allclose(form(batch), batch - before, rtol=1e-12)


@pytest.mark.parametrize("name", FORMS)
def test_what_an_answer_is_held_against_by_a_filter_does_not_change_with_the_answer(name):
    rewards, chosen = rng(7).normal(size=(2, 4)), np.array([0, 1])
    changed = rewards + np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]])
    before, after = (groups.make_form(name, 2)(each, chosen) for each in (rewards, changed))
    moved = after[0, 0] - before[0, 0]
    others = np.delete(after - before, 0)
    if name.endswith("filter"):
        assert moved == pytest.approx(1) and np.allclose(others, 0)
    elif name != "leave_one_out":
        assert moved != pytest.approx(1)  # the answer has moved what it is held against, or its scale
    if not name.endswith("filter"):
        assert not np.allclose(others, 0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: grpo([1.0, 0.0]), r"^rewards must be \(prompts, answers\) with at least 2 answers.*got shape \(2,\)"),
        (lambda: krpo([[1.0]]), r"^rewards must be \(prompts, answers\) with at least 2 answers.*got shape \(1, 1\)"),
        (lambda: OneFilter()([[np.nan]]), "^rewards must be finite.*got nan"),
        (lambda: PromptFilter(prompts=0), "^prompts must be a whole number of at least 1, got 0"),
        (lambda: OneFilter(ratio=0.0), "^ratio must be positive, got 0.0"),
        (lambda: groups.make_form("gropo", 5), "^form must be one of .*got 'gropo' .did you mean 'grpo'"),
    ],
)
def test_bad_input_gets_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
