"""Papers: each table and figure of the three papers, what they print, and what this software measures beside it."""
