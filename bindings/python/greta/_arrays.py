"""Numbers: numpy arrays where numpy is, else array.array and memoryview."""
from __future__ import annotations

import array
import ctypes
import importlib
from collections.abc import Sequence
from typing import Any

from ._handles import Guard, Handle, View


def _numpy() -> Any:
    """numpy, or None. It is imported when the first array is made, since importing it takes long."""
    try:
        return importlib.import_module("numpy")
    except ImportError:
        return None


def floats(memory: Any) -> Any:
    """A float32 array on an array of C's that belongs to Python; nothing is copied with numpy."""
    numpy = _numpy()
    return numpy.frombuffer(memory, numpy.float32) if numpy else array.array("f", memory)


def stacked(vectors: Sequence[Any]) -> Any:
    numpy = _numpy()
    return numpy.stack(vectors) if numpy and vectors else list(vectors)


def rows_of(memory: Any, columns: int, writeable: bool = True) -> Any:
    """A float32 array [rows, columns] on an array of C's."""
    rows, numpy = len(memory) // columns, _numpy()
    if numpy:
        made = numpy.frombuffer(memory, numpy.float32).reshape(rows, columns)
        made.flags.writeable = writeable
        return made
    plain = memoryview(memory).cast("B").cast("f", (rows, columns))
    return plain if writeable else plain.toreadonly()


def rows_at(address: int, rows: int, columns: int, owner: tuple[Handle, Guard] | None) -> Any:
    """A float32 array [rows, columns] of the library's memory: a copy, or with an owner a read-only view.

    The view keeps the owner from being used or closed while it lives.
    """
    kind = ctypes.c_float * (rows * columns)
    if owner is None:
        memory = kind()
        ctypes.memmove(memory, address, ctypes.sizeof(memory))
    else:
        memory = kind.from_address(address)
        setattr(memory, "keeps", View(*owner))  # numpy and memoryview keep `memory`
    return rows_of(memory, columns, owner is None)


def first_row(rows: Any) -> Any:
    """The only row. A memoryview of two dimensions gives no rows, so it is cast."""
    return rows[0] if hasattr(rows, "dtype") else rows.cast("B").cast("f")
