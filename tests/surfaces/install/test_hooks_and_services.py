"""Hooks and units: shown and asked for, beside those that are there, harmless when we are gone, and taken back."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from fossil_program import Fossil, query
from repositories import commit, git, make_repository, write
from watch_process import await_current, found

import outcrop
from outcrop.surfaces.cli.program import main
from outcrop.surfaces.install import hooks, plan
from outcrop.surfaces.install.systemd import unit_path

NAMES = ("post-commit", "post-merge", "post-checkout", "post-rewrite")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OUTCROP_EMBEDDER", "hash")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = make_repository(tmp_path / "it's a repository", {"a.md": "# Alpha\n"})
    with outcrop.open(root) as index:
        index.build()
    return root


def watch(root: Path, *arguments: str) -> int:
    return main(["watch", "-C", str(root), *arguments])


def everything(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every hook: its mode, and its bytes or where it leads."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(folder.iterdir()):
        mode = stat.S_IMODE(path.lstat().st_mode)
        found[path.name] = (mode, str(path.readlink()) if path.is_symlink() else path.read_bytes())
    return found


def make_hook(path: Path, content: str, mode: int = 0o755) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(mode)


class TestGit:
    def test_commits_merges_and_branches_are_indexed_in_the_background(self, repository: Path) -> None:
        assert watch(repository, "--install", "--yes") == 0
        write(repository, {"b.md": "# Bongo\n"})
        # As long as somebody else builds, an update waits; a commit does not.
        committing = threading.Thread(target=commit, args=(repository,))
        with outcrop.open(repository) as other, other.store.writing():
            committing.start()
            committing.join(60)
            assert not committing.is_alive()
        await_current(repository)
        assert found(repository, "bongo") == ["b.md"]
        git(repository, "checkout", "-q", "-b", "side", "HEAD~1")
        await_current(repository)
        assert found(repository, "bongo") == []
        write(repository, {"c.md": "# Civet\n"})
        git(repository, "add", "-A")
        git(repository, "commit", "-q", "-m", "civet")
        git(repository, "rebase", "-q", "main")
        git(repository, "checkout", "-q", "main")
        git(repository, "merge", "-q", "side")
        await_current(repository)
        assert (found(repository, "civet"), found(repository, "bongo")) == (["c.md"], ["b.md"])

    def test_hooks_that_are_there_still_run_and_come_back_to_the_byte(self, repository: Path, tmp_path: Path) -> None:
        folder = repository / ".git" / "hooks"
        log = tmp_path / "log"
        make_hook(folder / "post-commit", f'#!/bin/sh\nset -e\necho "shell $0" >> {log}\nexit 0', 0o750)
        make_hook(folder / "post-checkout", f"#!{sys.executable}\nopen({str(log)!r}, 'a').write('python\\n')\n")
        make_hook(folder / "post-merge", f"#!/bin/sh\necho disabled >> {log}\n", 0o644)
        make_hook(tmp_path / "elsewhere.sh", f'#!/bin/sh\necho "link $1" >> {log}\ncat >> {log}\n')
        (folder / "post-rewrite").symlink_to(tmp_path / "elsewhere.sh")
        before = everything(folder)
        elsewhere = (tmp_path / "elsewhere.sh").read_bytes()
        assert watch(repository, "--install", "--yes") == 0
        installed = everything(folder)
        assert installed != before
        assert watch(repository, "--install", "--yes") == 0
        assert everything(folder) == installed
        write(repository, {"b.md": "# Bongo\n"})
        first = git(repository, "rev-parse", "HEAD").decode().strip()
        second = commit(repository)
        git(repository, "checkout", "-q", "-b", "side")
        git(repository, "merge", "-q", "--no-ff", "main")
        git(repository, "commit", "-q", "--amend", "-m", "again")
        third = git(repository, "rev-parse", "HEAD").decode().strip()
        assert (first != second, log.read_text().splitlines()) == (
            True,
            [
                "shell .git/hooks/post-commit",
                "python",
                "shell .git/hooks/post-commit",
                "link amend",
                f"{second} {third}",
            ],
        )
        await_current(repository)
        assert found(repository, "bongo") == ["b.md"]
        assert watch(repository, "--uninstall", "--yes") == 0
        assert everything(folder) == before
        assert (tmp_path / "elsewhere.sh").read_bytes() == elsewhere
        assert watch(repository, "--uninstall", "--yes") == 0

    def test_what_somebody_wrote_into_our_hook_since_stays(self, repository: Path) -> None:
        folder = repository / ".git" / "hooks"
        watch(repository, "--install", "--yes")
        hook = folder / "post-commit"
        hook.write_text(hook.read_text() + "echo mine\n")
        (folder / "post-merge").write_text("#!/bin/sh\necho another program was here\n")
        watch(repository, "--uninstall", "--yes")
        assert hook.read_text() == "#!/bin/sh\necho mine\n"
        assert (folder / "post-merge").read_text() == "#!/bin/sh\necho another program was here\n"
        assert not (folder / "post-checkout").exists()

    def test_a_hook_set_aside_and_replaced_since_is_pointed_at(
        self, repository: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = repository / ".git" / "hooks"
        make_hook(folder / "post-commit", f"#!{sys.executable}\n")
        watch(repository, "--install", "--yes")
        make_hook(folder / "post-commit", "#!/bin/sh\n")
        capsys.readouterr()
        watch(repository, "--uninstall", "--yes")
        assert "the hook from before is still there, as post-commit.before-outcrop" in capsys.readouterr().out

    def test_a_commit_works_when_outcrop_is_gone(self, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "executable", str(repository / "no such python"))
        watch(repository, "--install", "--yes")
        write(repository, {"b.md": "# Bongo\n"})
        commit(repository)
        git(repository, "checkout", "-q", "-b", "side")

    def test_a_module_of_the_repository_is_not_run_for_ours(self, repository: Path, tmp_path: Path) -> None:
        watch(repository, "--install", "--yes")
        trap = f"open({str(tmp_path / 'trapped')!r}, 'w')\n"
        write(repository, {"outcrop.py": trap, "json.py": trap, "outcrop/__init__.py": trap})
        commit(repository)
        await_current(repository)
        assert not (tmp_path / "trapped").exists()

    def test_a_linked_worktree_is_updated_where_it_is_indexed(self, repository: Path, tmp_path: Path) -> None:
        linked, other = tmp_path / "linked", tmp_path / "other"
        for folder in (linked, other):
            git(repository, "worktree", "add", "-q", str(folder))
        with outcrop.open(linked) as index:
            index.build()
        watch(linked, "--install", "--yes")
        for folder in (other, linked):
            write(folder, {"b.md": "# Bongo\n"})
            commit(folder)
        await_current(linked)
        assert found(linked, "bongo") == ["b.md"]
        with outcrop.open(other) as index:
            assert not index.store.has_members()

    @pytest.mark.parametrize("shared", [True, False])
    def test_hooks_kept_somewhere_else(self, repository: Path, tmp_path: Path, shared: bool) -> None:
        folder = tmp_path / "shared hooks" if shared else repository / ".husky"
        folder.mkdir()
        git(repository, "config", "core.hooksPath", str(folder) if shared else ".husky")
        second = make_repository(tmp_path / "second", {"x.md": "# Xerus\n"})
        git(second, "config", "core.hooksPath", str(folder))
        with outcrop.open(second) as index:
            index.build()
        assert watch(repository, "--install", "--yes") == 0
        assert {path.name for path in folder.iterdir()} == set(NAMES)
        assert not any((repository / ".git" / "hooks" / name).exists() for name in NAMES)
        for root, text in ((second, "# Yak\n"), (repository, "# Zebu\n")):
            write(root, {"new.md": text})
            commit(root)
        await_current(repository)
        assert found(repository, "zebu") == ["new.md"]
        with outcrop.open(second) as index:
            assert index.status().stale
        watch(repository, "--uninstall", "--yes")
        assert list(folder.iterdir()) == []

    def test_settings_given_at_the_command_line_come_along(self, repository: Path) -> None:
        store = repository / "my index.sqlite"
        watch(repository, "--install", "--yes", "--store", str(store), "--allow-remote", "https://example.org/$x")
        text = (repository / ".git" / "hooks" / "post-commit").read_text()
        assert f"'--store={store}'".replace("it's", "it'\"'\"'s") in text
        assert "'--allow-remote=https://example.org/$x'" in text

    def test_nothing_happens_without_a_yes(self, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
        folder = repository / ".git" / "hooks"
        before = everything(folder)
        run = subprocess.run(
            [sys.executable, "-m", "outcrop", "watch", "-C", str(repository), "--install"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 2
        assert "+if [ -x" in run.stdout
        assert "--yes" in run.stderr
        assert everything(folder) == before

    def test_a_bare_repository_has_a_hook_for_pushes(self, repository: Path, tmp_path: Path) -> None:
        bare = tmp_path / "bare.git"
        git(tmp_path, "clone", "-q", "--bare", str(repository), str(bare))
        with outcrop.open(bare) as index:
            index.build()
        watch(bare, "--install", "--yes")
        write(repository, {"b.md": "# Bongo\n"})
        commit(repository)
        git(repository, "push", "-q", str(bare), "main")
        await_current(bare)
        assert found(bare, "bongo") == ["b.md"]

    def test_json_names_the_changes(self, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
        watch(repository, "--install", "--yes", "--json")
        said = json.loads(capsys.readouterr().out)
        assert said["result"] == "installed"
        assert sum(line.startswith("create ") for line in said["changes"]) == 4

    def test_ways_that_exclude_each_other(self, repository: Path) -> None:
        assert watch(repository, "--install", "--once") == 2
        assert watch(repository, "--install", "--uninstall") == 2


def test_a_plain_folder_has_no_hooks(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert watch(tmp_path / "notes", "--install=hook", "--yes") == 2


class TestFossil:
    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        if shutil.which("fossil") is None:
            pytest.skip("the fossil program is not installed")
        fossil = Fossil(tmp_path)
        repository = fossil.create("100%R zoo.fossil")
        checkout = fossil.open(repository, "ck")
        write(checkout, {"a.md": "# Alpha\n"})
        fossil.commit(checkout, "first")
        with outcrop.open(checkout) as index:
            index.build()
        return checkout

    def test_a_check_in_is_indexed_once_its_backoffice_runs(self, checkout: Path, tmp_path: Path) -> None:
        fossil, repository = Fossil(tmp_path), tmp_path / "100%R zoo.fossil"
        fossil.environment |= {
            # The hook runs this program, and indexes what this process expects.
            name: os.environ[name]
            for name in ("OUTCROP_EMBEDDER", "OUTCROP_CONFIG", "OUTCROP_HISTORY", "XDG_CACHE_HOME", "PYTHONPATH")
            if name in os.environ
        }
        assert watch(checkout, "--install=hook", "--yes") == 0
        write(checkout, {"b.md": "# Bongo\n"})
        fossil.commit(checkout, "second")
        fossil.run("backoffice", "-R", repository)
        await_current(checkout)
        assert found(checkout, "bongo") == ["b.md"]

    def test_no_input_ends_at_once(self, checkout: Path, tmp_path: Path) -> None:
        """Our own export makes Fossil run the hook with nothing on its input; working then would never end."""
        watch(checkout, "--install=hook", "--yes")
        repository = tmp_path / "100%R zoo.fossil"
        ((value,),) = query(repository, "SELECT value FROM config WHERE name = 'hooks'")
        script = json.loads(value)[0]["cmd"]
        write(checkout, {"b.md": "# Bongo\n"})
        Fossil(tmp_path).commit(checkout, "second")
        subprocess.run(["sh", "-c", script], input=b"", check=True)
        with outcrop.open(checkout) as index:
            assert index.status().stale
        subprocess.run(["sh", "-c", script], input=b"0123 file b.md\n" * 20_000, check=True)
        await_current(checkout)

    @pytest.mark.parametrize("before", [None, "[]", '[ {"cmd":"true","type":"after-receive","seq":5} ]'])
    @pytest.mark.parametrize("later", [False, True])
    def test_other_hooks_stay_to_the_byte(
        self, checkout: Path, tmp_path: Path, before: str | None, later: bool
    ) -> None:
        repository = tmp_path / "100%R zoo.fossil"
        if before is not None:
            query(repository, "INSERT INTO config(name, value, mtime) VALUES ('hooks', ?, 7)", before)
        watch(checkout, "--install=hook", "--yes")
        ((installed,),) = query(repository, "SELECT value FROM config WHERE name = 'hooks'")
        watch(checkout, "--install=hook", "--yes")
        assert query(repository, "SELECT value FROM config WHERE name = 'hooks'") == [(installed,)]
        if later:
            Fossil(tmp_path).run("hook", "add", "--type", "before-commit", "--command", "true", "-R", repository)
        watch(checkout, "--uninstall", "--yes")
        found = query(repository, "SELECT value FROM config WHERE name = 'hooks'")
        if not later:
            assert found == ([] if before is None else [(before,)])
        else:
            commands = [entry["cmd"] for entry in json.loads(found[0][0])]
            assert commands == ["true"] * (1 if before in (None, "[]") else 2)
        watch(checkout, "--uninstall", "--yes")
        assert query(repository, "SELECT value FROM config WHERE name = 'hooks'") == found


class TestUnit:
    @pytest.fixture
    def calls(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A ``systemctl`` that writes down how it was called: no service manager runs where tests do."""
        log = tmp_path / "calls"
        make_hook(tmp_path / "bin" / "systemctl", f'#!/bin/sh\necho "$@" >> {log}\n')
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        return log

    def test_a_unit_comes_and_goes(self, tmp_path: Path, calls: Path) -> None:
        folder = tmp_path / 'my "notes" $HOME 50%'
        folder.mkdir()
        assert watch(folder, "--install", "--yes", "--model", "a b") == 0
        unit = unit_path(folder)
        assert unit.parent == tmp_path / "config" / "systemd" / "user"
        (line,) = [line for line in unit.read_text().splitlines() if line.startswith("ExecStart=")]
        escaped = str(folder).replace('"', '\\"').replace("$", "$$").replace("%", "%%")
        assert line == f'ExecStart={sys.executable} -P -m outcrop watch -C "{escaped}" "--model=a b"'
        first = ["--user daemon-reload", f"--user enable --now {unit.name}"]
        assert calls.read_text().splitlines() == first
        assert watch(folder, "--install", "--yes", "--model", "a b") == 0
        assert calls.read_text().splitlines() == [*first, first[1]]
        assert watch(folder, "--install", "--yes") == 0
        assert f"--user restart {unit.name}" in calls.read_text()
        assert watch(folder, "--uninstall", "--yes") == 0
        assert not unit.exists()
        assert f"--user disable --now {unit.name}" in calls.read_text()
        assert watch(folder, "--uninstall", "--yes") == 0

    def test_systemd_itself_reads_it(self, tmp_path: Path, calls: Path) -> None:
        if (checker := shutil.which("systemd-analyze")) is None:
            pytest.skip("systemd-analyze is not installed")
        folder = tmp_path / "my notes"
        folder.mkdir()
        watch(folder, "--install", "--yes")
        run = subprocess.run(
            [checker, "--user", "verify", str(unit_path(folder))], capture_output=True, text=True, check=False
        )
        assert unit_path(folder).name not in run.stderr

    def test_a_service_manager_that_refuses_is_quoted(
        self, tmp_path: Path, calls: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        make_hook(tmp_path / "bin" / "systemctl", "#!/bin/sh\necho 'no bus here' >&2\nexit 1\n")
        (tmp_path / "notes").mkdir()
        assert watch(tmp_path / "notes", "--install", "--yes") == 1
        assert "no bus here" in capsys.readouterr().err
        assert watch(tmp_path / "notes", "--uninstall", "--yes") == 0
        assert not unit_path(tmp_path / "notes").exists()

    def test_without_systemd_it_says_what_to_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "notes").mkdir()
        git_only = tmp_path / "only"
        git_only.mkdir()
        (git_only / "git").symlink_to(str(shutil.which("git")))
        monkeypatch.setenv("PATH", str(git_only))
        assert watch(tmp_path / "notes", "--install", "--yes") == 2
        assert "no systemd" in capsys.readouterr().err


def test_options_are_spelled_as_they_are_typed() -> None:
    flags = {"allow_remote": ("a", "b"), "model": None, "dim": 3, "branch": "x y"}
    assert plan.command_line("watch", flags=flags)[1:] == [
        *("-P", "-m", "outcrop", "watch", "--allow-remote=a", "--allow-remote=b", "--dim=3", "--branch=x y")
    ]
    assert set(hooks.GIT_HOOKS) == set(NAMES)
