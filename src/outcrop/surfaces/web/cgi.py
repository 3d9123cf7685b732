"""The search page as a CGI under ``fossil server --extroot``, in Fossil's own skin.

Fossil lets everybody run a CGI, so this one asks the repository what its reader may see, and shows nothing else. What
decides anything comes from Fossil and from the installed script; a request has no say in which repository, settings or
reader it is about. docs/fossil.md tells how it is set up.
"""

from __future__ import annotations

import logging
import os
import signal
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from platformdirs import user_cache_path

from outcrop.app.index import open
from outcrop.config.settings import load_settings
from outcrop.core.model import Kind, Mode
from outcrop.embedders.factory import make_embedder
from outcrop.errors import OutcropError, UsageError
from outcrop.sources.fossil.capabilities import capabilities_of, may_see
from outcrop.surfaces.install.fossil_ext import CHECK
from outcrop.surfaces.render import outcome
from outcrop.surfaces.web.http import Reader, Request, Response, parse_query
from outcrop.surfaces.web.pages.links import FossilLinks
from outcrop.surfaces.web.pages.templates import keep_compiled
from outcrop.surfaces.web.pages.urls import Addresses
from outcrop.surfaces.web.problems import FIX_FOR_STRANGERS, error_page, problem
from outcrop.surfaces.web.router import respond
from outcrop.surfaces.web.view_model import Site
from outcrop.vcs.fossil import opened, setting

# How long a request may take. Fossil waits for as long as the program runs.
SECONDS = 20

# Seconds after that in which a message can still be written; then the process is gone.
GRACE = 5

# Seconds that a question waits for the model, which loads in half a second. Nobody else uses it after this request.
PATIENCE = 5.0

# Fossil's name for who is not logged in.
NOBODY = "nobody"

_LATER = "Try again in a moment."
_WRAPPED = b'<div class="fossil-doc"'

log = logging.getLogger(__name__)


class TookTooLong(BaseException):
    """The time of a request is up. Not an Exception, so that nothing on the way takes it for a failure of its own."""


@dataclass(frozen=True, slots=True)
class Call:
    """What Fossil says about a request.

    Attributes:
        repository: The database.
        user: Who is logged in; ``nobody`` for who is not.
        method: HTTP method.
        base: What every address of the page begins with.
        path: What is asked of it: ``search``, ``api/search`` …
        query: What follows the question mark.
        uri: What the addresses of Fossil's own pages begin with.
        nonce: What Fossil's Content-Security-Policy lets scripts through by.
    """

    repository: Path
    user: str
    method: str
    base: str
    path: str
    query: str
    uri: str
    nonce: str

    @property
    def for_programs(self) -> bool:
        """Whether a program asks, which no page would help."""
        return self.path.startswith("api/")


def read_call(environ: Mapping[str, str]) -> Call | None:
    """What Fossil says about a request; None when it was not Fossil that ran this."""
    repository = environ.get("FOSSIL_REPOSITORY", "")
    if not repository or not environ.get("GATEWAY_INTERFACE"):
        return None
    return Call(
        repository=Path(repository).absolute(),
        # Nothing else says who a visitor is: FOSSIL_CAPABILITIES without a login holds those of `anonymous` too.
        user=environ.get("FOSSIL_USER") or NOBODY,
        method=environ.get("REQUEST_METHOD", "GET"),
        base=environ.get("SCRIPT_NAME", "").rstrip("/"),
        path=environ.get("PATH_INFO", "").strip("/") or "search",
        query=environ.get("QUERY_STRING", ""),
        uri=environ.get("FOSSIL_URI", ""),
        nonce=environ.get("FOSSIL_NONCE", ""),
    )


def readable_kinds(call: Call) -> frozenset[Kind]:
    """The kinds that the reader of a request may see."""
    with opened(call.repository) as database:
        capabilities = capabilities_of(database, call.user)
    return frozenset(kind for kind in Kind if may_see(capabilities, kind))


def answer(call: Call, branch: str | None = None) -> Response:
    """Answer a request. Never raises for what a request or a repository can cause, and names no place on this machine.

    Args:
        call: The request.
        branch: The branch whose files are indexed; None for trunk.
    """
    try:
        if _is_overloaded(call):
            return _refusal(call, 503, "the server is busy", _LATER)
        kinds = readable_kinds(call)
        if not kinds:
            return _closed(call)
        try:
            params = parse_query(call.query)
        except UsageError as error:
            return _refusal(call, 400, error.what, error.fix)
        with open(call.repository, branch=branch) as index:
            site = Site(index, PATIENCE)
            request = Request(call.path, params, Reader(kinds), call.base, call.nonce, skin=True)
            if request.get("q") and request.get("mode") != Mode.KEYWORD:
                site.load_model()
            return respond(site, FossilLinks(call.uri), request, call.method)
    except TookTooLong:
        return _refusal(call, 504, "that took too long", "Ask for less, or try again in a moment.")
    except OutcropError as error:
        log.error("%s: %s", call.path, error)
        status = max(500, outcome(error).http)
        return _refusal(call, status, "the repository cannot be searched right now", _LATER)
    except Exception as error:
        log.error("%s", call.path, exc_info=error)
        return _refusal(call, 500, "something went wrong", FIX_FOR_STRANGERS)


def _is_overloaded(call: Call) -> bool:
    """Whether the machine has more to do than Fossil's own setting allows for pages that cost much."""
    with opened(call.repository) as database:
        limit = setting(database, "max-loadavg")
    try:
        return 0 < float(limit or 0) < os.getloadavg()[0]
    except (ValueError, OSError):
        return False


def _closed(call: Call) -> Response:
    """For a reader who may see no kind at all: as for any page of such a repository, the way to the login."""
    if call.user == NOBODY and not call.for_programs:
        here = Addresses(call.base).search() if call.path == "search" else f"{call.base}/{call.path}"
        here += f"?{call.query}" if call.query else ""
        return Response(302, b"", headers={"Location": f"{call.uri}/login?g={quote(here, safe='/')}"})
    return _refusal(call, 403, "you may read nothing that is searched here", "Log in as somebody who may.")


def _refusal(call: Call, status: int, what: str, fix: str) -> Response:
    if call.for_programs:
        return problem(status, what, fix)
    request = Request(call.path, (), Reader(frozenset()), call.base, call.nonce, skin=True)
    return error_page(request, "", status, what, fix)


def encode(response: Response) -> bytes:
    """A response as Fossil takes it from a CGI."""
    fields = dict(response.fields()) | {"X-Robots-Tag": "noindex, nofollow", "X-Content-Type-Options": "nosniff"}
    if not response.body.startswith(_WRAPPED):
        # What Fossil does not put into its skin it sends without its policy, too.
        fields |= {"Content-Security-Policy": "default-src 'none'", "Cache-Control": "private, no-store"}
    head = [f"Status: {response.status} {HTTPStatus(response.status).phrase}"]
    head += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*head, "", ""]).encode("latin-1", "replace") + response.body


def main(arguments: Sequence[str]) -> NoReturn:
    """Answer the request that the environment describes, and end the process."""
    if os.environ.get(CHECK):
        sys.exit(_check())
    _log_to_server()
    _limit_time()
    call = read_call(os.environ)
    if call is None:
        sys.stderr.write("This runs under: fossil server --extroot. See: outcrop fossil --help\n")
        os._exit(2)
    # Compiling the templates takes longer than filling them in, and each request is a process of its own.
    keep_compiled(user_cache_path("outcrop") / "pages")
    out = encode(answer(call, arguments[0] if arguments else None))
    with suppress(OSError):
        # Whoever asked may be gone.
        sys.stdout.buffer.write(out)
        sys.stdout.buffer.flush()
    # A model that is still loading has nobody to wait for it.
    os._exit(0)


def _check() -> int:
    """Load what a question needs, for whoever installs the script. Sends nothing."""
    try:
        embedder = make_embedder(load_settings(None))
        if embedder.address is None:
            embedder.embed_queries(["ready"])
    except OutcropError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _log_to_server() -> None:
    """Send what is logged to the server's error output, unless that is the visitor: under inetd both are one socket."""
    if stat.S_ISSOCK(os.fstat(2).st_mode):
        logging.disable()
    logging.basicConfig(format="outcrop: %(message)s", level=logging.WARNING)


def _limit_time() -> None:
    def stop(*_: object) -> NoReturn:
        # What does not even let go of this exception ends with the next signal.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(GRACE)
        raise TookTooLong

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)


if __name__ == "__main__":
    main(sys.argv[1:])
