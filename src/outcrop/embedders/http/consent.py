"""Consent before text leaves the machine: a wrapper around every embedder that has an address.

It resolves the address and, where that is another machine, discloses what would be sent and asks before the first of it
goes. The embedder inside sends along the route that was judged here and along no other; without one it sends nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcrop.core.model import Space
from outcrop.core.protocols import Embedder, Matrix, override
from outcrop.embedders.http.address import Route, canonical, resolve
from outcrop.errors import BadConfig, EgressRefused, EmbedderUnavailable, OutcropError

if TYPE_CHECKING:
    from outcrop.embedders.http.embedder import HttpEmbedder

PASSAGES = "passages"
QUESTIONS = "questions"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What a user is asked to agree to.

    ``what`` is ``passages`` or ``questions``, ``texts`` their number and ``characters`` their length together.
    ``token`` is the name of the token that goes along, ``proxy`` the proxy's address without its login.
    """

    address: str
    model: str
    what: str
    texts: int
    characters: int
    encrypted: bool
    token: str | None
    proxy: str | None

    def lines(self) -> list[str]:
        noun = self.what if self.texts != 1 else self.what[:-1]
        lines = [
            f"{self.texts:,} {noun} ({self.characters:,} characters) would leave this machine.",
            f"to     {self.address}{'' if self.encrypted else '  (not encrypted)'}",
            f"model  {self.model}",
        ]
        if self.token is not None:
            lines.append(f"token  the one named {self.token}")
        if self.proxy is not None:
            lines.append(f"via    the proxy {self.proxy}")
        if self.what == QUESTIONS:
            lines.append("Later questions of this session go there too.")
        return lines


# Shows a disclosure to a person and returns whether they agree.
Ask = Callable[[Disclosure], bool]


class Consent:
    """What the user agreed to in this session, shared by every index that it opens; thread-safe.

    Agreement is for one address. To passages it covers questions too, not the other way round: a question is not the
    repository. A refusal holds for the session as well. Without ``ask`` only addresses that the user allowed beforehand
    get text.
    """

    def __init__(self, ask: Ask | None = None) -> None:
        self._ask = ask
        self._answers: dict[tuple[str, str], bool] = {}
        self._lock = threading.Lock()

    def without_asking(self) -> Consent:
        """The same agreement, now and later, but the user is not asked."""
        shared = Consent()
        shared._answers, shared._lock = self._answers, self._lock
        return shared

    def require(self, disclosure: Disclosure, allowed: Iterable[str]) -> None:
        """Return if the text may go; ``allowed`` are addresses that the user allowed beforehand."""
        address = disclosure.address
        key = (address, disclosure.what)
        with self._lock:
            if self._answers.get((address, PASSAGES)) or self._answers.get(key):
                return
            if address in allowed:
                # Allowed text is announced all the same.
                counts = disclosure.texts, disclosure.what, disclosure.characters
                log.warning("sending %d %s (%d characters) to %s", *counts, address)
                self._answers[key] = True
            elif key not in self._answers and self._ask is not None:
                self._answers[key] = self._ask(disclosure)
            if self._answers.get(key):
                return
            reason = "and you said no" if key in self._answers else "and there is no consent"
        raise EgressRefused(
            f"text would leave this machine for {address}, {reason}",
            f"To allow it: --allow-remote {address} (or OUTCROP_ALLOW_REMOTE).",
        )


class Egress(Embedder):
    """Implements the ``Embedder`` port around an embedder that has an address.

    The user allowed text to go to the addresses in ``allowed`` beforehand. ``token`` is the name of the token. While
    there is a ``problem`` with the settings, nothing is sent.
    """

    def __init__(
        self,
        inner: HttpEmbedder,
        consent: Consent,
        *,
        allowed: Sequence[str] = (),
        proxy: str | None = None,
        token: str | None = None,
        problem: OutcropError | None = None,
    ) -> None:
        self.token = token
        self._problem = problem
        self._inner = inner
        self._consent = consent
        self._allowed = frozenset(_addresses(allowed))
        self._proxy = proxy
        self._route: Route | None = None
        self._announced: tuple[int, int] | None = None
        self._lock = threading.Lock()

    @property
    @override
    def space(self) -> Space:
        return self._inner.space

    @property
    @override
    def address(self) -> str | None:
        return self._inner.address

    @property
    @override
    def max_tokens(self) -> int:
        return self._inner.max_tokens

    def without_asking(self) -> Egress:
        """The same embedder where no user can be asked: it sends only what was agreed to before."""
        return Egress(
            self._inner,
            self._consent.without_asking(),
            allowed=tuple(self._allowed),
            proxy=self._proxy,
            token=self.token,
            problem=self._problem,
        )

    def without_retries(self) -> Egress:
        """The same embedder, which tries each request once."""
        return Egress(
            self._inner.without_retries(),
            self._consent,
            allowed=tuple(self._allowed),
            proxy=self._proxy,
            token=self.token,
            problem=self._problem,
        )

    def announce(self, texts: int, characters: int) -> None:
        """Say how much is coming in all, so that the disclosure does not count the first part only."""
        with self._lock:
            self._announced = (texts, characters)

    def locate(self) -> Route:
        """Look the address up. Sends nothing to it."""
        return resolve(str(self.address), self._proxy)

    def is_allowed(self) -> bool:
        return canonical(str(self.address)) in self._allowed

    @override
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, PASSAGES, self._inner.embed_passages)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, QUESTIONS, self._inner.embed_queries)

    def _embed(self, texts: Sequence[str], what: str, embed: Callable[[Sequence[str]], Matrix]) -> Matrix:
        if texts:
            self._authorize(texts, what)
        try:
            return embed(texts)
        except EmbedderUnavailable:
            with self._lock:
                self._route = None  # the name may have moved: look it up, and judge it, anew
            raise

    def _authorize(self, texts: Sequence[str], what: str) -> None:
        if self._problem is not None:
            raise EgressRefused(f"nothing is sent to {self.address}, since {self._problem.what}", self._problem.fix)
        with self._lock:
            if self._route is None:
                self._route = self.locate()
            route, announced = self._route, self._announced
        if not route.loopback:
            count, characters = len(texts), sum(map(len, texts))
            if what == PASSAGES and announced is not None:
                count, characters = max(count, announced[0]), max(characters, announced[1])
            disclosure = Disclosure(
                address=route.address,
                model=self.space.model,
                what=what,
                texts=count,
                characters=characters,
                encrypted=route.scheme == "https",
                token=self.token,
                proxy=None if route.proxy is None else _without_login(route.proxy),
            )
            self._consent.require(disclosure, self._allowed)
        self._inner.authorize(route)


def announce(embedder: Embedder, texts: int, characters: int) -> None:
    """Tell an embedder that has an address how much is coming; others ignore it."""
    if isinstance(embedder, Egress):
        embedder.announce(texts, characters)


def without_retries(embedder: Embedder) -> Embedder:
    """An embedder that tries each request once; those without an address have no requests."""
    return embedder.without_retries() if isinstance(embedder, Egress) else embedder


def without_asking(embedder: Embedder) -> Embedder:
    """An embedder that asks the user nothing; those without an address never do."""
    return embedder.without_asking() if isinstance(embedder, Egress) else embedder


def _addresses(allowed: Iterable[str]) -> Iterable[str]:
    for each in allowed:
        try:
            yield canonical(each)
        except BadConfig:
            log.warning("%s in allow_remote is not an address and allows nothing", each)


def _without_login(proxy: str) -> str:
    scheme, _, rest = proxy.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
