"""From a source to a complete index; knows ports only."""
