"""Conversations: messages in, events of text, reasoning and calls out, and functions of Python as tools."""
from __future__ import annotations

import copy
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _declarations as c
from ._answers import Call, Completion, Reasoning, Text, ToolResult
from ._library import as_json, listed, make, must_be, whole_number
from ._options import Asked, refuse_unknown
from ._request import Request
from ._schema import arguments_of, text_of, tool_of
from ._service import Service, now_s

if TYPE_CHECKING:
    from ._model import Model

Message = Mapping[str, Any]
Tool = Callable[..., Any] | Mapping[str, Any]
ChatEvent = Text | Reasoning | Call | ToolResult


class Chat:
    """A conversation with a model.

        chat = model.chat(system="You are brief.", tools=[weather])
        for event in chat.send("Will it rain in Rome?", max_tokens=200):
            print(event, end="")

    system         a first message of the system
    messages       a conversation to go on with, as dicts in OpenAI's form; `chat.messages` is the list, and may be
                   changed between two answers
    tools          functions with type hints, which are called (async ones with asyncio), or dicts in OpenAI's form, whose calls you answer
                   with `add_result`
    tool_choice    "none", "auto", "required", or the name of a tool
    one_call, strict_tools    as in greta_chat_options
    template       a Jinja text, or "chatml", "llama3", "gemma", "phi3", "mistral", in place of the model's
    arguments      further variables of the template, such as {"enable_thinking": False}
    raw            True: an answer is one text with the marks that the model writes
    forget_oldest  True: where the context is full, the oldest turns leave
    rounds         how often tools are called and the model is asked again before `send` ends
    service        a greta.Service in place of the model's own
    others         options that hold for each answer: temperature, max_tokens and so on (greta.Options)

    Several chats of one model are answered together; one thread at a time may use a chat.
    """

    def __init__(self, model: Model, *, system: str | None = None, messages: Sequence[Message] = (),
                 tools: Sequence[Tool] = (), tool_choice: str | None = None, one_call: bool = False,
                 strict_tools: bool = False, template: str | None = None, arguments: Mapping[str, Any] | None = None,
                 raw: bool = False, forget_oldest: bool = False, join_system: bool = False, rounds: int = 8,
                 service: Service | None = None, **options: Any) -> None:
        refuse_unknown(options)
        must_be(model, "model")
        if service is not None:
            must_be(service, "service")
        self.model, self.rounds = model, whole_number(rounds, "rounds")
        self._service, self._options = service or model.service, options
        self._functions: dict[str, Callable[..., Any]] = {}
        described = []
        for tool in listed(tools, "tools", "functions"):
            described.append(dict(tool) if isinstance(tool, Mapping) else tool_of(tool))
            if not isinstance(tool, Mapping):
                self._functions[described[-1]["function"]["name"]] = tool
        self._settings: dict[str, Any] = {
            "tools": json.dumps(described) if described else None, "chat_template": template, "raw": bool(raw),
            "arguments": as_json(dict(arguments), "arguments") if arguments else None, "forget_oldest": bool(forget_oldest),
            "join_system": bool(join_system), "tool_choice": tool_choice if described else None,
            "one_call": bool(one_call), "strict_tools": bool(strict_tools)}
        self.messages: list[dict[str, Any]] = [_message(each) for each in listed(messages, "messages", "dicts")]
        if system is not None:
            self.messages.insert(0, {"role": "system", "content": system})

    def send(self, content: str | Sequence[Mapping[str, Any]] | None = None, **options: Any) -> Answer:
        """Adds a message of the user and gives the answer, which is written while you iterate over it.

        Without content the conversation is answered as it is, for instance after add_result.
        """
        refuse_unknown(options)
        if content is not None:
            self.messages.append({"role": "user", "content": _content(content)})
        return Answer(self, self._options | options)

    def ask(self, content: str | None = None, **options: Any) -> Completion:
        """Sends a message and waits for the whole answer."""
        return self.send(content, **options).result()

    async def aask(self, content: str | None = None, **options: Any) -> Completion:
        """The same for asyncio."""
        return await self.send(content, **options).aresult()

    def add_result(self, call: Call, result: Any) -> None:
        """Adds what a tool gave for a call. `send()` without a message goes on then."""
        text = result if isinstance(result, str) else json.dumps(result, default=str)
        self.messages.append({"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text})

    def fork(self) -> Chat:
        """A second conversation with the same past. What both have read is computed once."""
        made = copy.copy(self)
        made.messages = copy.deepcopy(self.messages)
        return made

    def _request(self, options: Mapping[str, Any]) -> Request:
        asked = Asked(options)
        asked.ask_messages(self.messages, make(c.greta_chat_options, now_s=now_s(), **self._settings))
        return self._service._add(asked)

    def _take(self, completion: Completion) -> None:
        """Adds an answer to the conversation, also one that was stopped, unless it is empty."""
        if not (completion.text or completion.calls or completion.reasoning):
            return
        message: dict[str, Any] = {"role": "assistant", "content": completion.text}
        if completion.reasoning:
            message["reasoning_content"] = completion.reasoning
        if completion.calls:
            message["tool_calls"] = [{"id": each.id, "type": "function", "function": {
                "name": each.name, "arguments": each.arguments}} for each in completion.calls]
        self.messages.append(message)

    def _run(self, call: Call) -> ToolResult | None:
        """Calls a function of Python. What it raises is told to the model."""
        function = self._functions.get(call.name)
        if function is None:
            return None
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{call.name} is an async function, which is called in `async for` and by `aask`")
        try:
            return self._told(call, text_of(function(**arguments_of(function, call.arguments))))
        except Exception as error:
            return self._told(call, f"{type(error).__name__}: {error}", True)

    async def _arun(self, call: Call) -> ToolResult | None:
        """The same for asyncio, where functions may be async."""
        function = self._functions.get(call.name)
        if function is None:
            return None
        try:
            result = function(**arguments_of(function, call.arguments))
            return self._told(call, text_of(await result if inspect.isawaitable(result) else result))
        except Exception as error:
            return self._told(call, f"{type(error).__name__}: {error}", True)

    def _told(self, call: Call, text: str, failed: bool = False) -> ToolResult:
        self.add_result(call, text)
        return ToolResult(call, text, failed)

    def __repr__(self) -> str:
        return f"<greta.Chat of {len(self.messages)} messages, {len(self._functions)} functions>"


def _message(message: Any) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise TypeError(f"a message is a {type(message).__name__}, but it must be a dict with a role and a content")
    return dict(message)


def _content(content: Any) -> Any:
    if isinstance(content, bytes):
        return content.decode("utf-8", "replace")
    if not isinstance(content, (str, list, tuple)):
        raise TypeError(f"the message is a {type(content).__name__}, but it must be a text or a list of parts")
    return content


class Answer:
    """An answer of a chat: iterate over it for Text, Reasoning, Call and ToolResult, also with `async for`.

    After it, `completion` is the last answer of the model. Leaving the loop early stops the answer; what was said
    until then stays in the conversation.
    """

    def __init__(self, chat: Chat, options: Mapping[str, Any]) -> None:
        self._chat, self._options = chat, options
        self.completion: Completion | None = None

    def __iter__(self) -> Iterator[ChatEvent]:
        for _ in range(self._chat.rounds):
            request = self._chat._request(self._options)
            try:
                yield from request.events()
            finally:
                self._end(request)
            results = [each for each in map(self._chat._run, self._calls()) if each is not None]
            yield from results
            if not results:
                return

    async def __aiter__(self) -> AsyncIterator[ChatEvent]:
        for _ in range(self._chat.rounds):
            request = self._chat._request(self._options)
            try:
                async for event in request.aevents():
                    yield event
            finally:
                self._end(request)
            ran = False
            for call in self._calls():
                result = await self._chat._arun(call)
                if result is not None:
                    ran = True
                    yield result
            if not ran:
                return

    def _end(self, request: Request) -> None:
        request.close()
        self.completion = request._so_far()
        self._chat._take(self.completion)

    def _calls(self) -> tuple[Call, ...]:
        return self.completion.calls if self.completion else ()

    def result(self) -> Completion:
        """Waits for the end of the answer and gives the last one, with all that was called on the way."""
        for _ in self:
            pass
        assert self.completion is not None
        return self.completion

    async def aresult(self) -> Completion:
        """The same for asyncio."""
        async for _ in self:
            pass
        assert self.completion is not None
        return self.completion

    def __repr__(self) -> str:
        return f"<greta.Answer, {'running' if self.completion is None else self.completion.reason}>"
