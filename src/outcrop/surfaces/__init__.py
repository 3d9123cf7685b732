"""Thin front doors: parse, call the app, render."""
