"""A Fossil repository as a source, on repositories that the real program made."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fossil_program import APP, SampleRepository, query

from outcrop.core.model import Artifact, Kind, Listing, Ref, Skipped, SkipReason
from outcrop.errors import NotARepository, SourceError, SourceLocked
from outcrop.sources.fossil.capabilities import capabilities_of, may_see
from outcrop.sources.fossil.source import FossilSource
from outcrop.sources.options import Options
from outcrop.vcs import fossil
from outcrop.vcs.fossil import FossilLocation, find_fossil


def source_of(repository: Path, options: Options | None = None, branch: str | None = None) -> FossilSource:
    return FossilSource(FossilLocation(repository, None), options, branch)


def ref_of(listing: Listing, kind: Kind, path: str | None = None) -> Ref:
    (ref,) = [ref for ref in listing.refs if ref.kind is kind and ref.path == path]
    return ref


def texts(source: FossilSource) -> dict[tuple[str, str], str]:
    """Every text, by kind and path (posts and tickets: by their first line)."""
    refs = source.artifacts({}).refs
    found = {}
    for outcome in source.read(refs):
        assert isinstance(outcome, Artifact)
        found[str(outcome.ref.kind), outcome.ref.path or outcome.text] = outcome.text
    return found


@pytest.fixture(scope="module")
def source(sample: SampleRepository) -> FossilSource:
    found = find_fossil(sample.checkout / "src" / "app.py")
    assert found is not None
    return FossilSource(found)


@pytest.fixture
def copy(sample: SampleRepository, tmp_path: Path) -> Path:
    return sample.copy(tmp_path)


class TestListing:
    def test_everything_public_is_there_once(self, source: FossilSource, sample: SampleRepository) -> None:
        assert texts(source) == {
            ("instruction", "AGENTS.md"): "Feed them.\n",
            ("doc", "README.md"): "# Zoo\n\nAll animals.\n",
            ("doc", "copy.md"): "# Zoo\n\nAll animals.\n",
            ("doc", "docs/with space.md"): "A path with a space.\n",
            ("doc", "latin.txt"): "Übergrößenträger für Fußgänger\n",
            ("doc", "side.md"): "from the side\n",
            ("code", ".outcropignore"): "ignored/\n",
            ("code", "src/app.py"): APP,
            ("code", "src/empty.py"): "",
            ("code", "src/new_name.py"): "def renamed():\n    pass\n",
            ("wiki", "Feeding times"): "# Lions\n\nAt seven.\n",
            ("wiki", "Plain"): "<h2>Bears</h2>\n\nAsleep.\n",
            ("technote", sample.technote): "# Opening day\n\nWe opened the gates.\n",
            ("ticket", TICKET): TICKET,
            ("forum", QUESTION): QUESTION,
            ("forum", REPLY): REPLY,
            ("forum", ""): "",
        }

    def test_what_is_left_out_has_a_reason(self, source: FossilSource) -> None:
        assert {item.path: item.reason for item in source.artifacts({}).skipped} == {
            ".env": SkipReason.SECRET,
            "big.txt": SkipReason.OVERSIZE,
            "ignored": SkipReason.EXCLUDED,
            "link.md": SkipReason.SYMLINK,
            "logo.png": SkipReason.BINARY,
        }

    def test_hashes_are_those_that_fossil_uses(self, source: FossilSource, sample: SampleRepository) -> None:
        refs = [ref for ref in source.artifacts({}).refs if ref.size is not None and ref.path != "latin.txt"]
        assert len(refs) == 9
        for outcome in source.read(refs):
            assert isinstance(outcome, Artifact)
            content = sample.fossil.run("artifact", outcome.ref.hash, "-R", sample.repository)
            assert content == outcome.text
            assert len(content) == outcome.ref.size

    def test_the_material_is_stored_as_it_should_be_tested(self, sample: SampleRepository) -> None:
        """The file is kept as a delta, and so is the manifest of the tip."""
        app = query(sample.repository, "SELECT uuid FROM blob JOIN delta USING(rid) WHERE size = ?", len(APP))
        assert len(app) == 1
        manifest = sample.fossil.run("artifact", sample.tip, "-R", sample.repository)
        assert manifest.startswith("B ")

    def test_what_the_source_says_of_itself(self, source: FossilSource, sample: SampleRepository) -> None:
        assert source.type == "fossil"
        assert source.root == sample.checkout
        assert source.project == "the-bestiary"
        assert source.store_path() == sample.repository
        assert source.worktree == ""
        assert source.worktrees() == {""}

    def test_a_rename_keeps_the_hash(self, sample: SampleRepository, source: FossilSource) -> None:
        renamed = ref_of(source.artifacts({}), Kind.CODE, "src/new_name.py").hash
        before = source_of(sample.repository, branch="side").artifacts({})
        assert ref_of(before, Kind.CODE, "src/old_name.py").hash == renamed


TICKET = "Fence \\ is broken\n\nFirst line.\nSecond line.\n\f\nWood was ordered.\n\f\nWood came. Nails too."
QUESTION = "How to feed lions?\n\nHow are lions fed?"
REPLY = "How to feed lions?\n\f\nWith a fork."


class TestPrivacy:
    def test_nothing_private_or_pending_is_read(self, source: FossilSource) -> None:
        words = "\n".join(texts(source).values())
        assert "private" not in words
        assert "pending" not in words

    def test_the_newest_check_in_is_private_and_not_the_tip(
        self, source: FossilSource, sample: SampleRepository
    ) -> None:
        ((newest,),) = query(
            sample.repository,
            "SELECT uuid FROM event JOIN blob ON rid = objid WHERE type = 'ci' ORDER BY mtime DESC LIMIT 1",
        )
        assert newest == sample.hidden
        assert source.revision({}).partition("+")[0] == sample.tip

    def test_an_approved_post_moves_the_revision_and_appears(self, sample: SampleRepository, copy: Path) -> None:
        source = source_of(copy)
        before = source.revision({})
        ((post,),) = query(copy, "SELECT uuid FROM forumpost JOIN private ON rid = fpid JOIN blob USING(rid)")
        sample.fossil.request(copy, "/forume2", fields={"fpid": post, "approve": "Approve"})
        assert source.revision({}) != before
        assert ("forum", "How to feed lions?\n\f\npending post") in texts(source)

    def test_what_becomes_private_is_gone(self, sample: SampleRepository, copy: Path) -> None:
        source = source_of(copy)
        before = source.revision({})
        ticket = [
            row[0] for row in query(copy, "SELECT rid FROM tagxref JOIN tag USING(tagid) WHERE tagname GLOB 'tkt-*'")
        ]
        for rid in ticket:
            query(copy, "INSERT OR IGNORE INTO private VALUES (?)", rid)
        query(copy, "INSERT INTO private SELECT rid FROM blob WHERE size = ?", len(APP))
        assert source.revision({}) != before
        listing = source.artifacts({})
        assert not [ref for ref in listing.refs if ref.kind is Kind.TICKET]
        assert [item for item in listing.skipped if item.detail == "private"] == [
            Skipped("src/app.py", SkipReason.EXCLUDED, "private")
        ]

    def test_what_was_shunned_is_gone_before_any_rebuild(self, source: FossilSource, copy: Path) -> None:
        listing = source.artifacts({})
        for kind, path in ((Kind.WIKI, "Plain"), (Kind.CODE, "src/app.py")):
            query(copy, "INSERT INTO shun VALUES (?, 0, '')", ref_of(listing, kind, path).hash)
        found = texts(source_of(copy))
        assert ("wiki", "Plain") not in found
        assert ("code", "src/app.py") not in found

    def test_a_shunned_tip_gives_way_to_its_parent(self, sample: SampleRepository, copy: Path) -> None:
        query(copy, "INSERT INTO shun VALUES (?, 0, '')", sample.tip)
        assert ("code", "src/old_name.py") in texts(source_of(copy))


class TestWithheld:
    @pytest.fixture
    def versions(self, copy: Path) -> dict[str, str]:
        return {ref.hash: ref.version for ref in source_of(copy).artifacts({}).refs}

    def test_nothing_of_a_fresh_listing(self, copy: Path, versions: dict[str, str]) -> None:
        assert source_of(copy).withheld(versions) == frozenset()

    def test_an_edit_or_a_new_comment_withholds_nothing(
        self, sample: SampleRepository, copy: Path, versions: dict[str, str]
    ) -> None:
        sample.fossil.run("ticket", "set", sample.ticket, "icomment", "More.", "-R", copy)
        sample.fossil.run("wiki", "commit", "Plain", "-", "-R", copy, stdin="Awake.\n")
        assert source_of(copy).withheld(versions) == frozenset()

    def test_what_is_private_shunned_or_gone(self, source: FossilSource, copy: Path, versions: dict[str, str]) -> None:
        listing = source.artifacts({})
        private, shunned, gone = (
            ref_of(listing, kind, path).hash
            for kind, path in ((Kind.WIKI, "Plain"), (Kind.CODE, "src/app.py"), (Kind.DOC, "side.md"))
        )
        query(copy, "INSERT INTO private SELECT rid FROM blob WHERE uuid = ?", private)
        query(copy, "INSERT INTO shun VALUES (?, 0, '')", shunned)
        query(copy, "DELETE FROM blob WHERE uuid = ?", gone)
        assert source_of(copy).withheld(versions) == {private, shunned, gone}

    def test_a_ticket_of_which_a_comment_was_taken_out(
        self, sample: SampleRepository, copy: Path, versions: dict[str, str]
    ) -> None:
        changes = (
            "SELECT x.rid FROM tagxref x JOIN tag USING(tagid) WHERE tagname = ? ORDER BY x.mtime, x.rid LIMIT 1, 1"
        )
        query(copy, f"INSERT INTO private {changes}", f"tkt-{sample.ticket}")
        assert source_of(copy).withheld(versions) == {sample.ticket}


class TestCapabilities:
    def test_who_can_read_the_index_through_a_report(self, sample: SampleRepository, copy: Path) -> None:
        for login, capabilities in (("carol", "t"), ("dan", "uk2"), ("eve", "u"), ("fay", "a"), ("gil", "2")):
            sample.fossil.run("user", "new", login, "", "secret", "-R", copy)
            sample.fossil.run("user", "capabilities", login, capabilities, "-R", copy)
        kinds = (Kind.CODE, Kind.DOC, Kind.WIKI, Kind.TICKET, Kind.FORUM)
        # ``nobody`` may read files, wiki and tickets here; the template ``reader`` holds ``t``.
        found = {writer.login: writer.withheld for writer in source_of(copy).report_writers(kinds)}
        assert found == {"carol": {Kind.FORUM}, "eve": {Kind.FORUM}}
        sample.fossil.run("user", "capabilities", "nobody", "", "-R", copy)
        found = {writer.login: writer.withheld for writer in source_of(copy).report_writers(kinds)}
        assert found["carol"] == set(kinds)
        assert found["dan"] == {Kind.CODE, Kind.DOC}
        assert found.keys() == {"carol", "dan", "eve"}
        assert source_of(copy).report_writers([]) == []

    def test_letters_include_others(self, sample: SampleRepository) -> None:
        with fossil.open_fossil(sample.repository) as database:
            assert capabilities_of(database, "alice") >= set("saijkorw23456t")
            assert capabilities_of(database, "bob") >= set("23fkjrnwcio") | set("hmncgz")
            assert capabilities_of(database, "nobody") == capabilities_of(database, "stranger") == set("gjorz")
            assert capabilities_of(database, "anonymous") == set("hmncgjorz")
        assert may_see("2", Kind.FORUM)
        assert not may_see("jr2", Kind.CODE)


class TestChange:
    def test_a_comment_moves_the_version_and_not_the_hash(self, sample: SampleRepository, copy: Path) -> None:
        source = source_of(copy)
        before = ref_of(source.artifacts({}), Kind.TICKET)
        revision = source.revision({})
        sample.fossil.run("ticket", "set", sample.ticket, "icomment", "Done.", "-R", copy)
        after = ref_of(source.artifacts({}), Kind.TICKET)
        assert after.hash == before.hash
        assert after.version != before.version
        assert source.revision({}) != revision
        # A listing from before the comment still reads the ticket as it is, under its true version.
        (outcome,) = source.read([before])
        assert isinstance(outcome, Artifact)
        assert outcome.ref == after
        assert outcome.text == TICKET + "\n\f\nDone."

    def test_a_new_title_of_a_thread_moves_its_replies(self, sample: SampleRepository, copy: Path) -> None:
        source = source_of(copy)
        before = {ref.hash: ref.version for ref in source.artifacts({}).refs if ref.kind is Kind.FORUM}
        root, *_ = query(
            copy, "SELECT uuid FROM forumpost JOIN blob ON rid = fpid WHERE fprev IS NOT NULL ORDER BY fpid LIMIT 1"
        )
        form = {"mimetype": "text/x-markdown", "edit": "1", "title": "Lions", "content": "How?", "submit": "Submit"}
        sample.fossil.post(copy, "/forume2", fpid=root[0], **form)
        after = {ref.hash: ref.version for ref in source.artifacts({}).refs if ref.kind is Kind.FORUM}
        (reply,) = [key for key in before.keys() & after.keys() if before[key] != after[key]]
        (outcome,) = source.read([ref for ref in source.artifacts({}).refs if ref.hash == reply])
        assert isinstance(outcome, Artifact)
        assert outcome.text == "Lions\n\f\nWith a fork."

    def test_an_edited_page_has_another_hash_and_the_old_one_is_gone(
        self, sample: SampleRepository, copy: Path
    ) -> None:
        source = source_of(copy)
        before = ref_of(source.artifacts({}), Kind.WIKI, "Plain")
        sample.fossil.run("wiki", "commit", "Plain", "-", "-R", copy, stdin="Awake.\n")
        after = ref_of(source.artifacts({}), Kind.WIKI, "Plain")
        assert after.hash != before.hash
        old, new = source.read([before, after])
        assert old == Skipped("Plain", SkipReason.VANISHED)
        assert isinstance(new, Artifact)
        assert new.text == "Awake.\n"

    def test_the_revision_stands_still_when_nothing_happens(self, sample: SampleRepository, copy: Path) -> None:
        source = source_of(copy)
        before = source.revision({})
        assert source.artifacts({}).revision == before
        sample.fossil.run("rebuild", copy)
        assert source.revision({}) == before
        assert source_of(copy, options=Options(exclude=("docs/",))).revision({}) != before


class TestBranches:
    def test_another_branch_by_name(self, sample: SampleRepository) -> None:
        source = source_of(sample.repository, branch="side")
        assert source.revision({}).startswith(sample.branch_tip + "+")
        assert texts(source)["code", "src/app.py"] == APP + "# on the branch\n"

    def test_a_branch_that_is_not_there(self, sample: SampleRepository) -> None:
        with pytest.raises(SourceError, match=r"'nowhere'.*other, side, trunk"):
            source_of(sample.repository, branch="nowhere").artifacts({})

    def test_a_repository_without_trunk(self, copy: Path) -> None:
        query(copy, "UPDATE tag SET tagname = 'sym-main' WHERE tagname = 'sym-trunk'")
        query(copy, "UPDATE tagxref SET value = 'main' WHERE value = 'trunk'")
        with pytest.raises(SourceError, match=r"'trunk'.*main, other, side"):
            source_of(copy).revision({})
        query(copy, "INSERT INTO config(name, value, mtime) VALUES ('main-branch', 'main', 0)")
        assert ("code", "src/app.py") in texts(source_of(copy))

    def test_an_empty_repository(self, sample: SampleRepository, tmp_path: Path) -> None:
        empty = tmp_path / "empty.fossil"
        sample.fossil.run("init", empty)
        source = source_of(empty)
        assert source.project == "empty"
        assert source.artifacts({}).refs == []
        query(empty, "DELETE FROM event")
        assert source.revision({}).startswith("+")
        assert source.artifacts({}).refs == []


class TestFinding:
    def test_a_file_or_any_folder_of_a_checkout(self, sample: SampleRepository, copy: Path) -> None:
        assert find_fossil(copy) == FossilLocation(copy.resolve(), None)
        here = FossilLocation(sample.repository, sample.checkout)
        assert find_fossil(sample.checkout) == here
        assert find_fossil(sample.checkout / "docs") == here
        assert source_of(copy).root == copy.parent

    def test_nothing_is_found_where_nothing_is(self, tmp_path: Path) -> None:
        (tmp_path / "file.fossil").write_text("no database\n")
        sqlite3.connect(tmp_path / "other.fossil").close()
        for name in ("", "file.fossil", "other.fossil", "missing"):
            assert find_fossil(tmp_path / name) is None
            with pytest.raises(NotARepository):
                source_of(tmp_path / name)

    def test_a_relative_repository_is_meant_from_the_checkout(self, sample: SampleRepository, tmp_path: Path) -> None:
        copy = sample.copy(tmp_path)
        checkout = tmp_path / "out"
        checkout.mkdir()
        sample.fossil.run("open", copy, cwd=checkout)
        query(checkout / ".fslckout", "UPDATE vvar SET value = '../copy.fossil' WHERE name = 'repository'")
        (checkout / ".fslckout").rename(checkout / "_FOSSIL_")
        assert find_fossil(checkout / "src") == FossilLocation(copy.resolve(), checkout.resolve())

    def test_a_repository_that_moved_away(self, sample: SampleRepository, tmp_path: Path) -> None:
        shutil.copy(sample.checkout / ".fslckout", tmp_path)
        query(tmp_path / ".fslckout", "UPDATE vvar SET value = ? WHERE name = 'repository'", str(tmp_path / "gone"))
        with pytest.raises(SourceError, match=r"is gone.*gone"):
            find_fossil(tmp_path)

    def test_a_checkout_database_that_is_none(self, tmp_path: Path) -> None:
        (tmp_path / ".fslckout").write_bytes(b"")
        with pytest.raises(SourceError, match="names no repository"):
            find_fossil(tmp_path)

    def test_without_a_project_name_the_file_gives_it(self, copy: Path) -> None:
        query(copy, "DELETE FROM config WHERE name = 'project-name'")
        assert source_of(copy).project == "copy"


class TestOptions:
    def test_settings_hold_for_what_a_repository_carries(self, sample: SampleRepository) -> None:
        options = Options(max_bytes=30, exclude=("docs/",), include_secrets=(".env",), kinds=(("side.md", Kind.WIKI),))
        source = source_of(sample.repository, options)
        listing = source.artifacts({})
        assert ref_of(listing, Kind.WIKI, "side.md")
        reasons = {item.path: item.reason for item in listing.skipped}
        assert reasons["docs"] is SkipReason.EXCLUDED
        assert reasons["src/app.py"] is SkipReason.OVERSIZE
        outcomes = dict(zip(listing.refs, source.read(listing.refs), strict=True))
        by_path = {ref.path: outcome for ref, outcome in outcomes.items()}
        assert isinstance(side := by_path["side.md"], Artifact)
        assert side.text == "from the side\n"
        assert isinstance(secret := by_path[".env"], Artifact)
        assert secret.text == "TOKEN=1\n"
        ticket = outcomes[ref_of(listing, Kind.TICKET)]
        assert ticket == Skipped(sample.ticket, SkipReason.OVERSIZE, f"{len(TICKET)} bytes, limit 30")

    def test_secrets_in_pages_are_left_out(self, sample: SampleRepository, copy: Path) -> None:
        key = f"-----BEGIN PRIVATE KEY-----\n{'A' * 64}\n-----END PRIVATE KEY-----\n"
        sample.fossil.run("wiki", "commit", "Plain", "-", "-R", copy, stdin=key)
        source = source_of(copy)
        (outcome,) = source.read([ref_of(source.artifacts({}), Kind.WIKI, "Plain")])
        assert isinstance(outcome, Skipped)
        assert (outcome.path, outcome.reason) == ("Plain", SkipReason.SECRET)


class TestDamage:
    @pytest.fixture
    def listing(self, copy: Path) -> Listing:
        return source_of(copy).artifacts({})

    def outcome(self, copy: Path, listing: Listing, path: str) -> Artifact | Skipped:
        others = [ref for ref in listing.refs if ref.path == "README.md"]
        (bad, good) = source_of(copy).read([*(ref for ref in listing.refs if ref.path == path), *others])
        assert isinstance(good, Artifact)
        return bad

    def test_a_content_that_is_not_its_hash(self, copy: Path, listing: Listing) -> None:
        other = ref_of(listing, Kind.DOC, "README.md").hash
        query(
            copy,
            "UPDATE blob SET content = (SELECT content FROM blob WHERE uuid = ?) WHERE uuid = ?",
            other,
            ref_of(listing, Kind.DOC, "side.md").hash,
        )
        bad = self.outcome(copy, listing, "side.md")
        assert isinstance(bad, Skipped)
        assert (bad.reason, bad.detail) == (SkipReason.UNREADABLE, "its content does not match its hash")

    def test_a_content_that_cannot_be_decompressed(self, copy: Path, listing: Listing) -> None:
        side = ref_of(listing, Kind.DOC, "side.md").hash
        query(copy, "UPDATE blob SET content = x'0000000e00' WHERE uuid = ?", side)
        bad = self.outcome(copy, listing, "side.md")
        assert isinstance(bad, Skipped)
        assert bad.reason is SkipReason.UNREADABLE

    def test_a_content_that_never_arrived(self, copy: Path, listing: Listing) -> None:
        side = ref_of(listing, Kind.DOC, "side.md").hash
        query(copy, "UPDATE blob SET content = NULL, size = -1 WHERE uuid = ?", side)
        bad = self.outcome(copy, listing, "side.md")
        assert isinstance(bad, Skipped)
        assert "never arrived" in bad.detail
        assert [item.path for item in source_of(copy).artifacts({}).skipped if "never arrived" in item.detail] == [
            "side.md"
        ]

    def test_deltas_that_run_in_a_circle(self, copy: Path, listing: Listing) -> None:
        app = ref_of(listing, Kind.CODE, "src/app.py").hash
        query(copy, "UPDATE delta SET srcid = rid WHERE rid = (SELECT rid FROM blob WHERE uuid = ?)", app)
        bad = self.outcome(copy, listing, "src/app.py")
        assert isinstance(bad, Skipped)
        assert "circle" in bad.detail

    def test_a_tip_that_cannot_be_read(self, sample: SampleRepository, copy: Path) -> None:
        query(copy, "UPDATE blob SET content = x'00' WHERE uuid = ?", sample.tip)
        with pytest.raises(SourceError, match=f"check-in {sample.tip[:10]}"):
            source_of(copy).artifacts({})

    def test_a_damaged_database(self, copy: Path) -> None:
        data = bytearray(copy.read_bytes())
        data[4096:] = b"\xaa" * (len(data) - 4096)
        source = source_of(copy)
        copy.write_bytes(data)
        with pytest.raises(SourceError, match="damaged"):
            source.artifacts({})


class TestOtherPrograms:
    def test_a_locked_repository(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        source = source_of(copy)
        monkeypatch.setattr(fossil, "BUSY_SECONDS", 0.05)
        holder = sqlite3.connect(copy, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(SourceLocked, match=r"locked.*Try again"):
            source.revision({})
        holder.close()

    def test_a_commit_goes_through_in_the_middle_of_reading(self, sample: SampleRepository, tmp_path: Path) -> None:
        copy = sample.copy(tmp_path)
        checkout = tmp_path / "out"
        checkout.mkdir()
        sample.fossil.run("open", copy, cwd=checkout)
        source = source_of(copy)
        reading: Iterator[Artifact | Skipped] = source.read(source.artifacts({}).refs)
        next(reading)
        (checkout / "side.md").write_text("changed meanwhile\n")
        tip = sample.fossil.commit(checkout, "meanwhile")
        assert len(list(reading)) == 16
        assert source.revision({}).startswith(tip)

    def test_a_writer_that_was_killed(self, copy: Path) -> None:
        """It leaves a hot journal, which a read-only connection cannot roll back."""
        source = source_of(copy)
        before = source.revision({})
        script = (
            "import os, sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
            "d.execute('PRAGMA cache_size = 1'); d.execute('BEGIN IMMEDIATE'); d.execute('DELETE FROM tagxref')\n"
            "d.execute('CREATE TABLE fx_big AS SELECT randomblob(500000)'); os.kill(os.getpid(), 9)\n"
        )
        killed = subprocess.run([sys.executable, "-c", script, copy], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert copy.with_name(copy.name + "-journal").exists()
        assert source.revision({}) == before

    def test_a_repository_in_wal_mode(self, sample: SampleRepository, copy: Path) -> None:
        before = source_of(copy).revision({})
        sample.fossil.run("rebuild", "--wal", copy)
        assert query(copy, "PRAGMA journal_mode") == [("wal",)]
        assert source_of(copy).revision({}) == before

    def test_a_repository_of_sha1_names(self, sample: SampleRepository, tmp_path: Path) -> None:
        repository = tmp_path / "old.fossil"
        sample.fossil.run("init", "--sha1", repository)
        checkout = tmp_path / "old"
        checkout.mkdir()
        sample.fossil.run("open", repository, cwd=checkout)
        (checkout / "a.md").write_text("old style\n")
        sample.fossil.commit(checkout, "one")
        source = source_of(repository)
        ref = ref_of(source.artifacts({}), Kind.DOC, "a.md")
        assert len(ref.hash) == 40
        assert [outcome.text for outcome in source.read([ref]) if isinstance(outcome, Artifact)] == ["old style\n"]

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only to root")
    def test_a_repository_that_may_only_be_read(self, copy: Path) -> None:
        copy.chmod(0o400)
        copy.parent.chmod(0o500)
        try:
            assert texts(source_of(copy))
        finally:
            copy.parent.chmod(0o700)
