"""Metrics: how alike two spaces are, each score with its permutation null."""
