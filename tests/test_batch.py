"""The batch runner and its command line, on small notebooks made here."""

import re

import jupytext
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from kscore import batch
from kscore.__main__ import main


@pytest.fixture
def notebook(tmp_path):
    """Write a notebook from code cells and return its path."""

    def write(*sources, name="07_small"):
        cells = [new_markdown_cell("# Small\n\n[next](08_other.ipynb)")]
        cells += [new_code_cell(source) for source in sources]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = tmp_path / f"{name}.ipynb"
        nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
        jupytext.write(jupytext.read(path), path.with_suffix(".py"), fmt="py:percent")
        return path

    return write


@pytest.fixture
def collection(notebook, tmp_path, monkeypatch):
    """Two chapters, the second of which fails, in place of the real ones."""
    notebook("print('one')", name="00_good")
    notebook("a = 1", "raise RuntimeError('out of luck')", "a = 2", name="01_bad")
    monkeypatch.setattr(batch, "NOTEBOOKS", tmp_path)
    return tmp_path


def test_chapters_are_found_by_name_number_and_glob(collection):
    def found(*patterns):
        return [path.stem for path in batch.chapters(patterns)]

    assert found() == found("*") == found("1", "00") == ["00_good", "01_bad"]
    assert found("0") == found("00_good") == found("*go*") == ["00_good"]
    with pytest.raises(ValueError, match="'00_god'.*did you mean '00_good'"):
        found("00_god")


def test_a_good_notebook_is_executed_and_its_page_links_to_pages(notebook, tmp_path):
    target = tmp_path / "out" / "07_small.ipynb"
    outcome = batch.execute(notebook("6 * 7"), target)
    assert outcome.status == "ok" and outcome.error == "" and outcome.seconds > 0
    page = batch.write_page(target).read_text(encoding="utf-8")
    assert "42" in page and 'href="08_other.html"' in page and "08_other.ipynb" not in page


def test_a_failing_notebook_is_an_outcome_with_its_cell_and_error(notebook, tmp_path):
    outcome = batch.execute(notebook("a = 1", "a / 0"), tmp_path / "out.ipynb")
    assert outcome.status == "failed"
    assert outcome.error.startswith("cell 2: ZeroDivisionError")


def test_parameters_reach_the_notebook(notebook, tmp_path):
    source = notebook("size: int = 1", "print('size', size)")
    cells = nbformat.read(source, as_version=4)
    cells.cells[1].metadata.tags = ["parameters"]
    nbformat.write(cells, source)
    batch.execute(source, tmp_path / "out.ipynb", {"size": 5})
    assert "size 5" in (tmp_path / "out.ipynb").read_text()


def test_the_command_runs_all_reports_all_and_fails_if_one_failed(collection, tmp_path, capsys):
    out = tmp_path / "build"
    assert main(["run", "--out", str(out)]) == 1
    printed = capsys.readouterr().out
    assert [line.split()[:2] for line in printed.splitlines()[3:6]] == [
        ["notebook", "status"], ["00_good", "ok"], ["01_bad", "failed"]]
    assert "01_bad: cell 2: RuntimeError: out of luck" in printed
    assert "out of luck" in (out / "01_bad.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["run", "publish"])
def test_a_pair_that_was_not_synced_is_refused_and_left_alone(collection, tmp_path, capsys, command):
    script, source = collection / "00_good.py", collection / "00_good.ipynb"
    main(["run", "00", "--out", str(tmp_path / "build")])
    script.write_text(script.read_text() + "\n# %%\nnew = 1\n")
    before = script.read_bytes(), source.read_bytes()
    where = "--out" if command == "run" else "--from"
    assert main([command, "00", where, str(tmp_path / "build")]) == 2
    assert "00_good.ipynb and 00_good.py differ" in capsys.readouterr().err
    assert (script.read_bytes(), source.read_bytes()) == before


def test_the_report_is_one_file_of_words_and_figures(notebook, tmp_path):
    source = notebook("secret = 1  # a comment", """from kscore import plots
fig, ax = plots.panels()
plots.show(fig, "a caption", "an empty pair of axes")""", name="11_replication_report")
    content = nbformat.read(source, as_version=4)
    content.cells[1:1] = [new_markdown_cell("## Setup"), new_markdown_cell("Kept.\n\nText."),
                          new_markdown_cell("**Exercise 1.** Think.")]
    nbformat.write(content, source)
    assert batch.execute(source, tmp_path / "run.ipynb").status == "ok"
    page = batch.write_report(tmp_path / "run.ipynb", tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Kept." in page and "a caption" in page and 'alt="an empty pair of axes"' in page
    assert "secret" not in page and ">Setup" not in page and "Exercise" not in page
    assert "@page" in page and not re.search(r"(src|href)=.?https?:", page) and "<script" not in page


def test_publish_copies_outputs_and_nothing_else(notebook, tmp_path):
    source = notebook("print('hello')")
    before = nbformat.read(source, as_version=4)
    executed = tmp_path / "executed.ipynb"
    batch.execute(source, executed)
    batch.publish([(source, executed)])
    after = nbformat.read(source, as_version=4)
    assert after.cells[1].outputs[0].text == "hello\n"
    assert after.cells[1].execution_count == 1
    assert [(c.id, c.source, c.metadata) for c in after.cells] == [(c.id, c.source, c.metadata) for c in before.cells]


def test_publishing_again_changes_nothing_although_pandas_names_its_tables_at_random(notebook, tmp_path):
    source = notebook("import pandas as pd", "pd.DataFrame({'a': [1]}).style")
    published = []
    for executed in (tmp_path / "first.ipynb", tmp_path / "second.ipynb"):
        batch.execute(source, executed)
        batch.publish([(source, executed)])
        published.append([cell.outputs for cell in nbformat.read(source, as_version=4).cells[1:]])
    assert published[0] == published[1] and "T_" in published[0][1][0].data["text/html"]


@pytest.mark.parametrize("change", ["edited", "parameterized", "failed"])
def test_publish_refuses_what_is_not_the_chapter_and_leaves_it_alone(notebook, tmp_path, change):
    source = notebook("1 / 0" if change == "failed" else "x = 1")
    executed = tmp_path / "executed.ipynb"
    batch.execute(source, executed, {"x": 2} if change == "parameterized" else None)
    if change == "edited":
        content = nbformat.read(source, as_version=4)
        content.cells[1].source = "x = 3"
        nbformat.write(content, source)
    good = notebook("y = 1", name="06_good")
    ran = tmp_path / "ran.ipynb"
    batch.execute(good, ran)
    before = good.read_bytes(), source.read_bytes()
    with pytest.raises(ValueError, match="holds an error" if change == "failed" else "run it again before publishing"):
        batch.publish([(good, ran), (source, executed)])
    assert (good.read_bytes(), source.read_bytes()) == before


@pytest.mark.parametrize(("arguments", "message"), [
    (["run", "99"], "chapter must be one of"),
    (["run", "--profile", "quik"], "did you mean 'quick'"),
    (["study", "cartpol_ppo"], "did you mean 'cartpole_ppo'"),
    (["publish", "--from", "nowhere"], "does not exist: run the chapter first"),
])
def test_mistakes_on_the_command_line_get_a_sentence(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_list_names_the_chapters(collection, capsys):
    assert main(["list"]) == 0
    assert capsys.readouterr().out.split() == ["00_good", "01_bad"]


def test_the_quick_profile_names_only_chapters_and_parameters_that_exist():
    import papermill

    for chapter, parameters in batch.profile("quick").items():
        known = papermill.inspect_notebook(batch.NOTEBOOKS / f"{chapter}.ipynb")
        assert set(parameters) <= set(known), chapter
