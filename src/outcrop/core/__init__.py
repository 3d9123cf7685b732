"""Plain types without I/O, and the ports."""
