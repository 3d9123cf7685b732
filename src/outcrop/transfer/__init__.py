"""Adapters that keep transfer blobs where they can travel. They never import each other."""
