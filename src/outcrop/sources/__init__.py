"""Adapters that list and read artifacts."""
