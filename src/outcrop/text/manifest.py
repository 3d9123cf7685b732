"""Media manifests: small checked-in files that name assets kept elsewhere. The format is in ``docs/media.md``."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from outcrop.core.model import Manifest
from outcrop.errors import IntegrityError, ManifestError

# In the order of a file. Other fields are allowed and ignored.
FIELDS = ("uri", "sha3", "mime", "bytes", "transcript")

# Most characters of a manifest. A larger JSON file is something else, and is not parsed.
LARGEST = 64 << 10

# Fields that make a JSON file a manifest, perhaps a broken one.
FEWEST_FIELDS = 2

_SHA3 = re.compile(r"[0-9a-fA-F]{64}")
_MIME = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(?:\s*;.*)?", re.ASCII)
_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SCRIPT = re.compile(r"(?:javascript|vbscript|data):", re.IGNORECASE)
_ELSEWHERE = re.compile(r"[/\\]|[A-Za-z]:[/\\]|[A-Za-z][A-Za-z0-9+.-]*://")


def parse_manifest(text: str) -> Manifest | None:
    """The manifest in a file, or None where the file is no manifest.

    Raises:
        ManifestError: The file is a broken manifest.
    """
    if len(text) > LARGEST:
        return None
    try:
        value = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        if sum(f'"{name}"' in text for name in FIELDS) < FEWEST_FIELDS:
            return None
        why = f"{error.msg}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "too large or deep"
        raise ManifestError(f"not JSON: {why}") from error
    if not isinstance(value, dict) or sum(name in value for name in FIELDS) < FEWEST_FIELDS:
        return None
    problems = [problem for name in FIELDS if (problem := _problem(name, value))]
    if problems:
        raise ManifestError("; ".join(problems))
    return Manifest(value["uri"], value["sha3"].lower(), value["mime"], value["bytes"], value["transcript"])


def serialize_manifest(manifest: Manifest) -> str:
    """The text of the file: one field a line, in the order of ``FIELDS``."""
    text = json.dumps({name: getattr(manifest, name) for name in FIELDS}, indent=2, ensure_ascii=False) + "\n"
    parse_manifest(text)
    return text


def transcript_paths(path: str, transcript: str) -> tuple[str, ...]:
    """Where the transcript of the manifest at ``path`` may be: from the root, then from the manifest's folder.

    A transcript that begins with ``./`` or ``../`` is from the manifest's folder only.
    """
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), transcript))
    whole = [] if transcript.startswith(("./", "../")) else [posixpath.normpath(transcript)]
    inside = [place for place in (*whole, beside) if place not in (".", "..") and not place.startswith("../")]
    if not inside:
        raise ManifestError(f"transcript is outside of the repository: {transcript}")
    return tuple(dict.fromkeys(inside))


def check_asset(manifest: Manifest, size: int, sha3: str) -> None:
    """Compare the size (bytes) and the SHA3-256 (hex) of an asset with its manifest.

    Raises:
        IntegrityError: They differ.
    """
    fix = "Do not use it; get it again from its URI, or add it again if it was replaced on purpose"
    if size != manifest.bytes:
        raise IntegrityError(f"the file has {size:,} bytes, its manifest says {manifest.bytes:,}", fix)
    if sha3.lower() != manifest.sha3:
        raise IntegrityError(f"the file has the SHA3-256 {sha3.lower()}, its manifest says {manifest.sha3}", fix)


def with_time(uri: str, seconds: tuple[float, float] | None) -> str:
    """The URI of a stretch of an asset, as a media fragment (https://www.w3.org/TR/media-frags/)."""
    if seconds is None:
        return uri
    base, _, fragment = uri.partition("#")
    start, end = (f"{value:.3f}".rstrip("0").rstrip(".") for value in seconds)
    kept = [part for part in fragment.split("&") if part and not part.startswith("t=")]
    # An empty stretch is no media fragment; where it begins is one.
    return f"{base}#{'&'.join([*kept, f't={start},{end}' if seconds[0] < seconds[1] else f't={start}'])}"


def _problem(name: str, value: Mapping[str, Any]) -> str | None:
    if name not in value:
        return f"{name} is missing"
    found = value[name]
    if name == "bytes":
        fine = isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 1 << 63
        return None if fine else "bytes is not a whole number"
    if not isinstance(found, str):
        return f"{name} is not a string"
    if any("\ud800" <= char <= "\udfff" for char in found):
        return f"{name} has half of a character (a lone surrogate)"
    return _CHECKS[name](found)


def _problem_of_uri(uri: str) -> str | None:
    if not uri or _BLANK.search(uri):
        return "uri has a space or a control character (write %20 for a space)" if uri else "uri is empty"
    return f"uri cannot name an asset: {uri[:40]}" if _SCRIPT.match(uri) else None


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
