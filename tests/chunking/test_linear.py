"""Texts made to be slow do not stop a build; ``benchmarks/linear.py`` measures what grows faster than its text."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Seconds. What is linear takes one or two.
LIMIT = 30

CUT = """
from outcrop.chunking.artifact import chunk
from outcrop.core.model import Kind
n = 64_000
lines, blanks, cue = "\\n" * n, " " * n, "WEBVTT\\n\\n00:01.000 --> 00:02.000\\n"
"""
TAGS = "'<!--', '<h1', '<h1>', '<h1>' + '</h2>', '<pre', '<title', '<script>'"
TITLES = "blanks + 'b', '[' * n, 'a' + '_' * n + 'a', '{#' * n, '<' * n"
INPUTS = {
    "heading": f"for title in ({TITLES}): chunk('# a' + title, 'a.md', Kind.DOC)",
    "front matter": "chunk('---\\ntitle: a' + blanks + 'b\\n---\\n# b\\n', 'a.md', Kind.DOC)",
    "html": f"for tag in ({TAGS}): chunk(tag * n, 'a.html', Kind.DOC)",
    "html on one line": "chunk('<h1>a</h1> b ' * 20_000, 'a.html', Kind.DOC)",
    "asciidoc": "chunk('= a' + blanks + 'b', 'a.adoc', Kind.DOC)",
    "mediawiki": "chunk('= a' + blanks + 'b', 'a.mediawiki', Kind.DOC)",
    "wiki": "chunk('```\\n```\\n<h1>a</h1>\\n' * 5_000, 'a', Kind.WIKI)",
    "header": "chunk(lines, 'a.h', Kind.CODE); chunk('class ' + 'a' * n + ';', 'a.h', Kind.CODE)",
    "objective c": "chunk(lines + 'a', 'a.m', Kind.CODE)",
    "dockerfile": "chunk('FROM a' + blanks + 'b', 'Dockerfile', Kind.CODE)",
    "percent script": "chunk('# %%\\n' * 20_000, 'a.py', Kind.CODE)",
    "shebang": "chunk('#!/' + 'a/' * n, 'a', Kind.CODE)",
    "style sheet": "chunk('a,\\n' * 40_000, 'a.scss', Kind.CODE)",
    "transcript": "chunk(cue + '<v' + blanks + 'a\\n', 'a.vtt', Kind.MEDIA)",
    "number in a transcript": "chunk(cue + 'a &#' + '9' * n + '; b', 'a.vtt', Kind.MEDIA)",
}


@pytest.mark.parametrize("kind", INPUTS)
def test_no_text_hangs(kind: str) -> None:
    subprocess.run([sys.executable, "-c", f"{CUT}\n{INPUTS[kind]}"], timeout=LIMIT, check=True)
