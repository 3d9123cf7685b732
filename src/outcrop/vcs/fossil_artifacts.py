"""Fossil's stored bytes → contents, and the text of its structured artifacts: manifests, wiki, tickets, forum.

Formats: https://fossil-scm.org/home/doc/trunk/www/delta_format.wiki and www/fileformat.wiki there. All of it is
pure, and raises ``ArtifactUnreadable`` where bytes do not follow the format.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outcrop.errors import ArtifactUnreadable

# Between two comments of a ticket: a line that holds a form feed alone. The first line of all is the subject.
POST_BREAK = "\n\f\n"

# Bytes of one content, stored or not; a larger size is a damaged prefix, not a document.
MAX_CONTENT_BYTES = 256 << 20

_DIGITS = {
    char: value for value, char in enumerate(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~")
}
_ESCAPES = {
    b"s": b" ", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r", b"0": b"\0", b"\\": b"\\",
}  # fmt: skip
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_SIGNED = re.compile(rb"-----BEGIN (?:PGP|SSH) SIGNED MESSAGE-----.*?\n\r?\n", re.DOTALL)
_SIGNATURE = re.compile(rb"\n-----BEGIN (?:PGP|SSH) SIGNATURE-----")
_COMMENT_FIELDS = ("comment", "icomment")


@dataclass(frozen=True, slots=True)
class Card:
    """One line of a structured artifact: its letter and its arguments, still escaped (of a W card: the text)."""

    letter: bytes
    arguments: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class FileCard:
    """A file of a check-in; ``uuid`` is empty where a delta manifest deletes it, ``link`` marks a symbolic link."""

    name: bytes
    uuid: str
    link: bool


def inflate(stored: bytes) -> bytes:
    """A ``blob.content``: four bytes of size, big-endian, then a zlib stream."""
    size = int.from_bytes(stored[:4], "big")
    if len(stored) < 4 or size > MAX_CONTENT_BYTES:
        raise ArtifactUnreadable("a stored content has an impossible size")
    if size == 0:
        return b""
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(stored[4:], size + 1)
    except zlib.error as error:
        raise ArtifactUnreadable(f"a stored content cannot be decompressed ({error})") from error
    if len(data) != size or not stream.eof:
        raise ArtifactUnreadable(f"a stored content does not have the {size} bytes that it announces")
    return data


def apply_delta(source: bytes, delta: bytes) -> bytes:
    """The content that a delta makes from ``source``.

    A delta is a length, a newline, then copies (``LENGTH@OFFSET,``), literals (``LENGTH:BYTES``) and a checksum
    (``SUM;``), with numbers in Fossil's base 64.
    """
    size, at = _number(delta, 0)
    if delta[at : at + 1] != b"\n" or size > MAX_CONTENT_BYTES:
        raise ArtifactUnreadable("a delta does not begin with the size of its result")
    at += 1
    made = bytearray()
    while at < len(delta):
        count, at = _number(delta, at)
        command = delta[at : at + 1]
        at += 1
        if command == b"@":
            offset, at = _number(delta, at)
            at += 1
            part = source[offset : offset + count]
        elif command == b":":
            part = delta[at : at + count]
            at += count
        elif command == b";":
            data = bytes(made)
            if len(data) != size or _checksum(data) != count:
                raise ArtifactUnreadable("a delta does not give the content that it stores")
            return data
        else:
            raise ArtifactUnreadable("a delta holds an unknown command")
        if len(part) != count or len(made) + count > size:
            raise ArtifactUnreadable("a delta reaches beyond its source")
        made += part
    raise ArtifactUnreadable("a delta is cut off")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number in Fossil's base 64, and where it ends."""
    value, start = 0, at
    while at < len(data) and (digit := _DIGITS.get(data[at])) is not None:
        value = value * 64 + digit
        at += 1
    if at == start or at - start > 11:
        raise ArtifactUnreadable("a delta lacks a number")
    return value, at


def _checksum(data: bytes) -> int:
    """Sum of the content as big-endian 32-bit words, zero-padded, modulo 2^32."""
    words = np.frombuffer(data + b"\0" * (-len(data) % 4), ">u4")
    return int(words.sum(dtype=np.uint64)) & 0xFFFFFFFF


def is_authentic(data: bytes, uuid: str) -> bool:
    """Whether a content has this hash: SHA-1 (40 digits) or SHA3-256 (64)."""
    digest = hashlib.sha1(data, usedforsecurity=False) if len(uuid) == 40 else hashlib.sha3_256(data)
    return digest.hexdigest() == uuid


def parse_cards(data: bytes) -> list[Card]:
    """The cards of a structured artifact, without a clear-text signature around it."""
    signed = _SIGNED.match(data)
    if signed:
        end = [found.start() for found in _SIGNATURE.finditer(data)]
        data = data[signed.end() : end[-1] + 1 if end else len(data)]
    cards: list[Card] = []
    at = 0
    while at < len(data):
        stop = data.find(b"\n", at)
        line = data[at : stop if stop >= 0 else len(data)]
        if not (b"A" <= line[:1] <= b"Z") or line[1:2] not in (b" ", b""):
            raise ArtifactUnreadable("not a structured artifact")
        at += len(line) + 1
        if line[:1] == b"W":
            if not line[2:].isdigit() or at + int(line[2:]) > len(data):
                raise ArtifactUnreadable("the text of a structured artifact is cut off")
            cards.append(Card(b"W", (data[at : at + int(line[2:])],)))
            at += int(line[2:]) + 1
        else:
            cards.append(Card(line[:1], tuple(line[2:].split(b" "))))
    return cards


def unescape(argument: bytes) -> bytes:
    r"""An argument as it was before spaces, newlines and backslashes became ``\s``, ``\n`` and ``\\``."""
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), argument) if b"\\" in argument else argument


def baseline_of(cards: Iterable[Card]) -> str | None:
    """The manifest that a delta manifest builds on, or None for a whole one."""
    return next((card.arguments[0].decode("ascii", "replace") for card in cards if card.letter == b"B"), None)


def files_of(cards: Iterable[Card]) -> list[FileCard]:
    files: list[FileCard] = []
    for card in cards:
        if card.letter == b"F":
            name, uuid, permission = (*card.arguments, b"", b"")[:3]
            files.append(FileCard(unescape(name), uuid.decode("ascii", "replace"), b"l" in permission))
    return files


def merge_files(baseline: Iterable[FileCard], changes: Iterable[FileCard]) -> list[FileCard]:
    """The files of a check-in: those of its baseline with the changes of its delta manifest."""
    files = {card.name: card for card in baseline} | {card.name: card for card in changes}
    return [card for card in files.values() if card.uuid]


def text_of(cards: Iterable[Card]) -> bytes:
    """The text of a wiki page, technote or forum post; empty where it has none."""
    return next((card.arguments[0] for card in cards if card.letter == b"W"), b"")


def title_of(cards: Iterable[Card]) -> bytes:
    """The title of a forum thread (H card) or technote (C card) as one line; empty where it has none."""
    found = next((unescape(card.arguments[0]) for card in cards if card.letter in (b"H", b"C")), b"")
    return b" ".join(found.split())


def technote_text(cards: Sequence[Card]) -> bytes:
    """A technote: its title as a heading, then its text."""
    title, text = title_of(cards), text_of(cards)
    return b"# " + title + b"\n\n" + text if title else text


def post_text(subject: bytes, posts: Sequence[bytes], titled: bool) -> bytes:
    """Comments or posts as one text: the subject's line (empty without one), then each post, form feeds between them.

    ``titled`` says that the first post carries the subject, as a ticket's first comment does. Otherwise (a reply in a
    forum) a form feed separates the subject too. No post may be blank.
    """
    gap = POST_BREAK.encode()
    bodies = [post.replace(b"\r\n", b"\n").replace(b"\f", b" ").strip(b"\n") for post in posts]
    if not bodies:
        return subject
    if not subject:
        return b"\n" + gap.join(bodies)
    return subject + (b"\n\n" if titled else gap) + gap.join(bodies)


def ticket_text(changes: Iterable[Sequence[Card]]) -> bytes:
    """A ticket after its changes (their cards, oldest first): its title and its comments, one post each."""
    title = b""
    comments: list[tuple[str, bytes]] = []
    for cards in changes:
        for name, value in _fields(cards).items():
            field = name.removeprefix("+")
            if field == "title":
                title = title + value if name != field else value
            elif field in _COMMENT_FIELDS:
                at = len(comments)
                if name == "comment":
                    # A plain ``comment`` replaces the whole field, at its old position.
                    at = next((place for place, (kind, _) in enumerate(comments) if kind == "comment"), at)
                    comments = [item for item in comments if item[0] != "comment"]
                if value.strip():
                    comments.insert(at, (field, value))
    return post_text(b" ".join(title.split()), [text for _, text in comments], titled=True)


def _fields(cards: Iterable[Card]) -> Mapping[str, bytes]:
    """What a ticket change sets. A leading ``+`` of the name appends to the field."""
    return {
        card.arguments[0].decode("utf-8", "replace"): unescape(card.arguments[1]) if len(card.arguments) > 1 else b""
        for card in cards
        if card.letter == b"J"
    }
