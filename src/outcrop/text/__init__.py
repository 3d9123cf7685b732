"""From bytes to text, file types, kinds and search terms."""
