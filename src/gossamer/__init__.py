"""Gossamer: a web-scale crawler, link graph and search engine.

`from gossamer import Crawl` is the Python door; nothing heavy is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gossamer.crawl import Crawl

__version__ = "0.1.0"
__all__ = ["Crawl", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Crawl":
        from gossamer.crawl import Crawl

        return Crawl
    raise AttributeError(f"module 'gossamer' has no attribute {name!r}")
