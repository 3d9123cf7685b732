"""Adapters that list and read artifacts. They never import each other."""
