"""Advantages in groups of answers, against brute force over all orders; and the small task that trains on them."""

from itertools import permutations

import numpy as np
import orjson
import pytest
import torch

from kscore import journal
from kscore.filters import Belief, filter_series
from kscore.normalizers import groups
from kscore.normalizers.groups import FORMS, OneFilter, PromptFilter, grpo, krpo, krpo_averaged, leave_one_out
from kscore.rl import sums, training
from kscore.rl.sums import PROMPTS, Adder, SumsConfig, is_right, taught, train_sums

ONE_OF_TWELVE = np.eye(12)  # row i: the right answer stands at place i


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def one_thread():
    with training.one_thread():
        yield


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
        (lambda: SumsConfig(form="grpo", answers=5), "^batch must be a multiple of answers = 5, .*got 192"),
        (lambda: SumsConfig(form="one_filter", answers=1), "^batch must .* for at most 100 prompts, got 192"),
        (lambda: SumsConfig(form="one_filter", wrong=2.0), "^wrong must be between 0 and 1, got 2.0"),
    ],
)
def test_bad_input_gets_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


# The task

SMALL = {"batch": 24, "updates": 20, "examples": 3}


def test_answers_are_right_when_they_are_the_sum():
    prompts = torch.tensor([[3, 4], [9, 9], [9, 9], [0, 0]])
    answers = torch.tensor([[0, 7], [1, 8], [8, 1], [0, 1]])
    assert is_right(prompts, answers).tolist() == [True, True, False, False]
    assert PROMPTS.shape == (100, 2) and len({tuple(pair) for pair in PROMPTS.tolist()}) == 100


def test_drawn_answers_have_the_probabilities_of_the_policy():
    torch.manual_seed(0)
    policy, prompt = Adder(), torch.tensor([[4, 5]]).repeat(20_000, 1)
    drawn = policy.draw(prompt, torch.Generator().manual_seed(1))
    every = torch.cartesian_prod(torch.arange(10), torch.arange(10))
    expected = policy.log_probs(prompt[:100], every).exp().detach().numpy()
    assert expected.sum() == pytest.approx(1, abs=1e-5)
    found = np.bincount((10 * drawn[:, 0] + drawn[:, 1]).numpy(), minlength=100) / len(drawn)
    assert np.abs(found - expected).max() < 5 * np.sqrt(expected.max() / len(drawn))


def test_a_run_is_the_same_again_and_leaves_torchs_own_randomness_alone():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first, second = (train_sums(SumsConfig(form="krpo", **SMALL), 1) for _ in range(2))
    assert first == second and len(first["curve"]) == 2
    assert torch.equal(torch.random.get_rng_state(), before)
    assert first["curve"] != train_sums(SumsConfig(form="krpo", **SMALL), 2)["curve"]


def test_every_form_starts_from_the_same_policy_and_the_same_answers():
    curves = {
        form: train_sums(SumsConfig(form=form, batch=24, updates=10, examples=30, learning_rate=1e-9), 3)["curve"]
        for form in FORMS
    }
    assert len({tuple(curve) for curve in curves.values()}) == 1


def test_examples_teach_and_rewards_teach_more():
    config = SumsConfig(form="prompt_filter", answers=2, updates=300)
    torch.manual_seed(0)
    policy = taught(config, rng(0))
    _, _, rewards = sums.draw_groups(policy, np.arange(100), 10, torch.Generator().manual_seed(0))
    assert 0.1 < rewards.mean() < 0.6
    assert np.mean(train_sums(config, 0)["curve"][-5:]) > rewards.mean() + 0.15


def test_matched_advantages_have_one_size():
    assert np.sqrt(np.mean(sums.matched(rng(8).normal(size=(4, 3))) ** 2)) == pytest.approx(1)
    assert (sums.matched(np.zeros((2, 2))) == 0).all()


def test_recording_trains_what_is_missing_and_nothing_twice(tmp_path, monkeypatch):
    configs = [SumsConfig(form=form, **SMALL) for form in ("grpo", "krpo")]
    monkeypatch.setattr(sums, "planned", lambda: [(config, seed) for seed in (0, 1) for config in configs])
    path = tmp_path / "sums.jsonl"
    journal.append(path, train_sums(configs[1], 0))
    sums.record(path)
    runs = [orjson.loads(line) for line in journal.lines(path)]
    trained = [(run["config"]["form"], run["seed"]) for run in runs]
    assert trained == [("krpo", 0), ("grpo", 0), ("grpo", 1), ("krpo", 1)]
    sums.record(path)
    assert len(list(journal.lines(path))) == 4


def test_the_plan_is_balanced_by_seeds():
    planned = sums.planned()
    assert len(planned) == len(FORMS) * 2 * 20 and {seed for _, seed in planned[:12]} == {6000}
