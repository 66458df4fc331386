"""The notebooks of the gallery run from start to end, in a real kernel."""

import nbformat
import pytest
from nbclient import NotebookClient
from snippets import ROOT

NOTEBOOKS = sorted((ROOT / "docs/gallery").glob("*.ipynb"))
FEWER_POINTS = ("N_POINTS = 1_000_000", "N_POINTS = 30_000")


def test_there_are_notebooks_and_each_is_listed():
    assert len(NOTEBOOKS) >= 10
    index = (ROOT / "docs/gallery/index.md").read_text("utf-8")
    assert all(f"({notebook.name})" in index for notebook in NOTEBOOKS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.spark] if path.stem == "spark" else [])
        for path in NOTEBOOKS
    ],
)
def test_a_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace(*FEWER_POINTS)
    NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_was_executed_in_order_and_without_an_error(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not any(output.output_type == "error" for cell in code for output in cell.outputs)
