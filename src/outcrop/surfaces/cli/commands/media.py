"""``outcrop media``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.errors import UsageError
from outcrop.surfaces.cli.options import Command, directory_option, embedder_options, json_option, open_index, show_json
from outcrop.surfaces.cli.progress import Display, progress
from outcrop.surfaces.cli.terminal import note, show
from outcrop.surfaces.render import clock, columns, counted, harmless_line, size

if TYPE_CHECKING:
    from outcrop.app.index import Index
    from outcrop.media.assets import Assets

EXAMPLES = """
outcrop media add talks/keynote.mp4 --transcript media/keynote.vtt
outcrop media add https://media.example.org/keynote.mp4 --file ~/keynote.mp4 --transcript media/keynote.vtt
outcrop media verify ~/Downloads/keynote.mp4
outcrop media verify ~/Downloads/video.mp4 --manifest media/keynote.json
outcrop media list
"""


@click.command(
    "media",
    cls=Command,
    examples=EXAMPLES,
    short_help="List, add or check recordings that lie elsewhere.",
)
@click.argument("action", type=click.Choice(["list", "add", "verify"]))
@click.argument("items", nargs=-1, metavar="[FILE|URI|MANIFEST]...")
@click.option("--transcript", type=click.Path(path_type=Path), metavar="FILE", help="add: the text to be indexed.")
@click.option("--to", metavar="PATH", help="add: where the manifest goes, below media.")
@click.option(
    "--file", type=click.Path(path_type=Path), metavar="FILE", help="add: a local copy of the URI, for hash and size."
)
@click.option("--sha3", metavar="HEX", help="add: the SHA3-256 of a URI without a local copy.")
@click.option("--bytes", "bytes_", type=click.IntRange(0), metavar="N", help="add: its size.")
@click.option("--mime", metavar="TYPE", help="add: the media type, where the name does not tell.")
@click.option("--force", is_flag=True, help="add: replace a manifest that is there already.")
@click.option("--manifest", metavar="PATH", help="verify: the manifest to check against.")
@json_option
@directory_option
@embedder_options
def media_command(
    action: str,
    items: tuple[str, ...],
    transcript: Path | None,
    to: str | None,
    file: Path | None,
    sha3: str | None,
    bytes_: int | None,
    mime: str | None,
    force: bool,
    manifest: str | None,
    as_json: bool,
    directory: Path,
    **flags: Any,
) -> None:
    """List, add or check recordings that lie elsewhere.

    add writes a manifest with hash, size and type of a file, or of a URI whose copy --file names; nothing is ever
    downloaded. verify compares files with their manifests before they are used, and fails if one differs; without a
    file it checks every asset whose URI is a file of this machine. list shows what there are manifests of.
    """
    only_add = {
        "--transcript": transcript,
        "--to": to,
        "--file": file,
        "--sha3": sha3,
        "--bytes": bytes_,
        "--mime": mime,
    }
    chosen = [name for name, value in only_add.items() if value is not None] + ["--force"] * force
    if action != "add" and chosen:
        raise UsageError(f"{chosen[0]} belongs to add", "outcrop media --help")
    if action != "verify" and manifest is not None:
        raise UsageError("--manifest belongs to verify", "outcrop media --help")
    with progress(quiet=as_json) as display, open_index(directory, flags, before_asking=display.hide) as index:
        if action == "list":
            _list(index, items, as_json)
        elif action == "verify":
            _verify(index, items, manifest, as_json, display)
        else:
            # Imported here, as what follows: `--help` and shell completion do without.
            from outcrop.media.add import add_media

            if len(items) != 1 or transcript is None:
                raise UsageError("add takes one file or URI and its --transcript", "outcrop media --help")
            added = add_media(
                index,
                items[0],
                transcript,
                to=to,
                file=file,
                mime=mime,
                sha3=sha3,
                size=bytes_,
                replace=force,
                progress=display,
            )
            display.hide()
            if added.remark:
                note(f"outcrop: {harmless_line(added.remark)}")
            if as_json:
                show_json({"path": added.path, "manifest": added.manifest, "remark": added.remark})
            else:
                one = added.manifest
                show(f"wrote {harmless_line(added.path)}: {one.mime}, {size(one.bytes)}, SHA3-256 {one.sha3[:12]}…")


def _list(index: Index, items: Sequence[str], as_json: bool) -> None:
    from outcrop.media.assets import list_media

    if items:
        raise UsageError("list takes no files", "outcrop media --help")
    found = list_media(index)
    if as_json:
        show_json({"assets": found.assets, "skipped": found.skipped})
        return
    for line in media_lines(found):
        show(line)


def media_lines(found: Assets) -> Iterator[str]:
    """Every asset, and what is wrong with the other manifests."""
    if not found.assets and not found.skipped:
        yield "there are no media manifests here; outcrop media add writes one"
    rows = []
    for asset in found.assets:
        one = asset.manifest
        length = clock(asset.seconds) if asset.seconds is not None else "-"
        rows.append((harmless_line(asset.path), one.mime, size(one.bytes), length, harmless_line(one.uri)))
    yield from columns(rows, right={2, 3})
    if found.skipped:
        yield f"left out {counted(len(found.skipped), 'file')}:"
        for item in found.skipped:
            yield f"  {harmless_line(item.path)}: {harmless_line(item.detail or item.reason)}"


def _verify(index: Index, items: Sequence[str], manifest: str | None, as_json: bool, display: Display) -> None:
    from outcrop.media.verify import verify_all

    checked = verify_all(index, items, manifest, display)
    display.hide()
    if as_json:
        show_json({"checked": checked})
    else:
        for each in checked:
            word = {True: "ok", False: "FAILED", None: "elsewhere"}[each.ok]
            show("  ".join(harmless_line(part) for part in (word, each.file, each.detail) if part))
        if not checked:
            show("there are no media manifests here; outcrop media add writes one")
    if any(each.ok is False for each in checked):
        raise click.exceptions.Exit(1)
