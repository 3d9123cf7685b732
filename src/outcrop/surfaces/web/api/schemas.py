"""JSON Schemas of what the API answers, from the dataclasses that it answers with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from outcrop.core.schema import Schema

_PLAIN: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def shape_of(annotation: Any, named: dict[str, Schema]) -> Schema:
    """The schema of a type.

    Args:
        annotation: A dataclass, or what its fields are annotated with.
        named: Takes the schema of every dataclass by its name; they refer to each other.
    """
    if annotation in _PLAIN:
        return {"type": _PLAIN[annotation]}
    if annotation is Any:
        return {}
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return {"type": "string", "enum": [str(each) for each in annotation]}
    if isinstance(annotation, type) and is_dataclass(annotation):
        return _reference(annotation, named)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, UnionType):
        return {"anyOf": [shape_of(each, named) for each in inner]}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": shape_of(inner[1], named)}
    if origin is Sequence or (origin is tuple and inner[-1] is ...):
        return {"type": "array", "items": shape_of(inner[0], named)}
    if origin is tuple:
        # JSON has no fixed tuples that every tool knows; those of ours hold one type only.
        return {"type": "array", "items": shape_of(inner[0], named), "minItems": len(inner), "maxItems": len(inner)}
    raise TypeError(f"no schema for {annotation!r}")


def _reference(kind: type, named: dict[str, Schema]) -> Schema:
    name = kind.__name__
    if name not in named:
        named[name] = {}
        hints = get_type_hints(kind)
        properties = {field.name: shape_of(hints[field.name], named) for field in fields(kind)}
        named[name] = {
            "type": "object",
            "description": (kind.__doc__ or "").strip().partition("\n")[0],
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    return {"$ref": f"#/components/schemas/{name}"}
