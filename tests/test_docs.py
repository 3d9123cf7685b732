"""The reference of the command line is complete, and no document names a test or module that does not exist."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import click
import pytest

from outcrop.config.settings import NAMES, REPOSITORY_SETTINGS
from outcrop.core.model import Kind
from outcrop.surfaces.cli.options import directory_option, embedder_options
from outcrop.surfaces.cli.program import COMMANDS, program

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md")] + sorted(ROOT.glob("docs/*.md"))
REFERENCE = (ROOT / "docs" / "cli.md").read_text("utf-8")
SHARED = "Options of every command that opens an index"
OPENING = [name for name in COMMANDS if name != "completion"]


def section(heading: str) -> str:
    match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", REFERENCE, re.MULTILINE | re.DOTALL)
    assert match is not None, f"docs/cli.md has no section {heading!r}"
    return match[1]


def documented(text: str) -> set[str]:
    """Options in the first column of the tables of a section."""
    first = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `-")]
    return {option for cell in first for option in re.findall(r"(?<![\w-])--?[a-zA-Z][a-z0-9-]*", cell)}


def options(command: click.Command) -> set[str]:
    return {name for each in command.params if isinstance(each, click.Option) for name in each.opts}


def command_of(name: str) -> click.Command:
    command = program.get_command(click.Context(program), name)
    assert command is not None
    return command


@embedder_options
@directory_option
def _takes_shared_options() -> None: ...


SHARED_OPTIONS = options(click.command()(_takes_shared_options))


def test_the_shared_options_are_documented_and_shared() -> None:
    assert documented(section(SHARED)) == SHARED_OPTIONS
    for name in OPENING:
        assert options(command_of(name)) >= SHARED_OPTIONS, name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_documented_and_the_other_way_round(name: str) -> None:
    own = options(command_of(name)) - (SHARED_OPTIONS if name in OPENING else set())
    assert documented(section(f"outcrop {name}")) == own


def test_the_program_itself_is_documented() -> None:
    assert documented(section("outcrop")) == options(program) | {"-h", "--help"}


def test_every_command_has_one_section_and_a_line_in_the_overview() -> None:
    headings = re.findall(r"^## outcrop (\S+)$", REFERENCE, re.MULTILINE)
    assert headings == list(COMMANDS)
    for name, (_, line) in COMMANDS.items():
        assert f"| [`{name}`](#outcrop-{name}) | {line} |" in section("outcrop")


def test_every_setting_is_documented_with_its_variable() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(OUTCROP_\w+)` \| (yes|no) \|", section("Settings"), re.MULTILINE)
    assert [(name, variable) for name, variable, _ in rows] == [(name, f"OUTCROP_{name.upper()}") for name in NAMES]
    assert {name for name, _, allowed in rows if allowed == "yes"} == REPOSITORY_SETTINGS


def test_the_example_of_a_settings_file_is_one(tmp_path: Path) -> None:
    from outcrop.config.settings import load_settings

    match = re.search(r"```toml\n(.*?)```", section("Settings"), re.DOTALL)
    assert match is not None
    (tmp_path / "outcrop.toml").write_text(match[1], "utf-8")
    settings = load_settings(tmp_path, {}, {"OUTCROP_CONFIG": "/dev/null"})
    assert {name for name in NAMES if settings.origins[name] == "outcrop.toml"} == REPOSITORY_SETTINGS


def test_every_kind_is_named() -> None:
    assert all(f"`{kind}`" in section("outcrop search") for kind in Kind)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_test_and_every_module_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text("utf-8")
    for path in re.findall(r"\b(?:tests|src/outcrop|benchmarks|scripts)/[\w/.-]*\w", text):
        assert (ROOT / path).exists(), path
    tests = sorted(ROOT.glob("tests/**/test_*.py"))
    code = "\n".join(path.read_text("utf-8") for path in tests)
    for name in re.findall(r"\btest_\w+(?:\.py)?", text):
        assert f"def {name}(" in code or name in {path.name for path in tests}, name
    for name in re.findall(r"(?<![\w/.@-])outcrop(?:\.[A-Za-z_]\w*)+", text):
        # A settings file, a client's file, a shell's file.
        if not name.endswith((".toml", ".yaml", ".fish")):
            pkgutil.resolve_name(name)
    for module, names in re.findall(r"^from (outcrop[\w.]*) import ([\w, ]+)$", text, re.MULTILINE):
        for name in names.split(", "):
            pkgutil.resolve_name(f"{module}.{name}")
