"""JupyterLab: opening a chapter and saving it changes neither of its two files, and the sliders work."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import nbformat
import pytest
from conftest import eventually
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from kscore.project import NOTEBOOKS, ROOT

pytestmark = pytest.mark.slow
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OWN = (
    "HOME",
    "IPYTHONDIR",
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR",
)  # nothing of the user's is read or written
SETTLED = """async () => {
    const app = window.jupyterapp; await app.restored;
    let panel;
    while (!(panel = app.shell.currentWidget)?.sessionContext) await new Promise(go => setTimeout(go, 50));
    await panel.context.ready; await panel.sessionContext.ready;
    const kernel = panel.sessionContext.session.kernel;
    await kernel.info; await kernel.spec;
    while (kernel.status !== "idle") await new Promise(go => setTimeout(go, 50));
    await new Promise(go => setTimeout(go, 500));
    return panel.context.model.dirty;
}"""


def command_of_make_lab():
    """The options with which `make lab` starts JupyterLab, without the folder."""
    recipe = re.search(r"jupyter lab (.*) --notebook-dir=notebooks", (ROOT / "Makefile").read_text(encoding="utf-8"))
    return shlex.split(recipe[1])


def test_student_copies_are_opened_where_they_are_written_and_outlive_a_cleaning(tmp_path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^student:.*\n((?:\t.*\n)+)", makefile, re.M)[1]
    written = re.search(r"course student (\S+) --keep", recipe)[1]
    opened = re.search(r"--notebook-dir=(\S+)", recipe)[1]
    assert written == opened and written in re.search(r"^lab:.*\n((?:\t.*\n)+)", makefile, re.M)[1]
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in (f"{written}/mine.ipynb", "build/book/index.html", "build/status.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for _ in range(2):
        subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()] == [
        "Makefile",
        f"{written}/mine.ipynb",
    ]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab on copies of the chapters, and their folder."""
    if CHROMIUM is None:
        pytest.skip("no browser is installed: JupyterLab is looked at in chromium, a package of that name on Debian")
    home = tmp_path_factory.mktemp("lab")
    folder = home / "notebooks"
    shutil.copytree(NOTEBOOKS, folder, ignore=shutil.ignore_patterns(".*"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        Path(sys.executable).parent / "jupyter",
        "lab",
        *command_of_make_lab(),
        f"--notebook-dir={folder}",
        "--allow-root",
        "--no-browser",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=chapters",
        "--expose-app-in-browser",
    ]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=ROOT, stdout=log, stderr=log, env=os.environ | {name: str(home / name.lower()) for name in OWN}
        )
        try:
            assert eventually(lambda: answers(port), seconds=120), (home / "log").read_text()
            yield f"http://127.0.0.1:{port}", folder
        finally:
            server.terminate()  # it ends its kernels
            server.wait(60)


def answers(port):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/api?token=chapters").close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("chromium"), executable_path=CHROMIUM, headless=True, args=QUIET
        )
        yield context
        context.close()


def opened(lab, browser, name):
    """A page with a notebook whose kernel is ready, and whether that changed anything."""
    page = browser.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{lab[0]}/lab/tree/{name}?token=chapters&reset")
    page.wait_for_function("() => window.jupyterapp")
    return page, page.evaluate(SETTLED)


def close(page):
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.close()


@pytest.mark.parametrize("name", ["00_start_here.ipynb", "05_actor_critic_cartpole.ipynb"])
def test_opening_and_saving_a_chapter_changes_nothing(lab, browser, name):
    pair = [lab[1] / name, (lab[1] / name).with_suffix(".py")]
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in pair]
    page, changed = opened(lab, browser, name)
    with page.expect_response(lambda r: r.request.method == "PUT" and r.url.split("?")[0].endswith(name)) as saved:
        page.keyboard.press("Control+s")
    close(page)
    assert saved.value.ok and not changed
    for path, (content, written) in zip(pair, before, strict=True):
        assert path.stat().st_mtime_ns > written, f"{path.name} was not saved"
        assert path.read_bytes() == content, f"{path.name} is not the same"


def test_the_sliders_are_there_once_their_cell_has_run(lab, browser):
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [new_code_cell("from kscore.labs import sliders\nsliders.explore()"), new_markdown_cell("after")]
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), lab[1] / "play.ipynb")
    page, _ = opened(lab, browser, "play.ipynb")
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.locator(".kscore-explore svg").first.wait_for()
    slider = page.get_by_label("process noise Q")
    slider.focus()
    for key in ("ArrowRight", "ArrowUp", "ArrowLeft"):  # with which JupyterLab moves between cells
        page.keyboard.press(key)
    assert slider.get_attribute("aria-valuetext") == "0.018"
    assert page.locator(".kscore-explore").evaluate("root => root.series.setting.Q") == pytest.approx(10**-1.75)
    close(page)
