"""Figures: pure functions of results. interactive.py draws with Plotly, publication.py with Matplotlib."""
