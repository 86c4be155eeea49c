"""Plugins: what they may add (`hookspecs`) and how they are found (`manager`)."""
