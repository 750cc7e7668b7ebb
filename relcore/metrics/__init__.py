"""Metrics: the similarity of two spaces, each score with its permutation null distribution."""
