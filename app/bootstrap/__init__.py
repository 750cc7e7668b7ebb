"""The Bootstrap page."""
