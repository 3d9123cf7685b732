"""Templates and static files: a view's content is rendered first, then put into a frame, of this page or of Fossil."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from markupsafe import Markup

from outcrop.surfaces.render import counted, harmless_line, size
from outcrop.surfaces.web.http import Request, Response
from outcrop.surfaces.web.pages.urls import Addresses

# Static files and their media types.
STATIC = {"outcrop.css": "text/css; charset=utf-8", "outcrop.js": "text/javascript; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class PageHead:
    """What the frame shows: title, slug of the repository (empty where it must not be known), current page."""

    title: str
    project: str
    current: str


@lru_cache(maxsize=8)
def static_text(name: str) -> str:
    return files("outcrop.surfaces.web").joinpath("static", name).read_text("utf-8")


@lru_cache(maxsize=1)
def _static_version() -> str:
    return hashlib.sha256("".join(map(static_text, STATIC)).encode()).hexdigest()[:10]


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("outcrop.surfaces.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(counted=counted, line=harmless_line, size=size, number="{:,}".format)
    return environment


def cache_compiled(folder: Path) -> None:
    """Cache compiled templates for the next process. A user who can write to the folder can run code in this one."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return
    _environment().bytecode_cache = FileSystemBytecodeCache(str(folder))


def page(request: Request, template: str, head: PageHead, status: int = 200, **context: Any) -> Response:
    frame = _environment().get_template("skin.html" if request.skin else "frame.html")
    text = frame.render(
        content=fragment(request, template, **context),
        head=head,
        at=Addresses(request.base),
        nonce=request.nonce,
        version=_static_version(),
        css=Markup(static_text("outcrop.css")),
        js=Markup(static_text("outcrop.js")),
    )
    return Response(status, text.encode("utf-8", "replace"))


def fragment(request: Request, template: str, **context: Any) -> Markup:
    return Markup(_environment().get_template(template).render(at=Addresses(request.base), **context))
