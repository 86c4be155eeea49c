"""What is so: all URLs, states and links without a crawl; descriptions and static files."""
