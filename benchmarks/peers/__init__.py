"""Other ways to download the same pages, each a script of its own: a job as JSON → pages, seconds, CPU seconds and bytes as JSON.

All of them ask so many hosts at a time, one request to each; pages are dropped when they are there.
"""
