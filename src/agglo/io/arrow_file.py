"""Write Arrow files, and map them into memory."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from agglo.io.files import explain_read_errors


def write_arrow(table: Any, path: Path) -> None:
    """Write a pyarrow.Table as an Arrow file of one record batch, which can be mapped into memory."""
    whole = table.combine_chunks()
    # Python opens the file, here and below, because Arrow cannot open a name that is not UTF-8.
    with path.open("wb") as file, pa.ipc.new_file(file, whole.schema) as writer:
        writer.write_table(whole)


def map_arrow(path: str | os.PathLike[str]) -> Any:
    """Return the pyarrow.Table of an Arrow file, mapped into memory.

    The whole table is validated: Arrow trusts the offsets in a file, and a wrong one would crash the process.
    """
    with open(path, "rb") as file, explain_read_errors(Path(path)):
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            table = pa.ipc.open_file(pa.py_buffer(content)).read_all()
        except MemoryError as error:  # raised for a damaged length, too
            raise ValueError(str(error)) from error
        table.validate(full=True)
        return table
