"""The search page as a CGI under ``fossil server --extroot``, in Fossil's own skin.

Every visitor can run the CGI, so it asks the repository what its reader may see, and shows nothing else. Only Fossil
and the installed script decide about repository, settings and reader, never the request. See docs/fossil.md.
"""

from __future__ import annotations

import logging
import os
import signal
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from platformdirs import user_cache_path

from outcrop.app.index import open as open_index
from outcrop.config.settings import load_settings
from outcrop.core.model import Kind, Mode
from outcrop.embedders.factory import make_embedder
from outcrop.errors import OutcropError, UsageError
from outcrop.sources.fossil.capabilities import NOBODY, Claim, Visitor, identify, may_see
from outcrop.surfaces.install.fossil_ext import CHECK
from outcrop.surfaces.render import outcome
from outcrop.surfaces.web.http import Reader, Request, Response, parse_query
from outcrop.surfaces.web.pages.links import FossilLinks
from outcrop.surfaces.web.pages.templates import cache_compiled
from outcrop.surfaces.web.pages.urls import Addresses
from outcrop.surfaces.web.problems import REMOTE_FIX, error_page, problem
from outcrop.surfaces.web.router import respond
from outcrop.surfaces.web.view_model import Site
from outcrop.text.visible import harmless, harmless_line
from outcrop.vcs.fossil import open_fossil, read_setting

# Seconds for a request. Fossil waits as long as the program runs.
REQUEST_TIMEOUT = 20

# Seconds after that for writing a message; then the process is killed.
GRACE = 5

# Seconds that a question waits for the model, which loads in half a second and serves only this request.
MODEL_TIMEOUT = 5.0

_LATER = "Try again in a moment."
_WRAPPED = b'<div class="fossil-doc"'

log = logging.getLogger(__name__)


class RequestTimeout(BaseException):
    """The time of a request is over. Not an Exception, so that no handler takes it for a failure of its own."""


@dataclass(frozen=True, slots=True)
class CgiRequest:
    """A request as Fossil describes it.

    Attributes:
        view: For the views; its reader may see nothing yet, and it has no parameters.
    """

    repository: Path
    claim: Claim
    method: str
    query: str
    uri: str
    view: Request

    @property
    def is_api(self) -> bool:
        return self.view.path.startswith("api/")


def read_request(environ: Mapping[str, str]) -> CgiRequest | None:
    """The request in the environment; None when Fossil did not run this."""
    repository = environ.get("FOSSIL_REPOSITORY", "")
    if not repository or not environ.get("GATEWAY_INTERFACE"):
        return None
    return CgiRequest(
        repository=Path(repository).absolute(),
        claim=Claim(
            user=environ.get("FOSSIL_USER", ""),
            remote_user=environ.get("REMOTE_USER", ""),
            granted=environ.get("FOSSIL_CAPABILITIES", ""),
            cookies=environ.get("HTTP_COOKIE", ""),
        ),
        method=environ.get("REQUEST_METHOD", "GET"),
        query=environ.get("QUERY_STRING", ""),
        uri=environ.get("FOSSIL_URI", ""),
        view=Request(
            path=environ.get("PATH_INFO", "").strip("/") or "search",
            reader=Reader(frozenset()),
            base=environ.get("SCRIPT_NAME", "").rstrip("/"),
            nonce=environ.get("FOSSIL_NONCE", ""),
            skin=True,
        ),
    )


def visitor_of(request: CgiRequest) -> Visitor:
    with open_fossil(request.repository) as database:
        return identify(database, request.claim)


def answer(request: CgiRequest, branch: str | None = None) -> Response:
    """Answer a request. Raises nothing that a request or a repository can cause, and names no path of this machine.

    ``branch`` is the one whose files are indexed; None for trunk.
    """
    try:
        if _is_overloaded(request):
            return _refusal(request, 503, "the server is busy", _LATER)
        visitor = visitor_of(request)
        kinds = frozenset(kind for kind in Kind if may_see(visitor.capabilities, kind))
        if not kinds:
            return _forbidden(request, visitor)
        try:
            params = parse_query(request.query)
        except UsageError as error:
            return _refusal(request, 400, error.what, error.fix)
        with open_index(request.repository, branch=branch) as index:
            site = Site(index, MODEL_TIMEOUT)
            view = replace(request.view, params=params, reader=Reader(kinds))
            if view.get("q") and view.get("mode") != Mode.KEYWORD:
                site.load_model()
            return respond(site, FossilLinks(request.uri), view, request.method)
    except RequestTimeout:
        return _refusal(request, 504, "the request took too long", "Ask for less, or try again in a moment.")
    except OutcropError as error:
        log.error("%s: %s", request.view.path, error)
        status = max(500, outcome(error).http)
        return _refusal(request, status, "the repository cannot be searched right now", _LATER)
    except Exception as error:
        log.error("%s", request.view.path, exc_info=error)
        return _refusal(request, 500, "something went wrong", REMOTE_FIX)


def _is_overloaded(request: CgiRequest) -> bool:
    """Whether the load is above Fossil's own limit for expensive pages."""
    with open_fossil(request.repository) as database:
        limit = read_setting(database, "max-loadavg")
    try:
        return 0 < float(limit or 0) < os.getloadavg()[0]
    except (ValueError, OSError):
        return False


def _forbidden(request: CgiRequest, visitor: Visitor) -> Response:
    """For a reader who may see no kind: to the login, as for Fossil's own pages."""
    if visitor.login == NOBODY and not request.is_api:
        base, path = request.view.base, request.view.path
        here = Addresses(base).search() if path == "search" else f"{base}/{path}"
        here += f"?{request.query}" if request.query else ""
        return Response(302, b"", headers={"Location": f"{request.uri}/login?g={quote(here, safe='/')}"})
    return _refusal(request, 403, "you may not read anything that is indexed here", "Log in as a user who may.")


def _refusal(request: CgiRequest, status: int, what: str, fix: str) -> Response:
    if request.is_api:
        return problem(status, what, fix)
    return error_page(request.view, "", status, what, fix)


def encode(response: Response) -> bytes:
    fields = {
        "Content-Type": response.media_type,
        **response.headers,
        "X-Robots-Tag": "noindex, nofollow",
        "X-Content-Type-Options": "nosniff",
    }
    if not response.body.startswith(_WRAPPED):
        # Fossil adds its policy only to what it puts into its skin.
        fields |= {"Content-Security-Policy": "default-src 'none'", "Cache-Control": "private, no-store"}
    head = [f"Status: {response.status} {HTTPStatus(response.status).phrase}"]
    head += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*head, "", ""]).encode("latin-1", "replace") + response.body


def main(arguments: Sequence[str]) -> NoReturn:
    if os.environ.get(CHECK):
        sys.exit(_check())
    _configure_logging()
    _limit_time()
    request = read_request(os.environ)
    if request is None:
        sys.stderr.write("This runs under: fossil server --extroot. See: outcrop fossil --help\n")
        os._exit(2)
    # Compiling the templates takes longer than rendering them, and each request is a process of its own.
    cache_compiled(user_cache_path("outcrop") / "pages")
    out = encode(answer(request, arguments[0] if arguments else None))
    with suppress(OSError):
        # The client may be gone.
        sys.stdout.buffer.write(out)
        sys.stdout.buffer.flush()
    # Does not wait for a model that is still loading.
    os._exit(0)


def _check() -> int:
    """Load what a question needs, at installation. Sends no text to another machine."""
    try:
        embedder = make_embedder(load_settings(None))
        if embedder.address is None:
            embedder.embed_queries(["ready"])
    except OutcropError as error:
        sys.stderr.write(f"{harmless_line(str(error))}\n")
        return 1
    return 0


class _SafeFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))


def _configure_logging() -> None:
    """Log to the server's error output, unless that is the visitor: under inetd both are one socket."""
    if stat.S_ISSOCK(os.fstat(2).st_mode):
        logging.disable()
    handler = logging.StreamHandler()
    handler.setFormatter(_SafeFormatter("outcrop: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


def _limit_time() -> None:
    def stop(*_: object) -> NoReturn:
        # Code that ignores this exception ends with the next signal.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(GRACE)
        raise RequestTimeout

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(REQUEST_TIMEOUT)


if __name__ == "__main__":
    main(sys.argv[1:])
