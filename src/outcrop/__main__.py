"""``python -m outcrop``."""

from __future__ import annotations

import sys

from outcrop.surfaces.cli.entry import outcrop

sys.exit(outcrop())
