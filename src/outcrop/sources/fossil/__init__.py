"""A Fossil repository as a source."""
