"""Does anything pile up or fail in long use, and when everything happens at once?

usage: long_runs.py [--only PART] [--questions N] [--builds N] [--seconds S] [--embedder NAME]

Five parts, each over places of its own, every other process a real one:

    process   N questions and M builds (one file changes before each) in one process
    serve     `outcrop serve`: 100 questions at once, three rounds, beside 200 clients that send a byte a second
    mcp       `outcrop mcp`: 100 questions at once, three rounds
    git       two builders and four searchers beside commits and switches of branches, for S seconds
    fossil    a builder beside commits and page views of `fossil server`, for S seconds (left out without `fossil`)

Counted are tries, failures, open descriptors, and resident memory before and after. Before means after a tenth of the
work, when caches are warm. The exit code is 1 where more than is acceptable (LIMITS) was seen. A build that finds
another build under way, and says so, is no failure; neither is a refusal of the server that says when to come again,
which has a limit of its own.

Caveats: memory is what Linux counts as resident (VmRSS), which the allocator gives back late: the limit is for growth
with the number of operations, not for a figure. On a machine under load the parts by the clock make fewer tries.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import outcrop
from measure import MEGABYTE, OUTCROP
from outcrop.errors import StoreLocked
from record import record, table

PARALLEL = 100
SLOW = 200
ROUNDS = 3
SEARCHERS = 4
BUILDERS = 2

# The longest that one of the questions asked at once may take.
PATIENCE = 60.0

# What is acceptable: failures, descriptors more than before, megabytes more than before, share of refusals.
LIMITS = {"failures": 0, "descriptors": 2, "megabytes": 32, "refused": 0.05}

COLUMNS = ("part", "tries", "failures", "refused", "descriptors", "MB before", "MB after", "verdict")

WORDS = "kettle water boil steam valve lever pump pipe heat cold salt sugar leaf stone river bridge".split()


@dataclass
class Result:
    """What one part saw. ``busy`` are builds that found another one, ``refused`` questions that the server put off."""

    part: str
    tries: int = 0
    refused: int = 0
    busy: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    before: tuple[int, int] = (0, 0)
    after: tuple[int, int] = (0, 0)

    def row(self) -> tuple[object, ...]:
        grown = self.after[0] - self.before[0]
        megabytes = [size // MEGABYTE for _, size in (self.before, self.after)]
        return (
            *(self.part, self.tries, self.failures.total(), self.refused, f"{grown:+}", *megabytes),
            "OK" if not self.excess() else f"MISSED: {', '.join(self.excess())}",
        )

    def excess(self) -> list[str]:
        seen = {
            "failures": self.failures.total(),
            "descriptors": self.after[0] - self.before[0],
            "megabytes": (self.after[1] - self.before[1]) / MEGABYTE,
            "refused": self.refused / max(1, self.tries),
        }
        return [name for name, limit in LIMITS.items() if seen[name] > limit]


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        work(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--builds", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--embedder", default="hash", help="hash, or local for the default model")
    options = parser.parse_args()
    os.environ |= {"OUTCROP_CONFIG": os.devnull, "OUTCROP_EMBEDDER": options.embedder}
    results = []
    for name, part in PARTS.items():
        if options.only in (None, name) and (name != "fossil" or shutil.which("fossil")):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                results.append(part(Path(folder), options))
                print(*results[-1].row(), dict(results[-1].failures), file=sys.stderr, flush=True)
    rows = [result.row() for result in results]
    table("long use", COLUMNS, rows)
    for result in results:
        for failure, count in result.failures.most_common(10):
            print(f"{result.part}: {count} × {failure}")
    record("long_runs", vars(options) | {"limits": LIMITS}, COLUMNS, rows)
    sys.exit(1 if any(result.excess() for result in results) else 0)


def usage(process: int | str = "self") -> tuple[int, int]:
    """Open descriptors and resident bytes of a process."""
    place = Path(f"/proc/{process}")
    status = (place / "status").read_text()
    resident = int(status.split("VmRSS:")[1].split()[0]) * 1024
    return len(list((place / "fd").iterdir())), resident


def text(number: int) -> str:
    chosen = random.Random(number).choices(WORDS, k=60)
    return f"# Note {number}\n\n{' '.join(chosen)}\n"


def folder_of(place: Path, files: int = 200) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        (place / f"{number:03}.md").write_text(text(number))
    return place


def git(place: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "-c", "gc.auto=0")
    done = subprocess.run(["git", *identity, *arguments], cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git {arguments[0]}: {done.stderr.strip().splitlines()[-1:]}")


@contextlib.contextmanager
def counted(result: Result) -> Iterator[None]:
    result.tries += 1
    try:
        yield
    except StoreLocked:
        result.busy += 1
    except Exception as error:
        result.failures[f"{type(error).__name__}: {error}"[:200]] += 1


# -- one process -------------------------------------------------------------------------------------------------------


def in_one_process(place: Path, options: argparse.Namespace) -> Result:
    result = Result("process")
    folder_of(place)
    with outcrop.open(place) as index:
        index.build()
        every = max(1, options.questions // max(1, options.builds))
        for number in range(options.questions):
            if number == options.questions // 10:
                result.before = usage()
            with counted(result):
                answer = index.search(f"{WORDS[number % len(WORDS)]} {WORDS[number * 7 % len(WORDS)]} {number}")
                if not answer.hits or answer.stale is not None:
                    raise RuntimeError("no hits, or a stale answer")
            if number % every == every - 1:
                (place / f"{number % 200:03}.md").write_text(text(number + 1000))
                with counted(result):
                    index.build()
        result.after = usage()
    return result


# -- servers -----------------------------------------------------------------------------------------------------------


def at_once(result: Result, ask: Callable[[int], None]) -> None:
    def one(number: int) -> None:
        try:
            ask(number)
        except urllib.error.HTTPError as error:
            if error.code in (429, 503) and error.headers.get("Retry-After"):
                result.refused += 1
            else:
                result.failures[f"status {error.code}"] += 1
        except Exception as error:
            result.failures[f"{type(error).__name__}: {error}"[:200]] += 1

    with ThreadPoolExecutor(PARALLEL) as pool:
        result.tries += PARALLEL
        list(pool.map(one, range(PARALLEL)))


def served(place: Path, options: argparse.Namespace) -> Result:
    result = Result("serve")
    folder_of(place)
    subprocess.run([OUTCROP, "index", "-q"], cwd=place, check=True)
    command = [OUTCROP, "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            base = server.stdout.readline().split("/ext/")[0]

            def ask(number: int) -> None:
                where = f"{base}/ext/search?q={WORDS[number % len(WORDS)]}+{number}"
                with urllib.request.urlopen(where, timeout=PATIENCE) as response:
                    if b"Note" not in response.read():
                        raise RuntimeError("a page without hits")

            ask(0)
            at_once(Result("warm"), ask)
            result.before = usage(server.pid)
            ending = threading.Event()
            slow = threading.Thread(target=trickle, args=(base, ending))
            slow.start()
            time.sleep(3)
            for _ in range(ROUNDS):
                at_once(result, ask)
            ending.set()
            slow.join()
            time.sleep(5)
            with counted(result):
                ask(1)
            result.after = usage(server.pid)
        finally:
            server.terminate()
    return result


def trickle(base: str, ending: threading.Event) -> None:
    """Clients that send a byte of their request a second, and never finish."""
    host, _, port = base.removeprefix("http://").partition(":")
    clients = []
    for _ in range(SLOW):
        with contextlib.suppress(OSError):
            clients.append(socket.create_connection((host, int(port)), timeout=5))
    request = f"GET /ext/search?q=water HTTP/1.1\r\nHost: {host}:{port}\r\nX-Long: {'x' * 10_000}".encode()
    at = 0
    while not ending.wait(1.0):
        for client in clients:
            with contextlib.suppress(OSError):
                client.send(request[at : at + 1])
        at += 1
    for client in clients:
        client.close()


def over_mcp(place: Path, options: argparse.Namespace) -> Result:
    result = Result("mcp")
    folder_of(place)
    subprocess.run([OUTCROP, "index", "-q"], cwd=place, check=True)
    pipe = subprocess.PIPE
    with subprocess.Popen([OUTCROP, "mcp"], cwd=place, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def send(**message: object) -> None:
            assert server.stdin is not None
            server.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")

        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "long", "version": "1"}}
        send(id=0, method="initialize", params=client)
        send(method="notifications/initialized")
        server.stdin.flush()
        server.stdout.readline()
        for number in range(ROUNDS + 1):
            if number == 1:
                result.before = usage(server.pid)
            for asked in range(1, PARALLEL + 1):
                query = f"{WORDS[asked % len(WORDS)]} {asked}"
                arguments = {"name": "semantic_search", "arguments": {"query": query}}
                send(id=number * 1000 + asked, method="tools/call", params=arguments)
            server.stdin.flush()
            for _ in range(PARALLEL):
                answer = json.loads(server.stdout.readline())
                if number:
                    result.tries += 1
                    if answer.get("error") or answer["result"].get("isError"):
                        result.failures[str(answer.get("error") or answer["result"]["content"])[:200]] += 1
        result.after = usage(server.pid)
        server.stdin.close()
        server.wait(timeout=60)
    return result


# -- everything at once ------------------------------------------------------------------------------------------------


def work(what: str, place: str, seconds: str, number: str) -> None:
    """One process of a crowd: print its counts at its end as JSON."""
    result = Result(what)
    root = Path(place)
    chance = random.Random(number)
    with outcrop.open(root) as index:

        def once() -> None:
            with counted(result):
                if what == "build":
                    index.build()
                elif not index.search(f"{chance.choice(WORDS)} {chance.choice(WORDS)}").hits:
                    raise RuntimeError("no hits")

        once()
        begun = time.monotonic()
        while time.monotonic() < begun + float(seconds):
            once()
            if not result.before[0] and time.monotonic() > begun + float(seconds) / 10:
                result.before = usage()
            time.sleep(0.05 if what == "search" else 0.2)
        result.after = usage()
    print(json.dumps([result.tries, result.busy, result.failures, result.before, result.after]))


def crowd(result: Result, place: Path, seconds: float, workers: list[str], act: Callable[[int], None]) -> None:
    """Workers as processes, and an action over and over beside them, until all end; their counts together."""
    here = str(Path(__file__).resolve())
    processes = [
        subprocess.Popen(
            [sys.executable, here, "--worker", what, str(place), str(seconds), str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, what in enumerate(workers)
    ]
    number = 0
    while any(process.poll() is None for process in processes):
        number += 1
        with counted(result):
            act(number)
        time.sleep(0.1)
    for process in processes:
        said, errors = process.communicate()
        if process.returncode:
            result.failures[f"a worker ended with {process.returncode}: {errors[-200:]}"] += 1
            continue
        tries, busy, failures, before, after = json.loads(said)
        result.tries += tries
        result.busy += busy
        result.failures.update(failures)
        # The worst of them counts.
        if after[1] - before[1] >= result.after[1] - result.before[1]:
            result.before, result.after = tuple(before), tuple(after)


def beside_git(place: Path, options: argparse.Namespace) -> Result:
    result = Result("git")
    folder_of(place)
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    git(place, "branch", "other")
    with outcrop.open(place) as index:
        index.build()

    def act(number: int) -> None:
        if number % 5 == 0:
            git(place, "checkout", "-q", "other" if number % 10 else "main")
        (place / f"{number % 200:03}.md").write_text(text(number + 5000))
        git(place, "commit", "-qam", f"change {number}")

    crowd(result, place, options.seconds, ["build"] * BUILDERS + ["search"] * SEARCHERS, act)
    check(result, place)
    return result


def check(result: Result, place: Path) -> None:
    """After the crowd is gone, one build makes the index what a fresh one would be."""
    with counted(result), outcrop.open(place) as index:
        index.build()
        status = index.status()
        answer = index.search("water valve")
        if status.stale or status.complete < 1 or answer.stale is not None or not answer.hits:
            raise RuntimeError("the index is not current afterwards")
        with index.store.file.reading() as database:
            verdict = database.execute("PRAGMA integrity_check").fetchone()[0]
            if verdict != "ok":
                raise RuntimeError(f"the index is damaged: {verdict}")


def beside_fossil(place: Path, options: argparse.Namespace) -> Result:
    result = Result("fossil")
    repository, checkout = place / "works.fossil", place / "checkout"
    os.environ |= {"HOME": str(place), "FOSSIL_HOME": str(place), "FOSSIL_USER": "ada", "USER": "ada"}

    def fossil(*arguments: str | Path) -> None:
        done = subprocess.run(
            ["fossil", *map(str, arguments)], cwd=checkout, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"fossil {arguments[0]}: {(done.stderr or done.stdout).strip()[-150:]}")

    folder_of(checkout)
    fossil("init", repository)
    fossil("open", "--force", "--keep", repository)
    fossil("addremove")
    fossil("commit", "-m", "first", "--no-warnings")
    with outcrop.open(repository) as index:
        index.build()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(
        ["fossil", "server", "--localhost", "--port", str(port), repository], stdout=quiet, stderr=quiet
    )

    def act(number: int) -> None:
        if number % 4 == 0:
            (checkout / f"{number % 200:03}.md").write_text(text(number + 9000))
            fossil("commit", "-m", f"change {number}", "--no-warnings")
        else:
            page = ("timeline", "dir", "home")[number % 3]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=PATIENCE) as response:
                response.read()

    try:
        time.sleep(1)
        crowd(result, repository, options.seconds, ["build", "search"], act)
    finally:
        server.terminate()
        server.wait()
    check(result, repository)
    return result


PARTS: dict[str, Callable[[Path, argparse.Namespace], Result]] = {
    "process": in_one_process,
    "serve": served,
    "mcp": over_mcp,
    "git": beside_git,
    "fossil": beside_fossil,
}

if __name__ == "__main__":
    main()
