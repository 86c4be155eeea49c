"""Clients that hide nothing: bytes to a loopback port, and what came back."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from collections.abc import Callable

PATIENCE_S = 5.0


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((address, port), timeout=PATIENCE_S)


def asking(target: str, host: str = "any.test", *headers: str) -> bytes:
    """A GET."""
    return "".join(f"{line}\r\n" for line in [f"GET {target} HTTP/1.1", f"Host: {host}", *headers, ""]).encode()


def first_bytes(port: int, target: str, host: str = "any.test", wait: float = PATIENCE_S) -> bytes | None:
    """What comes first: bytes, b"" for a connection that was closed or reset, None for silence."""
    with connect(port) as client:
        client.sendall(asking(target, host))
        client.settimeout(wait)
        try:
            return client.recv(65536)
        except TimeoutError:
            return None
        except ConnectionResetError:
            return b""


def everything(port: int, target: str, host: str = "any.test", at_most: int = 1 << 26) -> bytes:
    """All that comes until the server closes, which it is asked to do."""
    found = bytearray()
    with connect(port) as client:
        client.sendall(asking(target, host, "Connection: close"))
        with contextlib.suppress(ConnectionResetError):
            while len(found) < at_most and (data := client.recv(65536)):
                found += data
    return bytes(found)


def get(port: int, target: str, host: str = "any.test", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    """A response as a sound client of the standard library reads it."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        client.request("GET", target, headers={"Host": host} | {k.replace("_", "-"): v for k, v in headers.items()})
        response = client.getresponse()
        return response.status, response.headers, response.read()
    finally:
        client.close()


def until(true: Callable[[], object]) -> None:
    """Wait for something another thread does."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)
