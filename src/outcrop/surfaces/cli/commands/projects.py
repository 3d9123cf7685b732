"""``outcrop import-project`` and ``outcrop projects``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.core.reports import ProjectReport, ProjectStatus
from outcrop.errors import OutcropError, UsageError
from outcrop.surfaces.cli import options
from outcrop.surfaces.cli.progress import Display, open_with_progress
from outcrop.surfaces.cli.report_view import skipped_lines
from outcrop.surfaces.cli.terminal import Paint, choose_paint, note
from outcrop.surfaces.render import columns, counted, duration, harmless_line, message, size

if TYPE_CHECKING:
    from outcrop.app.index import Index

ACTIONS = ("list", "refresh", "remove")
_NONE = "no projects → outcrop import-project PEER"


@options.command("import-project")
@click.argument("peer", type=click.Path(path_type=Path), required=False)
@click.option("--as", "name", metavar="NAME", help="Call it NAME here.")
@click.option(
    "--kind", metavar="KIND", shell_complete=options.complete_kind, help="Index all of it as this kind, such as api."
)
@click.option("--path", multiple=True, metavar="GLOB", help="Only paths that match. Repeatable.")
@click.option("--build", is_flag=True, help="First update its own index, there, with the embedder that is set here.")
@click.option(
    "--python", "packages", multiple=True, metavar="PACKAGE", help="An installed package instead. Repeatable."
)
@click.option(
    "--python-executable",
    type=click.Path(path_type=Path),
    metavar="PYTHON",
    help="The python program, or the folder of the environment, that has the packages.",
)
@options.result_options
def import_project_command(
    peer: Path | None,
    name: str | None,
    kind: str | None,
    path: tuple[str, ...],
    build: bool,
    packages: tuple[str, ...],
    python_executable: Path | None,
    as_json: bool,
    directory: Path,
    **flags: Any,
) -> None:
    """Import another repository or a Python package, as a project of this index.

    PEER is a Fossil repository, a folder of a git repository, a plain folder, or a folder of exported vectors. It is
    read from its own index, with its own vectors: no model is used, and nothing in it is changed. The embedder that is
    set here must be the one that made its vectors.

    With --python, signature and docstring of each public name of an installed package are read from its source and
    embedded here; the package is never imported or run. stdlib is the standard library.

    Examples:
        outcrop import-project ../other-repo
        outcrop import-project ~/museum.fossil --as museum
        outcrop import-project ~/src/crystal --kind api --path 'src/**' --build
        outcrop import-project --python numpy --python stdlib
        outcrop import-project --python requests --python-executable ~/app/.venv
    """
    if (peer is None) == (not packages):
        raise UsageError("import-project takes either PEER or --python PACKAGE", "Name a repository, or a package")
    if packages and (kind or path or build):
        raise UsageError("--kind, --path and --build are for a PEER, not for a package", "Leave them out")
    if python_executable and not packages:
        raise UsageError("--python-executable needs a package", "Name one: --python PACKAGE")
    if name and len(packages) > 1:
        raise UsageError("several packages cannot have one name", "Import one at a time with --as")
    with open_with_progress(directory, flags) as (index, display):
        from outcrop.projects import service
        from outcrop.search.query import filter_of

        if peer is None:
            reports = [
                service.import_package(index, each, name=name, executable=python_executable, progress=display)
                for each in packages
            ]
        else:
            where = directory / peer
            if build:
                _build_there(index, where, flags, display)
            only = next(iter(filter_of(kind, None, None, None).kinds), None)
            reports = [service.import_project(index, where, name=name, kind=only, paths=path, progress=display)]
        space = index.embedder.space.id
        behind = _behind(index, reports)
    lines = [line for report in reports for line in import_lines(report, space)]
    options.show_result({"projects": reports, "behind": behind}, as_json, lines + _behind_lines(behind))


@options.command("projects")
@click.argument("action", type=click.Choice(ACTIONS), default="list")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@options.color_option
@options.result_options
def projects_command(
    action: str, names: tuple[str, ...], as_json: bool, color: str, directory: Path, **flags: Any
) -> None:
    """List, refresh or remove imported projects.

    list shows where each project comes from, and whether it has everything that its peer has now. refresh reads what
    changed in the peers of these projects, or of all; a project whose peer cannot be read stays as it is. remove
    removes projects from this index; their peers are not changed.

    Examples:
        outcrop projects
        outcrop projects refresh
        outcrop projects refresh numpy-2.4
        outcrop projects remove museum
    """
    with open_with_progress(directory, flags) as (index, display):
        from outcrop.projects import service

        if action == "list":
            if names:
                raise UsageError("list takes no names", f"Did you mean: outcrop projects refresh {names[0]}?")
            found = service.listing(index)
            options.show_result({"projects": found}, as_json, listing_lines(found, choose_paint(color)))
        elif action == "refresh":
            if _refresh(index, names, display, as_json):
                raise click.exceptions.Exit(1)
        else:
            _remove(index, names, as_json)


def _refresh(index: Index, names: Sequence[str], display: Display, as_json: bool) -> bool:
    """Read peers again; one that fails does not stop the others. Returns whether any failed."""
    from outcrop.projects import service

    wanted = [service.project_named(index, name).name for name in dict.fromkeys(names)]
    wanted = wanted or [project.name for project in index.store.projects()]
    reports: list[ProjectReport] = []
    failed: dict[str, str] = {}
    for name in wanted:
        try:
            reports.append(service.refresh(index, name, progress=display))
        except OutcropError as error:
            display.hide()
            failed[name] = str(error)
            note(message(error))
    behind = _behind(index, reports)
    lines = [line for report in reports for line in refresh_lines(report)]
    lines += _behind_lines(behind) if wanted else [_NONE]
    options.show_result({"projects": reports, "failed": failed, "behind": behind}, as_json, lines)
    return bool(failed)


def _behind(index: Index, reports: Sequence[ProjectReport]) -> dict[str, str]:
    """Why projects that were just read lack something that their peers have: the peers have to be indexed first."""
    from outcrop.projects import service

    found = service.listing(index, [report.name for report in reports])
    return {status.name: status.reason for status in found if status.reason is not None}


def _behind_lines(behind: Mapping[str, str]) -> list[str]:
    return [f"{name}: {harmless_line(reason)}" for name, reason in behind.items()]


def _remove(index: Index, names: Sequence[str], as_json: bool) -> None:
    from outcrop.projects import service

    if not names:
        raise UsageError("remove takes the names of projects", "outcrop projects lists them")
    for name in names:
        service.project_named(index, name)
    freed = {name: service.remove(index, name) for name in dict.fromkeys(names)}
    lines = [f"removed project {name}, {size(number)} freed" for name, number in freed.items()]
    options.show_result({"freed": sum(freed.values())}, as_json, lines)


def _build_there(index: Index, peer: Path, flags: dict[str, Any], display: Display) -> None:
    """Update a peer's index with the embedder that is set here, unless it has vectors of another space."""
    from outcrop.projects import peer as peers

    there = {"allow_remote": flags.get("allow_remote"), "secret_ref": flags.get("secret_ref")}
    with options.open_index(peer, there | peers.embedder_settings(index.settings), before_asking=display.hide) as other:
        state = other.store.state() if other.store.exists else None
        if state is None or state.space == index.embedder.space:
            other.build(progress=display)


def import_lines(report: ProjectReport, space: str) -> Iterator[str]:
    origin = f"{report.item} of {report.peer}" if report.item else f"{report.type} {report.peer}"
    yield f"project {report.name}, from {harmless_line(origin)}"
    how = f"{report.embedded:,} embedded" if report.item else "no model was used"
    yield (
        f"{counted(report.artifacts, 'artifact')}, {counted(report.chunks, 'chunk')} of {space}, {how} "
        f"({duration(report.seconds)})"
    )
    yield from skipped_lines(report.skipped, "left out", "file")
    yield f"→ outcrop search --project {report.name} …"


def refresh_lines(report: ProjectReport) -> Iterator[str]:
    instead = f" (instead of {report.replaced})" if report.replaced else ""
    if report.added or report.removed or report.embedded:
        embedded = f", {counted(report.embedded, 'chunk')} embedded" if report.embedded else ""
        what = f"{report.added:,} new or changed, {report.unchanged:,} unchanged, {report.removed:,} removed{embedded}"
    else:
        what = f"up to date, {counted(report.artifacts, 'artifact')}"
    yield f"{report.name}{instead}: {what} ({duration(report.seconds)})"
    yield from skipped_lines(report.skipped, "left out", "file")


def listing_lines(found: Sequence[ProjectStatus], paint: Paint) -> Iterator[str]:
    if not found:
        yield _NONE
        return
    rows: list[tuple[str, ...]] = [("project", "artifacts", "chunks", "space", "read", "state", "from")]
    for each in found:
        read = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.imported))
        state = "current" if each.current else "see below"
        origin = harmless_line(_origin(each))
        rows.append((each.name, f"{each.artifacts:,}", f"{each.chunks:,}", each.space, read, state, origin))
    yield from columns(rows, right={1, 2})
    for each in found:
        if each.reason:
            yield paint("warn", f"{each.name}: {harmless_line(each.reason)}")


def _origin(status: ProjectStatus) -> str:
    details = [*([f"kind {status.kind}"] if status.kind and not status.item else []), *status.paths]
    origin = f"{status.item} of {status.peer}" if status.item else f"{status.type} {status.peer}"
    return origin + (f" ({', '.join(details)})" if details else "")
