"""The Bootstrap page: choose, run, look."""
