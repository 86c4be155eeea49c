"""Files in a bucket: an object is there whole or not at all, and `create` is a conditional PUT (If-None-Match: *).

Endpoint, region and credentials come from the usual AWS environment variables and files (AWS_ENDPOINT_URL, …). Every
method but `writer` costs one request (`list` one per 1,000 names, `delete` one per 1,000 files).
"""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, BinaryIO, cast

import s3fs
from aiohttp import ClientError as PayloadError
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError  # type: ignore[import-untyped]

from gossamer.errors import GossamerError, StorageError
from gossamer.storage.files import Exists, Missing

CONNECT_TIMEOUT_S, READ_TIMEOUT_S = 5, 20
ATTEMPTS = 2  # by botocore (refused, timed out, 5xx), and again by s3fs (cut off while reading, throttled)
CREATE_TRIES = 20  # when two conditional PUTs meet, S3 may tell one of them to come again
BLOCK = 16 * 2**20  # of a multipart upload: 10,000 of them make 160 GB
READ_AHEAD = 2**20
DELETE_AT_ONCE = 1000
FAILURES = (OSError, BotoCoreError, ClientError, PayloadError)
TAKEN, CONTESTED, DENIED = ("PreconditionFailed", "412"), ("ConditionalRequestConflict", "409"), ("AccessDenied", "403")


@lru_cache(maxsize=1)
def filesystem() -> Any:
    """The fsspec file system of this process; DuckDB reads buckets through it too."""
    config = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "read_timeout": READ_TIMEOUT_S,
        "retries": {"mode": "standard", "max_attempts": ATTEMPTS},
    }
    made = s3fs.S3FileSystem(
        use_listings_cache=False, skip_instance_cache=True, default_block_size=BLOCK, config_kwargs=config
    )
    made.retries = ATTEMPTS
    return made


def code_of(error: BaseException | None) -> str:
    """The S3 error code behind an exception."""
    while error is not None:
        if isinstance(error, ClientError):
            return str(error.response.get("Error", {}).get("Code", ""))
        error = error.__cause__
    return ""


def s3_error(error: Exception, url: str) -> GossamerError:
    """What to tell a user about a failed request."""
    if code_of(error) == "NoSuchBucket":
        bucket = url.removeprefix("s3://").split("/", 1)[0]
        return StorageError(f"{url}: there is no bucket {bucket}; create it, or check the name and AWS_ENDPOINT_URL")
    if isinstance(error, FileNotFoundError):
        return Missing(f"{url}: object is missing; roll back with `gossamer snapshots rollback` or restore it")
    if isinstance(error, NoCredentialsError):
        return StorageError(f"{url}: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    if isinstance(error, PermissionError):
        return StorageError(f"{url}: access denied; check the AWS credentials and the bucket's policy")
    reason = " ".join(str(error).split()) or type(error).__name__
    return StorageError(f"{url}: {reason}: check bucket, endpoint and network, then run the same command again")


class S3Files:
    """A prefix in a bucket."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.bucket, _, self._prefix = root.removeprefix("s3://").partition("/")

    def url(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def read(self, path: str) -> bytes:
        # With more than one request at a time s3fs would ask for the size first.
        return cast(bytes, self._told(path, filesystem().cat_file, self.url(path), max_concurrency=1))

    def open(self, path: str) -> BinaryIO:
        opened = self._told(path, filesystem().open, self.url(path), "rb", compression=None, block_size=READ_AHEAD)
        return cast(BinaryIO, opened)

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        for found, _ in self._found(prefix):
            yield self._path(found["Key"]), int(found["Size"])

    def ages(self, prefix: str) -> dict[str, float]:
        return {
            self._path(found["Key"]): (now - found["LastModified"]).total_seconds()
            for found, now in self._found(prefix)
        }

    def exists(self, path: str) -> bool:
        try:
            self._request("head_object", path)
        except Missing:
            return False
        return True

    def writer(self, path: str) -> S3Writer:
        return S3Writer(self, path, self._told(path, filesystem().open, self.url(path), "wb", compression=None))

    def create(self, path: str, data: bytes) -> None:
        for _ in range(CREATE_TRIES):
            try:
                self._request("put_object", path, Body=data, IfNoneMatch="*")
            except StorageError as error:
                if code_of(error) in CONTESTED:
                    continue
                if code_of(error) not in TAKEN:
                    raise
                if self._holds(path, data):  # our own, sent again because the first answer was lost
                    return
                raise Exists(path) from None
            return
        raise StorageError(f"{self.url(path)}: others keep writing this object; run the same command again")

    def replace(self, path: str, data: bytes) -> None:
        self._request("put_object", path, Body=data)

    def delete(self, *paths: str) -> None:
        for first in range(0, len(paths), DELETE_AT_ONCE):
            keys = [{"Key": self._key(path)} for path in paths[first : first + DELETE_AT_ONCE]]
            answer = self._told(
                paths[first],
                filesystem().call_s3,
                "delete_objects",
                Bucket=self.bucket,
                Delete={"Objects": keys, "Quiet": True},
            )
            for refused in answer.get("Errors", []):
                if refused.get("Code") != "NoSuchKey":
                    denied = refused.get("Code") in DENIED
                    error = PermissionError() if denied else OSError(refused.get("Message") or refused.get("Code"))
                    raise s3_error(error, self.url(self._path(refused["Key"])))

    def settle(self, folder: str) -> None:
        """An object that can be seen is durable."""

    def _holds(self, path: str, data: bytes) -> bool:
        try:
            return self.read(path) == data
        except Missing:
            return False

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}" if self._prefix else path

    def _path(self, key: str) -> str:
        return key.removeprefix(f"{self._prefix}/") if self._prefix else key

    def _found(self, prefix: str) -> Iterator[tuple[dict[str, Any], Any]]:
        """Every object below a folder, with the server's time."""
        folder = self._key(prefix).rstrip("/") + "/"
        query = {"Bucket": self.bucket, "Prefix": folder if folder != "/" else ""}
        while True:
            page = self._told(prefix, filesystem().call_s3, "list_objects_v2", **query)
            now = parsedate_to_datetime(page["ResponseMetadata"]["HTTPHeaders"]["date"])
            for found in page.get("Contents", []):
                if not found["Key"].endswith("/"):  # consoles mark folders with empty objects
                    yield found, now
            if not page.get("IsTruncated"):
                return
            query["ContinuationToken"] = page["NextContinuationToken"]

    def _request(self, name: str, path: str, **parameters: Any) -> Any:
        return self._told(path, filesystem().call_s3, name, Bucket=self.bucket, Key=self._key(path), **parameters)

    def _told(self, path: str, operation: Any, *args: Any, **kwargs: Any) -> Any:
        """Run one operation of s3fs; its failures become storage errors that name the object."""
        try:
            return operation(*args, **kwargs)
        except FAILURES as error:
            raise s3_error(error, self.url(path)) from error


class S3Writer:
    """An upload that becomes an object when closed."""

    def __init__(self, files: S3Files, path: str, upload: Any) -> None:
        self.files, self.path, self._upload = files, path, upload
        self.closed = False

    def write(self, data: bytes, /) -> int:
        return int(self.files._told(self.path, self._upload.write, data))

    def close(self) -> None:
        if not self.closed:
            self.files._told(self.path, self._upload.close)
            self.closed = True

    def abort(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._upload.closed = True  # else s3fs would finish the upload when the object is dropped
        try:
            self._upload.discard()
        except FAILURES:  # parts of an unfinished upload are no object; the bucket's lifecycle rule removes them
            return
