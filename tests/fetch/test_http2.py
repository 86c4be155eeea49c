"""HTTP/2 over TLS, by nginx: archived as HTTP/1.1, as readers want it, and marked for what it was."""

from __future__ import annotations

import gzip
from pathlib import Path

import brotli
import pytest

from gossamer.engine.base import Engine
from gossamer.simweb.serving.tls import Authority
from tests.fetch.crawling import fetched
from tests.fetch.nginx import NGINX, nginx
from tests.hostile.behaviours.base import page
from tests.servers import free_port

SERVER = """
server {{ listen 127.0.0.1:{port} ssl http2; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
  root {folder}/www; gzip off;
  location = /packed {{ add_header Content-Encoding gzip; add_header ETag '"packed"'; }}
  location = /small {{ add_header Content-Encoding br; }}
  location = /moved {{ return 301 /page; }}
  location = /robots.txt {{ return 200 "User-agent: *\\nDisallow: /private\\n"; }} }}
"""

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


def test_http2(tmp_path: Path, inline: Engine):
    port, body = free_port(), page("In frames")
    (tmp_path / "www").mkdir()
    for name, content in (("page", body), ("packed", gzip.compress(body, mtime=0)), ("small", brotli.compress(body))):
        (tmp_path / "www" / name).write_bytes(content)
    authority = Authority(tmp_path)
    (tmp_path / "cert.pem").write_bytes(authority.signer.sign("two.test"))
    (tmp_path / "key.pem").write_bytes(authority.signer.leaf_key)
    conf = SERVER.format(port=port, folder=tmp_path)
    paths = ("/page", "/packed", "/small", "/moved", "/private/x", "/missing")
    urls = {path: f"https://two.test:{port}{path}" for path in paths}
    with nginx(tmp_path, conf, port):
        found = fetched(tmp_path, inline, list(urls.values()), {"fetch.ca_file": str(authority.path)})
    assert {path: found.outcome(url) for path, url in urls.items()} == {
        "/page": "SUCCESS", "/packed": "SUCCESS", "/small": "SUCCESS", "/moved": "REDIRECT_PERMANENT",
        "/private/x": "ROBOTS_DENIED", "/missing": "GONE",
    }  # fmt: skip
    for path, content in (
        ("/page", body),
        ("/packed", gzip.compress(body, mtime=0)),
        ("/small", brotli.compress(body)),
    ):
        record = found.record(urls[path])
        assert found.rows[urls[path]]["protocol"] == record.headers["WARC-Protocol"] == "h2"
        assert record.status.startswith("HTTP/1.1 200")
        assert record.body == content
    assert found.record(urls["/packed"]).http["content-encoding"] == "gzip"
    assert found.record(urls["/small"]).http["content-encoding"] == "br"
    request = next(r for r in found.records(urls["/page"], "request"))
    assert request.http["host"] == f"two.test:{port}"
