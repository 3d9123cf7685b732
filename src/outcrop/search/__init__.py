"""From a question to an answer; knows ports only."""
