"""aiohttp on uvloop: a task for each host under way, names by aiodns, bodies not decoded."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

import aiohttp
import job as jobs
import uvloop
from aiohttp.abc import AbstractResolver

job = jobs.read()


class Mapped(AbstractResolver):
    """All names are the server's address."""

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[Any]:  # noqa: ARG002
        return [
            {
                "hostname": host,
                "host": "127.0.0.1",
                "port": port,
                "family": socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST,
            }
        ]

    async def close(self) -> None:
        pass


async def main() -> None:
    context = ssl.create_default_context(cafile=job.ca) if job.ca else None
    resolver = (
        aiohttp.AsyncResolver(nameservers=["127.0.0.1"], udp_port=job.dns, tcp_port=job.dns) if job.dns else Mapped()
    )
    connector = aiohttp.TCPConnector(limit=0, resolver=resolver, ssl=context or True, family=socket.AF_INET)
    async with aiohttp.ClientSession(
        connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        hosts = job.begin()

        async def work() -> None:
            for _, urls in hosts:
                for url in urls:
                    try:
                        async with session.get(url) as answer:
                            job.got(len(await answer.read()))
                    except (aiohttp.ClientError, TimeoutError):
                        job.failed += 1

        await asyncio.gather(*(work() for _ in range(job.connections)))
        job.end()


uvloop.run(main())
