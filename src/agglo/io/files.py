"""Open files, explain why a file cannot be read, map Arrow files, and detect damage by checksums."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

_KINDS = {
    ".npy": "NumPy",
    ".npz": "NumPy",
    ".parquet": "Parquet",
    ".arrow": "Arrow",
    **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), "CSV"),
    **dict.fromkeys((".txt", ".txt.gz"), "text"),
}
_CHUNK = 1 << 24  # number of bytes that are read and hashed at a time
_SYSTEM_ERRORS = (  # errors that are not caused by the content of a file
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.EIO, errno.EACCES, errno.EPERM),
)


class ReadError(ValueError):
    """The error for a file that cannot be used; its message states a cause and a remedy.

    The remedy may name options of ``agglo fit``. Commands that do not have these options replace the remedy.
    """

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(f"{cause}: {remedy}")
        self.cause = cause
        self.remedy = remedy


def file_format(path: Path) -> str:
    """Return the suffix of a file name in lower case, such as ``.csv`` or ``.csv.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    return "".join(suffixes) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def check_readable(path: Path, formats: Sequence[str]) -> str:
    """Return the format of a file, such as ``.csv``.

    Raise an error if the format is not one of ``formats``, or if the file cannot be opened.
    """
    form = file_format(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} cannot be read: there is no such file; check its name")
    if not path.is_file():
        raise ReadError(f"{path} cannot be read: it is a folder or a device", "pass the name of a file")
    if form not in formats:
        known = ", ".join(formats)
        cause = f"files whose names end in {form!r} are not supported" if form else "its name has no suffix"
        raise ReadError(f"{path} cannot be read: {cause}", f"pass one of {known}")
    with path.open("rb"):  # raises an OSError if the user may not read the file
        return form


@contextmanager
def explain_read_errors(path: Path) -> Iterator[None]:
    """Convert errors that a damaged file causes in the ``with`` block to a ValueError that names the file."""
    try:
        yield
    except pa.ArrowCancelled:  # raised by Arrow on Ctrl-C
        raise KeyboardInterrupt from None
    except (MemoryError, ReadError):
        raise
    except Exception as error:  # a damaged file may raise undocumented errors
        if isinstance(error, OSError) and error.errno in _SYSTEM_ERRORS:
            raise
        cause = (str(error).splitlines() or [type(error).__name__])[0]
        kind = _KINDS.get(file_format(path), "text")
        remedy = "correct it, or save it again" if kind in ("CSV", "text") else "create it again"
        raise ValueError(
            f"{path} cannot be read: it is damaged, truncated or not a valid {kind} file ({cause}); {remedy}"
        ) from error


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading; decompress it if its name ends in .gz."""
    # Python opens the file, because Arrow cannot open file names that are not UTF-8.
    return cast("BinaryIO", gzip.open(path, "rb")) if file_format(path).endswith(".gz") else path.open("rb")


# ---- Parquet and Arrow files ----


def write_parquet(table: Any, path: Path) -> None:
    """Write a pyarrow.Table as a Parquet file with checksums of its pages."""
    # Python opens the file, because Arrow cannot open file names that are not UTF-8.
    with path.open("wb") as file:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)


def write_csv(table: Any, path: Path) -> None:
    """Write a pyarrow.Table as a CSV file. The entries of a list are joined by " | "."""
    for i, field in enumerate(table.schema):
        if pa.types.is_large_list(field.type):
            joined = [" | ".join(entries) for entries in table[i].to_pylist()]
            table = table.set_column(i, field.name, pa.array(joined, pa.large_string()))
    with path.open("wb") as file:
        pa.csv.write_csv(table, file)


def write_arrow(table: Any, path: Path) -> None:
    """Write a pyarrow.Table as an Arrow file with one record batch, so that it can be memory-mapped."""
    whole = table.combine_chunks()
    # Python opens the file, because Arrow cannot open file names that are not UTF-8.
    with path.open("wb") as file, pa.ipc.new_file(file, whole.schema) as writer:
        writer.write_table(whole)


def map_arrow(path: str | os.PathLike[str]) -> Any:
    """Memory-map an Arrow file and return its pyarrow.Table.

    The whole table is validated before it is returned. Arrow does not check the offsets in a file, and a wrong
    offset would crash the process.
    """
    with open(path, "rb") as file, explain_read_errors(Path(path)):
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            table = pa.ipc.open_file(pa.py_buffer(content)).read_all()
        except MemoryError as error:  # a damaged length also raises MemoryError
            raise ValueError(str(error)) from error
        table.validate(full=True)
        return table


# ---- checksums of files and of JSON records ----


def hash_file(path: Path) -> str:
    """Return the BLAKE2 hash of a file's content, as hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def add_checksum(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of ``record`` with an added checksum of its entries; see :func:`has_valid_checksum`."""
    return {**record, "checksum": _compute_checksum(record)}


def has_valid_checksum(record: Mapping[str, Any]) -> bool:
    """Return whether the checksum of a JSON record matches the entries of the record.

    A record without a checksum is valid, because early versions of agglo wrote no checksums.
    """
    rest = dict(record)
    expected = rest.pop("checksum", None)
    return expected is None or expected == _compute_checksum(rest)


def _compute_checksum(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, allow_nan=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
