import http.client
import io
import json
import socket
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import replace
from typing import get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from explorable import TEXTS, assert_has_type, write_run
from hypothesis import given, settings
from hypothesis import strategies as st

from agglo import Hierarchy
from agglo.explore import Explorer, api, open_run
from agglo.explore.api import ROUTES
from agglo.explore.items import Items, make_table
from agglo.io.files import write_arrow
from agglo.testing import assert_same_hierarchy


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "animals"
    write_run(folder)
    (folder.parent / "secret.txt").write_text("a secret")
    with Explorer(open_run(folder)) as explorer:
        yield explorer


def ask(explorer, path, **query):
    address = f"http://127.0.0.1:{explorer.port}/api/{path}?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(address, headers={"X-Agglo-Token": explorer.token})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def got(explorer, path, **query):
    """Return the response of a path, which must have the fields and types of its handler's annotation."""
    status, content = ask(explorer, path, **query)
    assert status == 200, content
    value = json.loads(content)
    assert_has_type(value, get_type_hints(ROUTES[f"/api/{path}"])["return"])
    return value


def raw(explorer, target, headers, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", explorer.port, timeout=60)
    connection.putrequest(method, target, skip_host=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


# What is answered


def test_the_tree_is_that_of_the_folder(served, tmp_path):
    tree = write_run(tmp_path / "run")
    assert_same_hierarchy(open_run(tmp_path / "run").tree, tree)
    run = got(served, "run")
    assert (run["points"], run["nodes"], run["root"]) == (tree.n_leaves, tree.n_nodes, tree.n_nodes - 1)
    assert (run["title"], run["texts"]) == ("animals", True)
    assert run["columns"] == ["count", "source", "score"]


def test_views_have_names_paths_and_colours(served):
    root = got(served, "run")["root"]
    view = got(served, "view", node=root)
    assert view["boxes"][0]["name"].startswith("cluster of ")
    assert [crumb["node"] for crumb in view["path"]] == [root]
    coarse = got(served, "view", node=root, clusters=4)
    inner = next(box for box in coarse["boxes"][1:] if box["round"] > 0)
    deeper = got(served, "view", node=inner["node"], colour="source")
    assert deeper["path"][-1]["node"] == inner["node"]
    assert deeper["legend"] == ["web", "book"]
    leaves = [box for box in deeper["boxes"] if box["round"] == 0 and box["node"] >= 0]
    for box in leaves:
        assert (box["value"], box["share"]) == ([0, 1, -1][box["node"] % 3], 1.0)
    numbers = got(served, "view", node=root, colour="score", clusters=5)
    assert numbers["span"] == [0.0, (len(TEXTS) - 1) / 2]
    tree = served.run.tree
    innermost = [box for box in numbers["boxes"] if box["value"] is not None]
    assert len(innermost) > 1
    for box in innermost:
        scores = [leaf / 2 for leaf in tree.leaves(box["node"]).tolist() if leaf != 4]
        assert box["value"] == pytest.approx(np.mean(scores))


def test_no_box_has_the_name_of_the_box_around_it(served):
    run = replace(served.run, names=None)  # the name of a cluster is then the text of its first example
    assert run.name(run.tree.n_nodes - 1) in TEXTS
    names = pa.table(
        {
            "name": ["frogs"] * (run.tree.n_nodes - run.tree.n_leaves),
            "terms": [["frogs", "rare frogs", "pond"]] * (run.tree.n_nodes - run.tree.n_leaves),
            "examples": served.run.names["examples"],
        }
    )
    run = replace(run, names=names)
    for clusters in (2, 5, 20):
        boxes = api.view(run, node=run.tree.n_nodes - 1, clusters=clusters).boxes
        assert boxes[0].name == "frogs"
        assert all(box.name != boxes[box.parent].name for box in boxes[1:])


def test_children_details_and_items_are_those_of_the_tree(served):
    tree = served.run.tree
    root = tree.n_nodes - 1
    below = got(served, "children", node=root)
    assert sorted(child["node"] for child in below) == tree.children(root).tolist()
    assert got(served, "children", node=root, offset=1, limit=1) == below[1:2]
    node = tree.n_leaves
    details = got(served, "node", node=node)
    points = tree.leaves(node).tolist()
    assert details["size"] == len(points)
    assert details["occurrences"] == sum(point + 1 for point in points)
    assert details["cohesion"] == pytest.approx(1 - tree.height[node])
    assert [item["point"] for item in details["examples"]] == points[:5]
    assert details["terms"] == TEXTS[points[0]].split()[:3]
    pages = [got(served, "items", node=root, offset=offset, limit=7) for offset in range(0, 28, 7)]
    assert {page["total"] for page in pages} == {tree.n_leaves}
    found = [item["point"] for page in pages for item in page["items"]]
    assert found == list(range(tree.n_leaves))[::-1], "the most frequent come first"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FROG", 8),
        ("rhino", 6),
        ("ضفدع", 1),
        ("🐸", 1),
        ("<script>", 1),
        ("%_*[", 0),
        ("  ", 0),
        ("3", 1),
        ("99", 0),
    ],
)
def test_search_finds_texts_and_numbers_and_leads_to_them(served, text, expected):
    found = got(served, "search", text=text)
    assert found["total"] == len(found["items"]) == expected
    for item in found["items"]:
        assert text.lower() in item["text"].lower() or item["point"] == 3
        path = got(served, "path", node=item["point"])
        assert path[-1]["name"] == item["text"]


def test_exports_are_tables_that_others_read(served):
    tree = served.run.tree
    nodes = [tree.n_nodes - 2, 0]
    _, text = ask(served, "export", nodes=",".join(map(str, nodes)))
    _, content = ask(served, "export", nodes=",".join(map(str, nodes)), format="parquet")
    table = pq.read_table(io.BytesIO(content))
    points = [*served.run.points(nodes[0]).tolist(), 0]
    assert table.column_names == ["cluster", "name", "point", "text", "count", "source", "score"]
    assert table["point"].to_pylist() == points
    assert table["text"].to_pylist() == [TEXTS[point] for point in points]
    assert table["cluster"].to_pylist() == [nodes[0]] * (len(points) - 1) + [0]
    read = pyarrow.csv.read_csv(io.BytesIO(text), parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True))
    assert read["text"].to_pylist() == table["text"].to_pylist()


def test_a_run_without_items_shows_numbers(tmp_path):
    tree = write_run(tmp_path)
    with Explorer(open_run(tmp_path / "tree.parquet")) as explorer:
        run = got(explorer, "run")
        assert (run["texts"], run["columns"], run["title"]) == (False, [], "tree.parquet")
        assert got(explorer, "node", node=3)["name"] == "point 3"
        root = got(explorer, "node", node=tree.n_nodes - 1)
        assert root["name"] == f"cluster {tree.n_nodes - 1}"
        first = [item["point"] for item in root["examples"]]
        heights = tree.height[tree.parent[: tree.n_leaves]]
        assert heights[first].tolist() == np.sort(heights)[:5].tolist(), "those that merged first stand for it"
        assert [item["point"] for item in got(explorer, "search", text="4")["items"]] == [4]


def test_items_may_come_from_a_file_of_ones_own(tmp_path):
    write_run(tmp_path / "run")
    for name in ("items.arrow", "names.arrow"):
        (tmp_path / "run" / name).unlink()
    lines = ["kind,title", *(f'{i},"title {i}"' for i in range(len(TEXTS)))]
    (tmp_path / "titles.csv").write_text("\n".join(lines))
    opened = open_run(tmp_path / "run", tmp_path / "titles.csv", "title")
    assert opened.items.texts(np.array([3])) == ["title 3"]
    assert opened.items.columns == ["kind"]
    assert opened.name(opened.tree.n_nodes - 1).startswith("title ")
    assert open_run(tmp_path / "run", tmp_path / "titles.csv").items.has_text
    with pytest.raises(ValueError, match=r"titles.csv has no column 'text': pass one of 'kind', 'title'"):
        open_run(tmp_path / "run", tmp_path / "titles.csv", "text")
    (tmp_path / "titles.csv").write_text("title\none\n")
    with pytest.raises(ValueError, match=r"titles.csv does not fit the tree: there are 1 items for 20 points"):
        open_run(tmp_path / "run", tmp_path / "titles.csv")


def test_damaged_files_of_a_run_are_reported(tmp_path):
    tree = write_run(tmp_path)
    names = tmp_path / "names.arrow"
    whole = names.read_bytes()
    names.write_bytes(whole[:100])
    with pytest.raises(
        ValueError, match=r"names.arrow cannot be read: it is damaged, truncated or not a valid Arrow file"
    ):
        open_run(tmp_path)
    names.write_bytes((tmp_path / "items.arrow").read_bytes())
    with pytest.raises(ValueError, match=r"names.arrow does not fit the tree: it has no column 'examples'"):
        open_run(tmp_path)
    for column, wrong, message in [
        ("name", [None], r"a node has no name, or an example is not a point of the tree; run"),
        ("name", [[1]], r"names.arrow has columns of wrong types"),
        ("terms", [[None]], r"names.arrow does not fit the tree"),
        ("terms", [None], r"names.arrow does not fit the tree"),
        ("examples", [[]], r"names.arrow does not fit the tree"),
        ("examples", [[-1]], r"names.arrow does not fit the tree"),
        ("examples", [[tree.n_leaves]], r"names.arrow does not fit the tree"),
        ("examples", [["a"]], r"names.arrow has columns of wrong types"),
    ]:
        table = pa.ipc.open_file(whole).read_all()
        place = table.column_names.index(column)
        write_arrow(table.set_column(place, column, pa.array(wrong * table.num_rows)), names)
        with pytest.raises(ValueError, match=message):
            open_run(tmp_path)
    names.write_bytes(whole)
    Hierarchy(tree.parent[-1:], tree.height[:1], tree.size[:1], tree.round[:1], tree.rounds[:0], {}).save(
        tmp_path / "tree.parquet"
    )
    with pytest.raises(ValueError, match=r"does not fit the tree"):
        open_run(tmp_path)


def test_very_long_texts_are_cut_to_be_shown_and_kept_to_be_exported():
    items = Items(1, make_table(["x" * 10_000_000], None))
    assert len(items.texts(np.array([0]))[0]) == 2000
    assert items.rows(np.array([0]))["text"].to_pylist() == ["x" * 10_000_000]


# Who is answered


def test_the_server_is_on_this_machine_alone(served):
    assert served._server.server_address[0] == "127.0.0.1"
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1"}:
        if not address.startswith("127."):
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((address, served.port), timeout=5)


def test_questions_need_the_token_and_the_right_name(served):
    host = {"Host": f"127.0.0.1:{served.port}"}
    status, content = raw(served, "/api/run", host)
    assert status == 403
    assert json.loads(content) == {"error": "the token is missing or wrong: open the printed link"}
    assert raw(served, "/api/run", {**host, "X-Agglo-Token": "no"})[0] == 403
    assert raw(served, "/api/run", {**host, "X-Agglo-Token": served.token})[0] == 200
    assert raw(served, f"/api/run?token={served.token}", {"Host": f"localhost:{served.port}"})[0] == 200
    for name in ("evil.example", f"evil.example:{served.port}", "127.0.0.1", ""):
        status, content = raw(served, f"/api/run?token={served.token}", {"Host": name})
        assert status == 403
        assert b"the Host header must be this server's own address" in content


@pytest.mark.parametrize(
    "target",
    ["/../secret.txt", "/static/../../secret.txt", "/%2e%2e/secret.txt", "//secret.txt", "/items.arrow",
     "/app.js/../../secret.txt", "/..\\secret.txt", "/api/../secret.txt", "/tree.parquet", "/secret.txt%00.js"],
)  # fmt: skip
def test_no_file_is_read_by_its_name(served, target):
    status, content = raw(served, target, {"Host": f"127.0.0.1:{served.port}", "X-Agglo-Token": served.token})
    assert status == 404
    assert b"a secret" not in content


@pytest.mark.parametrize(
    ("path", "query", "message"),
    [
        ("view", {}, "node is missing: pass node=..."),
        ("view", {"node": "one"}, "node='one' is not an integer: pass an integer"),
        ("view", {"node": -1}, "node=-1 is too small: pass at least 0"),
        ("view", {"node": 10**6}, "there is no node 1000000: the tree has nodes 0 to"),
        ("view", {"node": 10**40}, "is too large or not finite"),
        ("view", {"node": 0, "clusters": 10**6}, "clusters=1000000 is too large: pass at most 500"),
        ("view", {"node": 0, "share": "nan"}, "share=nan is too large or not finite"),
        (
            "view",
            {"node": 0, "colour": "age"},
            "no column 'age' to colour by: pass one of 'count', 'source'",
        ),
        ("items", {"node": 0, "page": 1}, "there is no parameter 'page': pass one of node, offset, limit"),
        ("search", {"text": "x" * 10_001}, "text has 10001 characters: pass at most 10000"),
        ("export", {"nodes": "1,,2"}, "nodes='' is not an integer"),
        ("export", {"nodes": "1", "format": "xlsx"}, "format='xlsx' is unknown: pass one of csv, parquet"),
        ("node", {"node": "٣"}, "node='٣' is not an integer"),
    ],
)
def test_wrong_questions_are_answered_with_what_is_wrong(served, path, query, message):
    status, content = ask(served, path, **query)
    assert status == 400
    assert message in json.loads(content)["error"]


def test_a_parameter_given_twice_is_refused(served):
    headers = {"Host": f"127.0.0.1:{served.port}", "X-Agglo-Token": served.token}
    status, content = raw(served, "/api/node?node=1&node=2", headers)
    assert (status, json.loads(content)["error"]) == (400, "node is given 2 times: pass it once")


WORDS = st.one_of(
    st.integers(-5, 60).map(str), st.text(max_size=8), st.sampled_from(["1,2", "csv", "source", "1e9"])
)


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(ROUTES)),
    st.dictionaries(st.sampled_from(["node", "clusters", "limit", "text", "nodes", "colour", "x"]), WORDS),
)
def test_any_question_has_an_answer_or_a_reason(served, path, query):
    status, content = ask(served, path.removeprefix("/api/"), **query)
    assert status == 200 or (status == 400 and json.loads(content)["error"])
