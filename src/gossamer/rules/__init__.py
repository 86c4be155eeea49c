"""Rules: which URLs a crawl takes. Files of rules, and the versioned set of everything the URL chains need."""
