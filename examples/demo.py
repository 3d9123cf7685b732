"""The main job on real input: index a part of Python's standard library, then ask it questions in other words.

usage: demo.py [FOLDER]

Copies some fifty modules of the running Python to FOLDER (default: demo), runs `outcrop index` there, and asks. Fails
when a question's answer does not come first.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

MODULES = """
argparse.py bisect.py calendar.py cmd.py configparser.py contextlib.py csv.py dataclasses.py difflib.py fileinput.py
fnmatch.py functools.py getpass.py glob.py gzip.py hashlib.py heapq.py html json linecache.py netrc.py queue.py
random.py sched.py secrets.py selectors.py shelve.py shlex.py shutil.py smtplib.py socketserver.py statistics.py
string.py subprocess.py tempfile.py textwrap.py threading.py timeit.py traceback.py uuid.py weakref.py webbrowser.py
wsgiref zipfile.py zipfile
""".split()

QUESTIONS = {
    "stop a program that runs for too long": "subprocess.py",
    "split a command line the way the shell does": "shlex.py",
    "run something later at a given moment": "sched.py",
    "make a paragraph fit into eighty columns": "textwrap.py",
    "which lines changed between two texts": "difflib.py",
}


def main() -> int:
    """Index, ask, and count what did not come first."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
    material = folder / "stdlib"
    copy_modules(material)
    started = time.monotonic()
    outcrop("index", str(material))
    print(f"\nindexed in {time.monotonic() - started:.0f} s; now some questions, worded unlike their answers\n")
    failed = 0
    for question, expected in QUESTIONS.items():
        print(f"$ outcrop search {question!r} -k 1")
        answer = outcrop("search", question, "-k", "1", "-C", str(material))
        print(answer)
        if expected not in answer.splitlines()[0]:
            print(f"expected {expected} first", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


def copy_modules(into: Path) -> None:
    """Copy the modules that this Python has; which ones differs a little between versions."""
    library = Path(sysconfig.get_path("stdlib"))
    for name in MODULES:
        source, target = library / name, into / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "test*"))
        elif source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def outcrop(*arguments: str) -> str:
    """Run the command line as a person would, and return what it printed."""
    run = subprocess.run(
        [sys.executable, "-m", "outcrop", *arguments], stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True
    )
    return run.stdout


if __name__ == "__main__":
    sys.exit(main())
