"""The Studies page: choose, run, look."""
