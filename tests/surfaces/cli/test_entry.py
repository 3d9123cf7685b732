"""Ctrl-C in the first moments of a command, while it is still importing, shows no traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.mark.parametrize("module", ["outcrop.surfaces.cli.program", "outcrop.surfaces.render", "click"])
@pytest.mark.parametrize("command", ["outcrop", "agent_tool"])
def test_an_interrupted_import_ends_quietly(tmp_path: Path, module: str, command: str) -> None:
    # The import of one module says that it began and then takes its time.
    script = (
        "import sys, time\n"
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            print('importing', flush=True)\n"
        "            time.sleep(60)\n"
        "sys.meta_path.insert(0, Slow())\n"
        "sys.argv = ['outcrop', 'status']\n"
        "from outcrop.surfaces.cli import entry\n"
        f"sys.exit(entry.{command}())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"importing\n"
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (-signal.SIGINT, b"")


def test_ctrl_c_raises_again_once_everything_is_there() -> None:
    script = (
        "import signal, sys\n"
        "from outcrop.surfaces.cli import program\n"
        "from outcrop.surfaces.cli import entry\n"
        "program.main = lambda: print(signal.getsignal(signal.SIGINT) is signal.default_int_handler) or 0\n"
        "sys.exit(entry.outcrop())\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "True\n"
