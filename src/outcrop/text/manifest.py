"""Media manifests: the small checked-in records that stand for assets kept somewhere else. Text in, values out.

``docs/media.md`` describes the format.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from outcrop.core.model import Manifest
from outcrop.errors import IntegrityError, ManifestError

# In the order in which they are written. Others may stand beside them and are not looked at.
FIELDS = ("uri", "sha3", "mime", "bytes", "transcript")

# Characters that a manifest may have. A larger JSON file is something else, and is not even parsed.
LARGEST = 64 << 10

# So many of the five names make a JSON file a manifest, if perhaps a broken one; with fewer it is any JSON file.
CLAIM = 2

_SHA3 = re.compile(r"[0-9a-fA-F]{64}")
_MIME = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(?:\s*;.*)?", re.ASCII)
_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SCRIPT = re.compile(r"(?:javascript|vbscript|data):", re.IGNORECASE)
_ELSEWHERE = re.compile(r"[/\\]|[A-Za-z]:[/\\]|[A-Za-z][A-Za-z0-9+.-]*://")


def read(text: str) -> Manifest | None:
    """The manifest that a JSON file is, or None where it does not claim to be one."""
    if len(text) > LARGEST:
        return None
    try:
        value = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        if sum(f'"{name}"' in text for name in FIELDS) < CLAIM:
            return None
        why = f"{error.msg}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "too large or deep"
        raise ManifestError(f"not JSON: {why}") from error
    if not isinstance(value, dict) or sum(name in value for name in FIELDS) < CLAIM:
        return None
    problems = [problem for name in FIELDS if (problem := _problem(name, value))]
    if problems:
        raise ManifestError("; ".join(problems))
    return Manifest(value["uri"], value["sha3"].lower(), value["mime"], value["bytes"], value["transcript"])


def write(manifest: Manifest) -> str:
    """The manifest as a file: one field a line, in the order of ``FIELDS``."""
    text = json.dumps({name: getattr(manifest, name) for name in FIELDS}, indent=2, ensure_ascii=False) + "\n"
    read(text)
    return text


def places(path: str, transcript: str) -> tuple[str, ...]:
    """Where a manifest's transcript may be, the likelier place first: from the root, then beside the manifest."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), transcript))
    whole = [] if transcript.startswith(("./", "../")) else [posixpath.normpath(transcript)]
    inside = [place for place in (*whole, beside) if place not in (".", "..") and not place.startswith("../")]
    if not inside:
        raise ManifestError(f"transcript leads out of the repository: {transcript}")
    return tuple(dict.fromkeys(inside))


def verify(manifest: Manifest, size: int, sha3: str) -> None:
    """See that an asset is the one that the manifest names."""
    fix = "Do not use it; get it again from its URI, or add it anew if it was replaced on purpose"
    if size != manifest.bytes:
        raise IntegrityError(f"the file has {size:,} bytes, its manifest says {manifest.bytes:,}", fix)
    if sha3.lower() != manifest.sha3:
        raise IntegrityError(f"the file has the SHA3-256 {sha3.lower()}, its manifest says {manifest.sha3}", fix)


def with_time(uri: str, seconds: tuple[float, float] | None) -> str:
    """The URI of a stretch of the asset, as a media fragment (https://www.w3.org/TR/media-frags/)."""
    if seconds is None:
        return uri
    base, _, fragment = uri.partition("#")
    start, end = (f"{value:.3f}".rstrip("0").rstrip(".") for value in seconds)
    kept = [part for part in fragment.split("&") if part and not part.startswith("t=")]
    # An empty stretch is no media fragment; where it begins is one.
    return f"{base}#{'&'.join([*kept, f't={start},{end}' if seconds[0] < seconds[1] else f't={start}'])}"


def _problem(name: str, value: Mapping[str, Any]) -> str | None:
    """What is wrong with a field, or None."""
    if name not in value:
        return f"{name} is missing"
    found = value[name]
    if name == "bytes":
        fine = isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 1 << 63
        return None if fine else "bytes is not a whole number"
    if not isinstance(found, str):
        return f"{name} is not a text"
    if any("\ud800" <= char <= "\udfff" for char in found):
        return f"{name} has half a character"
    return _CHECKS[name](found)


def _problem_of_uri(uri: str) -> str | None:
    if not uri or _BLANK.search(uri):
        return "uri has a space or a control character (write %20 for a space)" if uri else "uri is empty"
    return f"uri is no place for an asset: {uri[:40]}" if _SCRIPT.match(uri) else None


def _problem_of_transcript(path: str) -> str | None:
    if not path or _CONTROL.search(path):
        return "transcript is not a path"
    return f"transcript is not a path inside the repository: {path}" if _ELSEWHERE.match(path) else None


_CHECKS = {
    "uri": _problem_of_uri,
    "sha3": lambda sha3: None if _SHA3.fullmatch(sha3) else "sha3 is not 64 hexadecimal digits",
    "mime": lambda mime: None if _MIME.fullmatch(mime) else "mime is not a media type",
    "transcript": _problem_of_transcript,
}
