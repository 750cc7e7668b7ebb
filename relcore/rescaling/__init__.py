"""Rescale injection: how much of an answer depends on the length of vectors."""
