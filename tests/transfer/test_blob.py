"""The transfer format, against bytes written by hand and against whatever hypothesis thinks of."""

from __future__ import annotations

import contextlib
import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.core.model import Space
from outcrop.core.protocols import Vector
from outcrop.errors import BlobError
from outcrop.transfer import blob as blobs
from outcrop.transfer.blob import BlobRecord, SpaceNote, decode, encode

GOLDEN = Path(__file__).parent.parent / "golden"


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def vector(*values: float) -> Vector:
    return np.array(values, np.float32)


def raw(seq: int, project: bytes, text: bytes, *values: float) -> bytes:
    """A record put together without the module under test."""
    return (
        struct.pack("<HH", seq, len(project))
        + project
        + struct.pack("<I", len(text))
        + text
        + struct.pack(f"<{len(values)}f", *values)
    )


def same(one: BlobRecord, other: BlobRecord) -> bool:
    return (one.seq, one.project, one.text) == (other.seq, other.project, other.text) and (
        one.vector.tobytes() == other.vector.tobytes()
    )


class TestGolden:
    @pytest.mark.parametrize("name", ["ve01", "ve00"])
    def test_the_page_and_the_bytes_say_the_same(self, name: str) -> None:
        page = (GOLDEN / f"{name}.txt").read_text("utf-8")
        lines = (line.partition("#")[0] for line in page.splitlines())
        assert bytes.fromhex(re.sub(r"\s", "", "".join(lines))) == golden(f"{name}.bin")

    def test_a_blob_written_by_hand_parses_and_comes_out_byte_for_byte(self) -> None:
        records = decode(golden("ve01.bin"), 2)
        first, second = records
        assert (first.seq, first.project, first.text) == (0, "", "Lions äßen")
        assert first.vector.tolist() == [1.0, 0.0]
        assert np.signbit(first.vector[1])
        assert (second.seq, second.project, second.text) == (258, "zoo", "")
        assert second.vector.tolist() == vector(0.6, -0.8).tolist()
        assert encode(records, 2) == golden("ve01.bin")

    def test_the_older_form_is_read_and_comes_out_as_the_new_one(self) -> None:
        with pytest.raises(BlobError, match=r"length 5, not 1.*outcrop normalize"):
            decode(golden("ve00.bin"), 3)
        records = decode(golden("ve00.bin"), 3, normalise=True)
        assert encode(records, 3) == b"VE01" + raw(0, b"", b"Bears", 0.6, 0.0, 0.8)

    def test_both_tell_their_dim(self) -> None:
        assert blobs.infer_dim([golden("ve01.bin")]) == 2
        assert blobs.infer_dim([golden("ve00.bin")]) == 3


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@st.composite
def record_lists(draw: st.DrawFn) -> tuple[list[BlobRecord], int]:
    dim = draw(st.integers(1, 9))
    keys = draw(st.lists(st.tuples(texts, st.integers(0, 0xFFFF)), unique=True, max_size=5))
    records = []
    for project, seq in keys:
        values = np.array(draw(st.lists(st.integers(-100, 100), min_size=dim, max_size=dim)), np.float64)
        values[0] += 101 * (not values.any())
        unit = (values / np.linalg.norm(values)).astype(np.float32)
        records.append(BlobRecord(seq, project, draw(texts), unit))
    return records, dim


class TestRoundTrip:
    @given(record_lists())
    def test_what_goes_in_comes_out(self, case: tuple[list[BlobRecord], int]) -> None:
        records, dim = case
        data = encode(records, dim)
        for form in (data, data[4:]) if records else (data,):
            decoded = decode(form, dim)
            assert len(decoded) == len(records)
            assert all(map(same, decoded, records))
            assert encode(decoded, dim) == data

    @given(record_lists(), st.data())
    def test_no_part_of_a_blob_is_a_blob(self, case: tuple[list[BlobRecord], int], data: st.DataObject) -> None:
        records, dim = case
        whole = encode(records, dim)
        ends = {4}
        for record in records:
            ends.add(max(ends) + 8 + len(record.project.encode()) + len(record.text.encode()) + 4 * dim)
        cut = data.draw(st.integers(4, len(whole)))
        if cut in ends:
            assert len(decode(whole[:cut], dim)) == sorted(ends).index(cut)
        else:
            with pytest.raises(BlobError, match="truncated"):
                decode(whole[:cut], dim)

    @given(st.binary(max_size=200), st.one_of(st.none(), st.integers(-1, 12)), st.booleans(), st.booleans())
    def test_any_bytes_give_a_blob_or_the_reason(
        self, data: bytes, dim: int | None, header: bool, normalise: bool
    ) -> None:
        data = b"VE01" + data if header else data
        with contextlib.suppress(BlobError):
            dim = blobs.infer_dim([data]) if dim is None else dim
            records = decode(data, dim, normalise=normalise)
            assert normalise or encode(records, dim) == b"VE01" + data.removeprefix(b"VE01")

    @given(record_lists(), st.data())
    def test_a_changed_byte_gives_other_records_or_the_reason(
        self, case: tuple[list[BlobRecord], int], data: st.DataObject
    ) -> None:
        records, dim = case
        whole = bytearray(encode(records, dim))
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] ^= data.draw(st.integers(1, 255))
        with contextlib.suppress(BlobError):
            decoded = decode(bytes(whole), dim)
            assert not (len(decoded) == len(records) and all(map(same, decoded, records)))


class TestRefused:
    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"", "empty"),
            (b"VE01\0", "record 0 is truncated: 1 bytes"),
            (b"VE01" + raw(0, b"", b"a", 1.0, 0.0) + b"xyz", "record 1 is truncated: 3 bytes"),
            (b"VE01" + struct.pack("<HH", 0, 9) + b"short", "record 0 is truncated in its project"),
            (b"VE01" + struct.pack("<HHI", 0, 0, 99) + b"short", "record 0 is truncated in its text"),
            (b"VE01" + raw(0, b"", b"a", 1.0), "record 0 is truncated in its vector of 2"),
            (b"VE01" + raw(0, b"", b"\xff", 1.0, 0.0), "text is not UTF-8 .* at byte 0"),
            (b"VE01" + raw(0, b"a\xc3", b"", 1.0, 0.0), "project is not UTF-8"),
            (b"VE01" + raw(0, b"", b"\xed\xa0\x80", 1.0, 0.0), "text is not UTF-8"),
            (b"VE01" + raw(0, b"", b"a", float("nan"), 1.0), "record 0: the vector holds NaN or infinity"),
            (b"VE01" + raw(0, b"", b"a", float("-inf"), 1.0), "NaN or infinity"),
            (b"VE01" + raw(0, b"", b"a", 0.0, 0.0), "length 0, not 1"),
            (b"VE01" + raw(0, b"", b"a", 1.002, 0.0), "length 1.002, not 1"),
            (b"VE01" + raw(0, b"", b"a", 0.998, 0.0), "length 0.998, not 1"),
            (b"VE01" + raw(7, b"p", b"a", 1.0, 0.0) * 2, "record 7 of project 'p' is there twice"),
        ],
    )
    def test_with_the_reason(self, data: bytes, reason: str) -> None:
        with pytest.raises(BlobError, match=reason):
            decode(data, 2)

    def test_a_length_within_a_thousandth_is_kept_as_it_is(self) -> None:
        data = b"VE01" + raw(0, b"", b"a", 1.0009, 0.0) + raw(1, b"", b"b", 0.9991, 0.0)
        assert encode(decode(data, 2), 2) == data

    def test_normalising_cannot_mend_everything(self) -> None:
        for values in ((0.0, 0.0), (float("nan"), 1.0), (float("inf"), 1.0)):
            with pytest.raises(BlobError):
                decode(b"VE01" + raw(0, b"", b"a", *values), 2, normalise=True)
        (mended,) = decode(b"VE01" + raw(0, b"", b"a", 3e38, 3e38), 2, normalise=True)
        assert np.allclose(mended.vector, [0.5**0.5, 0.5**0.5], atol=1e-6)

    @pytest.mark.parametrize("dim", [0, -1, 65537])
    def test_an_impossible_dim(self, dim: int) -> None:
        with pytest.raises(BlobError, match=f"dim of {dim} is impossible"):
            decode(b"VE01", dim)

    @pytest.mark.parametrize(
        ("record", "reason"),
        [
            (BlobRecord(65536, "", "a", vector(1, 0)), "seq is 65536, and the format ends at 65535"),
            (BlobRecord(-1, "", "a", vector(1, 0)), "seq is -1"),
            (BlobRecord(0, "x" * 65536, "a", vector(1, 0)), "length of the project is 65536"),
            (BlobRecord(0, "", "\ud800", vector(1, 0)), "text is not valid text"),
            (BlobRecord(0, "\ud800", "", vector(1, 0)), "project is not valid text"),
            (BlobRecord(0, "", "a", vector(1, 0, 0)), r"shape \(3,\), not 2 components"),
            (BlobRecord(0, "", "a", vector(1, 1)), "length 1.414, not 1"),
            (BlobRecord(0, "", "a", vector(np.nan, 1)), "NaN or infinity"),
        ],
    )
    def test_a_record_that_does_not_fit(self, record: BlobRecord, reason: str) -> None:
        with pytest.raises(BlobError, match=reason):
            encode([record], 2)

    def test_the_largest_numbers_fit(self) -> None:
        record = BlobRecord(65535, "x" * 65535, "a", vector(1, 0))
        assert same(decode(encode([record], 2), 2)[0], record)

    def test_a_text_over_four_gigabytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert blobs.MOST_TEXT == 2**32 - 1
        monkeypatch.setattr(blobs, "MOST_TEXT", 10)
        with pytest.raises(BlobError, match="length of the text is 11, and the format ends at 10"):
            encode([BlobRecord(0, "", "ä" * 5 + "b", vector(1, 0))], 2)

    def test_one_chunk_twice(self) -> None:
        record = BlobRecord(3, "", "a", vector(1, 0))
        with pytest.raises(BlobError, match="record 3 of project '' is there twice"):
            encode([record, record], 2)


class TestUnknownDim:
    def test_one_blob_may_leave_it_open_and_another_settle_it(self) -> None:
        """The first reads as one record of 6 components, or as two of 2: eight of its bytes can be either."""
        open_ = b"VE01" + raw(0, b"", b"", 2.0, 0.0) + raw(1, b"", b"", 0.0, 2.0)
        with pytest.raises(BlobError, match="several fit: 2, 6"):
            blobs.infer_dim([open_])
        settled = b"VE01" + raw(0, b"", b"two", 0.0, 1.0)
        assert blobs.infer_dim([open_, b"VE01", settled]) == 2

    def test_vectors_of_length_one_settle_what_shape_leaves_open(self) -> None:
        open_ = b"VE01" + raw(0, b"", b"", 1.0, 0.0) + raw(1, b"", b"", 0.0, 1.0)
        assert blobs.infer_dim([open_]) == 2

    def test_blobs_that_disagree(self) -> None:
        one, other = (b"VE01" + raw(0, b"", b"some text", *([0.0] * (dim - 1)), 1.0) for dim in (4, 5))
        with pytest.raises(BlobError, match=r"none fits.*Name the model and its dim"):
            blobs.infer_dim([one, other])

    def test_nothing_to_tell_it_from(self) -> None:
        with pytest.raises(BlobError, match="none fits"):
            blobs.infer_dim([b"VE01"])
        assert decode(b"VE01", 2) == []

    @given(st.integers(1, 800), st.integers(1, 4))
    def test_texts_settle_it(self, dim: int, count: int) -> None:
        values = [0.0] * (dim - 1) + [1.0]
        data = b"".join(raw(seq, b"", b"Each of them has a text of its own", *values) for seq in range(count))
        assert blobs.infer_dim([data]) == dim


class TestNames:
    def test_a_blob_is_named_after_its_artifact(self) -> None:
        for length in (40, 64):
            digest = "0123456789abcdef" * 4
            assert blobs.name_of(digest[:length]) == f"vec/{digest[:length]}.bin"
            assert blobs.hash_of(blobs.name_of(digest[:length])) == digest[:length]

    @pytest.mark.parametrize("name", ["vec/space.json", "vec/abc.bin", f"vec/{'g' * 40}.bin", f"other/{'a' * 40}.bin"])
    def test_other_names_are_not_blobs(self, name: str) -> None:
        assert blobs.hash_of(name) is None


class TestNote:
    def test_what_it_says(self) -> None:
        data = blobs.encode_note(SpaceNote(Space("größe-v2", 384), "7"))
        assert json.loads(data) == {"format": "VE01", "model": "größe-v2", "dim": 384, "chunker": "7"}
        assert blobs.decode_note(data) == SpaceNote(Space("größe-v2", 384), "7")

    def test_keys_of_later_versions_are_passed_over(self) -> None:
        assert blobs.decode_note(b'{"model": "m", "dim": 3, "colour": "blue"}') == SpaceNote(Space("m", 3))

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"not json", "not JSON"),
            (b"\xff\xfe", "not JSON"),
            (b"[" * 100_000, "not JSON"),
            (b"[1]", "not a JSON object"),
            (b'{"dim": 3}', "names no model"),
            (b'{"model": "", "dim": 3}', "names no model"),
            (b'{"model": "m"}', "no possible dim: None"),
            (b'{"model": "m", "dim": true}', "no possible dim: True"),
            (b'{"model": "m", "dim": 0}', "no possible dim: 0"),
            (b'{"model": "m", "dim": 3, "format": "VE02"}', "'VE02'.*Update Outcrop"),
        ],
    )
    def test_what_is_no_note(self, data: bytes, reason: str) -> None:
        with pytest.raises(BlobError, match=reason):
            blobs.decode_note(data)
