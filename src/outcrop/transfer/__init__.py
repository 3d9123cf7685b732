"""Vectors that travel: the blob format, and adapters that keep blobs where they can travel."""
