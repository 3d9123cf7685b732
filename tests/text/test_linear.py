"""Bytes and names made to be slow do not stop a build."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIMIT = 30

READ = """
from outcrop.sources import secrets
from outcrop.text import decoding, terms, transcripts
n = 128_000
timing = "00:01.000 --> 00:02.000\\n"
"""
INPUTS = {
    "one line that is not UTF-8": "decoding.decode(b'a' * n + b'\\n' + b'\\xe1\\xe2\\xe3\\x81' * 40, 'a.md')",
    "blank lines of settings": "[secrets.secret_by_content('\\n' * n, name) for name in ('.pypirc', '.curlrc')]",
    "captions that nearly repeat": "transcripts.parse('WEBVTT\\n\\n' + (timing + 'a\\n' * 30_000 + 'b\\n\\n') * 2)",
    "one long word": "terms.spans('aB1_' * n, ['a'])",
}


@pytest.mark.parametrize("kind", INPUTS)
def test_nothing_hangs(kind: str) -> None:
    subprocess.run([sys.executable, "-c", f"{READ}\n{INPUTS[kind]}"], timeout=LIMIT, check=True)
