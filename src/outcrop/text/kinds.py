"""The kind of a file by its path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from outcrop.core.model import Kind
from outcrop.text.filetypes import is_prose
from outcrop.text.globs import compile_patterns

# Names, lower case, of files with instructions for agents, in any folder.
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

# Endings of file names of instructions, in any folder.
_INSTRUCTION_SUFFIXES = (".mdc", ".prompt.md", ".instructions.md", ".chatmode.md", ".prompt")


def kind_of(path: str, overrides: Sequence[tuple[str, Kind]] = ()) -> Kind:
    """The kind of a path (from the root, with ``/``); the first glob of ``overrides`` that matches wins."""
    for glob, kind in overrides:
        if _compiled(glob)(path):
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


@lru_cache(maxsize=256)
def _compiled(glob: str) -> Callable[[str], bool]:
    return compile_patterns([glob])
