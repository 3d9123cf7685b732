"""Lays out the material of the judged questions: pinned releases from PyPI, and the running interpreter's library.

Nothing of it is committed. An archive is fetched once with pip, which checks its digest before it runs anything, and
stays in the user's cache folder; after that no network is needed.

    python benchmarks/judged/corpora.py DIR      lays all of them out under DIR
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import platformdirs

# The modules in which answers lie, and their neighbours as distractors: those which 3.11, 3.12 and 3.13 all have.
STDLIB_MODULES = """
abc argparse ast base64 bdb bisect bz2 calendar cmd code codecs codeop colorsys compileall configparser contextlib copy
copyreg csv dataclasses difflib dis doctest enum filecmp fileinput fnmatch fractions ftplib functools genericpath getopt
getpass gettext glob graphlib gzip hashlib heapq hmac imaplib inspect ipaddress linecache lzma mailbox mimetypes
netrc ntpath numbers opcode operator os pdb pickle pkgutil plistlib poplib posixpath pprint
pty py_compile queue quopri random reprlib rlcompleter runpy sched secrets selectors shelve shlex shutil
signal site smtplib socket socketserver ssl stat statistics string subprocess tarfile
tempfile textwrap threading timeit token tokenize trace traceback tracemalloc tty types typing uuid warnings wave
weakref webbrowser zipapp zipimport
""".split()
STDLIB_PACKAGES = """
asyncio collections concurrent email html http importlib json logging re sqlite3 tomllib urllib wsgiref zoneinfo
""".split()


@dataclass(frozen=True, slots=True)
class Release:
    """One pinned archive of PyPI and which of its files belong to the corpus.

    Attributes:
        project: Name on PyPI.
        version: The pinned version.
        sha256: Digest of the archive.
        sdist: Whether it is the source archive (then paths lose their first folder) or the wheel.
        include: Glob patterns of paths, in which `*` also crosses folders.
        exclude: Glob patterns that take files out again.
        licence: Licence of the material.
    """

    project: str
    version: str
    sha256: str
    sdist: bool
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    licence: str

    def admits(self, path: str) -> bool:
        """Tell whether the file at this path belongs to the corpus."""
        return any(fnmatch(path, glob) for glob in self.include) and not any(fnmatch(path, g) for g in self.exclude)


RELEASES = {
    "jupyterhub": Release(
        project="jupyterhub",
        version="5.2.1",
        sha256="5b35444c2c254e60563887d1d59c2376813d16a166ec6e0a410c773cdbd37ebd",
        sdist=True,
        include=(
            "jupyterhub/*.py",
            "docs/source/*.md",
            "examples/*.py",
            "examples/*.md",
            "jsx/src/*.js",
            "jsx/src/*.jsx",
            "share/jupyterhub/templates/*.html",
            "share/jupyterhub/static/js/*.js",
            "README.md",
        ),
        exclude=("*/admin-react.js", "jupyterhub/alembic/versions/*"),
        licence="BSD-3-Clause",
    ),
    "celery": Release(
        project="celery",
        version="5.4.0",
        sha256="504a19140e8d3029d5acad88330c541d4c3f64c789d85f94756762d8bca7e706",
        sdist=True,
        include=("docs/*.rst", "examples/*.py", "examples/*.rst", "README.rst"),
        exclude=(
            "docs/reference/*",
            "docs/internals/reference/*",
            "docs/history/*-[1-4].*",
            "docs/includes/*",
            "docs/_*",
        ),
        licence="BSD-3-Clause (code), CC BY-SA 4.0 (documentation)",
    ),
    "seaborn": Release(
        project="seaborn",
        version="0.13.2",
        sha256="93e60a40988f4d65e9f4885df477e2fdaff6b73a9ded434c1ab356dd57eefff7",
        sdist=True,
        include=("doc/*.ipynb", "doc/*.rst", "doc/*.md"),
        exclude=("doc/_templates/*",),
        licence="BSD-3-Clause",
    ),
    "hvplot": Release(
        project="hvplot",
        version="0.9.2",
        sha256="271dda9ea8ea5fef2aff335010f7760c90281d7242d7bd8d5df262b4914ef990",
        sdist=False,
        include=("hvplot/*.py", "hvplot/examples/*.ipynb"),
        exclude=("hvplot/_version.py",),
        licence="BSD-3-Clause",
    ),
    "nbclassic": Release(
        project="nbclassic",
        version="1.1.0",
        sha256="8c0fd6e36e320a18657ff44ed96c3a400f17a903a3744fc322303a515778f2ba",
        sdist=False,
        include=("nbclassic/*.py", "nbclassic/static/*.js", "nbclassic/templates/*.html"),
        exclude=("*.min.js", "nbclassic/static/components/*", "nbclassic/tests/end_to_end/*"),
        licence="BSD-3-Clause",
    ),
}
NAMES = ("stdlib", *RELEASES)


def lay_out(name: str, into: Path) -> Path:
    """Write the files of one corpus below a folder; a corpus that lies there already is left as it is.

    Args:
        name: One of `NAMES`.
        into: Folder that receives a folder of its own for the corpus; made if need be.

    Returns:
        The corpus's own folder, below which every path of its labels lies.

    Raises:
        KeyError: No corpus has that name.
        RuntimeError: The archive is not in the cache and pip could not fetch it.
    """
    if name == "stdlib":
        root = into / f"stdlib-{sys.version_info.major}.{sys.version_info.minor}"
        files = _stdlib_files()
    else:
        release = RELEASES[name]
        root = into / f"{release.project}-{release.version}"
        files = _archive_files(release)
    if root.is_dir():
        return root
    into.mkdir(parents=True, exist_ok=True)
    # Renamed into place at the end, so that an interrupted run never leaves half a corpus under the final name.
    unfinished = Path(tempfile.mkdtemp(prefix=f".{root.name}-", dir=into))
    try:
        for path, content in files:
            target = unfinished / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        unfinished.chmod(0o755)
        unfinished.rename(root)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return root


def _stdlib_files() -> Iterator[tuple[str, bytes]]:
    library = Path(sysconfig.get_path("stdlib"))
    for module in STDLIB_MODULES:
        yield f"{module}.py", (library / f"{module}.py").read_bytes()
    for package in STDLIB_PACKAGES:
        for file in sorted((library / package).rglob("*.py")):
            yield file.relative_to(library).as_posix(), file.read_bytes()


def _archive_files(release: Release) -> Iterator[tuple[str, bytes]]:
    archive = _fetch(release)
    for member, content in _members(archive):
        parts = PurePosixPath(member).parts
        path = "/".join(parts[1:] if release.sdist else parts)
        if path and ".." not in parts and not path.startswith("/") and release.admits(path):
            yield path, content


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for info in wheel.infolist():
                if not info.is_dir():
                    yield info.filename, wheel.read(info)
        return
    with tarfile.open(archive) as sdist:
        for member in sdist:
            opened = sdist.extractfile(member) if member.isfile() else None
            if opened is not None:
                yield member.name, opened.read()


def _fetch(release: Release) -> Path:
    shelf = platformdirs.user_cache_path("outcrop") / "judged" / release.sha256[:16]
    cached = _archive_in(shelf)
    if cached:
        return cached
    shelf.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=shelf.parent) as scratch:
        wanted = Path(scratch) / "wanted.txt"
        wanted.write_text(f"{release.project}=={release.version} --hash=sha256:{release.sha256}\n", encoding="utf-8")
        got = Path(scratch) / "got"
        kind = "--no-binary" if release.sdist else "--only-binary"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--require-hashes", kind, release.project, "--dest", str(got), "--requirement", str(wanted)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        archive = _archive_in(got)
        if done.returncode or archive is None:
            raise RuntimeError(f"pip could not fetch {release.project} {release.version}:\n{done.stderr.strip()}")
        shelf.mkdir(exist_ok=True)
        archive.replace(shelf / archive.name)
        return shelf / archive.name


def _archive_in(folder: Path) -> Path | None:
    return next((file for file in folder.glob("*") if file.name.endswith((".whl", ".tar.gz"))), None)


def main() -> None:
    """Lay every corpus out below the folder named on the command line."""
    parser = argparse.ArgumentParser(description="Lay out the corpora of the judged questions.")
    parser.add_argument("into", type=Path)
    for name in NAMES:
        root = lay_out(name, parser.parse_args().into)
        files = [file for file in root.rglob("*") if file.is_file()]
        print(f"{name:12}{len(files):6} files {sum(file.stat().st_size for file in files):12,} bytes  {root}")


if __name__ == "__main__":
    main()
