"""The command line: thin, lazily imported commands over `Crawl`."""
