"""A real history goes by while `outcrop watch` runs and questions are asked: is the index right in the end, and was it
honest all the way?

usage: replay.py REPOSITORY [--commits N] [--fossil N] [--embedder NAME] [--seed N] [--keep DIR]

REPOSITORY is any git repository with enough commits on its first-parent line. Its last N commits arrive one after the
other in a clone, as a pull would bring them, with branch switches and unsaved work in between, at a pace that is
sometimes faster than the watch (every third waits for it). Then the last of them go through a Fossil repository as
check-ins, with wiki pages.

Beside it one thread asks questions without a pause. Every answer is checked: it may not fail, and unless it says that
the index is behind, each passage must stand in a file that was there with this very content while it was asked. In the
end the index must be the same as one that is built from nothing: every chunk, every membership, every vector, to the
last bit.

Caveats: with the `hash` embedder (the default here) an update takes a fraction of a second; a slower one lags further
behind, and more answers say so. An answer that was given while a commit arrived may be of the state before or after it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Each question would otherwise keep every processor spinning for a while, as `outcrop search` knows to prevent.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import outcrop
from outcrop.app import watch_lock
from outcrop.app.update import is_stale
from outcrop.core.model import Answer, Kind

QUESTIONS = (
    "where are errors raised",
    "parse the arguments of a command",
    "how is it installed",
    "changelog of the last version",
    "test of the help text",
)
CATCH_UP_SECONDS = 120.0
REST_SECONDS = 2.0

State = frozenset[tuple[str, str]]
"""Path and content address of every file at one moment."""


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True, text=True)
    return done.stdout


def state_of(folder: Path) -> State:
    """Every file of a working tree by its git blob id, as git itself computes it."""
    names = git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    there = [name for name in dict.fromkeys(names) if name and (folder / name).is_file()]
    done = subprocess.run(
        ["git", "-C", str(folder), "hash-object", "--stdin-paths"],
        input="".join(f"{name}\n" for name in there),
        capture_output=True,
        check=True,
        text=True,
    )
    return frozenset(zip(there, done.stdout.split(), strict=True))


@dataclass
class Timeline:
    """Which states the source was in, and when it was on its way from one to the next."""

    states: list[tuple[float, float, State]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def step(self, look: Callable[[], State]) -> Iterator[None]:
        """Whatever happens inside leads from the last state to a new one."""
        began = time.monotonic()
        yield
        ended = time.monotonic()
        after = look()
        with self.lock:
            self.states.append((began, ended, after))

    def during(self, start: float, end: float) -> set[tuple[str, str]] | None:
        """Everything that was there at some moment of a span of time; None while the last state is not known yet."""
        with self.lock:
            there: set[tuple[str, str]] = set()
            for at, (_, _, state) in enumerate(self.states):
                leaves = self.states[at + 1][1] if at + 1 < len(self.states) else float("inf")
                if leaves >= start and self.states[at][0] <= end:
                    there |= state
            return there


@dataclass
class Asked:
    """What became of the questions."""

    answers: int = 0
    stale: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    given: list[tuple[float, float, Answer]] = field(default_factory=list)

    def lies(self, timeline: Timeline) -> list[str]:
        """Answers that claim to be current and name what was not there."""
        found = []
        for start, end, answer in self.given:
            there = timeline.during(start, end) or set()
            for hit in answer.hits:
                if hit.kind in (Kind.WIKI, Kind.TECHNOTE):
                    continue
                if not any((path, hit.hash) in there for path in (hit.path, *hit.paths)):
                    found.append(f"{hit.path} {hit.hash[:10]} at {start:.2f}")
        return found


def ask(root: Path, settings: dict[str, Any], asked: Asked, stop: threading.Event) -> None:
    """Ask one question after the other, each tenth by a process of its own."""
    number = 0
    with outcrop.open(root, settings=settings) as index:
        while not stop.is_set():
            number += 1
            start = time.monotonic()
            try:
                answer = index.search(QUESTIONS[number % len(QUESTIONS)], k=8)
            except Exception as error:
                asked.failures.append(f"{type(error).__name__}: {error}")
                continue
            end = time.monotonic()
            asked.answers += 1
            asked.modes[answer.mode] += 1
            if answer.stale is not None:
                asked.stale += 1
            elif answer.space is not None:
                asked.given.append((start, end, answer))
            time.sleep(0.02)


@contextmanager
def watching(root: Path, embedder: str) -> Iterator[subprocess.Popen[str]]:
    """A watch in a process of its own, stopped as a service is."""
    process = subprocess.Popen(
        [sys.executable, "-m", "outcrop", "watch", "-C", str(root), "--embedder", embedder, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@dataclass(frozen=True)
class Outcome:
    """What a replay showed.

    Attributes:
        commits: How many arrived.
        updates: How many updates the watch made.
        seconds: From the first commit until the index was current to the last.
        lag: From the last commit until then.
        asked: The questions.
        lies: Answers that were not honest.
        differences: Rows in which the index differs from a fresh one.
        rows: Rows that were compared.
        waits: What the watch had to wait for.
        refused: Commits that the version control system refused because the repository was locked.
    """

    commits: int
    updates: int
    seconds: float
    lag: float
    asked: Asked
    lies: list[str]
    differences: int
    rows: int
    waits: tuple[str, ...] = ()
    refused: int = 0

    @property
    def good(self) -> bool:
        return not (self.lies or self.differences or self.asked.failures or self.refused)


def replay(
    root: Path, embedder: str, timeline: Timeline, steps: Iterator[Callable[[], None]], look: Callable[[], State]
) -> Outcome:
    """Take the steps while a watch runs and questions are asked, and compare the index with a fresh one."""
    settings = {"embedder": embedder}
    with outcrop.open(root, settings=settings) as index:
        index.build()
    asked, stop = Asked(), threading.Event()
    with timeline.step(look):
        pass
    asking = threading.Thread(target=ask, args=(root, settings, asked, stop))
    commits = 0
    with watching(root, embedder) as process:
        asking.start()
        began = time.monotonic()
        try:
            for step in steps:
                with timeline.step(look):
                    step()
                commits += 1
            last = time.monotonic()
            caught_up = _await_current(root, settings, calm=REST_SECONDS)
            ended = time.monotonic() - REST_SECONDS
        finally:
            stop.set()
            asking.join()
    output, errors = process.communicate()
    if process.returncode:
        asked.failures.append(f"the watch ended with {process.returncode}: {errors[-500:]}")
    if not caught_up:
        asked.failures.append(f"the index did not become current within {CATCH_UP_SECONDS:g} s")
    events = [json.loads(line) for line in output.splitlines()]
    kept, fresh = _rows_of(root, settings)
    return Outcome(
        commits=commits,
        updates=sum(event["event"] == "updated" for event in events),
        seconds=ended - began,
        lag=ended - last,
        asked=asked,
        lies=asked.lies(timeline),
        differences=len(kept ^ fresh),
        rows=len(fresh),
        waits=tuple(event["reason"] for event in events if event["event"] == "waiting"),
    )


def _await_current(root: Path, settings: dict[str, Any], calm: float = 0.0) -> bool:
    """Wait until the index is current, and stays so with the watch at rest for some seconds.

    A watch that began to follow a state which is gone again meanwhile would otherwise be stopped in the middle of it.
    """
    until = time.monotonic() + CATCH_UP_SECONDS
    since: float | None = None
    while time.monotonic() < until:
        with outcrop.open(root, settings=settings) as index:
            watcher = watch_lock.read(index.store)
            if is_stale(index) or watcher is None or watcher.state != watch_lock.WATCHING:
                since = None
            elif since is None:
                since = time.monotonic()
        if since is not None and time.monotonic() - since >= calm:
            return True
        time.sleep(0.1)
    return False


def _rows_of(root: Path, settings: dict[str, Any]) -> tuple[set[Any], set[Any]]:
    """Everything in the index, and in one that is built from nothing beside it."""
    with outcrop.open(root, settings=settings) as index:
        kept = rows(index.store.path)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "fresh.sqlite"
        with outcrop.open(root, settings={**settings, "store": place}) as index:
            index.build()
        return kept, rows(place)


def rows(database: Path) -> set[Any]:
    """Chunks with their vectors, and memberships: all but the numbers that rows happen to have."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        chunks = connection.execute(
            "SELECT 'chunk', c.project, c.hash, c.kind, c.path, c.seq, c.text, c.part, c.name, c.first_line,"
            " c.last_line, c.digest, e.model, e.dim, e.v FROM fx_vec_chunk c"
            " LEFT JOIN fx_vec_embedding e ON e.chunk_id = c.id"
        ).fetchall()
        members = connection.execute(
            "SELECT 'member', corpus, builder, project, hash, part, path, kind FROM fx_vec_member"
        ).fetchall()
        words = connection.execute("SELECT 'words', count(*) FROM fx_vec_terms").fetchall()
        artifacts = connection.execute("SELECT 'artifact', hash, version, recipe, skip FROM fx_vec_artifact").fetchall()
    finally:
        connection.close()
    # One chunk stands under the path of its first member, and which that is depends on the order in which they came.
    return {(*row[:4], *row[5:]) for row in chunks} | {*members, *words, *artifacts}


def first_parents(source: Path, count: int) -> list[str]:
    """The last commits of a history, oldest first; one more than asked for, to begin at."""
    found = git(source, "rev-list", "--first-parent", f"--max-count={count + 1}", "HEAD").split()[::-1]
    if len(found) < count + 1:
        raise SystemExit(f"{source} has only {len(found)} commits on its first-parent line")
    return found


def replay_git(source: Path, work: Path, commits: int, embedder: str, seed: int, pause: float = 1.0) -> Outcome:
    """Commits arrive in a clone."""
    shas = first_parents(source, commits)
    root = work / "clone"
    subprocess.run(["git", "clone", "-q", "--no-checkout", str(source), str(root)], check=True)
    git(root, "checkout", "-q", "-B", "replay", shas[0])
    chance = random.Random(seed)

    def arrive(at: int) -> None:
        git(root, "merge", "-q", "--ff-only", shas[at])

    def steps() -> Iterator[Callable[[], None]]:
        for at in range(1, len(shas)):
            yield lambda at=at: arrive(at)  # type: ignore[misc]
            time.sleep(chance.choice((0.0, 0.0, 0.2, 1.0)) * pause)
            if at % 3 == 0:
                _await_current(root, {"embedder": embedder})
                time.sleep(0.5 * pause)
            if at % 10 == 0:
                # Somebody looks at an older state, works on a file without committing, and throws that away.
                yield lambda at=at: (git(root, "checkout", "-q", shas[max(0, at - 15)]), None)[1]  # type: ignore[misc]
                time.sleep(chance.choice((0.0, 0.5)) * pause)
                yield lambda: (root / "UNSAVED.md").write_text("# Unsaved\n\nwork in progress\n") and None
                time.sleep(chance.choice((0.0, 0.5)) * pause)
                yield lambda: ((root / "UNSAVED.md").unlink(), git(root, "checkout", "-q", "replay"), None)[2]

    return replay(root, embedder, Timeline(), steps(), lambda: state_of(root))


class FossilClone:
    """A Fossil repository with a checkout that commits of a git repository are copied into."""

    def __init__(self, source: Path, work: Path) -> None:
        self.source = source
        self.repository = work / "replay.fossil"
        self.checkout = work / "checkout"
        self.checkout.mkdir(parents=True)
        self.environment = os.environ | {"HOME": str(work), "FOSSIL_HOME": str(work), "USER": "replay"}
        self.refused = 0
        self.fossil("init", str(self.repository))
        self.fossil("open", str(self.repository))

    def fossil(self, *arguments: str, text: str | None = None) -> None:
        for _ in range(20):
            done = subprocess.run(
                ["fossil", *arguments],
                cwd=self.checkout,
                env=self.environment,
                input=text,
                capture_output=True,
                text=True,
            )
            if done.returncode == 0:
                return
            if "locked" not in done.stderr + done.stdout:
                raise SystemExit(f"fossil {arguments[0]}: {done.stderr}{done.stdout}")
            self.refused += 1
        raise SystemExit(f"fossil {arguments[0]} was refused twenty times")

    def commit(self, sha: str) -> None:
        for entry in self.checkout.iterdir():
            if entry.name not in (".fslckout", "_FOSSIL_"):
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        archive = subprocess.run(["git", "-C", str(self.source), "archive", sha], capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", str(self.checkout)], input=archive.stdout, check=True)
        self.fossil("addremove", "--dotfiles")
        self.fossil("commit", "--no-warnings", "--allow-empty", "-m", sha)

    def state(self) -> State:
        """Every file of the tip by its hash, as Fossil itself lists it."""
        done = subprocess.run(
            ["fossil", "artifact", "tip", "-R", str(self.repository)], env=self.environment, capture_output=True
        )
        cards = [line.split(" ") for line in done.stdout.decode("utf-8", "replace").splitlines()]
        return frozenset((card[1].replace("\\s", " "), card[2]) for card in cards if card[0] == "F" and len(card) > 2)


def replay_fossil(source: Path, work: Path, commits: int, embedder: str, pause: float = 1.0) -> Outcome:
    """The same commits as check-ins, with a wiki page now and then."""
    shas = first_parents(source, commits)
    clone = FossilClone(source, work)
    clone.commit(shas[0])

    def steps() -> Iterator[Callable[[], None]]:
        for at in range(1, len(shas)):
            yield lambda at=at: clone.commit(shas[at])  # type: ignore[misc]
            if at % 5 == 0:
                word = "create" if at == 5 else "commit"
                yield lambda at=at, word=word: clone.fossil("wiki", word, "Progress", text=f"# Progress\n\nat {at}\n")  # type: ignore[misc]
            time.sleep((at % 3) * 0.3 * pause)
            if at % 3 == 0:
                _await_current(clone.checkout, {"embedder": embedder})
                time.sleep(0.5 * pause)

    outcome = replay(clone.checkout, embedder, Timeline(), steps(), clone.state)
    return Outcome(
        **{name: getattr(outcome, name) for name in Outcome.__dataclass_fields__} | {"refused": clone.refused}
    )


COLUMNS = (
    "history",
    "steps",
    "updates",
    "seconds",
    "lag",
    "questions",
    "behind",
    "failed",
    "lies",
    "rows",
    "differ",
    "refused",
)


def row(name: str, outcome: Outcome) -> tuple[Any, ...]:
    asked = outcome.asked
    return (
        *(name, outcome.commits, outcome.updates, f"{outcome.seconds:.0f}", f"{outcome.lag:.1f}", asked.answers),
        *(asked.stale, len(asked.failures), len(outcome.lies), outcome.rows, outcome.differences, outcome.refused),
    )


def main() -> None:
    # Imported here: a test takes the replay alone.
    from record import record, table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--commits", type=int, default=300)
    parser.add_argument("--fossil", type=int, default=50)
    parser.add_argument("--embedder", default="hash")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="keep the clones there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = options.keep or Path(folder)
        outcomes = {}
        if options.commits:
            outcomes["git"] = replay_git(options.repository, work, options.commits, options.embedder, options.seed)
        if options.fossil:
            outcomes["fossil"] = replay_fossil(options.repository, work, options.fossil, options.embedder)
    found = [row(name, outcome) for name, outcome in outcomes.items()]
    table(f"{options.repository.name}, {options.embedder}", COLUMNS, found)
    for name, outcome in outcomes.items():
        for line in (*outcome.asked.failures[:5], *outcome.lies[:5], *outcome.waits[:5]):
            print(f"{name}: {line}")
        print(f"{name}: {'OK' if outcome.good else 'FAILED'}  modes {dict(outcome.asked.modes)}")
    record(
        "replay", {"embedder": options.embedder, "commits": options.commits, "fossil": options.fossil}, COLUMNS, found
    )
    sys.exit(not all(outcome.good for outcome in outcomes.values()))


if __name__ == "__main__":
    main()
