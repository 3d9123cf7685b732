"""Consent before text leaves the machine: a wrapper around every embedder that has an address.

It resolves the address, and if that is not this machine, says what would be sent and has somebody agree before the
first of it goes. The embedder inside sends along the route that was judged here and along no other, and without one it
sends nothing at all, so going around this wrapper gets nowhere.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from outcrop.core.model import Space
from outcrop.core.protocols import Embedder, Matrix, override
from outcrop.embedders.http.address import Route, canonical, resolve
from outcrop.errors import BadConfig, EgressRefused, EmbedderUnavailable

PASSAGES = "passages"
QUESTIONS = "questions"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What somebody is asked to agree to.

    Attributes:
        address: Where the text would go.
        model: What it would be embedded by.
        what: ``passages`` of this repository, or ``questions``.
        texts: How many of them; for a question it is the first of this session.
        characters: How long they are together.
        encrypted: Whether nobody in between can read them.
        token: Name of the token that goes along; None for none.
        proxy: The proxy that they pass through, without its login; None for none.
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
        """The same in words, a line each, for whoever asks a person."""
        noun = self.what if self.texts != 1 else self.what[:-1]
        lines = [f"{self.texts:,} {noun} ({self.characters:,} characters) would leave this machine."]
        lines.append(f"to     {self.address}{'' if self.encrypted else '  (not encrypted)'}")
        lines.append(f"model  {self.model}")
        if self.token is not None:
            lines.append(f"token  the one named {self.token}")
        if self.proxy is not None:
            lines.append(f"via    the proxy {self.proxy}")
        if self.what == QUESTIONS:
            lines.append("Later questions of this session go there too.")
        return lines


# Puts a disclosure before a person and returns whether they agree.
Ask = Callable[[Disclosure], bool]


class Consent:
    """What somebody agreed to in this session. One object a session, shared by whatever it opens; thread-safe.

    Agreement is for one address. To passages it covers questions too, not the other way round: who lets a question out
    has not let the repository out. A refusal holds for the session as well.

    Args:
        ask: How to ask; None where nobody is there to answer, so that only addresses allowed beforehand are sent to.
    """

    def __init__(self, ask: Ask | None = None) -> None:
        self._ask = ask
        self._answers: dict[tuple[str, str], bool] = {}
        self._lock = threading.Lock()

    def quiet(self) -> Consent:
        """The same agreement, then and later, but nobody is asked."""
        made = Consent()
        made._answers, made._lock = self._answers, self._lock
        return made

    def require(self, disclosure: Disclosure, allowed: Iterable[str]) -> None:
        """Return if the text may go.

        Args:
            disclosure: What would be sent.
            allowed: Addresses that the user named beforehand.
        """
        with self._lock:
            key = (disclosure.address, disclosure.what)
            if self._answers.get((disclosure.address, PASSAGES)) or self._answers.get(key):
                return
            if disclosure.address in allowed:
                # Allowed is not unannounced.
                log.warning(
                    "sending %d %s (%d characters) to %s",
                    disclosure.texts,
                    disclosure.what,
                    disclosure.characters,
                    disclosure.address,
                )
                self._answers[key] = True
                return
            if key not in self._answers and self._ask is not None:
                self._answers[key] = self._ask(disclosure)
                if self._answers[key]:
                    return
            asked = key in self._answers
        raise EgressRefused(
            f"text would leave this machine for {disclosure.address}, and "
            + ("you said no" if asked else "nobody is there to agree"),
            f"To allow it: --allow-remote {disclosure.address} (or OUTCROP_ALLOW_REMOTE).",
        )


class Addressed(Embedder, Protocol):
    """An embedder that has an address, as it is before it is wrapped."""

    def authorize(self, route: Route) -> None:
        """From now on send, along this route only."""


class Egress(Embedder):
    """Implements the ``Embedder`` port around one that has an address.

    Args:
        inner: What sends.
        consent: What was agreed to in this session.
        allowed: Addresses that the user named beforehand; anything in it that is no address allows nothing.
        proxy: The proxy that the environment names for this address; not used on the way to this machine.
        token: Name of the token that goes along.
    """

    def __init__(
        self,
        inner: Addressed,
        consent: Consent,
        *,
        allowed: Sequence[str] = (),
        proxy: str | None = None,
        token: str | None = None,
    ) -> None:
        self._inner = inner
        self._consent = consent
        self._allowed = frozenset(_addresses(allowed))
        self._proxy = proxy
        self._token = token
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

    @property
    def token(self) -> str | None:
        """Name of the token that goes along."""
        return self._token

    def quiet(self) -> Egress:
        """The same embedder for when nobody may be asked: it sends only what was agreed to before."""
        return Egress(
            self._inner, self._consent.quiet(), allowed=tuple(self._allowed), proxy=self._proxy, token=self._token
        )

    def announce(self, texts: int, characters: int) -> None:
        """Say how much is coming in all, so that the disclosure does not count the first part only."""
        with self._lock:
            self._announced = (texts, characters)

    def locate(self) -> Route:
        """Look the address up. Sends nothing to it."""
        return resolve(str(self.address), self._proxy)

    def is_allowed(self) -> bool:
        """Whether the user named this address beforehand."""
        return canonical(str(self.address)) in self._allowed

    @override
    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._through(texts, PASSAGES, self._inner.embed_passages)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._through(texts, QUESTIONS, self._inner.embed_queries)

    def _through(self, texts: Sequence[str], what: str, embed: Callable[[Sequence[str]], Matrix]) -> Matrix:
        if texts:
            self._authorize(texts, what)
        try:
            return embed(texts)
        except EmbedderUnavailable:
            with self._lock:
                self._route = None  # the name may have moved: look it up, and judge it, anew
            raise

    def _authorize(self, texts: Sequence[str], what: str) -> None:
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
                token=self._token,
                proxy=None if route.proxy is None else _without_login(route.proxy),
            )
            self._consent.require(disclosure, self._allowed)
        self._inner.authorize(route)


def announce(embedder: Embedder, texts: int, characters: int) -> None:
    """Tell an embedder that has an address how much is coming; the others do not mind."""
    if isinstance(embedder, Egress):
        embedder.announce(texts, characters)


def without_asking(embedder: Embedder) -> Embedder:
    """An embedder that never puts a question to a person; most never do."""
    return embedder.quiet() if isinstance(embedder, Egress) else embedder


def _addresses(allowed: Iterable[str]) -> Iterable[str]:
    for each in allowed:
        try:
            yield canonical(each)
        except BadConfig:
            log.warning("%s in allow_remote is not an address and allows nothing", each)


def _without_login(proxy: str) -> str:
    scheme, _, rest = proxy.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
