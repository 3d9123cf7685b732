"""Fixtures that several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder for the ``local`` embedder, so that the model is converted once a run, by whoever is first."""
    base = tmp_path_factory.getbasetemp()
    # Workers of pytest-xdist each have a folder inside the run's.
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "model-cache"
