"""Schemas and checks from the same annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, StrictBool, StrictFloat, StrictInt

from outcrop.core.schema import CONFIG, Operation, Schema, describe_result
from outcrop.errors import UsageError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Shape(BaseModel):
    model_config = CONFIG

    name: Annotated[str, Field(description="what it is called")]
    sides: StrictInt = 4


def paint(
    canvas: object,
    *,
    shapes: Annotated[list[Shape], Field(description="what to paint")],
    colour: Colour = Colour.RED,
    layer: Literal["front", "back"] = "front",
    names: str | list[str] | None = None,
    strength: StrictFloat | None = None,
    dry: StrictBool = False,
    more: dict[str, Any] | None = None,
    size: Annotated[StrictInt, Field(ge=1, le=1000)] = 1,
    title: Annotated[str | None, Field(min_length=1, max_length=5)] = None,
    tags: Annotated[list[str] | None, Field(max_length=2)] = None,
) -> dict[str, Any]:
    """Paint shapes.

    Returns what is painted.
    """
    return {"shapes": shapes, "colour": colour, "strength": strength, "canvas": canvas}


PAINT = Operation("paint", paint)


def test_the_schema_says_what_the_annotations_say() -> None:
    assert PAINT.schema == {
        "type": "object",
        "properties": {
            "shapes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "description": "what it is called"},
                        "sides": {"type": "integer", "default": 4},
                    },
                    "required": ["name"],
                    "additionalProperties": False,
                },
                "description": "what to paint",
            },
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "layer": {"type": "string", "enum": ["front", "back"], "default": "front"},
            "names": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "strength": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "dry": {"type": "boolean", "default": False},
            "more": {"anyOf": [{"type": "object"}, {"type": "null"}]},
            "size": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1},
            "title": {"anyOf": [{"type": "string", "minLength": 1, "maxLength": 5}, {"type": "null"}]},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}, "maxItems": 2}, {"type": "null"}]},
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
    assert set(PAINT.check(arguments)) == set(PAINT.schema["properties"])


def test_the_function_gets_what_it_is_annotated_with() -> None:
    made = PAINT.run("canvas", arguments={"shapes": [{"name": "dot"}], "colour": "blue", "strength": 1})
    assert made == {"shapes": [Shape(name="dot")], "colour": Colour.BLUE, "strength": 1.0, "canvas": "canvas"}
    assert (PAINT.summary, PAINT.documentation) == ("Paint shapes.", "Paint shapes. Returns what is painted.")


@pytest.mark.parametrize(
    ("arguments", "what", "way_out"),
    [
        ({}, "paint needs the argument 'shapes'", "It takes: shapes, colour"),
        ({"shapes": [], "color": "red"}, "paint has no argument 'color'", "shapes, colour, layer"),
        ({"shapes": "square"}, "shapes cannot be 'square'", "a list"),
        ({"shapes": [{"name": "a"}, "b"]}, "shapes[1] cannot be 'b'", "an object"),
        ({"shapes": [{"sides": 3}]}, "shapes[0] has no 'name'", "It takes: name, sides"),
        ({"shapes": [{"name": "a", "size": 3}]}, "shapes[0] has no field 'size'", "name, sides"),
        ({"shapes": [{"name": "a", "sides": "4"}]}, "shapes[0].sides cannot be '4'", "a whole number"),
        ({"shapes": [{"name": "a", "sides": True}]}, "shapes[0].sides cannot be True", "a whole number"),
        ({"shapes": [], "colour": "green"}, "colour cannot be 'green'", "'red' or 'blue'"),
        ({"shapes": [], "layer": ["front"]}, "layer cannot be ['front']", "'front' or 'back'"),
        ({"shapes": [], "names": ["a", 1]}, "names[1] cannot be 1", "a text"),
        ({"shapes": [], "names": 1}, "names cannot be 1", "a text or a list"),
        ({"shapes": [], "strength": float("nan")}, "strength cannot be nan", "a number"),
        ({"shapes": [], "dry": 1}, "dry cannot be 1", "true or false"),
        ({"shapes": [], "more": [1]}, "more cannot be [1]", "an object"),
        ({"shapes": [], "more": {1: 2}}, "more[1] cannot be 1", "a text"),
        ({"shapes": [], "str": 1}, "paint has no argument 'str'", "shapes, colour, layer"),
        ({"shapes": [{"name": "a", "str": 1}]}, "shapes[0] has no field 'str'", "name, sides"),
        ({"shapes": [], "size": 0}, "size is too small: 0", "At least 1."),
        ({"shapes": [], "size": 10**6}, "size is too large: 1,000,000", "At most 1,000."),
        ({"shapes": [], "title": ""}, "title is too small: 0 characters", "At least 1 character."),
        ({"shapes": [], "title": "abcdef"}, "title is too large: 6 characters", "At most 5 characters"),
        ({"shapes": [], "tags": ["a", "b", "c"]}, "tags is too large: 3 items", "At most 2 items"),
        ({"shapes": [], "names": "x" * 10 + "\x1b", "dry": "\x1b" * 200}, "dry cannot be '\\x1b", "true or false"),
    ],
)
def test_what_does_not_fit_is_named(arguments: dict[str, Any], what: str, way_out: str) -> None:
    with pytest.raises(UsageError) as caught:
        PAINT.check(arguments)
    assert what in caught.value.what
    assert len(caught.value.what) < 120
    assert way_out in caught.value.fix


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


NAMES = ["shapes", "colour", "names", "strength", "dry", "more", "x", "size", "title", "tags"]


@given(st.dictionaries(st.sampled_from(NAMES), json_values))
def test_any_json_passes_or_is_refused_with_a_reason(arguments: dict[str, Any]) -> None:
    try:
        PAINT.check(arguments)
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
    """What is painted.

    More.
    """

    colour: Colour
    places: tuple[Place, ...]
    counts: Mapping[str, int]
    more: Mapping[str, Any]


def painted(*, q: str) -> None:
    """Say what is painted."""


def test_a_result_has_the_schema_of_its_fields() -> None:
    place = {
        "type": "object",
        "properties": {
            "path": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "lines": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
        },
        "required": ["path", "lines"],
    }
    assert Operation("painted", painted, Outcome).result_schema == {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "places": {"type": "array", "items": place},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "more": {"type": "object"},
        },
        "required": ["colour", "places", "counts", "more"],
    }


def test_results_are_described_by_their_dataclasses_as_components() -> None:
    components: dict[str, Schema] = {}
    reference = describe_result(Operation("painted", painted, Outcome), components)
    assert reference == {"$ref": "#/components/schemas/Outcome"}
    assert components["Outcome"]["properties"]["places"] == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/Place"},
    }
    assert components["Outcome"]["description"] == "What is painted."
    assert components["Outcome"]["additionalProperties"] is False
    assert components["Place"]["properties"]["path"]["anyOf"][1] == {"type": "null"}
    assert components["Place"]["properties"]["lines"]["maxItems"] == 2
    assert components["Outcome"]["properties"]["counts"]["additionalProperties"] == {"type": "integer"}
