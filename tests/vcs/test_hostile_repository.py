"""A git repository that somebody else prepared: nothing that it names runs, and nothing outside of it is touched."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from repositories import commit, git, make_repository, write

import outcrop
from outcrop.errors import OutcropError, SourceError, StoreError
from outcrop.sources.discover import find_root, open_source
from outcrop.sources.git.source import GitSource
from outcrop.sources.options import Options
from outcrop.surfaces.install.mcp_clients import CLIENTS, install_client
from outcrop.surfaces.watch.once import update_once
from outcrop.transfer.git.ref import REF
from outcrop.vcs.git_config import MAX_FILTERS, GitSetting, network_transports, override, pushed_instead, read_settings
from outcrop.vcs.git_repository import find_repository

SETTINGS = {"embedder": "hash"}

# Of filters, drivers and helpers. A value in .gitattributes ends at a space, and a configuration holds no newline.
NAMES = ["plain", "a=b", "=", "a=b=clean=", "a.b", "a.clean", "Upper", 'quo"te', "back\\slash", "\N{SNOWMAN}", "-c", ""]

KEYS = [
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.sshCommand",
    "core.gitProxy",
    "core.askPass",
    "core.alternateRefsCommand",
    "pager.status",
    "pager.ls-files",
    "diff.external",
    "diff.{}.command",
    "diff.{}.textconv",
    "merge.{}.driver",
    "gpg.program",
    "gpg.ssh.program",
    "gpg.ssh.defaultKeyCommand",
    "credential.helper",
    "credential.{}.helper",
    "alias.status",
    "alias.ls-files",
    "uploadpack.packObjectsHook",
    "gc.recentObjectsHook",
    "remote.{}.uploadpack",
    "remote.{}.receivepack",
    "trailer.{}.command",
    "trailer.{}.cmd",
    "sequence.editor",
    "interactive.diffFilter",
    "guitool.{}.cmd",
    "mergetool.{}.cmd",
    "difftool.{}.cmd",
    "browser.{}.cmd",
    "man.{}.cmd",
    "sendemail.toCmd",
    "submodule.{}.update",
    "filter.{}.clean",
    "filter.{}.smudge",
    "filter.{}.process",
]

NETWORK_KEYS = [
    *("core.sshCommand", "core.gitProxy", "core.askPass", "core.alternateRefsCommand"),
    *("credential.helper", "credential.{}.helper", "http.proxy", "http.{}.proxy", "fetch.bundleURI"),
    *("remote.{}.uploadpack", "remote.{}.receivepack", "remote.{}.vcs", "remote.{}.proxy"),
]

HOOKS = [
    *("post-index-change", "reference-transaction", "pre-push", "post-checkout", "post-commit", "pre-commit"),
    *("fsmonitor-watchman", "pre-auto-gc", "post-rewrite", "post-merge", "sendemail-validate", "update"),
    *("pre-receive", "post-receive", "post-update", "proc-receive", "push-to-checkout"),
]

FILES: dict[str, str | bytes] = {
    "a.md": "# Zoo\n\nLions are fed at seven.\n",
    "lib/b.py": "def feed():\n    return 1\n",
}


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def config_text(values: dict[str, str]) -> str:
    """A configuration file as git reads it, with any name in the middle of a key."""
    lines = []
    for key, value in values.items():
        section, _, rest = key.partition(".")
        name, dot, variable = rest.rpartition(".")
        lines.append(f"[{section} {quoted(name)}]" if dot else f"[{section}]")
        lines.append(f"\t{variable} = {quoted(value)}")
    return "\n".join(lines) + "\n"


class Trap:
    """A script that leaves a mark for each key that it was run for."""

    def __init__(self, home: Path) -> None:
        self.marks = home / "marks"
        self.marks.mkdir()
        self.script = home / "trap"
        self.script.write_text(f'#!/bin/sh\ntouch {shlex.quote(str(self.marks))}/"$OUTCROP_TRAP_MARK$1"\ncat\n')
        self.script.chmod(0o755)

    def command(self, key: str) -> str:
        mark = "".join(letter if letter.isalnum() else "_" for letter in key)
        return f"{self.script} {mark}"

    def sprung(self) -> list[str]:
        return sorted(path.name for path in self.marks.iterdir())


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


def hooks(git_dir: Path, trap: Trap) -> None:
    (git_dir / "hooks").mkdir(exist_ok=True)
    for name in HOOKS:
        (git_dir / "hooks" / name).write_text(f"#!/bin/sh\nexec {trap.command('hook ' + name)}\n")
        (git_dir / "hooks" / name).chmod(0o755)


def make_dirty(root: Path) -> None:
    """Make git compare every file's content: each time is another, and each size the same."""
    for path in (*root.glob("*.*"), *root.glob("lib/*")):
        os.utime(path, (1, 1))


def in_config(root: Path, text: str) -> None:
    with (root / ".git/config").open("a") as file:
        file.write(text)


def in_upper_case(root: Path, text: str) -> None:
    for word in ("[filter ", "[diff ", "[core]", "\tclean ", "\tprocess ", "\tfsmonitor "):
        text = text.replace(word, word.upper())
    in_config(root, text)


def included(root: Path, text: str) -> None:
    (root / ".git/more").write_text(text)
    in_config(root, "[include]\n\tpath = more\n")


def included_if(root: Path, text: str) -> None:
    (root / ".git/more").write_text("[include]\n\tpath = again\n")
    (root / ".git/again").write_text(text)
    in_config(root, '[includeIf "onbranch:main"]\n\tpath = more\n')


def in_worktree(root: Path, text: str) -> None:
    git(root, "config", "extensions.worktreeConfig", "true")
    (root / ".git/config.worktree").write_text(text)


PLACES = [in_config, in_upper_case, included, included_if, in_worktree]


def use_everything(root: Path) -> None:
    """What Outcrop does without a network, and that its results are right."""
    with outcrop.open(root, settings=SETTINGS) as index:
        assert index.status().stale
        assert index.build().complete
        answer = index.search("lions are fed", mode="keyword")
        assert answer.hits[0].path == "a.md"
        index.export()
    write(root, {"new.md": "# Bears\n\nAsleep until spring.\n"})
    make_dirty(root)
    with outcrop.open(root, settings=SETTINGS) as index:
        assert update_once(index, lambda _: None, if_indexed=True).details["added"] == 1
        assert not index.status().stale
    source = GitSource(root)
    source.watch_paths()
    listing = source.artifacts({})
    assert source.revision(listing.seen) == listing.revision
    assert {"a.md", "lib/b.py", "new.md"} <= {ref.path for ref in listing.refs}
    at_commit = open_source(find_root(root, rev="HEAD"), Options())
    assert {"a.md", "lib/b.py"} <= {ref.path for ref in at_commit.artifacts({}).refs}
    assert git(root, "rev-parse", "--verify", REF)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_no_setting_of_a_repository_runs(tmp_path: Path, trap: Trap, place: Callable[[Path, str], None]) -> None:
    """Each key, with each name in it, chosen for a file of its own."""
    root = make_repository(tmp_path / "r", FILES | {f"n{number}.txt": "x\n" for number in range(len(NAMES))})
    place(root, "".join(config_text({key.format(name): trap.command(key) for key in KEYS}) for name in NAMES))
    hooks(root / ".git", trap)
    chosen = [f"n{number}.txt filter={name} diff={name} merge={name}\n" for number, name in enumerate(NAMES)]
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/attributes").write_text("".join(chosen) + "*.md filter=plain diff=a=b\n")
    make_dirty(root)
    use_everything(root)
    assert trap.sprung() == []
    assert {setting.key for setting in settings_of(root)} >= {f"filter.{name}.clean" for name in NAMES}


def settings_of(root: Path) -> list[GitSetting]:
    repository = find_repository(root)
    assert repository is not None
    return list(read_settings(repository))


@pytest.mark.parametrize("name", NAMES)
def test_the_traps_are_real(tmp_path: Path, trap: Trap, name: str) -> None:
    root = make_repository(tmp_path / "r", FILES)
    in_config(root, config_text({f"filter.{name}.clean": trap.command("clean")}))
    (root / ".git/info/attributes").write_text(f"* filter={name}\n")
    make_dirty(root)
    git(root, "status")
    assert trap.sprung() == ["clean"]


def test_a_filter_of_the_user_does_not_run_either(tmp_path: Path, trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its settings, as those of git-lfs, may be the repository's."""
    (tmp_path / "mine").write_text(config_text({"filter.lfs.clean": trap.command("clean"), "filter.lfs.required": "1"}))
    root = make_repository(tmp_path / "r", FILES | {".gitattributes": "*.md filter=lfs\n"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "mine"))
    make_dirty(root)
    use_everything(root)
    assert trap.sprung() == []


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_filter_that_comes_later_does_not_run(tmp_path: Path, trap: Trap, place: Callable[[Path, str], None]) -> None:
    """As before the eyes of a watch."""
    root = make_repository(tmp_path / "r", FILES)
    source = GitSource(root)
    source.artifacts({})
    place(root, config_text({"filter.a=b.clean": trap.command("clean")}))
    (root / ".git/info/attributes").write_text("* filter=a=b\n")
    for name in ("", "second"):
        make_dirty(root)
        source.artifacts({})
        (root / ".git/info/attributes").write_text(f"* filter={name}\n")
        place(root, config_text({f"filter.{name}.clean": trap.command("clean")}))
    make_dirty(root)
    source.artifacts({})
    assert trap.sprung() == []


def test_where_git_pushes_instead(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", FILES)
    git(root, "config", "url./here/.pushInsteadOf", "https://example.org/")
    repository = find_repository(root)
    assert repository is not None
    assert pushed_instead(repository, "https://example.org/zoo.git") == ["/here/zoo.git"]
    assert pushed_instead(repository, "ssh://example.org/zoo.git") == []


def test_variables_of_the_caller_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COUNT": "1", "KEY_0": "core.bigFileThreshold", "VALUE_0": "77"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    found = override({"filter.a=b.clean": ""})
    assert found == {"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_1": "filter.a=b.clean", "GIT_CONFIG_VALUE_1": ""}


def test_too_many_filters_are_refused(tmp_path: Path, trap: Trap) -> None:
    root = make_repository(tmp_path / "r", FILES)
    in_config(root, config_text({f"filter.f{number}.clean": trap.command("x") for number in range(MAX_FILTERS + 1)}))
    with pytest.raises(SourceError, match="1,001 filters"):
        GitSource(root).artifacts({})
    (root / ".git/config").write_text(config_text({f"filter.{'x' * 200_000}.clean": trap.command("x")}))
    with pytest.raises(SourceError, match="1 filters"):
        GitSource(root).artifacts({})


class TestNetwork:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """A clone with an index, whose vectors are at its remote."""
        make_repository(tmp_path / "first", FILES)
        git(tmp_path, "clone", "-q", "--bare", "first", "there.git")
        git(tmp_path, "clone", "-q", (tmp_path / "there.git").as_uri(), "clone")
        with outcrop.open(tmp_path / "clone", settings=SETTINGS) as index:
            index.build()
            index.push()
        write(tmp_path / "clone", {"a.md": "# Zoo\n\nLions are fed at eight.\n"})
        commit(tmp_path / "clone")
        git(tmp_path / "clone", "push", "-q", "origin", "main")
        with outcrop.open(tmp_path / "clone", settings=SETTINGS) as index:
            index.build()
        return tmp_path / "clone"

    @pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
    def test_what_a_repository_names_for_a_remote_is_refused(
        self, tmp_path: Path, trap: Trap, place: Callable[[Path, str], None]
    ) -> None:
        root = make_repository(tmp_path / "r", FILES)
        with outcrop.open(root, settings=SETTINGS) as index:
            index.build()
        git(root, "remote", "add", "origin", "ssh://example.invalid/zoo")
        config = (root / ".git/config").read_text()
        for key in NETWORK_KEYS:
            for name in ("origin", "a=b", "https://example.org", "a.b", "Upper", 'quo"te'):
                (root / ".git/config").write_text(config)
                (root / ".git/config.worktree").unlink(missing_ok=True)
                place(root, config_text({key.format(name): trap.command(key)}))
                repository = find_repository(root)
                assert repository is not None
                with pytest.raises(SourceError, match="own configuration sets") as error:
                    network_transports(repository)
                assert key.rpartition(".")[2].lower() in error.value.what
                if "{}" not in key:
                    break
            with outcrop.open(root, settings=SETTINGS) as index:
                for call in (index.push, index.pull):
                    with pytest.raises(SourceError, match="own configuration sets"):
                        call()
        assert trap.sprung() == []

    @pytest.mark.parametrize("address", ["ext::sh -c touch% RAN", "EXT::sh -c touch% RAN", "trap::x", "trap://x"])
    def test_an_address_that_names_a_program(
        self, root: Path, trap: Trap, monkeypatch: pytest.MonkeyPatch, address: str
    ) -> None:
        (trap.script.parent / "git-remote-trap").symlink_to(trap.script)
        monkeypatch.setenv("PATH", f"{trap.script.parent}:{os.environ['PATH']}")
        git(root, "config", "protocol.allow", "always")
        git(root, "config", "protocol.ext.allow", "always")
        original = git(root, "remote", "get-url", "origin").decode().strip()
        git(root, "remote", "set-url", "origin", address)
        git(root, "remote", "add", "other", original)
        with outcrop.open(root, settings=SETTINGS) as index:
            for call in (index.push, index.pull):
                with pytest.raises(OutcropError, match=r"not allowed|find remote helper"):
                    call()
            git(root, "remote", "set-url", "origin", original)
            git(root, "config", f"url.{address}.insteadOf", original)
            for call in (index.push, index.pull):
                with pytest.raises(OutcropError, match=r"not allowed|find remote helper"):
                    call()
        assert trap.sprung() == []
        assert not list(root.rglob("RAN"))

    def test_the_users_own_settings_work(
        self, root: Path, trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mine = {
            "core.sshCommand": trap.command("ssh"),
            "credential.helper": trap.command("helper"),
            "protocol.ext.allow": "always",
            f"url.{(tmp_path / 'there.git').as_uri()}.insteadOf": "zoo:",
        }
        (tmp_path / "mine").write_text(config_text(mine))
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "mine"))
        with outcrop.open(root, settings=SETTINGS) as index:
            assert index.push("zoo:").sent == 1
            assert index.pull("ext::git %s " + str(tmp_path / "there.git")).received == 0
            with pytest.raises(StoreError):
                index.pull("ssh://example.invalid/zoo")
        assert trap.sprung() == ["ssh"]

    @pytest.mark.parametrize("named", ["by name", "by path", "instead"])
    def test_hooks_of_a_remote_on_this_machine_do_not_run(
        self, root: Path, trap: Trap, tmp_path: Path, named: str
    ) -> None:
        hooks(tmp_path / "there.git", trap)
        remote = str(tmp_path / "there.git")
        if named == "by name":
            remote = "origin"
        elif named == "instead":
            git(root, "config", f"url.{tmp_path}.insteadOf", "https://example.invalid")
            remote = "https://example.invalid/there.git"
        with outcrop.open(root, settings=SETTINGS) as index:
            assert index.push(remote).sent == 1
        assert trap.sprung() == []


class TestPlaces:
    def test_a_committed_folder_that_looks_like_a_repository_is_content(self, tmp_path: Path, trap: Trap) -> None:
        root = make_repository(tmp_path / "r", FILES)
        inner = root / "inner"
        git(root, "init", "-q", "--bare", "inner")
        (inner / "config").write_text(
            "[core]\n\tbare = false\n\tworktree = ..\n" + config_text({"core.fsmonitor": trap.command("fsmonitor")})
        )
        for folder in ("refs", "objects"):
            write(inner / folder, {"keep": ""})
        hooks(inner, trap)
        git(root, "add", "-f", "inner")
        commit(root)
        clone = tmp_path / "clone"
        git(tmp_path, "clone", "-q", "r", "clone")
        for place in (clone / "inner", clone / "inner" / "refs"):
            found = find_repository(place)
            assert found is not None
            assert (found.top, found.git_dir) == (clone, clone / ".git")
        with outcrop.open(clone / "inner", settings=SETTINGS) as index:
            assert Path(index.status().root) == clone
        use_everything(clone)
        assert trap.sprung() == []

    def test_one_that_is_not_committed_is_none_of_the_tree_around_it(self, tmp_path: Path) -> None:
        root = make_repository(tmp_path / "r", FILES)
        git(root, "init", "-q", "--bare", "inner")
        found = find_repository(root / "inner")
        assert found is not None
        assert (found.bare, found.top) == (True, root / "inner")
        git(root / "inner", "config", "core.bare", "false")
        git(root / "inner", "config", "core.worktree", "..")
        with pytest.raises(SourceError, match="does not name it as its working tree"):
            find_repository(root / "inner")

    @pytest.mark.parametrize("way", ["file", "link", "commondir", "linked worktree"])
    def test_the_repository_of_another_working_tree(self, tmp_path: Path, way: str) -> None:
        other = make_repository(tmp_path / "other", FILES)
        git(other, "worktree", "add", "-q", str(tmp_path / "tree"))
        with outcrop.open(other, settings=SETTINGS) as index:
            index.build()
        here = tmp_path / "here"
        write(here, {"mine.md": "# Mine\n"})
        if way == "file":
            (here / ".git").write_text(f"gitdir: {other}/.git\n")
        elif way == "linked worktree":
            (here / ".git").write_text(f"gitdir: {other}/.git/worktrees/tree\n")
        elif way == "link":
            (here / ".git").symlink_to(other / ".git")
        else:
            git(here, "init", "-q")
            (here / ".git/commondir").write_text(f"{other}/.git\n")
        with pytest.raises(SourceError, match="does not name it as its working tree"):
            outcrop.open(here, settings=SETTINGS)
        with outcrop.open(other, settings=SETTINGS) as index:
            assert not index.status().stale

    def test_a_repository_kept_elsewhere_that_names_its_working_tree(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "-q", f"--separate-git-dir={tmp_path / 'kept'}", "tree")
        with pytest.raises(SourceError, match=r"config core\.worktree"):
            find_repository(tmp_path / "tree")
        git(tmp_path / "tree", "config", "core.worktree", str(tmp_path / "tree"))
        found = find_repository(tmp_path / "tree")
        assert found is not None
        assert (found.top, found.git_dir) == (tmp_path / "tree", tmp_path / "kept")

    @pytest.mark.parametrize("way", ["a link to it", "its .git names it", "a link on the way"])
    def test_a_submodule_that_leads_to_another_repository(self, tmp_path: Path, way: str) -> None:
        other = make_repository(tmp_path / "other" / "sub", {"secret.md": "# Secret\n"})
        root = make_repository(tmp_path / "r", FILES)
        path = "x/sub" if way == "a link on the way" else "sub"
        git(root, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},{path}")
        if way == "a link to it":
            (root / "sub").symlink_to(other)
        elif way == "a link on the way":
            (root / "x").symlink_to(tmp_path / "other")
        else:
            write(root / "sub", {".git": f"gitdir: {other}/.git\n"})
        listing = GitSource(root).artifacts({})
        assert [ref.path for ref in listing.refs] == ["a.md", "lib/b.py"]

    @pytest.mark.parametrize("path", ["../out.md", "/tmp/out.md", "lib/../../out"])
    def test_an_index_that_names_files_outside(self, tmp_path: Path, path: str) -> None:
        (tmp_path / "out.md").write_text("secret\n")
        plain = "z" * len(path)
        root = make_repository(tmp_path / "r", {**FILES, plain: "x\n"})
        data = (root / ".git/index").read_bytes()[:-20].replace(plain.encode(), path.encode())
        (root / ".git/index").write_bytes(data + hashlib.sha1(data, usedforsecurity=False).digest())
        with pytest.raises(SourceError, match="names files outside"):
            GitSource(root).artifacts({})

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
    def test_objects_of_another_user(self, tmp_path: Path) -> None:
        other = make_repository(tmp_path / "other", FILES)
        git(tmp_path, "clone", "-q", "--shared", "other", "shared")
        git(tmp_path, "clone", "-q", "--shared", "shared", "again")
        assert find_repository(tmp_path / "again") is not None
        os.chown(other / ".git/objects", 12345, -1)
        for name in ("shared", "again"):
            with pytest.raises(SourceError, match="which another user owns"):
                find_repository(tmp_path / name)


@pytest.mark.parametrize("kind", ["git", "folder"])
class TestIndexInPlace:
    """What lies where the index goes was laid there by somebody else."""

    def place(self, tmp_path: Path, kind: str) -> tuple[Path, Path]:
        root = tmp_path / "r"
        if kind == "git":
            make_repository(root, FILES)
            return root, root / ".git/outcrop"
        write(root, FILES)
        return root, root / ".outcrop"

    def refused(self, root: Path, words: str) -> None:
        for call in (lambda index: index.build(), lambda index: index.search("x"), lambda index: index.status()):
            with pytest.raises(StoreError, match=words), outcrop.open(root, settings=SETTINGS) as index:
                call(index)

    def test_a_folder_that_is_a_link(self, tmp_path: Path, kind: str) -> None:
        root, folder = self.place(tmp_path, kind)
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
        self.refused(root, "symbolic link")
        assert not list((tmp_path / "elsewhere").iterdir())

    @pytest.mark.parametrize("way", ["symbolic link", "hard link", "pipe", "folder"])
    def test_a_file_that_is_none_of_its_own(self, tmp_path: Path, kind: str, way: str) -> None:
        victim = tmp_path / "victim"
        victim.write_text("precious\n")
        root, folder = self.place(tmp_path, kind)
        for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite.lock", ".gitignore"):
            folder.mkdir()
            if way == "symbolic link":
                (folder / name).symlink_to(victim)
            elif way == "hard link":
                os.link(victim, folder / name)
            elif way == "pipe":
                os.mkfifo(folder / name)
            else:
                (folder / name).mkdir()
            self.refused(root, way)
            shutil.rmtree(folder)
        assert victim.read_text() == "precious\n"

    def test_an_index_of_somebody_else(self, tmp_path: Path, kind: str) -> None:
        (tmp_path / "other").mkdir()
        other, theirs = self.place(tmp_path / "other", kind)
        with outcrop.open(other, settings=SETTINGS) as index:
            index.build()
        root, folder = self.place(tmp_path, kind)
        folder.mkdir()
        (folder / "index.sqlite").symlink_to(theirs / "index.sqlite")
        self.refused(root, "symbolic link")
        with outcrop.open(other, settings=SETTINGS) as index:
            assert not index.status().stale


@pytest.fixture
def alarm() -> Iterator[None]:
    """What waits for a pipe fails."""

    def ring(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "path",
    [
        ".gitignore",
        "src/.gitignore",
        ".gitattributes",
        *(f".git/{name}" for name in ("HEAD", "config", "config.worktree", "index", "packed-refs", "shallow")),
        *(f".git/{name}" for name in ("info/exclude", "info/attributes", "refs/heads/main", "commondir")),
        *(f".git/objects/{name}" for name in ("info/alternates", "pack/pack-1.idx", "info/commit-graph")),
    ],
)
def test_a_pipe_in_place_of_a_file_of_git_blocks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alarm: None, path: str
) -> None:
    root = make_repository(tmp_path / "r", {"src/a.py": "a = 1\n", "b.md": "text\n"})
    if path == ".git/packed-refs":
        git(root, "pack-refs", "--all")
    place = root / path
    place.unlink(missing_ok=True)
    place.parent.mkdir(exist_ok=True)
    os.mkfifo(place)
    monkeypatch.setattr("outcrop.vcs.git.PIPE_TIMEOUT", 0.3)
    try:
        with outcrop.open(root, settings=SETTINGS) as index:
            index.build()
            paths = {hit.path for hit in index.search("text a").hits}
    except OutcropError as error:
        # Where git cannot do without it.
        paths = {error.what}
    assert any(each and ("b.md" in each or "git" in each) for each in paths)


def test_pipes_among_the_material_and_our_own_files_block_nothing(tmp_path: Path, alarm: None) -> None:
    for kind in ("folder", "git"):
        files = {"b.md": "text\n"}
        root = make_repository(tmp_path / kind, files) if kind == "git" else tmp_path / kind
        write(root, files)
        for name in (
            "a.md",
            ".outcropignore",
            "src/.outcropignore",
            "talk.vtt",
            "media/a.json",
            "CACHEDIR.TAG",
            "x.ipynb",
        ):
            (root / name).parent.mkdir(exist_ok=True)
            os.mkfifo(root / name)
        with outcrop.open(root, settings=SETTINGS) as index:
            assert [hit.path for hit in index.build() and index.search("text").hits] == ["b.md"]
        os.mkfifo(root / "outcrop.toml")
        with contextlib.suppress(OutcropError), outcrop.open(root, settings=SETTINGS) as index:
            index.search("text")
        os.mkfifo(root / ".mcp.json")
        with pytest.raises(OutcropError, match="not a regular file"):
            install_client(root, CLIENTS["claude-code"], "outcrop")


@pytest.mark.parametrize("part", ["objects", "refs", "refs/heads", "refs/heads/main", "packed-refs", "index", "config"])
def test_a_repository_that_consists_of_another_one_is_refused(tmp_path: Path, part: str) -> None:
    private = make_repository(tmp_path / "private", {"secret.md": "the code is 4711\n"})
    git(private, "pack-refs", "--all")
    git(private, "commit", "-qm", "loose", "--allow-empty")
    root = make_repository(tmp_path / "r", {"a.md": "text\n"})
    place = root / ".git" / part
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(private / ".git" / part)
    with pytest.raises(SourceError, match="is a link out of the git repository"):
        find_repository(root)


def test_a_link_within_a_repository_is_its_own_matter(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.md": "text\n"})
    (root / ".git" / "refs" / "heads" / "same").symlink_to("main")
    (root / ".git" / "hooks.old").symlink_to("hooks")
    assert find_repository(root) is not None
