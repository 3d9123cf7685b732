"""Which files a source lists and what becomes of their bytes: the same for folders, git and whatever else has files."""

from __future__ import annotations

from outcrop.core.model import Artifact, Kind, Ref, Skipped, SkipReason
from outcrop.sources.ignore import PathFilter, compile_globs
from outcrop.sources.options import Options
from outcrop.sources.paths import to_bytes
from outcrop.sources.secrets import secret_by_content, secret_by_name
from outcrop.text.decoding import decode, refuse_name
from outcrop.text.kinds import kind_of

# Folders that programs fill. Left out by default wherever git does not say that they are part of the project; an
# ``.outcropignore`` with ``!node_modules/`` brings one back.
DEFAULT_FOLDERS = frozenset(
    b"""
    node_modules bower_components jspm_packages __pycache__ __pypackages__ site-packages
    .tox .nox .mypy_cache .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints .eggs .pytype .pyre .venv
    .gradle .terraform .next .nuxt .svelte-kit .parcel-cache .turbo .angular .dart_tool .bundle .sass-cache .ccls-cache
    .cache .direnv .idea .vs
    """.split()
)

# What version control systems and this program keep for themselves. Never part of the material.
INTERNAL = frozenset({b".git", b".hg", b".svn", b".bzr", b".outcrop", b".fslckout", b"_FOSSIL_", b".jj", b".sl"})

IGNORE_FILE = b".outcropignore"


class Selection:
    """Decides about single files.

    Args:
        options: The user's settings.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._secrets_in = PathFilter({b"": compile_globs(options.include_secrets)})

    def limit(self, path: str) -> int:
        """The most bytes that a file at ``path`` may have."""
        return self._options.limit(path)

    def kind(self, path: str) -> Kind:
        """What an artifact at ``path`` is."""
        return kind_of(path, self._options.kinds)

    def refuse_name(self, path: str) -> Skipped | None:
        """Why a file of this path need not be read, or None."""
        secret = secret_by_name(path)
        if secret is not None and not self._may_hold_secrets(path):
            return Skipped(path, SkipReason.SECRET, secret)
        reason = refuse_name(path)
        return None if reason is None else Skipped(path, reason, "by its name")

    def to_artifact(self, ref: Ref, path: str, data: bytes) -> Artifact | Skipped:
        """The document that these bytes are, or why there is none."""
        text = decode(data, path, by_hand=ref.kind is Kind.MEDIA)
        if isinstance(text, SkipReason):
            return Skipped(path, text, hash=ref.hash)
        secret = secret_by_content(text, path)
        if secret is not None and not self._may_hold_secrets(path):
            return Skipped(path, SkipReason.SECRET, secret, ref.hash)
        return Artifact(ref, text)

    def _may_hold_secrets(self, path: str) -> bool:
        return self._secrets_in.ignored_by(to_bytes(path)) is not None
