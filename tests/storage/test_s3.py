"""What only buckets do: the number of requests, lost answers, and servers that refuse, vanish or hang."""

from __future__ import annotations

import gc
import socket
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from gossamer.errors import GossamerError, StorageError
from gossamer.storage import leases, s3, snapshots
from gossamer.storage.files import Exists, Missing
from gossamer.storage.s3 import S3Files
from tests.servers import SECRET, forget_clients, free_port, needs_real_server, point_at
from tests.storage.building import AT, append

pytestmark = pytest.mark.s3


@pytest.fixture
def files(s3_server: str) -> S3Files:
    return S3Files(f"{s3_server}/{uuid.uuid4().hex}")


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    """Changes of the environment, undone together with the clients made under them."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch
    forget_clients()


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests made so far."""
    from aiobotocore.client import AioBaseClient  # type: ignore[import-untyped]

    made: list[str] = []
    original = AioBaseClient._make_api_call

    async def counted(self: Any, name: str, parameters: Any) -> Any:
        made.append(name)
        return await original(self, name, parameters)

    monkeypatch.setattr(AioBaseClient, "_make_api_call", counted)
    return made


def test_no_request_is_made_in_vain(files: S3Files, requests: list[str]):
    def cost(operation: Any, *arguments: Any) -> list[str]:
        requests.clear()
        operation(*arguments)
        return list(requests)

    assert cost(files.create, "a/b", b"1") == ["PutObject"]
    assert cost(files.replace, "a/c", b"1") == ["PutObject"]
    assert cost(files.read, "a/b") == ["GetObject"]
    assert cost(files.exists, "a/b") == ["HeadObject"]
    assert cost(files.exists, "a/none") == ["HeadObject"]
    assert cost(lambda: list(files.list("a"))) == ["ListObjectsV2"]
    assert cost(lambda: list(files.list("none"))) == ["ListObjectsV2"]
    assert cost(files.delete, "a/b", "a/c", "a/none") == ["DeleteObjects"]
    assert cost(files.delete) == cost(files.settle, "a") == []


def test_a_small_file_is_one_upload(files: S3Files, requests: list[str]):
    writer = files.writer("part")
    writer.write(b"x" * 1_000_000)
    writer.close()
    assert requests == ["PutObject"]
    requests.clear()
    with files.open("part") as stream:
        assert stream.read(10) == b"x" * 10
        assert stream.read(10) == b"x" * 10
    assert requests == ["HeadObject", "GetObject"]


def test_publishing_costs_three_requests(files: S3Files, requests: list[str]):
    snapshots.publish_first(files, 4, AT)
    parent = append(files, "crawldb", "a")
    requests.clear()
    snapshots.publish(files, snapshots.Change("b", "b", AT), parent)
    assert requests == ["ListObjectsV2", "GetObject", "PutObject"]


def test_a_large_file_is_uploaded_in_parts(files: S3Files, monkeypatch: pytest.MonkeyPatch, requests: list[str]):
    data = uuid.uuid4().bytes * (12 * 2**16)
    monkeypatch.setattr(s3, "BLOCK", 5 * 2**20)
    forget_clients()
    for finish in ("close", "abort"):
        writer = files.writer(f"large-{finish}")
        writer.write(data)
        getattr(writer, finish)()
    del writer
    gc.collect()
    forget_clients()
    assert files.read("large-close") == data
    assert not files.exists("large-abort")
    assert requests.count("CompleteMultipartUpload") == requests.count("AbortMultipartUpload") == 1


def test_a_file_let_go_unfinished_is_no_object(files: S3Files):
    writer = files.writer("part")
    writer.write(b"x" * 1000)
    writer.abort()
    del writer
    gc.collect()
    assert not files.exists("part")


@pytest.mark.parametrize("operation", ["create", "replace"])
def test_an_answer_that_was_lost_is_not_anothers_success(
    files: S3Files, monkeypatch: pytest.MonkeyPatch, operation: str
):
    """The request is carried out, its answer lost, and the request sent again."""
    from aiobotocore.client import AioBaseClient
    from botocore.exceptions import ConnectionClosedError  # type: ignore[import-untyped]

    original = AioBaseClient._make_api_call
    made: list[str] = []

    async def losing(self: Any, name: str, parameters: Any) -> Any:
        answer = await original(self, name, parameters)
        made.append(name)
        if made == ["PutObject"]:
            raise ConnectionClosedError(endpoint_url="http://here")
        return answer

    monkeypatch.setattr(AioBaseClient, "_make_api_call", losing)
    getattr(files, operation)("x", b"ours")
    assert made[0] == "PutObject"
    assert len(made) > 1
    assert files.read("x") == b"ours"
    with pytest.raises(Exists):
        files.create("x", b"theirs")


def test_an_answer_lost_while_publishing_is_no_conflict(files: S3Files, monkeypatch: pytest.MonkeyPatch):
    snapshots.publish_first(files, 4, AT)
    test_an_answer_that_was_lost_is_not_anothers_success(files, monkeypatch, "replace")
    assert append(files, "crawldb", "a").id == 1


def refusals(files: S3Files) -> Iterator[str]:
    """What every kind of request says when it fails."""
    operations = (
        lambda: files.read("x"),
        lambda: list(files.list("x")),
        lambda: files.create("x", b""),
        lambda: files.replace("x", b""),
        lambda: files.delete("x"),
        lambda: files.writer("x").close(),
        lambda: snapshots.latest(files),
        lambda: leases.acquire(files, "x", {}),
    )
    for operation in operations:
        with pytest.raises(StorageError) as raised:
            operation()
        text = str(raised.value)
        assert "\n" not in text
        assert text.startswith(files.root)
        yield text


def test_a_bucket_that_does_not_exist(files: S3Files):
    for text in refusals(S3Files("s3://no-such-bucket/crawl")):
        assert "there is no bucket no-such-bucket; create it" in text


@needs_real_server
def test_a_wrong_secret(files: S3Files, patch: pytest.MonkeyPatch):
    patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET[::-1])
    forget_clients()
    for text in refusals(files):
        assert "access denied; check the AWS credentials" in text


@needs_real_server
def test_an_unknown_user(files: S3Files, patch: pytest.MonkeyPatch):
    patch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    forget_clients()
    for text in refusals(files):
        assert "No user exists with the provided access key ID" in text  # versitygw has an error code of its own for it


def test_no_credentials(files: S3Files, patch: pytest.MonkeyPatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.delenv(name)
    forget_clients()
    for text in refusals(files):
        assert "no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in text


def test_a_server_that_is_down(files: S3Files, patch: pytest.MonkeyPatch):
    point_at(patch, f"http://127.0.0.1:{free_port()}")
    began = time.monotonic()
    with pytest.raises(GossamerError, match=r"Could not connect to the endpoint.*check bucket, endpoint and network"):
        snapshots.latest(files)
    assert time.monotonic() - began < 15


def test_a_server_that_never_answers(files: S3Files, patch: pytest.MonkeyPatch):
    patch.setattr(s3, "READ_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        point_at(patch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()
        with pytest.raises(StorageError, match=r"[Tt]imeout"):
            snapshots.latest(files)
        assert time.monotonic() - began < 15


def test_our_patience_with_servers_is_bounded():
    assert s3.CONNECT_TIMEOUT_S * s3.ATTEMPTS <= 10
    assert s3.READ_TIMEOUT_S * s3.ATTEMPTS**2 <= 90


def test_a_root_may_be_a_whole_bucket(s3_server: str):
    files, name = S3Files(s3_server), uuid.uuid4().hex
    files.create(f"{name}/x", b"1")
    assert list(files.list(name)) == [(f"{name}/x", 1)]
    assert (f"{name}/x", 1) in list(files.list(""))
    files.delete(f"{name}/x")
    with pytest.raises(Missing):
        files.read(f"{name}/x")


def test_folder_markers_are_no_files(files: S3Files):
    s3.filesystem().call_s3("put_object", Bucket=files.bucket, Key=files._key("snapshots/"), Body=b"")
    files.create("snapshots/x", b"")
    assert list(files.list("snapshots")) == [("snapshots/x", 0)]
