"""Other repositories and installed packages, imported into this index."""
