"""Notebooks: cell by cell, outputs never, and a clear word about a broken one."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outcrop.chunking.artifact import chunk
from outcrop.chunking.rows import CEILING
from outcrop.core.model import Chunk, Kind, Part
from outcrop.errors import FormatError
from outcrop.text.tokenizer import count


def book(*cells: tuple[str, str | list[str]], **metadata: Any) -> str:
    made = [{"cell_type": kind, "source": source, "metadata": {}, "outputs": []} for kind, source in cells]
    return json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def cut(text: str) -> list[Chunk]:
    return chunk(text, "a.ipynb", Kind.CODE)


def test_each_cell_is_a_chunk_of_its_part() -> None:
    text = book(
        ("markdown", "# Title\n\nWhat this is."),
        ("code", ["%matplotlib inline\n", "import os\n"]),
        ("code", "\n"),
        ("raw", "raw text"),
        ("markdown", "## Fit\n"),
        ("code", "\n\nmodel.fit(x)\n!pip list"),
    )
    chunks = cut(text)
    assert [(c.seq, c.cell, c.part, c.name) for c in chunks] == [
        (0, 0, Part.DOC, "Title"),
        (1, 1, Part.CODE, "Title"),
        (2, 3, Part.RAW, "Title"),
        (3, 4, Part.DOC, "Title > Fit"),
        (4, 5, Part.CODE, "Title > Fit"),
    ]
    assert chunks[1].text == "%matplotlib inline\nimport os"
    assert (chunks[4].text, chunks[4].first_line, chunks[4].last_line) == ("model.fit(x)\n!pip list", 3, 4)
    assert (chunks[4].start, chunks[4].end) == (2, 24)


def test_a_long_code_cell_is_cut_at_definitions_and_a_long_text_at_headings() -> None:
    body = "".join(f"    go({n}, {n} + 1)\n" for n in range(CEILING // 13))
    prose = "Plain words that say something about it. " * (CEILING // 13)
    text = book(
        ("code", f"def one():\n{body}\n\ndef two():\n{body}"),
        ("markdown", f"# A\n\n{prose}\n\n## B\n\n{prose}"),
        ("code", "x = 1"),
    )
    assert [(c.cell, c.name) for c in cut(text)] == [(0, "one"), (0, "two"), (1, "A"), (1, "A > B"), (2, "A > B")]


def test_the_language_is_the_notebooks_unless_a_magic_says_otherwise() -> None:
    body = "".join(f"  go({n}, {n} + 1)\n" for n in range(CEILING // 11))
    r = f"one <- function(a) {{\n{body}}}\n\ntwo <- function(a) {{\n{body}}}\n"
    assert [c.name for c in cut(book(("code", r), kernelspec={"language": "R"}))] == ["one", "two"]
    shell = "%%bash\n" + f"one() {{\n{body}}}\n\ntwo() {{\n{body}}}\n".replace("(", " ").replace(")", " ").replace(
        "  {", "() {"
    )
    assert [c.name for c in cut(book(("code", shell)))][-1] == "two"


def test_the_old_format() -> None:
    cells = [
        {"cell_type": "heading", "level": 1, "source": "Top"},
        {"cell_type": "heading", "level": 2, "source": ["Part"]},
        {"cell_type": "code", "input": ["x = 1\n", "y = 2"], "outputs": [{"text": "never"}]},
        {"cell_type": "markdown", "source": "words"},
    ]
    chunks = cut(json.dumps({"nbformat": 3, "worksheets": [{"cells": cells[:2]}, {"cells": cells[2:]}]}))
    assert [(c.cell, c.part, c.name, c.text) for c in chunks] == [
        (0, Part.DOC, "Top", "Top"),
        (1, Part.DOC, "Top > Part", "Part"),
        (2, Part.CODE, "Top > Part", "x = 1\ny = 2"),
        (3, Part.DOC, "Top > Part", "words"),
    ]


def test_outputs_are_not_read_however_large() -> None:
    cell = {"cell_type": "code", "source": "draw()", "outputs": [{"data": {"image/png": "iVBORw0K" * 2_500_000}}]}
    (only,) = cut(json.dumps({"cells": [cell], "metadata": {}}))
    assert only.text == "draw()"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not valid JSON"),
        ('{"cells": [\n  {"cell_type"', "line 2, column"),
        ("[1]", "a JSON list"),
        ("{}", "no list of 'cells'"),
        ('{"cells": {"a": 1}}', "no list of 'cells'"),
        ('{"cells": [1]}', "cell 1 is a JSON int"),
        ('{"cells": [{"cell_type": "code", "source": ""}, {"cell_type": "code", "source": 7}]}', "cell 2 has a source"),
        ('{"cells": [{"cell_type": "code", "source": ["a", 7]}]}', "cell 1 has a source"),
        ('{"cells": [{"source": "x"}]}', "unknown type None"),
        ('{"cells": [{"cell_type": "magic", "source": "x"}]}', "unknown type 'magic'"),
        ('{"worksheets": [{}]}', "worksheets"),
        ("[" * 200_000, "not usable JSON"),
    ],
)
def test_a_broken_notebook_says_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(FormatError, match=says.replace("[", r"\[")) as caught:
        cut(text)
    assert caught.value.fix


sources = st.lists(
    st.sampled_from(
        ["\n", "# A\n", "## B\n", "x = 1\n", "def f():\n", "    y\n", "%%bash\n", "words. ", "\ud800", "\r"]
    )
    | st.text(max_size=6),
    max_size=150,
).map("".join)


@given(st.lists(st.tuples(st.sampled_from(["code", "markdown", "raw"]), sources), max_size=5))
@settings(max_examples=80)
def test_nothing_of_a_cell_is_lost_nor_doubled(cells: list[tuple[str, str]]) -> None:
    chunks = cut(book(*cells))
    assert [c.seq for c in chunks] == list(range(len(chunks)))
    for number, (kind, written) in enumerate(cells):
        # JSON can spell half a surrogate pair; nothing else can.
        source = written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        mine = [c for c in chunks if c.cell == number]
        assert all(c.part == {"code": "code", "markdown": "doc", "raw": "raw"}[kind] for c in mine)
        assert all(c.text == source[c.start : c.end] and c.text.strip() and count(c.text) <= CEILING for c in mine)
        assert all(a.end <= b.start for a, b in pairwise(mine))
        assert all(c.first_line == source.count("\n", 0, c.start) + 1 for c in mine)
        assert "".join("".join(c.text for c in mine).split()) == "".join(source.split())


def test_a_percent_script_is_cut_by_cell() -> None:
    text = (
        "# header\nimport os\n\n# %% [markdown]\n# # Title\n#\n# Words.\n\n# %% load\nx = load()\n\n"
        "# %% [markdown]\n# ## Fit\n\n# %%\nfit(x)\n"
    )
    chunks = chunk(text, "a.py", Kind.CODE)
    assert [(c.part, c.name, c.first_line, c.last_line, c.cell) for c in chunks] == [
        (Part.CODE, None, 1, 2, None),
        (Part.DOC, "Title", 4, 7, None),
        (Part.CODE, "Title", 9, 10, None),
        (Part.DOC, "Title > Fit", 12, 13, None),
        (Part.CODE, "Title > Fit", 15, 16, None),
    ]
    assert all(c.text == text[c.start : c.end] for c in chunks)
