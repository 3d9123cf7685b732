"""The index as one object, and the only code that chooses adapters by name."""
