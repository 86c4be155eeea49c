"""nginx on loopback, for what the hostile server does not speak: HTTP/2, and files as fast as they can be had."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
START_S = 10.0
CONF = """
{user} daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes {processes};
events {{ worker_connections 8192; }}
http {{
  access_log {log}; client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5; default_type text/html; keepalive_requests 100000;
  {server}
}}
"""


def free_port() -> int:
    """A port of loopback that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


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
            _wait(process, port, folder / "error.log")
            yield
        finally:
            process.terminate()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"nginx did not start: {log.read_text()}")
