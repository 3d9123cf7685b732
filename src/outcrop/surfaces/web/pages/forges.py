"""Addresses of a file's lines at a commit on public forges, as each forge's own "permalink" makes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from outcrop.text.filetypes import by_path

# Formats that forges render as a page without lines, unless the address asks for the source.
_RENDERED = frozenset({"markdown", "rst", "asciidoc", "org", "textile", "mediawiki", "pod", "rdoc", "notebook", "html"})

_SCP = re.compile(r"(?:[^@/:]+@)?([^/:]+):(?!//)(.+)")


@dataclass(frozen=True, slots=True)
class Forge:
    """One repository on one forge; ``home`` is its page, without a slash at its end."""

    name: str
    home: str
    # Between home and path, with {commit}.
    form: str
    # Query that shows the source of a rendered format.
    plain: str
    # Fragment, with {first} and {last}.
    lines: str
    # Between home and the id of a commit.
    change: str = "/commit/"

    def commit(self, commit: str) -> str:
        return f"{self.home}{self.change}{commit}"

    def blob(self, commit: str, path: str, lines: tuple[int, int] | None) -> str:
        plain = self.plain if by_path(path) in _RENDERED else ""
        fragment = "" if lines is None else self.lines.format(first=lines[0], last=lines[1])
        return f"{self.home}{self.form.format(commit=commit)}{quote(path)}{plain}{fragment}"


def forge_of(url: str) -> Forge | None:
    """The forge of a remote's address, without user names, passwords and tokens; None for an unknown one."""
    host, path = _split(url)
    path = path.strip("/").removesuffix(".git")
    if not path or "/" not in path or any(part in ("", ".", "..") for part in path.split("/")):
        return None
    home = f"https://{host}/{quote(path, safe='/~')}"
    if host == "github.com":
        return Forge("GitHub", home, "/blob/{commit}/", "?plain=1", "#L{first}-L{last}")
    if host == "gitlab.com" or host.startswith("gitlab."):
        return Forge("GitLab", home, "/-/blob/{commit}/", "?plain=1", "#L{first}-{last}", "/-/commit/")
    if host == "codeberg.org":
        return Forge("Codeberg", home, "/src/commit/{commit}/", "?display=source", "#L{first}-L{last}")
    if host == "git.sr.ht":
        return Forge("sourcehut", home, "/tree/{commit}/item/", "?view-source", "#L{first}-{last}")
    return None


def _split(url: str) -> tuple[str, str]:
    """Host and path of an address or of ``user@host:path``; empty for anything else."""
    if "://" not in url:
        match = _SCP.fullmatch(url)
        return (match[1].lower(), match[2]) if match else ("", "")
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
    except ValueError:
        return "", ""
    known = parts.scheme in ("https", "http", "ssh", "git", "git+ssh")
    return (host, parts.path) if known and re.fullmatch(r"[a-z0-9.-]+", host) else ("", "")
