"""The shared library, and what every call of it needs: checked arguments, exceptions, callbacks."""
from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, TypeVar

from . import _declarations as c
from ._errors import CLASSES, GretaError, _LimitError

Struct = TypeVar("Struct", bound=ctypes.Structure)
Result = TypeVar("Result")


def _open_library() -> Any:
    """Opens libgreta.so: the file that GRETA_LIBRARY names, else the one beside this file, else the system's."""
    soname = f"libgreta.so.{c.GRETA_VERSION // 10000}.{c.GRETA_VERSION // 100 % 100}"
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), soname)
    path = os.environ.get("GRETA_LIBRARY") or (beside if os.path.exists(beside) else soname)
    try:
        library = ctypes.CDLL(path)
        library.greta_version.restype = ctypes.c_uint32
        version = library.greta_version()
    except (OSError, AttributeError) as error:
        raise ImportError(f"{path} cannot be opened ({error}): install a wheel of greta, or set GRETA_LIBRARY to the "
                          "path of libgreta.so") from error
    if version // 10000 != c.GRETA_VERSION // 10000 or version < c.GRETA_VERSION // 100 * 100:
        raise ImportError(f"{path} is version {version} of the library, and this package needs {c.GRETA_VERSION}: "
                          "install a libgreta.so of the same release")
    for name, (result, parameters) in c.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise ImportError(f"{path} has no {name}: install a libgreta.so of the same release") from error
        function.restype, function.argtypes = result, parameters
    return library


lib = _open_library()
_inside = threading.local()


def version() -> str:
    """The version of the library."""
    number = int(lib.greta_version())
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def in_callback() -> bool:
    """Tells whether the library has called this thread's Python code."""
    return bool(getattr(_inside, "depth", 0))


def last_error(status: int) -> GretaError:
    """The exception for a status that the last call on this thread gave."""
    text = (lib.greta_error_text() or b"").decode("utf-8", "replace")
    error = CLASSES.get(status, GretaError)(text or f"the library gave the status {status}")
    if isinstance(error, _LimitError):
        length, limit = ctypes.c_uint64(), ctypes.c_uint64()
        lib.greta_error_numbers(ctypes.byref(length), ctypes.byref(limit))
        error.length, error.limit = length.value, limit.value
    return error


def check(status: int) -> None:
    if status:
        raise last_error(status)


_RANGES = {
    ctypes.c_uint32: (0, 2**32 - 1), ctypes.c_int32: (-2**31, 2**31 - 1), ctypes.c_uint64: (0, 2**64 - 1),
    ctypes.c_int64: (-2**63, 2**63 - 1), ctypes.c_size_t: (0, 2**64 - 1),
}


def whole_number(value: Any, name: str, kind: Any = ctypes.c_uint32) -> int:
    """The value as an int that fits the type, or an error that names the argument."""
    low, high = _RANGES[kind]
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {_shown(value)}, but it must be a whole number")
    number = int(value.__index__())
    if not low <= number <= high:
        raise ValueError(f"{name} is {_shown(number)}, but it must be from {low} to {high}")
    return number


def real_number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{name} is {_shown(value)}, but it must be a number") from error


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # a repr of someone else's, or an int of too many digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def as_bytes(text: Any, name: str) -> bytes:
    """A text in UTF-8. What str can hold and UTF-8 cannot is read by the library as U+FFFD."""
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f"{name} is {_shown(text)}, but it must be a text")


def c_text(text: Any, name: str) -> bytes:
    """A text that C ends with a NUL."""
    found = as_bytes(text, name)
    if b"\0" in found:
        raise ValueError(f"{name} has a NUL character, which is not possible there")
    return found


def listed(values: Any, name: str, of: str) -> list[Any]:
    """The values of a list or another iterable. A text is no list of texts, and a dict none of dicts."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, bytearray, Mapping)):
        raise TypeError(f"{name} is {_shown(values)}, but it must be a list of {of}")
    return list(values)


def must_be(value: Any, kind: str) -> None:
    """Refuses what is no object of this kind, whose pointer the library would take for one."""
    if getattr(getattr(value, "_handle", None), "kind", "") != kind:
        raise TypeError(f"{kind} is {_shown(value)}, but it must be a greta.{kind.capitalize()}")


def as_json(value: Any, name: str) -> bytes:
    import json
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} cannot be written as JSON: {error}") from error


def path_bytes(path: Any) -> bytes:
    try:
        found = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ValueError(f"path is {_shown(path)}, with a character that no file name has") from error
    except TypeError as error:
        raise TypeError(f"path is {_shown(path)}, but it must be the path of a file") from error
    if b"\0" in found:
        raise ValueError("path has a NUL character, which no file name has")
    return found


def make(struct: type[Struct], **values: Any) -> Struct:
    """An options struct with its struct_size and these fields, each of them checked. None leaves the default."""
    made = struct()
    kinds: dict[str, Any] = {field[0]: field[1] for field in struct._fields_}
    if "struct_size" in kinds:
        made.struct_size = ctypes.sizeof(struct)
    for name, value in values.items():
        kind = kinds[name]
        if value is None:
            continue
        if kind in _RANGES:
            value = whole_number(value, name, kind)
        elif kind is ctypes.c_float:
            value = real_number(value, name)
        elif kind is ctypes.c_char_p:
            value = c_text(value, name)
        setattr(made, name, value)
    return made


def token_array(tokens: Any, name: str = "tokens") -> Any:
    """Ids as an array of C's. numpy's int32 arrays are copied in one go."""
    if isinstance(tokens, (str, bytes)):
        raise TypeError(f"{name} must be a list of token ids, and not a text")
    try:
        view = memoryview(tokens)
        if view.format == "i" and view.c_contiguous and view.ndim == 1:
            return (ctypes.c_int32 * len(view)).from_buffer_copy(view)
    except TypeError:
        pass
    try:
        found = [whole_number(each, "a token", ctypes.c_int32) for each in tokens]
    except TypeError as error:
        raise TypeError(f"{name} is {_shown(tokens)}, but it must be a list of token ids ({error})") from error
    return (ctypes.c_int32 * len(found))(*found)


def text_array(texts: Any, name: str) -> Any:
    """Texts as an array of C's; a single text is a list of one."""
    texts = [texts] if isinstance(texts, (str, bytes)) else listed(texts, name, "texts")
    return (ctypes.c_char_p * len(texts))(*[c_text(each, name) for each in texts])


def grow(call: Callable[[Any, int, Any], int], guess: int = 1024) -> bytes:
    """The bytes of a function that writes into text, capacity, out_bytes."""
    while True:
        room, size = ctypes.create_string_buffer(guess + 1), ctypes.c_size_t()
        check(call(room, guess, ctypes.byref(size)))
        if size.value <= guess:
            return room.raw[:size.value]
        guess = size.value


class Callback:
    """A function of Python that the library calls. An exception in it stops the call, which then raises it.

    Ctrl-C is such an exception too: while `call` runs in the main thread, the signal is noted, the next callback
    stops the call, and KeyboardInterrupt is raised behind it.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def wrap(self, kind: Any, function: Callable[..., Any]) -> Any:
        def called(*arguments: Any) -> int:
            _inside.depth = getattr(_inside, "depth", 0) + 1
            try:
                if self.error is None:
                    return int(function(*arguments) or 0)
            except BaseException as error:
                self.error = error
            finally:
                _inside.depth -= 1
            return 1

        return kind(called)

    def call(self, function: Callable[..., int], *arguments: Any) -> int:
        """Calls the library. The status is given back unless a callback has failed."""
        status = self._with_signal(function, arguments)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return status

    def _with_signal(self, function: Callable[..., int], arguments: tuple[Any, ...]) -> int:
        before = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
        if not callable(before):
            return function(*arguments)

        def noted(number: int, frame: FrameType | None) -> None:
            try:
                before(number, frame)
            except BaseException as error:
                self.error = error

        signal.signal(signal.SIGINT, noted)
        try:
            return function(*arguments)
        finally:
            signal.signal(signal.SIGINT, before)


def call_beside(call: Callable[[], Result], cancel: Callable[[], Any]) -> Result:
    """Makes a call that `cancel` can stop and that has no callback. In the main thread, where Python runs the handlers
    of signals between two instructions, another thread makes it, so that Ctrl-C stops it.

    Should a second signal end the wait for the end of the call, what the call uses is still locked until that comes.
    """
    if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        return call()
    results: list[Result] = []
    errors: list[BaseException] = []
    ended = threading.Event()

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    try:  # a signal may come while the thread starts, too
        try:
            threading.Thread(target=work, daemon=True).start()
        except RuntimeError:  # there are too many threads
            ended.set()
            raise
        while not ended.wait(0.1):  # a signal that comes just before a wait begins does not end it
            pass
    except BaseException:
        while not ended.is_set():  # the library may not have begun when it is first told
            with contextlib.suppress(GretaError):
                cancel()
            ended.wait(0.01)
        raise
    if errors:
        raise errors.pop()
    return results.pop()  # so that the other thread, which may still be ending, keeps nothing alive


def kind_of(owner: Any, name: str | int) -> Any:
    """The type of a callback: of a struct's field, or of a function's parameter by its index."""
    if isinstance(name, int):
        return c.FUNCTIONS[owner][1][name]
    return next(field[1] for field in owner._fields_ if field[0] == name)


_LEVELS = {0: 10, 1: 20, 2: 30, 3: 40}  # logging.DEBUG to logging.ERROR


def _log(_user: Any, level: int, text: bytes) -> None:
    _inside.depth = getattr(_inside, "depth", 0) + 1
    try:
        from logging import getLogger  # takes a tenth of the time to import the package
        getLogger("greta").log(_LEVELS.get(level, 20), "%s", text.decode("utf-8", "replace"))
    except Exception:  # what a handler of the log raises says nothing about the call that is under way
        pass
    finally:
        _inside.depth -= 1


#: Given to the library; it must live as long as any runtime.
log_callback = c.greta_log_callback(_log)
