"""Runs by topic: each module has a dict `RUNS`, which relcore.papers.registry joins."""
