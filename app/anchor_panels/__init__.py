"""Tabs of the Anchors page that judge anchors: audit of the pairs, influence, sets side by side."""
