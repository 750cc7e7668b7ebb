"""What all pages share; the only place besides pages/ that knows Streamlit."""
