"""fetch: one batch's fetchlist → WARC files and one row per URL."""
