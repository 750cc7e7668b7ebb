"""Drift: two versions of a space, or a series of them, on the page."""
