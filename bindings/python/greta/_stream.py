"""The text of a session's generation, piece by piece."""
from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
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
        self.tell: Callable[[], Any] | None = None  # wakes an event loop that waits for what comes next
        self.left = False

    def give(self, came: str | Completion | BaseException) -> None:
        tell = self.tell
        self.came.put(came)
        if tell:
            with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits
                tell()

    def on_text(self, text: str) -> None:
        """Gives a piece, and waits until the next one is wanted, so that the session is never further than it."""
        self.give(text)
        while not self.asked.acquire(timeout=_LOOK_S):
            if self.session.closed:
                return  # the library has been told to stop
        if self.left:
            raise _Left

    def run(self, generate: Callable[..., Completion]) -> None:
        try:
            came: Completion | BaseException = generate(on_text=self.on_text)
        except BaseException as error:  # raised again where the pieces are read
            came = error
        self.give(came)


class SessionStream:
    """The pieces of a text that a session writes, also with `async for`.

        for piece in session.stream("Once upon a time", max_tokens=50):
            print(piece, end="")

    A token is computed when its piece is asked for. Until the stream has ended or is closed, other calls on the session
    raise InUseError. Leaving the loop early, `close`, and the garbage collector end it, within one step; the session
    holds what was computed until then, and goes on from there. `result()` reads the rest and gives the whole.
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

    def __aiter__(self) -> AsyncIterator[str]:
        return _Pieces(self)

    def _next(self) -> str | None:
        if self._ended:
            return None
        self._ask(None)
        try:
            came = self._exchange.came.get()
        except BaseException:  # Ctrl-C
            self.close()
            raise
        return self._take(came)

    async def _anext(self) -> str | None:
        from asyncio import Event, get_running_loop  # takes a third of the time to import the package
        if self._ended:
            return None
        loop, there = get_running_loop(), Event()
        self._ask(lambda: loop.call_soon_threadsafe(there.set))
        try:
            await there.wait()
        except BaseException:  # the task is cancelled
            self.close()
            raise
        return self._take(self._exchange.came.get())

    def _ask(self, tell: Callable[[], Any] | None) -> None:
        """Wants the next piece, whose coming is told."""
        self._exchange.tell = tell
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._exchange.asked.release()

    def _take(self, came: str | Completion | BaseException) -> str | None:
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
        return self._whole()

    async def aresult(self) -> Completion:
        """The same for asyncio."""
        while await self._anext() is not None:
            pass
        return self._whole()

    def _whole(self) -> Completion:
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


class _Pieces:
    """The pieces for an `async for`. The stream ends with it, as it ends with a generator."""

    def __init__(self, stream: SessionStream) -> None:
        self._stream = stream

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> str:
        piece = await self._stream._anext()
        if piece is None:
            raise StopAsyncIteration
        return piece

    def __del__(self) -> None:
        self._stream.close()
