"""Files with changed, missing or repeated bytes: an error with a cause, or the same result, and never a crash."""

import os
import shutil
from collections import Counter
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from explorable import write_run

import agglo
from agglo.cli.data import read_data
from agglo.estimators import run_folder as runfolder
from agglo.explore.items import read_table
from agglo.explore.run import open_run
from agglo.io.atomic import JOURNAL, JOURNAL_LIST
from agglo.io.points import read_labels, write_labels
from agglo.text.reader import read_texts

CASES = 1000
N = 60


def tree_content(tree):
    rounds = tree.rounds
    columns = (tree.parent, tree.height, tree.size, tree.round, rounds.threshold, rounds.before, rounds.seconds)
    return [column.tolist() for column in columns], dict(tree.about)


def read_run(folder):
    tree, record = runfolder.load_run(folder)
    opened = open_run(folder)
    names = [(opened.name(node), opened.terms(node), opened.examples(node)) for node in range(tree.n_nodes)]
    points = np.arange(tree.n_leaves)
    return tree_content(tree), record, repr(names), opened.items.texts(points), opened.items.values(points)


def read_model(folder):
    model = agglo.load(folder)
    graph = model.graph_
    arrays = (graph.indptr, graph.indices, graph.weights, model.labels_, model.predict(points()[:5]))
    return repr(model), tree_content(model.tree_), [array.tolist() for array in arrays], repr(graph.parameters)


def read_points(path):
    return read_data(path).X


def read_items(path):
    return read_table(path, None).combine_chunks().to_pylist()


def points():
    rng = np.random.default_rng(0)
    X = (4 * np.eye(5)[np.arange(N) % 5] + rng.normal(size=(N, 5))).astype(np.float32)
    X[7] = X[3]  # equal points, for the file of the tree of the others
    return X


def write_files(folder):
    """Write one file of every kind; return, by name, a function that reads it, and whether all damage must show.

    Damage to the numbers in a .npy or .csv file cannot be told from other numbers.
    """
    X = points()
    tree = write_run(folder / "texts")
    record = {"agglo": "0.1.0", "labels": {"round": 2}, "data": {"points": tree.n_leaves}}
    extra = {
        name: partial(shutil.copyfile, folder / "texts" / name) for name in (runfolder.ITEMS, runfolder.NAMES)
    }
    labels = tree.cut(round=2)
    runfolder.save_run(folder / "run", tree, labels, record, extra=extra)
    shutil.copytree(folder / "run", folder / "half")  # a switch that was not completed
    (folder / "half" / JOURNAL).mkdir()
    (folder / "half" / runfolder.TREE).rename(folder / "half" / JOURNAL / runfolder.TREE)
    (folder / "half" / JOURNAL / JOURNAL_LIST).write_text('{"files": ["tree.parquet"], "removed": ["points.npy"]}')
    agglo.SCC(n_neighbors=5, n_jobs=1).fit(X, must_link=[[0, 5]]).save(folder / "model")
    agglo.SCC(n_neighbors=5, n_jobs=1).fit(sp.csr_array(np.maximum(X, 0))).save(folder / "sparse")
    tree.save(folder / "tree.parquet")
    np.save(folder / "X.npy", X)
    np.savez(folder / "X.npz", X=X)
    sp.save_npz(folder / "S.npz", sp.csr_array(np.maximum(X, 0)))
    table = pa.table({f"f{j}": X[:, j] for j in range(5)})
    pq.write_table(table, folder / "X.parquet")
    pq.write_table(pa.table({"x": list(X)}), folder / "lists.parquet")
    pa.csv.write_csv(table, folder / "X.csv")
    for form in (".csv", ".npy", ".parquet"):
        write_labels(labels, folder / f"labels{form}")
    shutil.copy(folder / "texts" / runfolder.ITEMS, folder / "items.arrow")
    (folder / "texts.csv").write_text("text,n\n" + "".join(f'"a text, or {i}",{i}\n' for i in range(N)))
    files = {}
    for home, read in (("run", read_run), ("half", read_run), ("model", read_model), ("sparse", read_model)):
        for path in (folder / home).rglob("*.*"):
            if path.is_file() and path.name != runfolder.LABELS:
                files[path] = (lambda _path, home=home, read=read: read(folder / home)), True
    inputs = dict.fromkeys(("X.npy", "X.npz", "S.npz", "X.parquet", "lists.parquet", "X.csv"), read_points)
    inputs |= dict.fromkeys(("labels.csv", "labels.npy", "labels.parquet"), read_labels)
    inputs |= {"items.arrow": read_items, "texts.csv": lambda path: read_texts(path, "text")}
    files |= {folder / name: (read, False) for name, read in inputs.items()}
    files[folder / "labels.parquet"] = (lambda path: read_labels(path).tolist()), True
    files[folder / "tree.parquet"] = (lambda path: tree_content(agglo.Hierarchy.load(path))), True
    return files


def damaged(content, rng):
    """The bytes of a file with one of several kinds of damage."""
    at = int(rng.integers(len(content)))
    length = int(rng.integers(1, 65))
    kind = rng.choice(["flip", "flip", "flip", "cut", "zero", "ones", "double", "drop"])
    if kind == "flip":
        return content[:at] + bytes([content[at] ^ int(rng.integers(1, 256))]) + content[at + 1 :]
    middle = {"zero": bytes(length), "ones": b"\xff" * length, "double": 2 * content[at : at + length]}
    if kind == "cut":
        return content[:at]
    return content[:at] + middle.get(kind, b"") + content[at + length :]


def outcome(path, read, must_show, expected):
    """One word for what came of reading a damaged file."""
    try:
        found = read(path)
    except (ValueError, OSError, UserWarning) as error:  # the warning: a column that is not of numbers
        return "error" if str(error) else "an error without words"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    if must_show and repr(found) != expected:
        return "another result"
    return "harmless"


@pytest.mark.slow  # damages a thousand files
@pytest.mark.parametrize("part", range(2))
def test_damage_is_an_error_or_harmless(tmp_path, monkeypatch, part):
    monkeypatch.setattr(os, "fsync", lambda _file: None)  # no waiting for the disk
    files = write_files(tmp_path)
    rng = np.random.default_rng([20, part])
    paths = sorted(files)
    expected = {path: repr(files[path][0](path)) for path in paths}
    log = tmp_path / "outcomes"
    bad = []
    done = 0
    n_cases = CASES // 2
    # Spread over all files.
    cases = [(paths[(2 * i + part) % len(paths)], int(rng.integers(2**31))) for i in range(n_cases)]
    counts = Counter()
    while done < n_cases:  # in one process, and a new one after each crash
        log.write_text("")
        child = os.fork()
        if child == 0:
            with log.open("w") as report:
                for path, seed in cases[done:]:
                    whole = path.read_bytes()
                    path.write_bytes(damaged(whole, np.random.default_rng(seed)))
                    print(outcome(path, *files[path], expected[path]), file=report, flush=True)
                    path.write_bytes(whole)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        outcomes = log.read_text().splitlines()
        if status:
            outcomes.append(f"the process ended with status {status}")
            shutil.rmtree(tmp_path)
            tmp_path.mkdir()
            write_files(tmp_path)
        for (path, seed), word in zip(cases[done:], outcomes, strict=False):
            counts[word] += 1
            if word not in ("error", "harmless"):
                bad.append((str(path.relative_to(tmp_path)), seed, word))
        done += len(outcomes)
    assert bad == []
    assert done == n_cases
    assert counts["error"] > n_cases / 2  # damage is seen, too
