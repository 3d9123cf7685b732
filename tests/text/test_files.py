"""A file is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from outcrop.text.files import write_atomically


def test_a_file_is_replaced_and_gets_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_atomically(path, b"one")
    assert path.read_bytes() == b"one"
    write_atomically(path, b"two", 0o750)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o750)
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_file_and_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"one")

    def refuse(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="no"):
        write_atomically(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]
