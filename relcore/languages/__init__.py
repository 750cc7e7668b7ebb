"""Across languages and kinds of data: rows find their partners, and heads read them, through paired anchors alone."""
