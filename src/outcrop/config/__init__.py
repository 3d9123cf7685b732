"""The only reader of settings files and of the environment."""
