"""Path to kind: which corpus a file belongs to and what a query's ``kind`` finds it by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from outcrop.core.model import Kind
from outcrop.text.filetypes import is_prose
from outcrop.text.globs import compiled

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

# File names, lower case, that tell an agent how to work, wherever they stand.
_INSTRUCTION_NAMES = frozenset(
    {
        "agents.md", "agents.override.md", "agent.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md",
        "skill.md", ".cursorrules", ".windsurfrules", ".clinerules", ".roorules", ".goosehints",
    }
)  # fmt: skip

# Folders at the root whose files are instructions.
_INSTRUCTION_FOLDERS = (
    "prompts/", "agent-docs/", ".cursor/rules/", ".github/instructions/", ".github/prompts/", ".github/chatmodes/",
    ".github/agents/", ".claude/commands/", ".claude/agents/", ".claude/rules/", ".claude/skills/", ".windsurf/rules/",
    ".clinerules/", ".roo/rules/", ".continue/rules/", ".amazonq/rules/", ".kiro/steering/", ".junie/",
    ".codex/prompts/",
)  # fmt: skip

# Endings of a file name that mean the same anywhere.
_INSTRUCTION_SUFFIXES = (".mdc", ".prompt.md", ".instructions.md", ".chatmode.md", ".prompt")


def kind_of(path: str, overrides: Sequence[tuple[str, Kind]] = ()) -> Kind:
    """What sort of material a file is."""
    for glob, kind in overrides:
        if _matches(glob, path):
            return kind
    lower = path.lower()
    name = lower.rpartition("/")[2]
    if (
        name in _INSTRUCTION_NAMES
        or name.endswith(_INSTRUCTION_SUFFIXES)
        or lower.startswith(_INSTRUCTION_FOLDERS)
        or lower == ".github/copilot-instructions.md"
    ):
        return Kind.INSTRUCTION
    if lower.startswith("media/") and name.endswith(".json"):
        return Kind.MEDIA
    return Kind.DOC if is_prose(path) else Kind.CODE


def _matches(glob: str, path: str) -> bool:
    return _compiled(glob).match_file(path)


@lru_cache(maxsize=256)
def _compiled(glob: str) -> GitIgnoreSpec:
    return compiled([glob])
