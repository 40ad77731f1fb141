"""How an answer is asked for: the options of generations, by name, and the structs that are made of them."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from . import _declarations as c
from ._library import as_json, make, real_number, text_array, whole_number
from ._schema import response_schema


class Options(TypedDict, total=False):
    """Options of generate, stream, chat and their like. What is not given is off, or takes its default.

    max_tokens      the most tokens of the answer; 0 or nothing: until the context is full
    stop            a text or a list of texts that end the answer
    temperature     0 or nothing takes the most likely token; with `seed` a draw is the same each time
    top_k, top_p, min_p, typical_p, top_n_sigma    which tokens may be drawn
    repeat_penalty, frequency_penalty, presence_penalty, penalty_last_n    less of what was said
                    in the last 64 tokens, or as many as penalty_last_n says
    dynamic_range, dynamic_exponent, xtc_probability, xtc_threshold, mirostat_tau, mirostat_eta
    logit_bias      {token: bias}; a bias of -inf forbids the token
    sampler_order   names of steps with ";" between them
    grammar         GBNF that the answer must fit; grammar_root names its first rule
    response_format what the answer must be: a dataclass, a TypedDict, a pydantic model, or a JSON schema as a dict or
                    a text. `parsed` of the answer is the value.
    strict_schema   True refuses a schema of which something cannot be held
    logprobs        True: the log-probability (natural, of the model) of each token
    top_logprobs    how many of the likeliest tokens are listed beside it, at most 1000
    ignore_end      True: tokens that end an answer are tokens like others
    priority        -2 to 2; the larger goes first
    salt            requests share cached prompts only with those of the same salt
    no_cache        True: nothing is taken from the prefix cache or left there
    draft_tokens    how many tokens may be guessed and verified in a step, at most 7
    shift           True: a full context forgets its older half; keep_tokens at its beginning stay
    reasoning_tokens    reasoning is closed after so many tokens
    """

    max_tokens: int
    stop: str | Sequence[str]
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    top_n_sigma: float
    dynamic_range: float
    dynamic_exponent: float
    xtc_probability: float
    xtc_threshold: float
    repeat_penalty: float
    frequency_penalty: float
    presence_penalty: float
    penalty_last_n: int
    mirostat_tau: float
    mirostat_eta: float
    seed: int
    logit_bias: Mapping[int, float]
    sampler_order: str
    grammar: str
    grammar_root: str
    response_format: Any
    strict_schema: bool
    logprobs: bool
    top_logprobs: int
    ignore_end: bool
    priority: int
    salt: int
    no_cache: bool
    draft_tokens: int
    shift: bool
    keep_tokens: int
    reasoning_tokens: int


# Fields of greta_sampling_options and greta_request_options that take an option of their own name as it is.
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical_p", "top_n_sigma", "dynamic_range", "dynamic_exponent",
            "xtc_probability", "xtc_threshold", "repeat_penalty", "frequency_penalty", "presence_penalty",
            "penalty_last_n", "mirostat_tau", "mirostat_eta", "seed", "grammar", "grammar_root")
_REQUEST = ("max_tokens", "priority", "salt", "draft_tokens", "keep_tokens", "reasoning_tokens", "top_logprobs")
_FLAGS = ("ignore_end", "no_cache", "shift", "logprobs")


def refuse_unknown(options: Mapping[str, Any]) -> None:
    known = Options.__annotations__
    for name in options:
        if name not in known:
            import difflib
            near = difflib.get_close_matches(name, known, 1)
            raise TypeError(f"{name} is no option" + (f"; is {near[0]} meant?" if near else ""))


def with_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are given, and those without which they would do nothing."""
    given = {name: value for name, value in options.items() if value is not None}
    if any(name in given for name in ("repeat_penalty", "frequency_penalty", "presence_penalty")):
        given.setdefault("penalty_last_n", 64)
    if "xtc_probability" in given:
        given.setdefault("xtc_threshold", 0.1)
    return given


def bias_arrays(biases: Mapping[int, float] | None) -> tuple[Any, Any, int]:
    if biases is not None and not isinstance(biases, Mapping):
        raise TypeError(f"logit_bias is a {type(biases).__name__}, but it must be a dict of tokens and their biases")
    found = {whole_number(token, "a token of logit_bias", ctypes.c_int32): real_number(bias, "a bias of logit_bias")
             for token, bias in (biases or {}).items()}
    return (ctypes.c_int32 * len(found))(*found), (ctypes.c_float * len(found))(*found.values()), len(found)


class Asked:
    """The structs of a request, with everything that they point to."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        refuse_unknown(options)
        given = with_defaults(options)
        self.parse: Callable[[str], Any] | None = None
        schema = None
        if "response_format" in given:
            schema, self.parse = response_schema(given["response_format"])
        self.bias_tokens, self.biases, count = bias_arrays(given.get("logit_bias"))
        self.sampling = make(c.greta_sampling_options, json_schema=schema, bias_tokens=self.bias_tokens,
                             biases=self.biases, bias_count=count, order=given.get("sampler_order"),
                             strict_schema=bool(given.get("strict_schema")),
                             **{name: given[name] for name in SAMPLING if name in given})
        self.stop = text_array(given.get("stop", ()), "stop")
        logprobs = bool(given.get("logprobs")) or bool(given.get("top_logprobs"))
        values: dict[str, Any] = {name: given[name] for name in _REQUEST if name in given}
        values |= {name: bool(given.get(name)) for name in _FLAGS} | {"logprobs": logprobs}
        self.request = make(c.greta_request_options, sampling=ctypes.pointer(self.sampling), stop_strings=self.stop,
                            stop_count=len(self.stop), limit_reasoning="reasoning_tokens" in given, **values)
        self.keep: list[Any] = []

    def ask_tokens(self, tokens: Any) -> None:
        self.request.tokens, self.request.token_count = tokens, len(tokens)

    def ask_messages(self, messages: Sequence[Mapping[str, Any]], chat: c.greta_chat_options) -> None:
        """Each message goes as JSON, which has room for calls and for any character."""
        texts = [as_json(message, "a message") for message in messages]
        array = (c.greta_message * len(texts))(*[c.greta_message(None, None, text) for text in texts])
        self.keep += [array, chat, texts]
        self.request.messages, self.request.message_count = array, len(texts)
        self.request.chat = ctypes.pointer(chat)
