import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import agglo
from agglo.cli.app import command_to_type

ROOT = Path(__file__).parent.parent


def test_every_public_name_is_there():
    for name in agglo.__all__:
        found = getattr(agglo, name)
        assert inspect.ismodule(found) or found.__name__ == name
    assert set(agglo.__all__) <= set(dir(agglo))


def test_moved_modules_are_reachable_by_their_old_names():
    with pytest.warns(FutureWarning, match=r"agglo\.baselines is agglo\.paper\.baselines now: use that"):
        assert agglo.baselines.METHODS
    with pytest.warns(FutureWarning, match=r"agglo\.handover is agglo\.topic_models now"):
        assert agglo.handover is agglo.topic_models


def test_optional_libraries_are_not_needed_to_look_at_the_package():
    program = """
import sys
sys.modules["pyspark"] = None  # as if it were not installed
import agglo
from agglo import *
assert not hasattr(agglo, "spark")
assert SCC is agglo.SCC
import pydoc
assert "SCC" in pydoc.render_doc(agglo)
try:
    agglo.spark
except AttributeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = "agglo.spark cannot be imported: agglo.spark needs pyspark, which is not installed: pip install"
    assert done.stdout.startswith(expected)


def test_the_package_runs_as_a_program():
    done = subprocess.run([sys.executable, "-m", "agglo", "--version"], capture_output=True, text=True)
    assert done.stdout.startswith(f"agglo {agglo.__version__} "), done.stderr


@pytest.mark.parametrize(
    ("found", "program", "expected"),
    [
        ("/usr/bin/agglo", "/usr/bin/agglo", "agglo"),
        (None, "/home/me/.venv/bin/agglo", "/home/me/.venv/bin/agglo"),
        (None, "/home/me/agglo/__main__.py", f"{sys.executable} -m agglo"),
    ],
)
def test_suggested_commands_start_the_program_that_runs(monkeypatch, found, program, expected):
    monkeypatch.setattr("shutil.which", lambda name: found)
    monkeypatch.setattr("sys.argv", [program])
    assert command_to_type() == expected


def test_a_name_that_is_not_there_is_an_error():
    with pytest.raises(AttributeError, match="module 'agglo' has no attribute 'scipy_clusters'"):
        agglo.scipy_clusters  # noqa: B018


def test_the_version_is_that_of_the_installed_package():
    from importlib.metadata import version

    assert agglo.__version__ == version("agglo")


@pytest.mark.parametrize("command", ["import agglo"])
def test_importing_waits_for_nothing_heavy(command):
    heavy = "{'numpy', 'scipy', 'sklearn', 'pyarrow', 'matplotlib', 'pandas', 'pyspark'}"
    command += f"; import sys; print(sorted({heavy} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    assert loaded == "[]\n"


def test_types_are_shipped():
    assert (Path(agglo.__file__).parent / "py.typed").exists()


def test_links_between_pages_lead_somewhere():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^):#]+)\)", page.read_text("utf-8"))]
    assert len(links) > 5
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []


def test_the_test_command_of_the_readme_is_what_ci_runs():
    assert "```\n./run-tests\n```" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\n./run-tests " in (ROOT / ".ci/tests").read_text(encoding="utf-8")
    assert "run_parts tests " in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_other_files_name_the_version_and_requirements_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == agglo.__version__
    page = json.loads((ROOT / "explorer/package.json").read_text("utf-8"))
    assert page["version"] == agglo.__version__
    recipe = (ROOT / "conda/meta.yaml").read_text("utf-8")
    assert f'version = "{agglo.__version__}"' in recipe
    with open(ROOT / "pyproject.toml", "rb") as file:
        required = tomllib.load(file)["project"]["dependencies"]
    listed = re.findall(r"^    - (.*)$", recipe, re.MULTILINE)
    assert {name.replace(">=", " >=") for name in required} <= set(listed)
