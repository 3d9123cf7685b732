"""Vectors under a ref of a git repository."""
