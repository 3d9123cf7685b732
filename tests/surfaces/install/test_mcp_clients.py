"""Setting clients up: the smallest change to files that people write, shown first, and taken back without a trace."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from terminal import on_terminal

from outcrop.errors import FormatError
from outcrop.surfaces.cli.program import main
from outcrop.surfaces.install import jsonc
from outcrop.surfaces.install.mcp_clients import CLIENTS

ENTRY = {"type": "stdio", "command": "outcrop", "args": ["mcp"]}
KEYS = ("servers", "outcrop")
COMMENTED = """\
// Servers of this project.
{
\t"inputs": [
\t\t{ "id": "key", "type": "promptString" }, // asked once
\t],
\t/* "servers": {} is below */
\t"servers": {
\t\t"one": { "command": "one" }, // the first
\t\t"two": { "command": "two", "args": ["a,b", "}"] } // the second
\t}
}
"""


def test_an_entry_goes_in_and_everything_else_stays() -> None:
    assert jsonc.put(COMMENTED, KEYS, ENTRY) == COMMENTED.replace(
        '"two": { "command": "two", "args": ["a,b", "}"] } // the second\n',
        '"two": { "command": "two", "args": ["a,b", "}"] }, // the second\n'
        '\t\t"outcrop": {\n\t\t\t"type": "stdio",\n\t\t\t"command": "outcrop",\n'
        '\t\t\t"args": [\n\t\t\t\t"mcp"\n\t\t\t]\n\t\t}\n',
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "servers": {\n    "outcrop": 1\n  }\n}\n'),
        ("{}", '{\n  "servers": {\n    "outcrop": 1\n  }\n}'),
        ('{"a": 2}', '{"a": 2, "servers": {"outcrop": 1}}'),
        ('{"servers": {"a": 2}}', '{"servers": {"a": 2, "outcrop": 1}}'),
        ('{"servers": {"a": 2,},}', '{"servers": {"a": 2, "outcrop": 1,},}'),
        ('{"servers": {"outcrop": 2}}', '{"servers": {"outcrop": 1}}'),
        ('{"servers": {"outcrop": 1}}', '{"servers": {"outcrop": 1}}'),
        ('{\r\n    "a": 2\r\n}\r\n', '{\r\n    "a": 2,\r\n    "servers": {\r\n        "outcrop": 1\r\n    }\r\n}\r\n'),
        ('{\n  "servers": {\n  }\n}', '{\n  "servers": {\n    "outcrop": 1\n  }\n}'),
        ('{\n  "servers": {\n    // none yet\n  }\n}', '{\n  "servers": {\n    "outcrop": 1\n    // none yet\n  }\n}'),
        ('\ufeff{"a": 2}', '\ufeff{"a": 2, "servers": {"outcrop": 1}}'),
    ],
)
def test_where_an_entry_goes(before: str, after: str) -> None:
    assert jsonc.put(before, KEYS, 1) == after
    assert jsonc.parse(after)["servers"]["outcrop"] == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"servers": {"outcrop": 1}}', "{}"),
        ('{"servers": {"outcrop": 1, "a": 2}}', '{"servers": {"a": 2}}'),
        ('{"servers": {"a": 2, "outcrop": 1, "b": 3}}', '{"servers": {"a": 2, "b": 3}}'),
        ('{"servers": {"a": 2}}', '{"servers": {"a": 2}}'),
        ('{"outcrop": 1}', '{"outcrop": 1}'),
        ('{"servers": {"outcrop": 1 /* mine */}}', '{"servers": { /* mine */}}'),
        ('{\n  "servers": {\n    "outcrop": 1,\n    "a": 2\n  }\n}', '{\n  "servers": {\n    "a": 2\n  }\n}'),
        ('{"servers": {"outcrop": 1}, "b": 3}', '{"b": 3}'),
    ],
)
def test_how_an_entry_goes_out(before: str, after: str) -> None:
    assert jsonc.take(before, KEYS) == after


PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Settings as people write them: with comments, trailing commas and any indentation."""
    gap = draw(st.sampled_from(["", " ", "\n", "\n  ", "\n\t\t", " // x\n", "/* , } */", "\r\n "]))

    def write(value: Any, depth: int) -> str:
        if isinstance(value, dict) or (isinstance(value, list) and value):
            opening, closing = "{}" if isinstance(value, dict) else "[]"
            items = (
                [f"{json.dumps(key)}:{gap}{write(each, depth + 1)}" for key, each in value.items()]
                if isinstance(value, dict)
                else [write(each, depth + 1) for each in value]
            )
            trailing = "," if items and draw(st.booleans()) else ""
            return f"{opening}{gap}{f',{gap}'.join(items)}{trailing}{gap}{closing}"
        return json.dumps(value)

    servers = draw(
        st.one_of(st.none(), st.dictionaries(st.text().filter(lambda key: key != "outcrop"), PLAIN, min_size=1))
    )
    rest = draw(st.dictionaries(st.text().filter(lambda key: key != "servers"), PLAIN, min_size=1, max_size=3))
    items = list((rest | ({} if servers is None else {"servers": servers})).items())
    return draw(st.sampled_from(["", "// top\n", "\ufeff"])) + write(dict(draw(st.permutations(items))), 0)


@settings(deadline=None)
@given(documents())
def test_in_and_out_again_is_the_same_file(text: str) -> None:
    before = jsonc.parse(text)
    changed = jsonc.put(text, KEYS, ENTRY)
    assert jsonc.parse(changed) == before | {"servers": before.get("servers", {}) | {"outcrop": ENTRY}}
    assert jsonc.put(changed, KEYS, ENTRY) == changed
    assert jsonc.parse(jsonc.take(changed, KEYS)) == before
    assert jsonc.take(changed, KEYS) == text


@given(PLAIN)
def test_what_is_plain_json_is_read_as_such(value: Any) -> None:
    assert jsonc.parse(json.dumps(value, indent=1)) == value


@pytest.mark.parametrize(
    "text", ["{", "[1 2]", '{"a" 1}', "{'a': 1}", '{"a": nope}', "{} {}", '{"a": 1,, "b": 2}', "[" * 999]
)
def test_broken_settings_are_refused_with_the_place(text: str) -> None:
    with pytest.raises(FormatError, match="line 1, column"):
        jsonc.put(text, KEYS, 1)


@pytest.mark.parametrize("text", ["[]", '{"servers": []}', '{"servers": "x"}', "3"])
def test_settings_of_another_shape_are_refused(text: str) -> None:
    with pytest.raises(FormatError, match="not a JSON object"):
        jsonc.put(text, KEYS, 1)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("# A\n")
    return tmp_path


@pytest.fixture
def run(root: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(["mcp", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_set_up_and_left_as_it_was(root: Path, run: Run, client: str) -> None:
    path = root / CLIENTS[client].file
    code, out, err = run("--install", client, "--yes")
    assert code == 0
    assert f"+++ {CLIENTS[client].file}" in out
    assert CLIENTS[client].then in err
    entry = json.loads(path.read_text())[CLIENTS[client].servers]["outcrop"]
    assert entry["command"].endswith("outcrop")
    assert entry["args"][:2] == ["mcp", "--text-only"]
    assert path.stat().st_mode & 0o777 == 0o644
    code, out, _ = run("--install", client, "--yes")
    assert (code, "is set up already" in out) == (0, True)
    assert run("--uninstall", client, "--yes")[0] == 0
    assert not path.exists()
    code, out, _ = run("--uninstall", client, "--yes")
    assert (code, "is not set up" in out) == (0, True)


def test_settings_of_a_team_keep_their_comments_and_permissions(root: Path, run: Run) -> None:
    path = root / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text(COMMENTED)
    path.chmod(0o600)
    code, out, _ = run("--install", "vscode", "--yes", "--name", "search")
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("-\t")] == [
        '-\t\t"two": { "command": "two", "args": ["a,b", "}"] } // the second'
    ]
    assert jsonc.parse(path.read_text())["servers"]["search"]["type"] == "stdio"
    assert path.stat().st_mode & 0o777 == 0o600
    assert run("--uninstall", "vscode", "--yes", "--name", "search")[0] == 0
    assert path.read_text() == COMMENTED
    assert list(path.parent.iterdir()) == [path]


def test_nothing_is_written_unasked(root: Path, run: Run) -> None:
    code, out, err = run("--install", "cursor")
    assert (code, "+++ .cursor/mcp.json" in out) == (2, True)
    assert "Add --yes" in err
    assert not (root / ".cursor").exists()


@pytest.mark.parametrize(("typed", "done"), [(b"y\n", True), (b"n\n", False), (b"\n", False)])
def test_a_person_is_shown_the_change_and_asked(root: Path, typed: bytes, done: bool) -> None:
    code, shown = on_terminal("mcp", "--install", "claude-code", typed=typed, when=b"[y/N]")
    assert '+      "command": "' in shown
    assert (root / ".mcp.json").exists() == done
    assert (code == 0) == done


def test_settings_stand_in_the_root_of_the_repository(root: Path, run: Run) -> None:
    os.system("git init -q")
    (root / "deep" / "er").mkdir(parents=True)
    assert run("deep/er", "--install", "claude-code", "--yes")[0] == 0
    assert (root / ".mcp.json").exists()


def test_broken_settings_are_left_alone(root: Path, run: Run) -> None:
    for content in (b'{"mcpServers": ', b"\xff\xfe{}", b'{"mcpServers": 3}'):
        (root / ".mcp.json").write_bytes(content)
        code, _, err = run("--install", "claude-code", "--yes")
        assert code == 1
        assert ".mcp.json" in err
        assert (root / ".mcp.json").read_bytes() == content
    (root / ".mcp.json").unlink()
    (root / ".mcp.json").mkdir()
    assert run("--install", "claude-code", "--yes")[0] == 2


def test_a_linked_settings_file_stays_a_link(root: Path, run: Run) -> None:
    (root / "shared.json").write_text("{}\n")
    (root / ".mcp.json").symlink_to("shared.json")
    assert run("--install", "claude-code", "--yes")[0] == 0
    assert (root / ".mcp.json").is_symlink()
    assert "outcrop" in (root / "shared.json").read_text()


def test_options_that_a_client_would_not_get_are_refused(root: Path, run: Run) -> None:
    for options in (["--embedder", "hash"], ["--rev", "HEAD"], ["--text-only"], ["--uninstall", "cursor"]):
        code, _, err = run("--install", "claude-code", "--yes", *options)
        assert code == 2, err
    assert not (root / ".mcp.json").exists()
