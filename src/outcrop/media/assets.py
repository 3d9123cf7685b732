"""The assets that a source has manifests of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import SplitResult, unquote, urlsplit

from outcrop.app.index import Index
from outcrop.core.model import Artifact, Kind, Manifest, Skipped, SkipReason
from outcrop.errors import ManifestError, UsageError
from outcrop.text import decoding, manifest
from outcrop.text import transcripts as transcript
from outcrop.text.files import read_regular


@dataclass(frozen=True, slots=True)
class Asset:
    """An asset that the source has a manifest of."""

    path: str
    hash: str
    manifest: Manifest
    transcript: str
    seconds: float | None  # How long its transcript goes, where that has times


@dataclass(frozen=True, slots=True)
class Assets:
    """All of them, and the manifests that are left out, each with the reason."""

    assets: Sequence[Asset]
    skipped: Sequence[Skipped]


def list_media(index: Index) -> Assets:
    """Every manifest of an index's source, in path order, whether or not it is indexed yet."""
    listing = index.source.artifacts(index.store.seen() if index.store.exists else {})
    refs = [ref for ref in listing.refs if ref.transcript is not None or ref.kind is Kind.MEDIA]
    assets: list[Asset] = []
    skipped = [item for item in listing.skipped if is_manifest_path(item.path)]
    for outcome in index.source.read(refs):
        if isinstance(outcome, Skipped):
            skipped.append(outcome)
        elif outcome.manifest is not None:
            assets.append(_asset(outcome, outcome.manifest))
    return Assets(assets, sorted(skipped, key=lambda item: item.path))


def find(index: Index, path: str) -> Manifest:
    """The manifest at a path of the source, or of the disk."""
    refs = [
        ref for ref in index.source.artifacts(index.store.seen() if index.store.exists else {}).refs if ref.path == path
    ]
    for outcome in index.source.read(refs):
        if isinstance(outcome, Artifact) and outcome.manifest is not None:
            return outcome.manifest
    for place in (index.source.root / path, Path(path)):
        if place.is_file():
            text = decoding.decode(read_regular(place, 4 * manifest.LARGEST), place.name, by_hand=True)
            one = None if isinstance(text, SkipReason) else manifest.parse_manifest(text)
            if one is None:
                raise ManifestError(f"{path} is not a media manifest", "See docs/media.md for what one holds")
            return one
    raise UsageError(f"there is no manifest at {path}", "See: outcrop media list")


def local_copy(index: Index, one: Manifest) -> Path | None:
    """Where the asset lies on this machine by its URI alone, or None for one that is kept elsewhere."""
    parts = split(one.uri)
    if parts.scheme.lower() == "file":
        return Path(unquote(parts.path)) if parts.netloc in ("", "localhost") else None
    if parts.scheme or parts.netloc:
        return None
    return index.source.root / unquote(parts.path, errors="surrogateescape")


def _asset(artifact: Artifact, one: Manifest) -> Asset:
    cues = transcript.parse(artifact.text)
    where = artifact.ref.transcript.path if artifact.ref.transcript else None
    return Asset(
        path=artifact.ref.path or "",
        hash=artifact.ref.hash,
        manifest=one,
        transcript=where or "",
        seconds=max(cue.end for cue in cues) if cues else None,
    )


def is_manifest_path(path: str) -> bool:
    """Whether a manifest may have this path, by the rule that needs no setting."""
    lower = path.lower()
    return lower.startswith("media/") and lower.endswith(".json")


def split(uri: str) -> SplitResult:
    """The parts of a URI; one that has no right parts is all path, below a scheme that nothing has."""
    try:
        return urlsplit(uri)
    except ValueError:
        return SplitResult("?", "", uri, "", "")


def name_of(uri: str) -> str:
    """The file name that a URI ends in; empty where it ends in none."""
    return PurePosixPath(unquote(split(uri).path, errors="surrogateescape")).name
