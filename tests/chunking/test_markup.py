"""Where prose is cut, and the heading trails."""

from __future__ import annotations

import pytest

from outcrop.chunking.artifact import chunk
from outcrop.chunking.rows import CEILING
from outcrop.core.model import Chunk, Kind

PARAGRAPH = "This sentence says something about the matter at hand, and says it in plain words. " * (CEILING // 64)


def cut(text: str, path: str | None = "a.md", kind: Kind = Kind.DOC) -> list[Chunk]:
    return chunk(text, path, kind)


def names(text: str, path: str | None = "a.md", kind: Kind = Kind.DOC) -> list[str | None]:
    return [one.name for one in cut(text, path, kind)]


FORMATS = {
    "a.md": "# One\n\n{p}\n\n## Two\n\n{p}\n\nThree\n-----\n\n{p}\n\n# Four\n\n{p}\n",
    "a.rst": "###\nOne\n###\n\n{p}\n\nTwo\n===\n\n{p}\n\nThree\n=====\n\n{p}\n\n####\nFour\n####\n\n{p}\n",
    "a.txt": "One\n===\n\n{p}\n\nTwo\n---\n\n{p}\n\nThree\n-----\n\n{p}\n\nFour\n====\n\n{p}\n",
    "a.adoc": "= One\n\n{p}\n\n== Two\n\n{p}\n\n== Three\n\n{p}\n\n= Four\n\n{p}\n",
    "a.html": "<h1>One</h1>\n<p>{p}\n<h2 id=x>Two</h2>\n<p>{p}\n<p>x</p><h2>Three</h2><p>{p}\n"
    "<h1>\nFour\n</h1>\n<p>{p}\n",
    "a.org": "* One\n{p}\n** Two\n{p}\n** Three\n{p}\n* Four\n{p}\n",
    "a.tex": "\\section{{One}}\n{p}\n\\subsection{{Two}}\n{p}\n\\subsection*{{Three}}\n{p}\n"
    "\\section[x]{{Four}}\n{p}\n",
    "a.typ": "= One\n{p}\n== Two\n{p}\n== Three\n{p}\n= Four\n{p}\n",
    "a.wiki": "= One =\n{p}\n== Two ==\n{p}\n==Three==\n{p}\n= Four =\n{p}\n",
    "a.textile": "h1. One\n\n{p}\n\nh2. Two\n\n{p}\n\nh2(x). Three\n\n{p}\n\nh1. Four\n\n{p}\n",
    "a.pod": "=head1 One\n\n{p}\n\n=head2 Two\n\n{p}\n\n=head2 Three\n\n{p}\n\n=head1 Four\n\n{p}\n",
    "a.rdoc": "= One\n\n{p}\n\n== Two\n\n{p}\n\n== Three\n\n{p}\n\n= Four\n\n{p}\n",
    "a.texi": "@chapter One\n{p}\n@section Two\n{p}\n@section Three\n{p}\n@chapter Four\n{p}\n",
    "page.1": '.SH One\n{p}\n.SS "Two"\n{p}\n.SS Three\n{p}\n.SH Four\n{p}\n',
}


@pytest.mark.parametrize("path", FORMATS)
def test_a_section_is_a_chunk_named_by_its_trail(path: str) -> None:
    assert names(FORMATS[path].format(p=PARAGRAPH), path) == ["One", "One > Two", "One > Three", "Four"]


def test_a_wiki_page_may_be_markdown_or_html() -> None:
    text = f"# One\n\n{PARAGRAPH}\n\n<h2>Two</h2>\n\n{PARAGRAPH}\n"
    assert names(text, "Some Page", Kind.WIKI) == ["One", "One > Two"]
    assert names(text, None, Kind.TECHNOTE) == ["One", "One > Two"]


@pytest.mark.parametrize(
    "hidden",
    [
        "```sh\n# not a heading\n```",
        "~~~\nNot a heading\n===\n~~~",
        "    # not a heading",
        "> # not of this level",
        "- item\n\n  # not of this level",
        "<div>\n# not a heading\n</div>",
        "<!--\n# not a heading\n-->",
    ],
)
def test_what_only_looks_like_a_markdown_heading(hidden: str) -> None:
    assert names(f"# One\n\n{PARAGRAPH}\n\n{hidden}\n\n{PARAGRAPH}\n") == ["One"]


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("a.html", "<pre>\n<h2>no</h2>\n</pre>"),
        ("a.html", "<!-- <h2>no</h2> -->"),
        ("a.html", "<script>x = '<h2>no</h2>'</script>"),
        ("a.adoc", "----\n== no\n----"),
        ("a.rst", "::\n\n  No\n  ==\n"),
        ("a.rst", "=====  =====\nA      B\n=====  =====\n1      2\n=====  =====\n"),
        ("a.rst", "Text before.\n\n----------\n\nText after."),
        ("a.org", "#+begin_src\n* no\n#+end_src"),
        ("a.tex", "\\begin{verbatim}\n\\section{no}\n\\end{verbatim}"),
    ],
)
def test_what_only_looks_like_a_heading_elsewhere(path: str, hidden: str) -> None:
    start = {"a.html": "<h1>One</h1>\n", "a.adoc": "= One\n\n", "a.org": "* One\n", "a.tex": "\\section{One}\n"}
    text = f"{start.get(path, chr(10).join(['One', '===', '', '']))}{PARAGRAPH}\n\n{hidden}\n\n{PARAGRAPH}\n"
    assert names(text, path) == ["One"]


def test_headings_are_read_without_their_markup() -> None:
    text = f"# The `run` *method* of [Flask](https://x.y) <a id='z'></a> {{#anchor}}\n\n{PARAGRAPH}\n"
    assert names(text) == ["The run method of Flask"]
    assert names(f"# snake_case and R&amp;D ##\n\n{PARAGRAPH}\n") == ["snake_case and R&D"]


def test_a_bare_heading_goes_with_the_section_below() -> None:
    text = f"# Title\n\n## Part\n\n### Detail\n\n{PARAGRAPH}\n"
    (only,) = cut(text)
    assert only.name == "Title > Part > Detail"
    assert only.text.startswith("# Title\n\n## Part")


def test_a_section_of_one_line_goes_with_its_parent() -> None:
    text = f"# Title\n\n{PARAGRAPH}\n\n## Licence\n\nMIT.\n\n## Use\n\n{PARAGRAPH}\n"
    assert [(c.name, c.first_line) for c in cut(text)] == [("Title", 1), ("Title > Use", 9)]


def test_short_sections_of_one_parent_are_read_together() -> None:
    text = f"# Title\n\n{PARAGRAPH * 2}\n\n" + "".join(f"## Option {n}\n\nDoes thing {n}.\n\n" for n in range(6))
    first, rest = cut(text)
    assert first.name == "Title"
    assert rest.name == "Title"
    assert rest.text.startswith("## Option 0")
    assert rest.text.endswith("Does thing 5.")


def test_a_long_section_is_cut_between_paragraphs_and_keeps_its_name() -> None:
    text = "# Title\n\n" + "\n\n".join(f"{n}. {PARAGRAPH}" for n in range(12))
    chunks = cut(text)
    assert len(chunks) > 3
    assert {c.name for c in chunks} == {"Title"}
    assert all(c.text[0].isdigit() for c in chunks[1:])


def test_a_long_paragraph_is_cut_after_a_sentence() -> None:
    chunks = cut(PARAGRAPH * 20)
    assert len(chunks) > 4
    assert all(c.text.endswith("words.") and c.text.startswith("This") for c in chunks)
    assert {c.first_line for c in chunks} == {1}


def test_a_fence_that_fits_is_not_cut() -> None:
    fence = "```python\n" + "\n\n".join(f"call({n}, 'argument number {n}')" for n in range(CEILING // 19)) + "\n```"
    text = f"# Title\n\n{PARAGRAPH}\n{PARAGRAPH}\n\n{fence}\n\n{PARAGRAPH}\n{PARAGRAPH}\n{PARAGRAPH}\n"
    assert sum(fence in c.text for c in cut(text)) == 1


def test_a_fence_over_the_ceiling_is_cut_all_the_same() -> None:
    text = "```\n" + "\n".join(f"call({n}, 'argument number {n}')" for n in range(200)) + "\n```\n"
    assert len(cut(text)) > 5


def test_front_matter_is_kept_and_gives_the_title() -> None:
    matter = '---\ntitle: "The Guide"\ntags: [a]\n# a comment, no heading\n---\n'
    assert names(f"{matter}\n{PARAGRAPH}\n\n## Part\n\n{PARAGRAPH}\n") == ["The Guide", "The Guide > Part"]
    assert names(f"{matter}\n# Own\n\n{PARAGRAPH}\n")[-1] == "Own"
    assert "tags: [a]" in cut(f"{matter}\n{PARAGRAPH}\n")[0].text


def test_html_without_headings_is_named_by_its_title() -> None:
    assert names(f"<title>Page</title>\n<p>{PARAGRAPH}</p>\n", "a.html") == ["Page"]


def test_a_page_on_one_line_is_cut_at_its_headings() -> None:
    text = f"<h1>One</h1><p>{PARAGRAPH}</p><h2>Two</h2><p>{PARAGRAPH}</p>"
    one, two = cut(text, "a.html")
    assert (one.name, two.name) == ("One", "One > Two")
    assert two.text.startswith("<h2>Two</h2>")


def test_a_lone_carriage_return_moves_no_line() -> None:
    text = f"a\rb\r\rc {PARAGRAPH}\n\n# One\n\n{PARAGRAPH}\n"
    assert [(c.name, c.first_line) for c in cut(text)] == [(None, 1), ("One", 3)]


def test_a_long_post_is_cut_between_paragraphs() -> None:
    chunks = cut(f"{PARAGRAPH}\n\n" * 8 + "\f\nAnswer.\n", None, Kind.FORUM)
    assert chunks[-1].text == "Answer."
    assert len(chunks) > 2
    assert sum(len(c.text) for c in chunks[:-1]) > CEILING


def test_a_fossil_page_numbers_its_lists_with_an_indented_mark() -> None:
    text = f"# Feeding\n\n{PARAGRAPH}\n\n  #  lions first\n  #  then bears\n\n<h2>Water</h2>\n\n{PARAGRAPH}\n"
    assert [c.name for c in chunk(text, "Page", Kind.WIKI)] == ["Feeding", "Feeding > Water"]


def test_a_wiki_file_has_headings_of_html_or_between_equals_signs() -> None:
    text = f"<title>Zoo</title>\n<h2>Feeding</h2>\n{PARAGRAPH}\n  #  lions first\n\n== Water ==\n{PARAGRAPH}\n"
    assert [c.name for c in chunk(text, "www/zoo.wiki", Kind.DOC)] == ["Zoo > Feeding", "Zoo > Water"]
