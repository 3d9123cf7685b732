"""Embedders behind an address, with consent before text leaves the machine."""
