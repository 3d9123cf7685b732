"""Outcrop: a searchable index inside the repository it describes."""
