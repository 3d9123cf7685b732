"""Single members put into JSON objects and taken out again, in files that people write: JSON with comments.

Everything else stays as it is, byte by byte: comments, blank lines, indentation, trailing commas, line ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from outcrop.errors import FormatError

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_REST_OF_LINE = re.compile(r"(?:[ \t]+|/\*[^\n]*?\*/)*(?://[^\n]*)?(?=\r?\n)")
_SCALAR = re.compile(r"[^\s,:{}\[\]\"/]+")
_DECODER = json.JSONDecoder()
_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Member:
    """One ``"key": value`` of an object; ``comma`` is the offset of the comma after it, or None."""

    key: str
    start: int
    value: Value
    comma: int | None


@dataclass(frozen=True, slots=True)
class Value:
    """A value and where it stands; ``members`` for an object."""

    plain: Any
    start: int
    end: int
    members: tuple[Member, ...] = field(default=())


def parse(text: str) -> Any:
    """The value of a text."""
    return _parse(text).plain


def put(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with a member set, and every object on the way made where there is none.

    Args:
        text: A JSON object; empty for none yet.
        keys: From the outermost object to the member.
        value: What it is set to.
    """
    if not text.strip("\ufeff \t\r\n"):
        return f"{text}{json.dumps(_nested(keys, value), indent=2, ensure_ascii=False)}\n"
    node = _parse(text)
    for depth, key in enumerate(keys):
        _expect_object(node, keys[:depth])
        found = _member(node, key)
        if found is None:
            return _insert(text, node, key, _nested(keys[depth + 1 :], value))
        node = found.value
    if node.plain == value:
        return text
    return text[: node.start] + _written(text, value, _indent_at(text, node.start)) + text[node.end :]


def take(text: str, keys: Sequence[str]) -> str:
    """The text without a member, and without the objects on the way that are left with nothing at all in them.

    Args:
        text: A JSON object.
        keys: From the outermost object to the member.

    Returns:
        The text itself where there is no such member.
    """
    owner = _walk(text, keys[:-1])
    if owner is None or _member(owner, keys[-1]) is None:
        return text
    text = _remove(text, owner, keys[-1])
    if len(keys) > 1:
        emptied = _walk(text, keys[:-1])
        if emptied is not None and not text[emptied.start + 1 : emptied.end - 1].strip():
            return take(text, keys[:-1])
    return text


def _walk(text: str, keys: Sequence[str]) -> Value | None:
    node = _parse(text)
    for key in keys:
        found = _member(node, key)
        if found is None:
            return None
        node = found.value
    return node


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _member(node: Value, key: str) -> Member | None:
    # Of members with the same name the last one counts, as for every reader of JSON.
    return next((member for member in reversed(node.members) if member.key == key), None)


def _expect_object(node: Value, keys: Sequence[str]) -> None:
    if not isinstance(node.plain, dict):
        where = ".".join(keys) or "the file"
        raise FormatError(f"{where} is not a JSON object", "Correct it, or add the entry by hand")


def _insert(text: str, node: Value, key: str, value: Any) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent_at(text, node.start)
    if not node.members:
        inner = outer + _unit(text)
        made = f"{newline}{inner}{json.dumps(key)}: {_written(text, value, inner)}"
        inside = text[node.start + 1 : node.end - 1]
        tail = "" if inside.strip() or "\n" in inside else newline + outer
        kept = inside if inside.strip() or "\n" in inside else ""
        return f"{text[: node.start + 1]}{made}{kept}{tail}{text[node.end - 1 :]}"
    last = node.members[-1]
    after = last.value.end if last.comma is None else last.comma + 1
    comma = "," if last.comma is None else ""
    trailing = "" if last.comma is None else ","
    if "\n" not in text[node.start : node.members[0].start]:
        one_line = json.dumps(value, ensure_ascii=False)
        return f"{text[:after]}{comma} {json.dumps(key)}: {one_line}{trailing}{text[after:]}"
    # A remark at the end of the last member's line stays with that member.
    rest = _REST_OF_LINE.match(text, after)
    line_end = rest.end() if rest is not None else after
    inner = _indent_at(text, node.members[0].start)
    made = f"{newline}{inner}{json.dumps(key)}: {_written(text, value, inner)}{trailing}"
    return f"{text[:after]}{comma}{text[after:line_end]}{made}{text[line_end:]}"


def _remove(text: str, node: Value, key: str) -> str:
    at = max(place for place, member in enumerate(node.members) if member.key == key)
    member = node.members[at]
    end = member.value.end if member.comma is None else member.comma + 1
    start = member.start
    while start and text[start - 1] in " \t":
        start -= 1
    own_line = start and text[start - 1] == "\n"
    if own_line:
        start -= 2 if text[start - 2 : start] == "\r\n" else 1
    if at == 0 and len(node.members) > 1 and not own_line:
        # The first of several on one line: the blank that follows its comma goes, the one before it stays.
        start = member.start
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    if len(node.members) == 1 and not (text[node.start + 1 : start] + text[end : node.end - 1]).strip():
        return text[: node.start + 1] + text[node.end - 1 :]
    cut = text[:start] + text[end:]
    before = node.members[at - 1] if at else None
    if member.comma is None and before is not None and before.comma is not None:
        # Nothing follows any more, and there was no comma at the end.
        cut = cut[: before.comma] + cut[before.comma + 1 :]
    return cut


def _written(text: str, value: Any, indent: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return (newline + indent).join(lines)


def _unit(text: str) -> str:
    """One step of indentation, as the first indented line has it."""
    found = re.search(r"\n([ \t]+)[\"/]", text)
    return found[1] if found is not None else "  "


def _indent_at(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _parse(text: str) -> Value:
    start = _blank(text, 1 if text.startswith("\ufeff") else 0)
    value = _value(text, start, 0)
    end = _blank(text, value.end)
    if end < len(text):
        raise _broken(text, end)
    return value


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()


def _value(text: str, at: int, depth: int) -> Value:
    if depth > _DEEPEST:
        raise _broken(text, at)
    if text[at : at + 1] == "{":
        return _object(text, at, depth)
    if text[at : at + 1] == "[":
        return _array(text, at, depth)
    if text[at : at + 1] == '"':
        plain, end = _string(text, at)
        return Value(plain, at, end)
    found = _SCALAR.match(text, at)
    try:
        return Value(json.loads(found[0] if found else ""), at, found.end() if found else at)
    except ValueError:
        raise _broken(text, at) from None


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        plain, end = _DECODER.raw_decode(text, at)
    except ValueError:
        raise _broken(text, at) from None
    return str(plain), end


def _object(text: str, start: int, depth: int) -> Value:
    members: list[Member] = []
    at = _blank(text, start + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"' or (members and members[-1].comma is None):
            raise _broken(text, at)
        key, end = _string(text, at)
        colon = _blank(text, end)
        if text[colon : colon + 1] != ":":
            raise _broken(text, colon)
        value = _value(text, _blank(text, colon + 1), depth + 1)
        after = _blank(text, value.end)
        comma = after if text[after : after + 1] == "," else None
        members.append(Member(key, at, value, comma))
        at = after if comma is None else _blank(text, comma + 1)
    return Value({member.key: member.value.plain for member in members}, start, at + 1, tuple(members))


def _array(text: str, start: int, depth: int) -> Value:
    items: list[Any] = []
    at, may_follow = _blank(text, start + 1), True
    while text[at : at + 1] != "]":
        if not may_follow:
            raise _broken(text, at)
        value = _value(text, at, depth + 1)
        items.append(value.plain)
        at = _blank(text, value.end)
        may_follow = text[at : at + 1] == ","
        if may_follow:
            at = _blank(text, at + 1)
    return Value(items, start, at + 1)


def _broken(text: str, at: int) -> FormatError:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return FormatError(f"not valid JSON at line {line}, column {column}", "Correct it there, and try again")
