"""A web as files for nginx: every page that can be reached from the sites' front pages at one moment, and a configuration that serves them.

A file is named by the request it answers, so nginx finds it by `$host$request_uri` alone; an extension after = says its type. Redirects
are lines of a map. What is not there is 404.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import geteuid
from pathlib import Path
from pwd import getpwuid

from gossamer.errors import StorageError
from gossamer.simweb.pages.respond import Response, respond
from gossamer.simweb.truth.survey import survey
from gossamer.simweb.truth.tables import fresh
from gossamer.simweb.web import Web

EXTENSIONS = {
    "text/html": "~html", "text/plain": "~txt", "application/xml": "~xml", "application/rss+xml": "~rss",
    "application/atom+xml": "~atom", "application/pdf": "~pdf", "image/png": "~png",
}  # fmt: skip
LAST = "nginx.conf"  # written when all else is there
CODES = (301, 302)
LONGEST = 200  # bytes of a file name; longer requests are left out


@dataclass
class Written:
    """What has been written so far, and what the configuration needs to know of it."""

    folder: Path
    urls: list[str] = field(default_factory=list)
    redirects: dict[int, list[str]] = field(default_factory=lambda: {status: [] for status in CODES})
    charsets: set[str] = field(default_factory=set)
    left_out: int = 0
    bytes: int = 0


def export(web: Web, folder: Path, moment: int, most: int, port: int) -> dict[str, int]:
    """Write pages until there are `most`, and nginx.conf; returns how much of each."""
    fresh(folder, {"www", "logs", "urls.txt", *(f"redirects-{status}.map" for status in CODES)}, LAST)
    done = Written(folder)
    try:
        (folder / "www").mkdir(parents=True)
        (folder / "logs").mkdir()
        for url in _urls(web, moment):
            if len(done.urls) >= most:
                break
            host, _, path = url.partition("://")[2].partition("/")
            response = respond(web, url.partition(":")[0], host.partition(":")[0], f"/{path}", moment)
            _keep(done, url, f"{host}/{path}", response)
        for status, lines in done.redirects.items():
            (folder / f"redirects-{status}.map").write_text("".join(lines), encoding="utf-8")
        (folder / "urls.txt").write_text("".join(f"{url}\n" for url in done.urls), encoding="utf-8")
        (folder / LAST).write_text(_conf(folder.resolve(), port, sorted(done.charsets)), encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"cannot write {folder}: {error.strerror}; name another folder, or ask for less with --most"
        ) from error
    redirects = sum(map(len, done.redirects.values()))
    return {"pages": len(done.urls), "redirects": redirects, "left_out": done.left_out, "bytes": done.bytes}


def _urls(web: Web, moment: int) -> Iterator[str]:
    """The URLs of all sites, and what every crawler asks for first."""
    for index in range(web.hosts):
        origin = web.site(index).origin
        yield from (f"{origin}/robots.txt", f"{origin}/sitemap.xml")
        yield from (row.url for row in survey(web, index, moment, moment).states)


def _keep(done: Written, url: str, request: str, response: Response) -> None:
    """Write one answer; `request` is host and target, as nginx sees them."""
    headers = dict(response.headers)
    if "Location" in headers:
        done.redirects[response.status].append(f'"{request}" "{headers["Location"]}";\n')
        return
    if response.status != 200:
        return
    name = f"{request}=.{_extension(headers['Content-Type'], done.charsets)}"
    if max(map(len, name.encode().split(b"/"))) > LONGEST:
        done.left_out += 1
        return
    path = done.folder / "www" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(response.body)
    done.urls.append(url)
    done.bytes += len(response.body)


def _extension(about: str, charsets: set[str]) -> str:
    kind, _, charset = about.partition("; charset=")
    if not charset:
        return EXTENSIONS[kind]
    charsets.add(charset)
    return f"{EXTENSIONS[kind]}-{charset}"


def _conf(folder: Path, port: int, charsets: list[str]) -> str:
    """The configuration: one server for all names, types by our extensions."""
    types = {extension: kind for kind, extension in EXTENSIONS.items()}
    types |= {f"~html-{charset}": f'"text/html; charset={charset}"' for charset in charsets}
    listed = "\n".join(f"        {kind} {extension};" for extension, kind in types.items())
    tried = " ".join(f"/$host$request_uri=.{extension}" for extension in types)
    maps = "\n".join(
        f'    map $host$request_uri $moved_{status} {{ default ""; include "{folder}/redirects-{status}.map"; }}'
        for status in CODES
    )
    owner = "" if geteuid() else f"user {getpwuid(0).pw_name};\n"  # else nginx could not read what only root may
    return f"""{owner}worker_processes 1;
pid "{folder}/nginx.pid";
error_log "{folder}/logs/error.log";
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    open_file_cache max=10000 inactive=60s;
    client_body_temp_path "{folder}/logs";
    proxy_temp_path "{folder}/logs";
    fastcgi_temp_path "{folder}/logs";
    uwsgi_temp_path "{folder}/logs";
    scgi_temp_path "{folder}/logs";
    map_hash_max_size 1048576;
    map_hash_bucket_size 1024;
{maps}
    types {{
{listed}
    }}
    server {{
        listen 127.0.0.1:{port};
        server_name _;
        root "{folder}/www";
        location / {{
            if ($moved_301) {{ return 301 $moved_301; }}
            if ($moved_302) {{ return 302 $moved_302; }}
            try_files {tried} =404;
        }}
    }}
}}
"""
