"""A model and its tokenizer."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _declarations as c
from ._answers import Completion, TokenLogprob
from ._handles import Closable, Lock, open_handle
from ._library import (Callback, as_bytes, as_json, check, grow, kind_of, lib, listed, make, must_be, path_bytes,
                       token_array, whole_number)
from ._options import Options
from ._progress import default_progress
from ._records import ModelInfo, record
from ._request import Request
from ._runtime import Runtime
from ._service import Prompt, Service, now_s

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._chat import Chat
    from ._session import Session


class Tokenizer:
    """Turns text into token ids and back. Any thread may use it while its model is open."""

    def __init__(self, model: Model) -> None:
        must_be(model, "model")
        self._model, self._handle = model, model._handle

    def encode(self, text: str | bytes, *, bos: bool = True, special: bool = False) -> list[int]:
        """The ids of a text.

        bos      add the tokens that the model wants around a text
        special  control tokens that are written out in the text become those tokens
        """
        return list(self._encode(text, bos, special))

    def _encode(self, text: str | bytes, bos: bool, special: bool) -> Any:
        data = as_bytes(text, "text")
        flags, room, count = int(bool(bos)) | 2 * int(bool(special)), len(data) // 2 + 16, ctypes.c_size_t()
        with self._handle.use() as pointer:
            tokenizer = lib.greta_model_tokenizer(pointer)
            while True:
                tokens = (ctypes.c_int32 * room)()
                check(lib.greta_tokenizer_encode(tokenizer, data, len(data), flags, tokens, room, ctypes.byref(count)))
                if count.value <= room:
                    return (ctypes.c_int32 * count.value).from_buffer(tokens)
                room = count.value

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of ids. An incomplete character is U+FFFD; control tokens give no text."""
        return self.decode_bytes(tokens).decode("utf-8", "replace")

    def decode_bytes(self, tokens: Iterable[int]) -> bytes:
        """The text of ids as the bytes that the model means."""
        ids = token_array(tokens)
        with self._handle.use() as pointer:
            tokenizer = lib.greta_model_tokenizer(pointer)
            return grow(lambda room, size, out: int(
                lib.greta_tokenizer_decode(tokenizer, ids, len(ids), room, size, out)), 8 * len(ids) + 16)

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token, also of a control token."""
        number = whole_number(token, "token", ctypes.c_int32)
        with self._handle.use() as pointer:
            tokenizer = lib.greta_model_tokenizer(pointer)
            return grow(lambda room, size, out: int(
                lib.greta_tokenizer_token(tokenizer, number, room, size, out, None)), 256)

    def is_end(self, token: int) -> bool:
        """Tells whether the model ends its answer with this token."""
        number = whole_number(token, "token", ctypes.c_int32)
        with self._handle.use() as pointer:
            return bool(lib.greta_tokenizer_is_end(lib.greta_model_tokenizer(pointer), number))

    def apply_chat_template(self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = True,
                            **variables: Any) -> str:
        """The prompt that the model's template makes of messages; encode it with special=True."""
        context = {"messages": listed(messages, "messages", "dicts"), "add_generation_prompt": add_generation_prompt} | variables
        text, now = as_json(context, "the messages"), now_s()
        with self._handle.use() as pointer:
            tokenizer = lib.greta_model_tokenizer(pointer)
            return grow(lambda room, size, out: int(lib.greta_tokenizer_render(
                tokenizer, text, len(text), now, room, size, out)), 4096).decode("utf-8", "replace")

    @property
    def chat_template(self) -> str:
        """The template in use, "" where a plain format stands in."""
        with self._handle.use() as pointer:
            return (lib.greta_tokenizer_template(lib.greta_model_tokenizer(pointer)) or b"").decode("utf-8", "replace")

    def _number(self, function: Callable[[Any], int]) -> int:
        with self._handle.use() as pointer:
            return function(lib.greta_model_tokenizer(pointer))

    @property
    def bos(self) -> int | None:
        """The token that begins a text."""
        found = self._number(lib.greta_tokenizer_bos)
        return None if found < 0 else found

    @property
    def eos(self) -> int | None:
        """The token that ends a text."""
        found = self._number(lib.greta_tokenizer_eos)
        return None if found < 0 else found

    def __len__(self) -> int:
        return self._number(lib.greta_tokenizer_size)

    def __repr__(self) -> str:
        return "<greta.Tokenizer, closed>" if self._handle.closing else f"<greta.Tokenizer of {len(self)} tokens>"


class Model(Closable):
    """A GGUF model that is loaded. Threads may share it.

        with greta.Model("file.gguf") as model:
            print(model.generate("Once upon a time", max_tokens=50))

    path          a file; any part of a split set stands for the set
    device        "auto" takes the best GPU that works, else the CPU; "cpu", "vulkan0" or "hip1" exactly that one
    runtime       a greta.Runtime in place of a device, to share one
    context, sequences, cache_tokens, cache_type    sizes for answers, in tokens, as of greta.Service
    threads       worker threads of the CPU; 0: one for each processor
    memory_limit  the most bytes to allocate on the device; 0: what is free
    exact         only the plain kernels: slow, and the results do not depend on how a prompt is cut
    map           the weights stay in the file, which nobody may then cut or write to
    progress      called with bytes done and bytes in all; None shows a bar in a terminal; False shows nothing

    Raises FileError, UnsupportedError, OutOfMemoryError, DeviceError. greta.plan says beforehand what it allocates.
    """

    def __init__(self, path: str | bytes | os.PathLike[str], device: str = "auto", *, runtime: Runtime | None = None,
                 context: int = 0, sequences: int = 16, cache_tokens: int = 0, cache_type: str = "default",
                 threads: int = 0, memory_limit: int = 0, exact: bool = False, map: bool = False,
                 progress: Callable[[int, int], Any] | bool | None = None) -> None:
        source = make(c.greta_source, path=path_bytes(path), map=bool(map))
        self.path = os.fsdecode(path)
        self._sizes: dict[str, Any] = {"context": context, "sequences": sequences, "cache_tokens": cache_tokens,
                                       "cache_type": cache_type}
        if runtime is not None:
            must_be(runtime, "runtime")
        self.runtime = runtime or Runtime(device, threads=threads, memory_limit=memory_limit, exact=exact)
        callback, shown = Callback(), default_progress() if progress is None else progress
        told = callback.wrap(kind_of(c.greta_model_options, "progress"),
                             lambda _user, done, total: None if not callable(shown) else shown(done, total) and None)
        options = make(c.greta_model_options, source=ctypes.pointer(source), progress=told)
        self._own_service: Service | None = None
        self._opening = Lock()
        with self.runtime._handle.use() as on:
            self._handle = open_handle(
                lambda place: callback.call(lib.greta_model_open, on, ctypes.byref(options), place), "model",
                lib.greta_model_close, self.runtime._handle)

    @property
    def info(self) -> ModelInfo:
        """Architecture, sizes, and what a token costs."""
        found = make(c.greta_model_info)
        with self._handle.use() as pointer:
            check(lib.greta_model_describe(pointer, ctypes.byref(found)))
            return record(ModelInfo, found)

    @property
    def tokenizer(self) -> Tokenizer:
        """What turns text into token ids and back."""
        return Tokenizer(self)

    @property
    def service(self) -> Service:
        """The service that answers what this model is asked. It is opened when it is first needed."""
        with self._opening:
            if self._own_service is None or self._own_service.closed:
                self._own_service = Service(self, _of_model=True, **self._sizes)
            return self._own_service

    def _prompt_tokens(self, prompt: Prompt, special: bool = False) -> Any:
        if isinstance(prompt, (str, bytes, bytearray)):
            return self.tokenizer._encode(bytes(prompt) if isinstance(prompt, bytearray) else prompt, True, special)
        if prompt is None:
            raise TypeError("prompt is None, but it must be a text or a list of token ids")
        return token_array(prompt, "prompt")

    def generate(self, prompt: Prompt, **options: Unpack[Options]) -> Completion:
        """Writes on from a text or token ids. greta.Options lists the options. Ctrl-C ends it within one step.

        Control tokens that are written out in the text are read as such.
        """
        return self.service.generate(prompt, **options)

    async def agenerate(self, prompt: Prompt, **options: Unpack[Options]) -> Completion:
        """The same for asyncio."""
        return await self.service.agenerate(prompt, **options)

    def generate_all(self, prompts: Iterable[Prompt], **options: Unpack[Options]) -> list[Completion]:
        """Answers many prompts together, `sequences` of them at a time. The results are in their order."""
        return self.service.generate_all(prompts, **options)

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> Request:
        """The pieces of the answer as they come, for `for` and for `async for`."""
        return self.service.stream(prompt, **options)

    def chat(self, **settings: Any) -> Chat:
        """A conversation; greta.Chat lists the settings."""
        return self.service.chat(**settings)

    def score(self, prompt: Prompt, *, top_logprobs: int = 0) -> list[TokenLogprob]:
        """The natural log-probability of each token of a text but the first, given those before it."""
        return self.service.score(prompt, top_logprobs=top_logprobs)

    def score_all(self, prompts: Iterable[Prompt], *, top_logprobs: int = 0) -> list[list[TokenLogprob]]:
        """The same for many texts, which are read together."""
        return self.service.score_all(prompts, top_logprobs=top_logprobs)

    def embed(self, text: Prompt | Sequence[str], *, pooling: str = "default", raw: bool = False) -> Any:
        """A float32 vector [width] of a text, or [texts, width] of a list, of length 1 unless `raw`."""
        return self.service.embed(text, pooling=pooling, raw=raw)

    def session(self, **sizes: Any) -> Session:
        """A sequence of tokens to read logits of, fork, save and restore; greta.Session lists the sizes."""
        from ._session import Session
        return Session(self, **sizes)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    async def __aenter__(self) -> Model:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return f"<greta.Model {self.path}, closed>"
        info, device = self.info, self.runtime.info.id
        return (f"<greta.Model {info.name or self.path}: {info.architecture}, {info.parameters / 1e6:.0f} M parameters, "
                f"{info.type}, {info.weights_bytes / 1e6:.0f} MB on {device}>")
