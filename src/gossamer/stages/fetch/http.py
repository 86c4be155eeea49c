"""http and https by libcurl's multi interface: many transfers in one thread, connections kept alive.

Bodies are taken as they come: transfer codings are removed by curl, content codings are not. A connection goes only to an
address that was checked, and the guard looks once more at the very address of every socket before it connects.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import Any

import pycurl

from gossamer.stages.fetch.connections import Connections
from gossamer.stages.fetch.heads import all_headers, base_headers, last_head, status_of, wanted_type
from gossamer.stages.fetch.poller import ERROR, READ, WRITE
from gossamer.stages.fetch.protocols import DISCONNECT, LENGTH, TIME, UNSPECIFIED, Context, Request, Response

BUFFER = 128 * 1024
MOST_LINES = 1_000  # in the heads of an answer and of all 1xx before it
SMALL, MANY = 64, 10_000  # pieces of a body: so many that are so small are an attack
KEPT = 2  # connections that may idle, for each that may be used at a time
EVENTS = {
    pycurl.POLL_NONE: 0,
    pycurl.POLL_IN: READ,
    pycurl.POLL_OUT: WRITE,
    pycurl.POLL_INOUT: READ | WRITE,
    pycurl.POLL_REMOVE: 0,
}
SUPPRESS_CONNECT_HEADERS = 265  # an option that pycurl has no name for
PARTIAL = 206
CERTIFICATE = 60  # curl's code for one that was refused
ERRORS = {  # our name for each of curl's errors
    3: "malformed",  # a URL curl cannot read
    5: "dns",
    6: "dns",
    7: "connect",
    8: "malformed",  # weird server reply
    1: "malformed",  # HTTP/0.9
    16: "disconnect",  # framing of HTTP/2
    18: "disconnect",
    28: "timeout",
    35: "tls",
    52: "disconnect",
    53: "tls",
    54: "tls",
    55: "disconnect",
    56: "disconnect",
    58: "tls",
    59: "tls",
    61: "malformed",  # a transfer coding nobody knows
    66: "tls",
    77: "tls",
    83: "tls",
    CERTIFICATE: "tls",
    92: "disconnect",  # a stream of HTTP/2
    97: "proxy",
    100: "headers",  # too many or too large
}
TOO_LARGE = "Too large response headers"  # what curl says of those of 1xx answers, with the code of a disconnect
CUT_BY = {16: DISCONNECT, 18: DISCONNECT, 28: TIME, 52: DISCONNECT, 55: DISCONNECT, 56: DISCONNECT, 92: DISCONNECT}


class Transfer:
    """An easy handle of curl, used again and again, and the response it is receiving."""

    def __init__(self, transport: HttpTransport) -> None:
        self.curl = curl = pycurl.Curl()
        self.request: Request
        self.head: list[bytes] = []
        self.body: list[bytes] = []
        self.size = self.pieces = self.most = 0
        self.cut: str | None = None
        self.blocked = ""
        self.set: dict[str, Any] = {}  # options as they are now
        self._guard, self._connections = transport.context.guard, transport.connections
        transport.prepare(curl)
        curl.setopt(pycurl.WRITEFUNCTION, self.write)
        curl.setopt(pycurl.HEADERFUNCTION, self.header)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self.open_socket)
        curl.setopt(pycurl.SOCKOPTFUNCTION, self.opened)
        curl.transfer = self
        self._address = ""
        self._made: socket.socket | None = None

    def begin(self, request: Request, base: Sequence[str]) -> None:
        """Make the handle ready for a request."""
        self.request = request
        self.most = request.max_bytes
        self.head.clear()
        self.body = []
        self.size = self.pieces = 0
        self.cut, self.blocked = None, ""
        curl = self.curl
        curl.setopt(pycurl.URL, request.url)
        wanted = {
            "to": request.address,
            "proxy": request.proxy,
            "headers": request.headers,
            "verify": request.verify,
        }
        if wanted != self.set:
            self.set = {}  # if curl refuses one of them, the next request sets them all
            if request.address:
                curl.setopt(pycurl.CONNECT_TO, [f"::{_target(request.address)}"])
            else:  # an empty list would leave the address of the request before
                curl.unsetopt(pycurl.CONNECT_TO)
            curl.setopt(pycurl.PROXY, request.proxy)
            curl.setopt(pycurl.HTTPHEADER, all_headers(base, request.headers))
            curl.setopt(pycurl.SSL_VERIFYPEER, request.verify)
            curl.setopt(pycurl.SSL_VERIFYHOST, 2 * request.verify)
            self.set = wanted

    def header(self, line: bytes) -> int | None:
        """Take a line of a head; curl bounds their bytes, and their number only in one answer: there may be many 1xx."""
        self.head.append(line)
        if len(self.head) > MOST_LINES:
            self.cut = "headers"
            return -1
        return None

    def write(self, piece: bytes) -> int | None:
        """Take a piece of the body; giving another number than its length ends the transfer."""
        size = self.size + len(piece)
        self.pieces += 1
        if not self.size and self.request.types and not wanted_type(self.head, self.request.types):
            self.cut = "type"
            return -1
        if size > self.most:
            self.cut = LENGTH
            self.body.append(piece[: self.most - self.size])
            self.size = self.most
            return -1
        self.size = size
        self.body.append(piece)
        if self.pieces >= MANY and size < SMALL * self.pieces:
            self.cut = UNSPECIFIED
            return -1
        if self.pieces & 1023 == 0:  # keep the list short, whatever the server sends
            self.body = [b"".join(self.body)]
        return None

    def open_socket(self, _purpose: int, address: tuple[int, int, int, tuple[Any, ...]]) -> Any:
        """A socket to an address, if we may connect to it."""
        family, kind, protocol, place = address
        text = place[0].decode("ascii", "replace") if isinstance(place[0], bytes) else str(place[0])
        request = self.request
        if family not in (socket.AF_INET, socket.AF_INET6) or not (
            request.exempt or request.proxy or self._guard.allows(text)
        ):
            self.blocked = text or "unknown"
            return pycurl.SOCKET_BAD
        self._address = text
        self._made = socket.socket(family, kind, protocol)
        return self._made

    def opened(self, fd: int, _purpose: int) -> int:
        """Curl has a socket, which is not connected yet: a copy of the one we made."""
        if self._made is not None:
            self._made.close()
            self._made = None
        if not self.request.proxy:
            self._connections.opened(fd, self.request.queue, origin_of(self.request.url), self._address)
        return int(pycurl.SOCKOPT_OK)


def _target(address: str) -> str:
    """An address (with a port, or without) as CONNECT_TO wants it."""
    if address.startswith("[") or address.count(":") == 1:
        return address if address.count(":") == 1 or "]:" in address else f"{address}:"
    return f"[{address}]:" if ":" in address else f"{address}:"


def origin_of(url: str) -> str:
    """Scheme, host and port."""
    return url[: url.index("/", 8)]


class HttpTransport:
    """The multi handle and its transfers."""

    def __init__(self, context: Context) -> None:
        from gossamer.stages.fetch.trust import certificates

        self.context = context
        settings = context.settings
        self._certificates = certificates(settings.ca_file)
        self.connections = Connections(settings.per_address)
        self.headers = base_headers(context.agent)
        self._multi = multi = pycurl.CurlMulti()
        multi.setopt(pycurl.M_SOCKETFUNCTION, self._socket)
        multi.setopt(pycurl.M_TIMERFUNCTION, self._timer)
        multi.setopt(pycurl.M_MAXCONNECTS, KEPT * settings.connections)
        multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
        self._alarm: float | None = None
        self._free: list[Transfer] = []
        self._used: set[Transfer] = set()
        self._failed: list[tuple[Request, Response]] = []

    def prepare(self, curl: Any) -> None:
        """Options that are the same for all transfers."""
        settings = self.context.settings
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.BUFFERSIZE, BUFFER)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(
            pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS if settings.http2 else pycurl.CURL_HTTP_VERSION_1_1
        )
        curl.setopt(pycurl.HTTP_CONTENT_DECODING, 0)
        curl.setopt(pycurl.PATH_AS_IS, 1)
        curl.setopt(SUPPRESS_CONNECT_HEADERS, 1)  # a proxy's answer is not the server's
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, int(settings.connect_timeout_s * 1000))
        curl.setopt(pycurl.LOW_SPEED_LIMIT, 1)
        silence = max(settings.read_timeout_s, settings.connect_timeout_s, 1.0)  # it counts while curl connects, too
        curl.setopt(pycurl.LOW_SPEED_TIME, int(silence))
        curl.setopt(pycurl.TIMEOUT_MS, int(settings.deadline_s * 1000))
        curl.setopt(pycurl.PROXY, "")  # not what the environment says: a crawl's settings are all that counts
        curl.setopt(pycurl.CAINFO, self._certificates)
        curl.setopt(pycurl.HTTPHEADER, self.headers)

    def start(self, request: Request) -> None:
        transfer = self._free.pop() if self._free else Transfer(self)
        if not request.proxy:  # whose connections hosts may share
            limited = None if request.exempt else _host_part(request.address)
            self.connections.begin(request.queue, origin_of(request.url), limited)
        try:
            transfer.begin(request, self.headers)
            self._multi.add_handle(transfer.curl)
        except (pycurl.error, UnicodeError, ValueError) as error:  # a URL or header that curl does not take
            if not request.proxy:
                self.connections.end(request.queue)
            self._free.append(transfer)
            response = Response()
            response.error, response.detail = "malformed", str(error)
            self._failed.append((request, response))
            return
        self._used.add(transfer)

    def finished(self) -> list[tuple[Request, Response]]:
        if self._alarm is not None and time.monotonic() >= self._alarm:
            self._alarm = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        done, self._failed = self._failed, []
        left = 1
        while left:
            left, good, bad = self._multi.info_read(1024)
            for curl in good:
                done.append(self._take(curl.transfer, 0, ""))
            for curl, code, message in bad:
                done.append(self._take(curl.transfer, code, message))
            if not good and not bad:
                break
        return done

    def wake(self) -> float | None:
        if self._failed:
            return 0.0
        return None if self._alarm is None else max(0.0, self._alarm - time.monotonic())

    def close(self) -> None:
        for transfer in self._used:
            self._multi.remove_handle(transfer.curl)
        self._multi.close()
        for transfer in [*self._used, *self._free]:
            transfer.curl.close()

    def _take(self, transfer: Transfer, code: int, message: str) -> tuple[Request, Response]:
        """The response of a transfer that has ended; its handle is free again."""
        curl, request = transfer.curl, transfer.request
        response = Response()
        lines = last_head(transfer.head)
        if lines and not lines[-1].strip():  # whole: anything less is no answer
            response.code, response.protocol = status_of(lines)
        elif lines and not code:
            code, message = 52, "the connection ended within the headers"
        response.head = b"".join(lines) if response.code else b""
        response.body = transfer.body[0] if len(transfer.body) == 1 else b"".join(transfer.body)
        response.ip = _host_part(request.address)
        response.latency = curl.getinfo(pycurl.STARTTRANSFER_TIME)
        if request.url.startswith("https:"):
            response.tls = "verified" if request.verify else "unverified"
        if code:
            self._fail(transfer, response, code, message)
        elif response.code == PARTIAL:  # we ask for no parts
            response.truncated = UNSPECIFIED
        response.request_head = self._request_head(request)
        self._multi.remove_handle(curl)
        self._used.remove(transfer)
        self._free.append(transfer)
        if not request.proxy:
            self.connections.end(request.queue)
        return request, response

    def _fail(self, transfer: Transfer, response: Response, code: int, message: str) -> None:
        """What went wrong; a body that was cut is kept, with the reason."""
        if transfer.blocked:
            response.error, response.detail = "blocked_address", transfer.blocked
            response.ip = None
        elif transfer.cut == "type":
            response.error, response.detail, response.truncated = "type", "", UNSPECIFIED
        elif transfer.cut == "headers":
            response.error, response.detail = "headers", f"more than {MOST_LINES:,} lines"
            response.truncated = UNSPECIFIED if response.code else None
        elif transfer.cut:
            response.truncated = transfer.cut
        else:
            response.error, response.detail = ERRORS.get(code, f"curl {code}"), " ".join(message.split())[:300]
            if message.startswith(TOO_LARGE):
                response.error = "headers"
            if response.code:
                response.truncated = CUT_BY.get(code, UNSPECIFIED)
        if code == CERTIFICATE:
            response.tls = response.detail

    def _request_head(self, request: Request) -> bytes:
        """The request as curl sends it (over HTTP/1.1, which is how a WARC file shows it in any case)."""
        origin = origin_of(request.url)
        lines = (f"GET {request.url[len(origin) :]} HTTP/1.1", f"Host: {origin.partition('//')[2]}")
        return "\r\n".join((*lines, *all_headers(self.headers, request.headers), "", "")).encode("utf-8", "replace")

    def _socket(self, event: int, fd: int, _multi: Any, _data: Any) -> None:
        self.context.poller.watch(fd, EVENTS[event], self._event)

    def _event(self, fd: int, events: int) -> None:
        action = pycurl.CSELECT_OUT if events & WRITE else 0
        if events & ~WRITE:
            action |= pycurl.CSELECT_IN
        if events & ERROR:
            action |= pycurl.CSELECT_ERR
        self._multi.socket_action(fd, action)

    def _timer(self, milliseconds: int) -> None:
        self._alarm = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000


def _host_part(address: str | None) -> str | None:
    """An address without its port."""
    if address is None:
        return None
    if address.startswith("["):
        return address[1 : address.index("]")]
    return address.partition(":")[0] if address.count(":") == 1 else address
