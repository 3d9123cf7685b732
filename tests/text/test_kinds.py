"""Which kind a path is."""

from __future__ import annotations

import pytest

from outcrop.core.model import Kind
from outcrop.text.kinds import kind_of


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("README.md", Kind.DOC),
        ("docs/guide.rst", Kind.DOC),
        ("docs/index.html", Kind.DOC),
        ("notes.txt", Kind.DOC),
        ("LICENSE", Kind.DOC),
        ("LICENSE-MIT", Kind.DOC),
        ("doc/git.1", Kind.DOC),
        ("src/app.py", Kind.CODE),
        ("src/readme.py", Kind.CODE),
        ("Makefile", Kind.CODE),
        ("CMakeLists.txt", Kind.CODE),
        ("requirements.txt", Kind.CODE),
        ("pyproject.toml", Kind.CODE),
        (".bashrc", Kind.CODE),
        ("bin/run", Kind.CODE),
        ("data/v1.2", Kind.CODE),
        ("analysis.ipynb", Kind.CODE),
        ("AGENTS.md", Kind.INSTRUCTION),
        ("packages/web/CLAUDE.md", Kind.INSTRUCTION),
        ("prompts/review.txt", Kind.INSTRUCTION),
        ("agent-docs/build/steps.md", Kind.INSTRUCTION),
        (".cursor/rules/style.mdc", Kind.INSTRUCTION),
        (".cursorrules", Kind.INSTRUCTION),
        (".github/copilot-instructions.md", Kind.INSTRUCTION),
        (".github/workflows/ci.yml", Kind.CODE),
        ("src/prompts/loader.py", Kind.CODE),
        ("media/talks/one.json", Kind.MEDIA),
        ("media/talks/one.txt", Kind.DOC),
        ("assets/media/one.json", Kind.CODE),
    ],
)
def test_kind_follows_from_the_path(path: str, kind: Kind) -> None:
    assert kind_of(path) is kind


def test_the_first_override_that_matches_wins() -> None:
    overrides = [("examples/**", Kind.DOC), ("*.tmpl", Kind.CODE), ("/AGENTS.md", Kind.DOC), ("*.md", Kind.WIKI)]
    assert kind_of("examples/app.py", overrides) is Kind.DOC
    assert kind_of("web/page.tmpl", overrides) is Kind.CODE
    assert kind_of("examples/readme.md", overrides) is Kind.DOC
    assert kind_of("AGENTS.md", overrides) is Kind.DOC
    assert kind_of("web/AGENTS.md", overrides) is Kind.WIKI
    assert kind_of("src/examples/app.py", overrides) is Kind.CODE
