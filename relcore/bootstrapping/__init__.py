"""Bootstrapped anchors as a job, scored, and their figures."""
