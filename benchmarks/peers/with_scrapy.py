"""Scrapy; a resolver of its own leads names to the server.

As it comes it only gets more requests at a time, no delay and no robots.txt; else it runs on uvloop, with all that can be
switched off switched off.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import job as jobs
import scrapy
from scrapy.crawler import CrawlerProcess
from twisted.internet import defer
from twisted.internet.interfaces import IResolverSimple
from zope.interface import implementer

job = jobs.read()


@implementer(IResolverSimple)
class Names:
    """All names are the server's address, or what the name server says."""

    def __init__(self, reactor: Any) -> None:
        self.reactor = reactor
        if job.dns:
            from twisted.names.client import Resolver

            self.asking = Resolver(servers=[("127.0.0.1", job.dns)], reactor=reactor)

    @classmethod
    def from_crawler(cls, _crawler: Any, reactor: Any) -> Names:
        return cls(reactor)

    def install_on_reactor(self) -> None:
        self.reactor.installResolver(self)

    def getHostByName(self, name: str, timeout: Any = None) -> Any:  # noqa: ARG002, N802
        if not job.dns:
            return defer.succeed("127.0.0.1")
        # Its own getHostByName asks for records of any type, which few servers answer today.
        return self.asking.lookupAddress(name).addCallback(lambda found: found[0][0].payload.dottedQuad())


class Spider(scrapy.Spider):
    name = "bench"

    async def start(self) -> AsyncIterator[Any]:
        for _, urls in job.begin():
            yield self.request(urls)

    def request(self, urls: list[str]) -> Any:
        first, *rest = urls
        return scrapy.Request(
            first, self.parse, dont_filter=True, errback=self.failed, cb_kwargs={"rest": rest}, meta={"rest": rest}
        )

    def parse(self, response: Any, rest: list[str]) -> Iterator[Any]:
        job.got(len(response.body))
        if rest:
            yield self.request(rest)

    def failed(self, failure: Any) -> Iterator[Any]:
        job.failed += 1
        if rest := failure.request.meta["rest"]:
            yield self.request(rest)


STRIPPED: dict[str, Any] = {
    "CONCURRENT_ITEMS": 1,  # each response starts so many tasks, whatever it yields: 100 take half of all CPU time
    "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 1 << 30,
    "SPIDER_MIDDLEWARES_BASE": {},
    "DOWNLOADER_MIDDLEWARES_BASE": {},
    "EXTENSIONS_BASE": {},
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
}
process = CrawlerProcess(
    {
        "CONCURRENT_REQUESTS": job.connections,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "CRITICAL",
        "LOG_INSTALL_ROOT_HANDLER": False,
        "DNS_RESOLVER": Names,
        **({} if "as-it-comes" in sys.argv else STRIPPED),
    }
)
process.crawl(Spider)
process.start()
job.end()
