"""Adapters that keep chunks and vectors."""
