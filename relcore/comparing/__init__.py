"""Comparison of two or more spaces: panes, score tables, all pairs, layer by layer."""
