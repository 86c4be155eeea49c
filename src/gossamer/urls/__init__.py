"""URLs: pure functions from hrefs to keys."""
