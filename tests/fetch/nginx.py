"""nginx on loopback, for what the hostile server does not speak: HTTP/2, and files as fast as they can be had."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import wait_for

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
CONF = """
{user} daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes {processes};
events {{ worker_connections 8192; }}
http {{
  access_log {log}; client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5; default_type text/html; keepalive_requests 100000;
  {server}
}}
"""


@contextmanager
def nginx(folder: Path, server: str, port: int, *, log: str = "off", processes: int = 1) -> Iterator[None]:
    """Run nginx with a `server` block that listens at a port."""
    assert NGINX is not None
    conf = folder / "nginx.conf"
    user = "user root;" if os.getuid() == 0 else ""  # who else may not read our files
    conf.write_text(CONF.format(user=user, folder=folder, server=server, log=log, processes=processes))
    command = [NGINX, "-p", str(folder), "-c", str(conf), "-e", str(folder / "error.log")]
    with subprocess.Popen(command) as process:
        try:
            wait_for(process, port, folder / "error.log", "nginx")
            yield
        finally:
            process.terminate()
