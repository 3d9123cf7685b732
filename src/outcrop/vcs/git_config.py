"""What the configuration of a git repository would run, and how none of it does.

Of the settings that name a program, git consults the filters where Outcrop compares a working tree, and those of the
network where it talks to a remote. The others belong to commands that it never calls, or are off in every call.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from outcrop.errors import SourceError
from outcrop.vcs.git import Repository, git_output, start_git

# Filters are handed to git as variables, and the system limits these; no repository has nearly as many.
MAX_FILTERS = 1000
MAX_LETTERS = 1 << 16

_FILTERS_OFF = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))

# Of these a repository may not make its own: programs of fetch and push, and what leads a connection elsewhere.
_NETWORK = re.compile(
    r"core\.(?:sshcommand|gitproxy|askpass|alternaterefscommand)|credential\.(?:.*\.)?helper"
    r"|remote\..*\.(?:uploadpack|receivepack|vcs|proxy)|http\.(?:.*\.)?(?:proxy|curloptresolve)|fetch\.bundleuri",
    re.DOTALL,
)

_PUSHED_INSTEAD = re.compile(r"url\.(.*)\.pushinsteadof", re.DOTALL)

# Transports that git brings along. Any other name in an address is that of a program: ``ext::sh -c …``.
_TRANSPORTS = ("file", "git", "http", "https", "ssh")

# Of each repository: the files that its settings come from as they were, and the variables that follow. To ask git
# takes as long as to list 3,000 files.
_known: dict[Path, tuple[dict[Path, tuple[int, ...]], dict[str, str]]] = {}


@dataclass(frozen=True, slots=True)
class GitSetting:
    """One setting: its key with section and last part in lower case, and who made it (``local``, ``global`` …).

    Attributes:
        file: Where it is written; None where it is in no file.
    """

    scope: str
    file: Path | None
    key: str
    value: str

    def is_of_repository(self) -> bool:
        return self.scope in ("local", "worktree")


def read_settings(repository: Repository) -> Iterator[GitSetting]:
    """Every setting that git obeys in a repository, those of included files among them."""
    process = start_git(repository, "config", "--list", "--includes", "--show-scope", "--show-origin", "-z")
    fields = os.fsdecode(git_output(process, "read its configuration")).split("\0")
    for scope, origin, setting in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        key, _, value = setting.partition("\n")
        kind, _, name = origin.partition(":")
        yield GitSetting(scope, repository.top / name if kind == "file" else None, key, value)


def filters_off(repository: Repository) -> dict[str, str]:
    """Variables for git that switch off every filter (a program that rewrites contents), whoever defined it.

    One of the user's own is off too: the repository chooses what it runs on, and may have settings for it.
    """
    known = _known.get(repository.git_dir)
    if known is not None and known[0] == _stamps(known[0]):
        return known[1]
    stamps = _stamps((repository.common_dir / "config", repository.git_dir / "config.worktree"))
    settings = list(read_settings(repository))
    names = {
        setting.key.removeprefix("filter.").rpartition(".")[0]
        for setting in settings
        if setting.key.startswith("filter.") and setting.key.count(".") > 1
    }
    if len(names) > MAX_FILTERS or sum(map(len, names)) > MAX_LETTERS:
        raise SourceError(
            f"the configuration of the repository at {repository.top} defines {len(names):,} filters",
            f"Outcrop switches off {MAX_FILTERS:,} at most, with {MAX_LETTERS:,} letters in all; remove some",
        )
    variables = override(
        {f"filter.{name}.{variable}": value for name in sorted(names) for variable, value in _FILTERS_OFF}
    )
    _known.pop(repository.git_dir, None)
    # What is included may depend on the branch, and on files that are not there yet.
    if not any(setting.key.startswith(("include.", "includeif.")) for setting in settings):
        # A file of the user's own that begins to exist meanwhile is none of the repository's.
        stamps |= _stamps({setting.file for setting in settings if setting.file is not None} - stamps.keys())
        _known[repository.git_dir] = (stamps, variables)
    return variables


def _stamps(files: Iterable[Path]) -> dict[Path, tuple[int, ...]]:
    """What changes of each file whenever it is written; nothing of one that is not there."""
    found: dict[Path, tuple[int, ...]] = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            found[file] = ()
        else:
            found[file] = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return found


def override(settings: Mapping[str, str]) -> dict[str, str]:
    """Variables with which git takes these settings before any other, beside those that its caller gave it so.

    Unlike with ``-c``, a key may hold ``=``.
    """
    before = os.environ.get("GIT_CONFIG_COUNT", "")
    first = int(before) if before.isdecimal() else 0
    found = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (key, value) in enumerate(settings.items(), first):
        found[f"GIT_CONFIG_KEY_{number}"] = key
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    return found


def network_transports(repository: Repository) -> str:
    """The transports that git may use: its own, and what the user's configuration allows, as GIT_ALLOW_PROTOCOL.

    Raises:
        SourceError: The repository's own configuration names what git would run, or connect to, to reach a remote.
    """
    chosen: dict[str, str] = {}
    for setting in read_settings(repository):
        if not setting.is_of_repository():
            chosen[setting.key] = setting.value.lower()
        elif _NETWORK.fullmatch(setting.key):
            raise SourceError(
                f"the repository's own configuration sets {setting.key}, and with it what git runs or connects to",
                "If that is your setting, make it with git config --global; remove it here: git config --unset-all",
            )
    general = chosen.get("protocol.allow")
    verdicts = dict.fromkeys(_TRANSPORTS, general or "always")
    for key, value in chosen.items():
        if key.startswith("protocol.") and key.endswith(".allow") and key != "protocol.allow":
            verdicts[key.removeprefix("protocol.").removesuffix(".allow")] = value
    return ":".join(name for name, verdict in verdicts.items() if verdict != "never") or "none"


def pushed_instead(repository: Repository, address: str) -> list[str]:
    """What git may push to in place of an address (``url.*.pushInsteadOf``)."""
    found = []
    for setting in read_settings(repository):
        rewrite = _PUSHED_INSTEAD.fullmatch(setting.key)
        if rewrite and address.startswith(setting.value):
            found.append(rewrite[1] + address.removeprefix(setting.value))
    return found
