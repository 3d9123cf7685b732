"""Where an address leads: to this machine or to another, decided by what its name resolves to and not by its spelling.

A connection goes to the IP addresses that were judged here and never looks the name up again, so a name that changes
its answer between the judgement and the connection (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import threading
from dataclasses import dataclass
from urllib.parse import urlsplit

from outcrop.errors import BadConfig, EmbedderTimeout, EmbedderUnavailable

# Seconds; the system's resolver takes no timeout and may wait for half a minute.
RESOLVE_TIMEOUT = 5.0

DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Route:
    """How an address is reached.

    Attributes:
        address: In its canonical spelling (see :func:`canonical`).
        host: The name or IP address in it, without brackets.
        ips: The IP addresses that were judged, in the order to try them; empty where only the proxy knows the name.
    """

    address: str
    scheme: str
    host: str
    port: int
    ips: tuple[str, ...]
    loopback: bool
    proxy: str | None = None


def canonical(address: str) -> str:
    """The one spelling of an address: lower-case host, no default port, no slash at the end, nothing after ``#``.

    Two addresses are the same for consent when this is equal, so the path and the query count: on a shared host they
    say whose account the text goes to.
    """
    try:
        parts = urlsplit(address.strip())
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        scheme, host, port, parts = "", None, None, urlsplit("")
    if scheme not in DEFAULT_PORTS or not host or port == 0 or any(ord(each) <= 32 for each in address.strip()):
        shown = "this" if "@" in address else repr(address)  # there may be a password before the @
        raise BadConfig(f"{shown} is not an address", "It begins with http:// or https:// and names a host.")
    if parts.username is not None or parts.password is not None:
        raise BadConfig("an address may not hold a name or password", "Name the token with secret_ref instead.")
    host = _host(host)
    shown = f"[{host}]" if ":" in host else host
    at = "" if port in (None, DEFAULT_PORTS[scheme]) else f":{port}"
    query = f"?{parts.query}" if parts.query else ""
    return f"{scheme}://{shown}{at}{parts.path.rstrip('/')}{query}"


def _host(host: str) -> str:
    """A name in ASCII without the dot at its end, or an IPv6 address in its shortest form."""
    if ":" in host:
        ip, percent, zone = host.partition("%")
        with contextlib.suppress(ValueError):
            return f"{ipaddress.IPv6Address(ip).compressed}{percent}{zone}"
    with contextlib.suppress(UnicodeError):
        name = (host if host.isascii() else host.encode("idna").decode("ascii")).rstrip(".")
        if re.fullmatch(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", name):
            return name
    raise BadConfig(f"{host!r} is not the name of a host", "Correct the address.")


def resolve(address: str, proxy: str | None = None, timeout: float = RESOLVE_TIMEOUT) -> Route:
    """Look an address up and judge where it leads. Sends nothing to it; the DNS server may be asked for its name.

    ``proxy`` is what the environment names for this address; an address of this machine ignores it.
    """
    address = canonical(address)
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
    try:
        ips = _look_up(host, port, timeout)
    except EmbedderUnavailable:
        if proxy is None:
            raise
        ips = ()  # inside many companies only the proxy can look names up
    loopback_ips = [_loopback_ip(ip) for ip in ips]
    here = tuple(dict.fromkeys(ip for ip in loopback_ips if ip is not None))
    if here and None not in loopback_ips:
        return Route(address, parts.scheme, host, port, here, loopback=True)
    return Route(address, parts.scheme, host, port, ips, loopback=False, proxy=proxy)


def _loopback_ip(ip: str) -> str | None:
    """The loopback address that this one means, or None for another machine's.

    Servers listen at the unspecified address (0.0.0.0), and a connection to it reaches this machine on Linux; the
    loopback address does so everywhere.
    """
    found = ipaddress.ip_address(ip.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if found.is_unspecified:
        return "127.0.0.1" if found.version == 4 else "::1"
    return str(found) if found.is_loopback else None


def _look_up(host: str, port: int, timeout: float) -> tuple[str, ...]:
    answer: list[tuple[str, ...]] = []

    def ask_resolver() -> None:
        with contextlib.suppress(OSError, UnicodeError):  # the second: a label of the name is too long
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answer.append(tuple(dict.fromkeys(str(entry[4][0]) for entry in entries)))

    thread = threading.Thread(target=ask_resolver, daemon=True, name="look-up")
    thread.start()
    thread.join(timeout)
    if thread.is_alive():
        raise EmbedderTimeout(f"looking up the host {host} took more than {timeout:g} s", "Check the network.")
    if answer and answer[0]:
        return answer[0]
    raise EmbedderUnavailable(f"there is no host {host}", "Check the address and the network.")
