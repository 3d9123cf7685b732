"""Cuts an artifact into chunks; the room is chosen by format."""
