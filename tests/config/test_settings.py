"""Settings: which layer wins, who may set what, and what a mistake says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.config.settings import DEFAULT, NAMES, REPOSITORY_SETTINGS, Settings, load_settings, user_file
from outcrop.core.model import Kind
from outcrop.errors import BadConfig


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "own.toml"


def load(
    root: Path | None, own: Path | None = None, flags: dict[str, object] | None = None, **variables: str
) -> Settings:
    environ = {"OUTCROP_CONFIG": str(own) if own else os.devnull}
    return load_settings(root, flags, environ | {f"OUTCROP_{name}": value for name, value in variables.items()})


def test_without_any_layer_everything_is_the_default(root: Path) -> None:
    settings = load(root)
    assert settings == Settings()
    assert settings.embedder == "local"
    assert settings.max_bytes == 1024 * 1024
    assert settings.origins == dict.fromkeys(NAMES, DEFAULT)


def test_each_layer_is_stronger_than_the_one_before(root: Path, own: Path) -> None:
    (root / "outcrop.toml").write_text('model = "a"\ndim = 1\nembedder = "hash"\nmax_bytes = 7\n')
    own.write_text('model = "b"\ndim = 2\nembedder = "local"\n')
    settings = load(root, own, {"model": "d", "dim": None}, MODEL="c", DIM="3")
    assert (settings.max_bytes, settings.embedder, settings.dim, settings.model) == (7, "local", 3, "d")
    assert {name: settings.origins[name] for name in ("max_bytes", "embedder", "dim", "model", "store")} == {
        "max_bytes": "outcrop.toml",
        "embedder": str(own),
        "dim": "OUTCROP_DIM",
        "model": "--model",
        "store": "default",
    }


def test_exclude_and_kinds_add_up_so_that_the_stronger_layer_decides(root: Path, own: Path) -> None:
    (root / "outcrop.toml").write_text('exclude = ["vendor/"]\n[kinds]\n"notes/**" = "doc"\n')
    own.write_text('exclude = ["*.log"]\n')
    settings = load(root, own, {"exclude": ("!vendor/ours",)}, KINDS="notes/ai/**=instruction, *.x = code")
    assert settings.exclude == ("vendor/", "*.log", "!vendor/ours")
    assert settings.kinds == (("notes/ai/**", Kind.INSTRUCTION), ("*.x", Kind.CODE), ("notes/**", Kind.DOC))
    assert settings.origins["exclude"] == f"outcrop.toml + {own} + --exclude"


def test_consent_is_replaced_so_that_a_variable_can_withdraw_it(root: Path, own: Path) -> None:
    own.write_text('allow_remote = ["https://a.example", "https://b.example"]\n')
    assert load(root, own).allow_remote == ("https://a.example", "https://b.example")
    assert load(root, own, ALLOW_REMOTE="").allow_remote == ()


def test_an_empty_variable_counts_as_not_set_and_lists_are_split(root: Path) -> None:
    settings = load(root, MODEL="", DIM="", EXCLUDE="a, b,,c", INCLUDE_SECRETS="x,y\n.env.test\n")
    assert settings.model is None
    assert settings.dim is None
    assert settings.exclude == ("a", "b", "c")
    assert settings.include_secrets == ("x,y", ".env.test")


@pytest.mark.parametrize(
    ("text", "value"),
    [("4096", 4096), ("2 MiB", 2 << 20), ("512k", 512 << 10), ("1GB", 1 << 30), ("10 b", 10)],
)
def test_sizes_may_carry_a_unit(root: Path, text: str, value: int) -> None:
    assert load(root, MAX_BYTES=text).max_bytes == value


def test_a_relative_store_is_meant_from_the_current_folder(
    root: Path, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(root, STORE="here.sqlite").store == tmp_path / "here.sqlite"
    own.write_text('store = "here.sqlite"\n')
    with pytest.raises(BadConfig, match=r"own\.toml: store cannot be 'here\.sqlite'.*an absolute path"):
        load(root, own)


@pytest.mark.parametrize("name", sorted(set(NAMES) - REPOSITORY_SETTINGS))
def test_a_repository_may_not_set_what_touches_the_user(root: Path, name: str) -> None:
    (root / "outcrop.toml").write_text(f'{name} = "/x"\n')
    with pytest.raises(BadConfig) as caught:
        load(root)
    assert str(root / "outcrop.toml") in caught.value.what
    assert name in caught.value.what
    assert f"OUTCROP_{name.upper()}" in caught.value.fix
    assert "exclude" in caught.value.fix


def test_what_a_repository_may_not_set_is_exactly_this() -> None:
    assert set(NAMES) - REPOSITORY_SETTINGS == {"allow_remote", "secret_ref", "headers", "store", "include_secrets"}


def test_a_users_token_never_goes_to_an_address_that_the_repository_chose(root: Path, own: Path) -> None:
    (root / "outcrop.toml").write_text('embedder = "endpoint"\nendpoint_url = "https://evil.example/v1"\n')
    own.write_text('secret_ref = "MY_TOKEN"\n')
    settings = load(root, own)
    assert settings.endpoint_url == "https://evil.example/v1"
    assert settings.secret_ref is None
    assert settings.origins["secret_ref"] == f"{own}, not used: endpoint_url comes from outcrop.toml"
    assert load(root, own, SECRET_REF="OTHER").secret_ref is None
    assert load(root, own, {"secret_ref": "THIRD"}).secret_ref is None
    ours = load(root, own, ENDPOINT_URL="https://ours.example/v1")
    assert (ours.endpoint_url, ours.secret_ref) == ("https://ours.example/v1", "MY_TOKEN")


@pytest.mark.parametrize("model", ["./model", "/opt/model", "~/model", "..\\model", "a/../../model"])
def test_a_repository_may_not_have_a_model_loaded_from_a_path(root: Path, model: str) -> None:
    (root / "outcrop.toml").write_text(f"model = '{model}'\n")
    with pytest.raises(BadConfig, match="sets model to a path"):
        load(root)
    assert load(None, MODEL=model).model == model


def test_a_repository_may_name_a_model(root: Path) -> None:
    (root / "outcrop.toml").write_text('model = "nomic-ai/nomic-embed-text:v1.5"\n')
    assert load(root).model == "nomic-ai/nomic-embed-text:v1.5"


@pytest.mark.parametrize("place", ["repository", "own"])
def test_an_unknown_key_names_file_key_and_the_likely_one(root: Path, own: Path, place: str) -> None:
    path = root / "outcrop.toml" if place == "repository" else own
    own.write_text("")
    path.write_text('embeder = "hash"\n')
    with pytest.raises(BadConfig) as caught:
        load(root, own)
    assert caught.value.what == f"{path}: there is no setting 'embeder'; did you mean embedder?"
    assert "max_bytes" in caught.value.fix


def test_a_mistyped_variable_is_an_error_and_a_foreign_one_is_not(root: Path) -> None:
    with pytest.raises(BadConfig, match="OUTCROP_MODLE is not a setting; did you mean MODEL"):
        load(root, MODLE="x")
    assert load(root, BUILD_FARM="x", DEBUG="1") == Settings()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dim = 0", "a whole number from 1 to 65536"),
        ("dim = true", "a whole number"),
        ("dim = 3.5", "a whole number"),
        ("dim = [3]", "a whole number"),
        ("max_bytes = 0", "a number of bytes above 0"),
        ("max_bytes = 'much'", "a number of bytes above 0"),
        ("max_bytes = false", "a number of bytes above 0"),
        ("embedder = 3", "one line of text"),
        ("embedder = ''", "one line of text"),
        ("embedder = 'a\\u001b[31m'".replace("'", '"'), "one line of text"),
        ("endpoint_url = 'ftp://x'", "http:// or https://"),
        ("endpoint_url = 'https://'", "http:// or https://"),
        ("endpoint_url = 'https://x:99999'", "http:// or https://"),
        ("endpoint_url = 'http://[::1'", "http:// or https://"),
        ("exclude = 3", "a list of texts"),
        ("exclude = [3]", "one line of text"),
        ("kinds = ['x']", "a table of pattern = kind"),
        ("[kinds]\n'x' = 'dok'", "doc, wiki, technote, ticket, forum, code, instruction, media, api"),
        ("[kinds]\n'x' = ['doc']", "each kind one of"),
    ],
)
def test_a_wrong_value_names_the_setting_and_what_it_takes(root: Path, line: str, expected: str) -> None:
    (root / "outcrop.toml").write_text(line + "\n")
    with pytest.raises(BadConfig) as caught:
        load(root)
    name = line.split(" ")[0] if not line.startswith("[") else "kinds"
    assert caught.value.what.startswith(f"outcrop.toml: {name} cannot be ")
    assert expected in caught.value.fix


def test_a_variable_that_is_no_number_says_so(root: Path) -> None:
    with pytest.raises(BadConfig, match=r"OUTCROP_DIM: dim cannot be 'many'\. It takes a whole number"):
        load(root, DIM="many")
    with pytest.raises(BadConfig, match="OUTCROP_KINDS: 'notes' is not PATTERN=KIND"):
        load(root, KINDS="notes")


def test_tokens_and_passwords_are_never_repeated(root: Path) -> None:
    for variable, value in (("SECRET_REF", "hunter2 secret"), ("ENDPOINT_URL", "https://me:hunter2@host.example/")):
        with pytest.raises(BadConfig) as caught:
            load(root, **{variable: value})
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"model = 'caf\xe9'\n", "is not UTF-8 text (line 1)"),
        (b"dim = 3\nmodel = '\xed\xa0\x80'\n", "is not UTF-8 text (line 2)"),
        ("dim = 3\n".encode("utf-16"), "is not UTF-8 text (line 1)"),
        (b"dim = \n", "is not valid TOML"),
        (b"dim = 3\ndim = 4\n", "is not valid TOML"),
        (b"model = 'a\x00b'\n", "is not valid TOML"),
        (b"x = " + b"[" * 5000, "is not valid TOML"),
        (b"#" * (1 << 20) + b"\n", "is not a settings file"),
    ],
)
def test_a_broken_file_is_named(root: Path, data: bytes, message: str) -> None:
    (root / "outcrop.toml").write_bytes(data)
    with pytest.raises(BadConfig) as caught:
        load(root)
    assert str(root / "outcrop.toml") in caught.value.what
    assert message in caught.value.what
    assert caught.value.fix


def test_a_byte_order_mark_and_windows_newlines_are_fine(root: Path) -> None:
    (root / "outcrop.toml").write_bytes(b"\xef\xbb\xbfdim = 5\r\nmodel = 'm'\r\n")
    settings = load(root)
    assert (settings.dim, settings.model) == (5, "m")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device to link to")
def test_a_link_to_an_endless_device_is_refused(root: Path) -> None:
    (root / "outcrop.toml").symlink_to("/dev/zero")
    with pytest.raises(BadConfig, match="not a settings file"):
        load(root)


def test_a_folder_in_place_of_the_file_is_refused(root: Path) -> None:
    (root / "outcrop.toml").mkdir()
    with pytest.raises(BadConfig, match="not a settings file"):
        load(root)


def test_a_missing_own_file_matters_only_when_it_was_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="OUTCROP_CONFIG names"):
        load(root, tmp_path / "nowhere.toml")
    assert load_settings(None, {}, {}).embedder == "local"


def test_the_users_file_has_its_usual_place(tmp_path: Path) -> None:
    code = "from outcrop.config.settings import user_file; print(user_file())"
    environ = {"XDG_CONFIG_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    out = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert Path(out.stdout.strip()) == tmp_path / "outcrop" / "config.toml"
    assert user_file({"OUTCROP_CONFIG": "~/x.toml"}) == Path.home() / "x.toml"


@given(st.dictionaries(st.sampled_from([f"OUTCROP_{name.upper()}" for name in NAMES]), st.text()))
def test_any_text_in_a_variable_is_taken_or_refused_by_name(environ: dict[str, str]) -> None:
    message = ""
    origins: set[str] = set()
    try:
        origins = set(load_settings(None, {}, environ | {"OUTCROP_CONFIG": os.devnull}).origins.values())
    except BadConfig as error:
        message = str(error)
    assert origins or any(name in message for name in environ)
    assert origins <= {DEFAULT, *environ}


def test_reading_settings_imports_nothing_heavy() -> None:
    code = "import sys, outcrop.config.settings; print(*{'numpy', 'rich', 'click', 'difflib'} & sys.modules.keys())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""
