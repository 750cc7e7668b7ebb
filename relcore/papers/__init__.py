"""Papers: each table and figure of the three papers, the published numbers, and what this software measures."""
