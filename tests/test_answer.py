"""What README and the page of answers say is what the chapters printed, and what the archive says."""

import re
from contextlib import nullcontext
from dataclasses import replace

import nbformat
import numpy as np
import pandas as pd
import pytest

from kscore import analysis, chapters, normalizers, study
from kscore.chapters import pages
from kscore.figures import SPOKEN
from kscore.labs import contest
from kscore.labs.shifts import after_shift
from kscore.project import NOTEBOOKS, ROOT
from kscore.rl import RunConfig
from kscore.study import plan

OWN = {
    learner: contest.settings_of(plan.part(f"fair_{learner}"))
    for learner in ("reinforce", "actor_critic", "gae", "ppo")
}
"""Each arm's own setting on CartPole."""
SWAPPED_AFTER = plan.condition("swap")["disturbance"]["after"]

QUOTED = {**dict.fromkeys(("default", "choice", "rule"), "17_a_fair_fight"), "advice": "14_noise_and_shifts"}
"""The blocks that other chapters than the report print, and that it and chapter 00 quote."""
REPORT, CONTEST, DISTURBED = (
    nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    for name in ("11_replication_report", "17_a_fair_fight", "14_noise_and_shifts")
)
SOURCES = {
    **dict.fromkeys(("default", "choice", "rule"), CONTEST),
    **dict.fromkeys(("advice", "situations"), DISTURBED),
}
"""The chapters whose blocks these are; all others are the report's."""
PLACES = [
    ("README.md", "answer"),
    ("docs/index.md", "answer"),
    ("docs/answer.md", "answer"),
    ("docs/answer.md", "details"),
    ("docs/answer.md", "rankings"),
    ("docs/answer.md", "situations"),
    *((page, name) for page in ("README.md", "docs/answer.md") for name in QUOTED),
]


def printed(notebook):
    """All the words that a notebook shows below its code."""
    return "\n".join(
        output.data.get("text/markdown", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "data" in output
    )


@pytest.mark.parametrize(("page", "name"), PLACES)
def test_a_page_says_what_a_chapter_printed(page, name):
    block = pages.blocks(SOURCES.get(name, REPORT).cells)[name]
    found = pages.block(name).search((ROOT / page).read_text(encoding="utf-8"))
    assert found[2].strip() == block != ""


@pytest.mark.parametrize("name", ["00_start_here", "11_replication_report"])
def test_a_chapter_quotes_what_others_printed(name):
    shown = printed(nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4))
    for block, source in QUOTED.items():
        text = pages.blocks(SOURCES[block].cells)[block]
        assert text in shown and text == chapters.printed(source, block)


def test_a_quotation_that_does_not_exist_gets_a_sentence():
    with pytest.raises(ValueError, match="^chapter must be one of '00_start_here', .*got '17'"):
        chapters.printed("17", "choice")
    with pytest.raises(ValueError, match="^block of chapter 17_a_fair_fight must be one of .*'choice'.*got 'choise'"):
        chapters.printed("17_a_fair_fight", "choise")


def test_a_chapter_that_has_printed_nothing_gets_a_sentence():
    with pytest.raises(ValueError, match="^chapter must be one that has printed a block .*got '03_from_f"):
        chapters.printed("03_from_filter_to_score", "choice")


def test_there_is_a_recommended_normalizer_only_if_the_plan_names_one():
    named = pages.blocks(CONTEST.cells)["default"].startswith("**The default**")
    with nullcontext() if named else pytest.raises(ValueError, match="normalizer must be one of .*'recommended'"):
        normalizers.make("recommended")


def test_the_answer_takes_a_minute():
    """Four sentences of what came out, and one of what to use; the rest is detail."""
    came_out, use = pages.blocks(REPORT.cells)["answer"].split("\n\n")
    assert [len(re.findall(r"[.](?:\s|$)", part.replace("**Answer.**", ""))) for part in (came_out, use)] == [4, 1]


def test_every_block_is_one_of_these():
    marked = {
        (path.relative_to(ROOT).as_posix(), line.split()[1].rstrip(","))
        for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if ", from chapter " in line
    }
    assert marked == set(PLACES)


@pytest.mark.parametrize("name", ["study", "multiverse"])
def test_the_pictures_are_the_published_ones(name):
    assert any(f"figure-file:{name}.png" in cell.metadata.get("tags", []) for cell in REPORT.cells)
    assert (pages.FIGURES / f"{name}.png").is_file()


def over_the_per_episode(part, arm):
    return analysis.compare(study.runs(plan.part(part)), arm, "zscore").factor


def test_what_is_recommended_is_what_the_archive_says():
    """docs/answer.md, "What to use"."""
    for part in ("cartpole_reinforce", "cartpole_actor_critic"):
        assert over_the_per_episode(part, "running").low > 1
    assert all(
        over_the_per_episode("cartpole_ppo", arm).high < 1
        for arm in plan.part("cartpole_ppo").configs
        if arm != "zscore"
    )
    for arm in ("running", "ema"):
        found = over_the_per_episode("cartpole_gae", arm)
        assert found.low < 1 < found.high
    z_scored, not_z_scored = (
        analysis.restricted_means(study.runs(plan.part(part))) for part in ("cartpole_gae", "cartpole_gae_switched")
    )
    assert all(z_scored[arm] < not_z_scored[arm] for arm in ("zscore", "running", "ema"))
    assert 0.8 < z_scored["zscore"] / not_z_scored["none"] < 1.25


def test_what_is_recommended_at_a_slower_rate_is_what_the_archive_says():
    """docs/answer.md, at the end of "What to use"."""

    def over(learner, *pair):
        return analysis.compare(study.runs(plan.part(f"episodes_{learner}_slower", arms=pair)), *pair).factor

    assert over("reinforce", "running", "zscore").low > 1
    assert over("actor_critic", "running_plain", "zscore_plain").low > 1
    assert over("ppo", "zscore", "zscore_plain").low > 1
    assert over("gae", "running", "zscore").low > 1
    for found in (over("ppo", "running", "zscore"), over("gae", "zscore", "zscore_plain")):
        assert found.low < 1 < found.high


def test_what_is_said_of_the_fair_fight_is_what_the_archive_says():
    """docs/answer.md, below the first table of "What to use"."""
    for learner in ("actor_critic", "ppo"):
        assert analysis.best(study.runs(plan.part(f"fair_drylake_{learner}"))) == "kscore"
        lake = study.runs(plan.part(f"fair_drylake_{learner}")).groupby("arm").evaluation_arrived.mean()
        assert lake[["none", "running", "kscore", "episode_filter"]].max() < 1
    unseen = {
        (task, learner): study.runs(plan.part(f"fair_{task}_{learner}"))
        for task in ("acrobot", "drylake")
        for learner in ("actor_critic", "ppo")
    }
    ranks = contest.standings(
        {name: {arm: analysis.times(frame, arm) for arm in OWN["ppo"]} for name, frame in unseen.items()},
        {name: int(frame.cap.iloc[0]) for name, frame in unseen.items()},
    )
    mean = pd.Series({arm: one.estimate for arm, one in ranks["mean rank"].items()}).sort_values()
    assert set(mean.index[:5]) == {"running", "ema", "kscore", "episode_filter", "filter_bank"}
    assert np.ptp(mean[:5]) < 0.5 < mean.iloc[5] - mean.iloc[0]
    rates = {arm: rate for arm, (rate, _) in OWN["ppo"].items()}
    assert [arm for arm, rate in rates.items() if rate == min(rates.values())] == ["kscore"]
    lander = analysis.rankings(
        {
            (learner, arm): analysis.compare(study.runs(plan.part(f"fair_lunarlander_{learner}")), arm, "zscore")
            for learner in ("actor_critic", "ppo")
            for arm in ("adaptive", "adaptive_refit", "episode_filter")
        }
    )
    slower = [factor.high < 1 and p < 0.05 for factor, p in zip(lander.factor, lander["adjusted p"], strict=True)]
    assert set(lander.verdict) == {"does not hold"} and sum(slower) > len(slower) / 2


def test_what_is_said_of_short_tasks_is_what_the_archive_says():
    """docs/answer.md, below the table of "Under noise and shifts"."""
    for learner in ("actor_critic", "reinforce"):
        lake = study.runs(plan.part(f"short_drylake_{learner}")).groupby("arm").evaluation_arrived.mean()
        assert lake["running"] == lake["kscore"] == lake["none"] == 1 and 0.6 < lake["episode_filter"] < 0.75
        bandit = study.runs(plan.part(f"short_bandit_{learner}")).groupby("arm").evaluation_arrived.mean()
        assert bandit.drop("zscore").min() == 1 and bandit["zscore"] < 0.1


def test_where_a_filter_wins_is_what_the_archive_says():
    """docs/answer.md, "Where a Kalman filter wins, and whether it takes one"."""
    for learner in ("actor_critic", "reinforce"):
        swapped = study.runs(plan.part(f"disturbed_{learner}_swap_longer"))
        later = after_shift(swapped, after=SWAPPED_AFTER, threshold=475.0)
        assert analysis.compare(later, "episode_filter, swap", "running, swap").factor.low > 1.3
        assert analysis.compare(later, "zscore, swap", "running, swap").factor.low > 1
        found = analysis.compare(later, "adaptive, swap", "running, swap").factor
        assert found.low > 1
        means = analysis.restricted_means(later)
        assert min(means, key=means.get) == "episode_filter, swap"
        if learner == "actor_critic":
            assert analysis.compare(later, "adaptive_refit, swap", "running, swap").factor.low > 1
    for kind, condition in (("noise", "noise 10"), ("shift", "outliers")):
        disturbed = study.runs(plan.part(f"disturbed_reinforce_{kind}"))
        assert analysis.compare(disturbed, f"episode_filter, {condition}", f"running, {condition}").factor.high < 1


def test_at_which_door_the_actor_critic_comes_back_is_what_the_archive_says():
    """docs/answer.md, "Where a Kalman filter wins, and whether it takes one"; chapter 14, "At which door?"."""
    both = pd.concat(
        [
            study.runs(plan.part("controls_actor_critic_swap_longer_doors")),
            study.runs(plan.part("disturbed_actor_critic_swap_longer")),
        ]
    )
    later = after_shift(both, after=SWAPPED_AFTER, threshold=475.0)
    back = later.groupby("arm").evaluation_arrived.sum()
    for plain in ("zscore at the returns", "adaptive_refit at the returns"):
        assert back[plain] < back["none, swap"] + 5
        assert analysis.compare(later, plain, "running, swap").factor.low < 1
    assert abs(back["none, z-scored"] - back[["zscore, swap", "adaptive_refit, swap"]].mean()) < 1
    assert back[["episode_filter at the returns", "episode_filter at the advantages"]].min() >= 29
    for name in ("running", "ema"):
        assert back[f"{name}, z-scored"] > back[f"{name}, swap"] + 5
    faster = pd.concat(
        [
            study.runs(plan.part("controls_reinforce_swap_longer")),
            study.runs(plan.part("controls_reinforce_swap_longer_faster")).assign(arm="faster"),
        ]
    )
    faster = after_shift(faster, after=SWAPPED_AFTER, threshold=475.0)
    over = {
        arm: analysis.compare(faster, f"{arm}, swap", "faster").factor
        for arm in ("fading", "episode_filter", "running")
    }
    assert over["fading"].low > 1 < over["episode_filter"].low and over["running"].low <= 1 <= over["running"].high


def words_on(runs, pairs):
    """The comparisons of some pairs, by the names of a part and its pair."""
    return {(name, *pair): analysis.compare(frame, *pair) for name, frame in runs.items() for pair in pairs}


def test_that_it_need_not_be_a_kalman_filter_is_what_the_archive_says():
    """docs/answer.md, "Where a Kalman filter wins, and whether it takes one"."""
    clean = {learner: study.runs(plan.part(f"controls_{learner}")) for learner in OWN}
    swapped = {
        learner: after_shift(
            study.runs(plan.part(f"controls_{learner}_swap_longer")), after=SWAPPED_AFTER, threshold=475.0
        )
        for learner in ("actor_critic", "reinforce")
    }
    over = analysis.rankings(
        words_on(clean, [("fading", "running")]) | words_on(swapped, [("fading, swap", "running, swap")])
    )
    assert set(over.index[over.verdict == "holds"]) == {
        *((learner, "fading", "running") for learner in ("reinforce", "gae")),
        *((learner, "fading, swap", "running, swap") for learner in swapped),
    }
    ahead = analysis.rankings(
        words_on(clean, [("episode_filter", "fading"), ("filter_bank", "fading")])
        | words_on(swapped, [("episode_filter, swap", "fading, swap")])
    )
    assert len(ahead) == 10 and "holds" not in set(ahead.verdict)
    again = {"gae": study.runs(plan.part("controls_gae_again"))}
    over_fading = words_on(again, [("episode_filter", "fading"), ("filter_bank", "fading")])
    judged = analysis.rankings(
        over_fading
        | words_on(again, [(arm, "running") for arm in ("running_twice", "fading", "episode_filter", "filter_bank")])
    )
    assert list(judged.verdict) == ["does not hold"] * 2 + ["holds"] * 4
    assert max(one.factor.high for one in over_fading.values()) < 1.1
    bank = analysis.compare(clean["actor_critic"], "filter_bank", "running").factor
    assert bank.estimate < 1 < bank.high  # whose lead is gone


def test_with_reinforce_the_lead_of_fading_goes_with_its_rate():
    """docs/answer.md, "Where a Kalman filter wins, and whether it takes one"."""
    own, exchanged = (study.runs(plan.part(f"controls_reinforce{which}")) for which in ("", "_rates"))
    both = pd.concat([own, exchanged.assign(arm="exchanged " + exchanged.arm)])
    for pair in (("fading", "exchanged running"), ("exchanged fading", "running")):
        found = analysis.compare(both, *pair).factor
        assert found.low < 1 < found.high


def test_at_equal_rates_what_was_found_under_noise_and_shifts_comes_nearer_to_no_difference():
    """docs/answer.md, "Where a Kalman filter wins, and whether it takes one"."""
    for condition in ("noise 10", "outliers", "times 10"):
        means = {}
        for part in (
            "disturbed_reinforce_" + ("noise" if "noise" in condition else "shift"),
            "controls_reinforce_slower",
            "controls_reinforce_faster",
        ):
            found = analysis.restricted_means(study.runs(plan.part(part)))
            means[part] = {arm: found.get(f"{arm}, {condition}") for arm in ("running", "episode_filter")}
        usual, slower, faster = means.values()
        own = usual["running"] / usual["episode_filter"]
        for equal in (usual["running"] / slower["episode_filter"], faster["running"] / usual["episode_filter"]):
            assert abs(np.log(equal)) < abs(np.log(own))


def test_no_filter_is_said_to_cope_where_none_was_shown_to():
    """The advice on noise, outliers and other units in chapter 17: one cell holds, with as large a lead when clean."""
    (said,) = re.findall(
        r'Where "faster" holds, and the factor on the clean task: (.*?)\. Where the filter', printed(DISTURBED)
    )
    ((where, lead, clean),) = re.findall(r"(.*?): (\d\.\d\d) \[.*?\], clean (\d\.\d\d)", said)
    assert where == "the filter of episodes, times 10, REINFORCE" and float(lead) < 1.1 * float(clean)


def test_what_is_advised_by_situation_is_what_the_archive_says():
    """The column "use" of the table of chapter 14, whose other columns are computed."""
    clean = {learner: study.runs(plan.part(f"fair_{learner}", seeds=30)) for learner in ("actor_critic", "reinforce")}
    for learner, usual in clean.items():
        outliers = study.runs(plan.part(f"disturbed_{learner}_shift"))
        outliers = outliers[outliers.arm.str.endswith(", outliers")]
        assert analysis.best(outliers) == "zscore, outliers"
        for kind, condition in (("noise", "noise 3"), ("shift", "times 10"), ("shift", "plus 10")):
            means = analysis.restricted_means(study.runs(plan.part(f"disturbed_{learner}_{kind}")))
            for arm in ("running", *["episode_filter"] * (kind == "shift")):
                assert means[f"{arm}, {condition}"] < 1.35 * analysis.restricted_means(usual)[arm]
        for task in ("bandit", "drylake"):
            arrived = study.runs(plan.part(f"short_{task}_{learner}")).groupby("arm").evaluation_arrived.sum()
            assert arrived["running"] == arrived["none"] == 30 and arrived["zscore"] < 3
        assert arrived["episode_filter"] == 20  # on the dry lake


def test_what_is_said_of_steps_is_what_the_archive_says():
    """docs/answer.md, "Where a Kalman filter wins, and whether it takes one"."""
    runs = study.runs(plan.part("fair_reinforce"))
    steps = {arm: analysis.step_times(runs, arm).time.mean() for arm in OWN["ppo"]}
    assert min(steps, key=steps.get) == "running" and analysis.best(runs) == "episode_filter"
    (starred,) = re.findall(r"Starred above 1: (.*?)\. \"Holds\"", printed(CONTEST))
    assert "the K-Score stream with GAE 1." in starred
    assert OWN["gae"]["kscore"][0] < OWN["gae"]["running"][0]


def test_the_arms_are_written_in_code_as_they_were_run():
    """docs/answer.md, "In code"."""
    page = (ROOT / "docs" / "answer.md").read_text(encoding="utf-8")
    names = {}
    for example in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(compile(example, "example", "exec"), names)
    assert len(names["advantages"]) == 3 and names["at_returns"] is not names["at_advantages"]
    rate, z_scored = OWN["ppo"]["episode_filter"]
    assert names["config"] == plan.arm(
        "contest", "episode_filter", "ppo", z_scored=z_scored, rate=rate, max_episodes=30
    )
    assert names["record"]["episodes"] == 30 and OWN["gae"]["filter_bank"] == (0.01, False)

    def options_of(call):
        return eval(f"(lambda name, **options: {{'name': name}} | options)({call})")

    rows = dict(re.findall(r"^\| (the .*?|no normalizer) \| (.*`.*) \|$", page, re.MULTILINE))
    for arm, words in SPOKEN.items():
        if arm == "popart":
            continue
        usual, _, with_ppo = rows["the adaptive stream" if arm == "adaptive_refit" else words].partition("; with PPO ")
        for learner, change in (("actor_critic", ""), ("ppo", with_ppo)):
            options = options_of(usual.strip("`"))
            if change:
                options |= eval(f"dict({change.strip('`')})") if "=" in change else {"decay": float(change)}
            if arm == "adaptive_refit":
                options["mode"] = "refit"
            assert (
                replace(RunConfig.preset("CartPole-v1", learner), normalizer=options).normalizer
                == plan.arm("contest", arm, learner).normalizer
            )
    assert rows["the adaptive refit"] == 'the same with `mode="refit"`'
    (popart,) = re.findall(r"^PopArt gives .*$", page, re.MULTILINE)
    with_critic, without = (plan.arm("contest", "popart", learner) for learner in ("ppo", "reinforce"))
    at_returns, scale, alone = (eval(options) for options in re.findall(r"`\w+=({.*?})`", popart))
    assert replace(with_critic, normalizer=at_returns, value_scale=scale) == with_critic
    assert replace(without, normalizer=alone) == without


def test_the_filters_that_were_faster_are_those_that_are_named():
    """docs/answer.md, below the figure."""
    faster = re.search(r"K-Scores in these panels, .* above it:\n\n((?:- .*\n?)+)", printed(REPORT))[1]
    assert re.findall(r"^- (.*?): K-Score, (.*?) \d", faster, re.MULTILINE) == [
        ("REINFORCE", "adaptive stream"),
        ("REINFORCE", "adaptive innovation"),
        *(("GAE, advantages not z-scored", name) for name in ("refit", "adaptive stream", "adaptive refit")),
        ("GAE, advantages normalized", "adaptive refit"),
    ]
    means = {
        part: analysis.restricted_means(study.runs(plan.part(part)))
        for part in ("cartpole_reinforce", "cartpole_gae_advantages", "cartpole_gae_switched")
    }
    for part, filtered in (("cartpole_reinforce", "adaptive"), ("cartpole_gae_advantages", "adaptive_refit")):
        assert 0.95 < means[part][filtered] / means[part]["running"] < 1.1
    without = means["cartpole_gae_switched"].pop("none")
    assert 1.5 * without < min(means["cartpole_gae_switched"].values())


# Publishing


def test_blocks_are_put_where_they_belong(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    before = "a\n<!-- said, from chapter 01 -->\nold\n<!-- end of said -->\nb\n<!-- other, from chapter 01 -->\nc\n"
    for page in ("README.md", "docs/page.md"):
        (tmp_path / page).write_text(before)
    (tmp_path / "docs" / "without.md").write_text("old")
    output = nbformat.v4.new_output("display_data", {"text/markdown": "\nnew \\1 words\n", "text/plain": "x"})
    cell = nbformat.v4.new_code_cell("1", outputs=[output], metadata={"tags": ["hide-input", "block:said"]})
    pages._publish_blocks(nbformat.v4.new_notebook(cells=[cell]))
    for page in ("README.md", "docs/page.md"):
        assert (tmp_path / page).read_text() == before.replace("old", "new \\1 words")
    assert (tmp_path / "docs" / "without.md").read_text() == "old"
