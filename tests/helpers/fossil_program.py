"""The real ``fossil`` program for tests, and a repository that holds one of everything."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sqlite3
import subprocess
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

APP = "".join(f"def step_{number}():\n    return {number}\n" for number in range(200))


@dataclass
class Fossil:
    """Runs the program as user ``alice``, with its settings in a folder of the test."""

    home: Path
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.environment = {
            "HOME": str(self.home),
            "FOSSIL_HOME": str(self.home),
            "USER": "alice",
            "PATH": os.environ["PATH"],
            "TZ": "UTC",
        }

    def run(self, *arguments: str | Path, cwd: Path | None = None, stdin: str = "") -> str:
        done = subprocess.run(
            ["fossil", *map(str, arguments)],
            cwd=cwd or self.home,
            input=stdin.encode(),
            env=self.environment,
            capture_output=True,
            timeout=60,
        )
        output = done.stdout.decode() + done.stderr.decode()
        assert done.returncode == 0, f"fossil {' '.join(map(str, arguments))}: {output}"
        return output

    def create(self, name: str, *options: str) -> Path:
        # After a page Fossil works on in the background, and would hold the lock that the next request wants.
        self.run("settings", "backoffice-disable", "1", "--global")
        repository = self.home / name
        self.run("init", *options, repository)
        return repository

    def open(self, repository: Path, name: str) -> Path:
        checkout = self.home / name
        checkout.mkdir()
        self.run("open", repository, cwd=checkout)
        return checkout

    def commit(self, checkout: Path, message: str, *options: str) -> str:
        self.run("addremove", "--dotfiles", cwd=checkout)
        output = self.run("commit", "-m", message, "--no-warnings", *options, cwd=checkout)
        found = re.search(r"New_Version: ([0-9a-f]+)", output)
        assert found, output
        return found[1]

    def request(self, repository: Path, path: str, cookie: str = "", fields: dict[str, str] | None = None) -> str:
        """Ask for a page, or send a form: as the owner, or as the user whom a cookie stands for."""
        body = urllib.parse.urlencode(fields or {})
        head = f"{'GET' if fields is None else 'POST'} {path} HTTP/1.0\r\nHost: localhost\r\n"
        head += f"Referer: http://localhost{path}\r\nCookie: {cookie}\r\n"
        if fields is not None:
            head += f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n"
        as_user = ("http", repository, "--nojail", "--nodelay", "--ipaddr", "10.0.0.1")
        return self.run(*(as_user if cookie else ("test-http", repository)), stdin=f"{head}\r\n{body}")

    def post(self, repository: Path, path: str, cookie: str = "", **fields: str) -> str:
        """Send a form, with the token against forgery that some of their pages hold."""
        if path.startswith("/tkt"):
            name = f"?name={fields['name']}" if "name" in fields else ""
            page = self.request(repository, path + name, cookie)
            token = re.search(r"name=.csrf. value=[\"']([^\"']*)", page)
            assert token, page
            fields["csrf"] = token[1]
        return self.request(repository, path, cookie, fields)

    def log_in(self, repository: Path, user: str, password: str) -> str:
        answer = self.request(repository, "/login", "none=1", {"u": user, "p": password, "in": "Login"})
        found = re.search(r"Set-Cookie: ([^;]+);", answer)
        assert found, answer
        return found[1]


def query(repository: Path, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(repository, isolation_level=None)
    try:
        return database.execute(sql, parameters).fetchall()
    finally:
        database.close()


@dataclass
class SampleRepository:
    """A repository with one of everything that Fossil can hold. Tests that change it take a copy."""

    fossil: Fossil
    repository: Path
    checkout: Path
    tip: str
    branch_tip: str
    hidden: str
    ticket: str
    technote: str

    def copy(self, folder: Path) -> Path:
        """The repository alone, to be changed."""
        return Path(shutil.copy(self.repository, folder / "copy.fossil"))


def build_sample_repository(home: Path) -> SampleRepository:
    """Make the repository with the real program; about two seconds."""
    fossil = Fossil(home)
    repository = fossil.create("zoo.fossil", "--project-name", "The Bestiary")
    checkout = fossil.open(repository, "zoo")
    fossil.run("settings", "allow-symlinks", "1", cwd=checkout)
    tip, branch_tip = _commit_files(fossil, checkout)
    _write_pages(fossil, repository)
    ticket = _write_ticket(fossil, repository)
    _write_posts(fossil, repository)
    _write_pending(fossil, repository, ticket)
    (checkout / "private.md").write_text("private words\n")
    hidden = fossil.commit(checkout, "hidden", "--private")
    ((technote,),) = query(repository, "SELECT substr(tagname, 7) FROM tag WHERE tagname GLOB 'event-*'")
    return SampleRepository(fossil, repository, checkout, tip, branch_tip, hidden, ticket, technote)


def _commit_files(fossil: Fossil, checkout: Path) -> tuple[str, str]:
    files = {
        "README.md": "# Zoo\n\nAll animals.\n",
        "copy.md": "# Zoo\n\nAll animals.\n",
        "AGENTS.md": "Feed them.\n",
        "docs/with space.md": "A path with a space.\n",
        "docs/gone.md": "soon gone\n",
        "src/app.py": APP,
        "src/old_name.py": "def renamed():\n    pass\n",
        "src/empty.py": "",
        ".env": "TOKEN=1\n",
        "big.txt": "word " * 300_000,
        "ignored/note.md": "left out\n",
        ".outcropignore": "ignored/\n",
    }
    for name, text in files.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text)
    (checkout / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (checkout / "latin.txt").write_bytes("Übergrößenträger für Fußgänger\n".encode("latin-1"))
    (checkout / "link.md").symlink_to("README.md")
    fossil.commit(checkout, "everything")
    # A branch whose version of the file is later: what trunk has becomes a delta of it.
    (checkout / "src/app.py").write_text(APP + "# on the branch\n")
    branch_tip = fossil.commit(checkout, "branch", "--branch", "side")
    fossil.run("update", "trunk", cwd=checkout)
    (checkout / "side.md").write_text("from the side\n")
    fossil.commit(checkout, "to be merged", "--branch", "other")
    fossil.run("update", "trunk", cwd=checkout)
    fossil.run("merge", "other", cwd=checkout)
    fossil.commit(checkout, "merge")
    fossil.run("mv", "--hard", "src/old_name.py", "src/new_name.py", cwd=checkout)
    fossil.run("rm", "--hard", "docs/gone.md", cwd=checkout)
    return fossil.commit(checkout, "renamed and deleted", "--delta"), branch_tip


def _write_pages(fossil: Fossil, repository: Path) -> None:
    markdown = ("--mimetype", "text/x-markdown", "-R", repository)
    fossil.run("wiki", "create", "Feeding times", "-", *markdown, stdin="# Lions\n\nAt noon.\n")
    fossil.run("wiki", "commit", "Feeding times", "-", *markdown, stdin="# Lions\n\nAt seven.\n")
    fossil.run("wiki", "create", "Plain", "-", "-R", repository, stdin="<h2>Bears</h2>\n\nAsleep.\n")
    fossil.run("wiki", "create", "Gone", "-", "-R", repository, stdin="farewell\n")
    fossil.run("wiki", "commit", "Gone", "-", "-R", repository, stdin="")
    note = ("wiki", "create", "Opening day", "-", "--technote", "2024-05-06 07:08:09")
    fossil.run(*note, *markdown, stdin="We opened the gates.\n")


def _write_ticket(fossil: Fossil, repository: Path) -> str:
    fossil.run(
        *("ticket", "add", "title", "Fence \\ is broken", "comment", "First line.\nSecond line.", "status", "Open"),
        *("-R", repository),
    )
    ((ticket,),) = query(repository, "SELECT substr(tagname, 5) FROM tag WHERE tagname GLOB 'tkt-*'")
    fossil.run("ticket", "set", ticket, "+comment", "\n\nWood was ordered.", "-R", repository)
    fossil.run("ticket", "set", ticket, "icomment", "Wood came.\fNails too.", "status", "Closed", "-R", repository)
    return str(ticket)


def _write_posts(fossil: Fossil, repository: Path) -> None:
    markdown = {"mimetype": "text/x-markdown", "submit": "Submit"}
    fossil.post(repository, "/forume1", title="How to <feed>?", content="How are **they** fed?", **markdown)
    ((root,),) = query(repository, "SELECT uuid FROM forumpost JOIN blob ON rid = fpid")
    fossil.post(repository, "/forume2", fpid=root, reply="1", content="With a fork.", **markdown)
    fossil.post(
        repository,
        "/forume2",
        fpid=root,
        edit="1",
        title="How to feed lions?",
        content="How are lions fed?",
        **markdown,
    )
    fossil.post(repository, "/forume1", title="A thread taken back", content="Oops.", **markdown)
    ((oops,),) = query(repository, "SELECT uuid FROM forumpost JOIN blob ON rid = fpid ORDER BY fpid DESC LIMIT 1")
    fossil.post(repository, "/forume2", fpid=oops, nullout="1", title="Deleted", content="", **markdown)


def _write_pending(fossil: Fossil, repository: Path, ticket: str) -> None:
    """What a user without trust writes: it waits for a moderator."""
    query(repository, "REPLACE INTO config(name, value, mtime) VALUES ('modreq-tkt', '1', 0), ('modreq-wiki', '1', 0)")
    fossil.run("user", "new", "bob", "", "secret", "-R", repository)
    fossil.run("user", "capabilities", "bob", "23fkjrnwcio", "-R", repository)
    cookie = fossil.log_in(repository, "bob", "secret")
    markdown = {"mimetype": "text/x-markdown"}
    ((root,),) = query(repository, "SELECT uuid FROM forumpost JOIN blob ON rid = fpid ORDER BY fpid LIMIT 1")
    fossil.post(repository, "/forume2", cookie, fpid=root, reply="1", content="pending post", submit="1", **markdown)
    fossil.post(repository, "/tktnew", cookie, title="pending ticket", icomment="pending", submit="Submit")
    fossil.post(repository, "/tktedit", cookie, name=ticket, icomment="pending comment", submit="Submit Changes")
    fossil.post(repository, "/wikiajax/save", cookie, page="Feeding times", content="pending edit", **markdown)
    ((pending,),) = query(repository, "SELECT count(*) FROM modreq")
    assert pending == 4


@contextmanager
def serving(fossil: Fossil, repository: Path, user: str = "", *options: str | Path) -> Iterator[str]:
    """The repository behind a real server on this machine; gives its address, with a ``name:password@`` if wanted."""
    # Its children would live on for a minute after the server ended.
    fossil.run("settings", "backoffice-disable", "1", "-R", repository)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        ["fossil", "server", "--localhost", "--nojail", "-P", str(port), *options, repository],
        env=fossil.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(500):
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield f"http://{user}127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait()
