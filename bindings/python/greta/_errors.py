"""Exceptions: one class for each status of the library, with the library's words."""
from __future__ import annotations

from . import _declarations as c


class GretaError(Exception):
    """Something went wrong in the library. `str(error)` says what, in the library's words."""

    #: The greta_status of the failure; 0 where the library was not asked.
    status: int = 0


class ArgumentError(GretaError, ValueError):
    """An argument is wrong."""

    status = int(c.greta_status.GRETA_ERROR_ARGUMENT)


class FileError(GretaError):
    """A file is missing, truncated or malformed, or gives no finite logit."""

    status = int(c.greta_status.GRETA_ERROR_FILE)


class UnsupportedError(GretaError):
    """The file or request is valid, but this build or device cannot run it."""

    status = int(c.greta_status.GRETA_ERROR_UNSUPPORTED)


class OutOfMemoryError(GretaError, MemoryError):
    """Host or device memory ran out. The objects remain usable."""

    status = int(c.greta_status.GRETA_ERROR_MEMORY)


class DeviceError(GretaError):
    """The driver failed, or the process was forked after the model was opened. Open the model again."""

    status = int(c.greta_status.GRETA_ERROR_DEVICE)


class _LimitError(GretaError):
    #: How many tokens or requests there are, and how many there may be; 0 where that is not known.
    length: int = 0
    limit: int = 0


class FullError(_LimitError):
    """There is no room, as in the context: `length` tokens and a `limit` for them."""

    status = int(c.greta_status.GRETA_ERROR_FULL)


class CancelledError(GretaError):
    """Something was cancelled before it had a result."""

    status = int(c.greta_status.GRETA_ERROR_CANCELLED)


class BusyError(_LimitError):
    """A service takes no more requests for now: `length` of them wait or run, and `limit` may."""

    status = int(c.greta_status.GRETA_ERROR_BUSY)


class ClosedError(GretaError, ValueError):
    """The object was closed."""


class InUseError(GretaError, RuntimeError):
    """Another thread uses an object that belongs to one thread at a time."""


CLASSES = {each.status: each for each in (ArgumentError, FileError, UnsupportedError, OutOfMemoryError, DeviceError,
                                          FullError, CancelledError, BusyError)}
