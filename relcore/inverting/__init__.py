"""Inverse relative projection at work: rows of one space in another, tables over pairs and domains."""
