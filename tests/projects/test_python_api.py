"""Public names of a Python package: which there are, what they are called, what is said of them; nothing runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_packages import PACKAGE_FILES, environment, package

from outcrop.core.model import Chunk, Kind, SkipReason
from outcrop.errors import SourceError, UsageError
from outcrop.projects.python_api import PublicNames, read_api
from outcrop.projects.python_env import Package, find_interpreter, find_package


def named(reading: PublicNames) -> dict[str, tuple[str, Chunk]]:
    return {str(chunk.name): (str(file.ref.path), chunk) for file in reading.files for chunk in file.chunks}


def names_of(root: Path, files: Mapping[str, str | bytes]) -> set[str]:
    return set(named(read_api(package(root, files))))


def test_public_names_are_called_by_their_shortest_path(tmp_path: Path) -> None:
    found = named(read_api(package(tmp_path, PACKAGE_FILES)))
    assert set(found) == {
        *("kettle.boil", "kettle.Kettle", "kettle.Kettle.__init__", "kettle.Kettle.level", "kettle.Kettle.whistle"),
        *("kettle.Kettle.Lid", "kettle.pour", "kettle.fast.stir", "kettle.fast.Spoon"),
    }


def test_a_passage_is_signature_and_docstring_where_they_stand(tmp_path: Path) -> None:
    found = named(read_api(package(tmp_path, PACKAGE_FILES)))
    path, boil = found["kettle.boil"]
    assert (path, boil.first_line, boil.last_line) == ("kettle/_boil.py", 4, 8)
    assert (
        boil.text == 'def boil(water, *, degrees=100):\n    """Heat water until it boils.\n\n    It whistles.\n    """'
    )
    assert found["kettle.Kettle.level"][1].text == '@property\ndef level(self):\n    """How full it is."""'
    assert found["kettle.Kettle.whistle"][1].text == 'def whistle(self, loud=True): return "fiuu"'
    assert found["kettle.Kettle.__init__"][1].text == "def __init__(self, litres: float) -> None:"
    assert found["kettle.Kettle.Lid"][1].text == 'class Lid:\n    """Covers it."""'
    assert found["kettle.fast.stir"] == (
        "kettle/fast.pyi",
        found["kettle.fast.stir"][1],
    )
    assert found["kettle.fast.Spoon"][1].text == "class Spoon:\n    def lift(self) -> None: ..."
    lines = (tmp_path / "kettle/_boil.py").read_text().split("\n")
    for _, chunk in (each for each in found.values() if each[0] == "kettle/_boil.py"):
        assert chunk.text.split("\n")[0].strip() == lines[chunk.first_line - 1].strip()
        assert chunk.text.split("\n")[-1].strip() == lines[chunk.last_line - 1].strip()


def test_seq_has_no_gaps_and_the_version_moves_with_what_is_said(tmp_path: Path) -> None:
    before = {file.ref.path: file for file in read_api(package(tmp_path, PACKAGE_FILES)).files}
    for file in before.values():
        assert [chunk.seq for chunk in file.chunks] == list(range(len(file.chunks)))
        assert file.ref.kind is Kind.API
    boiling = str(PACKAGE_FILES["kettle/_boil.py"])
    after = {
        file.ref.path: file
        for file in read_api(package(tmp_path, PACKAGE_FILES | {"kettle/_boil.py": boiling + "\nanswer = 42\n"})).files
    }
    assert before["kettle/_boil.py"].ref.hash != after["kettle/_boil.py"].ref.hash
    assert before["kettle/_boil.py"].ref.version == after["kettle/_boil.py"].ref.version
    # What a file is called elsewhere is part of what is said of it.
    renamed = read_api(package(tmp_path, PACKAGE_FILES | {"kettle/__init__.py": "from ._boil import boil as cook\n"}))
    files = {file.ref.path: file for file in renamed.files}
    assert [chunk.name for chunk in files["kettle/_boil.py"].chunks] == ["kettle.cook"]


def test_exports_are_followed_as_far_as_they_can_be_told(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "from . import _a, _b\nfrom ._a import *\nfrom ._b import two, hidden\n"
        "from .c import three\n"
        "__all__ = ['hidden'] + _a.__all__.copy()\n__all__ += ['two']\n__all__.extend(sorted(['three']))\n",
        "pkg/_a.py": "__all__ = ('one',)\ndef one(): 'One.'\ndef other(): 'Other.'\n",
        "pkg/_b.py": "def two(): 'Two.'\ntry:\n    from _compiled import hidden\nexcept ImportError:\n"
        "    def hidden(): 'In Python.'\n",
        "pkg/c.py": "from ._a import one\nif True:\n    def three(): 'Three.'\n",
    }
    assert names_of(tmp_path, files) == {"pkg.one", "pkg.two", "pkg.hidden", "pkg.three"}


def test_an_all_that_only_running_would_tell_is_filled_up(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "from .a import one, _two\n__all__ = [name for name in dir()] + ['x']\n",
        "pkg/a.py": "def one(): 'One.'\ndef _two(): 'Two.'\n",
    }
    assert names_of(tmp_path, files) == {"pkg.one"}


def test_imports_in_a_circle_end(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "from .a import *\n",
        "pkg/a.py": "from .b import *\n",
        "pkg/b.py": "from .a import *\n",
    }
    assert names_of(tmp_path, files) == set()


def test_docstrings_of_compiled_names_are_read_where_they_are_given(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "from ._core import array, ndarray\n",
        "pkg/_core.py": "from _compiled import *\n",
        "pkg/_docs.py": "from x import add_newdoc\n"
        "add_newdoc('pkg._core', 'array', '''\n    array(object)\n\n    Make an array.\n    ''')\n"
        "add_newdoc('pkg._core', 'ndarray', ('size', 'How many.'))\n"
        "add_newdoc('pkg._core', 'ndarray', ('__array__', 'Private.'))\n"
        "def method(name, params, doc):\n    a = 1\n    b = 2\n    c = 3\n    text = doc.strip()\n"
        "    add_newdoc('pkg._core', 'ndarray', (name, text))\n"
        "method('astype', 'dtype', 'Copy, cast to a type.')\n",
    }
    found = named(read_api(package(tmp_path, files)))
    assert set(found) == {"pkg.array", "pkg.ndarray.size", "pkg.ndarray.astype"}
    path, chunk = found["pkg.array"]
    assert (path, chunk.first_line, chunk.last_line) == ("pkg/_docs.py", 2, 6)
    assert "Make an array." in chunk.text
    assert found["pkg.ndarray.astype"][1].text == "method('astype', 'dtype', 'Copy, cast to a type.')"


def test_a_long_docstring_is_cut_and_every_part_bears_the_name(tmp_path: Path) -> None:
    paragraphs = "\n\n".join(f"    Paragraph {number} " + "of many words about kettles " * 12 for number in range(9))
    files = {"long.py": f'def boil():\n    """Boil.\n\n{paragraphs}\n    """\n'}
    (file,) = read_api(package(tmp_path, files)).files
    assert len(file.chunks) == 3
    assert {chunk.name for chunk in file.chunks} == {"long.boil"}
    lines = files["long.py"].split("\n")
    for chunk in file.chunks:
        assert chunk.text.split("\n")[0].strip() == lines[chunk.first_line - 1].strip()


@pytest.mark.parametrize(
    "data",
    [
        b"def broken(:\n",
        b"\0\0\0",
        b"# coding: nonsense\nx = 1\n",
        b"\xff\xfe\xfa",
        b"x = " + b"(" * 5000,
        b"a = \xe4\n",
    ],
)
def test_a_file_that_is_no_python_is_left_out_and_named(tmp_path: Path, data: bytes) -> None:
    reading = read_api(package(tmp_path, {"good.py": 'def fine():\n    """Fine."""\n', "bad.py": data}))
    assert set(named(reading)) == {"good.fine"}
    assert [(item.path, item.reason) for item in reading.skipped] == [("bad.py", SkipReason.BROKEN)]


def test_other_encodings_and_line_ends_keep_their_lines(tmp_path: Path) -> None:
    text = "# -*- coding: latin-1 -*-\r\ndef gruss():\r\n    '''Sch\xf6ne Gr\xfc\xdfe.\r\n\r\n    Mehr.'''\r\n"
    ((path, chunk),) = named(read_api(package(tmp_path, {"a.py": text.encode("latin-1")}))).values()
    assert (path, chunk.first_line, chunk.last_line) == ("a.py", 2, 5)
    assert chunk.text == "def gruss():\n    '''Schöne Grüße.\n\n    Mehr.'''"


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,6}", fullmatch=True),
        st.tuples(st.booleans(), st.text(st.characters(exclude_characters='\\"\0\r', exclude_categories=["Cs"]))),
        max_size=6,
    )
)
def test_every_function_that_is_public_is_there_once(
    tmp_path_factory: pytest.TempPathFactory, functions: dict[str, tuple[bool, str]]
) -> None:
    root = tmp_path_factory.mktemp("made")
    body = "".join(
        f'def {"_" * private}f{name}(a, b={name!r}):\n    """Says {name}: {text}"""\n    return a\n\n'
        for name, (private, text) in functions.items()
        if "deprecated" not in text.lower()
    )
    found = named(read_api(package(root, {"made.py": body})))
    assert set(found) == {
        f"made.f{name}"
        for name, (private, text) in functions.items()
        if not private and "deprecated" not in text.lower()
    }


def test_the_standard_library_of_this_python_is_read(tmp_path: Path) -> None:
    library = find_package(find_interpreter(Path(sys.executable), tmp_path), "stdlib")
    assert library.slug == f"python-{sys.version_info.major}.{sys.version_info.minor}"
    some = [
        path for path in library.paths if path in ("shutil.py", "posixpath.py", "genericpath.py", "imp.py", "os.py")
    ]
    found = named(read_api(Package("python", library.version, library.root, tuple(some))))
    assert {"shutil.copytree", "os.path.join", "os.path.exists", "os.walk"} <= set(found)
    assert not any(name.startswith(("imp.", "genericpath.", "posixpath.")) for name in found)


def test_packages_of_an_environment_are_found_without_running_it(tmp_path: Path) -> None:
    folder = environment(tmp_path / "repo" / ".venv", tmp_path / "python")
    for interpreter in (
        find_interpreter(None, tmp_path / "repo", {}),
        find_interpreter(folder, tmp_path, {}),
        find_interpreter(folder / "bin" / "python3", tmp_path, {}),
        find_interpreter(None, tmp_path, {"VIRTUAL_ENV": str(folder)}),
    ):
        assert (interpreter.place, interpreter.version) == (folder, "3.11.9")
        by_name, by_import = find_package(interpreter, "kettle-tools"), find_package(interpreter, "kettle")
        assert by_name == by_import
        assert (by_name.slug, by_name.paths) == ("kettle-tools-2.4", tuple(sorted(PACKAGE_FILES)))
        assert find_package(interpreter, "stdlib").paths == ("os.py",)
    assert not (folder / "bin" / "ran").exists()


def test_what_is_not_there_is_said_with_what_is_near(tmp_path: Path) -> None:
    folder = environment(tmp_path / ".venv", tmp_path / "python")
    interpreter = find_interpreter(folder, tmp_path, {})
    with pytest.raises(UsageError, match=r"no package 'ketle-tool' .*Did you mean: kettle-tools"):
        find_package(interpreter, "ketle-tool")
    with pytest.raises(SourceError, match=r"edited has no Python source .*import-project FOLDER --kind api"):
        find_package(interpreter, "edited")
    with pytest.raises(SourceError, match="is no Python environment"):
        find_interpreter(tmp_path / "python", tmp_path, {})
    with pytest.raises(SourceError, match="is no Python that can be asked"):
        find_interpreter(tmp_path / "nothing", tmp_path, {})
    (folder / "pyvenv.cfg").write_text("home = /nowhere/bin\nversion = 3.11.9\n")
    with pytest.raises(SourceError, match="names no Python that is still there"):
        find_interpreter(folder, tmp_path, {})


@pytest.mark.parametrize(
    ("version", "slug"),
    [
        ("2.4.6", "x-2.4"),
        ("7", "x-7"),
        ("2026.10.19", "x-2026.10"),
        ("1.0rc1", "x-1.0"),
        ("v3.2", "x-3.2"),
        ("odd", "x-odd"),
    ],
)
def test_a_package_is_called_by_name_and_version(version: str, slug: str) -> None:
    assert Package("X", version, Path(), ()).slug == slug
