"""Benchmarks: figures beside a peer or the bare library of the same run, as ratios."""
