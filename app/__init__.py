"""Code that all pages share. Only app/ and pages/ import Streamlit."""
