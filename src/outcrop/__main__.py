"""``python -m outcrop``."""

from __future__ import annotations

import sys

from outcrop.surfaces.cli import main

sys.exit(main())
