"""An array of every Arrow type, for tests."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_UNITS = ("s", "ms", "us", "ns")
_LARGE = 2**62
PYARROW = int(pa.__version__.partition(".")[0])


def _numbers():
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32()):
        yield str(kind), pa.array([0, 1, None], kind), ["0", "1", None]
    yield "int64", pa.array([2**63 - 1, -(2**63), None]), ["9223372036854775807", "-9223372036854775808", None]
    yield "uint64", pa.array([2**64 - 1, 0, None], pa.uint64()), ["18446744073709551615", "0", None]
    yield "float16", pa.array(np.array([1.5, np.nan, -np.inf], np.float16)), ["1.5", "nan", "-inf"]
    yield "float32", pa.array([0.1, 1e20, None], pa.float32()), ["0.1", "1e+20", None]
    yield "float64", pa.array([1.7e308, 1.7e308, 0.5]), ["1.7e+308", "1.7e+308", "0.5"]
    yield "nan", pa.array([float("nan"), float("inf"), None]), ["nan", "inf", None]
    for kind in (pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(20, 2), pa.decimal256(60, 2)):
        yield str(kind), pa.array([Decimal("-1.50"), Decimal("2.00"), None], kind), ["-1.50", "2.00", None]
    tens = pa.array([Decimal("-1E+5"), Decimal("2E+5"), None], pa.decimal128(5, -3))
    yield "decimal of thousands", tens, ["-1.00E+5", "2.00E+5", None]
    yield "bool", pa.array([True, False, None]), ["true", "false", None]
    yield "null", pa.nulls(3), [None, None, None]


def _texts():
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(kind), pa.array(["=1", "é", None], kind), ["=1", "é", None]
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)):
        yield str(kind), pa.array([b"ab", b"\xff\x00", None], kind), ["ab", "0xff00", None]


def _times():
    yield "date32", pa.array([dt.date(2020, 1, 2), None, dt.date(1, 1, 1)]), ["2020-01-02", None, "0001-01-01"]
    far = pa.array([10**9, 0, None], pa.int32()).cast(pa.date32())
    yield "far date32", far, ["<value out of range: 1000000000>", "1970-01-01", None]
    day = pa.array([0, 5 * 86_400_000, None], pa.int64()).cast(pa.date64())
    yield "date64", day, ["1970-01-01", "1970-01-06", None]
    yield "time32", pa.array([1, 2, None], pa.time32("s")), ["00:00:01", "00:00:02", None]
    tiny = pa.array([1, 0, None], pa.time64("ns"))
    yield "time64", tiny, ["00:00:00.000000001", "00:00:00.000000000", None]
    for unit, digits in zip(_UNITS, ("", ".000", ".000000", ".000000000"), strict=True):
        raw = pa.array([0, -_LARGE if unit == "s" else 0, None], pa.int64())
        far_text = f"<value out of range: {-_LARGE}>" if unit == "s" else f"1970-01-01 00:00:00{digits}"
        yield f"timestamp {unit}", raw.view(pa.timestamp(unit)), [f"1970-01-01 00:00:00{digits}", far_text, None]
        raw = pa.array([0, 0, None], pa.int64())
        utc = f"00:00:00{digits}Z"
        shifted = f"02:00:00{digits}+0200" if PYARROW >= 22 else utc  # earlier versions write no offsets
        for zone, text in (("+02:00", shifted), ("No/Where", utc)):
            expected = [f"1970-01-01 {text}"] * 2 + [None]
            yield f"timestamp {unit} {zone}", raw.view(pa.timestamp(unit, zone)), expected
        spans = pa.array([_LARGE, -90, None], pa.int64()).view(pa.duration(unit))
        yield f"duration {unit}", spans, [f"{_LARGE} {unit}", f"-90 {unit}", None]
    spans = pa.array([(1, 2, 3), None, (0, 0, 0)], pa.month_day_nano_interval())
    yield "interval", spans, ["1 months 2 days 3 ns", None, "0 months 0 days 0 ns"]


def _nested():
    for kind in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view):
        yield kind.__name__, pa.array([[1, None], [], None], kind(pa.int64())), ["[1, null]", "[]", None]
    fixed = pa.array([[1, 2], [3, 4], None], pa.list_(pa.int64(), 2))
    yield "fixed_size_list", fixed, ["[1, 2]", "[3, 4]", None]
    pairs = pa.array([{"a": 1, "b": "x"}, {"a": None, "b": None}, None])
    yield "struct", pairs, ['{"a": 1, "b": "x"}', '{"a": null, "b": null}', None]
    yield "empty struct", pa.array([{}, None, {}], pa.struct([])), ["{}", None, "{}"]
    twice = pa.StructArray.from_arrays([pa.array([1, 2, 3]), pa.array([4, 5, 6])], ["a", "a"])
    yield "struct of equal names", twice, ['{"a": 1, "a": 4}', '{"a": 2, "a": 5}', '{"a": 3, "a": 6}']
    maps = pa.array([[("k", 1), ("k", 2)], [], None], pa.map_(pa.string(), pa.int64()))
    yield "map", maps, ['{"k": 1, "k": 2}', "{}", None]
    codes = pa.array([0, 1, 0], pa.int8())
    sparse = pa.UnionArray.from_sparse(codes, [pa.array([1, 2, None]), pa.array(["a", "b", "c"])])
    yield "sparse union", sparse, ["1", "b", None]
    places = pa.array([0, 0, 1], pa.int32())
    dense = pa.UnionArray.from_dense(codes, places, [pa.array([1, None]), pa.array([["a"]])])
    yield "dense union", dense, ["1", '["a"]', None]
    deep = pa.array([[{"a": [1.5, None, float("nan")], "d": dt.date(2020, 1, 1)}], None, [{"a": [], "d": None}]])
    yield "nested", deep, ['[{"a": [1.5, null, "nan"], "d": "2020-01-01"}]', None, '[{"a": [], "d": null}]']


def _encoded():
    yield "dictionary", pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]
    yield "dictionary of int64", pa.array([1, None, 1]).dictionary_encode(), ["1", None, "1"]
    missing = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    yield "dictionary with null", missing, ["a", None, None]
    structs = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array([{"a": 1}, {"a": 2}]))
    yield "dictionary of structs", structs, ['{"a": 1}', '{"a": 2}', None]
    yield "run-end encoded", pc.run_end_encode(pa.array(["a", "a", None])), ["a", "a", None]
    yield "run-end encoded int64", pc.run_end_encode(pa.array([1, 1, 2])), ["1", "1", "2"]
    lists = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([[1], [2]]))
    yield "run-end encoded lists", lists, ["[1]", "[1]", "[2]"]
    ids = pa.array([b"0" * 16, None, b"\xff" * 16], pa.uuid())
    ones = "-".join("f" * length for length in (8, 4, 4, 4, 12))
    yield "uuid", ids, ["30303030-3030-3030-3030-303030303030", None, ones]
    yield "json", pa.array(['{"a":1}', None, "3"], pa.json_()), ['{"a":1}', None, "3"]
    truth = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))
    yield "bool8", truth, ["true", "false", None]
    opaque = pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "t", "v"), pa.array(["a", None, "b"]))
    yield "opaque", opaque, ["a", None, "b"]
    storage = pa.array([[1, 2], [3, 4], None], pa.list_(pa.int32(), 2))
    tensor = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), (2,)), storage)
    yield "tensor", tensor, ["[1, 2]", "[3, 4]", None]


def _flat():
    for part in (_numbers(), _texts(), _times(), _nested(), _encoded()):
        yield from part


def _inside(name, array):
    """The same values in lists, structs and unions; the texts of those follow from their own."""
    yield f"list of {name}", pa.ListArray.from_arrays([0, 2, 3, 3], array)
    yield f"struct of {name}", pa.StructArray.from_arrays([array, array], ["x", "y"])
    yield f"union of {name}", pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [array, array])


VALUES = {name: (array, texts) for name, array, texts in _flat()}
"""By name: three values of a type, and their texts."""
NESTED = dict(pair for name, (array, _) in VALUES.items() for pair in _inside(name, array))
"""By name: three values of a type that holds one of the others."""
