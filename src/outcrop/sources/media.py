"""Media manifests of a source: which files are some, and the text that each stands for in the place of its own.

Every source lists and reads files in its own way and knows nothing of manifests; its listing and its reading pass
through here at the end. What is not a manifest passes unchanged, and a source without any pays one look at each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from outcrop.core.model import Artifact, Kind, Manifest, Ref, Skipped, SkipReason
from outcrop.errors import ManifestError
from outcrop.sources.paths import to_text
from outcrop.text import filetypes, manifest
from outcrop.text.transcripts import is_silent

# How a source reads files, each for itself: one result per ref, in order.
Read = Callable[[Sequence[Ref]], Iterator[Artifact | Skipped]]

_FOLDER = "media/"


def resolve(refs: Sequence[Ref], skipped: Sequence[Skipped], read: Read) -> tuple[list[Ref], list[Skipped]]:
    """Give manifests their transcripts, and take transcripts out of the documents.

    Args:
        refs: Everything that a source lists, in path order.
        skipped: What it left out.
        read: How it reads.

    Returns:
        Both again, in path order. A JSON file below ``media`` that does not claim to be a manifest counts as code, like
        any other; a broken manifest, or one whose transcript cannot be had, is left out with the reason.
    """
    asked = [ref for ref in refs if _may_be_one(ref)]
    if not asked:
        return list(refs), list(skipped)
    found: dict[str, Manifest] = {}
    verdicts: dict[str, Ref | Skipped] = {}
    for ref, outcome in zip(asked, read(asked), strict=True):
        verdict = _judge(ref, outcome)
        if isinstance(verdict, Manifest):
            found[ref.path or ""] = verdict
        else:
            verdicts[ref.path or ""] = verdict
    files = {ref.path or "": ref for ref in refs if (ref.path or "") not in found}
    left_out = {item.path: item for item in skipped}
    first: dict[str, Ref] = {}
    for ref in asked:
        path = ref.path or ""
        if path in found:
            verdict = _with_transcript(ref, found[path], files, left_out)
            verdicts[path] = verdict
            if isinstance(verdict, Ref):
                first.setdefault(verdict.hash, verdict)
    claimed = {ref.transcript.path for ref in verdicts.values() if isinstance(ref, Ref) and ref.transcript}
    kept: list[Ref] = []
    refused = list(skipped)
    for ref in refs:
        judged = verdicts.get(ref.path or "", ref)
        one = first.get(ref.hash)
        if isinstance(judged, Skipped):
            refused.append(judged)
        elif one is not None and one.version != judged.version:
            # An artifact is known by its hash and has one text.
            detail = f"the same bytes as the manifest {one.path}"
            refused.append(Skipped(ref.path or "", SkipReason.EXCLUDED, detail, ref.hash))
        elif ref.path not in claimed or _stands_alone(ref):
            kept.append(judged)
    return kept, sorted(refused, key=lambda item: item.path)


def assembled(refs: Sequence[Ref], read: Read) -> Iterator[Artifact | Skipped]:
    """Read artifacts; of a manifest, the text of its transcript.

    Args:
        refs: Of a listing that was resolved. A manifest that was not has its transcript looked for.
        read: How the source reads files.
    """
    asked: list[Ref] = []
    for ref in refs:
        asked.append(ref)
        if ref.transcript is not None:
            asked.append(ref.transcript)
    outcomes = read(asked)
    for ref in refs:
        outcome = next(outcomes)
        if ref.transcript is not None:
            yield _assemble(ref, ref.transcript, outcome, next(outcomes))
        elif isinstance(outcome, Artifact) and _may_be_one(ref):
            yield _look_for(ref, outcome, read)
        else:
            yield outcome


def _may_be_one(ref: Ref) -> bool:
    return ref.kind is Kind.MEDIA and ref.path is not None and ref.path.lower().endswith(".json")


def _stands_alone(ref: Ref) -> bool:
    """Whether a file that serves as a transcript is also what it was: instructions, or code of a known language."""
    return ref.kind is not Kind.DOC and (ref.kind is not Kind.CODE or filetypes.by_path(ref.path or "") is not None)


def _judge(ref: Ref, outcome: Artifact | Skipped) -> Manifest | Ref | Skipped:
    """The manifest that a file is; else its ref as what it is, or why it is left out."""
    if isinstance(outcome, Skipped):
        # Reading it will say so again, with the rest.
        return ref
    try:
        one = manifest.parse_manifest(outcome.text)
    except ManifestError as error:
        return _broken(ref, error.what)
    if one is not None:
        return one
    path = ref.path or ""
    return replace(ref, kind=Kind.CODE) if path.lower().startswith(_FOLDER) else _broken(ref, "not a media manifest")


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
        for above in (place, *_above(place)):
            if above in left_out:
                return _refused(ref, place, left_out[above])
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


def _look_for(ref: Ref, outcome: Artifact, read: Read) -> Artifact | Skipped:
    """The same for a ref that is known by its version alone."""
    try:
        one = manifest.parse_manifest(outcome.text)
        places = _places(ref, one) if one else ()
    except ManifestError as error:
        return _broken(ref, error.what)
    hash = ref.version.partition("+")[2]
    for place in places if hash else ():
        transcript = Ref(hash, Kind.MEDIA, place, hash, 0)
        text = next(read([transcript]))
        # No listing let this path through, so nothing but what was indexed is taken from it.
        if isinstance(text, Artifact) and text.ref.hash == hash:
            return _assemble(ref, transcript, outcome, text)
    return outcome if one is None else Skipped(ref.path or "", SkipReason.VANISHED, "its transcript changed")


def _places(ref: Ref, one: Manifest) -> list[str]:
    """Where the transcript may be, as the index writes paths."""
    return [to_text(place.encode()) for place in manifest.transcript_paths(ref.path or "", one.transcript)]


def _above(path: str) -> Iterator[str]:
    """The folders above a path, the nearest first."""
    while path := path.rpartition("/")[0]:
        yield path


def _broken(ref: Ref, why: str) -> Skipped:
    return Skipped(ref.path or "", SkipReason.BROKEN, why, ref.hash)


def _refused(ref: Ref, transcript: str, item: Skipped) -> Skipped:
    """The verdict on a transcript as the verdict on its manifest."""
    why = f"{item.reason}, {item.detail}" if item.detail else item.reason
    return Skipped(ref.path or "", item.reason, f"its transcript {transcript}: {why}", ref.hash)
