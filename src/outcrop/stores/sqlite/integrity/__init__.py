"""Whether the tables are ours and hold what was written into them."""
