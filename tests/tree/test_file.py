import json
import os
import resource
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forests import COLUMNS, TREE, chain, trees
from hypothesis import given

from agglo import Hierarchy
from agglo.io.files import add_checksum
from agglo.testing import assert_same_hierarchy


@given(tree=trees())
def test_files_give_the_same_tree_back(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("trees") / "tree.parquet"
    tree.save(path)
    back = Hierarchy.load(path)
    assert_same_hierarchy(back, tree)
    np.testing.assert_array_equal(back.rounds.seconds, tree.rounds.seconds)
    assert back.about == tree.about


def test_a_round_for_each_merge_and_no_thresholds_survive_a_file(tmp_path):
    tree = chain(1000)
    tree.save(str(tmp_path / "tree"))
    assert_same_hierarchy(Hierarchy.load(str(tmp_path / "tree")), tree)


def test_any_reader_of_parquet_can_use_a_file(tmp_path):
    TREE.save(tmp_path / "tree.parquet")
    table = pq.read_table(tmp_path / "tree.parquet")
    assert {name: table[name].to_pylist() for name in COLUMNS} == COLUMNS
    assert table["threshold"].to_pylist() == [None] * 4 + [0.5, 1.0]


def test_saving_replaces_what_was_there(tmp_path):
    path = tmp_path / "tree.parquet"
    chain(10).save(path)
    TREE.save(path)
    assert Hierarchy.load(path).n_leaves == 4
    assert list(tmp_path.iterdir()) == [path]


def test_saving_goes_through_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "tree.parquet")
    TREE.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert_same_hierarchy(Hierarchy.load(tmp_path / "tree.parquet"), TREE)


@contextmanager
def limit_file_size(size):
    """Let writes beyond ``size`` bytes fail, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_failed_write_leaves_nothing_behind_and_the_old_file_as_it_was(tmp_path):
    path = tmp_path / "tree.parquet"
    TREE.save(path)
    large = chain(50_000)
    with limit_file_size(20_000), pytest.raises(OSError, match="large"):
        large.save(path)
    with limit_file_size(20_000), pytest.raises(OSError, match="large"):
        large.save(tmp_path / "new.parquet")
    assert list(tmp_path.iterdir()) == [path]
    assert_same_hierarchy(Hierarchy.load(path), TREE)


def test_paths_that_cannot_be_written_are_errors(tmp_path):
    with pytest.raises(IsADirectoryError, match="it is a folder; pass the name of a file"):
        TREE.save(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a device; pass the name of a file"):
        TREE.save(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere; create it first"):
        TREE.save(tmp_path / "nowhere" / "tree.parquet")


def test_a_missing_file_is_its_own_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"tree\.parquet"):
        Hierarchy.load(tmp_path / "tree.parquet")


def test_truncated_files_are_errors(tmp_path):
    path = tmp_path / "tree.parquet"
    TREE.save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(
            ValueError, match=r"tree\.parquet is not a tree file of agglo: it is damaged, cut short or not"
        ):
            Hierarchy.load(path)


def load_or_error(path):
    try:
        return Hierarchy.load(path)
    except ValueError as error:
        return str(error)


def test_damaged_files_are_errors_or_give_the_same_tree(tmp_path):
    path = tmp_path / "tree.parquet"
    tree = chain(300)
    tree.save(path)
    whole = path.read_bytes()
    noticed = 0
    for where in np.random.default_rng(0).integers(4, len(whole) - 8, 100):  # the data and the footer
        path.write_bytes(whole[:where] + bytes([whole[where] ^ 0x55]) + whole[where + 1 :])
        found = load_or_error(path)
        if isinstance(found, str):
            assert "is not a tree file of agglo" in found
            noticed += 1
        else:  # a byte that the tree does not depend on, such as a statistic
            assert_same_hierarchy(found, tree)
    assert noticed > 50


def rewrite(path, change_table=lambda table: table, **change_record):
    """Write TREE to a file with its table or its record changed."""
    TREE.save(path)
    table = pq.read_table(path)
    record = json.loads(table.schema.metadata[b"agglo.hierarchy"]) | change_record
    del record["checksum"]
    record = add_checksum(record)
    table = change_table(table.replace_schema_metadata({"agglo.hierarchy": json.dumps(record)}))
    pq.write_table(table, path)
    return path


def replace_column(name, values, kind):
    return lambda table: table.set_column(table.column_names.index(name), name, pa.array(values, kind))


@pytest.mark.parametrize(
    ("table", "record", "message"),
    [
        (lambda table: table.drop_columns(["size"]), {}, "it has no column 'size'"),
        (lambda table: table.replace_schema_metadata({}), {}, "its metadata has no entry of agglo"),
        (
            lambda table: table.replace_schema_metadata({"agglo.hierarchy": "{"}),
            {},
            "its metadata is not JSON",
        ),
        (lambda table: table.slice(0, 3), {}, "the last node must be the root|has parent"),
        (lambda table: table.slice(0, 0), {}, "2 rounds for 0 nodes"),
        (replace_column("size", [1, 1, 1, 1, 2, 4], pa.int64()), {}, "'size' is of type int64, not int32"),
        (replace_column("size", [1, 1, 1, 1, 2, None], pa.int32()), {}, "'size' has empty entries"),
        (
            replace_column("size", [1, 1, 1, 1, 9, 4], pa.int32()),
            {},
            "node 4 has size 9, but its children have 2 leaves",
        ),
        (replace_column("parent", [4, 4, 5, 5, 999, -1], pa.int32()), {}, "node 4 has parent 999"),
        (replace_column("parent", [4, 4, -5, 5, 5, -1], pa.int32()), {}, "node 2 has parent -5"),
        (replace_column("round", [0, 0, 0, 0, -7, 2], pa.int32()), {}, "a parent of round -7"),
        (lambda table: table, {"version": 2}, "it is of version 2, and this agglo reads version 1"),
        (lambda table: table, {"rounds": 5}, r"no node is of round 3"),
        (lambda table: table, {"rounds": 6}, "its metadata counts 6 rounds for 6 nodes"),
        (lambda table: table, {"rounds": "2"}, "its metadata lacks the number of rounds"),
        (lambda table: table, {"about": None}, "or the record of how the tree was built"),
    ],
)
def test_files_with_wrong_content_are_errors(tmp_path, table, record, message):
    path = rewrite(tmp_path / "tree.parquet", table, **record)
    with pytest.raises(ValueError, match=message) as caught:
        Hierarchy.load(path)
    assert str(path) in str(caught.value)
    assert "write it again with Hierarchy.save" in str(caught.value)


def test_rewriting_without_changes_keeps_the_tree(tmp_path):
    assert_same_hierarchy(Hierarchy.load(rewrite(tmp_path / "tree.parquet")), TREE)
