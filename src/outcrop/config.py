"""Settings: the only reader of settings files and of the environment.

Layers, each stronger than the one before: defaults, ``outcrop.toml`` in the root of the repository, the user's own
file, ``OUTCROP_*`` variables, flags. A stronger layer replaces a value; ``exclude`` and ``kinds`` add up instead, so
that a user's own list never undoes a team's.

A repository is other people's text, so its file is trusted with less: see ``REPOSITORY_SETTINGS`` and
:func:`load_settings`.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from urllib.parse import urlsplit

from platformdirs import user_config_path

from outcrop.errors import BadConfig
from outcrop.model import Kind

REPOSITORY_FILE = "outcrop.toml"
DEFAULT = "default"

REPOSITORY_SETTINGS = frozenset({"embedder", "model", "dim", "endpoint_url", "max_bytes", "exclude", "kinds"})
"""What a repository's own file may set.

Not ``allow_remote`` (it could consent to sending text), ``secret_ref`` (it could name any token of the user), ``store``
(it could overwrite any file) or ``include_secrets`` (it could bring the user's own untracked keys into an index that is
then served, or sent to an embedder).
"""

ADDING = frozenset({"exclude", "kinds"})

MAX_FILE_BYTES = 1 << 20
"""A settings file is a page of text; a link to an endless device must not fill the memory."""

_PREFIX = "OUTCROP_"
_OTHER_VARIABLES = frozenset({"OUTCROP_CONFIG", "OUTCROP_DEBUG"})
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE = re.compile(r"\s*(\d{1,15})\s*(?:([kmg])i?b?|b)?\s*", re.ASCII | re.IGNORECASE)
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SECRET_NAME = re.compile(r"[A-Za-z_][\w.:/@-]{0,199}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set.

    Attributes:
        embedder: Name of the embedder.
        model: Model of that embedder; None for its default.
        dim: Expected length of its vectors; None for the model's own.
        endpoint_url: Where an embedder that has an address sends text.
        secret_ref: Name of the token for that address, never the token.
        allow_remote: Addresses outside this machine that text may go to without asking.
        store: Database file to use instead of the one inside the repository.
        max_bytes: Larger files are not indexed.
        exclude: gitignore patterns of what is not indexed; the last one that matches decides.
        include_secrets: gitignore patterns of files to index although their names say that they hold secrets.
        kinds: Pairs of gitignore pattern and kind; the first one that matches decides.
        origins: For each of the names above, where its value came from.
    """

    embedder: str = "local"
    model: str | None = None
    dim: int | None = None
    endpoint_url: str | None = None
    secret_ref: str | None = None
    allow_remote: tuple[str, ...] = ()
    store: Path | None = None
    max_bytes: int = 1 << 20
    exclude: tuple[str, ...] = ()
    include_secrets: tuple[str, ...] = ()
    kinds: tuple[tuple[str, Kind], ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)


NAMES = tuple(each.name for each in fields(Settings) if each.name != "origins")


def load_settings(
    root: Path | None, flags: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ
) -> Settings:
    """Read every layer and say where each value came from.

    A token that the user named is not used for an address that the repository's file chose: ``secret_ref`` is then
    None, and its origin says why.

    Args:
        root: Root of the repository or folder whose ``outcrop.toml`` counts; None for a source without files.
        flags: Values from a command line by setting name. None and empty lists count as not given.
        environ: The environment.

    Raises:
        BadConfig: A file cannot be read, or a setting is unknown, not allowed there or has an impossible value.
    """
    values: dict[str, object] = {}
    origins = dict.fromkeys(NAMES, DEFAULT)
    for origin, layer in _layers(root, flags or {}, environ):
        for name, raw in layer.items():
            value = _check(name, raw, origin(name))
            earlier = values.get(name)
            if name in ADDING and isinstance(earlier, tuple) and isinstance(value, tuple):
                # Of exclude patterns the last that matches decides, of kinds the first.
                values[name] = value + earlier if name == "kinds" else earlier + value
                origins[name] = f"{origins[name]} + {origin(name)}"
            else:
                values[name] = value
                origins[name] = origin(name)
    if values.get("secret_ref") is not None and origins["endpoint_url"] == REPOSITORY_FILE:
        values["secret_ref"] = None
        origins["secret_ref"] = f"{origins['secret_ref']}, not used: endpoint_url comes from {REPOSITORY_FILE}"
    return Settings(**values, origins=origins)  # type: ignore[arg-type]  # _check gave each name its own type


def user_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's own settings file, whether or not it exists."""
    named = environ.get("OUTCROP_CONFIG")
    return _home(named).absolute() if named else user_config_path("outcrop") / "config.toml"


_Layer = tuple[Callable[[str], str], Mapping[str, object]]


def _layers(root: Path | None, flags: Mapping[str, object], environ: Mapping[str, str]) -> Iterator[_Layer]:
    """Weakest first: how the layer names the origin of a setting, and its raw values."""
    if root is not None and (found := _read(root / REPOSITORY_FILE)) is not None:
        _refuse_in_repository(root / REPOSITORY_FILE, found)
        yield lambda _: REPOSITORY_FILE, found

    own = user_file(environ)
    found = None if str(own) == os.devnull else _read(own)
    if found is not None:
        _refuse_unknown(own, found)
        yield lambda _: str(own), found
    elif environ.get("OUTCROP_CONFIG") and str(own) != os.devnull:
        raise BadConfig(f"OUTCROP_CONFIG names {own}, which does not exist", "Correct or unset the variable.")

    yield _variable, _from_environment(environ)
    yield _flag, {name: value for name, value in flags.items() if value is not None and value != ()}


def _variable(name: str) -> str:
    return _PREFIX + name.upper()


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _read(path: Path) -> dict[str, object] | None:
    """The file as TOML, or None where there is none."""
    try:
        state = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_FILE_BYTES:
        raise BadConfig(
            f"{path} is not a settings file: it should be a regular file of at most {MAX_FILE_BYTES:,} bytes",
            "Replace or remove it.",
        )
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        # Editors on Windows put a byte order mark in front; it says nothing and harms nothing.
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadConfig(f"{path} is not UTF-8 text (line {line})", "Save it as UTF-8.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadConfig(f"{path} is not valid TOML: {error}", "Correct it; docs/cli.md shows a whole file.") from error


def _unreadable(path: Path, error: OSError) -> BadConfig:
    return BadConfig(f"{path} cannot be read: {error.strerror or error}", "Check its permissions.")


def _refuse_in_repository(path: Path, found: Mapping[str, object]) -> None:
    _refuse_unknown(path, found)
    for name in found:
        if name not in REPOSITORY_SETTINGS:
            raise BadConfig(
                f"{path} sets {name}, which a repository's own file may not set",
                f"Set it in {user_file()}, as {_variable(name)} or with {_flag(name)}. "
                f"Allowed here: {', '.join(sorted(REPOSITORY_SETTINGS))}.",
            )
    model = found.get("model")
    if isinstance(model, str) and (model.startswith((".", "/", "~")) or "\\" in model or ".." in model.split("/")):
        raise BadConfig(
            f"{path} sets model to a path ({model}), which a repository's own file may not do: loading a model can "
            "run its code",
            f"Set it in {user_file()}, as {_variable('model')} or with {_flag('model')}.",
        )


def _refuse_unknown(path: Path, found: Mapping[str, object]) -> None:
    for name in found:
        if name not in NAMES:
            raise BadConfig(f"{path}: there is no setting {name!r}{_nearest(name, NAMES)}", _allowed(NAMES))


def _from_environment(environ: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for variable, text in environ.items():
        if not variable.startswith(_PREFIX) or variable in _OTHER_VARIABLES:
            continue
        name = variable.removeprefix(_PREFIX).lower()
        if name not in NAMES:
            # Others may have variables with this prefix; only what looks like a slip of the pen is worth stopping for.
            if guess := _nearest(name.upper(), [each.upper() for each in NAMES]):
                raise BadConfig(f"{variable} is not a setting{guess}", _allowed([_variable(each) for each in NAMES]))
        elif name == "kinds":
            found[name] = dict(_pair(item) for item in _split(text))
        elif name in ("allow_remote", "exclude", "include_secrets"):
            found[name] = _split(text)
        elif name == "store" and text:
            found[name] = _home(text).absolute()
        elif text:
            found[name] = text
    return found


def _split(text: str) -> list[str]:
    """A list in a variable: one item a line, or between commas where it is one line."""
    return [item.strip() for item in text.split("\n" if "\n" in text else ",") if item.strip()]


def _pair(item: str) -> tuple[str, str]:
    pattern, equals, kind = item.rpartition("=")
    if not equals:
        raise BadConfig(f"OUTCROP_KINDS: {item!r} is not PATTERN=KIND", "Example: OUTCROP_KINDS='notes/**=doc'")
    return pattern.strip(), kind.strip()


def _nearest(name: str, among: list[str] | tuple[str, ...]) -> str:
    # Imported here because start-up time matters and only a mistake needs it.
    from difflib import get_close_matches

    close = get_close_matches(name, among, n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""


def _allowed(names: list[str] | tuple[str, ...]) -> str:
    return f"Allowed: {', '.join(names)}."


class _Expected(ValueError):
    """A value is not what its setting takes; the text says what that is."""


def _check(name: str, raw: object, origin: str) -> object:
    try:
        return _CHECKS[name](raw)
    except _Expected as error:
        # A pasted token or password is the likely mistake there, and must not be printed.
        hidden = name == "secret_ref" or (name == "endpoint_url" and "@" in str(raw))
        shown = "this value" if hidden else _shorten(raw)
        raise BadConfig(f"{origin}: {name} cannot be {shown}", f"It takes {error}.") from error


def _shorten(raw: object) -> str:
    text = ascii(raw)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _text(raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip() or _UNPRINTABLE.search(raw):
        raise _Expected("one line of text")
    return raw.strip()


def _dim(raw: object) -> int:
    number = _whole(raw)
    if not 1 <= number <= 65536:
        raise _Expected("a whole number from 1 to 65536")
    return number


def _whole(raw: object) -> int:
    if isinstance(raw, str) and re.fullmatch(r"\s*\d{1,15}\s*", raw, re.ASCII):
        return int(raw)
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise _Expected("a whole number")
    return raw


def _size(raw: object) -> int:
    if isinstance(raw, str) and (match := _SIZE.fullmatch(raw)):
        number = int(match[1]) * _UNITS[(match[2] or "").lower()]
    else:
        number = raw if isinstance(raw, int) and not isinstance(raw, bool) else 0
    if number < 1:
        raise _Expected("a number of bytes above 0, such as 1048576 or '2 MiB'")
    return number


def _url(raw: object) -> str:
    text = _text(raw)
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise _Expected("an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise _Expected("an address without a name or password in it; secret_ref names the token")
    return text


def _secret(raw: object) -> str:
    if not isinstance(raw, str) or not _SECRET_NAME.fullmatch(raw):
        raise _Expected("the name of a token (a variable, or an entry of the keyring), not the token itself")
    return raw


def _texts(raw: object) -> tuple[str, ...]:
    items = [raw] if isinstance(raw, str) else raw
    if not isinstance(items, list | tuple):
        raise _Expected("a list of texts")
    return tuple(dict.fromkeys(_text(item) for item in items))


def _store(raw: object) -> Path:
    if not isinstance(raw, str | Path) or not str(raw) or "\0" in str(raw):
        raise _Expected("the path of a file")
    path = _home(raw)
    if not path.is_absolute():
        raise _Expected("an absolute path")
    return path


def _home(raw: str | Path) -> Path:
    try:
        return Path(raw).expanduser()
    except RuntimeError:  # "~nobody": no such user, so it is a file name like any other
        return Path(raw)


def _kinds(raw: object) -> tuple[tuple[str, Kind], ...]:
    if not isinstance(raw, Mapping):
        raise _Expected("a table of pattern = kind")
    pairs = []
    for pattern, kind in raw.items():
        if kind not in list(Kind):
            raise _Expected(f"a table of pattern = kind, each kind one of {', '.join(Kind)}")
        pairs.append((_text(pattern), Kind(kind)))
    return tuple(pairs)


_CHECKS: dict[str, Callable[[object], object]] = {
    "embedder": _text,
    "model": _text,
    "dim": _dim,
    "endpoint_url": _url,
    "secret_ref": _secret,
    "allow_remote": _texts,
    "store": _store,
    "max_bytes": _size,
    "exclude": _texts,
    "include_secrets": _texts,
    "kinds": _kinds,
}
