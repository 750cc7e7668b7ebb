"""Scores of a pair of spaces from one pass over blocks of rows: no matrix of all rows and all anchors is ever formed."""
