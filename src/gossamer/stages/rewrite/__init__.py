"""rewrite: the same rows in new files: compact, migrate, reshard."""
