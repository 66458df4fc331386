import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest
from snippets import ROOT, run

import agglo
from benchmarks.peers import insert_tables, read_results

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(agglo.__path__, "agglo.") if not module.name.endswith("._core")
)


def on_spark(values):
    """Mark what needs a Spark cluster."""
    return [pytest.param(value, marks=pytest.mark.spark) if "spark" in str(value) else value for value in values]


@pytest.fixture(autouse=True)
def _cluster_of_what_needs_one(request):
    """Examples on Spark run on the tests' own cluster, instead of starting Java once more."""
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("spark")


@pytest.mark.parametrize("page", on_spark(str(page.relative_to(ROOT)) for page in PAGES))
def test_the_snippets_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run((ROOT / page).read_text(encoding="utf-8"), Path(page).name)


def test_a_snippet_that_is_wrong_is_found_with_its_line():
    with pytest.raises(AssertionError, match=r'File "page.md", line 6(.|\n)*Expected:\n    3\nGot:\n    2'):
        run("# A page\n```python\none = 1\n```\n```python\n>>> one + one\n3\n```\n", "page.md")
    with pytest.raises(ZeroDivisionError) as error:
        run("# A page\n\n```python\n1 / 0\n```\n", "page.md")
    assert error.traceback[-1].lineno + 1 == 4


@pytest.mark.parametrize("name", on_spark(MODULES))
def test_the_examples_of_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", [name for name in agglo.__all__ if not inspect.ismodule(getattr(agglo, name))])
def test_every_public_name_has_an_example(name):
    found = doctest.DocTestFinder().find(getattr(agglo, name), name)
    assert any(test.examples for test in found)


@pytest.mark.parametrize("page", ["README.md", "docs/comparison.md"])
def test_the_tables_of_other_libraries_are_those_of_the_measurements(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    results = read_results(ROOT / "docs/paper/results/peers.jsonl")
    assert "| --- |" in insert_tables(text, results)
    assert insert_tables(text, results) == text
