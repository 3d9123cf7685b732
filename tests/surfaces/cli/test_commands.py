"""The command line as people and programs use it: on real folders, in this process and as a process of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from terminal import on_terminal

from outcrop.surfaces.cli.program import COMMANDS, GROUPS, main, program

FILES = {
    "README.md": "# Kettle\n\nBoils water.\n\n## Install from source\n\nClone it and run make.\n",
    "src/kettle.py": "def boil(water):\n    return heat(water, 100)\n\n\ndef pour(cup):\n    return cup.fill()\n",
    "src/copy.py": "def boil(water):\n    return heat(water, 100)\n\n\ndef pour(cup):\n    return cup.fill()\n",
    "AGENTS.md": "# Rules\n\nAlways descale the kettle.\n",
}


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "kettle"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    for name in [name for name in os.environ if name.startswith("OUTCROP_")] + ["NO_COLOR", "FORCE_COLOR"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OUTCROP_EMBEDDER", "hash")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def run(folder: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> Result:
        capfd.readouterr()
        code = main(arguments)
        sys.stdout.flush()
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return call


def outcrop(*arguments: str | bytes, **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "outcrop", *arguments]
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **options)  # type: ignore[call-overload, no-any-return]


# What it says about itself


def test_help_lists_every_command_in_one_screen(run: Run) -> None:
    result = run("--help")
    assert result.code == 0
    for name, (_, line) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(line)}$", result.out, re.MULTILINE), name
    assert all(f"\n{heading}:\n" in result.out for heading in GROUPS)
    assert len(result.out.splitlines()) <= 48, "two lines of a screen of 50 are prompts"
    assert run().out == result.out
    assert run("-h").out == result.out


def test_the_table_of_commands_says_what_the_commands_say() -> None:
    with click.Context(program, info_name="outcrop") as ctx:
        for name, (_, line) in COMMANDS.items():
            command = program.get_command(ctx, name)
            assert command is not None
            assert command.name == name
            assert command.short_help == line
            assert (command.help or "").startswith(line.rstrip("."))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples_that_parse(name: str, run: Run) -> None:
    text = run(name, "--help").out
    assert "Examples:" in text
    examples = [line.strip() for line in text.split("Examples:")[1].splitlines() if line.strip()]
    assert len(examples) >= 2
    for example in examples:
        words = shlex.split(re.split(r" [|<>] ?", example)[0])
        words = words[words.index("outcrop") :]
        assert words[1] == name
        command = program.get_command(click.Context(program), name)
        assert command is not None
        command.make_context(name, words[2:])


def test_version(run: Run) -> None:
    assert run("--version") == Result(0, "outcrop 0.1.0\n", "")


@pytest.mark.parametrize(
    ("arguments", "line", "way_out"),
    [
        (("serch", "x"), "outcrop: there is no command 'serch'. Did you mean search?", "outcrop --help"),
        (("search",), "outcrop: missing argument 'QUERY...'", "outcrop search --help"),
        (
            ("media",),
            "outcrop: missing argument '{list|add|verify}'. Choose from: list, add, verify",
            "outcrop media --help",
        ),
        (("search", "--kidn", "x"), "outcrop: no such option '--kidn'", "outcrop search --help"),
        (
            ("search", "x", "-k", "many"),
            "outcrop: invalid value for '-k': 'many' is not a valid integer",
            "outcrop search",
        ),
        (("search", "x", "-k", "0"), "outcrop: k is 0", "at least 1"),
        (("search", " "), "outcrop: the question is empty", "Say what"),
        (("search", "x", "--mode", "magic"), "outcrop: invalid value for '--mode'", "outcrop search --help"),
        (("search", "x", "--kind", "dok"), "outcrop: there is no kind 'dok'", "instruction"),
        (("clear",), "outcrop: clear takes exactly one of --corpus, --project, --space and --all", "outcrop status"),
        (("clear", "--all", "--corpus", "x"), "outcrop: clear takes exactly one of", "outcrop status"),
        (("clear", "--all"), "outcrop: this needs a yes, and there is no terminal to ask on", "Add --yes."),
        (("status", "--embedder", "magic"), "outcrop: there is no embedder 'magic'", "hash"),
        (("status", "--dim", "0"), "outcrop: --dim: dim cannot be 0", "1 to 65536"),
    ],
)
def test_a_wrong_call_is_one_line_a_way_out_and_exit_code_2(
    arguments: tuple[str, ...], line: str, way_out: str, run: Run
) -> None:
    result = run(*arguments)
    first, second = result.err.splitlines()
    assert result.code == 2
    assert result.out == ""
    assert first.startswith(line)
    assert second.startswith("  → ")
    assert way_out in second


# The main job


def test_index_then_search(run: Run) -> None:
    built = run("index")
    assert built.code == 0
    assert "indexed 3 artifacts: 3 new or changed, 0 unchanged, 0 removed" in built.out
    assert "left out 1: 1 binary → outcrop index --verbose" in built.out
    found = run("search", "descale", "the", "kettle")
    lines = found.out.splitlines()
    assert found.code == 0
    assert lines[0].startswith("AGENTS.md:")
    assert lines[0].endswith("· instruction")
    assert any(line.endswith("Always descale the kettle.") for line in lines)
    assert lines[-1].startswith("hybrid · hash-")
    assert found.err == ""


def test_a_second_index_has_nothing_to_do(run: Run) -> None:
    run("index")
    assert run("index").out.startswith("up to date: 3 artifacts, ")


def test_both_copies_are_named_and_paths_start_here(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("index")
    monkeypatch.chdir(folder / "src")
    found = run("search", "--path", "src/**", "-k", "1", "boil").out
    assert found.startswith("copy.py:1  ")
    assert "  also at kettle.py\n" in found


def test_search_json_is_one_object_with_the_mode_beside_the_hits(run: Run) -> None:
    run("index")
    result = run("search", "--json", "-k", "2", "install from source")
    assert result.out.count("\n") == 1
    answer = json.loads(result.out)
    assert set(answer) == {"mode", "reason", "stale", "space", "hits", "corrected"}
    assert (answer["mode"], answer["reason"], answer["stale"]) == ("hybrid", None, None)
    assert len(answer["hits"]) == 2
    assert answer["hits"][0]["path"] == "README.md"
    assert answer["hits"][0]["kind"] == "doc"
    assert answer["hits"][0]["text"].endswith("Clone it and run make.")


def test_filters_narrow_and_an_unknown_one_lists_those_that_exist(run: Run) -> None:
    run("index")
    hits = json.loads(run("search", "--json", "--kind", "instruction", "--kind", "code", "kettle").out)["hits"]
    assert {hit["kind"] for hit in hits} == {"instruction", "code"}
    wrong = run("search", "--corpus", "dosc", "kettle")
    assert wrong.code == 2
    assert "code, docs" in wrong.err


def test_without_an_index_the_files_answer_and_the_mode_says_so(run: Run, folder: Path) -> None:
    found = run("search", "descale")
    assert found.code == 0
    assert found.out.startswith("AGENTS.md:")
    last = found.out.splitlines()[-2:]
    assert last[0] == "keyword only · 1 hit"
    assert "outcrop index" in last[1]
    assert not (folder / ".outcrop").exists()


def test_nothing_found_is_no_failure_and_says_what_to_try(run: Run) -> None:
    run("index")
    result = run("search", "--mode", "keyword", "zyzzyva")
    assert result.code == 0
    assert result.out == "keyword · nothing found\n"
    assert result.err.startswith("try other words")


def test_an_index_that_is_behind_says_so(run: Run, folder: Path) -> None:
    run("index")
    (folder / "new.md").write_text("# New\n\nteapot\n")
    assert "the index is behind" in run("search", "kettle").out
    assert "stale" in run("status").out
    assert json.loads(run("status", "--json").out)["stale"] is True


def test_a_dry_run_writes_nothing(run: Run, folder: Path) -> None:
    result = run("index", "--dry-run")
    assert "code         src/kettle.py" in result.out
    assert "4 artifacts to index" in result.out
    assert "on this machine" in result.out
    assert "  logo.png: binary" in result.out
    assert not (folder / ".outcrop").exists()
    plan = json.loads(run("index", "--dry-run", "--json").out)
    assert plan["address"] is None
    assert plan["texts"] > 0
    assert {ref["path"] for ref in plan["artifacts"]} == set(FILES)


def test_index_json_quiet_and_verbose(run: Run) -> None:
    report = json.loads(run("index", "--json").out)
    assert report["complete"] is True
    assert report["embedded"] > 0
    assert [item["path"] for item in report["skipped"]] == ["logo.png"]
    assert run("index", "--quiet") == Result(0, "", "")
    assert "  logo.png: binary" in run("index", "--verbose").out


def test_exclude_comes_from_the_repository_and_from_the_call(run: Run, folder: Path) -> None:
    (folder / "outcrop.toml").write_text('exclude = ["outcrop.toml", "AGENTS.md"]\n')
    plan = json.loads(run("index", "--dry-run", "--json", "--exclude", "src/copy.py").out)
    assert {ref["path"] for ref in plan["artifacts"]} == {"README.md", "src/kettle.py"}


def test_index_takes_a_folder_and_a_directory(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert run("index", "kettle").code == 0
    assert run("index", "-C", "kettle").out.startswith("up to date")
    assert run("search", "-C", "kettle", "descale").out.startswith("kettle/AGENTS.md:")


def test_status_before_and_after(run: Run) -> None:
    before = run("status")
    assert before.code == 0
    assert "none yet" in before.out
    run("index")
    after = run("status").out
    assert "· current" in after
    assert "code-hash-" in after
    status = json.loads(run("status", "--json").out)
    assert {each["corpus"] for each in status["collections"]} == {"code", "docs"}


def test_clear_frees_what_it_names(run: Run) -> None:
    run("index")
    assert "removed corpus docs" in run("clear", "--corpus", "docs", "--yes").out
    assert {each["corpus"] for each in json.loads(run("status", "--json").out)["collections"]} == {"code"}
    assert json.loads(run("clear", "--all", "--yes", "--json").out)["freed"] >= 0
    assert run("search", "descale").out.count("keyword only") == 1


def test_rebuild_embeds_everything_again(run: Run) -> None:
    first = json.loads(run("index", "--json").out)
    again = json.loads(run("rebuild", "--json").out)
    assert again["embedded"] == first["embedded"] > 0
    assert run("rebuild", "--quiet") == Result(0, "", "")


def test_config_shows_values_and_origins(run: Run, folder: Path) -> None:
    (folder / "outcrop.toml").write_text("dim = 64\n")
    lines = {line.split()[0]: line.split() for line in run("config", "--max-bytes", "2k").out.splitlines() if line}
    assert lines["dim"] == ["dim", "64", "outcrop.toml"]
    assert lines["embedder"] == ["embedder", "hash", "OUTCROP_EMBEDDER"]
    assert lines["max_bytes"] == ["max_bytes", "2048", "--max-bytes"]
    shown = json.loads(run("config", "--json").out)
    assert shown["settings"]["dim"] == {"value": 64, "origin": "outcrop.toml"}
    assert shown["files"]["repository"] == str(folder / "outcrop.toml")


# What can go wrong


def test_a_place_that_is_not_there(run: Run) -> None:
    result = run("search", "-C", "nowhere", "x")
    assert result.code == 1
    assert result.err.startswith("outcrop: ")
    assert "nowhere" in result.err
    assert "Traceback" not in result.err


def test_a_damaged_index_is_a_message_and_rebuild_is_the_way_out(run: Run, folder: Path) -> None:
    run("index")
    store = Path(json.loads(run("status", "--json").out)["store"])
    store.write_bytes(b"this is no database" * 1000)
    result = run("search", "descale")
    assert result.code == 0
    assert result.out.startswith("AGENTS.md:")
    assert "keyword only" in result.out
    assert "outcrop rebuild" in result.out
    result = run("index")
    assert result.code == 1
    assert result.err.startswith("outcrop: ")
    assert "rebuild" in result.err
    assert run("rebuild", "--quiet").code == 0
    assert run("search", "descale").out.startswith("AGENTS.md:")


def test_a_wrong_settings_file_names_itself(run: Run, folder: Path) -> None:
    (folder / "outcrop.toml").write_text("store = '/tmp/x'\n")
    result = run("status")
    assert result.code == 2
    assert "outcrop.toml sets store" in result.err


def test_hostile_names_and_texts_reach_the_terminal_harmless(run: Run, folder: Path) -> None:
    (folder / "evil\x1b[2J\n.md").write_bytes(b"# teapot \x1b]0;owned\x07\n\nteapot \xe2\x80\xae gnp.exe\n")
    run("index")
    found = run("search", "--color", "never", "teapot").out
    assert "evil\\x1b[2J\\x0a.md:" in found
    assert "\x1b" not in found
    assert "\u202e" not in found
    answer = run("search", "--json", "teapot").out
    assert "\x1b" not in answer
    assert "\u202e" not in answer
    assert "\x1b]0;owned" in json.loads(answer)["hits"][0]["text"]


def test_what_no_person_sees_is_shown_to_people_and_models(run: Run, folder: Path) -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey me")
    name = f"zero\u200bwidth{hidden}.md"
    (folder / name).write_text(f"# teapot\u200b{hidden}\n\nteapot \U0001f469\u200d\U0001f4bb \u2060 pouring\n")
    (folder / f"broken{hidden}\x9b31m.json").write_text("{")
    shown = [
        run("index"),
        run("search", "teapot"),
        run("status", "--catalog", "--verbose"),
        run("context", "teapot pouring"),
    ]
    shown += [run("search", "teapot", "-C", f"no{hidden}\u200b"), run("search", f"teapot{hidden}"), run("call", hidden)]
    for result in shown:
        text = result.out + result.err
        assert not {"\u200b", "\u2060", "\x9b", *hidden.replace(" ", "")} & set(text)
        assert chr(0xE0020) not in text
    assert "zero\\u200bwidth\\U000e006f" in shown[1].out
    assert "\U0001f469\u200d\U0001f4bb" in shown[1].out
    found = json.loads(run("search", "teapot", "--json").out)["hits"][0]
    assert (found["path"], hidden in found["text"]) == (name, True)


def test_arguments_that_are_not_utf8(run: Run, folder: Path) -> None:
    (folder / "cafe.md").write_text("# Café\n\nun café noir\n")
    run("index")
    found = outcrop("search", "--mode", "keyword", b"caf\xe9", cwd=folder)
    assert found.returncode == 0
    assert found.stdout.startswith(b"cafe.md:")
    missing = outcrop("status", "-C", b"caf\xe9", cwd=folder)
    assert missing.returncode == 1
    assert b"caf\\xe9" in missing.stderr
    assert b"Traceback" not in missing.stderr


def test_a_terminal_without_utf8_gets_escapes_instead_of_an_error(run: Run, folder: Path) -> None:
    (folder / "cafe.md").write_text("# Café\n\nun café noir\n")
    run("index")
    environ = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    found = outcrop("search", "noir", cwd=folder, env=environ)
    assert found.returncode == 0
    assert b"un caf\\xe9 noir" in found.stdout
    answer = outcrop("search", "--json", "noir", cwd=folder, env=environ)
    assert "un café noir" in json.loads(answer.stdout)["hits"][0]["text"]


def test_a_reader_that_has_seen_enough_is_no_failure(run: Run, folder: Path) -> None:
    run("index")
    script = f"{shlex.quote(sys.executable)} -m outcrop search --json kettle | head -c 1; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "{0\n"
    assert result.stderr == ""


def test_an_output_that_cannot_be_written_is_a_failure_with_a_reason(run: Run, folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "outcrop", "status"]
        result = subprocess.run(command, cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[0] == "outcrop: No space left on device"
    assert "Traceback" not in result.stderr


def test_a_closed_stdout_is_survived(folder: Path) -> None:
    script = f"{shlex.quote(sys.executable)} -m outcrop status >&-"
    result = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")


def test_an_index_that_cannot_be_written_is_named(run: Run) -> None:
    result = run("index", "--store", "README.md/index.sqlite")
    assert result.code == 1
    assert result.err.startswith("outcrop: ")
    assert "README.md/index.sqlite" in result.err
    assert "Traceback" not in result.err


def test_a_bug_is_one_line_and_debug_shows_where(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("nothing to divide")

    monkeypatch.setattr("outcrop.app.index.open", broken)
    result = run("status")
    assert result.code == 1
    assert result.err.splitlines()[0] == "outcrop: unexpected error: ZeroDivisionError: nothing to divide"
    assert "Traceback" not in result.err
    monkeypatch.setenv("OUTCROP_DEBUG", "1")
    assert "Traceback" in run("status").err


def test_an_interrupted_import_of_a_c_extension_is_no_bug(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            raise ImportError("initialization failed") from stop

    def open_index(*_: object, **__: object) -> None:
        try:
            load()
        except ImportError as error:
            raise RuntimeError("no model") from error

    for broken in (load, open_index):
        monkeypatch.setattr("outcrop.app.index.open", broken)
        result = run("status")
        assert (result.code, result.err.strip()) == (130, "outcrop: stopped")


def interrupted(seconds: float) -> tuple[int, str]:
    """Index in a process of its own and press Ctrl-C that many seconds after it started."""
    code = (
        "import sys; from outcrop.surfaces.cli.program import main; print('ready', flush=True)\n"
        "sys.exit(main(['index']))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def test_ctrl_c_at_any_time_leaves_a_healthy_index(run: Run, folder: Path) -> None:
    for number in range(250):
        (folder / f"note{number}.md").write_text("".join(f"# Part {n}\n\nwater {number} {n}\n\n" for n in range(20)))
    codes = []
    for seconds in (0.02, 0.15, 0.3):
        code, err = interrupted(seconds)
        codes.append(code)
        assert (code, "Traceback" in err, "stopped" in err) in ((130, False, True), (0, False, False)), err
        assert run("search", "--mode", "keyword", "descale").out.startswith("AGENTS.md:")
    assert codes[0] == 130
    assert run("index").code == 0
    assert json.loads(run("status", "--json").out)["complete"] == 1.0
    assert "hybrid" in run("search", "descale").out


# On a terminal


def test_a_terminal_gets_colour_and_marked_words(run: Run) -> None:
    run("index")
    code, shown = on_terminal("search", "descale")
    assert code == 0
    assert "\x1b[1;31mdescale\x1b[0m" in shown
    code, shown = on_terminal("search", "--color", "never", "descale")
    assert "\x1b[" not in shown


def test_clear_asks_on_a_terminal(run: Run) -> None:
    run("index")
    code, shown = on_terminal("clear", "--all", typed=b"n\r", when=b"[y/N]")
    assert code == 1
    assert "nothing was changed" in shown
    assert "· current" in run("status").out
    code, shown = on_terminal("clear", "--all", typed=b"\x03", when=b"[y/N]")
    assert code == 130
    assert "stopped" in shown
    code, shown = on_terminal("clear", "--all", typed=b"y\r", when=b"[y/N]")
    assert code == 0
    assert "removed everything" in shown


ELSEWHERE = ("--embedder", "endpoint", "--endpoint-url", "http://192.0.2.1/v1", "--model", "m", "--dim", "3")


def test_text_leaves_the_machine_only_after_a_yes(run: Run) -> None:
    code, shown = on_terminal("index", *ELSEWHERE, typed=b"n\r", when=b"Send?")
    assert code == 1
    assert "would leave this machine" in shown
    assert "to     http://192.0.2.1/v1  (not encrypted)" in shown
    assert "you said no" in shown
    code, shown = on_terminal("index", *ELSEWHERE, typed=b"\x03", when=b"Send?")
    assert code == 130
    assert "what was done is kept" in shown


def test_text_never_leaves_the_machine_when_nobody_can_be_asked(run: Run) -> None:
    result = run("index", *ELSEWHERE)
    assert result.code == 1
    assert "there is no consent" in result.err
    assert "--allow-remote http://192.0.2.1/v1" in result.err
    found = run("search", *ELSEWHERE, "descale")
    assert found.code == 0
    assert found.out.startswith("AGENTS.md:")
    assert "keyword only" in found.out


# The embedder


def test_embedder_status_and_test(run: Run) -> None:
    status = json.loads(run("embedder", "status", "--json").out)
    assert (status["dim"], status["address"], status["leaves"]) == (768, None, False)
    assert "none: text stays in this process" in run("embedder", "status").out
    away = run("embedder", "status", *ELSEWHERE)
    assert away.code == 0
    assert "yes, after asking (or with --allow-remote)" in away.out
    tried = run("embedder", "test")
    assert tried.code == 0
    assert "it matches words, not meaning" in tried.out
    assert json.loads(run("embedder", "test", "--json").out)["understands"] is False


# Completion and start-up


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str, run: Run) -> None:
    result = run("completion", shell)
    assert result.code == 0
    assert f"_OUTCROP_COMPLETE={shell}_complete" in result.out


def complete(words: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    monkeypatch.setenv("_OUTCROP_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    return {line.split(",", 1)[1] for line in run().out.splitlines()}


def test_completion_knows_commands_options_and_values(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete("outcrop ", run, monkeypatch) == set(COMMANDS)
    assert complete("outcrop re", run, monkeypatch) == {"rebuild"}
    assert "--min-score" in complete("outcrop search --m", run, monkeypatch)
    assert complete("outcrop search --kind t", run, monkeypatch) == {"technote", "ticket"}
    assert complete("outcrop search --mode ", run, monkeypatch) == {"hybrid", "semantic", "keyword"}


def test_bash_completes_with_the_script(folder: Path, tmp_path: Path) -> None:
    command = tmp_path / "outcrop"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m outcrop "$@"\n')
    command.chmod(0o700)
    complete = "COMPREPLY=(); _outcrop_completion outcrop; echo ${COMPREPLY[@]}"
    script = (
        f"PATH={shlex.quote(str(tmp_path))}:$PATH; source <(outcrop completion bash); "
        f"COMP_WORDS=(outcrop se); COMP_CWORD=1; {complete}; "
        f"COMP_WORDS=(outcrop search --mo); COMP_CWORD=2; {complete}"
    )
    result = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert (result.stdout, result.stderr) == ("search serve\n--mode --model\n", "")


HEAVY = ("numpy", "rich", "onnxruntime", "tree_sitter", "sqlite3", "markdown_it", "charset_normalizer", "asyncio")


def imported(*arguments: str, cwd: Path) -> set[str]:
    code = (
        "import sys; from outcrop.surfaces.cli.program import main; main(sys.argv[1:]); "
        "print('\\n' + ' '.join(sys.modules), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in result.stderr.splitlines()[-1].split()}


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("search", "--help"), ("completion", "bash")])
def test_help_imports_nothing_heavy(arguments: tuple[str, ...], folder: Path) -> None:
    assert imported(*arguments, cwd=folder).isdisjoint(HEAVY)


def test_search_imports_only_what_it_needs(run: Run, folder: Path) -> None:
    run("index")
    found = imported("search", "descale", cwd=folder)
    assert "numpy" in found
    assert found.isdisjoint({"rich", "tree_sitter", "markdown_it", "charset_normalizer", "asyncio", "onnxruntime"})


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_vectors_that_are_no_numbers_leave_an_answer_that_is_json(run: Run, folder: Path, mode: str) -> None:
    run("index")
    nan = b"\x00\x00\xc0\x7f" * 768
    with closing(sqlite3.connect(folder / ".outcrop" / "index.sqlite")) as database, database:
        database.execute("UPDATE fx_vec_embedding SET v = ? WHERE chunk_id % 2", (nan,))

    def refuse(constant: str) -> object:
        raise AssertionError(constant)

    found = json.loads(run("search", "boils water", "--json", "--mode", mode).out, parse_constant=refuse)
    assert found["hits"]
    assert all(0 <= hit["score"] <= 1 for hit in found["hits"])
