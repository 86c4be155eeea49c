"""What stands on it: URLs to pages, pages to blocks, blocks to HTML, requests to responses."""
