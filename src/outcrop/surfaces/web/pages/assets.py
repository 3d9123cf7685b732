"""The style sheet and the script, as files with an address or as text to be put into a page."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.resources import files

# Everything that is served as a file, and its media type.
STATIC = {"outcrop.css": "text/css; charset=utf-8", "outcrop.js": "text/javascript; charset=utf-8"}


@lru_cache(maxsize=8)
def content(name: str) -> str:
    """The text of one of them."""
    return files("outcrop.surfaces.web").joinpath("static", name).read_text("utf-8")


@lru_cache(maxsize=1)
def version() -> str:
    """Changes with the content of any of them."""
    return hashlib.sha256("".join(map(content, STATIC)).encode()).hexdigest()[:10]
