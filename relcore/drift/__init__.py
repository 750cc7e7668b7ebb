"""Drift: what changed between two versions of the same rows, and whether it matters."""
