"""Operations that callers name: their arguments checked, and described as JSON Schema, by what a function declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from outcrop.errors import UsageError

Schema = dict[str, Any]

# Of every model of arguments: nothing unknown, no NaN; built when it is first used.
CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)

# What an argument takes, by pydantic's name of the error.
_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}
_BOUNDS = {
    "greater_than_equal": ("small", "At least", "ge", ""),
    "less_than_equal": ("large", "At most", "le", ""),
    "string_too_short": ("small", "At least", "min_length", " characters"),
    "string_too_long": ("large", "At most", "max_length", " characters"),
    "too_long": ("large", "At most", "max_length", " items"),
}
_NAMING = ("missing", "extra_forbidden")
# How pydantic marks in a location which branch of a union failed.
_BRANCHES = ("str", "list[str]", "[key]")


@dataclass(frozen=True)
class Operation:
    """A function that callers name. Its keyword-only parameters are the arguments, its docstring the documentation."""

    name: str
    function: Callable[..., Any]
    result: Any = None  # The dataclass that it answers with, where that is described
    title: str = ""

    @property
    def documentation(self) -> str:
        return " ".join((self.function.__doc__ or "").split())

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring on one line."""
        return " ".join(inspect.getdoc(self.function).partition("\n\n")[0].split())  # type: ignore[union-attr]

    @cached_property
    def _arguments(self) -> type[BaseModel]:
        hints = get_type_hints(self.function, include_extras=True)
        fields = {
            name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
            for name, parameter in inspect.signature(self.function).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY
        }
        return cast("type[BaseModel]", create_model(self.name, __config__=CONFIG, **cast("Any", fields)))

    @cached_property
    def schema(self) -> Schema:
        made = self._arguments.model_json_schema()
        return {"required": [], **_tidy(made, made.get("$defs", {}))}

    @cached_property
    def result_schema(self) -> Schema:
        """JSON Schema of the result. Fields may be added to it, none is missing."""
        made = TypeAdapter(self.result).json_schema(mode="serialization")
        del made["description"]
        return cast("Schema", _tidy(made, made.get("$defs", {}), is_result=True))

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them; a ``UsageError`` names what is wrong with them."""
        try:
            made = self._arguments.model_validate(arguments)
        except ValidationError as error:
            raise self._refusal(error) from None
        return {name: getattr(made, name) for name in self._arguments.model_fields}

    def run(self, *context: Any, arguments: Mapping[str, Any]) -> Any:
        return self.function(*context, **self.check(arguments))

    def _refusal(self, error: ValidationError) -> UsageError:
        # An unknown name first: it often is a missing one, misspelt.
        every = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        errors = [(_location(each["type"], each["loc"]), each) for each in every]
        # A union reports each of its branches: the deepest one names what is wrong inside.
        location = max((at for at, _ in errors if at[0] == errors[0][0][0]), key=len)
        found = [each for at, each in errors if at == location]
        kind, value, context = found[0]["type"], found[0]["input"], found[0].get("ctx", {})
        where, parent = _path(location), _path(location[:-1])
        if kind in _NAMING:
            name = _shorten(location[-1])
            if parent:
                what = f"{self.name}: {parent} has no {name if kind == 'missing' else f'field {name}'}"
            else:
                what = f"{self.name} {'needs the' if kind == 'missing' else 'has no'} argument {name}"
            takes = ", ".join(_inside(self.schema, location[:-1])) or "none"
            return UsageError(what, f"It takes: {takes}.")
        if kind in _BOUNDS:
            size, bound, key, noun = _BOUNDS[kind]
            given = _counted(len(value) if noun else value, noun)
            return UsageError(
                f"{self.name}: {where} is too {size}: {given}", f"{bound} {_counted(context[key], noun)}."
            )
        takes = " or ".join(
            dict.fromkeys(
                _EXPECTED.get(each["type"]) or each.get("ctx", {}).get("expected", each["msg"]) for each in found
            )
        )
        return UsageError(f"{self.name}: {where} cannot be {_shorten(value)}", f"It takes {takes}.")


def _location(kind: str, location: tuple[int | str, ...]) -> list[int | str]:
    return [part for part in location if kind in _NAMING or part not in _BRANCHES]


def _path(location: Iterable[int | str]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _inside(schema: Schema, location: Iterable[int | str]) -> Schema:
    for part in location:
        schema = schema["items"] if isinstance(part, int) else schema["properties"][part]
    return cast("Schema", schema["properties"])


def _counted(number: float, noun: str) -> str:
    return f"{number:,}"[:60] + (noun.removesuffix("s") if number == 1 else noun)


def _shorten(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def describe_result(operation: Operation, components: dict[str, Schema]) -> Schema:
    """A reference to the schema of an operation's result; it and all that it refers to go to ``components``."""
    adapter: TypeAdapter[Any] = TypeAdapter(operation.result)
    reference, made = adapter.json_schemas(
        [(operation.name, "serialization", adapter)], ref_template="#/components/schemas/{model}"
    )
    components |= {name: _tidy(each, {}, is_result=True, is_closed=True) for name, each in made["$defs"].items()}
    return dict(reference[operation.name, "serialization"])


def _tidy(node: Any, definitions: Schema, *, is_result: bool = False, is_closed: bool = False) -> Any:
    """A schema of pydantic in fewer words: without titles and null defaults, definitions in their places."""
    if isinstance(node, list):
        return [_tidy(each, definitions, is_result=is_result, is_closed=is_closed) for each in node]
    if not isinstance(node, dict):
        return node
    name = node.get("$ref", "").removeprefix("#/$defs/")
    if name in definitions:
        definition = {key: value for key, value in definitions[name].items() if key != "description"}
        node = definition | {key: value for key, value in node.items() if key != "$ref"}
    if "prefixItems" in node:
        # Not every tool knows tuples; those of ours hold one type only.
        node = {**node, "items": node["prefixItems"][0]}
    made = {
        key: _tidy(value, definitions, is_result=is_result, is_closed=is_closed)
        for key, value in node.items()
        if key not in ("$defs", "prefixItems")
        and not (key == "title" and isinstance(value, str))
        and not (key == "default" and (value is None or is_result))
        and not (key == "additionalProperties" and value is True)
    }
    if "description" in made and isinstance(made["description"], str):
        made["description"] = made["description"].partition("\n")[0]
    if is_result and isinstance(made.get("properties"), dict):
        made["required"] = list(made["properties"])
        if is_closed:
            made["additionalProperties"] = False
    return made
