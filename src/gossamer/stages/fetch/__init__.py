"""fetch: what may be fetched, by the word of each site."""
