import json
import re
import signal
import subprocess
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from children import TIMEOUT, python_child
from cli_runs import run
from explorable import TEXTS, write_run
from forests import chain

import agglo
from agglo.explore import Explorer, open_run, open_tree
from agglo.explore.page import page_data, render_page


@pytest.fixture
def folder(tmp_path):
    write_run(tmp_path / "animals")
    return tmp_path / "animals"


def test_the_command_prints_a_link_and_ends_with_ctrl_c(folder):
    program = "import agglo.cli; agglo.cli.main()"
    with python_child(program, "explore", folder, "--json", stdout=subprocess.PIPE, text=True) as child:
        text = ""
        while not text.rstrip().endswith("}"):
            line = child.stdout.readline()
            assert line, text
            text += line
        url = json.loads(text)["url"]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", url)
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            assert b"agglo explore" in answer.read()
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=TIMEOUT) == 0


def test_the_command_writes_one_file(folder, tmp_path):
    out, _ = run("explore", folder, "--html", tmp_path / "page.html")
    assert out == f"written  {tmp_path / 'page.html'}\n"
    assert (tmp_path / "page.html").read_text("utf-8") == render_page(open_run(folder))
    run("explore", folder, "--html", tmp_path / "nowhere" / "page.html", code=4)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere"], 3, "cannot read nowhere: there is no such folder or file"),
        (["RUN", "--column", "title"], 2, "--column names a column of --items: pass that, too"),
        (["RUN", "--items", "nowhere.csv"], 3, "nowhere.csv cannot be read: there is no such file"),
        (["RUN", "--port", "70000"], 2, "65535"),
    ],
)
def test_errors_of_opening_a_run(folder, words, code, message):
    _, err = run("explore", *[folder if word == "RUN" else word for word in words], code=code)
    assert message in " ".join(re.sub(r"[│\s]+", " ", err).split())


def test_a_port_in_use_is_reported(folder):
    with Explorer(open_run(folder)) as other:
        _, err = run("explore", folder, "--port", other.port, code=2)
    assert f"the page cannot be served on port {other.port}: " in err


def test_a_tree_in_memory_shows_itself_in_a_notebook():
    X = np.random.default_rng(0).normal(size=(len(TEXTS), 3))
    tree = agglo.scc(agglo.neighbor_graph(X, 5))
    with tree.explore(TEXTS, {"norm": np.linalg.norm(X, axis=1)}) as explorer:
        html = explorer._repr_html_()
        assert html.startswith("<iframe srcdoc='<!doctype html>")
        assert explorer.url not in html
        assert html.count("'") == 2, "no text ends the attribute"
        assert len(html) < 100_000
        assert repr(explorer) == f"Explorer({explorer.url})"
        assert explorer.run.items.columns == ["norm"]
        assert explorer.run.name(0) == TEXTS[0]
    with pytest.raises(ValueError, match=r"there are 1 items for 20 points: pass one per point"):
        tree.explore(["one"])
    with pytest.raises(ValueError, match=r"a column 'text', but texts is given, too: rename that column"):
        tree.explore(TEXTS, {"text": TEXTS})


def test_a_page_holds_as_much_as_is_allowed():
    rng = np.random.default_rng(0)
    tree = agglo.scc(agglo.neighbor_graph(rng.normal(size=(3000, 4)), 10))
    opened = open_tree(tree, [f"text {i} </script><script>alert(1)</script>" for i in range(3000)], None)
    text = render_page(opened, 300_000)
    assert 60_000 < len(text.encode()) <= 300_000
    assert text.count("</script>") == 2, "those of the page itself"
    assert "alert(1)</script" not in text
    data = json.loads(re.search(r'id="agglo-data">(.*?)</script>', text, re.DOTALL)[1])
    assert data["boxes"][0]["size"] == 3000
    inside = [box["size"] for box in data["boxes"] if box["parent"] == 0]
    assert sum(inside) == 3000, "what is left out is in boxes of many"
    with pytest.raises(ValueError, match=r"max_bytes=1000 is too small for a page"):
        render_page(opened, 1000)


def test_the_page_is_built_of_packages_by_name_and_hash_alone():
    lock = (Path(__file__).parents[2] / "explorer/package-lock.json").read_text()
    assert '"resolved"' not in lock
    packages = json.loads(lock)["packages"]
    assert all("integrity" in about for name, about in packages.items() if name)


def test_trees_of_one_point_and_of_a_long_chain_can_be_explored():
    one = agglo.Hierarchy([-1], [0.0], [1], [0], chain(2).rounds[:0])
    assert [box.node for box in page_data(open_tree(one, ["alone"], None), 10)["boxes"]] == [0]
    long = page_data(open_tree(chain(3000), None, None), 500)
    assert sum(box.size for box in long["boxes"] if box.parent == 0) == 3000
