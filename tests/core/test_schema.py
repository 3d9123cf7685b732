"""Schemas and checks from the same annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.core.schema import check_arguments, schema_of, schema_of_fields
from outcrop.errors import UsageError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Shape(TypedDict):
    name: Annotated[str, "what it is called"]
    sides: NotRequired[int]


def paint(
    canvas: object,
    *,
    shapes: Annotated[list[Shape], "what to paint"],
    colour: Colour = Colour.RED,
    layer: Literal["front", "back"] = "front",
    names: str | list[str] | None = None,
    strength: float | None = None,
    dry: bool = False,
    more: dict[str, Any] | None = None,
) -> None: ...


def test_the_schema_says_what_the_annotations_say() -> None:
    assert schema_of(paint) == {
        "type": "object",
        "properties": {
            "shapes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "description": "what it is called"},
                        "sides": {"type": "integer"},
                    },
                    "required": ["name"],
                    "additionalProperties": False,
                },
                "description": "what to paint",
            },
            "colour": {"enum": ["red", "blue"], "default": "red"},
            "layer": {"enum": ["front", "back"], "default": "front"},
            "names": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "strength": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "dry": {"type": "boolean", "default": False},
            "more": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        },
        "required": ["shapes"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {"shapes": []},
        {"shapes": [{"name": "square", "sides": 4}, {"name": "dot"}], "colour": "blue", "layer": "back"},
        {"shapes": (), "names": "a", "strength": 1, "dry": True, "more": {"x": [1]}},
        {"shapes": [], "names": ["a", "b"], "strength": None, "more": None},
    ],
)
def test_what_fits_passes(arguments: dict[str, Any]) -> None:
    check_arguments(paint, arguments, "paint")


@pytest.mark.parametrize(
    ("arguments", "what", "way_out"),
    [
        ({}, "paint needs the argument 'shapes'", "a list, each item an object with name, sides"),
        ({"shapes": [], "color": "red"}, "paint has no argument 'color'", "shapes, colour, layer"),
        ({"shapes": "square"}, "shapes cannot be 'square'", "a list"),
        ({"shapes": [{"name": "a"}, "b"]}, "shapes[1] cannot be 'b'", "an object"),
        ({"shapes": [{"sides": 3}]}, "shapes[0] has no 'name'", "a text"),
        ({"shapes": [{"name": "a", "size": 3}]}, "shapes[0] has no field 'size'", "name, sides"),
        ({"shapes": [{"name": "a", "sides": "4"}]}, "shapes[0].sides cannot be '4'", "a whole number"),
        ({"shapes": [{"name": "a", "sides": True}]}, "shapes[0].sides cannot be True", "a whole number"),
        ({"shapes": [], "colour": "green"}, "colour cannot be 'green'", "one of red, blue"),
        ({"shapes": [], "layer": ["front"]}, "layer cannot be ['front']", "one of front, back"),
        ({"shapes": [], "names": ["a", 1]}, "names[1] cannot be 1", "a text"),
        ({"shapes": [], "names": 1}, "names cannot be 1", "a text or a list, each item a text or null"),
        ({"shapes": [], "strength": float("nan")}, "strength cannot be nan", "a number or null"),
        ({"shapes": [], "dry": 1}, "dry cannot be 1", "true or false"),
        ({"shapes": [], "more": {1: 2}}, "more cannot be", "an object or null"),
        ({"shapes": [], "names": "x" * 10 + "\x1b", "dry": "\x1b" * 200}, "dry cannot be '\\x1b", "true or false"),
    ],
)
def test_what_does_not_fit_is_named(arguments: dict[str, Any], what: str, way_out: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_arguments(paint, arguments, "paint")
    assert what in caught.value.what
    assert len(caught.value.what) < 120
    assert way_out in caught.value.fix


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["shapes", "colour", "names", "strength", "dry", "more", "x"]), json_values))
def test_any_json_passes_or_is_refused_with_a_reason(arguments: dict[str, Any]) -> None:
    try:
        check_arguments(paint, arguments, "paint")
        passed = isinstance(arguments["shapes"], list)
    except UsageError as error:
        passed = bool(error.fix)
    assert passed


@dataclass(frozen=True)
class Place:
    path: str | None
    lines: tuple[int, int]


@dataclass(frozen=True)
class Outcome:
    colour: Colour
    places: tuple[Place, ...]
    counts: Mapping[str, int]
    more: Mapping[str, Any]


def test_a_result_has_the_schema_of_its_fields() -> None:
    place = {
        "type": "object",
        "properties": {
            "path": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "lines": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
        },
        "required": ["path", "lines"],
    }
    assert schema_of_fields(Outcome) == {
        "type": "object",
        "properties": {
            "colour": {"enum": ["red", "blue"]},
            "places": {"type": "array", "items": place},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "more": {"type": "object"},
        },
        "required": ["colour", "places", "counts", "more"],
    }
