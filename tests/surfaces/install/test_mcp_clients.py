"""Setting clients up: the smallest change to files that people write, shown first, and taken back without a trace."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from terminal import on_terminal

from outcrop.errors import FormatError
from outcrop.surfaces.cli.program import main
from outcrop.surfaces.install.mcp_clients import CLIENTS, McpClient, install_client, uninstall_client
from outcrop.surfaces.install.plan import ChangePlan

CLIENT = McpClient("Some client", "mcp.json", "servers", (), "")
ENTRY = CLIENT.entry()
TYPED = """\
{
\t"inputs": [],
\t"servers": {
\t\t"one": {
\t\t\t"command": "one",
\t\t\t"args": ["a,b", "}", "${workspaceFolder}", 3]
\t\t}
\t}
}
"""
ADDED = TYPED.replace(
    "3]\n\t\t}\n",
    '3]\n\t\t},\n\t\t"outcrop": {\n\t\t\t"command": "outcrop",\n\t\t\t"args": ["mcp", "--text-only"]\n\t\t}\n',
)


def changed(root: Path, before: str, plan: Callable[[Path, McpClient, str], ChangePlan] = install_client) -> str | None:
    """The text of the settings after an installation, or what else is planned; None where they are deleted."""
    path = root / CLIENT.file
    path.write_bytes(before.encode())
    plan(root, CLIENT, "outcrop").apply()
    return path.read_bytes().decode() if path.exists() else None


def one_line(value: Any) -> str:
    return json.dumps(value)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TYPED, ADDED),
        ('{"a": 2}', f'{{"a": 2, "servers": {{"outcrop": {one_line(ENTRY)}}}}}'),
        ('{"servers": {"a": 2}}', f'{{"servers": {{"a": 2, "outcrop": {one_line(ENTRY)}}}}}'),
        ('{"servers": {"outcrop": 2}}', f'{{"servers": {{"outcrop": {one_line(ENTRY)}}}}}'),
        ('{"a": "\\u00e9"}', f'{{"a": "\\u00e9", "servers": {{"outcrop": {one_line(ENTRY)}}}}}'),
        ('{"a": "é"}\n', f'{{"a": "é", "servers": {{"outcrop": {one_line(ENTRY)}}}}}\n'),
        ("{}", json.dumps({"servers": {"outcrop": ENTRY}}, indent=2)),
        ("", json.dumps({"servers": {"outcrop": ENTRY}}, indent=2) + "\n"),
        (
            '{\r\n    "a": 2\r\n}\r\n',
            (json.dumps({"a": 2, "servers": {"outcrop": ENTRY}}, indent=4) + "\n").replace("\n", "\r\n"),
        ),
    ],
)
def test_where_an_entry_goes(tmp_path: Path, before: str, after: str) -> None:
    assert changed(tmp_path, before) == after
    assert install_client(tmp_path, CLIENT, "outcrop").changes == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ADDED, TYPED),
        ('{"servers": {"outcrop": 1, "a": 2}}', '{"servers": {"a": 2}}'),
        ('{"servers": {"a": 2, "outcrop": 1, "b": 3}}', '{"servers": {"a": 2, "b": 3}}'),
        ('{"servers": {"a": 2}}', '{"servers": {"a": 2}}'),
        ('{"outcrop": 1}', '{"outcrop": 1}'),
        ('{\n  "servers": {\n    "outcrop": 1,\n    "a": 2\n  }\n}', '{\n  "servers": {\n    "a": 2\n  }\n}'),
        ('{"servers": {"outcrop": 1}, "b": 3}', '{"b": 3}'),
        ('{"servers": {"outcrop": 1}}', None),
    ],
)
def test_how_an_entry_goes_out(tmp_path: Path, before: str, after: str | None) -> None:
    assert changed(tmp_path, before, uninstall_client) == after


PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Plain JSON in any indentation, with some servers or none."""
    servers = draw(
        st.one_of(st.none(), st.dictionaries(st.text().filter(lambda key: key != "outcrop"), PLAIN, min_size=1))
    )
    rest = draw(st.dictionaries(st.text().filter(lambda key: key != "servers"), PLAIN, min_size=1, max_size=3))
    items = list((rest | ({} if servers is None else {"servers": servers})).items())
    text = json.dumps(
        dict(draw(st.permutations(items))),
        indent=draw(st.sampled_from([None, 2, 4, "\t"])),
        ensure_ascii=draw(st.booleans()),
    )
    return draw(st.sampled_from([text, text + "\n", text.replace("\n", "\r\n")]))


@given(text=documents())
def test_in_and_out_again_is_the_same_file(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    root = tmp_path_factory.mktemp("project")
    before = json.loads(text)
    added = changed(root, text)
    assert added is not None
    assert json.loads(added) == before | {"servers": before.get("servers", {}) | {"outcrop": ENTRY}}
    assert changed(root, added, uninstall_client) == text


COMMENTED = TYPED.replace("{", "{ // asked once", 1)


@pytest.mark.parametrize(
    "text",
    [
        COMMENTED,
        f"/* ours */ {TYPED}",
        TYPED.replace("[]", "[],  "),
        '{"servers": {"a": 2,},}',
        '\ufeff{"a": 2}',
        '{"a": 1, "a": 2}',
        '{"a":1}',
        *("{", "[1 2]", '{"a" 1}', "{'a': 1}", '{"a": nope}', "{} {}", '{"a": 1,, "b": 2}', "[" * 100_000),
    ],
)
def test_what_cannot_be_written_again_as_it_is_gets_no_change_but_a_text_to_paste(tmp_path: Path, text: str) -> None:
    path = tmp_path / CLIENT.file
    path.write_bytes(text.encode())
    with pytest.raises(FormatError, match="was not changed") as refused:
        install_client(tmp_path, CLIENT, "outcrop")
    before, _, entry = refused.value.fix.partition(": ")
    assert before == 'Add this to the object "servers" in it'
    assert json.loads(f"{{{entry}}}") == {"outcrop": ENTRY}
    assert path.read_bytes().decode() == text


def test_what_is_there_needs_no_change_whatever_the_layout(tmp_path: Path) -> None:
    (tmp_path / CLIENT.file).write_text(json.dumps({"servers": {"outcrop": ENTRY}}, separators=(",", ":")))
    assert install_client(tmp_path, CLIENT, "outcrop").changes == ()
    assert uninstall_client(tmp_path, CLIENT, "other").changes == ()
    with pytest.raises(FormatError, match="was not changed") as refused:
        uninstall_client(tmp_path, CLIENT, "outcrop")
    assert refused.value.fix == 'Remove "outcrop" from the object "servers" in it'


@pytest.mark.parametrize("text", ["[]", '{"servers": []}', '{"servers": "x"}', "3"])
def test_settings_of_another_shape_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / CLIENT.file).write_text(text)
    with pytest.raises(FormatError, match="not a JSON object"):
        install_client(tmp_path, CLIENT, "outcrop")


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
    assert f"create {path}\n" in out
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


def test_settings_of_a_team_keep_their_layout_and_permissions(root: Path, run: Run) -> None:
    path = root / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text(TYPED)
    path.chmod(0o600)
    code, out, _ = run("--install", "vscode", "--yes", "--name", "search")
    assert code == 0
    assert not [line for line in out.splitlines() if line.startswith("  -") and line != "  -\t\t}"]
    assert json.loads(path.read_text())["servers"]["search"]["type"] == "stdio"
    assert path.stat().st_mode & 0o777 == 0o600
    assert run("--uninstall", "vscode", "--yes", "--name", "search")[0] == 0
    assert path.read_text() == TYPED
    assert list(path.parent.iterdir()) == [path]


def test_settings_with_comments_are_left_alone_and_the_entry_is_shown(root: Path, run: Run) -> None:
    path = root / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text(COMMENTED)
    code, out, err = run("--install", "vscode", "--yes")
    assert (code, out) == (1, "")
    assert f"{path} is not plain JSON" in err
    assert '→ Add this to the object "servers" in it: "outcrop": {"type": "stdio", "command": "' in err
    assert '"args": ["mcp", "--text-only", "${workspaceFolder}"]}\n' in err
    code, _, err = run("--uninstall", "vscode", "--yes")
    assert (code, '→ Remove "outcrop" from the object "servers" in it' in err) == (1, True)
    assert path.read_text() == COMMENTED


def test_nothing_is_written_unasked(root: Path, run: Run) -> None:
    code, out, err = run("--install", "cursor")
    assert (code, f"create {root / '.cursor' / 'mcp.json'}" in out) == (2, True)
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
