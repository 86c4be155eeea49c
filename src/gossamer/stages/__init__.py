"""Verbs: each stage is a folder; its `job.py` is the edge, its neighbours are pure."""
