"""``python -m outcrop``."""

from __future__ import annotations

import sys

from outcrop.surfaces.start import outcrop

sys.exit(outcrop())
