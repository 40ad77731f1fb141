"""What comes out of a model: events, and the whole of an answer."""
from __future__ import annotations

import dataclasses
import json
from typing import Any

from . import _declarations as c

#: Why an answer ended, by greta_stop_reason.
REASONS = {0: "length", 1: "end", 2: "context", 3: "cancelled", 4: "stop", 5: "unread"}


@dataclasses.dataclass(frozen=True)
class TokenLogprob:
    """A token, its natural log-probability, and the likeliest tokens in its place, the likeliest first."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclasses.dataclass(frozen=True)
class Text:
    """A piece of what the model says. `str(event)` is the piece."""

    text: str
    token: int = -1
    logprob: TokenLogprob | None = None

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Reasoning:
    """A piece of what the model thinks."""

    text: str
    token: int = -1
    logprob: TokenLogprob | None = None

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a tool, whole. `arguments` is what the model has written, as values of JSON."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class ToolResult:
    """What a function of Python gave for a call. `failed` tells that it raised, and `text` says what."""

    call: Call
    text: str
    failed: bool = False


@dataclasses.dataclass(frozen=True)
class Completion:
    """An answer. `str(completion)` and print give its text.

    text              what the model said
    reason            why it ended: "end", "length", "stop", "context", "cancelled", "unread"
    reasoning, calls  what the model thought, and which tools it called (of a chat)
    tokens            the tokens of the answer
    logprobs          for each token, where they were asked for
    parsed            the value of a response_format; None where the answer ended too early to be one
    prompt_tokens, cached_tokens, generated_tokens    counts; cached ones were not computed again
    queued_s, prompt_s, generate_s                    seconds
    """

    text: str
    reason: str
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    tokens: tuple[int, ...] = dataclasses.field(default=(), repr=False)
    logprobs: tuple[TokenLogprob, ...] = dataclasses.field(default=(), repr=False)
    parsed: Any = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    queued_s: float = dataclasses.field(default=0.0, repr=False)
    prompt_s: float = dataclasses.field(default=0.0, repr=False)
    generate_s: float = dataclasses.field(default=0.0, repr=False)

    def __str__(self) -> str:
        return self.text


class Collected:
    """The parts of an answer so far."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[Call] = []
        self.tokens: list[int] = []
        self.logprobs: list[TokenLogprob] = []
        self.prompt: list[TokenLogprob] = []

    def completion(self, result: c.greta_request_result, parse: Any) -> Completion:
        text, reason = "".join(self.text), REASONS.get(result.reason, "unknown")
        parsed = None
        if parse is not None and reason in ("end", "stop", "length", "context") and text:
            try:
                parsed = parse(text)
            except json.JSONDecodeError:  # cut before its end
                parsed = None
        return Completion(text, reason, "".join(self.reasoning), tuple(self.calls), tuple(self.tokens),
                          tuple(self.logprobs), parsed, result.prompt_tokens, result.cached_tokens,
                          result.generated_tokens, result.queued_ns / 1e9, result.prompt_ns / 1e9,
                          result.generate_ns / 1e9)
