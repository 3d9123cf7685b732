"""Which files a source lists and reads, and its listing: the same for every source that has files."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence

from outcrop.core.model import Artifact, FileState, Kind, Listing, Ref, Skipped, SkipReason
from outcrop.core.protocols import Source, override
from outcrop.sources import file_state, media
from outcrop.sources.file_state import Digest, Observation
from outcrop.sources.ignore import PathFilter, compile_globs
from outcrop.sources.options import NOTEBOOK_ALLOWANCE, Options
from outcrop.sources.paths import to_bytes, to_text
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

BY_RULE = "by a setting or .outcropignore"


class Selection:
    """Decides about single files by the user's options."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._secrets_in = PathFilter({b"": compile_globs(options.include_secrets)})

    def limit(self, path: str) -> int:
        return self._options.max_bytes * (NOTEBOOK_ALLOWANCE if path.endswith(".ipynb") else 1)

    def kind(self, path: str) -> Kind:
        return kind_of(path, self._options.kinds)

    def refuse_name(self, path: str) -> Skipped | None:
        """Why a file of this path is not read, or None."""
        secret = secret_by_name(path)
        if secret is not None and not self._may_hold_secrets(path):
            return Skipped(path, SkipReason.SECRET, secret)
        reason = refuse_name(path)
        return None if reason is None else Skipped(path, reason, "by its name")

    def to_artifact(self, ref: Ref, path: str, data: bytes) -> Artifact | Skipped:
        text = decode(data, path, by_hand=ref.kind is Kind.MEDIA)
        if isinstance(text, SkipReason):
            return Skipped(path, text, hash=ref.hash)
        secret = secret_by_content(text, path)
        if secret is not None and not self._may_hold_secrets(path):
            return Skipped(path, SkipReason.SECRET, secret, ref.hash)
        return Artifact(ref, text)

    def to_commit(self, ref: Ref, text: str) -> Artifact | Skipped:
        secret = secret_by_content(text, ref.hash)
        return Artifact(ref, text) if secret is None else Skipped(ref.hash, SkipReason.SECRET, secret, ref.hash)

    def read_disk(self, base: bytes, ref: Ref, digest: Digest) -> Artifact | Skipped:
        """Read a file below ``base`` (with a slash at the end), under the hash that it has now."""
        path = ref.path or ""
        content = self.refuse_name(path) or file_state.read_inside(base, path, self.limit(path))
        if isinstance(content, Skipped):
            return content
        address = digest(content.data)
        if address != ref.hash:
            ref = Ref(address, ref.kind, ref.path, address, len(content.data))
        return self.to_artifact(ref, path, content.data)

    def observe(self, name: bytes, path: str, known: FileState | None, digest: Digest, thorough: bool) -> Observation:
        """Look at a file (``name`` on disk, ``path`` in the index) and read it only if its state is not the known one.

        Unless ``thorough``, a file that certainly changed is not read, and has an item of its size and time.
        """
        limit = self.limit(path)
        try:
            status = os.lstat(name)
        except OSError as error:
            gone = file_state.refuse_error(error, path)
            return Observation(None, refusal=None if gone.reason is SkipReason.VANISHED else gone)
        is_known = known is not None and file_state.is_unchanged(known, status)
        if thorough or not is_known:
            # A symbolic link is reported as one, whatever its name; a large file by its name first.
            refusal = file_state.refuse_status(status, path, limit)
            if refusal is None or refusal.reason is SkipReason.OVERSIZE:
                refusal = self.refuse_name(path) or refusal
            if refusal is not None:
                return Observation(None, refusal=refusal)
        if known is not None and is_known:
            return Observation(known.hash, known)
        surrogate = f"?{status.st_size}-{file_state.time_of(status)}"
        if not thorough and (known is None or known.size != status.st_size):
            return Observation(surrogate)
        content = file_state.read_file(name, path, limit)
        if isinstance(content, Skipped):
            return Observation(surrogate if content.reason is SkipReason.UNREADABLE else None, refusal=content)
        state = file_state.state_of(content, digest)
        return Observation(state.hash, state)

    def _may_hold_secrets(self, path: str) -> bool:
        return self._secrets_in.ignored_by(to_bytes(path)) is not None


class Collector:
    """Gathers the files of a listing; ``items`` say what is on disk at a path, for the revision."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._found: list[tuple[str, str, int | None]] = []
        self.skipped: dict[str, Skipped] = {}
        self.states: dict[str, FileState] = {}
        self.items: dict[str, str] = {}

    def skip(self, item: Skipped) -> None:
        self.skipped[item.path] = item

    def add(self, path: str, address: str, size: int | None) -> None:
        self._found.append((path, address, size))

    def observed(self, path: str, found: Observation) -> None:
        if found.item is not None:
            self.items[path] = found.item
        if found.refusal is not None:
            self.skip(found.refusal)
        if found.state is not None:
            self.states[path] = found.state
            self.add(path, found.state.hash, found.state.size)

    def accept(
        self, name: bytes, keep: PathFilter, special: Skipped | None = None, content: Skipped | None = None
    ) -> str | None:
        """The path of a file as text; None after noting why it is left out.

        The ignore rules are asked first, then what the file is (``special``), its name, and its content.
        """
        path = to_text(name)
        ignored = keep.ignored_by(name)
        if ignored is not None:
            reason = "by default, a setting or .outcropignore" if keep.has_defaults else BY_RULE
            refusal: Skipped | None = Skipped(to_text(ignored), SkipReason.EXCLUDED, reason)
        else:
            refusal = special or self._selection.refuse_name(path) or content
        if refusal is None:
            return path
        self.skip(refusal)
        return None

    def listing(self, revision: str, read: media.Read) -> Listing:
        refs = [Ref(address, self._selection.kind(path), path, address, size) for path, address, size in self._found]
        refs, skipped = media.resolve(refs, self.skipped.values(), read)
        return Listing(revision, refs, skipped, self.states)


class FileSource(Source):
    """What every source with files does alike."""

    def __init__(self, options: Options | None) -> None:
        self._options = options or Options()
        self._selection = Selection(self._options)

    @property
    @override
    def worktree(self) -> str:
        return ""

    @property
    @override
    def rules(self) -> str:
        return self._options.rules

    @override
    def worktrees(self) -> frozenset[str]:
        return frozenset({"", self.worktree})

    @override
    def read(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        files = media.read_artifacts([ref for ref in refs if ref.kind is not Kind.COMMIT], self._read_files)
        commits = self._read_commits([ref for ref in refs if ref.kind is Kind.COMMIT])
        return (next(commits if ref.kind is Kind.COMMIT else files) for ref in refs)

    @abstractmethod
    def _read_files(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]: ...

    def _read_commits(self, refs: Sequence[Ref]) -> Iterator[Artifact | Skipped]:
        """Of a source without a history: those that an index has are another source's."""
        return (Skipped(ref.hash, SkipReason.VANISHED) for ref in refs)
