"""Installed Python packages as projects: the signature and docstring of each public name is a passage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from outcrop import chunking
from outcrop.app.index import Index
from outcrop.chunking import digest
from outcrop.core.model import Filter, Kind, Part, Skipped
from outcrop.core.reports import Progress
from outcrop.core.rows import IMPORTED, Digested, Entry, Member, Project, StoredArtifact
from outcrop.errors import SourceError
from outcrop.indexing.build import embed_pending
from outcrop.indexing.ingest import Report
from outcrop.indexing.scope import corpus_of
from outcrop.projects import copy, python_api, python_env
from outcrop.projects.copy import ImportCounts, Material, Read
from outcrop.projects.python_api import PublicNames
from outcrop.projects.python_env import STDLIB, Interpreter, Package

# Type of a project that is an installed package.
PYTHON = "python"

RECIPE = f"{chunking.VERSION}/python-api/{python_api.VERSION}"


@dataclass(frozen=True, slots=True)
class FoundPackage:
    """An installed package."""

    interpreter: Interpreter
    package: Package
    item: str


@dataclass(frozen=True, slots=True)
class PackageImport:
    """What importing a package did: what came in, passages that went through the model, files that cannot be read."""

    counts: ImportCounts
    embedded: int
    skipped: Sequence[Skipped]


def find(index: Index, package: str, executable: Path | None) -> FoundPackage:
    interpreter = python_env.find_interpreter(executable, index.source.root)
    found = python_env.find_package(interpreter, package)
    return FoundPackage(interpreter, found, STDLIB if package == STDLIB else found.name)


def slug_of(item: str, version: str) -> str:
    return Package("python" if item == STDLIB else item, version, Path(), ()).slug


def import_public_names(index: Index, found: FoundPackage, project: Project, report: Report) -> PackageImport:
    """Read a package, store what is new or changed in it, and embed that. The caller is the store's writer."""
    store = index.store
    before = next((each for each in store.projects() if each.name == project.name), None)
    embedded, chunks = store.progress(project.space, Filter(projects=(project.name,)))
    known = store.known(project.name)
    whole = embedded == chunks and all(each.recipe == RECIPE for each in known.values())
    if whole and before is not None and replace(before, imported=project.imported) == project:
        return PackageImport(ImportCounts(0, len(known), 0, 0), 0, ())
    reading = python_api.read_api(found.package, lambda done, total: report(Progress("chunking", done, total)))
    if not reading.files:
        raise SourceError(f"{found.item} has no public names that are described in Python source")
    # Without its revision until all is embedded, so that an import that was stopped does not look complete.
    counts = copy.copy_project(store, replace(project, revision=""), _material(reading), report)
    embedded = embed_pending(store, index.embedder, report, Filter(projects=(project.name,))).embedded
    store.place_project(project, _members(reading))
    return PackageImport(counts, embedded, reading.skipped)


def _material(reading: PublicNames) -> Material:
    files = {file.ref.hash: file for file in reading.files}

    def read(hashes: Sequence[str]) -> list[Read]:
        return [
            (Entry(files[key].ref, RECIPE, [Digested(each, digest(each)) for each in files[key].chunks]), {})
            for key in hashes
        ]

    known = {
        key: StoredArtifact(file.ref.version, RECIPE, None, "", frozenset({Part.WHOLE})) for key, file in files.items()
    }
    return Material(_members(reading), known, read)


def _members(reading: PublicNames) -> list[Member]:
    return [
        Member(corpus_of(Kind.API), IMPORTED, file.ref.hash, Part.WHOLE, file.ref.path, Kind.API)
        for file in reading.files
    ]
