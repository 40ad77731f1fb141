"""Who may use an object of the library, and when it is closed.

A Handle holds the pointer of one object. It knows its parent and its children, so that children are closed first
whatever order the garbage collector takes. An object that is closed while a call runs on it is closed when that call
ends; until then every other call raises ClosedError. So no call ever meets an object that is gone.

A signal may raise an exception in the main thread wherever a function is entered or has ended. What counts here is
therefore changed by assignments without a call between them, and what ends something does nothing where it is called
again, which it is after an exception.
"""
from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from ._errors import ClosedError, InUseError
from ._library import check, in_callback

class Lock:
    """A reentrant lock for `with`, which an exception of a signal never leaves locked.

    From Python 3.14 on the lock of `threading` stays locked where a signal comes just as `with` has taken it: Python
    looks for signals behind each function in C. It does not behind what a `for` loop calls, nor behind the end of a
    function in Python, and what unlocks is in C, so that it is done before Python looks.
    """

    __slots__ = ("__enter__", "__exit__")

    def __init__(self) -> None:
        lock = threading.RLock()
        taken = iter(lock.acquire, None)

        def enter() -> None:
            for _ in taken:
                return

        self.__enter__, self.__exit__ = enter, lock.__exit__


# Held for a few instructions, never while the library works. The garbage collector may come in between and close an
# object, hence reentrant.
_state = Lock()
_roots: set[Handle] = set()


class Guard:
    """What one thread at a time may use: an executor with its sessions, or the events of a request."""

    __slots__ = ("call", "views", "waiting")

    def __init__(self) -> None:
        self.call: weakref.ref[Use] | None = None  # that uses it; one that is gone was left by an exception
        self.views = 0  # arrays that show memory of the library
        self.waiting: list[Handle] = []  # to be closed when the guard is free

    @property
    def busy(self) -> bool:
        call = self.call
        return call is not None and call() is not None

    def free(self) -> None:
        """Closes what has waited for the end of a call, or of the life of an array."""
        waiting: list[Handle] = []
        try:
            with _state:
                waiting, self.waiting = self.waiting, waiting
        finally:
            for each in waiting:
                each._finish()


class Handle:
    """The pointer of an object. `close` is the library's function that takes it back, and `after` comes behind it. A
    child is made while its parent is in use, so that the parent cannot go before it knows of the child."""

    __slots__ = ("kind", "pointer", "parent", "children", "users", "closing", "going", "guard", "_close", "_cancel",
                 "_after")

    def __init__(self, kind: str, close: Callable[[int], Any], parent: Handle | None = None, guard: Guard | None = None,
                 cancel: Callable[[int], Any] | None = None, after: Callable[[], Any] | None = None) -> None:
        self.kind, self.pointer, self._close, self._cancel, self._after = kind, 0, close, cancel, after
        self.parent, self.guard = parent, guard
        self.children: set[Handle] = set()
        self.users: set[weakref.ref[Use]] = set()  # calls; one that is gone was left by an exception
        self.closing, self.going = False, False

    def hold(self, pointer: int) -> None:
        """Takes the pointer of the object that was opened, and tells the parent."""
        parent = self.parent
        with _state:
            self.pointer = pointer
            (parent.children if parent else _roots).add(self)
            orphan = parent is not None and parent.closing
        if orphan:  # The parent was closed while this was opened, and has told its children without it.
            self.close()

    def use(self) -> Use:
        """For calls: `with handle.use() as pointer`."""
        return Use(self)

    def close(self) -> None:
        """Closes the children and then the object, or arranges that this happens when running calls end."""
        with _state:
            if not self.pointer:
                return
            self.closing = True
            children = list(self.children)
            if self._cancel and any(call() for call in self.users):
                self._cancel(self.pointer)
        for child in children:
            child.close()
        self._finish()

    def _finish(self) -> None:
        goes, beside = False, in_callback()
        try:
            with _state:
                if not self.closing or self.children or not self.pointer or self.going:
                    return
                if any(call() for call in self.users):
                    return
                if self.guard and (self.guard.busy or self.guard.views):
                    if self not in self.guard.waiting:
                        self.guard.waiting.append(self)
                    return
                goes = self.going = True
        finally:
            if goes and beside:  # The library is at work on this thread, perhaps for this very object.
                threading.Thread(target=self._give_back, daemon=True).start()
            elif goes:
                try:
                    self._give_back()
                except BaseException:
                    self._give_back()
                    raise

    def _give_back(self) -> None:
        pointer, self.pointer = self.pointer, 0
        try:
            if pointer:
                self._close(pointer)
        finally:
            try:
                self._forget()
            except BaseException:
                self._forget()
                raise

    def _forget(self) -> None:
        after, self._after = self._after, None
        if after:
            after()
        with _state:
            (self.parent.children if self.parent else _roots).discard(self)
        if self.parent:
            self.parent._finish()


def open_handle(open_at: Callable[[Any], int], kind: str, close: Callable[[int], Any], parent: Handle | None = None,
                guard: Guard | None = None, cancel: Callable[[int], Any] | None = None,
                after: Callable[[], Any] | None = None) -> Handle:
    """Opens an object: `open_at` gets the place for its pointer, and gives a status. Where that has failed, or Ctrl-C
    comes behind it, nothing stays open."""
    place, handle = ctypes.c_void_p(), Handle(kind, close, parent, guard, cancel, after)
    try:
        check(open_at(ctypes.byref(place)))
        handle.hold(place.value or 0)
        return handle
    except BaseException:
        if handle.pointer:
            handle.close()
        elif not handle.closing:
            close(place.value or 0)
            if after:
                after()
        raise


class Use:
    """One call on an object, within a `with`, or its right to one thread at a time."""

    __slots__ = ("handle", "call", "__weakref__")

    def __init__(self, handle: Handle) -> None:
        self.handle, self.call = handle, weakref.ref(self)

    def __enter__(self) -> int:
        try:
            with _state:
                return self._begin()
        except BaseException:
            self._end()
            raise

    def _begin(self) -> int:
        if self.handle.closing:
            raise ClosedError(f"the {self.handle.kind} is closed")
        self.handle.users.add(self.call)
        return self.handle.pointer

    def __exit__(self, *_: Any) -> None:
        try:
            self._end()
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        """Ends the call, and closes what has waited for that."""
        with _state:
            self.handle.users.discard(self.call)
        if self.handle.closing:
            self.handle._finish()


class Exclusive(Use):
    """For one call on an object of which one thread at a time may use the guard.

        with Exclusive(handle, guard) as pointer: ...
    """

    __slots__ = ("guard",)

    def __init__(self, handle: Handle, guard: Guard) -> None:
        self.handle, self.guard, self.call = handle, guard, weakref.ref(self)

    def _begin(self) -> int:
        handle, guard = self.handle, self.guard
        if handle.closing or guard.call or guard.views:
            self._refuse()
        handle.users.add(self.call)
        guard.call = self.call
        return handle.pointer

    def _refuse(self) -> None:
        kind = self.handle.kind
        if self.handle.closing:
            raise ClosedError(f"the {kind} is closed")
        if self.guard.busy:
            raise InUseError(f"the {kind} is in use by another call: one thread at a time may use it and what shares its "
                             "memory")
        if self.guard.views:
            raise InUseError(f"an array still shows memory of the {kind} (copy=False): copy the array and delete it "
                             "before the next call")

    def _end(self) -> None:
        guard = self.guard
        with _state:
            self.handle.users.discard(self.call)
            if guard.call is self.call:
                guard.call = None
        if guard.waiting:
            guard.free()
        if self.handle.closing:
            self.handle._finish()


class View:
    """Keeps the memory behind an array: while it lives, the guard lets no call through."""

    __slots__ = ("handle", "guard")

    def __init__(self, handle: Handle, guard: Guard) -> None:
        with _state:
            guard.views += 1
        self.handle, self.guard = handle, guard

    def __del__(self) -> None:
        with _state:
            self.guard.views -= 1
        self.guard.free()


class Closable:
    """What all objects with a handle have in common."""

    _handle: Handle

    def close(self) -> None:
        """Closes the object and what was opened from it. Closing twice is harmless."""
        handle = getattr(self, "_handle", None)
        if handle is not None:
            try:
                handle.close()
            except BaseException:
                handle.close()
                raise

    @property
    def closed(self) -> bool:
        handle = getattr(self, "_handle", None)
        return handle is None or handle.closing

    def __del__(self) -> None:
        self.close()

    def __reduce_ex__(self, _protocol: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be pickled or copied: it belongs to this process. Give the "
                        "path of the file to the other one, which opens it itself")


def _close_all() -> None:
    """At the end of the interpreter: threads that are still in the library get two seconds to come out of it."""
    for root in list(_roots):
        root.close()
    end = time.monotonic() + 2
    while _roots and time.monotonic() < end:
        time.sleep(0.001)


def _forget_threads() -> None:
    """In a child process, which has none of the threads: neither one that holds the lock nor one that is at work."""
    global _state
    _state = Lock()
    _roots.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_threads)
