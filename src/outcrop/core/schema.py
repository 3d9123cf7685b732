"""JSON Schemas from type annotations, and values checked against the same annotations.

One source of truth: what a function says that it takes is what its schema says and what is let through to it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from outcrop.errors import UsageError

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """How small and how large: of a number its value, of a text its length, of a list its number of items.

    Stands third in ``Annotated[int, "what it is", Limits(1, 100)]``, and means each type that the annotation allows.
    """

    low: int | None = None
    high: int | None = None

    def schema(self, schema: Schema) -> Schema:
        """The same in the words of JSON Schema."""
        if "anyOf" in schema:
            return {"anyOf": [self.schema(each) for each in schema["anyOf"]]}
        low, high = _BOUNDS.get(schema.get("type", ""), ("", ""))
        found = {name: value for name, value in ((low, self.low), (high, self.high)) if name and value is not None}
        return schema | found

    def check(self, value: Any, where: str, caller: str) -> None:
        """See that a value of the right type is within."""
        if value is None or isinstance(value, bool | Mapping):
            return
        noun = " characters" if isinstance(value, str) else " items" if _is_list(value) else ""
        size = len(value) if noun else value
        if self.low is not None and size < self.low:
            raise UsageError(f"{caller}: {where} is too small: {size:,}{noun}", f"At least {self.low:,}{noun}.")
        if self.high is not None and size > self.high:
            raise UsageError(f"{caller}: {where} is too large: {size:,}{noun}", f"At most {self.high:,}{noun}.")


_BOUNDS = {
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
}
_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_NOUNS = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}


def schema_of(function: Callable[..., Any]) -> Schema:
    """The schema of a function's keyword-only parameters, as one object.

    Args:
        function: Its parameters are annotated with ``str``, ``int``, ``float``, ``bool``, ``Literal``, a ``StrEnum``, a
            ``TypedDict``, ``list`` or ``dict[str, Any]`` of these, unions of them, and ``Annotated[…, "what it is"]``.
    """
    properties: Schema = {}
    required: list[str] = []
    for name, parameter, annotation in _parameters(function):
        properties[name] = _schema(annotation)
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is not None:
            properties[name]["default"] = parameter.default
    return _object(properties, required)


def schema_of_fields(made_of: type) -> Schema:
    """The schema of a result: a dataclass as one object. Others may be added to its fields, none is missing.

    Args:
        made_of: Its fields are annotated as parameters are (see :func:`schema_of`), or with dataclasses, ``tuple`` or
            ``Mapping``.
    """
    hints = get_type_hints(made_of)
    properties = {each.name: _schema(hints[each.name]) for each in fields(made_of)}
    return {"type": "object", "properties": properties, "required": list(properties)}


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any], caller: str) -> None:
    """See that arguments are what a function's annotations say."""
    expected = {name: (parameter, annotation) for name, parameter, annotation in _parameters(function)}
    _refuse_unknown(arguments, expected, "argument", caller)
    for name, (parameter, annotation) in expected.items():
        if name in arguments:
            _check(arguments[name], annotation, name, caller)
        elif parameter.default is parameter.empty:
            raise UsageError(f"{caller} needs the argument {name!r}", f"It takes {_expectation(annotation)}.")


def _parameters(function: Callable[..., Any]) -> list[tuple[str, inspect.Parameter, Any]]:
    hints = get_type_hints(function, include_extras=True)
    return [
        (name, parameter, hints[name])
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]


def _schema(annotation: Any) -> Schema:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bare = _schema(inner[0])
        return (inner[2].schema(bare) if len(inner) > 2 else bare) | {"description": inner[1]}
    if annotation in _PLAIN:
        return {"type": _PLAIN[annotation]}
    if annotation in (NoneType, None):
        return {"type": "null"}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(each) for each in inner]}
    if origin is list:
        return {"type": "array", "items": _schema(inner[0])}
    if origin is tuple:
        if inner[-1] is Ellipsis:
            return {"type": "array", "items": _schema(inner[0])}
        bounds = {"minItems": len(inner), "maxItems": len(inner)}
        return {"type": "array", "items": _schema(inner[0]), **bounds}
    if origin in (dict, Mapping):
        value = {} if inner[1] is Any else {"additionalProperties": _schema(inner[1])}
        return {"type": "object", **value}
    if isinstance(annotation, type) and is_dataclass(annotation):
        return schema_of_fields(annotation)
    if is_typeddict(annotation):
        fields = _fields(annotation)
        required = [name for name, (_, needed) in fields.items() if needed]
        return _object({name: _schema(each) for name, (each, _) in fields.items()}, required)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return {"enum": [str(each) for each in annotation]}
    raise TypeError(f"no schema for {annotation!r}")


def _fields(annotation: Any) -> dict[str, tuple[Any, bool]]:
    """Annotation of each field of a ``TypedDict``, and whether it is required.

    ``__required_keys__`` does not know where annotations are strings, as they are in modules that postpone them.
    """
    return {
        name: (get_args(each)[0], False) if get_origin(each) is NotRequired else (each, True)
        for name, each in get_type_hints(annotation, include_extras=True).items()
    }


def _object(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _check(value: Any, annotation: Any, where: str, caller: str) -> None:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        _check(value, inner[0], where, caller)
        if len(inner) > 2:
            inner[2].check(value, where, caller)
    elif origin in (Union, UnionType):
        _check_union(value, inner, where, caller)
    elif origin is list and _is_list(value):
        for place, item in enumerate(value):
            _check(item, inner[0], f"{where}[{place}]", caller)
    elif is_typeddict(annotation) and isinstance(value, Mapping):
        fields = _fields(annotation)
        _refuse_unknown(value, fields, "field", f"{caller}: {where}")
        for name, (each, needed) in fields.items():
            if name in value:
                _check(value[name], each, f"{where}.{name}", caller)
            elif needed:
                raise UsageError(f"{caller}: {where} has no {name!r}", f"It takes {_expectation(each)}.")
    elif not _fits(value, annotation):
        raise UsageError(f"{caller}: {where} cannot be {_shorten(value)}", f"It takes {_expectation(annotation)}.")


def _check_union(value: Any, options: Sequence[Any], where: str, caller: str) -> None:
    """Against the option whose outer shape fits, so that the message names what is wrong inside."""
    for option in options:
        outer = get_origin(option) or option
        if _fits(value, option) or (outer is list and _is_list(value)) or (is_typeddict(outer) and _is_object(value)):
            _check(value, option, where, caller)
            return
    wanted = " or ".join(_expectation(option) for option in options)
    raise UsageError(f"{caller}: {where} cannot be {_shorten(value)}", f"It takes {wanted}.")


def _fits(value: Any, annotation: Any) -> bool:
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is bool:
        return isinstance(value, bool)
    if annotation is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if annotation is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if annotation is str:
        return isinstance(value, str)
    if annotation in (NoneType, None):
        return value is None
    if origin is Literal:
        return value in inner
    if origin is dict:
        return _is_object(value)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return isinstance(value, str) and value in set(annotation)
    return False


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _expectation(annotation: Any) -> str:
    schema = _schema(annotation)
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if "anyOf" in schema:
        return " or ".join(_expectation(each) for each in get_args(_bare(annotation)))
    if schema["type"] == "array":
        return f"a list, each item {_expectation(get_args(_bare(annotation))[0])}"
    if schema["type"] == "object":
        names = ", ".join(schema.get("properties", {}))
        return f"an object with {names}" if names else "an object"
    return "null" if schema["type"] == "null" else _NOUNS[schema["type"]]


def _bare(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _refuse_unknown(given: Mapping[str, Any], expected: Mapping[str, Any], noun: str, where: str) -> None:
    for name in given:
        if name not in expected:
            names = ", ".join(expected) or "none"
            raise UsageError(f"{where} has no {noun} {name!r}", f"It takes: {names}.")


def _shorten(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
