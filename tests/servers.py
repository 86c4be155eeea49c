"""A real S3 server on loopback for the tests: versitygw, or moto's when that is not there; the header says which."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

KEY, SECRET, BUCKET = "gossamer-tests", "gossamer-secret", "crawls"
START_S = 20.0


def versitygw() -> str | None:
    """The server's binary, if it was built."""
    built = Path(__file__).parents[1] / ".tools/bin/versitygw"
    return str(built) if os.access(built, os.X_OK) else shutil.which("versitygw")


needs_real_server = pytest.mark.skipif(
    versitygw() is None, reason="moto checks neither users nor signatures, and shares our clock"
)


def pytest_report_header() -> str:
    binary = versitygw()
    return (
        f"S3 server: versitygw ({binary})" if binary else "S3 server: moto, as versitygw was not built (make s3-server)"
    )


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a bucket on a server of this session; AWS_* variables point at it."""
    serve = _versitygw if versitygw() else _moto
    with serve(tmp_path_factory.mktemp("s3")) as endpoint, pytest.MonkeyPatch.context() as patch:
        point_at(patch, endpoint)
        yield f"s3://{BUCKET}"
        forget_clients()


def point_at(patch: pytest.MonkeyPatch, endpoint: str, key: str = KEY, secret: str = SECRET) -> None:
    """Set the AWS_* variables, the only way Gossamer learns of a server."""
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        patch.setenv(name, value)
    forget_clients()


def forget_clients() -> None:
    """Let the next request read the environment again."""
    from gossamer.storage import s3

    s3.filesystem.cache_clear()


@contextmanager
def _versitygw(folder: Path) -> Iterator[str]:
    data = folder / "data"
    (data / BUCKET).mkdir(parents=True)
    port = free_port()
    secrets = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    with (folder / "log").open("wb") as log:
        command = [versitygw() or "", "--port", f"127.0.0.1:{port}", "posix", str(data)]
        server = subprocess.Popen(command, env=os.environ | secrets, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_for(server, port, folder / "log", "versitygw")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@contextmanager
def _moto(_: Path) -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=free_port(), verbose=False)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        with pytest.MonkeyPatch.context() as patch:
            point_at(patch, endpoint)
            from gossamer.storage.s3 import filesystem

            filesystem().call_s3("create_bucket", Bucket=BUCKET)
        yield endpoint
    finally:
        server.stop()


def wait_for(server: subprocess.Popen[bytes], port: int, log: Path, name: str) -> None:
    """Until a server answers on its port."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"{name} did not start: {log.read_text()}")


def free_port() -> int:
    """A loopback port nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
