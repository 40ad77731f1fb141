"""A service: many requests at once, from threads and from asyncio."""
from __future__ import annotations

import contextlib
import ctypes
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _declarations as c
from ._answers import Completion, TokenLogprob
from ._arrays import floats, rows_of, stacked
from ._errors import ClosedError
from ._handles import Closable, open_handle
from ._library import Callback, check, kind_of, lib, listed, make, must_be
from ._options import Asked, Options
from ._records import ServiceInfo, record
from ._request import SLICE_NS, Request
from ._runtime import executor_options

if TYPE_CHECKING:
    import asyncio

    from typing_extensions import Unpack

    from ._chat import Chat
    from ._model import Model

Prompt = str | bytes | Sequence[int]
_TEXTS = (str, bytes, bytearray)
_POOLINGS = {"default": 0, "mean": 1, "first": 2, "last": 3, "none": 4}


class _Waker:
    """Wakes the coroutines of one event loop when a request of theirs has something to read.

    The library tells it by eventfd_write, which needs neither Python nor its lock: a step of the model never waits
    for a thread of Python.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, service: Service) -> None:
        self.loop, self.service = loop, service
        self.waiting: set[asyncio.Future[None]] = set()

    def on_ready(self) -> None:
        try:
            os.eventfd_read(self.service._ready)
        except BlockingIOError:
            pass
        for waker in list(self.service._wakers.values()):
            if waker is self:
                self.wake()
            else:
                with contextlib.suppress(RuntimeError):  # a loop that is closed
                    waker.loop.call_soon_threadsafe(waker.wake)

    def wake(self) -> None:
        waiting, self.waiting = self.waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, request: Request) -> None:
        """Until something has come for any request of the loop. What came before this call counts."""
        future = self.loop.create_future()
        if not self.waiting:
            self.loop.add_reader(self.service._ready, self.on_ready)
        self.waiting.add(future)
        try:
            await future
        finally:
            self.waiting.discard(future)
            if not self.waiting:
                self.loop.remove_reader(self.service._ready)


class Service(Closable):
    """Answers many requests on one model at once. All of its functions may be called from any thread.

    Each step of the model computes a token for every answer that is being written. A model makes itself one when it
    is first asked; open another one for other sizes.

    context       the most tokens of one text; 0: 8192, or what the model was trained for if that is less
    sequences     how many requests run at once; the others wait
    cache_tokens  the tokens that the cache holds for all of them; 0: `context`
    cache_type    "f16" (the default), "f32" or "q8_0"
    max_requests  the most that wait or run; more raise BusyError. 0: 1024
    page_folder   a folder in which read prompts outlive the program
    chunk_tokens  how many tokens of prompts a step reads while answers are written; 0: by measured times

    Raises OutOfMemoryError where this needs more memory than is free.
    """

    def __init__(self, model: Model, *, context: int = 0, sequences: int = 16, cache_tokens: int = 0,
                 cache_type: str = "default", max_requests: int = 0, event_capacity: int = 0,
                 host_cache_bytes: int = 0, page_folder: str | None = None, chunk_tokens: int = 0,
                 _of_model: bool = False) -> None:
        must_be(model, "model")
        # A model that owns its service is not kept by it, so that it is closed as soon as nobody has it.
        self._model = weakref.ref(model) if _of_model else lambda: model
        self._wakers: dict[asyncio.AbstractEventLoop, _Waker] = {}
        sizes = executor_options(context, sequences, cache_tokens, cache_type)
        write = ctypes.cast(ctypes.CDLL(None).eventfd_write, kind_of(c.greta_service_options, "on_ready"))
        options = make(c.greta_service_options, own_thread=1, executor=ctypes.pointer(sizes), on_ready=write,
                       max_requests=max_requests, event_capacity=event_capacity,
                       host_cache_bytes=host_cache_bytes, page_folder=page_folder, chunk_tokens=chunk_tokens)
        callback = Callback()
        with model._handle.use() as of:
            self._ready = options.on_ready_user = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._handle = open_handle(
                lambda place: callback.call(lib.greta_service_open, of, ctypes.byref(options), place), "service",
                lib.greta_service_close, model._handle, after=_closing(self._ready))

    @property
    def model(self) -> Model:
        """The model that answers."""
        model = self._model()
        if model is None:
            raise ClosedError("the model is closed")
        return model

    # ---- asking ----

    def submit(self, prompt: Prompt, **options: Unpack[Options]) -> Request:
        """Adds a request and returns at once. Raises BusyError, and FullError for a prompt that is too long."""
        asked = Asked(options)
        asked.ask_tokens(self.model._prompt_tokens(prompt, special=True))
        return self._add(asked)

    def _add(self, asked: Asked) -> Request:
        asked.request.user = 1  # what on_ready adds to the eventfd
        return Request(self, asked)

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> Request:
        """The pieces of the answer as they come, for `for` and for `async for`."""
        return self.submit(prompt, **options)

    def generate(self, prompt: Prompt, **options: Unpack[Options]) -> Completion:
        """Writes on from a prompt. Ctrl-C ends it within one step."""
        return self.submit(prompt, **options).result()

    async def agenerate(self, prompt: Prompt, **options: Unpack[Options]) -> Completion:
        """The same for asyncio."""
        return await self.submit(prompt, **options).aresult()

    def generate_all(self, prompts: Iterable[Prompt], **options: Unpack[Options]) -> list[Completion]:
        """Answers many prompts together. The results are in the order of the prompts."""
        requests: list[Request] = []
        try:
            for prompt in listed(prompts, "prompts", "prompts"):
                requests.append(self.submit(prompt, **options))
            return _together(requests)
        finally:
            for request in requests:
                request.close()

    def chat(self, **settings: Any) -> Chat:
        """A conversation; greta.Chat lists the settings."""
        from ._chat import Chat
        return Chat(self.model, service=self, **settings)

    def score(self, prompt: Prompt, *, top_logprobs: int = 0) -> list[TokenLogprob]:
        """The natural log-probability of each token of a text but the first, given those before it."""
        return self.score_all([prompt], top_logprobs=top_logprobs)[0]

    def score_all(self, prompts: Iterable[Prompt], *, top_logprobs: int = 0) -> list[list[TokenLogprob]]:
        """The same for many texts, which are read together."""
        requests: list[Request] = []
        try:
            for prompt in listed(prompts, "prompts", "prompts"):
                asked = Asked({"top_logprobs": top_logprobs, "logprobs": True})
                asked.ask_tokens(self.model._prompt_tokens(prompt))
                asked.request.prompt_logprobs = asked.request.no_answer = 1
                requests.append(self._add(asked))
            _together(requests)
            return [request._collected.prompt for request in requests]
        finally:
            for request in requests:
                request.close()

    def embed(self, text: Prompt | Sequence[str], *, pooling: str = "default", raw: bool = False) -> Any:
        """A vector of a text, float32 [width], or of each text of a list, [texts, width]: a numpy array where numpy
        is, else array.array, or a list of them. Vectors have the length 1 unless `raw`.

        pooling  "default" is what the file says; "mean", "first", "last"; "none" gives a vector for each token,
                 [tokens, width], and a list of such arrays for a list of texts. With raw=True these are the hidden
                 states, what the model's last norm gives.
        """
        if pooling not in _POOLINGS:
            raise ValueError(f"pooling is {pooling!r}, but it must be one of {', '.join(_POOLINGS)}")
        if isinstance(text, Iterator):
            text = list(text)
        many = isinstance(text, Iterable) and not isinstance(text, _TEXTS) and all(isinstance(each, _TEXTS) for each in text)
        requests = []
        texts: Iterable[Any] = text if many else [text]
        for each in texts:
            asked = Asked({})
            asked.ask_tokens(self.model._prompt_tokens(each))
            options = make(c.greta_embed_options, pooling=_POOLINGS[pooling], raw=bool(raw))
            asked.keep.append(options)
            asked.request.embed = ctypes.pointer(options)
            requests.append(self._add(asked))
        _together(requests)
        if pooling == "none":
            states = [rows_of(request._embedding, self.model.info.width) for request in requests]
            return states if many else states[0]
        vectors = [floats(request._embedding) for request in requests]
        return stacked(vectors) if many else vectors[0]

    # ---- itself ----

    @property
    def info(self) -> ServiceInfo:
        """What the service does, as of its last step."""
        found = make(c.greta_service_info)
        with self._handle.use() as pointer:
            check(lib.greta_service_describe(pointer, ctypes.byref(found)))
        return record(ServiceInfo, found)

    def _waker(self, loop: asyncio.AbstractEventLoop) -> _Waker:
        for old in list(self._wakers):  # a copy, since other threads change it at the same time
            if old.is_closed():
                self._wakers.pop(old, None)
        return self._wakers.setdefault(loop, _Waker(loop, self))

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    async def __aenter__(self) -> Service:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<greta.Service, closed>"
        info = self.info
        return f"<greta.Service of {self.model.info.name or self.model.path}: {info.running} run, {info.waiting} wait>"


def _closing(descriptor: int) -> Callable[[], None]:
    """Closes the descriptor that the library's thread has written to, in the process that opened it."""
    process = os.getpid()
    return lambda: os.close(descriptor) if os.getpid() == process else None


def _together(requests: Sequence[Request]) -> list[Completion]:
    """Reads requests until all have ended. Nobody waits for single tokens, so they are read some milliseconds at a
    time: else reading takes a processor from the model at every step. The end is noticed at most 2 % too late."""
    pending, began = list(requests), time.monotonic()
    while pending:
        pending[0]._drain(SLICE_NS)
        time.sleep(min(0.004, (time.monotonic() - began) / 50))
        for request in pending:
            request._drain(0)
            if request._result is not None:
                request.close()
        pending = [request for request in pending if request._result is None]
    return [request._completion() for request in requests]


def now_s() -> int:
    """Seconds since 1970 on a clock that shows local time."""
    import calendar  # takes a twentieth of the time to import the package
    return calendar.timegm(time.localtime())
