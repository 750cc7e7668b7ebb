"""Anchors: choosing them, and judging a choice."""
