"""The protocols that are built in: http with https, and file, which is spoken only where a setting says so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from gossamer.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    from gossamer.stages.fetch.protocols import Context, FetchProtocol, Request, Response, Transport


@hookimpl
def gossamer_protocols() -> list[FetchProtocol]:
    """http, https, file."""
    from gossamer.stages.fetch.protocols import FetchProtocol

    return [FetchProtocol("http", ("http", "https"), open_http), FetchProtocol("file", ("file",), open_file)]


def open_http(context: Context) -> Transport:
    """Curl."""
    from gossamer.stages.fetch.http import HttpTransport

    return HttpTransport(context)


def open_file(context: Context) -> Transport:
    """Files of this machine, read in threads."""
    from gossamer.stages.fetch.protocols import Threads

    return Threads(context, read_file)


def read_file(request: Request) -> Response:
    """A file as an answer; a missing one is gone, a directory is refused."""
    from mimetypes import guess_type

    from gossamer.stages.fetch.protocols import LENGTH, Response

    response = Response()
    path = unquote(urlsplit(request.url).path)
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            body = file.read(request.max_bytes + 1)
            modified = os.fstat(file.fileno()).st_mtime
    except FileNotFoundError:
        response.code = 404
        response.head = b"HTTP/1.1 404 Not Found\r\n\r\n"
        return response
    except OSError as error:
        response.error, response.detail = "file", error.strerror or str(error)
        return response
    from email.utils import formatdate

    kind = guess_type(path)[0] or "application/octet-stream"
    response.code, response.protocol = 200, "file"
    response.body = body[: request.max_bytes]
    response.truncated = LENGTH if len(body) > request.max_bytes else None
    lines = ("HTTP/1.1 200 OK", f"Content-Type: {kind}", f"Last-Modified: {formatdate(modified, usegmt=True)}")
    response.head = "\r\n".join((*lines, f"Content-Length: {len(response.body)}", "", "")).encode()
    return response
