"""The task of adding two digits: its policy and its training, what is read of its runs, and how the forms compare."""

import numpy as np
import pytest
import torch

from kscore import journal
from kscore.analysis import stats
from kscore.analysis.verdicts import Change
from kscore.labs import digit_addition
from kscore.labs.digit_addition import PROMPTS, Adder, SumsConfig, is_right, taught, train_sums
from kscore.normalizers.groups import FORMS
from kscore.rl import training


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def one_thread():
    with training.one_thread():
        yield


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
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
    _, _, rewards = digit_addition.draw_groups(policy, np.arange(100), 10, torch.Generator().manual_seed(0))
    assert 0.1 < rewards.mean() < 0.6
    assert np.mean(train_sums(config, 0)["curve"][-5:]) > rewards.mean() + 0.15


def test_matched_advantages_have_one_size():
    assert np.sqrt(np.mean(digit_addition.matched(rng(8).normal(size=(4, 3))) ** 2)) == pytest.approx(1)
    assert (digit_addition.matched(np.zeros((2, 2))) == 0).all()


def test_the_plan_is_balanced_by_seeds():
    planned = digit_addition.planned()
    assert len(planned) == len(FORMS) * 2 * 20 and {seed for _, seed in planned[:12]} == {6000}


# What is recorded


def record(form, answers, seed, curve):
    return {"config": {"form": form, "answers": answers}, "seed": seed, "curve": curve}


@pytest.fixture
def path(tmp_path):
    """Two forms, groups of 12 and 2, seven seeds; "krpo" is 0.1 ahead with 12 answers and the same with 2."""
    rng = np.random.default_rng(0)
    for seed in range(7):
        for answers, ahead in ((12, 0.1), (2, 0.0)):
            level = rng.uniform(0.3, 0.6)
            journal.append(tmp_path / "sums.jsonl", record("grpo", answers, seed, [level, level]))
            journal.append(tmp_path / "sums.jsonl", record("krpo", answers, seed, [level, level + 2 * ahead]))
    return tmp_path / "sums.jsonl"


def test_the_outcome_of_a_run_is_its_mean_share(path):
    runs = digit_addition.read(path)
    assert len(runs) == 28 and list(runs.columns) == ["form", "answers", "seed", "curve", "share"]
    assert all(share == pytest.approx(np.mean(curve)) for curve, share in zip(runs.curve, runs.share, strict=True))


def test_a_seed_that_is_not_complete_is_left_out(path):
    journal.append(path, record("grpo", 12, 7, [0.5]))
    assert sorted(digit_addition.read(path).seed.unique()) == list(range(7))


def test_no_runs_get_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="^path must be a file of recorded runs, got .*which holds none"):
        digit_addition.read(tmp_path / "none.jsonl")


def test_forms_are_compared_seed_by_seed(path):
    """The levels of the seeds scatter by far more than 0.1; the differences do not."""
    table = digit_addition.against(digit_addition.read(path), "grpo")
    assert list(table.index) == [(12, "krpo"), (2, "krpo")]
    ahead, same = table.itertuples(index=False)
    assert tuple(ahead.difference[:3]) == pytest.approx((0.1, 0.1, 0.1)) and ahead.difference.n == 7
    assert ahead.verdict == Change.BETTER and same.verdict == Change.UNTOLD
    assert table["adjusted p"].tolist() == pytest.approx(stats.adjusted([2 / 2**7, 1.0]))
