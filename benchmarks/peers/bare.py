"""Bare pycurl: the multi interface on epoll, handles used again. Addresses are given, as libcurl is mostly built without c-ares."""

from __future__ import annotations

import select
import time
from contextlib import suppress
from typing import Any

import job as jobs
import pycurl

EVENTS = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
job = jobs.read()
multi, epoll = pycurl.CurlMulti(), select.epoll()
known: set[int] = set()
alarm: float | None = None


def watch(event: int, fd: int, _multi: Any, _data: Any) -> None:
    if event == pycurl.POLL_REMOVE:
        if fd in known:
            known.remove(fd)
            with suppress(OSError):
                epoll.unregister(fd)
    elif fd in known:
        epoll.modify(fd, EVENTS[event])
    else:
        known.add(fd)
        epoll.register(fd, EVENTS[event])


def set_alarm(milliseconds: int) -> None:
    global alarm  # noqa: PLW0603  a script of one loop
    alarm = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000


class Transfer:
    def __init__(self) -> None:
        self.body: list[bytes] = []
        self.head: list[bytes] = []
        self.urls: list[str] = []
        self.curl = curl = pycurl.Curl()
        curl.transfer = self
        curl.setopt(pycurl.WRITEFUNCTION, self.body.append)
        curl.setopt(pycurl.HEADERFUNCTION, self.head.append)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.BUFFERSIZE, 128 * 1024)
        curl.setopt(pycurl.HTTPHEADER, ["User-Agent: bare", "Accept-Encoding: gzip, deflate, br"])
        curl.setopt(pycurl.CONNECT_TO, [f"::127.0.0.1:{job.port}"])
        if job.ca:
            curl.setopt(pycurl.CAINFO, job.ca)

    def next(self) -> bool:
        if not self.urls:
            _, self.urls = next(hosts, ("", []))
            self.urls.reverse()
        if self.urls:
            self.curl.setopt(pycurl.URL, self.urls.pop())
            multi.add_handle(self.curl)
            return True
        return False

    def end(self) -> None:
        multi.remove_handle(self.curl)
        job.got(len(b"".join(self.body)))
        self.body.clear()
        self.head.clear()


multi.setopt(pycurl.M_SOCKETFUNCTION, watch)
multi.setopt(pycurl.M_TIMERFUNCTION, set_alarm)
multi.setopt(pycurl.M_MAXCONNECTS, 2 * job.connections)
hosts = job.begin()
transfers = [Transfer() for _ in range(job.connections)]
active = sum(transfer.next() for transfer in transfers)
while active:
    for fd, event in epoll.poll(0.1 if alarm is None else max(0.0, alarm - time.monotonic()), 1024):
        action = pycurl.CSELECT_OUT if event & select.EPOLLOUT else 0
        multi.socket_action(fd, action | (pycurl.CSELECT_IN if event & ~select.EPOLLOUT else 0))
    if alarm is not None and time.monotonic() >= alarm:
        alarm = None
        multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
    _, good, bad = multi.info_read(1024)
    job.failed += len(bad)
    for curl in [*good, *(one[0] for one in bad)]:
        curl.transfer.end()
        active += curl.transfer.next() - 1
job.end()
