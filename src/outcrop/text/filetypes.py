"""The format of a path: a language (as in ``chunking/grammars.py`` or ``regex_outline.py``) or a prose format.

Tables are by extension, lower case, without the dot; files that have none by their whole name.
"""

from __future__ import annotations

import re

# Extensions of prose.
PROSE: dict[str, str] = {
    "md": "markdown", "markdown": "markdown", "mdown": "markdown", "mkd": "markdown", "mkdn": "markdown",
    "mdwn": "markdown", "mdx": "markdown", "mdc": "markdown", "qmd": "markdown", "rmd": "markdown",
    "rst": "rst", "rest": "rst",
    "adoc": "asciidoc", "asciidoc": "asciidoc",
    "html": "html", "htm": "html", "xhtml": "html",
    "txt": "text", "text": "text", "vtt": "transcript", "srt": "transcript",
    "org": "org", "tex": "latex", "ltx": "latex", "typ": "typst",
    "wiki": "mediawiki", "mediawiki": "mediawiki", "creole": "mediawiki",
    "textile": "textile", "pod": "pod", "rdoc": "rdoc", "texi": "texinfo", "texinfo": "texinfo",
    "man": "man", "mdoc": "man",
}  # fmt: skip

# Whole names of prose files without an extension, lower case. ``LICENSE-MIT`` counts as what is before the dash.
PROSE_NAMES = frozenset(
    "readme license licence copying copyright notice authors contributors maintainers changelog changes history news "
    "install contributing hacking todo thanks credits faq security support roadmap manifesto code_of_conduct".split()
)

_BY_LANGUAGE = {
    "python": "py pyi pyw pyx pxd py3",
    "javascript": "js mjs cjs jsx es6",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c cl",
    "h": "h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp tpp inl cu cuh ino",
    "csharp": "cs csx",
    "ruby": "rb rake gemspec ru podspec",
    "php": "php phtml",
    "kotlin": "kt kts",
    "swift": "swift",
    "scala": "scala sc sbt",
    "lua": "lua",
    "bash": "sh bash zsh ksh ebuild bats",
    "sql": "sql ddl psql pgsql",
    "css": "css",
    "scss": "scss less",
    "haskell": "hs",
    "ocaml": "ml",
    "ocaml_interface": "mli",
    "elixir": "ex exs",
    "zig": "zig",
    "dart": "dart",
    "erlang": "erl hrl",
    "clojure": "clj cljs cljc edn",
    "scheme": "scm ss sld",
    "racket": "rkt",
    "elm": "elm",
    "julia": "jl",
    "r": "r",
    "perl": "pl pm t psgi",
    "fortran": "f90 f95 f03 f08 f f77 for",
    "powershell": "ps1 psm1 psd1",
    "objc": "mm",
    "m": "m",
    "fsharp": "fs fsi fsx",
    "d": "d",
    "gdscript": "gd",
    "fish": "fish",
    "gleam": "gleam",
    "solidity": "sol",
    "elisp": "el",
    "commonlisp": "lisp lsp asd",
    "proto": "proto",
    "thrift": "thrift",
    "hcl": "tf hcl tfvars",
    "cmake": "cmake",
    "make": "mk mak",
    "nix": "nix",
    "json": "json jsonc json5 webmanifest",
    "toml": "toml",
    "yaml": "yaml yml",
    "component": "vue svelte astro",
    "notebook": "ipynb",
    "crystal": "cr",
    "nim": "nim nims",
    "cobol": "cob cbl cpy",
    "ada": "adb ads",
    "pascal": "pas pp dpr lpr",
    "groovy": "groovy gradle jenkinsfile gvy",
    "vim": "vim",
    "tcl": "tcl",
    "verilog": "v sv svh vh",
    "vhdl": "vhd vhdl",
    "v": "vv vsh",
    "basic": "bas vb vbs",
    "haxe": "hx",
    "coffeescript": "coffee",
    "awk": "awk",
    "assembly": "asm s",
    "batch": "bat cmd",
    "graphql": "graphql gql",
    "prolog": "prolog",
    "smalltalk": "st",
    "ini": "ini cfg conf properties editorconfig desktop service",
}

# Extensions of languages.
LANGUAGES: dict[str, str] = {ext: language for language, exts in _BY_LANGUAGE.items() for ext in exts.split()}

# Whole file names, lower case; they win over the extension.
LANGUAGE_NAMES: dict[str, str] = {
    "makefile": "make", "gnumakefile": "make", "cmakelists.txt": "cmake", "rakefile": "ruby", "gemfile": "ruby",
    "guardfile": "ruby", "vagrantfile": "ruby", "podfile": "ruby", "brewfile": "ruby", "fastfile": "ruby",
    "capfile": "ruby", "jenkinsfile": "groovy", "sconstruct": "python", "sconscript": "python", "wscript": "python",
    "build": "python", "build.bazel": "python", "workspace": "python", "pkgbuild": "bash", ".bashrc": "bash",
    ".bash_profile": "bash", ".profile": "bash", ".zshrc": "bash", ".vimrc": "vim", ".rprofile": "r",
    ".eslintrc": "json", ".babelrc": "json", ".prettierrc": "yaml", ".clang-format": "yaml", "pipfile": "toml",
    "cargo.lock": "toml", "poetry.lock": "toml", "uv.lock": "toml", "pdm.lock": "toml",
    "composer.lock": "json", "flake.lock": "json",
    ".gitconfig": "ini", ".editorconfig": "ini", ".flake8": "ini", ".pylintrc": "ini", "tox.ini": "ini",
    "requirements.txt": "windows", "robots.txt": "windows", "dockerfile": "dockerfile", "containerfile": "dockerfile",
    ".cursorrules": "markdown", ".windsurfrules": "markdown", ".clinerules": "markdown",
}  # fmt: skip

# Programs of a first line ``#!``.
INTERPRETERS: dict[str, str] = {
    "python": "python", "pypy": "python", "node": "javascript", "deno": "typescript", "bun": "typescript",
    "sh": "bash", "bash": "bash", "zsh": "bash", "ksh": "bash", "dash": "bash", "fish": "fish", "ruby": "ruby",
    "perl": "perl", "php": "php", "lua": "lua", "rscript": "r", "julia": "julia", "crystal": "crystal",
    "elixir": "elixir", "escript": "erlang", "tclsh": "tcl", "awk": "awk", "gawk": "awk", "pwsh": "powershell",
    "ocaml": "ocaml", "runhaskell": "haskell", "groovy": "groovy", "scala": "scala", "nim": "nim",
}  # fmt: skip


_MANUAL = re.compile(r"[a-z][\w.+-]*[a-z_]\.[1-9]", re.ASCII | re.IGNORECASE)


def extension(path: str) -> str:
    """The extension, lower case, without its dot; empty for ``.bashrc`` and ``LICENSE``, ``man`` for ``git.1``."""
    name = path.rpartition("/")[2]
    if _MANUAL.fullmatch(name):
        return "man"
    stem, dot, ext = name.rpartition(".")
    return ext.lower() if dot and stem else ""


def is_prose(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    if name in LANGUAGE_NAMES:
        return LANGUAGE_NAMES[name] in PROSE.values()
    ext = extension(path)
    if ext in PROSE:
        return True
    return ext not in LANGUAGES and name.partition(".")[0].partition("-")[0] in PROSE_NAMES


def by_path(path: str) -> str | None:
    """The format of a path, or None if the path does not say it."""
    name = path.rpartition("/")[2].lower()
    if name in LANGUAGE_NAMES:
        return LANGUAGE_NAMES[name]
    ext = extension(path)
    found = PROSE.get(ext) or LANGUAGES.get(ext)
    if found or not is_prose(path):
        return found or ("dockerfile" if name.startswith("dockerfile") else None)
    return "text"
