"""From settings to an embedder that has an address: which one, with what token, through which proxy, under consent.

With ``config.py`` the only reader of the environment. Nothing outside this file makes a network embedder, and it hands
none out unwrapped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from outcrop.config.settings import REPOSITORY_FILE, Settings
from outcrop.embedders.http import endpoint, ollama
from outcrop.embedders.http.consent import Consent, Egress
from outcrop.embedders.http.embedder import NetworkEmbedder
from outcrop.embedders.known_models import ModelOptions
from outcrop.errors import BadConfig, EmbedderUnavailable

KEYRING_SERVICE = "outcrop"


def make(settings: Settings, consent: Consent | None = None, environ: Mapping[str, str] = os.environ) -> Egress:
    """The embedder ``ollama`` or ``endpoint``, wrapped. Sends nothing and looks nothing up.

    Args:
        settings: What is set.
        consent: What was agreed to in this session; None where nobody can be asked.
        environ: The environment, for ``OLLAMA_HOST``, the proxies and the token.
    """
    # A token belongs to the address it was set beside, so it goes to none that comes from elsewhere.
    token = settings.secret_ref if settings.endpoint_url is not None else None
    headers = lru_cache(maxsize=1)(lambda: _headers(settings, token, environ))
    make_inner = _ollama if settings.embedder == "ollama" else _endpoint
    inner = make_inner(settings, headers, environ)
    return Egress(
        inner,
        consent or Consent(),
        allowed=settings.allow_remote,
        proxy=_proxy(inner.address, environ),
        token=token,
    )


def _ollama(
    settings: Settings, headers: Callable[[], Mapping[str, str]], environ: Mapping[str, str]
) -> NetworkEmbedder:
    address = settings.endpoint_url
    host = environ.get("OLLAMA_HOST", "").strip()
    # The variable is the user's own, so it is stronger than the repository's file and weaker than the user's settings.
    if host and (address is None or settings.origins.get("endpoint_url") == REPOSITORY_FILE):
        address = ollama.address_of(host)
    address = (address or ollama.ADDRESS).rstrip("/").removesuffix("/api/embed")
    return ollama.make(settings.model, address, ModelOptions.from_settings(settings), headers)


def _endpoint(
    settings: Settings, headers: Callable[[], Mapping[str, str]], environ: Mapping[str, str]
) -> NetworkEmbedder:
    if settings.endpoint_url is None:
        raise BadConfig("the embedder endpoint has no address", "Set endpoint_url, or OUTCROP_ENDPOINT_URL.")
    if settings.model is None:
        raise BadConfig(f"the embedder at {settings.endpoint_url} has no model", "Set model, or OUTCROP_MODEL.")
    return endpoint.make(settings.model, settings.endpoint_url, ModelOptions.from_settings(settings), headers)


def _headers(settings: Settings, token: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    if token is None:
        if any("{secret}" in value for _, value in settings.headers):
            raise EmbedderUnavailable(
                "headers hold {secret}, but no token is named for this address", "Set secret_ref."
            )
        return dict(settings.headers)
    secret = find_secret(token, environ)
    headers = {name: value.replace("{secret}", secret) for name, value in settings.headers}
    if all("{secret}" not in value for _, value in settings.headers):
        headers["Authorization"] = f"Bearer {secret}"
    return headers


def find_secret(name: str, environ: Mapping[str, str] = os.environ) -> str:
    """The token of this name: an environment variable, or else an entry of the system's keyring.

    Args:
        name: ``NAME``, or ``env:NAME`` or ``keyring:NAME`` to look in one place only.
        environ: The environment.
    """
    place, colon, bare = name.partition(":")
    if not colon or place not in ("env", "keyring"):
        place, bare = "", name
    secret = environ.get(bare) if place != "keyring" else None
    if not secret and place != "env":
        secret = _from_keyring(bare, needed=place == "keyring")
    if not secret or not secret.strip():
        raise EmbedderUnavailable(
            f"there is no token named {bare}",
            f"Set the variable {bare}, or store it: keyring set {KEYRING_SERVICE} {bare}",
        )
    secret = secret.strip()
    if not secret.isascii() or not secret.isprintable():
        raise EmbedderUnavailable(
            f"the token named {bare} holds characters that no header can carry", "Store it again."
        )
    return secret


def _from_keyring(name: str, *, needed: bool) -> str | None:
    try:
        # Imported here: it is an extra, and talks to the desktop when it is loaded.
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        if needed:
            raise EmbedderUnavailable(
                "the package keyring is not installed", "Run: pip install 'outcrop[keyring]'"
            ) from None
        return None
    try:
        found: str | None = keyring.get_password(KEYRING_SERVICE, name)
    except KeyringError as error:
        if needed:
            raise EmbedderUnavailable(
                f"the keyring cannot be read ({type(error).__name__})", "Unlock it, or use a variable."
            ) from None
        return None
    return found


def _proxy(address: str, environ: Mapping[str, str]) -> str | None:
    """What ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` say about an address."""
    parts = urlsplit(address)
    named = {name.lower(): value for name, value in environ.items() if value and name.isupper()}
    named |= {name: value for name, value in environ.items() if value and name.islower()}
    if "REQUEST_METHOD" in environ:
        named.pop("http_proxy", None)  # under CGI that is a header of the request, and the visitor's to choose
    proxy = named.get(f"{parts.scheme}_proxy") or named.get("all_proxy")
    if proxy is None or _goes_around(parts.hostname or "", parts.port, named.get("no_proxy", "")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _goes_around(host: str, port: int | None, exceptions: str) -> bool:
    for each in exceptions.lower().replace(" ", ",").split(","):
        name = each.removeprefix("*").removeprefix(".")
        if each == "*" or (name and (host in (name, name.strip("[]")) or f"{host}:{port}" == name)):
            return True
        if name and host.endswith(f".{name}"):
            return True
    return False
