"""Templates: a view's content is rendered first, and then put into a frame, ours or somebody else's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from markupsafe import Markup

from outcrop.surfaces.render import counted, harmless_line, size
from outcrop.surfaces.web.http import Request, Response
from outcrop.surfaces.web.pages import assets
from outcrop.surfaces.web.pages.urls import Addresses


@dataclass(frozen=True, slots=True)
class PageHead:
    """What the frame says above the content.

    Attributes:
        title: Of the page.
        project: Slug of the repository; empty where nobody may know.
        current: Which entry of the navigation this is.
    """

    title: str
    project: str
    current: str


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


def keep_compiled(folder: Path) -> None:
    """Keep compiled templates there for the next process. Whoever can write to the folder can run code in this one."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return
    _environment().bytecode_cache = FileSystemBytecodeCache(str(folder))


def page(request: Request, template: str, crumb: PageHead, status: int = 200, **context: Any) -> Response:
    """Render a view.

    Args:
        request: Decides on the frame.
        template: Name of the content's template.
        crumb: For the frame.
        status: HTTP status code.
        context: For the content.
    """
    content = fragment(request, template, **context)
    frame = _environment().get_template("skin.html" if request.skin else "frame.html")
    text = frame.render(
        content=content,
        crumb=crumb,
        at=Addresses(request.base),
        nonce=request.nonce,
        version=assets.version(),
        css=Markup(assets.content("outcrop.css")),
        js=Markup(assets.content("outcrop.js")),
    )
    return Response(status, text.encode("utf-8", "replace"))


def fragment(request: Request, template: str, **context: Any) -> Markup:
    """Render a template alone, without any frame."""
    return Markup(_environment().get_template(template).render(at=Addresses(request.base), **context))
