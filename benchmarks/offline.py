"""Does a command with default settings talk to anybody? Every system call that could, of it and of all it starts.

usage: offline.py

Runs each command of `outcrop` over a small repository under `strace` and fails (exit code 1) where one of its processes
connects or sends to another machine, speaks the name service's protocol, or reads what a look-up of a name reads first
(`/etc/resolv.conf`, `/etc/hosts`). Sockets between processes of this machine, and those of no family, are allowed.
Needs `strace`; `tests/surfaces/cli/test_offline.py` shows the same of the Python in it without.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from measure import OUTCROP

FILES = {"kettle.py": "def boil():\n    return 'water'\n", "guide.md": "# Guide\n\nBoil water in a kettle.\n"}

# Traced: every call that names another end, and the files of a look-up.
CALLS = "connect,sendto,sendmsg,sendmmsg,bind,openat,open"

_HARMLESS = re.compile(r"sa_family=AF_(UNIX|UNSPEC|NETLINK)|inet_addr\(\"127\.|inet_pton\(AF_INET6, \"::1\"")
_NETWORK = re.compile(r"sa_family=AF_INET6?\b")
_LOOK_UP = re.compile(r"\"/etc/(resolv\.conf|hosts)\"")

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("index",),
    ("search", "where is water boiled"),
    ("search", "boil", "--mode", "keyword"),
    ("status", "--catalog"),
    ("watch", "--once"),
    ("import-project", "{peer}"),
    ("projects",),
    ("media", "list"),
    ("push", "{remote}"),
    ("pull", "{remote}"),
    ("export", "{out}"),
    ("import",),
    ("fossil", "--help"),
    ("context", "where is water boiled"),
    ("call", "vectors.index.status", "{{}}"),
    ("config",),
    ("embedder", "status"),
    ("embedder", "test"),
    ("probe",),
    ("eval", "{judged}"),
    ("rebuild",),
    ("normalize",),
    ("completion", "bash"),
    ("mcp",),
    ("serve", "--port", "0"),
    ("watch",),
    ("clear", "--all", "--yes"),
)


def main() -> None:
    if shutil.which("strace") is None:
        raise SystemExit("this needs strace: apt-get install strace")
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        names = prepare(root)
        for command in COMMANDS:
            arguments = [each.format(**names) for each in command]
            code, found = traced(root, arguments)
            verdict = "OK" if not found and code == 0 else "FAILED"
            faults += verdict != "OK"
            print(f"{verdict:<7} {' '.join(arguments)[:70]:<70}  exit {code}, {len(found)} calls to others", flush=True)
            for line in found[:10]:
                print(f"        {line.strip()}")
    sys.exit(1 if faults else 0)


def prepare(root: Path) -> dict[str, str]:
    for name in ("works", "peer"):
        place = root / name
        place.mkdir()
        for file, text in FILES.items():
            (place / file).write_text(text)
        for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments], cwd=place, check=True)
    subprocess.run(["git", "init", "-q", "--bare", root / "remote.git"], check=True)
    subprocess.run(["git", "push", "-q", root / "remote.git", "HEAD"], cwd=root / "works", check=True)
    subprocess.run([OUTCROP, "index", "-q"], cwd=root / "peer", env=environment(root), check=True)
    (root / "judged.jsonl").write_text(json.dumps({"query": "boil", "relevant": ["guide.md"]}) + "\n")
    names = {name: str(root / name) for name in ("peer", "out")}
    return names | {"remote": str(root / "remote.git"), "judged": str(root / "judged.jsonl")}


def environment(root: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OUTCROP_")}
    return kept | {"OUTCROP_CONFIG": os.devnull, "HOME": str(root), "XDG_CACHE_HOME": str(root / "cache")}


def traced(root: Path, arguments: list[str]) -> tuple[int, list[str]]:
    """Exit code, and the calls that reach beyond this machine or look up a name."""
    log = root / "trace"
    command = ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={CALLS}", OUTCROP, *arguments]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command,
        cwd=root / "works",
        env=environment(root),
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    code = lasting(process, arguments[0]) if arguments in (["serve", "--port", "0"], ["watch"]) else ended(process)
    lines = log.read_text(errors="replace").splitlines()
    return code, [line for line in lines if _LOOK_UP.search(line) or is_call_to_others(line)]


def is_call_to_others(line: str) -> bool:
    return " bind(" not in line and bool(_NETWORK.search(line)) and not _HARMLESS.search(line)


def ended(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=600)
    return process.returncode


def lasting(process: subprocess.Popen[str], command: str) -> int:
    """Use what does not end by itself for a moment, and end it."""
    if command == "serve":
        assert process.stdout is not None
        base = process.stdout.readline().split("/ext/")[0]
        urllib.request.urlopen(f"{base}/ext/search?q=boil", timeout=300).read()
    else:
        time.sleep(10)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGTERM)
    process.communicate(timeout=60)
    return 0


if __name__ == "__main__":
    main()
