"""The default model, computed on this machine."""
