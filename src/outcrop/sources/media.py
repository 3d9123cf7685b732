"""Media manifests of a source: which files are manifests, and the transcript that each of them stands for.

Sources list and read files without knowing of manifests; their listings and their reading pass through here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from outcrop.core.model import Artifact, Kind, Manifest, Ref, Skipped, SkipReason
from outcrop.errors import ManifestError
from outcrop.sources.paths import to_text
from outcrop.text import filetypes, manifest
from outcrop.text.transcripts import is_silent

# How a source reads files, each for itself: one result per ref, in order.
Read = Callable[[Sequence[Ref]], Iterator[Artifact | Skipped]]

_FOLDER = "media/"


def resolve(refs: Iterable[Ref], skipped: Iterable[Skipped], read: Read) -> tuple[list[Ref], list[Skipped]]:
    """Give manifests their transcripts, and take transcripts out of the documents; both lists in path order.

    A JSON file below ``media`` that does not claim to be a manifest counts as code, like any other; a broken manifest,
    or one without a readable transcript, is left out with the reason.
    """
    refs = sorted(refs, key=lambda ref: ref.path or "")
    refused = sorted(skipped, key=lambda item: item.path)
    candidates = [ref for ref in refs if _may_be_manifest(ref)]
    if not candidates:
        return refs, refused
    found = {ref.path or "": _judge(ref, outcome) for ref, outcome in zip(candidates, read(candidates), strict=True)}
    files = {ref.path or "": ref for ref in refs if not isinstance(found.get(ref.path or ""), Manifest)}
    left_out = {item.path: item for item in refused}
    verdicts = {
        ref.path: _with_transcript(ref, one, files, left_out) if isinstance(one, Manifest) else one
        for ref, one in zip(candidates, found.values(), strict=True)
    }
    joined = [ref for ref in verdicts.values() if isinstance(ref, Ref) and ref.transcript]
    first = {ref.hash: ref for ref in reversed(joined)}
    claimed = {ref.transcript.path for ref in joined if ref.transcript}
    kept: list[Ref] = []
    for ref in refs:
        resolved = verdicts.get(ref.path, ref)
        one = first.get(ref.hash)
        if isinstance(resolved, Skipped):
            refused.append(resolved)
        elif one is not None and one.version != resolved.version:
            # An artifact is known by its hash and has one text.
            detail = f"the same bytes as the manifest {one.path}"
            refused.append(Skipped(ref.path or "", SkipReason.EXCLUDED, detail, ref.hash))
        elif ref.path not in claimed or _is_also_material(ref):
            kept.append(resolved)
    return kept, sorted(refused, key=lambda item: item.path)


def read_artifacts(refs: Sequence[Ref], read: Read) -> Iterator[Artifact | Skipped]:
    """Read artifacts; of a manifest, the text of its transcript, also where its ref does not name the transcript."""
    outcomes = read([each for ref in refs for each in (ref, ref.transcript) if each is not None])
    for ref in refs:
        outcome = next(outcomes)
        if ref.transcript is not None:
            yield _assemble(ref, ref.transcript, outcome, next(outcomes))
        elif isinstance(outcome, Artifact) and _may_be_manifest(ref):
            yield _find_transcript(ref, outcome, read)
        else:
            yield outcome


def _may_be_manifest(ref: Ref) -> bool:
    return ref.kind is Kind.MEDIA and ref.path is not None and ref.path.lower().endswith(".json")


def _is_also_material(ref: Ref) -> bool:
    """Whether a file that serves as a transcript is also instructions, or code of a known language."""
    return ref.kind is not Kind.DOC and (ref.kind is not Kind.CODE or filetypes.by_path(ref.path or "") is not None)


def _judge(ref: Ref, outcome: Artifact | Skipped) -> Manifest | Ref | Skipped:
    """The manifest that a file is; else its ref as what it is, or why it is left out."""
    if isinstance(outcome, Skipped):
        # The build reads it again, and reports it with the rest.
        return ref
    try:
        one = manifest.parse_manifest(outcome.text)
    except ManifestError as error:
        return _broken(ref, error.what)
    if one is not None:
        return one
    is_code = (ref.path or "").lower().startswith(_FOLDER)
    return replace(ref, kind=Kind.CODE) if is_code else _broken(ref, "not a media manifest")


def _with_transcript(
    ref: Ref, one: Manifest, files: Mapping[str, Ref], left_out: Mapping[str, Skipped]
) -> Ref | Skipped:
    try:
        places = _places(ref, one)
    except ManifestError as error:
        return _broken(ref, error.what)
    for place in places:
        if place in files:
            return _joined(ref, files[place])
    for place in places:
        # The file itself, or the nearest folder above it.
        for path in reversed([*accumulate(place.split("/"), "{}/{}".format)]):
            if path in left_out:
                return _refused(ref, place, left_out[path])
    return _broken(ref, f"its transcript is not there: {one.transcript}")


def _joined(ref: Ref, transcript: Ref) -> Ref:
    """A manifest's ref with its transcript, which is read as leniently as any text of media."""
    whole = replace(transcript, kind=Kind.MEDIA)
    return replace(ref, version=f"{ref.hash}+{transcript.hash}", transcript=whole)


def _assemble(ref: Ref, transcript: Ref, outcome: Artifact | Skipped, text: Artifact | Skipped) -> Artifact | Skipped:
    if isinstance(outcome, Skipped):
        return outcome
    try:
        one = manifest.parse_manifest(outcome.text)
        if one is None or transcript.path not in _places(ref, one):
            raise ManifestError("it names another transcript")
    except ManifestError:
        # It was right when it was listed. The next build looks again.
        return Skipped(ref.path or "", SkipReason.VANISHED, "it changed meanwhile")
    if isinstance(text, Skipped):
        return _refused(ref, transcript.path or "", text)
    if is_silent(text.text):
        return _broken(ref, f"its transcript is empty: {transcript.path}")
    return Artifact(_joined(outcome.ref, text.ref), text.text, one)


def _find_transcript(ref: Ref, outcome: Artifact, read: Read) -> Artifact | Skipped:
    """The same for a ref that is known by its version alone."""
    try:
        one = manifest.parse_manifest(outcome.text)
        places: Collection[str] = _places(ref, one) if one else ()
    except ManifestError as error:
        return _broken(ref, error.what)
    address = ref.version.partition("+")[2]
    for place in places if address else ():
        transcript = Ref(address, Kind.MEDIA, place, address, 0)
        text = next(read([transcript]))
        # No listing let this path through, so nothing is taken from it but what was indexed.
        if isinstance(text, Artifact) and text.ref.hash == address:
            return _assemble(ref, transcript, outcome, text)
    return outcome if one is None else Skipped(ref.path or "", SkipReason.VANISHED, "its transcript changed")


def _places(ref: Ref, one: Manifest) -> list[str]:
    """Where the transcript may be, as the index writes paths."""
    return [to_text(place.encode()) for place in manifest.transcript_paths(ref.path or "", one.transcript)]


def _broken(ref: Ref, why: str) -> Skipped:
    return Skipped(ref.path or "", SkipReason.BROKEN, why, ref.hash)


def _refused(ref: Ref, transcript: str, item: Skipped) -> Skipped:
    """The verdict on a transcript as the verdict on its manifest."""
    why = f"{item.reason}, {item.detail}" if item.detail else item.reason
    return Skipped(ref.path or "", item.reason, f"its transcript {transcript}: {why}", ref.hash)
