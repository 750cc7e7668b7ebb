"""Neighbours of every row, exactly or approximately, in blocks of queries that a stopped job resumes."""
