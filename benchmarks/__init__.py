"""Benchmarks: each of our kernels against the matrix products it cannot do without, and against its peers,
in one run.
"""
