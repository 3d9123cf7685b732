"""Settings in layers, each stronger than the one before: defaults, ``outcrop.toml`` in the root of the repository, the
user's own file, ``OUTCROP_*`` variables, flags. A stronger layer replaces a value; ``exclude`` and ``kinds`` add up, so
that a user's list never undoes a team's.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from platformdirs import user_config_path

from outcrop.config.validation import check, home
from outcrop.core.model import DEFAULT_HISTORY, History, Kind
from outcrop.errors import BadConfig

REPOSITORY_FILE = "outcrop.toml"
DEFAULT = "default"

# What a repository's own file may set; it is other people's text. Not ``allow_remote`` (it could consent to sending
# text), ``secret_ref`` (it could name any token of the user), ``headers`` (they say where the token goes), ``store``
# (it could overwrite any file) or ``include_secrets`` (it could bring the user's untracked keys into an index that is
# then served, or sent to an embedder).
REPOSITORY_SETTINGS = frozenset(
    {"embedder", "model", "dim", "endpoint_url", "query_prefix", "passage_prefix", "max_tokens", "batch", "timeout"}
    | {"max_bytes", "exclude", "kinds", "raw_cells", "corpora", "history"}
)

ADDITIVE = frozenset({"exclude", "kinds"})

# More is no settings file: a link to an endless device must not fill the memory.
MAX_FILE_BYTES = 1 << 20

_PREFIX = "OUTCROP_"
_OTHER_VARIABLES = frozenset({"OUTCROP_CONFIG", "OUTCROP_DEBUG"})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set.

    Attributes:
        dim: Expected length of the vectors; None for the model's own.
        endpoint_url: Where an embedder that has an address sends text.
        secret_ref: Name of the token for that address, never the token.
        headers: Sent to that address with each request; ``{secret}`` means the token.
        query_prefix: Put before a question; None for what the model is known to want.
        max_tokens: How much of a text the model reads; None for what is known of it.
        batch: Texts in one request; None for what suits the embedder.
        allow_remote: Addresses outside this machine that text may go to without asking.
        store: Database file to use instead of the one inside the repository.
        exclude: gitignore patterns of what is not indexed; the last one that matches decides.
        include_secrets: gitignore patterns of files to index although their names say that they hold secrets.
        kinds: Pairs of gitignore pattern and kind; the first one that matches decides.
        history: How many of the newest commits are indexed, or ``all``.
        corpora: Custom corpora: pairs of a name and the files, folders and patterns that belong to it.
        origins: For each of the names above, where its value came from.
        problem: Why the user's own file could not be used, so that nothing may be built, changed or sent.
    """

    embedder: str = "local"
    model: str | None = None
    dim: int | None = None
    endpoint_url: str | None = None
    secret_ref: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    query_prefix: str | None = None
    passage_prefix: str | None = None
    max_tokens: int | None = None
    batch: int | None = None
    timeout: int | None = None
    allow_remote: tuple[str, ...] = ()
    store: Path | None = None
    max_bytes: int = 1 << 20
    exclude: tuple[str, ...] = ()
    include_secrets: tuple[str, ...] = ()
    kinds: tuple[tuple[str, Kind], ...] = ()
    raw_cells: bool = False
    history: History = DEFAULT_HISTORY
    corpora: tuple[tuple[str, tuple[str, ...]], ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    problem: BadConfig | None = None


NAMES = tuple(each.name for each in fields(Settings) if each.name not in ("origins", "problem"))


def load_settings(
    root: Path | None, flags: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ
) -> Settings:
    """Read every layer and say where each value came from.

    A token that the user named is not used for an address that the repository's file chose, nor are headers:
    ``secret_ref`` is then None, ``headers`` empty, and their origins say why. ``root`` is the folder whose
    ``outcrop.toml`` counts; a flag that is None or empty counts as not given.
    """
    values: dict[str, object] = {}
    origins = dict.fromkeys(NAMES, DEFAULT)
    for origin, layer in _layers(root, flags or {}, environ):
        for name, raw in layer.items():
            value = check(name, raw, origin(name))
            earlier = values.get(name)
            if name in ADDITIVE and isinstance(earlier, tuple) and isinstance(value, tuple):
                # Of exclude patterns the last that matches decides, of kinds the first.
                values[name] = value + earlier if name == "kinds" else earlier + value
                origins[name] = f"{origins[name]} + {origin(name)}"
            else:
                values[name] = value
                origins[name] = origin(name)
    if origins["endpoint_url"] == REPOSITORY_FILE:
        for name in {"secret_ref", "headers"} & values.keys():
            del values[name]
            origins[name] = f"{origins[name]}, not used: endpoint_url comes from {REPOSITORY_FILE}"
    return Settings(**values, origins=origins)  # type: ignore[arg-type]  # check gave each name its own type


def load_usable_settings(
    root: Path | None, flags: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ
) -> Settings:
    """As :func:`load_settings`; where only the user's own file is to blame, without it, and with ``problem``."""
    try:
        return load_settings(root, flags, environ)
    except BadConfig as error:
        try:
            rest = load_settings(root, flags, {**environ, "OUTCROP_CONFIG": os.devnull})
        except BadConfig:
            raise error from None
        return replace(rest, problem=error)


def user_file(environ: Mapping[str, str] = os.environ) -> Path:
    named = environ.get("OUTCROP_CONFIG")
    return home(named).absolute() if named else user_config_path("outcrop") / "config.toml"


_Layer = tuple[Callable[[str], str], Mapping[str, object]]


def _layers(root: Path | None, flags: Mapping[str, object], environ: Mapping[str, str]) -> Iterator[_Layer]:
    """Weakest first: how the layer names the origin of a setting, and its raw values."""
    own = user_file(environ)
    if root is not None and (values := _read(root / REPOSITORY_FILE)) is not None:
        _refuse_in_repository(root / REPOSITORY_FILE, values, own)
        yield lambda _: REPOSITORY_FILE, values

    if str(own) != os.devnull:
        if (values := _read(own)) is not None:
            _refuse_unknown(own, values)
            yield lambda _: str(own), values
        elif environ.get("OUTCROP_CONFIG"):
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
        if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_FILE_BYTES:
            raise BadConfig(
                f"{path} is not a settings file: it should be a regular file of at most {MAX_FILE_BYTES:,} bytes",
                "Replace or remove it.",
            )
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror or error}", "Check its permissions.") from error
    try:
        # Editors on Windows put a byte order mark in front.
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadConfig(f"{path} is not UTF-8 text (line {line})", "Save it as UTF-8.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadConfig(f"{path} is not valid TOML: {error}", "Correct it; docs/cli.md shows a whole file.") from error


def _refuse_in_repository(path: Path, values: Mapping[str, object], own: Path) -> None:
    _refuse_unknown(path, values)
    for name in values:
        if name not in REPOSITORY_SETTINGS:
            raise BadConfig(
                f"{path} sets {name}, which a repository's own file may not set",
                f"Set it in {own}, as {_variable(name)} or with {_flag(name)}. "
                f"Allowed here: {', '.join(sorted(REPOSITORY_SETTINGS))}.",
            )
    model = values.get("model")
    if isinstance(model, str) and (model.startswith((".", "/", "~")) or "\\" in model or ".." in model.split("/")):
        raise BadConfig(
            f"{path} sets model to a path ({model}), which a repository's own file may not do: to load a model can run "
            "its code",
            f"Set it in {own}, as {_variable('model')} or with {_flag('model')}.",
        )


def _refuse_unknown(path: Path, values: Mapping[str, object]) -> None:
    for name in values:
        if name not in NAMES:
            raise BadConfig(f"{path}: there is no setting {name!r}{_nearest(name, NAMES)}", _allowed(NAMES))


def _from_environment(environ: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for variable, text in environ.items():
        if not variable.startswith(_PREFIX) or variable in _OTHER_VARIABLES:
            continue
        name = variable.removeprefix(_PREFIX).lower()
        if name not in NAMES:
            # Other programs may have variables with this prefix; only a likely typing error is refused.
            if guess := _nearest(name.upper(), [each.upper() for each in NAMES]):
                raise BadConfig(f"{variable} is not a setting{guess}", _allowed([_variable(each) for each in NAMES]))
        elif name in ("kinds", "headers"):
            found[name] = dict(_pair(variable, item, name) for item in _split(text))
        elif name == "corpora":
            lists: dict[str, list[str]] = {}
            for item in _split(text):
                corpus, pattern = _pair(variable, item, name)
                lists.setdefault(corpus, []).append(pattern)
            found[name] = lists
        elif name in ("allow_remote", "exclude", "include_secrets"):
            found[name] = _split(text)
        elif name == "store" and text:
            found[name] = home(text).absolute()
        elif text:
            found[name] = text
    return found


def _split(text: str) -> list[str]:
    """The items of a list in a variable: one a line, or between commas where it is one line."""
    return [item.strip() for item in text.split("\n" if "\n" in text else ",") if item.strip()]


# The form of a table's item in a variable, and an example.
_PAIRS = {
    "kinds": ("PATTERN=KIND", "notes/**=doc"),
    "headers": ("NAME=VALUE", "api-key={secret}"),
    "corpora": ("NAME=PATTERN", "notebooks=lab/**/*.ipynb"),
}


def _pair(variable: str, item: str, name: str) -> tuple[str, str]:
    """The two sides of the equals sign. A message does not repeat a header, whose value may be a token."""
    left, equals, right = item.rpartition("=") if name == "kinds" else item.partition("=")
    if not equals:
        form, example = _PAIRS[name]
        shown = "an item" if name == "headers" else repr(item)
        raise BadConfig(f"{variable}: {shown} is not {form}", f"Example: {variable}='{example}'")
    return left.strip(), right.strip()


def _nearest(name: str, among: list[str] | tuple[str, ...]) -> str:
    # Imported here because start-up time matters and only a mistake needs it.
    from difflib import get_close_matches

    close = get_close_matches(name, among, n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""


def _allowed(names: list[str] | tuple[str, ...]) -> str:
    return f"Allowed: {', '.join(names)}."
