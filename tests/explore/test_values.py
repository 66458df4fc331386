import csv
import io
import json
import re
import tracemalloc
from typing import get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrow_values import NESTED, PYARROW, VALUES
from explorable import assert_has_type
from forests import chain
from hypothesis import given
from hypothesis import strategies as st

from agglo.explore import api
from agglo.explore.export import guard_formulas
from agglo.explore.items import Items, make_table, unique_names
from agglo.explore.run import ExplorableRun, open_tree
from agglo.explore.values import decode, is_number, select_rows, to_floats, to_single_array, to_text

OUTER = ("list", "struct", "union")
ROWS = [2, 0, 1, 0]


def read_csv(content):
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def opened(table):
    return ExplorableRun(chain(table.num_rows), Items(table.num_rows, table), None, "title")


def described(function, value):
    """Return the JSON of a response, which must have the fields and types of its handler's annotation."""
    found = json.loads(api.to_json(value))
    assert_has_type(found, get_type_hints(function)["return"])
    return found


@pytest.mark.parametrize("name", VALUES)
def test_a_value_of_every_type_has_a_text(name):
    array, texts = VALUES[name]
    assert to_text(array).to_pylist() == texts
    assert to_text(array, 1).to_pylist()[2] == texts[2]


@pytest.mark.parametrize("name", VALUES)
def test_texts_do_not_depend_on_slices_chunks_and_selections(name):
    for array in (VALUES[name][0], *(NESTED[f"{outer} of {name}"] for outer in OUTER)):
        check_selections(array)


def check_selections(array):
    texts = to_text(array).to_pylist()
    assert len(texts) == 3
    assert to_text(array.slice(1)).to_pylist() == texts[1:]
    assert to_text(array.slice(3)).to_pylist() == []
    whole = to_single_array(pa.chunked_array([array, array.slice(1)]))
    assert to_text(whole).to_pylist() == texts + texts[1:]
    assert to_text(to_single_array(pa.chunked_array([], array.type))).to_pylist() == []
    chosen = select_rows(whole, pa.array(ROWS, pa.int64()))
    assert to_text(chosen).to_pylist() == [texts[row] for row in ROWS]
    assert to_text(select_rows(whole, pa.array([], pa.int64()))).to_pylist() == []
    assert to_text(decode(array)).to_pylist() == texts
    if is_number(array.type):
        expected = [np.nan if text is None else float(text) for text in texts]
        np.testing.assert_allclose(to_floats(array), expected, rtol=1e-6)


@pytest.mark.parametrize("name", VALUES)
def test_values_inside_others_are_json_with_the_same_texts(name):
    _, texts = VALUES[name]
    for outer in ("list", "struct"):
        for text in to_text(NESTED[f"{outer} of {name}"]).to_pylist():
            json.loads(text, parse_constant=pytest.fail)
    assert to_text(NESTED[f"union of {name}"]).to_pylist() == texts


@pytest.mark.parametrize("name", VALUES)
def test_every_request_has_an_answer_for_every_type(name):
    for role in ("text", "count", "label", "kind"):
        check_requests(VALUES[name][0], role, is_counted=role == "count" and name == "run-end encoded int64")
    for outer in OUTER:
        check_requests(NESTED[f"{outer} of {name}"], "kind")


def check_requests(array, column, is_counted=False):
    texts = to_text(array).to_pylist()
    run = opened(pa.table([array], [column]))
    root = run.tree.n_nodes - 1
    described(api.describe_run, api.describe_run(run))
    described(api.children, api.children(run, node=root))
    details = described(api.details, api.details(run, node=root))
    assert details["occurrences"] == (4 if is_counted else 3), "the sum of whole numbers without gaps"
    items = described(api.items, api.items(run, node=root))["items"]
    for item in items:
        shown = item["text"] if column == "text" else item["values"][0]
        assert shown == (texts[item["point"]] or "" if column == "text" else texts[item["point"]])
    described(api.search, api.search(run, text="1"))
    described(api.path, api.path(run, node=0))
    view = described(api.view, api.view(run, node=root, colour="" if column == "text" else column))
    assert len(view["boxes"]) > 1
    rows = read_csv(b"".join(api.export(run, nodes=[root]).parts))
    assert rows[0] == ["cluster", "name", "point", column]
    assert len(rows) == 4
    for row in rows[1:]:
        text = texts[int(row[2])]
        assert row[3].removeprefix("'") == ("" if text is None else text)
    content = b"".join(api.export(run, nodes=[root], format="parquet").parts)
    if PYARROW < 26 and re.search("fixed_size_list|fixed_shape_tensor", str(array.type)):
        return  # earlier versions write nulls of these types to Parquet, but cannot read them
    table = pq.read_table(io.BytesIO(content))
    stored = [text and text.replace(".000", "") for text in to_text(table[column].combine_chunks()).to_pylist()]
    expected = [texts[point] and texts[point].replace(".000", "") for point in table["point"].to_pylist()]
    assert stored == expected, "but for milliseconds, which Parquet has for seconds"


@given(st.lists(st.floats(), min_size=2, max_size=30))
def test_any_floats_have_colours_that_json_can_hold(values):
    run = opened(pa.table({"x": pa.array(values)}))
    view = described(api.view, api.view(run, node=run.tree.n_nodes - 1, colour="x"))
    finite = [value for value in values if np.isfinite(value)]
    assert view["span"] == ([min(finite), max(finite)] if finite else [])


def test_the_mean_of_huge_numbers_is_finite():
    run = opened(pa.table({"x": [1.5e308, 1.5e308, 1.5e308]}))
    view = api.view(run, node=run.tree.n_nodes - 1, colour="x", clusters=2)
    values = [box.value for box in view.boxes if box.value is not None]
    assert values
    assert values == pytest.approx([1.5e308] * len(values))


@given(st.lists(st.integers(0, 2**48) | st.integers(0, 3), min_size=2, max_size=30), st.data())
def test_the_most_frequent_items_come_first_whatever_the_counts(counts, data):
    offset, limit = data.draw(st.integers(0, 30)), data.draw(st.integers(1, 30))
    run = opened(pa.table({"count": pa.array(counts)}))
    root = run.tree.n_nodes - 1
    order = sorted(run.points(root).tolist(), key=lambda point: -counts[point])
    page = api.items(run, node=root, offset=offset, limit=limit)
    assert [item.point for item in page.items] == order[offset : offset + limit]
    assert [item.count for item in page.items] == [counts[point] for point in order[offset : offset + limit]]
    assert api.details(run, node=root).occurrences == sum(counts)


@pytest.mark.parametrize("counts", [[1, None, 2], [-1, 2, 3], [0.5, 1.0, 2.0], ["a", "b", "c"], [2**52] * 3])
def test_a_column_named_count_without_counts_is_one_like_any_other(counts):
    items = Items(3, pa.table({"count": counts}))
    assert items.count is None
    assert items.values(np.array([2])) == [to_text(pa.array(counts[2:])).to_pylist()]


def test_columns_of_equal_and_empty_names_are_renamed():
    assert unique_names(["a", "", "a", "a (2)", "column 2"]) == ["a", "column 2 (2)", "a (3)", "a (2)", "column 2"]
    table = pa.table([[1, 2], [3, 4], [5, 6], ["x", "y"]], ["name", "name", "point", ""])
    run = opened(table)
    assert run.items.columns == ["name", "name (2)", "point", "column 4"]
    for column in run.items.columns:
        api.view(run, node=2, colour=column)
    rows = read_csv(b"".join(api.export(run, nodes=[0]).parts))
    assert rows == [
        ["cluster", "name", "point", "name (3)", "name (2)", "point (2)", "column 4"],
        ["0", "point 0", "0", "1", "3", "5", "x"],
    ]


def test_long_lists_are_converted_no_further_than_they_are_shown():
    long = pa.array([np.zeros(10**6)], pa.list_(pa.float64()))
    assert len(to_text(long, 2000)[0].as_py()) == 3 * 2000
    assert len(Items(1, pa.table({"x": long})).values(np.array([0]))[0][0]) == 2000


@pytest.mark.parametrize(
    ("texts", "columns", "message"),
    [
        (["a", "b\ud800"], None, r"texts\[1\] has the lone surrogate '\\ud800' at position 1"),
        (["a", None], None, r"texts\[1\] is None, which is not a str: pass a str"),
        (["a", 3.5], None, r"texts\[1\] is 3.5, which is not a str: pass a str"),
        (None, {"\udfff": [1, 2]}, r"the name of a column has the lone surrogate"),
        (None, {3: [1, 2]}, r"the name of a column is 3, which is not a str"),
        (None, {"x": ["a", 1]}, r"the column 'x' cannot be shown: Arrow has no type for its values"),
        (None, {"x": np.zeros((2, 2))}, r"the column 'x' cannot be shown"),
        (None, {"x": [object(), object()]}, r"the column 'x' cannot be shown"),
        (None, {"x": ["\ud800", "b"]}, r"the column 'x' cannot be shown"),
        (None, {"x": [2**70, 1]}, r"the column 'x' cannot be shown"),
        (None, {"x": np.array([1j, 2])}, r"the column 'x' cannot be shown"),
    ],
)
def test_what_cannot_be_a_column_is_an_error_with_its_cause(texts, columns, message):
    with pytest.raises(ValueError, match=message):
        open_tree(chain(2), texts, columns)


def test_arrow_columns_are_taken_as_they_are():
    table = make_table(None, {"a": pa.chunked_array([[1], [2]]), "b": pa.array(["x", "y"])})
    assert table.column_names == ["a", "b"]


# Spreadsheets

DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


@given(st.lists(st.tuples(st.sampled_from((*DANGEROUS, "")), st.text()), max_size=20))
def test_no_text_starts_as_a_formula_and_each_can_be_read_back(pairs):
    texts = [first + rest for first, rest in pairs]
    guarded = guard_formulas(pa.array(texts, pa.large_string())).to_pylist()
    for text, safe in zip(texts, guarded, strict=True):
        assert not safe.startswith(DANGEROUS)
        assert safe == ("'" + text if text.startswith(DANGEROUS) else text)


def test_exported_texts_are_no_formulas_and_numbers_stay_numbers():
    table = pa.table(
        {
            "text": ['=HYPERLINK("http://evil.example","x")', "+1", "-x", "@SUM(A1)", None, "a,b\n=1"],
            "=name": pa.array(["=1", "b", None, "\tc", "-1", "+"]).dictionary_encode(),
            "number": [-1.5, 2.0, None, float("-inf"), 1e-9, -0.0],
            "whole": [-1, -2, None, 3, 4, -(2**63)],
            "list": [["=1"], [], None, [], [], []],
        }
    )
    run = opened(table)
    content = b"".join(api.export(run, nodes=list(range(6))).parts)
    rows = read_csv(content)
    assert rows[0] == ["cluster", "name", "point", "text", "'=name", "number", "whole", "list"]
    assert [row[3] for row in rows[1:]] == ["'" + text for text in table["text"].to_pylist()[:4]] + ["", "a,b\n=1"]
    assert [row[1] for row in rows[1:4]] == [row[3] for row in rows[1:4]], "names of points are texts, too"
    assert [row[4] for row in rows[1:]] == ["'=1", "b", "", "'\tc", "'-1", "'+"]
    assert [row[5] for row in rows[1:]] == ["-1.5", "2", "", "-inf", "1e-9", "-0"]
    assert [row[6] for row in rows[1:]] == ["-1", "-2", "", "3", "4", str(-(2**63))]
    assert b",-1.5,-1," in content, "numbers are not quoted"


# Memory


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_an_export_of_nested_nodes_holds_one_piece_at_a_time(format):
    n = 1000
    run = opened(pa.table({"text": [f"a text of some length, the {i}th" * 10 for i in range(n)]}))
    nodes = list(range(run.tree.n_nodes - 100, run.tree.n_nodes))
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    total = pieces = most = 0
    for part in api.export(run, nodes=nodes, format=format).parts:
        total, pieces = total + len(part), pieces + 1
        most = max(most, pa.total_allocated_bytes() - before, len(part))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    rows = sum(n - i for i in range(100))
    assert pieces > 5
    assert most < 12_000_000
    assert peak < 20_000_000, "the whole is 40 MB"
    assert format == "parquet" or total > 35_000_000
    assert rows == sum(int(run.tree.size[node]) for node in nodes)


@pytest.mark.parametrize("encode", [lambda array: array, pa.Array.dictionary_encode])
def test_an_export_of_very_long_texts_holds_few_of_them(encode):
    run = opened(pa.table({"text": encode(pa.array([f"{i}" + "x" * 2_000_000 for i in range(20)]))}))
    sizes = [len(part) for part in api.export(run, nodes=[run.tree.n_nodes - 1]).parts]
    assert sum(sizes) > 40_000_000
    assert max(sizes) < 7_000_000


def test_an_export_has_one_row_per_node_and_point():
    run = opened(pa.table({"text": [str(i) for i in range(300)]}))
    nodes = [run.tree.n_nodes - 1, run.tree.n_nodes - 3, 5, 5]
    content = b"".join(api.export(run, nodes=nodes, format="parquet").parts)
    table = pq.read_table(io.BytesIO(content))
    pairs = list(zip(table["cluster"].to_pylist(), table["point"].to_pylist(), strict=True))
    assert pairs == [(node, point) for node in nodes[:3] for point in run.points(node).tolist()]
    assert table["text"].to_pylist() == [str(point) for _, point in pairs]
