"""Vectors as unversioned content of a Fossil repository."""
