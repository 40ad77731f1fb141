"""A session: one sequence of tokens, whose logits can be read, and which can be forked, saved and restored."""
from __future__ import annotations

import ctypes
import functools
import io
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from . import _declarations as c
from ._answers import REASONS, Completion
from ._arrays import first_row, rows_at
from ._errors import InUseError
from ._handles import Closable, Exclusive, Guard, Handle, open_handle
from ._library import (Callback, as_bytes, c_text, call_beside, check, kind_of, lib, make, must_be, path_bytes, real_number,
                       text_array, token_array, whole_number)
from ._options import SAMPLING, bias_arrays, refuse_unknown, with_defaults
from ._runtime import executor_options
from ._schema import response_schema
from ._service import _POOLINGS, Prompt
from ._stream import SessionStream

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._model import Model
    from ._options import Options

Result = TypeVar("Result")
# A call that reads no more tokens than this ends soon enough for Ctrl-C.
_FEW_TOKENS = 32
_ROWS = {"none": 0, "last": 1, "all": 2}
# The functions that set a step of sampling: the option of each parameter, with what stands in for one not given.
_STEPS: dict[str, tuple[tuple[str, float], ...]] = {
    "greta_session_temperature": (("temperature", 0),),
    "greta_session_dynamic_temperature": (("dynamic_range", 0), ("dynamic_exponent", 1)),
    "greta_session_top_k": (("top_k", 0),),
    "greta_session_top_p": (("top_p", 1),),
    "greta_session_min_p": (("min_p", 0),),
    "greta_session_typical_p": (("typical_p", 1),),
    "greta_session_top_n_sigma": (("top_n_sigma", 0),),
    "greta_session_xtc": (("xtc_probability", 0), ("xtc_threshold", 0.1)),
    "greta_session_penalties": (("repeat_penalty", 1), ("frequency_penalty", 0), ("presence_penalty", 0),
                                ("penalty_last_n", 64)),
    "greta_session_mirostat": (("mirostat_tau", 0), ("mirostat_eta", 0.1)),
    "greta_session_seed": (("seed", 0),),
    "greta_session_draft_tokens": (("draft_tokens", 0),),
}
_HERE = set(SAMPLING) | {"logit_bias", "sampler_order", "response_format", "strict_schema", "draft_tokens"}


class Session(Closable):
    """One sequence of tokens that a model has read or written. One thread at a time may use it and its forks.

    context     the most tokens; 0: 8192, or what the model was trained for if that is less
    sequences   how many forks may be open at once
    cache_tokens, cache_type, output_rows    as of greta.Service; output_rows speeds rows="all" up

    Raises OutOfMemoryError where this needs more memory than is free.
    """

    def __init__(self, model: Model, *, context: int = 0, sequences: int = 4, cache_tokens: int = 0,
                 cache_type: str = "default", output_rows: int = 0, _forked: tuple[Handle, Guard] | None = None) -> None:
        must_be(model, "model")
        self.model = model
        self._taken_back = False  # tokens before its end may have to be read again first
        if _forked is not None:
            self._handle, self._guard = _forked
            return
        self._guard = Guard()
        sizes = executor_options(context, sequences, cache_tokens, cache_type, output_rows=output_rows)
        options = make(c.greta_session_options, private_executor=ctypes.pointer(sizes))
        with model._handle.use() as of:
            self._handle = self._opened(lambda place: int(lib.greta_session_open(of, ctypes.byref(options), place)))

    def _opened(self, open_at: Callable[[Any], int]) -> Handle:
        return open_handle(open_at, "session", lib.greta_session_close, self.model._handle, self._guard,
                           lib.greta_session_cancel)

    def _use(self) -> Exclusive:
        return Exclusive(self._handle, self._guard)

    # ---- the sequence ----

    @property
    def position(self) -> int:
        """How many tokens it holds."""
        with self._use() as pointer:
            return int(lib.greta_session_position(pointer))

    @property
    def context(self) -> int:
        """The most tokens that it may hold."""
        with self._use() as pointer:
            return int(lib.greta_session_context(pointer))

    @property
    def tokens(self) -> list[int]:
        """The tokens that it holds."""
        with self._use() as pointer:
            count = lib.greta_session_position(pointer)
            return list(lib.greta_session_tokens(pointer)[:count]) if count else []

    def truncate(self, position: int = 0) -> None:
        """Forgets the tokens from `position` on; 0 forgets all."""
        with self._use() as pointer:
            check(lib.greta_session_truncate(pointer, whole_number(position, "position")))
            self._taken_back = True

    def fork(self) -> Session:
        """A second session with the same past, which costs no computation. Raises FullError where `sequences` are
        open."""
        with self._use() as pointer:
            made = self._opened(lambda place: int(lib.greta_session_fork(pointer, place)))
            try:
                fork = Session(self.model, _forked=(made, self._guard))
                fork._taken_back = self._taken_back
                return fork
            except BaseException:  # Ctrl-C
                made.close()
                raise

    # ---- reading ----

    def eval(self, prompt: Prompt, rows: str = "last", *, copy: bool = True) -> Any:
        """Reads tokens and gives logits, float32: [vocab_size] for what follows the last token, [tokens, vocab_size]
        with rows="all", None with "none".

        With copy=False the array is a read-only view of the library's memory. While it lives, this session and its
        forks refuse every other call.

        Ctrl-C, and `cancel` from another thread (CancelledError), end the call at its next step. The session holds the
        tokens up to `position` then.
        """
        if rows not in _ROWS:
            raise ValueError(f"rows is {rows!r}, but it must be one of {', '.join(_ROWS)}")
        tokens = self._tokens(prompt)
        logits = ctypes.POINTER(ctypes.c_float)()
        width = self.model.info.vocab_size

        def read(pointer: int) -> Any:
            check(lib.greta_session_eval(pointer, tokens, len(tokens), _ROWS[rows], ctypes.byref(logits)))
            return None if rows == "none" else self._rows(logits, len(tokens) if rows == "all" else 1, width, copy)

        found = self._read(len(tokens), read)
        return first_row(found) if rows == "last" else found

    def _read(self, count: int, read: Callable[[int], Result]) -> Result:
        """Calls `read` with the pointer. Where it may take many steps, Ctrl-C ends it at the next one."""
        def used() -> Result:
            with self._use() as pointer:
                result = read(pointer)
                self._taken_back = False
                return result

        return used() if count <= _FEW_TOKENS and not self._taken_back else call_beside(used, self.cancel)

    def _rows(self, numbers: Any, rows: int, columns: int, copy: bool) -> Any:
        address = ctypes.cast(numbers, ctypes.c_void_p).value or 0
        return rows_at(address, rows, columns, None if copy else (self._handle, self._guard))

    def embed(self, prompt: Prompt, *, pooling: str = "default", raw: bool = False, copy: bool = True) -> Any:
        """Reads tokens and gives a float32 vector [width] for them. What the session holds is their past.

        pooling  "default" is what the file says; "mean", "first", "last"; "none" gives a vector for each token,
                 [tokens, width]
        raw      vectors keep their length, else it becomes 1. pooling="none" and raw=True give the hidden states: what
                 the model's last norm gives, and its logits are made from.

        `copy`, Ctrl-C and `cancel` are as for `eval`.
        """
        if pooling not in _POOLINGS:
            raise ValueError(f"pooling is {pooling!r}, but it must be one of {', '.join(_POOLINGS)}")
        tokens, vectors = self._tokens(prompt), ctypes.POINTER(ctypes.c_float)()
        options = make(c.greta_embed_options, pooling=_POOLINGS[pooling], raw=bool(raw))
        each, width = pooling == "none", self.model.info.width

        def read(pointer: int) -> Any:
            check(lib.greta_session_embed(pointer, tokens, len(tokens), ctypes.byref(options), ctypes.byref(vectors)))
            return self._rows(vectors, len(tokens) if each else 1, width, copy)

        found = self._read(len(tokens), read)
        return found if each else first_row(found)

    def _tokens(self, prompt: Prompt) -> Any:
        """A text that is read later goes on, so it gets no BOS token."""
        if isinstance(prompt, (str, bytes)):
            return self.model.tokenizer._encode(prompt, self.position == 0, True)
        return self.model._prompt_tokens(prompt)

    # ---- writing ----

    def set_sampling(self, **options: Unpack[Options]) -> None:
        """Sets how tokens are chosen from now on; what is not named is off. greta.Options lists the options, of which
        those of sampling, grammar and response_format count here."""
        refuse_unknown(options)
        given = with_defaults(options)
        for name in given.keys() - _HERE:
            raise TypeError(f"{name} is no option of a session's sampling")
        with self._use() as pointer:
            self._set_sampling(pointer, given)

    def _set_sampling(self, pointer: int, given: Mapping[str, Any]) -> None:
        check(lib.greta_session_sampling_clear(pointer))
        for function, parameters in _STEPS.items():
            if any(name in given for name, _ in parameters):
                kinds = c.FUNCTIONS[function][1][1:]
                values = [real_number(given.get(name, default), name) if kind is ctypes.c_float
                          else whole_number(given.get(name, default), name, kind)
                          for (name, default), kind in zip(parameters, kinds)]
                check(getattr(lib, function)(pointer, *values))
        if "logit_bias" in given:
            tokens, biases, count = bias_arrays(given["logit_bias"])
            check(lib.greta_session_logit_bias(pointer, tokens, biases, count))
        if "sampler_order" in given:
            check(lib.greta_session_sampler_order(pointer, c_text(given["sampler_order"], "sampler_order")))
        if "grammar" in given:
            root = c_text(given["grammar_root"], "grammar_root") if "grammar_root" in given else None
            check(lib.greta_session_grammar(pointer, c_text(given["grammar"], "grammar"), root))
        if "response_format" in given:
            schema = c_text(response_schema(given["response_format"])[0], "response_format")
            strict = given.get("strict_schema")
            check((lib.greta_session_strict_schema if strict else lib.greta_session_json_schema)(pointer, schema))

    def sample(self, logits: Any) -> int:
        """The token that follows from a row of logits, by the sampling that is set. It is not fed."""
        width = self.model.info.vocab_size
        row = (ctypes.c_float * width)()
        try:
            view = memoryview(logits)
        except TypeError as error:
            raise TypeError(f"logits must be float32 [{width}], as eval gives them: {error}") from error
        if view.format != "f" or view.nbytes != 4 * width:
            raise ValueError(f"logits must be float32 [{width}], as eval gives them")
        ctypes.memmove(row, view.tobytes(), 4 * width)
        token = ctypes.c_int32()
        with self._use() as pointer:
            check(lib.greta_session_sample(pointer, row, ctypes.byref(token)))
        return token.value

    def generate(self, prompt: Prompt, *, max_tokens: int = 0, stop: Any = (), ignore_end: bool = False,
                 shift: bool = False, on_text: Callable[[str], Any] | None = None,
                 on_prompt: Callable[[int, int], Any] | None = None) -> Completion:
        """Reads a prompt and writes on. The last token that is drawn has not been read by the session.

        on_text    receives each piece of text
        on_prompt  receives how many tokens of the prompt are read, and of how many

        What they raise ends the call, and so does Ctrl-C, within one step.
        """
        tokens, stops, pieces, drawn = self._tokens(prompt), text_array(stop, "stop"), [""], []

        def on_token(_user: Any, token: int, text: int, count: int) -> None:
            if token >= 0:
                drawn.append(token)
            piece = ctypes.string_at(text, count).decode("utf-8", "replace") if count else ""
            pieces.append(piece)
            if on_text and piece:
                on_text(piece)

        def on_read(_user: Any, done: int, total: int) -> None:
            if on_prompt:
                on_prompt(done, total)

        callback, struct = Callback(), c.greta_generate_options
        options = make(struct, max_tokens=max_tokens, ignore_end=bool(ignore_end), shift=bool(shift),
                       stop_strings=stops, stop_count=len(stops),
                       on_token=callback.wrap(kind_of(struct, "on_token"), on_token),
                       on_prompt=callback.wrap(kind_of(struct, "on_prompt"), on_read))
        result = make(c.greta_generate_result)
        with self._use() as pointer:
            check(callback.call(lib.greta_session_generate, pointer, tokens, len(tokens), ctypes.byref(options),
                                ctypes.byref(result)))
        return Completion("".join(pieces), REASONS.get(result.reason, "unknown"), tokens=tuple(drawn),
                          prompt_tokens=result.prompt_tokens, generated_tokens=result.generated_tokens,
                          prompt_s=result.prompt_ns / 1e9, generate_s=result.generate_ns / 1e9)

    def stream(self, prompt: Prompt, *, max_tokens: int = 0, stop: Any = (), ignore_end: bool = False,
               shift: bool = False) -> SessionStream:
        """The same, piece by piece for a `for` loop. A token is computed when its piece is asked for."""
        return SessionStream(self, functools.partial(self.generate, prompt, max_tokens=max_tokens, stop=stop,
                                                     ignore_end=ignore_end, shift=shift))

    def cancel(self) -> None:
        """Asks the call that is running on the session to stop at its next step, from any thread."""
        with self._handle.use() as pointer:
            lib.greta_session_cancel(pointer)

    # ---- saving ----

    def save(self, to: str | os.PathLike[str] | BinaryIO | None = None) -> bytes | None:
        """Writes the tokens with their keys and values to a path or an open file; without one it gives the bytes."""
        if isinstance(to, (str, os.PathLike)):
            with open(to, "wb") as file:
                self._save(file.write)
            return None
        if to is not None and not hasattr(to, "write"):
            raise TypeError(f"to is {to!r}, but it must be a path or an open file")
        memory = io.BytesIO()
        self._save(to.write if to is not None else memory.write)
        return None if to is not None else memory.getvalue()

    def _save(self, write: Callable[[bytes], Any]) -> None:
        callback = Callback()

        def on_bytes(_user: Any, data: int, count: int) -> None:
            write(ctypes.string_at(data, count))

        told = callback.wrap(c.greta_write_callback, on_bytes)
        with self._use() as pointer:
            status = callback.call(lib.greta_session_save, pointer, told, None)
            check(status)

    def restore(self, source: str | os.PathLike[str] | bytes | memoryview) -> None:
        """Replaces what the session holds with a saved one, from a path or from bytes. Sampling stays as it is.

        Raises FileError, UnsupportedError or FullError; the session is as before then.
        """
        if isinstance(source, (bytes, bytearray, memoryview)):
            data = as_bytes(source, "source")
            memory = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value
            given = make(c.greta_source, memory=memory, memory_bytes=len(data))
        else:
            given = make(c.greta_source, path=path_bytes(source))
        with self._use() as pointer:
            check(lib.greta_session_restore(pointer, ctypes.byref(given)))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<greta.Session, closed>"
        try:
            return f"<greta.Session of {self.position} tokens, at most {self.context}>"
        except InUseError:  # a repr raises nothing
            return "<greta.Session, in use>"
