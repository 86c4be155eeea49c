"""A deterministic simulated web with a clock, and the truth about it."""
