"""Repositories at an earlier commit, and questions that nobody wrote for a search tool, with the files they want.

usage: material.py CLONES OUT [--pin]

CLONES/OWNER+NAME/repo is a git directory of each repository that repositories.json names. OUT/OWNER+NAME becomes a
clone with the base commit checked out, its history below it; OUT/queries.jsonl has a question a line: id, repo, sort,
query, files. `files.py OUT` measures them. --pin writes the commits that the clones hold today into repositories.json.

The sorts: the message of a later commit, for the files that it changed, by what they are (change, change-docs,
change-tests, change-settings); a definition's docstring or comment, taken out of the file before it is indexed
(docstring); a section's heading, taken out likewise (heading); the name of what is defined once (symbol). The half
"reporting" of the repositories is kept apart from whatever is trained or chosen. Caveat: a message names what changed,
not all that would help.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

REPOSITORIES = Path(__file__).with_name("repositories.json")

LATER_COMMITS = 400
A_SORT = {
    "change": 40,
    "change-docs": 12,
    "change-tests": 8,
    "change-settings": 6,
    "docstring": 15,
    "heading": 12,
    "symbol": 10,
}
SEED = 7

SOURCE = re.compile(r"\.(py|pyi|rs|go|tsx?|jsx?|mjs|cjs|vue|c|h|cc|cpp|hpp|cr|rb|java|kt|php|exs?|ya?rn)$")
PROSE = re.compile(r"\.(md|mdx|rst|adoc|txt|markdown)$", re.I)
TEST = re.compile(
    r"(^|/)(tests?|spec|specs|testing|__tests__|benches|fixtures)(/|$)|_test\.(go|exs?)$|_spec\.(cr|rb)$"
    r"|\.(test|spec)\.[jt]sx?$|(^|/)test_[^/]*$|Tests?\.(java|kt|php)$"
)
SETTINGS = re.compile(
    r"(^|/)(\.github/|Makefile$|Dockerfile|setup\.(py|cfg)$|[^/]+\.(toml|ya?ml|ini|cfg|gradle|kts)$|package\.json$)",
    re.I,
)
APART = re.compile(r"(^|/)(vendor|third_party|node_modules)(/|$)|(^|/)(change(log|s)?|news|history)[./-]?", re.I)
NOISE = re.compile(
    r"^(merge|bump|release|update (dep|change|read)|revert|prepare|version|chore|ci|style|lint|typo|changelog"
    r"|\[pre-commit|v?\d+\.\d+)",
    re.I,
)
DOCS = re.compile(r"^docs?\b[^:]*: *", re.I)
TRAILER = re.compile(
    r"^(co-authored-by|signed-off-by|reviewed-by|fossilorigin-name|fixes|closes|refs?):?.*$", re.I | re.M
)
REFERENCE = re.compile(r"\(#\d+\)|#\d+|https?://\S+")

# A comment block that stands right above a definition, by file ending.
COMMENTED = {
    ".go": re.compile(r"^((?://[^\n]*\n){1,30})func\b", re.M),
    ".rs": re.compile(r"^((?: *///[^\n]*\n){1,30})(?: *#\[[^\n]*\n)* *pub(?:\([a-z]+\))? (?:async )?fn\b", re.M),
    ".java": re.compile(r"^( */\*\*\n(?: *\*[^\n]*\n){1,30}?)(?: *@[^\n]*\n)* *public\b", re.M),
    ".js": re.compile(r"^( */\*\*\n(?: *\*[^\n]*\n){1,30}?) *(?:export |module\.|async |function |[a-z_]+\()", re.M),
    ".ts": re.compile(r"^( */\*\*\n(?: *\*[^\n]*\n){1,30}?) *(?:export |async |public |[a-z_]+\()", re.M),
    ".rb": re.compile(r"^((?: *#[^\n]*\n){2,30}) *def\b", re.M),
    ".cr": re.compile(r"^((?: *#[^\n]*\n){2,30}) *def\b", re.M),
    ".php": re.compile(r"^( */\*\*\n(?: *\*[^\n]*\n){1,30}?) *(?:public|protected) function\b", re.M),
    ".c": re.compile(r"^(/\*(?:[^\n*]*\n)(?: \*[^\n/]*\n){1,30} \*/\n)[a-z][^\n;]*\n", re.M),
}
DEFINITION = re.compile(
    r"^[ \t]*(?:export |pub(?:\([a-z]+\))? |async |public |static |abstract |final )*"
    r"(?:def|class|func|fn|function|struct|interface|trait|enum|defp?) (?:\([^)\n]*\) )?([A-Za-z_]\w{5,})",
    re.M,
)
HEADING = {
    ".md": re.compile(r"^#{2,4} +([^\n#`]{12,90}?) *#*\n", re.M),
    ".rst": re.compile(r"^([^\n]{12,90})\n[-=~^]{12,}\n", re.M),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pin", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    repositories = json.loads(REPOSITORIES.read_text("utf-8"))
    rows: list[dict[str, Any]] = []
    for name, pinned in repositories.items():
        folder = name.replace("/", "+")
        clone = options.clones / folder / "repo"
        if not clone.exists():
            raise SystemExit(f"{clone} is missing: clone https://github.com/{name} there")
        if options.pin:
            commits = git(clone, "rev-list", "--no-merges", "-n", "900", "HEAD").split()
            pinned |= {"head": commits[0], "base": commits[min(len(commits) - 1, LATER_COMMITS)]}
        made = list(questions(folder, clone, options.out / folder, pinned))
        rows += made
        counts = {sort: sum(row["sort"] == sort for row in made) for sort in A_SORT}
        print(name, " ".join(f"{sort} {count}" for sort, count in counts.items()), flush=True)
    if options.pin:
        REPOSITORIES.write_text(json.dumps(repositories, indent=1) + "\n", "utf-8")
    (options.out / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    print(len(rows), "questions")


def git(repository: Path, *arguments: str) -> str:
    made = subprocess.run(["git", "-C", str(repository), *arguments], check=True, capture_output=True)
    return made.stdout.decode("utf-8", "replace")


def questions(name: str, clone: Path, tree: Path, pinned: dict[str, str]) -> Iterator[dict[str, Any]]:
    """All questions of a repository, whose files are laid out on the way."""
    if not tree.exists():
        git(clone.parent, "clone", "-q", "--shared", "--no-checkout", str(clone), str(tree))
        git(tree, "update-ref", "--no-deref", "HEAD", pinned["base"])
        git(tree, "read-tree", pinned["base"])
        # One by one, since a clone may lack its largest files.
        subprocess.run(
            ["git", "-C", str(tree), "checkout-index", "-a", "-f", "-q"], stderr=subprocess.DEVNULL, check=False
        )
    chance = random.Random(f"{SEED} {name}")
    sorts = {
        **changes(clone, pinned, set(git(tree, "ls-tree", "-r", "--name-only", "HEAD").splitlines())),
        "docstring": list(docstrings(tree, chance)),
        "heading": list(headings(tree, chance)),
        "symbol": list(symbols(tree)),
    }
    for sort, found in sorts.items():
        if sort not in ("docstring", "heading"):  # These are chosen, and taken out, already
            chance.shuffle(found)
        for number, (query, files) in enumerate(found[: A_SORT[sort]]):
            yield {"id": f"{name} {sort} {number}", "repo": name, "sort": sort, "query": query, "files": sorted(files)}


def changes(clone: Path, pinned: dict[str, str], tracked: set[str]) -> dict[str, list[tuple[str, Sequence[str]]]]:
    log = git(
        clone,
        "log",
        "--no-merges",
        "--no-renames",
        "--format=%x01%B%x02",
        "--name-only",
        f"{pinned['base']}..{pinned['head']}",
    )
    found: dict[str, list[tuple[str, Sequence[str]]]] = {sort: [] for sort in A_SORT if sort.startswith("change")}
    for entry in log.split("\x01")[1:]:
        message, _, names = entry.partition("\x02")
        subject = message.strip().partition("\n")[0]
        if NOISE.search(subject):
            continue
        text = REFERENCE.sub("", TRAILER.sub("", DOCS.sub("", message.strip()))).strip()[:600]
        changed = [name for name in names.splitlines() if name in tracked and not APART.search(name)]
        if len(text) < 20:
            continue
        by_sort: dict[str, list[str]] = {sort: [] for sort in found}
        for path in changed:
            by_sort[sort_of(path)].append(path)
        sources = by_sort["change"]
        if 1 <= len(sources) <= 3:
            found["change"].append((text, sources))
        elif not sources:
            for sort in ("change-docs", "change-tests", "change-settings"):
                if 1 <= len(by_sort[sort]) <= 3 and sum(map(len, by_sort.values())) == len(by_sort[sort]):
                    found[sort].append((text, by_sort[sort]))
    return found


def sort_of(path: str) -> str:
    if TEST.search(path):
        return "change-tests"
    if PROSE.search(path):
        return "change-docs"
    if SETTINGS.search(path):
        return "change-settings"
    return "change" if SOURCE.search(path) else "change-settings"


def docstrings(tree: Path, chance: random.Random) -> Iterator[tuple[str, Sequence[str]]]:
    """What definitions say of themselves; each is taken out of its file."""
    paths = [path for path in git(tree, "ls-files").splitlines() if SOURCE.search(path) and not TEST.search(path)]
    chance.shuffle(paths)
    left = A_SORT["docstring"]
    for path in paths:
        text = _read(tree / path)
        spans = list(_python_docstrings(text) if path.endswith(".py") else _comments(text, Path(path).suffix))
        if not spans or left == 0:
            continue
        start, end, words, instead = chance.choice(spans)
        _write(tree / path, text[:start] + instead + text[end:])
        left -= 1
        yield words, [path]


def _python_docstrings(text: str) -> Iterator[tuple[int, int, str, str]]:
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and len(node.body) > 1:
            words = _first_paragraph(ast.get_docstring(node) or "")
            first = node.body[0]
            if words and text.isascii():
                yield (
                    starts[first.lineno - 1] + first.col_offset,
                    starts[(first.end_lineno or 1) - 1] + (first.end_col_offset or 0),
                    words,
                    "pass",
                )


def _comments(text: str, ending: str) -> Iterator[tuple[int, int, str, str]]:
    pattern = COMMENTED.get({".tsx": ".ts", ".jsx": ".js", ".h": ".c"}.get(ending, ending))
    for match in pattern.finditer(text) if pattern else ():
        words = _first_paragraph(re.sub(r"^[ \t]*(/\*\*?|\*/|\*|///?|#)[ \t]?", "", match[1], flags=re.M))
        if words and "copyright" not in words.lower() and "license" not in words.lower():
            yield match.start(1), match.end(1), words, ""


def _first_paragraph(text: str) -> str:
    found = " ".join(re.split(r"\n\s*\n|\n\s*(?:@|:param|Args:|Parameters)", text.strip())[0].split())
    found = found.replace("*/", "").strip()
    return found[:400] if len(found.split()) >= 6 else ""


def headings(tree: Path, chance: random.Random) -> Iterator[tuple[str, Sequence[str]]]:
    paths = [path for path in git(tree, "ls-files").splitlines() if PROSE.search(path) and not APART.search(path)]
    chance.shuffle(paths)
    left = A_SORT["heading"]
    for path in paths:
        pattern = HEADING.get(Path(path).suffix)
        text = _read(tree / path) if pattern else ""
        found = [match for match in pattern.finditer(text) if len(match[1].split()) >= 3] if pattern else []
        for match in chance.sample(found, min(2, len(found), left)):
            # Found again, since the first removal moves the second.
            _write(tree / path, _read(tree / path).replace(match[0], "\n", 1))
            left -= 1
            yield match[1].strip(), [path]


def symbols(tree: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Names of which the repository has one definition, not in a test."""
    places: dict[str, list[str]] = {}
    for path in git(tree, "ls-files").splitlines():
        if SOURCE.search(path):
            for name in set(DEFINITION.findall(_read(tree / path))):
                places.setdefault(name, []).append(path)
    for name, paths in sorted(places.items()):
        if len(paths) == 1 and not TEST.search(paths[0]):
            yield name, paths


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8") if path.is_file() and not path.is_symlink() else ""
    except UnicodeDecodeError:
        return ""


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8"))


if __name__ == "__main__":
    main()
