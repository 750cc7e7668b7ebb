"""Experiments: the parts of the core put together for one question; a spec in, a result that knows how it was made."""
