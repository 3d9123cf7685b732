"""Media in every source, end to end: what is found, what is left out and why, what an edit costs, what a check says."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fossil_program import Fossil, query
from repositories import commit, git, make_repository, opened_files, write

import outcrop
from outcrop.core.model import Artifact, Kind, Manifest, Ref, Skipped, SkipReason
from outcrop.core.reports import Progress
from outcrop.errors import FormatError, IntegrityError, ManifestError, SourceError, UsageError
from outcrop.media.add import add_media, mime_of
from outcrop.media.assets import find, list_media
from outcrop.media.verify import check, verify_all
from outcrop.surfaces.cli.program import main
from outcrop.surfaces.mcp.text_format import answer_text
from outcrop.surfaces.web.pages.hit_view import HitView
from outcrop.surfaces.web.pages.urls import Addresses

Run = Callable[..., tuple[int, str, str]]

TALK = b"not really a film" * 1000
SHA3 = hashlib.sha3_256(TALK).hexdigest()
SUBTITLES = (
    "WEBVTT\n\n00:01.000 --> 00:04.500\n<v Ada>The pump has to be primed.\n\n"
    "20:00.000 --> 20:09.250\n<v Grace>Otherwise the motor runs dry.\n"
)
PLAIN = "How to prune roses.\n\nCut above an outward bud in late winter.\n"


def manifest(transcript: str, **values: object) -> str:
    fields = {"uri": "https://media.example.org/talk.mp4", "sha3": SHA3, "mime": "video/mp4", "bytes": len(TALK)}
    return json.dumps(fields | {"transcript": transcript} | values)


FILES: dict[str, str | bytes] = {
    "README.md": "# Garden\n\nAbout gardens.\n",
    "media/talk.json": manifest("media/talk.vtt"),
    "media/talk.vtt": SUBTITLES,
    "media/roses/roses.json": manifest("roses.txt", uri="https://media.example.org/roses.ogg", mime="audio/ogg"),
    "media/roses/roses.txt": PLAIN,
    "media/strings.json": '{"title": "Garden", "uri": "x"}',
    "media/notes.txt": "Not the transcript of anything.\n",
}


@dataclass(frozen=True)
class Home:
    """A source that can be changed and looked at: ``put`` writes files and makes them part of it."""

    put: Callable[[dict[str, str | bytes]], None]
    open: Callable[[], outcrop.Index]
    checkout: Path


def folder(path: Path) -> Home:
    return Home(lambda files: write(path, files), lambda: outcrop.open(path), path)


def dirty_git(path: Path) -> Home:
    git(path, "init", "-q", "-b", "main")
    return Home(lambda files: write(path, files), lambda: outcrop.open(path), path)


def clean_git(path: Path) -> Home:
    make_repository(path, {".gitignore": "*.mp4\n"})

    def put(files: dict[str, str | bytes]) -> None:
        write(path, files)
        commit(path)

    return Home(put, lambda: outcrop.open(path), path)


def commit_git(path: Path) -> Home:
    home = clean_git(path)
    return Home(home.put, lambda: outcrop.open(path, rev="HEAD"), path)


def fossil(path: Path) -> Home:
    if shutil.which("fossil") is None:
        pytest.skip("the fossil program is not installed")
    program = Fossil(path)
    repository = program.create("garden.fossil")
    checkout = program.open(repository, "checkout")

    later = iter(range(1_700_000_000, 1_800_000_000, 10))

    def put(files: dict[str, str | bytes]) -> None:
        write(checkout, files)
        # Fossil takes a file of the same size and second for unchanged.
        for name in files:
            os.utime(checkout / name, (now := next(later), now))
        program.commit(checkout, "change")

    return Home(put, lambda: outcrop.open(checkout), checkout)


EVERYWHERE = [folder, dirty_git, clean_git, commit_git, fossil]


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("OUTCROP_EMBEDDER", "hash")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(params=EVERYWHERE)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    build: Callable[[Path], Home] = request.param
    (tmp_path / "home").mkdir()
    return build(tmp_path / "home")


@pytest.fixture
def plain(tmp_path: Path) -> Home:
    return folder(tmp_path)


def kinds(index: outcrop.Index) -> dict[str, Kind]:
    return {ref.path or "": ref.kind for ref in index.source.artifacts({}).refs if ref.path != ".gitignore"}


def reasons(index: outcrop.Index) -> dict[str, tuple[SkipReason, str]]:
    return {item.path: (item.reason, item.detail) for item in index.build().skipped}


def test_what_is_said_is_found_with_its_time_and_place(home: Home) -> None:
    home.put(FILES)
    with home.open() as index:
        index.build()
        (hit,) = index.search("motor runs dry", kind="media", k=1).hits
        assert (hit.kind, hit.path, hit.paths) == ("media", "media/talk.json", ("media/talk.json",))
        assert hit.text == "Grace: Otherwise the motor runs dry."
        assert (hit.start, hit.end, hit.lines) == (1200.0, 1209.25, (7, 7))
        assert hit.uri == "https://media.example.org/talk.mp4#t=1200,1209.25"
        assert hit.transcript == "media/talk.vtt"
        assert hit.corpus == ("docs",)
        assert hit.hash == next(ref.hash for ref in index.source.artifacts({}).refs if ref.path == "media/talk.json")
        (roses,) = index.search("outward bud", kind="media", k=1).hits
        assert (roses.path, roses.transcript, roses.lines) == (
            "media/roses/roses.json",
            "media/roses/roses.txt",
            (1, 3),
        )
        assert (roses.start, roses.end, roses.uri) == (None, None, "https://media.example.org/roses.ogg")
        (other,) = index.search("about gardens", kind="doc", k=1).hits
        assert (other.start, other.uri, other.transcript) == (None, None, None)


def test_a_transcript_is_not_also_a_document_and_any_json_is_code(home: Home) -> None:
    home.put(FILES)
    with home.open() as index:
        assert kinds(index) == {
            "README.md": Kind.DOC,
            "media/notes.txt": Kind.DOC,
            "media/roses/roses.json": Kind.MEDIA,
            "media/strings.json": Kind.CODE,
            "media/talk.json": Kind.MEDIA,
        }
        assert [item.path for item in index.source.artifacts({}).skipped] == []


def test_an_edited_transcript_embeds_what_changed_and_nothing_else(home: Home) -> None:
    home.put(FILES)
    with home.open() as index:
        index.build()
        before = {ref.path: ref for ref in index.source.artifacts({}).refs}["media/talk.json"]
        assert index.search("pump").stale is None
    home.put({"media/talk.vtt": SUBTITLES.replace("runs dry", "burns out")})
    with home.open() as index:
        # A commit that is indexed by name is another view.
        if index.source.worktree == "":
            assert index.search("pump").stale is not None
        report = index.build()
        after = {ref.path: ref for ref in index.source.artifacts({}).refs}["media/talk.json"]
        assert after.hash == before.hash
        assert after.version != before.version
        assert report.embedded == 1
        assert index.build().embedded == 0
        (hit,) = index.search("motor burns out", kind="media", k=1).hits
        assert hit.text == "Grace: Otherwise the motor burns out."
        texts = [hit.text for hit in index.search("motor", mode="keyword", kind="media").hits]
        assert texts == ["Grace: Otherwise the motor burns out."]


def test_times_that_move_embed_nothing(plain: Home) -> None:
    plain.put(FILES)
    with plain.open() as index:
        index.build()
        plain.put({"media/talk.vtt": SUBTITLES.replace("20:0", "30:0")})
        assert index.build().embedded == 0
        assert index.search("motor", kind="media", k=1).hits[0].start == 1800.0


def test_a_manifest_that_moves_or_names_another_place_embeds_nothing(home: Home) -> None:
    home.put(FILES)
    with home.open() as index:
        index.build()
    home.put({"media/talk.json": manifest("media/talk.vtt", uri="https://elsewhere.example.org/talk.mp4")})
    with home.open() as index:
        assert index.build().embedded == 0
        (hit,) = index.search("motor", kind="media", k=1).hits
        assert hit.uri == "https://elsewhere.example.org/talk.mp4#t=1200,1209.25"


def test_a_manifest_that_goes_gives_its_transcript_back(home: Home) -> None:
    home.put(FILES)
    with home.open() as index:
        index.build()
    home.put({"media/talk.json": "{}"})
    with home.open() as index:
        index.build()
        (hit,) = index.search("motor runs dry", k=1).hits
        assert (hit.kind, hit.path, hit.uri, hit.start) == ("doc", "media/talk.vtt", None, 1200.0)


KEY = f"-----BEGIN PRIVATE KEY-----\n{'QUJD' * 16}\n-----END PRIVATE KEY-----\n"

BROKEN: dict[str, tuple[str, SkipReason, str]] = {
    "missing": (manifest("media/none.txt"), SkipReason.BROKEN, "its transcript is not there: media/none.txt"),
    "cut_off": (manifest("a.txt")[:-1], SkipReason.BROKEN, "not JSON: Expecting ',' delimiter, line 1"),
    "fields": (
        '{"uri": 1, "sha3": "x", "bytes": "3"}',
        SkipReason.BROKEN,
        "uri is not a string; sha3 is not 64 hexadecimal digits; mime is missing; bytes is not a whole number;"
        " transcript is missing",
    ),
    "absolute": (
        manifest("/etc/passwd"),
        SkipReason.BROKEN,
        "transcript is not a path inside the repository: /etc/passwd",
    ),
    "escaping": (
        manifest("../../etc/passwd"),
        SkipReason.BROKEN,
        "transcript is outside of the repository: ../../etc/passwd",
    ),
    "of_a_manifest": (manifest("media/talk.json"), SkipReason.BROKEN, "its transcript is not there: media/talk.json"),
    "itself": (manifest("./itself.json"), SkipReason.BROKEN, "its transcript is not there: ./itself.json"),
    "a_folder": (manifest("media/roses"), SkipReason.BROKEN, "its transcript is not there: media/roses"),
    "environment": (
        manifest("media/.env"),
        SkipReason.SECRET,
        "its transcript media/.env: may hold secrets, named like one: .env",
    ),
    "key": (
        manifest("key.txt"),
        SkipReason.SECRET,
        "its transcript media/key.txt: may hold secrets, holds a private key, line 1",
    ),
    "sound": (manifest("sound.mp3"), SkipReason.BINARY, "its transcript media/sound.mp3: binary, by its name"),
    "picture": (manifest("picture.txt"), SkipReason.BINARY, "its transcript media/picture.txt: binary"),
    "endless": (
        manifest("endless.txt"),
        SkipReason.OVERSIZE,
        "its transcript media/endless.txt: larger than the size limit, 1200000 bytes, limit 1048576",
    ),
    "ignored": (
        manifest("ignored.txt"),
        SkipReason.EXCLUDED,
        "its transcript media/ignored.txt: excluded by settings, by",
    ),
    "away": (manifest("away/a.txt"), SkipReason.EXCLUDED, "its transcript media/away/a.txt: excluded by settings, by"),
    "empty": (manifest("empty.txt"), SkipReason.BROKEN, "its transcript is empty: media/empty.txt"),
    "silent": (manifest("silent.vtt"), SkipReason.BROKEN, "its transcript is empty: media/silent.vtt"),
}


def test_broken_manifests_are_left_out_each_with_its_reason(home: Home) -> None:
    texts: dict[str, str | bytes] = {
        ".outcropignore": "media/ignored.txt\nmedia/away/\n",
        "media/.env": "TOKEN=1\n",
        "media/key.txt": KEY,
        "media/sound.mp3": b"ID3",
        "media/picture.txt": b"\x89PNG\0\0\0",
        "media/endless.txt": "words " * 200_000,
        "media/ignored.txt": "words\n",
        "media/away/a.txt": "words\n",
        "media/empty.txt": " \n\n",
        "media/silent.vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\n\n",
    }
    home.put(FILES | texts | {f"media/{name}.json": text for name, (text, *_) in BROKEN.items()})
    with home.open() as index:
        found = reasons(index)
        for name, (_, reason, detail) in BROKEN.items():
            assert found[f"media/{name}.json"][0] is reason, name
            assert found[f"media/{name}.json"][1].startswith(detail), name
        assert reasons(index) == found
        assert {item.path for item in index.plan().skipped} == found.keys()
        assert index.search("motor runs dry", kind="media", k=1).hits[0].path == "media/talk.json"
        assert len(list_media(index).skipped) == len(BROKEN)


def test_a_transcript_that_comes_later_is_taken_up(home: Home) -> None:
    home.put({"media/a.json": manifest("media/a.srt")})
    with home.open() as index:
        assert reasons(index)["media/a.json"][0] is SkipReason.BROKEN
    home.put({"media/a.srt": "1\n00:00:01,000 --> 00:00:02,000\nSharpen the shears.\n"})
    with home.open() as index:
        assert "media/a.json" not in reasons(index)
        assert index.search("shears", k=1).hits[0].uri == "https://media.example.org/talk.mp4#t=1,2"


def test_a_line_without_end_is_a_transcript_all_the_same(plain: Home) -> None:
    plain.put({"media/a.json": manifest("a.txt"), "media/a.txt": "and so the speaker went on about tulips " * 2000})
    with plain.open() as index:
        assert index.build().skipped == ()
        assert index.search("tulips", kind="media").hits


def test_two_manifests_may_share_a_transcript(plain: Home) -> None:
    plain.put(FILES | {"media/audio.json": manifest("media/talk.vtt", uri="https://a/talk.ogg", mime="audio/ogg")})
    with plain.open() as index:
        report = index.build()
        assert (report.chunks, report.embedded) == (8, 6)
        hits = index.search("motor runs dry", kind="media", k=2).hits
        assert {hit.uri for hit in hits} == {
            "https://a/talk.ogg#t=1200,1209.25",
            "https://media.example.org/talk.mp4#t=1200,1209.25",
        }


def test_one_manifest_at_two_places_is_one_artifact(plain: Home) -> None:
    plain.put(FILES | {"media/again.json": manifest("media/talk.vtt")})
    with plain.open() as index:
        index.build()
        (hit,) = index.search("motor runs dry", kind="media", k=1).hits
        assert hit.paths == ("media/again.json", "media/talk.json")


def test_the_bytes_of_a_manifest_have_one_text(plain: Home) -> None:
    here = manifest("talk.txt")
    plain.put(
        {
            "media/a/talk.json": here,
            "media/a/talk.txt": "About onions.\n",
            "media/b/talk.json": here,
            "media/b/talk.txt": "About leeks.\n",
            "attic/talk.json": here,
        }
    )
    with plain.open() as index:
        same = (SkipReason.EXCLUDED, "the same bytes as the manifest media/a/talk.json")
        assert reasons(index) == {"attic/talk.json": same, "media/b/talk.json": same}
        assert index.search("onions", k=1).hits[0].path == "media/a/talk.json"


def test_code_and_instructions_stay_what_they_are(plain: Home) -> None:
    plain.put(
        {
            "media/a.json": manifest("media/show.py"),
            "media/show.py": "def show():\n    return 1\n",
            "media/b.json": manifest("AGENTS.md", uri="https://a/b"),
            "AGENTS.md": "Be brief.\n",
            "media/c.json": manifest("media/c.lines", uri="https://a/c"),
            "media/c.lines": "words of an unknown sort\n",
        }
    )
    with plain.open() as index:
        assert kinds(index) == {
            "AGENTS.md": Kind.INSTRUCTION,
            "media/a.json": Kind.MEDIA,
            "media/b.json": Kind.MEDIA,
            "media/c.json": Kind.MEDIA,
            "media/show.py": Kind.CODE,
        }


def test_settings_say_where_else_manifests_are(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "outcrop.toml": '[kinds]\n"talks/*.json" = "media"\n',
            "talks/a.json": manifest("a.vtt"),
            "talks/a.vtt": SUBTITLES,
            "talks/b.json": "{}",
        },
    )
    with outcrop.open(tmp_path) as index:
        assert reasons(index) == {"talks/b.json": (SkipReason.BROKEN, "not a media manifest")}
        assert index.search("motor", kind="media", k=1).hits[0].transcript == "talks/a.vtt"


def test_without_an_index_the_transcripts_are_searched_by_words(home: Home) -> None:
    home.put(FILES)
    with home.open() as index:
        answer = index.search("motor runs dry")
        assert answer.mode == "keyword"
        assert answer.hits[0].uri == "https://media.example.org/talk.mp4#t=1200,1209.25"


def test_a_corpus_of_ones_own_may_hold_media(plain: Home) -> None:
    plain.put(FILES)
    with plain.open() as index:
        index.build(corpus="talks", paths=["media"])
        (hit,) = index.search("motor runs dry", corpus="talks", k=1).hits
        assert (hit.path, hit.corpus, hit.start) == ("media/talk.json", ("talks",), 1200.0)


def test_an_unchanged_folder_is_listed_without_reading_any_transcript(plain: Home) -> None:
    plain.put(FILES)
    with plain.open() as index:
        # A file that was written a moment ago is not trusted to be as it was.
        time.sleep(0.1)
        seen = index.source.artifacts({}).seen
        with opened_files() as names:
            index.source.artifacts(seen)
        assert sorted(Path(name).name for name in names) == ["roses.json", "strings.json", "talk.json"]
        with opened_files() as names:
            index.source.revision(seen)
        assert names == []


def test_a_ref_that_was_kept_is_read_again(home: Home) -> None:
    home.put(FILES)
    with home.open() as index:
        for ref in index.source.artifacts({}).refs:
            if ref.kind is Kind.MEDIA:
                bare = Ref(ref.hash, ref.kind, ref.path, ref.version, ref.size)
                (kept,), (whole,) = index.source.read([bare]), index.source.read([ref])
                assert isinstance(kept, Artifact)
                assert isinstance(whole, Artifact)
                assert (kept.text, kept.manifest) == (whole.text, whole.manifest)
                assert (kept.ref.hash, kept.ref.version) == (whole.ref.hash, whole.ref.version)


def test_what_changes_between_listing_and_reading_is_looked_at_again(plain: Home) -> None:
    plain.put(FILES)
    with plain.open() as index:
        refs = {ref.path: ref for ref in index.source.artifacts({}).refs}
        ref = refs["media/talk.json"]
        plain.put({"media/talk.vtt": SUBTITLES.replace("dry", "hot")})
        (moved,) = index.source.read([ref])
        assert isinstance(moved, Artifact)
        assert "hot" in moved.text
        assert moved.ref.hash == ref.hash
        assert moved.ref.version != ref.version
        plain.put({"media/talk.json": manifest("media/notes.txt")})
        assert list(index.source.read([ref])) == [
            Skipped("media/talk.json", SkipReason.VANISHED, "it changed meanwhile")
        ]
        (plain.checkout / "media/talk.json").unlink()
        (gone,) = index.source.read([ref])
        assert isinstance(gone, Skipped)
        assert gone.reason is SkipReason.VANISHED


def test_a_transcript_that_is_taken_from_the_public_hides_its_passages(tmp_path: Path) -> None:
    home = fossil(tmp_path)
    home.put(FILES)
    with home.open() as index:
        index.build()
        assert index.search("motor runs dry", kind="media").hits
        transcript = next(ref.transcript for ref in index.source.artifacts({}).refs if ref.path == "media/talk.json")
        assert transcript is not None
        query(tmp_path / "garden.fossil", "INSERT INTO shun(uuid, mtime) VALUES (?, 0)", transcript.hash)
        paths = [hit.path for hit in index.search("motor runs dry", kind="media").hits]
        assert paths == ["media/roses/roses.json"]
        assert reasons(index)["media/talk.json"][0] is SkipReason.EXCLUDED


def test_imported_vectors_have_their_times_again(tmp_path: Path) -> None:
    home = fossil(tmp_path)
    home.put(FILES)
    with home.open() as index:
        index.build()
        index.clear()
        report = index.import_blobs()
        assert report.missing == 0
        (hit,) = index.search("motor runs dry", kind="media", k=1).hits
        assert hit.uri == "https://media.example.org/talk.mp4#t=1200,1209.25"


def test_pages_and_agents_are_led_to_the_moment(plain: Home) -> None:
    plain.put(FILES)
    with plain.open() as index:
        index.build()
        answer = index.search("motor runs dry", kind="media")
        at = Addresses("/search")
        cards = {hit.transcript: HitView(1, hit, answer, frozenset(), [], [], "", at) for hit in reversed(answer.hits)}
        talk, roses = cards["media/talk.vtt"], cards["media/roses/roses.txt"]
        assert (talk.where, [(link.href, link.label, link.outside) for link in talk.links]) == (
            "20:00–20:09",
            [("https://media.example.org/talk.mp4#t=1200,1209.25", "Play from 20:00", True)],
        )
        assert [link.label for link in roses.links] == ["Open the recording"]
        assert "https://media.example.org/talk.mp4#t=1200,1209.25" in answer_text(answer, full=False)
        block = outcrop.rag_context("motor runs dry", 1, index=index, min_score=0.0, timeout=30)
        assert "] media/talk.json https://media.example.org/talk.mp4#t=1200,1209.25 · media · " in block


class TestVerifying:
    @pytest.fixture
    def talk(self, tmp_path: Path) -> Path:
        path = tmp_path / "downloads" / "talk.mp4"
        path.parent.mkdir()
        path.write_bytes(TALK)
        return path

    @pytest.fixture
    def garden(self, tmp_path: Path) -> Path:
        write(tmp_path / "garden", FILES)
        return tmp_path / "garden"

    def test_a_whole_file_agrees_with_its_manifest(self, garden: Path, talk: Path) -> None:
        for about in ("media/talk.json", None, Manifest("x", SHA3, "video/mp4", len(TALK), "x.txt")):
            assert outcrop.verify_media(talk, about, directory=garden).sha3 == SHA3

    def test_another_file_does_not(self, garden: Path, talk: Path) -> None:
        talk.write_bytes(TALK[:-1] + b"!")
        with pytest.raises(IntegrityError, match="has the SHA3-256"):
            outcrop.verify_media(talk, "media/talk.json", directory=garden)
        with pytest.raises(IntegrityError, match=r"talk\.mp4 is not what media/talk\.json names"):
            outcrop.verify_media(talk, directory=garden)
        talk.write_bytes(TALK[:-1])
        with pytest.raises(IntegrityError, match="has 16,999 bytes, its manifest says 17,000"):
            outcrop.verify_media(talk, "media/talk.json", directory=garden)

    def test_a_file_of_another_size_is_not_read(self, talk: Path) -> None:
        one = Manifest("x", SHA3, "video/mp4", len(TALK) + 1, "x.txt")
        with opened_files() as names, pytest.raises(IntegrityError):
            check(talk, one)
        assert str(talk) not in names

    def test_a_file_whose_size_no_manifest_has_is_not_read_either(self, garden: Path, talk: Path) -> None:
        talk.write_bytes(TALK + b"!")
        other = talk.rename(talk.with_name("other.mp4"))
        with opened_files() as names, pytest.raises(UsageError, match="no manifest here is about other"):
            outcrop.verify_media(other, directory=garden)
        assert str(other) not in names

    def test_it_tells_how_far_it_is(self, tmp_path: Path) -> None:
        path = tmp_path / "large.bin"
        path.write_bytes(bytes(5_500_000))
        told: list[Progress] = []
        one = Manifest("x", hashlib.sha3_256(bytes(5_500_000)).hexdigest(), "video/mp4", 5_500_000, "x.txt")
        check(path, one, told.append)
        assert [each.done for each in told] == sorted(each.done for each in told)
        assert (told[-1].phase, told[-1].done, told[-1].total) == ("hashing", 5, 5)

    def test_what_is_not_there_is_said(self, garden: Path, talk: Path) -> None:
        with pytest.raises(UsageError, match=r"there is no manifest at media/none\.json"):
            outcrop.verify_media(talk, "media/none.json", directory=garden)
        with pytest.raises(ManifestError, match="is not a media manifest"):
            outcrop.verify_media(talk, "media/strings.json", directory=garden)
        with pytest.raises(UsageError, match="cannot be read: No such file"):
            outcrop.verify_media(talk.with_name("gone.mp4"), "media/talk.json", directory=garden)
        with pytest.raises(UsageError, match="is not a file"):
            outcrop.verify_media(talk.parent, "media/talk.json", directory=garden)
        other = talk.with_name("other.mp4")
        other.write_bytes(b"something else")
        with pytest.raises(UsageError, match=r"no manifest here is about other\.mp4"):
            outcrop.verify_media(other, directory=garden)

    def test_a_manifest_of_a_commit_is_found_without_its_file(self, tmp_path: Path, talk: Path) -> None:
        make_repository(tmp_path / "work", FILES)
        git(tmp_path, "clone", "-q", "--bare", "work", "bare.git")
        assert outcrop.verify_media(talk, "media/talk.json", directory=tmp_path / "bare.git").bytes == len(TALK)

    def test_local_assets_are_found_by_their_uri(self, garden: Path, talk: Path) -> None:
        (garden / "my talk.mp4").write_bytes(TALK)
        write(
            garden,
            {
                "media/a.json": manifest("media/notes.txt", uri="my%20talk.mp4"),
                "media/b.json": manifest("media/notes.txt", uri=talk.as_uri()),
                "media/c.json": manifest("media/notes.txt", uri="gone.mp4"),
                "media/d.json": manifest("media/notes.txt", uri="http://[broken"),
            },
        )
        with outcrop.open(garden) as index:
            found = {each.manifest: (each.ok, each.file) for each in verify_all(index, [])}
            assert found == {
                "media/a.json": (True, str(garden / "my talk.mp4")),
                "media/b.json": (True, str(talk)),
                "media/c.json": (False, str(garden / "gone.mp4")),
                "media/d.json": (None, "http://[broken"),
                "media/roses/roses.json": (None, "https://media.example.org/roses.ogg"),
                "media/talk.json": (None, "https://media.example.org/talk.mp4"),
            }
            assert [each.ok for each in verify_all(index, ["media/a.json", str(talk), "nothing.mp4"])] == [
                True,
                True,
                False,
            ]


class TestAdding:
    @pytest.fixture
    def garden(self, tmp_path: Path) -> Path:
        write(tmp_path / "garden", {"media/talks/talk.vtt": SUBTITLES, "films/my talk.mp4": TALK, "notes.txt": PLAIN})
        return tmp_path / "garden"

    @pytest.fixture
    def index(self, garden: Path) -> Iterator[outcrop.Index]:
        with outcrop.open(garden) as index:
            yield index

    def test_a_file_of_the_repository(self, index: outcrop.Index, garden: Path) -> None:
        added = add_media(index, str(garden / "films/my talk.mp4"), garden / "media/talks/talk.vtt")
        assert (added.path, added.remark) == ("media/talks/my talk.json", "")
        assert json.loads((garden / added.path).read_text("utf-8")) == {
            "uri": "films/my%20talk.mp4",
            "sha3": SHA3,
            "mime": "video/mp4",
            "bytes": len(TALK),
            "transcript": "media/talks/talk.vtt",
        }
        index.build()
        assert index.search("motor runs dry", k=1).hits[0].uri == "films/my%20talk.mp4#t=1200,1209.25"
        assert [each.ok for each in verify_all(index, [])] == [True]

    def test_a_uri_with_a_copy_or_with_its_numbers(self, index: outcrop.Index, garden: Path) -> None:
        copy, text = garden / "films/my talk.mp4", garden / "media/talks/talk.vtt"
        one = add_media(index, "https://a.example/talk.webm?x=1", text, file=copy)
        two = add_media(index, "ipfs://bafy/two", text, sha3=SHA3.upper(), size=len(TALK), mime="audio/flac")
        assert (one.path, one.manifest.mime) == ("media/talks/talk.json", "video/webm")
        assert (two.path, two.manifest.mime) == ("media/talks/two.json", "audio/flac")
        assert one.manifest.sha3 == two.manifest.sha3 == SHA3

    def test_a_transcript_elsewhere_in_the_repository(self, index: outcrop.Index, garden: Path) -> None:
        added = add_media(index, str(garden / "films/my talk.mp4"), garden / "notes.txt")
        assert added.path == "media/my talk.json"

    def test_a_file_whose_name_is_not_text(self, index: outcrop.Index, garden: Path) -> None:
        odd = Path(os.fsdecode(os.fsencode(garden) + b"/b\xffd #1.mp4"))
        odd.write_bytes(TALK)
        added = add_media(index, str(odd), garden / "notes.txt", to="media/odd.json")
        assert added.manifest.uri == "b%FFd%20%231.mp4"
        assert [each.ok for each in verify_all(index, [])] == [True]
        assert verify_all(index, [str(odd)])[0].manifest == "media/odd.json"

    def test_a_file_of_this_machine_alone_is_remarked_upon(self, index: outcrop.Index, garden: Path) -> None:
        away = garden.parent / "away.ogg"
        away.write_bytes(b"OggS")
        added = add_media(index, str(away), garden / "notes.txt")
        assert added.manifest.uri == away.as_uri()
        assert "of no use on another" in added.remark

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"asset": "https://a/b.mp4"}, UsageError, "downloads nothing"),
            ({"asset": "https://a/b.mp4", "sha3": SHA3}, UsageError, "downloads nothing"),
            ({"asset": "https://a/b.mp4", "sha3": "abc", "size": 3}, UsageError, "downloads nothing"),
            ({"asset": "gone.mp4"}, UsageError, "gone.mp4 cannot be read"),
            ({"asset": "https://a/b c.mp4", "sha3": SHA3, "size": 3}, UsageError, "uri has a space"),
            ({"asset": "https://a/b.mp4", "sha3": SHA3, "size": 3, "mime": "film"}, UsageError, "mime is not"),
            ({"to": "../b.json"}, UsageError, "the manifest is outside of"),
            ({"to": "docs/b.json"}, UsageError, "is no place for a manifest"),
            ({"to": "media/b.txt"}, UsageError, "is no place for a manifest"),
            ({"text": "/etc/hostname"}, UsageError, "the transcript is outside of"),
            ({"text": "media/gone.vtt"}, UsageError, "cannot be read"),
            ({"text": "media"}, UsageError, "is not a file"),
            ({"text": "media/binary.txt"}, FormatError, "is no transcript: binary"),
            ({"text": "media/film.mp3"}, FormatError, "is no transcript: binary"),
            ({"text": "media/empty.txt"}, FormatError, "is empty"),
            ({"text": "media/silent.vtt"}, FormatError, "is empty"),
            ({"text": "media/long.txt"}, FormatError, "more than the 1,048,576 of a file that is indexed"),
            ({"sha3": "0" * 64}, UsageError, "not what was said"),
            ({"size": 1}, UsageError, "not what was said"),
        ],
    )
    def test_what_cannot_be_is_said_and_nothing_is_written(
        self, index: outcrop.Index, garden: Path, arguments: dict[str, object], error: type[Exception], message: str
    ) -> None:
        write(
            garden,
            {
                "media/binary.txt": b"a\0b\0\xff",
                "media/film.mp3": b"ID3",
                "media/empty.txt": "\n",
                "media/silent.vtt": "WEBVTT - Roof\n",
                "media/long.txt": "x\n" * 600_000,
            },
        )
        before = sorted(garden.rglob("*"))
        values: dict[str, object] = {
            "asset": str(garden / "films/my talk.mp4"),
            "text": "media/talks/talk.vtt",
        } | arguments
        with pytest.raises(error, match=message):
            add_media(index, str(values.pop("asset")), garden / str(values.pop("text")), **values)  # type: ignore[arg-type]
        assert sorted(garden.rglob("*")) == before

    def test_a_manifest_that_is_there_stays_unless_it_is_to_be_replaced(
        self, index: outcrop.Index, garden: Path
    ) -> None:
        asset, text = str(garden / "films/my talk.mp4"), garden / "media/talks/talk.vtt"
        add_media(index, asset, text, to="media/x.json")
        with pytest.raises(UsageError, match=r"media/x\.json is there already"):
            add_media(index, asset, text, to="media/x.json")
        assert add_media(index, asset, text, to="media/x.json", mime="video/x", replace=True).manifest.mime == "video/x"
        assert find(index, "media/x.json").mime == "video/x"

    def test_what_will_not_be_indexed_is_remarked_upon(self, garden: Path) -> None:
        write(garden, {"media/credentials.txt": "words\n"})
        with outcrop.open(garden) as index:
            added = add_media(index, "https://a/b.ogg", garden / "media/credentials.txt", sha3=SHA3, size=1)
            assert "it will not be indexed: its transcript media/credentials.txt: may hold secrets" in added.remark
        git(garden, "init", "-q")
        write(garden, {".gitignore": "media/ignored/\n", "media/ignored/a.txt": "words\n"})
        with outcrop.open(garden) as index:
            added = add_media(index, "https://a/c.ogg", garden / "media/ignored/a.txt", sha3=SHA3, size=1)
            assert "it will not be indexed" in added.remark

    def test_in_fossil_it_has_to_be_checked_in_first(self, tmp_path: Path) -> None:
        home = fossil(tmp_path)
        home.put(FILES)
        with outcrop.open(home.checkout) as index:
            added = add_media(index, "https://a/b.ogg", home.checkout / "media/talk.vtt", sha3=SHA3, size=1)
        assert added.remark == "it is indexed once it and its transcript are checked in"

    def test_what_cannot_be_written_is_said(self, index: outcrop.Index, garden: Path) -> None:
        with pytest.raises(SourceError, match=r"talk\.vtt/b\.json cannot be written: (Not a directory|File exists)"):
            add_media(
                index, "https://a/b.mp4", garden / "notes.txt", sha3=SHA3, size=1, to="media/talks/talk.vtt/b.json"
            )

    def test_a_repository_without_files_takes_none(self, tmp_path: Path, garden: Path) -> None:
        make_repository(tmp_path / "work", FILES)
        git(tmp_path, "clone", "-q", "--bare", "work", "bare.git")
        with outcrop.open(tmp_path / "bare.git") as index, pytest.raises(UsageError, match="no checked-out files"):
            add_media(index, "https://a/b.mp4", garden / "notes.txt", sha3=SHA3, size=1)

    @pytest.mark.parametrize(
        ("uri", "mime"),
        [
            ("https://a/b.MP4?x=1#t=3", "video/mp4"),
            ("a%20b.mkv", "video/x-matroska"),
            ("a.flac", "audio/flac"),
            ("a.wav", "audio/wav"),
            ("a.png", "image/png"),
            ("a.unknown", "application/octet-stream"),
            ("https://a/", "application/octet-stream"),
            ("http://[broken", "application/octet-stream"),
        ],
    )
    def test_the_media_type_comes_from_the_name(self, uri: str, mime: str) -> None:
        assert mime_of(uri) == mime


def test_the_list_tells_of_broken_ones_too(plain: Home) -> None:
    plain.put(FILES | {"media/a.json": manifest("nowhere.txt")})
    with plain.open() as index:
        found = list_media(index)
        assert [(each.path, each.transcript, each.seconds) for each in found.assets] == [
            ("media/roses/roses.json", "media/roses/roses.txt", None),
            ("media/talk.json", "media/talk.vtt", 1209.25),
        ]
        assert [(item.path, item.detail) for item in found.skipped] == [
            ("media/a.json", "its transcript is not there: nowhere.txt")
        ]


class TestCommand:
    @pytest.fixture
    def run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
        write(tmp_path / "garden", {"media/talk.vtt": SUBTITLES, "talk.mp4": TALK})
        monkeypatch.chdir(tmp_path / "garden")

        def call(*arguments: str) -> tuple[int, str, str]:
            capfd.readouterr()
            code = main(arguments)
            sys.stdout.flush()
            captured = capfd.readouterr()
            return code, captured.out, captured.err

        return call

    def test_a_day_with_media(self, run: Run) -> None:
        assert run("media", "list") == (0, "there are no media manifests here; outcrop media add writes one\n", "")
        uri = "https://media.example.org/talk.mp4"
        code, out, err = run("media", "add", uri, "--file", "talk.mp4", "--transcript", "media/talk.vtt")
        assert (code, out, err) == (0, f"wrote media/talk.json: video/mp4, 17.0 kB, SHA3-256 {SHA3[:12]}…\n", "")
        assert run("media", "list") == (0, f"media/talk.json  video/mp4  17.0 kB  20:09  {uri}\n", "")
        assert run("media", "verify", "talk.mp4") == (0, "ok  talk.mp4\n", "")
        assert run("media", "verify") == (0, f"elsewhere  {uri}  download it, then: outcrop media verify FILE\n", "")
        run("index")
        _, out, _ = run("search", "motor", "runs", "dry")
        assert out.splitlines()[1:3] == [f"  {uri}#t=1200,1209.25", "     Grace: Otherwise the motor runs dry."]
        assert out.startswith("media/talk.json 20:00-20:09  ")
        Path("talk.mp4").write_bytes(TALK + b"!")
        code, out, _ = run("media", "verify", "talk.mp4")
        assert code == 1
        assert out.startswith("FAILED  talk.mp4  talk.mp4 is not what media/talk.json names: the file has 17,001 bytes")

    def test_json(self, run: Run) -> None:
        _, out, _ = run("media", "add", "talk.mp4", "--transcript", "media/talk.vtt", "--json")
        added = json.loads(out)
        assert (added["path"], added["manifest"]["sha3"], added["remark"]) == ("media/talk.json", SHA3, "")
        _, out, _ = run("media", "list", "--json")
        assert json.loads(out)["assets"][0]["manifest"] == added["manifest"]
        _, out, _ = run("media", "verify", "--json")
        (checked,) = json.loads(out)["checked"]
        assert (checked["ok"], checked["manifest"]) == (True, "media/talk.json")

    @pytest.mark.parametrize(
        "arguments",
        [
            ("add", "talk.mp4"),
            ("add", "--transcript", "media/talk.vtt"),
            ("add", "a", "b", "--transcript", "media/talk.vtt"),
            ("list", "talk.mp4"),
            ("list", "--force"),
            ("verify", "talk.mp4", "--to", "x.json"),
            ("verify", "--manifest", "media/talk.json"),
            ("add", "talk.mp4", "--transcript", "media/talk.vtt", "--manifest", "x"),
            ("add", "https://a/b", "--transcript", "media/talk.vtt", "--bytes", "-1"),
            ("remove",),
        ],
    )
    def test_a_wrong_call_is_refused(self, run: Run, arguments: tuple[str, ...]) -> None:
        code, out, err = run("media", *arguments)
        assert (code, out) == (2, "")
        assert err.startswith("outcrop: ")
