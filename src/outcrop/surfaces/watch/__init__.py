"""Keeping an index current."""
