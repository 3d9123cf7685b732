"""Judgements, metrics and the self-test."""
