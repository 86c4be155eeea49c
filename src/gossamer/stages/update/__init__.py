"""update: what fetching and parsing found out, as a change set of the crawldb."""
