"""The page that trains, in a real browser, with Python in it: `make play-offline` builds what is looked at here."""

import json

import numpy as np
import pytest

from kscore.labs import play

from .conftest import BUILD, Reader

PAGE = BUILD / "play"
SOON = 180_000  # milliseconds; on a machine with nothing else to do the default duel is over within some ten seconds
EASY = {"arms": [{"name": "running"}, {"name": "kscore"}], "learner": "reinforce", "seed": 4}  # the default duel


def asked(**question):
    """What Python answers here."""
    return json.loads(play.answer(json.dumps(question)))


class Window(Reader):
    """The page, open, with the Python in it up."""

    def ask(self, **question):
        """What Python answers there."""
        return self.page.evaluate("question => import('./python.js').then(({ ask }) => ask(question))", question)

    def at(self, fragment):
        """Follow a link to a state of the page."""
        self.page.evaluate("document.body.dataset.state = 'ready'; history.replaceState(null, '', '#')")
        self.page.evaluate("fragment => { location.hash = fragment }", fragment)
        self.page.wait_for_timeout(50)
        return self.page

    def address(self):
        return self.page.evaluate("location.hash")

    def state(self, wanted):
        self.page.wait_for_function(f"document.body.dataset.state === '{wanted}'", timeout=SOON)


@pytest.fixture(scope="module")
def opened(chromium, site):
    """One window for all of these tests, opened so that the default duel begins by itself."""
    if not (PAGE / "pyodide").exists():
        pytest.skip("build/play has no Python in it: 'make play-offline' needs npm and the package index, once")
    window = Window(chromium, site)
    window.page.goto(f"{site}/play/index.html?autorun=1")
    window.state("done")
    yield window
    window.page.close()


@pytest.fixture
def window(opened):
    if opened.page.locator("#stop").is_visible():
        opened.page.click("#stop")
        opened.state("ready")
    opened.complaints.clear()
    yield opened
    assert opened.complaints == []  # no error in the console, nothing asked of another machine


def close(one, other, at="answer"):
    """Compare two answers, number by number."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), at
        for key in one:
            close(one[key], other[key], f"{at}.{key}")
    elif isinstance(one, list) and one and isinstance(one[0], float):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-9), at
    elif isinstance(one, list):
        assert len(one) == len(other), at
        for i, pair in enumerate(zip(one, other, strict=True)):
            close(*pair, f"{at}[{i}]")
    elif isinstance(one, float):
        assert other == pytest.approx(one, rel=1e-9, abs=1e-9), at
    else:
        assert one == other, at


# The same numbers as here


def test_the_default_duel_begins_by_itself_and_ends(opened):
    assert opened.complaints == []
    trained = int(opened.page.evaluate("document.body.dataset.episodes"))
    assert trained == sum(
        int(cell.removeprefix("not in ")) for cell in opened.page.locator("#seeds-table tbody td").all_inner_texts()[:2]
    )
    assert "one run each" in opened.page.inner_text("#verdict").lower()


@pytest.mark.parametrize("Q, R, jump, outlier", [(0.01, 1.0, 4.0, 0.0), (1e-4, 1e-2, -3.0, 12.0), (0.0, 2.0, 0.0, 0.0)])
def test_the_filter_is_the_one_here(window, Q, R, jump, outlier):
    question = {"ask": "follow", "Q": Q, "R": R, "jump": jump, "outlier": outlier}
    close(asked(**question), window.ask(**question))


@pytest.mark.parametrize("learner, door", [("reinforce", "returns"), ("actor_critic", "advantages")])
def test_scores_and_gradients_are_those_here(window, learner, door):
    """Of the first episode, and of the eleventh, after ten updates."""
    names = list(play.ARMS)
    for cap in (1, 11):
        for pair in zip(names[::2], names[1::2], strict=True):
            duel = {"arms": [{"name": name, "door": door} for name in pair], "learner": learner, "seed": 4, "cap": cap}
            told = []
            for ask in (asked, window.ask):
                ask(ask="begin", **duel)
                told.append(ask(ask="go_on", seconds=60.0))
            close(*told)


def test_the_first_episodes_of_the_default_seed_are_those_here(window):
    lengths = []
    for ask in (asked, window.ask):
        ask(ask="begin", **EASY, cap=50)
        (seed,) = ask(ask="go_on", seconds=60.0)["seeds"]
        lengths.append([arm["lengths"] for arm in seed["arms"]])
    assert lengths[0] == lengths[1] and len(lengths[0][0]) == 50


@pytest.mark.slow
def test_a_hundred_seeds_have_the_medians_that_they_have_here(window):
    duel = {"arms": [{"name": "running"}, {"name": "episode"}], "seed": 0, "seeds": 100, "cap": 300}
    times = []
    for ask in (asked, window.ask):
        ask(ask="begin", **duel)
        seeds, over = {}, False
        while not over:
            told = ask(ask="go_on", seconds=5.0)
            over = told["over"]
            seeds |= {seed["seed"]: [len(arm["lengths"]) for arm in seed["arms"]] for seed in told["seeds"]}
        times.append(np.array([seeds[seed] for seed in range(100)]))
    for here, there in zip(*(table.T for table in times), strict=True):
        draws = np.median(np.random.default_rng(0).choice(here, (10_000, 100)), axis=1)
        low, high = np.quantile(draws, [0.025, 0.975])
        assert low <= np.median(there) <= high


# What a reader does


def test_two_arms_train_and_the_page_says_who_was_first(window):
    page = window.at("#a=episode&b=running&cap=90&seeds=3&seed=0")  # the first of them is solved before the cap
    page.click("#train")
    window.state("done")
    rows = [row.split("\t") for row in page.locator("#seeds-table tbody tr").all_inner_texts()]
    assert [row[0] for row in rows] == ["0", "1", "2"]
    won = []
    for _, *took, first in rows:
        a, b = (np.inf if "not in" in cell else int(cell) for cell in took)
        won.append("filter of episodes" if a < b else "Z-Score, running" if b < a else "neither")
        assert first == won[-1]
    verdict = page.inner_text("#verdict")
    assert verdict.startswith(f"Filter of episodes was first in {won.count('filter of episodes')} of 3 seeds")
    assert f"Z-Score, running in {won.count('Z-Score, running')}" in verdict and "Median episodes" in verdict
    assert {"neither"} < set(won)
    assert page.locator("#tally i").count() == 3 and "One square for each seed" in page.inner_text("#tally")
    assert page.locator("#curves path").count() > 6 and page.locator("#scene-a .pole").count() == 1
    assert page.locator("#scene-a [data-part=signal] circle").count() > 5


def test_one_seed_invites_to_twenty(window):
    page = window.at("#b.Q=0.5&cap=30")
    page.click("#train")
    window.state("done")
    page.click("#twenty")
    page.wait_for_function("document.querySelectorAll('#tally i').length > 1", timeout=SOON)
    assert page.input_value("#seeds") == "20" and "seeds=20" in window.address()


def test_the_page_can_be_used_while_it_trains(window):
    page = window.at("#seeds=50&a=none")
    page.click("#train")
    window.state("training")
    page.click("#tab-filter")
    page.fill("#Q", "4")
    page.fill("#R", "2")
    page.wait_for_function("document.querySelector('#settled').innerText.includes('0.732')", timeout=SOON)
    assert page.evaluate("document.body.dataset.state") == "training"
    page.click("#tab-train")
    page.click("#stop")
    window.state("ready")


def test_sliders_move_the_filter(window):
    page = window.at("#view=filter&R=1")
    page.wait_for_function("document.querySelector('#belief svg')")
    before = page.inner_text("#settled")
    slider = page.get_by_role("slider", name="How much the level drifts")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("words => document.querySelector('#settled').innerText !== words", arg=before)
    Q = float(page.input_value("#Q"))
    assert Q > 0.01 and f"Q={page.input_value('#Q')}" in window.address()
    gain = play.follow(Q=Q)["settled"]["gain"]
    page.wait_for_function(
        "words => document.querySelector('#settled').innerText.includes(words)", arg=f"{float(f'{gain:.3g}'):g}"
    )


def test_every_state_is_a_link(window):
    page = window.at("#a=adaptive&a.alpha=0.5&b=fading&b.door=advantages&b.rate=0.003&learner=actor_critic&seed=9")
    chosen = {
        key: page.locator(f'[id="{key}"]').input_value() for key in ("a", "a.alpha", "b.door", "b.rate", "learner")
    }
    assert list(chosen.values()) == ["adaptive", "0.5", "advantages", "0.003", "actor_critic"]
    page.select_option('[id="a"]', "ema")
    assert "alpha" not in window.address() and page.locator('[id="a.decay"]').input_value() == "0.99"
    page.fill('[id="a.decay"]', "0.9")
    assert "a.decay=0.9" in window.address() and "b.rate=0.003" in window.address()
    page.evaluate("dispatchEvent(new HashChangeEvent('hashchange'))")
    assert page.locator('[id="a.decay"]').input_value() == "0.9"


@pytest.mark.parametrize(
    "fragment, words",
    [
        ("#a=zcore", "a must be one of running, zscore"),
        ("#colour=red", "there is no setting “colour”"),
        ("#a=zscore&a.Q=1", "there is no setting “a.Q”"),
    ],
)
def test_a_link_that_is_not_understood_says_so(window, fragment, words):
    page = window.at(fragment)
    assert words in page.inner_text("#error") and page.locator("#train").is_enabled()


@pytest.mark.parametrize(
    "fragment, words",
    [
        ("#b.R=-1", "R must be positive, got -1"),
        ("#a.rate=fast", "learning rate must be a number, got 'fast'"),
        ("#seeds=1000", "seeds must be a whole number of at least 1 and at most 100, got 1000"),
        ("#seed=", "seed must be a whole number of at least 0"),
    ],
)
def test_an_error_in_python_is_a_sentence(window, fragment, words):
    page = window.at(fragment)
    page.click("#train")
    page.wait_for_function("!document.querySelector('#error').hidden")
    assert page.inner_text("#error").startswith(words) and "Traceback" not in page.inner_text("body")
    page.fill('[id="b.R"], #seeds' if "seeds" in fragment else '[id="a.rate"]', "5")
    assert page.locator("#train").is_visible()


def test_a_bad_number_for_the_filter_is_a_sentence_until_it_is_mended(window):
    page = window.at("#view=filter")
    page.fill("#R", "0")
    page.wait_for_function("document.querySelector('#error').innerText === 'R must be positive, got 0'")
    page.fill("#R", "2")
    page.wait_for_function("document.querySelector('#error').hidden")


# For everybody


def test_the_keyboard_is_enough(window):
    page = window.at("#cap=5")
    page.focus("#tab-train")
    page.keyboard.press("ArrowRight")
    assert page.locator("#view-filter").is_visible() and page.evaluate("document.activeElement.id") == "tab-filter"
    page.keyboard.press("ArrowLeft")
    assert page.locator("#view-train").is_visible()
    page.focus("#cap")
    page.keyboard.press("Enter")
    window.state("done")
    page.focus("#train")
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement.id === 'train' && document.querySelector('#stop').hidden")
    page.select_option('[id="b"]', "ema")
    assert page.evaluate("document.activeElement.id") == "b"  # the arm was drawn anew around it


NAMELESS = """() => [...document.querySelectorAll('input, select, button, [role=img]')].filter((element) => {
    if (element.closest('[hidden]') || !element.getClientRects().length) return false;
    return !(element.ariaLabel || element.labels?.[0]?.textContent.trim() || element.textContent.trim());
}).map((element) => element.outerHTML)"""


@pytest.mark.parametrize("view", ["train", "filter"])
def test_everything_has_a_name_and_fits_on_a_phone(window, view):
    page = window.at(f"#view={view}&cap=5")
    if view == "train":
        page.click("#train")
        window.state("done")
    page.wait_for_function(f"document.querySelector('#view-{view} .chart svg')")
    assert page.evaluate(NAMELESS) == []
    for roles, count in (
        ("[role=tab]", 2),
        ("[role=tabpanel]", 2),
        ("[role=status]", 1),
        ("[role=alert]", 1),
        ("h1", 1),
    ):
        assert page.locator(roles).count() == count
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(200)
    width = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size({"width": 1280, "height": 900})
    assert width <= 390, "the page scrolls sideways on a phone"


def test_the_page_says_where_python_comes_from(window):
    assert "brings Python along" in window.page.inner_text("#where")


def test_the_small_build_says_where_python_comes_from_and_when_it_cannot_be_had(chromium, site, opened):
    """As `make play` builds it, on a machine that has no network."""
    place = "https://python.example/full/"
    small = Window(chromium, site)
    config = (PAGE / "config.js").read_text(encoding="utf-8").replace("./pyodide/", place)
    small.page.route("**/config.js", lambda route: route.fulfill(body=config, content_type="text/javascript"))
    small.page.goto(f"{site}/play/index.html")
    small.state("error")
    assert f"from {place}" in small.page.inner_text("#where")
    said = small.page.inner_text("#error")
    assert said.startswith(f"Python could not be loaded from {place}.") and "make play-offline" in said
    assert f"asks the network for {place}pyodide.mjs" in small.complaints  # so a worker's requests are seen, too
    small.page.close()
