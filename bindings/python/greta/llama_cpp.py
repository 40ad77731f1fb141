"""Llama, with the common calls of llama-cpp-python: programs that use them change the import.

    from greta.llama_cpp import Llama

docs/python.md lists the calls. What is not there raises an error that says so; arguments that only tune llama.cpp
itself (n_batch, use_mlock, offload_kqv and the like) are accepted and do nothing.
"""
from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import Chat, Completion, GretaError, Model, Text
from ._answers import Call, TokenLogprob
from ._runtime import info

# Arguments of llama-cpp-python that say how llama.cpp works, and nothing of what it computes.
_TUNING = frozenset("""n_batch n_ubatch n_threads_batch use_mmap use_mlock offload_kqv flash_attn op_offload verbose
    numa last_n_tokens_size vocab_only split_mode main_gpu tensor_split logits_all embedding swa_full kv_unified
    no_perf""".split())
_SAMPLING = {"temperature": "temperature", "top_p": "top_p", "min_p": "min_p", "typical_p": "typical_p",
             "top_k": "top_k", "frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty",
             "repeat_penalty": "repeat_penalty", "seed": "seed", "mirostat_tau": "mirostat_tau",
             "mirostat_eta": "mirostat_eta", "max_tokens": "max_tokens", "stop": "stop", "logit_bias": "logit_bias",
             "top_logprobs": "top_logprobs"}
_COMPLETION = {"temperature": 0.8, "top_p": 0.95, "min_p": 0.05, "top_k": 40, "max_tokens": 16}
_CHAT = {"temperature": 0.2, "top_p": 0.95, "min_p": 0.05, "top_k": 40}
_REASONS = {"end": "stop", "stop": "stop", "length": "length", "context": "length"}


class LlamaGrammar:
    """A grammar in GBNF."""

    def __init__(self, grammar: str) -> None:
        self.grammar = grammar

    @classmethod
    def from_string(cls, grammar: str, verbose: bool = True) -> LlamaGrammar:
        return cls(grammar)

    @classmethod
    def from_file(cls, file: str, verbose: bool = True) -> LlamaGrammar:
        with open(file, encoding="utf-8") as opened:
            return cls(opened.read())


def _options(defaults: Mapping[str, Any], given: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """The options of greta for arguments of llama-cpp-python."""
    options = {_SAMPLING[name]: value for name, value in defaults.items()}
    for name, value in given.items():
        if name in _SAMPLING:
            options[_SAMPLING[name]] = value
        elif name == "grammar":
            options["grammar"] = value.grammar if isinstance(value, LlamaGrammar) else value
        elif name == "mirostat_mode":
            if value not in (0, 2):
                raise NotImplementedError("only mirostat_mode 0 and 2 are there")
        elif name == "response_format":
            options["response_format"] = value if value and value.get("type") != "text" else None
            if value and value.get("type") == "json_object" and "schema" in value:
                options["response_format"] = value["schema"]
        elif value is not None:
            raise NotImplementedError(f"the argument {name} is not there in greta.llama_cpp")
    if not given.get("mirostat_mode"):
        options.pop("mirostat_tau", None), options.pop("mirostat_eta", None)
    else:
        options.setdefault("mirostat_tau", 5.0)
    if options.get("max_tokens") is not None and options["max_tokens"] <= 0:
        options["max_tokens"] = None
    if options.get("seed") is None or options["seed"] < 0:
        options["seed"] = seed if seed is not None else uuid.uuid4().int & 0xffffffff
    if options.get("logit_bias"):
        # Programs write -1e9 where they mean never. The library takes up to 1e6, which decides as much.
        options["logit_bias"] = {int(token): bias if abs(bias) == math.inf else max(-1e6, min(bias, 1e6))
                                 for token, bias in options["logit_bias"].items()}
    return {name: value for name, value in options.items() if value is not None}


class Llama:
    """A model with the calls of llama_cpp.Llama. n_gpu_layers=0, the default, is the CPU; else the best GPU is taken,
    with all layers. `model` is the greta.Model behind it."""

    def __init__(self, model_path: str, *, n_gpu_layers: int = 0, n_ctx: int = 512, n_threads: int | None = None,
                 seed: int | None = None, chat_format: str | None = None, **others: Any) -> None:
        for name, value in others.items():
            if name not in _TUNING and value is not None:
                raise NotImplementedError(f"the argument {name} is not there in greta.llama_cpp")
        self.model_path, self._seed = model_path, seed if seed is None or seed >= 0 else None
        self._template = chat_format if chat_format in ("chatml", "llama3", "gemma", "phi3", "mistral") else None
        if chat_format is not None and self._template is None:
            raise NotImplementedError(f"the chat_format {chat_format} is not there: leave it out for the model's own")
        self.model = Model(model_path, "auto" if n_gpu_layers else "cpu", context=n_ctx, threads=n_threads or 0,
                           progress=None if others.get("verbose", True) else False)
        self.metadata = {key: value.strip('"') for key, value in info(model_path).metadata.items()}

    # ---- texts ----

    def create_completion(self, prompt: str | Sequence[int], suffix: str | None = None, echo: bool = False,
                          stream: bool = False, logprobs: int | None = None, model: str | None = None,
                          **given: Any) -> Any:
        """A completion as a dict in OpenAI's form, or an iterator of pieces with stream=True."""
        if suffix is not None:
            raise NotImplementedError("suffix is not there in greta.llama_cpp")
        options = _options(_COMPLETION, given, self._seed)
        if logprobs is not None:
            options |= {"logprobs": True, "top_logprobs": logprobs}
        identity = {"id": f"cmpl-{uuid.uuid4()}", "object": "text_completion", "created": int(time.time()),
                    "model": model or self.model_path}
        request = self.model.stream(prompt, **options)
        shown = prompt if isinstance(prompt, str) else self.model.tokenizer.decode(prompt)
        if stream:
            return self._pieces(request, identity, shown if echo else "")
        answer = request.result()
        choice = {"text": (shown if echo else "") + answer.text, "index": 0, "finish_reason": _reason(answer),
                  "logprobs": self._logprobs(answer) if logprobs is not None else None}
        return identity | {"choices": [choice], "usage": _usage(answer)}

    __call__ = create_completion

    def _pieces(self, request: Any, identity: dict[str, Any], first: str) -> Iterator[dict[str, Any]]:
        def piece(text: str, reason: str | None) -> dict[str, Any]:
            return identity | {"choices": [{"text": text, "index": 0, "logprobs": None, "finish_reason": reason}]}

        if first:
            yield piece(first, None)
        for text in request:
            yield piece(text, None)
        yield piece("", _reason(request.result()))

    def _logprobs(self, answer: Completion) -> dict[str, Any]:
        def text(token: int) -> str:
            return self.model.tokenizer.token_bytes(token).decode("utf-8", "replace")

        def top(each: TokenLogprob) -> dict[str, float]:
            return {text(token): value for token, value in each.top}

        return {"tokens": [text(each.token) for each in answer.logprobs],
                "token_logprobs": [each.logprob for each in answer.logprobs],
                "top_logprobs": [top(each) for each in answer.logprobs]}

    # ---- chat ----

    def create_chat_completion(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] | None = None,
                               tool_choice: Any = None, stream: bool = False, model: str | None = None,
                               **given: Any) -> Any:
        """An answer as a dict in OpenAI's form, or an iterator of pieces with stream=True."""
        options = _options(_CHAT, given, self._seed)
        chosen = tool_choice["function"]["name"] if isinstance(tool_choice, Mapping) else tool_choice
        chat = Chat(self.model, messages=messages, tools=[dict(tool) for tool in tools or ()], tool_choice=chosen,
                    template=self._template, rounds=1)
        identity = {"id": f"chatcmpl-{uuid.uuid4()}", "created": int(time.time()), "model": model or self.model_path}
        if stream:
            return self._chat_pieces(chat, options, identity | {"object": "chat.completion.chunk"})
        answer = chat.ask(**options)
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        if answer.calls:
            message |= {"content": answer.text or None, "tool_calls": [_call(each) for each in answer.calls]}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(answer)}
        return identity | {"object": "chat.completion", "choices": [choice], "usage": _usage(answer)}

    def _chat_pieces(self, chat: Chat, options: dict[str, Any], identity: dict[str, Any]) -> Iterator[dict[str, Any]]:
        def piece(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
            return identity | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

        yield piece({"role": "assistant"})
        answer, count = chat.send(**options), 0
        for event in answer:
            if isinstance(event, Text):
                yield piece({"content": event.text})
            elif isinstance(event, Call):
                yield piece({"tool_calls": [{"index": count} | _call(event)]})
                count += 1
        yield piece({}, _reason(answer.completion))

    # ---- vectors ----

    def create_embedding(self, input: str | Sequence[str], model: str | None = None) -> dict[str, Any]:
        """Vectors as a dict in OpenAI's form."""
        texts = [input] if isinstance(input, str) else list(input)
        count = sum(len(self.tokenize(text.encode())) for text in texts)
        data = [{"object": "embedding", "embedding": vector, "index": index}
                for index, vector in enumerate(self.embed(texts))]
        return {"object": "list", "data": data, "model": model or self.model_path,
                "usage": {"prompt_tokens": count, "total_tokens": count}}

    def embed(self, input: str | Sequence[str], normalize: bool = False, truncate: bool = True) -> Any:
        """A vector as a list of floats, or one for each text of a list."""
        vectors = self.model.embed(input, raw=not normalize)
        return [float(each) for each in vectors] if isinstance(input, str) else [list(map(float, each)) for each in vectors]

    # ---- tokens ----

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        """The ids of a text."""
        return self.model.tokenizer.encode(text, bos=add_bos, special=special)

    def detokenize(self, tokens: Sequence[int], prev_tokens: Any = None, special: bool = False) -> bytes:
        """The bytes of ids."""
        tokenizer = self.model.tokenizer
        return b"".join(map(tokenizer.token_bytes, tokens)) if special else tokenizer.decode_bytes(tokens)

    def token_bos(self) -> int:
        """The token that begins a text, -1 where there is none."""
        found = self.model.tokenizer.bos
        return -1 if found is None else found

    def token_eos(self) -> int:
        """The token that ends a text, -1 where there is none."""
        found = self.model.tokenizer.eos
        return -1 if found is None else found

    def n_ctx(self) -> int:
        """The most tokens of a text."""
        with self.model.session(context=self.model._sizes["context"]) as session:
            return session.context

    def n_vocab(self) -> int:
        """How many tokens there are."""
        return self.model.info.vocab_size

    def n_embd(self) -> int:
        """The width of a vector."""
        return self.model.info.width

    def reset(self) -> None:
        """Nothing: what was read is found again by its tokens."""

    def set_seed(self, seed: int) -> None:
        """The seed of answers that name none."""
        self._seed = seed

    def close(self) -> None:
        """Closes the model. Closing twice is harmless."""
        self.model.close()

    def __enter__(self) -> Llama:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Llama.{name} is not there in greta.llama_cpp; docs/python.md lists what is")

    @classmethod
    def from_pretrained(cls, *_: Any, **__: Any) -> Llama:
        """Not there: GRETA downloads nothing."""
        raise NotImplementedError("greta downloads no models: download the file and give Llama its path")


def _reason(answer: Completion | None) -> str:
    if answer is None:
        raise GretaError("the answer has not ended")
    return "tool_calls" if answer.calls else _REASONS.get(answer.reason, answer.reason)


def _usage(answer: Completion) -> dict[str, int]:
    return {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.generated_tokens,
            "total_tokens": answer.prompt_tokens + answer.generated_tokens}


def _call(call: Call) -> dict[str, Any]:
    import json
    return {"id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}


__all__ = ["Llama", "LlamaGrammar"]
