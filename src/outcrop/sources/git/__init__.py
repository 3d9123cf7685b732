"""A git repository as a source."""
