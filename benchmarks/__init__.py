"""Benchmarks: each kernel of Relscope, its peers, and the matrix products that it cannot avoid are timed in
one run.
"""
