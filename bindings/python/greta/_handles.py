"""Who may use an object of the library, and when it is closed.

A Handle holds the pointer of one object. It knows its parent and its children, so that children are closed first
whatever order the garbage collector takes. An object that is closed while a call runs on it is closed when that call
ends; until then every other call raises ClosedError. So no call ever meets an object that is gone.
"""
from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from ._errors import ClosedError, InUseError
from ._library import in_callback

# Held for a few instructions, never while the library works. The garbage collector may come in between and close an
# object, hence reentrant.
_state = threading.RLock()
_roots: set[Handle] = set()


class Guard:
    """What one thread at a time may use: an executor with its sessions, or the events of a request."""

    __slots__ = ("busy", "views", "waiting")

    def __init__(self) -> None:
        self.busy = False
        self.views = 0  # arrays that show memory of the library
        self.waiting: list[Handle] = []  # to be closed when the guard is free


class Handle:
    """The pointer of an object. `close` is the function that takes it back. A child is made while its parent is in use,
    so that the parent cannot go before it knows of the child."""

    __slots__ = ("kind", "pointer", "parent", "children", "users", "closing", "guard", "_close", "_cancel")

    def __init__(self, kind: str, pointer: int, close: Callable[[int], Any], parent: Handle | None = None,
                 guard: Guard | None = None, cancel: Callable[[int], Any] | None = None) -> None:
        self.kind, self.pointer, self._close, self._cancel = kind, pointer, close, cancel
        self.parent, self.guard = parent, guard
        self.children: set[Handle] = set()
        self.users, self.closing = 0, False
        with _state:
            (parent.children if parent else _roots).add(self)
            orphan = parent is not None and parent.closing
        if orphan:  # The parent was closed while this was opened, and has told its children without it.
            self.close()

    def enter(self) -> int:
        """The pointer, for one call. `leave` must follow."""
        with _state:
            if self.closing:
                raise ClosedError(f"the {self.kind} is closed")
            self.users += 1
            return self.pointer

    def leave(self) -> None:
        with _state:
            self.users -= 1
            if not self.closing:
                return
        self._finish()

    def __enter__(self) -> int:
        return self.enter()

    def __exit__(self, *_: Any) -> None:
        self.leave()

    def close(self) -> None:
        """Closes the children and then the object, or arranges that this happens when running calls end."""
        with _state:
            if self.closing and not self.children:
                return
            self.closing = True
            children = list(self.children)
            if self.users and self._cancel:
                self._cancel(self.pointer)
        for child in children:
            child.close()
        self._finish()

    def _finish(self) -> None:
        with _state:
            if not self.closing or self.users or self.children or not self.pointer:
                return
            if self.guard and (self.guard.busy or self.guard.views):
                if self not in self.guard.waiting:
                    self.guard.waiting.append(self)
                return
            pointer, self.pointer = self.pointer, 0
        if in_callback():  # The library is at work on this thread, perhaps for this very object.
            threading.Thread(target=self._give_back, args=(pointer,), daemon=True).start()
        else:
            self._give_back(pointer)

    def _give_back(self, pointer: int) -> None:
        self._close(pointer)
        with _state:
            parent, self.parent = self.parent, None
            (parent.children if parent else _roots).discard(self)
        if parent:
            parent._finish()


class Exclusive:
    """For one call on an object of which one thread at a time may use the guard.

        with Exclusive(handle, guard) as pointer: ...
    """

    __slots__ = ("handle", "guard")

    def __init__(self, handle: Handle, guard: Guard) -> None:
        self.handle, self.guard = handle, guard

    def __enter__(self) -> int:
        with _state:
            pointer = self.handle.enter()
            if self.guard.busy or self.guard.views:
                self.handle.users -= 1
                if self.guard.busy:
                    raise InUseError(f"the {self.handle.kind} is in use by another call: one thread at a time may use "
                                     "it and what shares its memory")
                raise InUseError(f"an array still shows memory of the {self.handle.kind} (copy=False): copy the array "
                                 "and delete it before the next call")
            self.guard.busy = True
            return pointer

    def __exit__(self, *_: Any) -> None:
        release(self.guard, busy=True)
        self.handle.leave()


def release(guard: Guard, busy: bool) -> None:
    """Ends a call, or the life of an array, and closes what has waited for that."""
    with _state:
        if busy:
            guard.busy = False
        else:
            guard.views -= 1
        waiting, guard.waiting = guard.waiting, []
    for each in waiting:
        each._finish()


class View:
    """Keeps the memory behind an array: while it lives, the guard lets no call through."""

    __slots__ = ("handle", "guard")

    def __init__(self, handle: Handle, guard: Guard) -> None:
        with _state:
            guard.views += 1
        self.handle, self.guard = handle, guard

    def __del__(self) -> None:
        release(self.guard, busy=False)


class Closable:
    """What all objects with a handle have in common."""

    _handle: Handle

    def close(self) -> None:
        """Closes the object and what was opened from it. Closing twice is harmless."""
        handle = getattr(self, "_handle", None)
        if handle is not None:
            handle.close()

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
    _state = threading.RLock()
    _roots.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_threads)
