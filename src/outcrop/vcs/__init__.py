"""git and Fossil as they are, read without knowledge of indexes."""
