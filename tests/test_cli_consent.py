"""The question before text leaves the machine, as a person at a terminal meets it."""

from __future__ import annotations

import io
import os
import pty

import pytest

from outcrop.egress import Disclosure
from outcrop.surfaces.cli.consent import ask, can_ask

DISCLOSURE = Disclosure(
    address="https://embed.example/v1\x1b[2J",
    model="m",
    what="passages",
    texts=1200,
    characters=34000,
    encrypted=True,
    token="TEAM_TOKEN",
    proxy=None,
)


@pytest.mark.parametrize(
    ("typed", "agreed"),
    [("y\n", True), ("YES\n", True), (" y \n", True), ("\n", False), ("n\n", False), ("", False), ("sure\n", False)],
)
def test_only_a_yes_is_a_yes(typed: str, agreed: bool, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert ask(DISCLOSURE) is agreed
    shown = capsys.readouterr()
    assert not shown.out, "results only"
    assert "1,200 passages (34,000 characters) would leave this machine." in shown.err
    assert "TEAM_TOKEN" in shown.err
    assert shown.err.endswith("Send it? [y/N] ")
    assert "\x1b" not in shown.err


def test_nobody_is_asked_through_a_pipe(monkeypatch) -> None:
    assert not can_ask()
    master, terminal = pty.openpty()
    try:
        with os.fdopen(terminal, "r+b", buffering=0) as screen:
            stream = io.TextIOWrapper(screen)
            monkeypatch.setattr("sys.stderr", stream)
            assert not can_ask(), "somebody reads, nobody can answer"
            monkeypatch.setattr("sys.stdin", stream)
            assert can_ask()
            monkeypatch.undo()
            stream.detach()
    finally:
        os.close(master)
