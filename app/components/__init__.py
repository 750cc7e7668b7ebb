"""Streamlit components: Python wrappers with their JavaScript."""
