"""Migrate: what to do about a new embedding model, on the page."""
