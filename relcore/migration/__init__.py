"""Changing an embedding model without embedding everything again: adapters, their scores, the verdict, drift."""
