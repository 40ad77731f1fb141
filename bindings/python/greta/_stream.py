"""The text of a session's generation, piece by piece."""
from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ._answers import Completion
from ._errors import ClosedError

if TYPE_CHECKING:
    from ._session import Session

_LOOK_S = 0.1  # how often a thread that waits looks whether the session was closed


class _Left(Exception):
    """Nobody reads the pieces any more."""


class _Exchange:
    """What the thread that generates and the one that reads have in common. Neither keeps the other alive."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.asked = threading.Semaphore(0)
        self.came: queue.SimpleQueue[str | Completion | BaseException] = queue.SimpleQueue()
        self.left = False

    def on_text(self, text: str) -> None:
        """Gives a piece, and waits until the next one is wanted, so that the session is never further than it."""
        self.came.put(text)
        while not self.asked.acquire(timeout=_LOOK_S):
            if self.session.closed:
                return  # the library has been told to stop
        if self.left:
            raise _Left

    def run(self, generate: Callable[..., Completion]) -> None:
        try:
            self.came.put(generate(on_text=self.on_text))
        except BaseException as error:  # raised again where the pieces are read
            self.came.put(error)


class SessionStream:
    """The pieces of a text that a session writes.

        for piece in session.stream("Once upon a time", max_tokens=50):
            print(piece, end="")

    A token is computed when its piece is asked for. Until the stream has ended or is closed, other calls on the session
    raise InUseError. Leaving the loop early, `close`, and the garbage collector end it; the session holds what was
    computed until then, and goes on from there. `result()` reads the rest and gives the whole.
    """

    def __init__(self, session: Session, generate: Callable[..., Completion]) -> None:
        self._exchange = _Exchange(session)
        self._completion: Completion | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._exchange.run, args=(generate,), daemon=True)

    def __iter__(self) -> Iterator[str]:
        try:
            while (piece := self._next()) is not None:
                yield piece
        finally:
            self.close()

    def _next(self) -> str | None:
        if self._ended:
            return None
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._exchange.asked.release()
        try:
            came = self._exchange.came.get()
        except BaseException:  # Ctrl-C
            self.close()
            raise
        if isinstance(came, str):
            return came
        self._ended = True
        self._thread.join()
        if isinstance(came, BaseException):
            raise came
        self._completion = came
        return None

    def result(self) -> Completion:
        """Reads the pieces that are left, and gives the answer with those that were read before."""
        while self._next() is not None:
            pass
        if self._completion is None:
            raise ClosedError("the stream was closed before its end, so it has no result")
        return self._completion

    def close(self) -> None:
        """Ends the generation. Closing twice is harmless."""
        if self._ended:
            return
        self._ended = self._exchange.left = True
        if not self._thread.is_alive() or self._thread is threading.current_thread():
            return
        self._exchange.asked.release()
        with contextlib.suppress(ClosedError):
            self._exchange.session.cancel()  # it may be at tokens that have no text
        self._thread.join()

    def __enter__(self) -> SessionStream:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_thread"):
            self.close()

    def __repr__(self) -> str:
        state = "ended" if self._completion else "closed" if self._ended else "running"
        return f"<greta.SessionStream, {state}>"
