"""Fixtures that several test files share."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator

import pytest
from fossil_program import SampleRepository, build_sample_repository
from hypothesis import HealthCheck, settings
from repositories import ISOLATED

# A shell that runs the tests in the background has Ctrl-C ignored, and so would every program that they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is.
settings.register_profile("outcrop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("outcrop")


@pytest.fixture(scope="session", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing of this machine's settings, caches and homes reaches a test.

    Commits are material of tests that take ``with_history``.
    """
    home = str(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("OUTCROP_")] + ["VIRTUAL_ENV", "XDG_CONFIG_HOME"]:
            patch.delenv(name, raising=False)
        homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "FOSSIL_HOME"), home)
        for name, value in (ISOLATED | homes | {"OUTCROP_CONFIG": os.devnull, "OUTCROP_HISTORY": "0"}).items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SampleRepository:
    """A Fossil repository with one of everything, made once a run. Tests that change it take a copy."""
    if shutil.which("fossil") is None:
        pytest.skip("the fossil program is not installed")
    return build_sample_repository(tmp_path_factory.mktemp("fossil"))


@pytest.fixture
def with_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits are indexed, as by default."""
    monkeypatch.delenv("OUTCROP_HISTORY")
