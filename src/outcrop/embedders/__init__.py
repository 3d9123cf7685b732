"""Adapters that turn text into vectors. They never import each other."""
