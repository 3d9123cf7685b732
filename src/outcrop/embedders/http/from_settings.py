"""From settings to an embedder that has an address: which one, with what token, through which proxy, under consent.

Only ``config`` and this module read the environment. Nothing else makes an HTTP embedder, and this module returns none
unwrapped.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from outcrop.config.settings import REPOSITORY_FILE, Settings
from outcrop.embedders.http import ollama
from outcrop.embedders.http.consent import Consent, Egress
from outcrop.embedders.http.embedder import HttpEmbedder
from outcrop.embedders.http.endpoint import Dialect, refuse_secrets
from outcrop.errors import BadConfig, EmbedderUnavailable

KEYRING_SERVICE = "outcrop"


def make(settings: Settings, consent: Consent | None = None, environ: Mapping[str, str] = os.environ) -> Egress:
    """The embedder ``ollama`` or ``endpoint``, wrapped. Sends nothing and looks nothing up.

    ``consent`` is None where no user can be asked.
    """
    # A token belongs to the address it was set beside, so it goes to none that comes from elsewhere.
    token = settings.secret_ref if settings.endpoint_url is not None else None
    if settings.embedder == "ollama":
        dialect: Dialect = ollama.Ollama(settings.model)
        address = _ollama_address(settings, environ)
    elif settings.endpoint_url is None:
        raise BadConfig("the embedder endpoint has no address", "Set endpoint_url, or OUTCROP_ENDPOINT_URL.")
    elif settings.model is None:
        raise BadConfig(f"the embedder at {settings.endpoint_url} has no model", "Set model, or OUTCROP_MODEL.")
    else:
        refuse_secrets(settings.endpoint_url)
        dialect, address = Dialect(settings.model), settings.endpoint_url
    headers = lru_cache(maxsize=1)(lambda: _headers(settings, token, environ))
    inner = HttpEmbedder(dialect, address, settings, headers)
    return Egress(
        inner,
        consent or Consent(),
        allowed=settings.allow_remote,
        proxy=_proxy(inner.address, environ),
        token=token,
        problem=settings.problem,
    )


def _ollama_address(settings: Settings, environ: Mapping[str, str]) -> str:
    address = settings.endpoint_url
    host = environ.get("OLLAMA_HOST", "").strip()
    # The variable is the user's own, so it is stronger than the repository's file and weaker than the user's settings.
    if host and (address is None or settings.origins.get("endpoint_url") == REPOSITORY_FILE):
        address = ollama.address_of(host)
    return (address or ollama.ADDRESS).rstrip("/").removesuffix(ollama.Ollama.path)


def _headers(settings: Settings, token: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    takes_token = any("{secret}" in value for _, value in settings.headers)
    if token is None:
        if takes_token:
            raise EmbedderUnavailable(
                "headers hold {secret}, but no token is named for this address", "Set secret_ref."
            )
        return dict(settings.headers)
    secret = find_secret(token, environ)
    headers = {name: value.replace("{secret}", secret) for name, value in settings.headers}
    return headers if takes_token else headers | {"Authorization": f"Bearer {secret}"}


def find_secret(name: str, environ: Mapping[str, str] = os.environ) -> str:
    """The token of this name: an environment variable, or else an entry of the system's keyring.

    ``env:NAME`` and ``keyring:NAME`` look in one place only.
    """
    place, colon, bare = name.partition(":")
    if not colon or place not in ("env", "keyring"):
        place, bare = "", name
    secret = environ.get(bare) if place != "keyring" else None
    if not secret and place != "env":
        secret = _from_keyring(bare, required=place == "keyring")
    secret = (secret or "").strip()
    if not secret:
        raise EmbedderUnavailable(
            f"there is no token named {bare}",
            f"Set the variable {bare}, or store it: keyring set {KEYRING_SERVICE} {bare}",
        )
    if not secret.isascii() or not secret.isprintable():
        raise EmbedderUnavailable(
            f"the token named {bare} holds characters that no header can carry", "Store it again."
        )
    return secret


def _from_keyring(name: str, *, required: bool) -> str | None:
    try:
        # Imported here: it is an extra, and talks to the desktop when it is loaded.
        import keyring
        from keyring.errors import KeyringError

        secret: str | None = keyring.get_password(KEYRING_SERVICE, name)
    except ImportError:
        problem = "the package keyring is not installed", "Run: pip install 'outcrop[keyring]'"
    except KeyringError as error:
        problem = f"the keyring cannot be read ({type(error).__name__})", "Unlock it, or use a variable."
    else:
        return secret
    if required:
        raise EmbedderUnavailable(*problem)
    return None


def _proxy(address: str, environ: Mapping[str, str]) -> str | None:
    """What ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` say about an address."""
    parts = urlsplit(address)
    named = {name.lower(): value for name, value in environ.items() if value and name.isupper()}
    named |= {name: value for name, value in environ.items() if value and name.islower()}
    if "REQUEST_METHOD" in environ:
        named.pop("http_proxy", None)  # under CGI that is a header of the request, and the visitor's to choose
    proxy = named.get(f"{parts.scheme}_proxy") or named.get("all_proxy")
    if proxy is None or _bypasses_proxy(parts.hostname or "", parts.port, named.get("no_proxy", "")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _bypasses_proxy(host: str, port: int | None, exceptions: str) -> bool:
    for each in exceptions.lower().replace(" ", ",").split(","):
        name = each.removeprefix("*").removeprefix(".")
        if each == "*" or (name and (host in (name, name.strip("[]")) or f"{host}:{port}" == name)):
            return True
        if name and host.endswith(f".{name}"):
            return True
    return False
