"""A request of a service: its events, one after the other, for threads and for asyncio."""
from __future__ import annotations

import ctypes
import json
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, cast

from . import _declarations as c
from ._answers import Call, Collected, Completion, Reasoning, Text, TokenLogprob
from ._errors import ClosedError
from ._handles import Closable, Exclusive, Guard, open_handle
from ._library import check, lib, make

if TYPE_CHECKING:
    from ._options import Asked
    from ._service import Service

# How long a wait in the library lasts before Python may look for signals, such as that of Ctrl-C.
SLICE_NS = 20_000_000
_KIND = c.greta_event_kind
NOTHING, _TEXT, _REASONING = int(_KIND.GRETA_EVENT_NONE), int(_KIND.GRETA_EVENT_TEXT), int(_KIND.GRETA_EVENT_REASONING)
_CALL, _PROMPT, _END = int(_KIND.GRETA_EVENT_TOOL_CALL), int(_KIND.GRETA_EVENT_PROMPT), int(_KIND.GRETA_EVENT_END)
_EMBEDDING = int(_KIND.GRETA_EVENT_EMBEDDING)
_PARTS = (_TEXT, _REASONING, _CALL)
Event = Text | Reasoning | Call


class Request(Closable):
    """An answer that is being written: iterate over it for the pieces of its text, also with `async for`.

        for piece in model.stream("Once upon a time", max_tokens=50):
            print(piece, end="")

    `events()` gives all parts with their tokens, `result()` waits for the end. Leaving the loop early, `close`, and
    the garbage collector all end the request at the next step. One thread at a time may read it; `cancel` may come
    from any thread.
    """

    def __init__(self, service: Service, asked: Asked) -> None:
        self._service, self._asked, self._model = service, asked, service.model
        self._collected, self._guard = Collected(), Guard()
        self._embedding: Any = None
        self._result: c.greta_request_result | None = None
        with service._handle.use() as at:
            self._handle = open_handle(
                lambda place: int(lib.greta_service_add(at, ctypes.byref(asked.request), place)), "request",
                lib.greta_request_close, service._handle, self._guard, lib.greta_request_cancel)
        self._event = make(c.greta_request_event)
        self._at_event, self._last = ctypes.byref(self._event), cast(Event, None)
        self._wants_logprobs = bool(asked.request.logprobs)

    # ---- events ----

    def _next(self, timeout_ns: int) -> int:
        """Waits for the next event and gives its kind. At the end the result is read."""
        with Exclusive(self._handle, self._guard) as pointer:
            check(lib.greta_request_next(pointer, timeout_ns, self._at_event))
            self._take(pointer, self._event.kind, True)
            return self._event.kind

    def _drain(self, timeout_ns: int) -> None:
        """Collects what has come, after a wait for the first of it."""
        following, event, at_event = lib.greta_request_next, self._event, self._at_event
        with Exclusive(self._handle, self._guard) as pointer:
            while self._result is None:
                check(following(pointer, timeout_ns, at_event))
                if event.kind == NOTHING:
                    return
                self._take(pointer, event.kind, False)
                timeout_ns = 0

    def _take(self, pointer: int, kind: int, shown: bool) -> None:
        """Copies an event, whose texts end with the next call. One that is shown becomes an object."""
        if kind == _TEXT or kind == _REASONING:
            self._take_text(kind == _TEXT, shown)
        elif kind == _CALL:
            self._last = self._call()
            self._collected.calls.append(self._last)
        elif kind == _END and self._result is None:
            result = make(c.greta_request_result)
            check(lib.greta_request_finish(pointer, ctypes.byref(result)))
            self._result = result
        elif kind == _EMBEDDING:
            count = self._event.embedding_count
            self._embedding = (ctypes.c_float * count)()
            ctypes.memmove(self._embedding, self._event.embedding, 4 * count)
        elif kind == _PROMPT:
            self._collected.prompt.append(self._logprob())

    def _take_text(self, said: bool, shown: bool) -> None:
        event, collected = self._event, self._collected
        length, token, logprob = event.bytes, event.token, None
        text = ctypes.string_at(event.text, length).decode("utf-8", "replace") if length and event.text else ""
        if text:
            (collected.text if said else collected.reasoning).append(text)
        if token >= 0:
            collected.tokens.append(token)
            if self._wants_logprobs:
                logprob = self._logprob()
                collected.logprobs.append(logprob)
        if shown:
            self._last = (Text if said else Reasoning)(text, token, logprob)

    def _logprob(self) -> TokenLogprob:
        event = self._event
        top = tuple((event.top[i].token, event.top[i].logprob) for i in range(event.top_count))
        return TokenLogprob(event.token, event.logprob, top)

    def _call(self) -> Call:
        event = self._event
        arguments = json.loads(event.arguments or b"{}")
        return Call((event.id or b"").decode(), (event.name or b"").decode(), arguments)

    def _shows(self) -> bool:
        """Text may be held back until it is a character, or no stop string; such an event has nothing to show."""
        last = self._last
        return isinstance(last, Call) or bool(last.text) or last.logprob is not None

    def events(self) -> Iterator[Event]:
        """Text, Reasoning and Call, as they come."""
        try:
            while self._result is None:
                kind = self._next(SLICE_NS)
                if kind in _PARTS and self._shows():
                    yield self._last
        finally:
            self.close()

    async def aevents(self) -> AsyncIterator[Event]:
        """The same for asyncio."""
        from asyncio import get_running_loop  # takes a third of the time to import the package
        waker = self._service._waker(get_running_loop())
        try:
            while self._result is None:
                kind = self._next(0)
                if kind == NOTHING:
                    await waker.wait(self)
                elif kind in _PARTS and self._shows():
                    yield self._last
        finally:
            self.close()

    def __iter__(self) -> Iterator[str]:
        for event in self.events():
            if isinstance(event, Text) and event.text:
                yield event.text

    async def __aiter__(self) -> AsyncIterator[str]:
        async for event in self.aevents():
            if isinstance(event, Text) and event.text:
                yield event.text

    # ---- the whole ----

    def result(self) -> Completion:
        """Waits for the end, and gives the answer with all that was read before."""
        self._must_end()
        try:
            while self._result is None:
                self._drain(SLICE_NS)
        finally:
            self.close()
        return self._completion()

    async def aresult(self) -> Completion:
        """The same for asyncio."""
        self._must_end()
        async for _ in self.aevents():
            pass
        return self._completion()

    def _must_end(self) -> None:
        if self._result is None and self.closed:
            raise ClosedError("the request was closed before its end, so it has no result")

    def _completion(self) -> Completion:
        self._must_end()
        assert self._result is not None
        return self._collected.completion(self._result, self._asked.parse)

    def _so_far(self) -> Completion:
        """The answer, or what was read of one that was stopped."""
        if self._result is not None:
            return self._completion()
        return self._collected.completion(make(c.greta_request_result, reason=3), None)

    def cancel(self) -> None:
        """Ends the answer at the next step, from any thread. What was written until then can still be read."""
        with self._handle.use() as pointer:
            lib.greta_request_cancel(pointer)

    def __enter__(self) -> Request:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "ended" if self._result is not None else "closed" if self.closed else "running"
        return f"<greta.Request, {state}, {len(self._collected.tokens)} tokens>"
