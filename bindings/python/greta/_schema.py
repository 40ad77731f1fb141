"""JSON schemas from types of Python, and values of these types from JSON."""
from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    None: {"type": "null"}, type(None): {"type": "null"}, Any: {}, inspect.Parameter.empty: {},
}
_LISTS = (list, tuple, set, frozenset)


# Of a TypedDict, from Python 3.11 on.
_REQUIRED = [getattr(typing, name, None) for name in ("Required", "NotRequired")]


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type: plain types, Literal, Enum, unions, list, dict, dataclass, TypedDict, pydantic."""
    try:
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
    except TypeError:  # an annotation that has no hash
        pass
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, dict):
        return kind
    if hasattr(kind, "model_json_schema"):
        return dict(kind.model_json_schema())
    if origin is typing.Annotated:
        texts = [each for each in arguments[1:] if isinstance(each, str)]
        return schema_of(arguments[0]) | ({"description": texts[0]} if texts else {})
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(each) for each in arguments]}
    if origin is not None and origin in _REQUIRED:
        return schema_of(arguments[0])
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [each.value for each in kind]}
    if dataclasses.is_dataclass(kind) or typing.is_typeddict(kind):
        return _object(kind)
    return _container(kind, origin or kind, arguments)


def _container(kind: Any, origin: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        size = len(arguments)
        return {"type": "array", "prefixItems": [schema_of(each) for each in arguments], "items": False,
                "minItems": size, "maxItems": size}
    if isinstance(origin, type) and issubclass(origin, _LISTS):
        return {"type": "array"} | ({"items": schema_of(arguments[0])} if arguments else {})
    if isinstance(origin, type) and issubclass(origin, dict):
        return {"type": "object"} | ({"additionalProperties": schema_of(arguments[1])} if arguments else {})
    raise TypeError(f"{kind!r} has no JSON schema: use str, int, float, bool, None, Literal, an Enum, a union, list, "
                    "dict, a dataclass, a TypedDict or a pydantic model")


def _object(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    if dataclasses.is_dataclass(kind):
        required = [field.name for field in dataclasses.fields(kind)
                    if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING]
    else:
        required = [name for name in hints if name in kind.__required_keys__]
    return {"type": "object", "properties": {name: schema_of(hint) for name, hint in hints.items()},
            "required": required, "additionalProperties": False}


def _with_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Moves `$defs` of inner schemas to the outermost one, where their references look for them."""
    found: dict[str, Any] = {}

    def without(part: Any) -> Any:
        if isinstance(part, list):
            return [without(each) for each in part]
        if not isinstance(part, dict):
            return part
        if isinstance(part.get("$defs"), dict):
            found.update({name: without(each) for name, each in part["$defs"].items()})
            part = {name: each for name, each in part.items() if name != "$defs"}
        return {name: without(each) for name, each in part.items()}

    made: dict[str, Any] = without(schema)
    return made | ({"$defs": found} if found else {})


def value_of(kind: Any, value: Any) -> Any:
    """A value of a type from what JSON gives: dataclasses, enums and tuples are made, all else stays."""
    origin, arguments = get_origin(kind), get_args(kind)
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    if origin is typing.Annotated:
        return value_of(arguments[0], value)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
        hints = typing.get_type_hints(kind, include_extras=True)
        return kind(**{name: value_of(hints[name], each) for name, each in value.items() if name in hints})
    if origin in (Union, types.UnionType):
        return next((made for made in (_attempt(each, value) for each in arguments) if made is not None), value)
    if origin in _LISTS and isinstance(value, list):
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            return tuple(value_of(each, part) for each, part in zip(arguments, value))
        return origin(value_of(arguments[0], each) for each in value)
    if origin is dict and isinstance(value, dict):
        return {name: value_of(arguments[1], each) for name, each in value.items()}
    return value


def _attempt(kind: Any, value: Any) -> Any:
    plain: Any = {str: str, int: int, float: (int, float), bool: bool, type(None): type(None)}.get(kind)
    if plain is not None:
        return value if isinstance(value, plain) else None
    try:
        return value_of(kind, value)
    except (TypeError, ValueError, KeyError):
        return None


def response_schema(response_format: Any) -> tuple[str, Callable[[str], Any]]:
    """The schema of a response as text, and what makes its value of the answer's text."""
    if isinstance(response_format, str):
        try:
            json.loads(response_format)
        except ValueError as error:
            raise ValueError(f"response_format is a text, but not one of a JSON schema: {error}") from error
        return response_format, json.loads
    if isinstance(response_format, dict):
        wrapped = response_format.get("json_schema", response_format)
        if response_format.get("type") == "json_object" and "properties" not in response_format:
            wrapped = {"type": "object", "additionalProperties": {}} if "schema" not in wrapped else wrapped
        return json.dumps(wrapped.get("schema", wrapped)), json.loads
    return json.dumps(_with_definitions(schema_of(response_format))), lambda text: value_of(response_format, json.loads(text))


def tool_of(function: Callable[..., Any]) -> dict[str, Any]:
    """A function as a tool: its name, what its docstring says, and its parameters by their type hints."""
    if not callable(function):
        raise TypeError(f"a tool is {function!r}, but it must be a function, or a dict in OpenAI's form")
    name = getattr(function, "__name__", type(function).__name__)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name):
        raise ValueError(f"{function!r} has no name that a model could call: give a function made by def")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise TypeError(f"the annotations of {name} cannot be read: {error}") from error
    documented = inspect.getdoc(function) or ""
    properties: dict[str, Any] = {}
    required = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"the parameter {parameter.name} of {name} has no name for a model: use plain parameters")
        try:
            properties[parameter.name] = schema_of(hints.get(parameter.name, parameter.empty))
        except TypeError as error:
            raise TypeError(f"the parameter {parameter.name} of {name}: {error}") from error
        said = re.search(rf"^\s*(?::param )?{re.escape(parameter.name)}\s*(?::|\s{{2,}})\s*(.+)$", documented, re.M)
        if said:
            properties[parameter.name].setdefault("description", said[1].strip())
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    described = {"name": name, "description": documented.split("\n\n")[0].replace("\n", " "),
                 "parameters": _with_definitions(
                     {"type": "object", "properties": properties, "required": required})}
    return {"type": "function", "function": described}


def arguments_of(function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The values that a tool is called with, of what a model has written."""
    hints = typing.get_type_hints(function, include_extras=True)
    return {name: value_of(hints.get(name), value) for name, value in arguments.items()}


def text_of(result: Any) -> str:
    """What a tool has given, as text."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        result = dataclasses.asdict(result)
    return result if isinstance(result, str) else json.dumps(result, default=str)
