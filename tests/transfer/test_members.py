"""``vec/members.json``: what it says comes back, and what makes no sense is refused alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.core.model import Chunk, Kind, MediaNote, Part
from outcrop.errors import BlobError
from outcrop.transfer.members import ExportedArtifact, Location, MembersFile, decode, encode

lines = st.integers(1, 10**6)
names = st.text(max_size=20)
paths = st.text(min_size=1, max_size=20).filter(
    lambda path: not path.startswith("/") and "\0" not in path and ".." not in path.split("/")
)
locations = st.builds(Location, st.none() | paths, st.sampled_from(Kind), st.sampled_from(Part))
seconds = st.none() | st.tuples(st.floats(0, 1e5), st.floats(0, 1e5))


@st.composite
def listed(draw: st.DrawFn) -> ExportedArtifact:
    count = draw(st.integers(0, 4))
    chunks = []
    for seq in range(count):
        first = draw(lines)
        chunks.append(
            Chunk(
                seq=seq,
                text="",
                start=0,
                end=0,
                first_line=first,
                last_line=first + draw(st.integers(0, 50)),
                name=draw(st.none() | names),
                part=draw(st.sampled_from(Part)),
                cell=draw(st.none() | st.integers(0, 99)),
                cell_id=draw(st.none() | names),
                seconds=draw(seconds),
            )
        )
    media = draw(st.none() | st.builds(MediaNote, names, names))
    at = tuple(draw(st.lists(locations, min_size=1, max_size=3)))
    return ExportedArtifact(draw(st.text("0123456789abcdef", min_size=40, max_size=40)), at, tuple(chunks), media)


# Nearly as deep as a decoder takes.
DEEP: list[object] = []
for _ in range(900):
    DEEP = [DEEP]


@given(st.lists(listed(), max_size=4), names, names)
def test_what_is_written_comes_back(items: list[ExportedArtifact], project: str, revision: str) -> None:
    members = MembersFile("git", project, revision, {item.hash: item for item in items})
    assert decode(encode(members)) == members


def test_an_artifact_takes_one_line_that_a_person_can_read() -> None:
    one = ExportedArtifact("a" * 40, (Location("src/a.py", Kind.CODE),), (Chunk(0, "", 0, 0, 3, 9, "run"),))
    assert encode(MembersFile("git", "zoo", "r1", {one.hash: one})).decode() == (
        '{"format": 1, "source": "git", "project": "zoo", "revision": "r1", "artifacts": [\n'
        '{"hash": "' + "a" * 40 + '", "at": [{"path": "src/a.py", "kind": "code"}],'
        ' "chunks": [{"seq": 0, "lines": [3, 9], "name": "run"}]}\n'
        "]}\n"
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"artifacts": {}}',
        b'{"format": 2, "artifacts": []}',
        b"\xff",
        b"[" * 100_000,
        b'{"format": 1, "artifacts": [' + b"{}," * 1000 + b"{}]}",
    ],
)
def test_what_is_no_such_file(data: bytes) -> None:
    with pytest.raises(BlobError, match=r"members\.json"):
        decode(data)


@pytest.mark.parametrize(
    "change",
    [
        {"hash": 3},
        {"at": []},
        {"at": [{"path": "../../etc/passwd", "kind": "code"}]},
        {"at": [{"path": "/etc/passwd", "kind": "code"}]},
        {"at": [{"path": "a\0b", "kind": "code"}]},
        {"at": [{"path": 7, "kind": "code"}]},
        {"at": [{"path": "a", "kind": "poem"}]},
        {"at": "a"},
        {"chunks": [{"seq": 0, "lines": [1]}]},
        {"chunks": [{"seq": 0, "lines": [1, True]}]},
        {"chunks": [{"seq": -1, "lines": [1, 2]}]},
        {"chunks": [{"seq": 0, "lines": [1, 2]}, {"seq": 0, "lines": [3, 4]}]},
        {"chunks": [{"seq": 0, "lines": [1, 2], "name": []}]},
        {"chunks": [{"seq": 0, "lines": [1, 2], "seconds": ["x", 1]}]},
        {"chunks": [{"seq": 0, "lines": [1, 2], "seconds": [1]}]},
        {"chunks": [{"seq": 0, "lines": [1, 2], "seconds": [0, float("nan")]}]},
        {"media": {"uri": None}},
        {"at": [{"path": "half \ud800 of a character", "kind": "doc"}]},
        {"chunks": [{"seq": 0, "lines": [1, 2], "name": "\udfff"}]},
        *({key: DEEP} for key in ("hash", "at", "chunks", "media")),
        {"at": [{"path": DEEP, "kind": "doc"}]},
        {"at": [{"path": "a.md", "kind": DEEP}]},
        {"chunks": [{"seq": 0, "lines": [1, 2], "name": DEEP}]},
    ],
)
def test_an_entry_that_makes_no_sense_is_refused_alone(change: dict[str, object]) -> None:
    good = {"hash": "a" * 40, "at": [{"path": "a.md", "kind": "doc"}], "chunks": [{"seq": 0, "lines": [1, 2]}]}
    bad = {**good, "hash": "b" * 40, **change}
    found = decode(json.dumps({"format": 1, "artifacts": [bad, good, "no artifact"]}).encode())
    assert list(found.artifacts) == ["a" * 40]
    assert len(found.refused) == 2
