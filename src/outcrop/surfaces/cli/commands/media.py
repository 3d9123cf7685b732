"""``outcrop media``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outcrop.errors import UsageError
from outcrop.surfaces.cli import options
from outcrop.surfaces.cli.progress import Display, open_with_progress
from outcrop.surfaces.cli.report_view import skipped_lines
from outcrop.surfaces.cli.terminal import note
from outcrop.surfaces.render import clock, columns, harmless_line, size

if TYPE_CHECKING:
    from outcrop.app.index import Index
    from outcrop.media.assets import Assets

_HELP = "outcrop media --help"

# What add takes, with the name of its option.
_DETAILS = {
    "text": "transcript",
    "to": "to",
    "file": "file",
    "sha3": "sha3",
    "size": "bytes",
    "mime": "mime",
    "replace": "force",
}
_NONE = "there are no media manifests here; outcrop media add writes one"


@options.command("media")
@click.argument("action", type=click.Choice(["list", "add", "verify"]))
@click.argument("items", nargs=-1, metavar="[FILE|URI|MANIFEST]...")
@click.option("--transcript", "text", type=click.Path(path_type=Path), metavar="FILE", help="add: the text to index.")
@click.option("--to", metavar="PATH", help="add: where to write the manifest, below media.")
@click.option(
    "--file", type=click.Path(path_type=Path), metavar="FILE", help="add: a local copy of the URI, for hash and size."
)
@click.option("--sha3", metavar="HEX", help="add: the SHA3-256 of a URI without a local copy.")
@click.option("--bytes", "size", type=click.IntRange(0), metavar="N", help="add: its size.")
@click.option("--mime", metavar="TYPE", help="add: the media type, if the name does not show it.")
@click.option("--force", "replace", is_flag=True, help="add: replace a manifest that exists.")
@click.option("--manifest", metavar="PATH", help="verify: the manifest to check against.")
@options.result_options
def media_command(
    action: str, items: tuple[str, ...], manifest: str | None, as_json: bool, directory: Path, **flags: Any
) -> None:
    """List, add or check recordings that are kept elsewhere.

    add writes a manifest with hash, size and type of a file, or of a URI with a copy in --file; nothing is ever
    downloaded. verify compares files with their manifests before you use them, and fails if one differs; without a
    file it checks every asset whose URI is a file on this machine. list shows every manifest.

    Examples:
        outcrop media add talks/keynote.mp4 --transcript media/keynote.vtt
        outcrop media add https://media.example.org/keynote.mp4 --file ~/keynote.mp4 --transcript media/keynote.vtt
        outcrop media verify ~/Downloads/keynote.mp4
        outcrop media verify ~/Downloads/video.mp4 --manifest media/keynote.json
        outcrop media list
    """
    details = {name: flags.pop(name) for name in _DETAILS}
    given = [f"--{option}" for name, option in _DETAILS.items() if details[name] not in (None, False)]
    if action != "add" and given:
        raise UsageError(f"{given[0]} belongs to add", _HELP)
    if action != "verify" and manifest is not None:
        raise UsageError("--manifest belongs to verify", _HELP)
    with open_with_progress(directory, flags, quiet=as_json) as (index, display):
        if action == "list":
            from outcrop.media.assets import list_media

            if items:
                raise UsageError("list takes no files", _HELP)
            found = list_media(index)
            value = {"assets": found.assets, "skipped": found.skipped}
            options.show_result(value, as_json, media_lines(found))
        elif action == "verify":
            _verify(index, items, manifest, as_json, display)
        elif len(items) != 1 or details["text"] is None:
            raise UsageError("add takes one file or URI and its --transcript", _HELP)
        else:
            _add(index, items[0], details, as_json, display)


def _add(index: Index, asset: str, details: dict[str, Any], as_json: bool, display: Display) -> None:
    from outcrop.media.add import add_media

    added = add_media(index, asset, **details, progress=display)
    display.hide()
    if added.remark:
        note(f"outcrop: {harmless_line(added.remark)}")
    one = added.manifest
    line = f"wrote {harmless_line(added.path)}: {one.mime}, {size(one.bytes)}, SHA3-256 {one.sha3[:12]}…"
    options.show_result({"path": added.path, "manifest": one, "remark": added.remark}, as_json, [line])


def media_lines(found: Assets) -> Iterator[str]:
    if not found.assets and not found.skipped:
        yield _NONE
    rows = []
    for asset in found.assets:
        one = asset.manifest
        length = clock(asset.seconds) if asset.seconds is not None else "-"
        rows.append((harmless_line(asset.path), one.mime, size(one.bytes), length, harmless_line(one.uri)))
    yield from columns(rows, right={2, 3})
    yield from skipped_lines(found.skipped, "left out", "file", reasons=False)


def _verify(index: Index, items: Sequence[str], manifest: str | None, as_json: bool, display: Display) -> None:
    from outcrop.media.verify import verify_all

    checked = verify_all(index, items, manifest, display)
    display.hide()
    words = {True: "ok", False: "FAILED", None: "elsewhere"}
    lines = [
        "  ".join(harmless_line(part) for part in (words[each.ok], each.file, each.detail) if part) for each in checked
    ]
    options.show_result({"checked": checked}, as_json, lines or [_NONE])
    if any(each.ok is False for each in checked):
        raise click.exceptions.Exit(1)
