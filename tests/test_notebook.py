"""A notebook that is executed by a real kernel."""

import base64
import re

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = [
    """
import agglo
from sklearn.datasets import load_digits
X = load_digits().data[:300]
clusterer = agglo.SCC(verbose=True, n_jobs=1).fit(X)
""",
    "clusterer",
    "clusterer.tree_",
    "clusterer.graph_",
    "from agglo.plot import draw; draw(clusterer.tree_)",
    "explorer = clusterer.tree_.explore(); explorer",
    "explorer.close()",
]


@pytest.fixture(scope="module")
def outputs():
    """Return the outputs of each cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    nbformat.validate(notebook)
    return [cell.outputs for cell in notebook.cells]


def data_of(outputs):
    assert len(outputs) == 1, outputs
    return outputs[0]["data"]


def test_a_fit_shows_complete_progress_bars(outputs):
    html = data_of(outputs[0])["text/html"]
    assert re.findall(r">(\w+)</span>", html)[-1] == "rounds"
    assert re.findall(r"(\d+) %", html) == ["100"] * html.count("<progress")


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        (1, ["sk-estimator", "Labels", "Hierarchy"]),
        (2, ["Hierarchy", "300", "average", "cosine"]),
        (3, ["NeighborGraph", "300", "similarity"]),
    ],
)
def test_objects_are_summarized(outputs, cell, texts):
    data = data_of(outputs[cell])
    assert "text/plain" in data
    assert all(text in data["text/html"] for text in texts)


def test_a_drawing_is_an_image(outputs):
    assert base64.b64decode(data_of(outputs[4])["image/png"]).startswith(b"\x89PNG")


def test_the_explorer_is_a_page_in_the_cell(outputs):
    html = data_of(outputs[5])["text/html"]
    assert html.startswith("<iframe srcdoc='<!doctype html>")
    assert "127.0.0.1" not in html
    assert len(html) < 1_100_000
