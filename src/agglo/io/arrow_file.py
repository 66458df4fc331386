"""Write Arrow files, and map them into memory."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from agglo.io.files import explain_read_errors


def write_arrow(table: Any, path: Path) -> None:
    """Write a pyarrow.Table as an Arrow file with one record batch, so that it can be memory-mapped."""
    whole = table.combine_chunks()
    # Python opens the file, because Arrow cannot open file names that are not UTF-8.
    with path.open("wb") as file, pa.ipc.new_file(file, whole.schema) as writer:
        writer.write_table(whole)


def map_arrow(path: str | os.PathLike[str]) -> Any:
    """Memory-map an Arrow file and return its pyarrow.Table.

    The whole table is validated first, because Arrow trusts the offsets in a file: a wrong offset would crash the
    process.
    """
    with open(path, "rb") as file, explain_read_errors(Path(path)):
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            table = pa.ipc.open_file(pa.py_buffer(content)).read_all()
        except MemoryError as error:  # a damaged length also raises MemoryError
            raise ValueError(str(error)) from error
        table.validate(full=True)
        return table
