"""Bootstrapped anchors: the task, its result, its figures."""
