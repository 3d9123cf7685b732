"""Answers as a model reads them: short, with all that is needed to read on, within a budget of tokens."""

from __future__ import annotations

from bisect import bisect_left

from outcrop.core.model import Answer, Copy, Hit, Mode
from outcrop.surfaces.mcp.results import IndexStatus, ReadPassage
from outcrop.surfaces.render import corrections, counted, harmless, harmless_line, listed, size
from outcrop.text import tokenizer

# What a short answer may cost: 1,500 tokens for ten hits.
TOKENS_A_HIT = 140
TOKENS_OF_THE_HEAD = 100

# Characters. A preview with fewer says nothing and is left out.
SHORTEST_PREVIEW = 24

# Locations of nearly the same text that are named.
COPIES = 3

# Characters of a path and of a name in a short answer; the structured one has both whole.
LONGEST_PATH = 200
LONGEST_NAME = 80


def answer_text(answer: Answer, full: bool) -> str:
    """A search answer; ``full``: whole passages instead of their best lines."""
    head = _head(answer)
    if not answer.hits:
        return f"{head}\nNothing found. Ask in other words, without filters, or look at index_status."
    if full:
        blocks = [
            "\n".join([_location(at, hit), *_copies(hit), harmless(hit.text.strip("\n"))])
            for at, hit in enumerate(answer.hits, 1)
        ]
        return "\n\n".join([head, *blocks])
    lines = [head]
    left = TOKENS_OF_THE_HEAD - tokenizer.count(head)
    for at, hit in enumerate(answer.hits, 1):
        # What one hit does not use is left for the next.
        left += TOKENS_A_HIT
        lines.append(_fit(_location(at, hit), left))
        left -= tokenizer.count(lines[-1])
        preview = _fit(harmless_line(hit.preview), left)
        if len(preview) >= min(SHORTEST_PREVIEW, len(hit.preview)) and preview:
            left -= tokenizer.count(preview)
            lines.append(f"   {preview}")
        for line in _copies(hit):
            # Half a path is of no use.
            if tokenizer.count(line) <= left:
                left -= tokenizer.count(line)
                lines.append(line)
    return "\n".join(lines)


def _head(answer: Answer) -> str:
    parts = [f"{answer.mode}: {counted(len(answer.hits), 'hit')}", *corrections(answer)]
    if answer.stale:
        parts.append(f"stale: files changed since they were indexed, lines may have moved ({answer.stale.update})")
    if answer.reason:
        parts.append(f"because {answer.reason}" if answer.mode is Mode.KEYWORD else answer.reason)
    return _fit(harmless_line("; ".join(parts)), TOKENS_OF_THE_HEAD)


def _location(at: int, hit: Hit) -> str:
    parts = [f"{at}. {_lines_of(hit)}", str(hit.kind)]
    if hit.project:
        parts.append(f"project {_short(hit.project, LONGEST_NAME)}")
    if hit.name:
        parts.append(_short(hit.name, LONGEST_NAME))
    parts.append(f"{hit.score:.2f}")
    if hit.uri is not None:
        parts.append(_short(hit.uri, LONGEST_PATH))
    return harmless_line(" ".join(parts))


def _lines_of(hit: Hit | Copy) -> str:
    where = hit.path if hit.path is not None else hit.hash
    cell = "" if hit.cell is None else f" cell {hit.cell}"
    return f"{_short(where, LONGEST_PATH)}{cell}:{hit.lines[0]}-{hit.lines[1]}"


def _copies(hit: Hit) -> list[str]:
    if not hit.copies:
        return []
    locations = [
        f"{_lines_of(each)} project {_short(each.project, LONGEST_NAME)}" if each.project else _lines_of(each)
        for each in hit.copies
    ]
    return [harmless_line(f"   nearly the same at {listed(locations, COPIES)}")]


def _short(text: str, length: int) -> str:
    """The beginning and the end, which says more of a path."""
    return text if len(text) <= length else f"{text[: length // 3]}…{text[-(length - length // 3 - 1) :]}"


def _fit(text: str, budget: int) -> str:
    if tokenizer.count(text) <= budget:
        return text
    end = bisect_left(range(len(text) + 1), budget, key=lambda at: tokenizer.count(text[:at])) - 1
    return f"{text[:end].rstrip()}…" if end > 0 else ""


def passage_text(passage: ReadPassage) -> str:
    where = passage.path if passage.path is not None else passage.hash
    cell = "" if passage.cell is None else f" cell {passage.cell}"
    parts = [f"{where}{cell}:{passage.lines[0]}-{passage.lines[1]} of {passage.whole:,}", str(passage.kind)]
    if passage.project:
        parts.append(f"project {passage.project}")
    if passage.state == "changed":
        parts.append("changed since it was indexed, this is how it is now")
    elif passage.state == "stored":
        parts.append("from the index, since its source cannot be read: only what is indexed of it")
    return f"{harmless_line(', '.join(parts))}\n{harmless(passage.text)}"


def status_text(status: IndexStatus) -> str:
    where = f"{status.source} {status.project} at {status.root}"
    if not status.exists:
        until = "another process has made the first one" if status.building else "outcrop index"
        return f"{where}: there is no index yet. Searches read the files, by words alone, until: {until}"
    lines = [
        f"{where}: {'stale' if status.stale else 'current'}, {status.complete:.0%} embedded, {size(status.bytes)}; "
        f"space {status.space}; model {'ready' if status.ready else 'not loaded yet'}"
    ]
    if status.missing:
        advice = "" if status.building else "; to index it: outcrop index"
        lines.append(f"not indexed, or not completely: {', '.join(status.missing)}{advice}")
    if status.building:
        lines.append("it is being built right now")
    if status.stale and not status.missing:
        advice = "" if status.building else f"; to update it: {status.update}"
        lines.append(f"indexed at {status.revision}, now at {status.current}{advice}")
    if status.space != status.embedder:
        until = "that build is done" if status.building else "outcrop index"
        lines.append(f"the embedder that is set is {status.embedder}: searches go by words until {until}")
    if status.words_only:
        lines.append(
            f"found by words only, since the embedder refuses them: {counted(len(status.words_only), 'passage')}"
        )
    for each in status.corpora:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(each.kinds.items()))
        held = f"{counted(each.chunks, 'passage')} of {counted(each.artifacts, 'artifact')}"
        lines.append(f"corpus {each.corpus}: {held} ({kinds})")
    if status.projects:
        lines.append(f"projects beside this one: {', '.join(status.projects)}")
    if status.skipped:
        lines.append(f"left out: {', '.join(f'{count:,} {reason}' for reason, count in status.skipped.items())}")
    return harmless("\n".join(lines))
