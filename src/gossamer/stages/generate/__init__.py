"""generate: choose what to fetch next."""
