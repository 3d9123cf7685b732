"""The text of a commit, and what is read back from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.sources.paths import to_text
from outcrop.text.commits import LONGEST_MESSAGE, MOST_FILES, commit_text, heading, subject, touched_files

FILES = ["src/a.py", "docs/größe.md"]


def test_the_message_comes_first_then_author_and_date_then_the_files() -> None:
    text = commit_text("Fix the valve\n\nIt leaked.\n", "Ada Lovelace", "2024-05-06", FILES, 2)
    assert text == "Fix the valve\n\nIt leaked.\n\nAda Lovelace, 2024-05-06\nsrc/a.py\ndocs/größe.md"
    assert touched_files(text) == ("src/a.py", "docs/größe.md")
    assert (subject(text), heading(text)) == ("Fix the valve", "Fix the valve · 2024-05-06")


@pytest.mark.parametrize("message", ["", "\n\n", " \t\n", "\0\x1b"])
def test_without_a_message_it_says_so(message: str) -> None:
    text = commit_text(message, "", "2024-05-06", [], 0)
    assert text == "(no message)\n\nunknown, 2024-05-06"
    assert touched_files(text) == ()


def test_no_e_mail_address_of_a_person_is_in_it() -> None:
    message = "Fix it\n\nSigned-off-by: Bob B <bob@example.org>\nCo-authored-by: Eve <eve+x@mail.example.org>\n"
    text = commit_text(message, "ada@example.org", "2024-05-06", [], 0)
    assert text == "Fix it\n\nSigned-off-by: Bob B\nCo-authored-by: Eve\n\nada, 2024-05-06"


def test_a_long_message_is_cut_and_its_files_stay() -> None:
    text = commit_text("word " * 10_000, "Ada", "2024-05-06", FILES, 2)
    assert len(text) < LONGEST_MESSAGE + 100
    assert "…" in text
    assert touched_files(text) == tuple(FILES)


def test_a_commit_with_many_files_names_the_first_and_gives_no_evidence() -> None:
    files = [f"{number}.py" for number in range(MOST_FILES + 12)]
    text = commit_text("Move everything", "Ada", "2024-05-06", files, len(files))
    assert text.endswith("\n29.py\nand 12 more")
    assert touched_files(text) == ()
    assert len(touched_files(commit_text("Move some", "Ada", "2024-05-06", files, MOST_FILES))) == MOST_FILES


@pytest.mark.parametrize(
    ("author", "is_bot"),
    [
        ("dependabot[bot]", True),
        ("dependabot-preview[bot]", True),
        ("renovate-bot", True),
        ("Renovate Bot", True),
        ("pre-commit-ci[bot]", True),
        ("github-actions", True),
        ("GitHub Actions", True),
        ("Weblate (bot)", True),
        ("Abbot, Jane", False),
        ("Jane Abbot", False),
        ("Robot Person", False),
        ("Ada", False),
    ],
)
def test_the_commits_of_bots_give_no_evidence(author: str, is_bot: bool) -> None:
    assert touched_files(commit_text("Bump it", author, "2024-05-06", FILES, 2)) == (() if is_bot else tuple(FILES))


@given(
    message=st.text(),
    author=st.sampled_from(["Ada", "", "a, b", "\n"]),
    names=st.lists(st.binary(min_size=1).filter(lambda name: b"\0" not in name), max_size=MOST_FILES),
)
def test_what_was_touched_comes_back_whatever_the_message_and_the_names_are(
    message: str, author: str, names: list[bytes]
) -> None:
    files = [to_text(name) for name in names]
    text = commit_text(message, author, "2024-05-06", files, len(files))
    assert touched_files(text) == tuple(files)
    assert heading(text).endswith(" · 2024-05-06")
