"""Audits and influence of anchors, and sets side by side: the tasks, their results, their figures."""
