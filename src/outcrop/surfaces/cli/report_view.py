"""Builds, dry runs, status and settings as lines for a person."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from outcrop.config.settings import DEFAULT, NAMES, Settings
from outcrop.core.model import Kind, Skipped
from outcrop.core.names import DEFAULT_BUILDERS
from outcrop.core.reports import (
    BuildReport,
    CheckReport,
    CollectionStatus,
    CutByLines,
    Damage,
    Plan,
    Status,
    Watcher,
    WordsOnly,
)
from outcrop.surfaces.cli.terminal import Paint
from outcrop.surfaces.render import columns, counted, duration, harmless_line, size

if TYPE_CHECKING:
    from outcrop.app.catalog import Catalog, Folder, Tally

# Damaged things that are named.
MAX_DAMAGE = 50

HERE = "on this machine"

# Files that even a short report names.
NAMED_FILES = 5
# Passages that a build names without being asked.
WORDS_ONLY = 5


def build_lines(report: BuildReport, *, verbose: bool) -> Iterator[str]:
    artifacts = report.added + report.unchanged
    if not (report.added or report.removed or report.embedded):
        yield (
            f"up to date: {counted(artifacts, 'artifact')}{_commits(report)}, {counted(report.chunks, 'chunk')} "
            f"({duration(report.seconds)})"
        )
    else:
        yield (
            f"indexed {counted(artifacts, 'artifact')}{_commits(report)}: {report.added:,} new or changed, "
            f"{report.unchanged:,} unchanged, {report.removed:,} removed"
        )
        rate = f", {report.embedded / report.seconds:,.0f}/s" if report.embedded and report.seconds > 0 else ""
        yield (
            f"{counted(report.chunks, 'chunk')}: {report.embedded:,} embedded "
            f"({counted(report.characters, 'character')}{rate}), {report.reused:,} reused"
        )
        yield f"took {duration(report.seconds)}"
    if report.cut:
        yield f"longer than the model reads, so only their beginning was embedded: {counted(report.cut, 'passage')}"
    yield from _words_only(report.words_only, verbose=verbose, how="outcrop index --verbose")
    if artifacts == 0:
        yield "nothing here is indexed" + ("" if report.skipped else ": there is no file to index")
    yield from _skip_summary(report.skipped, verbose=verbose, how="outcrop index --verbose")
    yield from _by_lines(report.cut_by_lines, verbose=verbose, how="outcrop index --verbose")


def _words_only(passages: Sequence[WordsOnly], *, verbose: bool, how: str) -> Iterator[str]:
    if not passages:
        return
    shown = passages if verbose else passages[:WORDS_ONLY]
    hint = "" if len(shown) == len(passages) else f" → {how}"
    yield f"found by words only, since the embedder refuses them: {counted(len(passages), 'passage')}{hint}"
    for each in shown:
        yield f"  {harmless_line(each.path)}:{each.lines[0]}-{each.lines[1]}: {harmless_line(each.reason)}"


def _commits(report: BuildReport | Plan) -> str:
    """`` (2,000 commits)``; empty without any."""
    note = f"; {report.history_note}" if report.history_note else ""
    return f" ({counted(report.commits, 'commit')}{note})" if report.commits else ""


def plan_lines(plan: Plan) -> Iterator[str]:
    for ref in plan.artifacts:
        if ref.kind is Kind.COMMIT:
            # Only their number is of interest.
            continue
        yield f"{ref.kind:<11}  {harmless_line(ref.path) if ref.path is not None else ref.hash}"
    if plan.artifacts:
        yield ""
    yield f"{counted(len(plan.artifacts), 'artifact')}{_commits(plan)} to index, {plan.new:,} of them new or changed"
    yield (
        f"{counted(plan.texts, 'passage')} of {counted(plan.characters, 'character')} to embed by {plan.space}, "
        f"{HERE if plan.address is None else f'sent to {harmless_line(plan.address)}'}"
    )
    yield from _skip_summary(plan.skipped, verbose=True, how="")
    yield from _by_lines(plan.cut_by_lines, verbose=True, how="")


def _skip_summary(skipped: Sequence[Skipped], *, verbose: bool, how: str) -> Iterator[str]:
    if not skipped:
        return
    reasons = Counter(item.reason for item in skipped).most_common()
    hint = "" if verbose else f" → {how}"
    yield f"left out {len(skipped):,}: {', '.join(f'{number:,} {reason}' for reason, number in reasons)}{hint}"
    if verbose:
        for item in skipped:
            yield f"  {harmless_line(item.path)}: {_reason(item)}"


def _by_lines(cut: Sequence[CutByLines], *, verbose: bool, how: str) -> Iterator[str]:
    if cut:
        more = "" if verbose or len(cut) <= NAMED_FILES else f" → {how}"
        yield f"cut by lines, without their structure: {counted(len(cut), 'file')}{more}"
    for item in cut if verbose else cut[:NAMED_FILES]:
        yield f"  {harmless_line(item.path)}: {harmless_line(item.reason)}"


def _reason(item: Skipped) -> str:
    return f"{item.reason} ({harmless_line(item.detail)})" if item.detail else item.reason


def skipped_lines(skipped: Sequence[Skipped], heading: str, noun: str, *, reasons: bool = True) -> Iterator[str]:
    """How many were left out or refused, and each with its reason; or (not ``reasons``) with its detail, if any."""
    if skipped:
        yield f"{heading} {counted(len(skipped), noun)}:"
    for item in skipped:
        yield f"  {harmless_line(item.path)}: {_reason(item) if reasons else harmless_line(item.detail or item.reason)}"


def check_lines(report: CheckReport) -> Iterator[str]:
    looked = f"{counted(report.passages, 'passage')}, {counted(report.vectors, 'vector')}"
    if report.blobs:
        looked += f", {counted(report.blobs, 'blob')}"
    if report.damage:
        yield from _damage_lines("damaged", report.damage)
    else:
        yield f"checked {looked}: all is as it was stored ({duration(report.seconds)})"
    if report.pending:
        pending = counted(report.pending, "passage")
        yield f"without a vector (a build was stopped, or it is lost): {pending} → outcrop index"
    if report.repaired:
        yield f"repaired ({duration(report.seconds)}); embedded: {counted(report.embedded, 'passage')}"
    elif report.damage:
        yield "to make again what is damaged → outcrop check --repair"
    if report.lost:
        yield f"removed records, whose text only their caller has: {harmless_line(', '.join(report.lost))}"
    if report.left:
        yield from _damage_lines("still damaged", report.left)
        yield "of another worktree → outcrop index, there; of an imported project → outcrop projects refresh"


def _damage_lines(heading: str, damage: Sequence[Damage]) -> Iterator[str]:
    sorts = ", ".join(f"{sort} × {number:,}" for sort, number in Counter(each.sort for each in damage).most_common())
    yield f"{heading}: {sorts}"
    for each in damage[:MAX_DAMAGE]:
        yield f"  {each.sort:<10}  {harmless_line(': '.join(filter(None, (each.where, each.detail))))}"
    if len(damage) > MAX_DAMAGE:
        yield f"  and {len(damage) - MAX_DAMAGE:,} more"


def status_lines(status: Status, paint: Paint, *, verbose: bool) -> Iterator[str]:
    project = f" · project {harmless_line(status.project)}" if status.project else ""
    yield f"{status.source}  {paint('path', harmless_line(status.root))}{project}"
    yield f"embedder  {status.embedder}, {HERE if status.address is None else f'sends text to {status.address}'}"
    if not status.exists:
        how = "another process is making it" if status.writer else "→ outcrop index"
        yield f"index  none yet; it would be {harmless_line(status.store)} {how}"
        return
    yield f"index  {harmless_line(status.store)} · {size(status.bytes)} · {_freshness(status, paint)}"
    if status.watcher is not None:
        yield watcher_line(status.watcher, paint)
    if status.writer:
        yield paint("warn", "another process is building it")
    yield ""
    rows: list[tuple[str, ...]] = [("collection", "artifacts", "chunks", "embedded", "size", "kinds")]
    for each in status.collections:
        kinds = ", ".join(f"{name} {number:,}" for name, number in each.kinds.items())
        artifacts, chunks, embedded, _, bytes_ = _numbers(each)
        rows.append((each.name, artifacts, chunks, embedded, bytes_, kinds))
    yield from columns(rows, right={1, 2, 3, 4})
    for peer in status.projects:
        missing = "" if peer.embedded == peer.chunks else f", {peer.chunks - peer.embedded:,} of them not embedded"
        yield (
            f"of these, project {peer.name}: {counted(peer.artifacts, 'artifact')}, {counted(peer.chunks, 'chunk')}"
            f"{missing} → outcrop projects"
        )
    for other in status.spaces:
        if other.space != status.space:
            yield (
                f"also {counted(other.vectors, 'vector')} of {other.space}, {size(other.bytes)}"
                f" → outcrop clear --space {other.space}"
            )
    yield from _words_only(status.words_only, verbose=verbose, how="outcrop status --verbose")
    yield from _skip_summary(status.skipped, verbose=verbose, how="outcrop status --verbose")
    yield from _by_lines(status.cut_by_lines, verbose=verbose, how="outcrop status --verbose")


def catalog_lines(catalog: Catalog, paint: Paint, *, verbose: bool) -> Iterator[str]:
    if not catalog.exists:
        yield "index  none yet → outcrop index"
        return
    head = ("artifacts", "chunks", "embedded", "characters", "size")
    rows: list[tuple[str, ...]] = [("corpus", *head, "")]
    for each in catalog.corpora:
        rows.append((each.tally.name, *_numbers(each.tally), "stale" if each.stale else "current"))
    for noun, tallies in (("kind", catalog.kinds), ("project", catalog.projects)):
        rows += [("",) * 7, (noun, *head, "")]
        own = f"{catalog.project} (this one)" if noun == "project" else ""
        rows += [(harmless_line(tally.name or own), *_numbers(tally), "") for tally in tallies]
    rows += [("",) * 7, ("total", *_numbers(catalog.total), "")]
    for tree in catalog.folders:
        rows += [("",) * 7, ("folder", "artifacts", "chunks", "", "characters", "size", "")]
        rows += _folder_rows(tree, 0)
    yield from columns(rows, right={1, 2, 3, 4, 5})
    skipped = [item for omission in catalog.omissions for item in omission.files]
    yield from _skip_summary(skipped, verbose=verbose, how="outcrop status --catalog --verbose")


def _numbers(tally: Tally | CollectionStatus) -> tuple[str, ...]:
    embedded = f"{tally.embedded * 100 // tally.chunks} %" if tally.chunks else "–"
    return f"{tally.artifacts:,}", f"{tally.chunks:,}", embedded, f"{tally.characters:,}", size(tally.bytes)


def _folder_rows(folder: Folder, level: int) -> Iterator[tuple[str, ...]]:
    name = f"{'  ' * level}{harmless_line(folder.name)}/" if level else harmless_line(folder.name or ".")
    yield name, f"{folder.artifacts:,}", f"{folder.chunks:,}", "", f"{folder.characters:,}", size(folder.bytes), ""
    for child in folder.children:
        yield from _folder_rows(child, level + 1)


def watcher_line(watcher: Watcher, paint: Paint) -> str:
    who = f"watched by process {watcher.process} ({watcher.how})"
    if watcher.state == "waiting":
        again = time.strftime("%H:%M:%S", time.localtime(watcher.retry)) if watcher.retry else "in a moment"
        reason = harmless_line(watcher.reason or "something failed")
        return paint("warn", f"{who}, which waits: {reason.rstrip('.')}. It tries again at {again}.")
    if watcher.reason is not None:
        who += f": {harmless_line(watcher.reason)}"
    return who if watcher.state == "watching" else f"{who}, which is updating it"


def _freshness(status: Status, paint: Paint) -> str:
    problem = ""
    if 0 < status.complete < 1:
        problem = f"{int(status.complete * 100)} % complete"
    elif status.missing:
        problem = f"{' and '.join(status.missing)} {'is' if len(status.missing) == 1 else 'are'} not indexed"
    elif status.revision is None or status.complete < 1:
        problem = "not complete"
    elif status.stale:
        custom = f" since {', '.join(status.behind)}" if not set(status.behind) <= set(DEFAULT_BUILDERS) else ""
        problem = f"stale: the source has changed{custom}"
    elif status.space is not None and status.space != status.embedder:
        problem = f"made by {status.space}"
    # While another process builds, a second build would only fail.
    advice = "" if status.writer else f" → {status.update}"
    return paint("warn", f"{problem}{advice}") if problem else paint("good", "current")


def settings_lines(settings: Settings, paint: Paint) -> Iterator[str]:
    rows = [(name, _value(getattr(settings, name)), settings.origins.get(name, DEFAULT)) for name in NAMES]
    for line, (_, _, origin) in zip(columns(rows), rows, strict=True):
        yield paint("dim", line) if origin == DEFAULT else line


def _value(value: object) -> str:
    if value is None or value == ():
        return "–"
    if isinstance(value, tuple):
        pairs = [each if isinstance(each, tuple) else (each,) for each in value]
        # The second of a pair may be a list of patterns.
        texts = [[" ".join(part) if isinstance(part, tuple) else str(part) for part in pair] for pair in pairs]
        return harmless_line(", ".join("=".join(each) for each in texts))
    return harmless_line(str(value))
