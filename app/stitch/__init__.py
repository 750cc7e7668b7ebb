"""The tabs of the Stitch page."""
