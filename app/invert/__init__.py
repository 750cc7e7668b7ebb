"""The tabs of the Invert page."""
