"""Every error a user can meet, with its exit code.

    GossamerError                1   anything of ours that has no closer name
    ├── UsageError               2   the command line asks for something that cannot be
    ├── SettingsError            3   gossamer.toml, an environment variable or --set is wrong
    ├── CrawlMissing             4   there is no crawl where one was named
    ├── ConflictError            5   somebody else was faster: a lease is held, or a publish lost its race
    ├── CorruptError             6   a file of the crawl is damaged or gone
    ├── VersionError             7   the crawl was written by a newer Gossamer
    ├── StorageError             8   the disk is full, the bucket does not answer, permission is denied
    ├── EngineError              9   a worker or executor died, or a job failed inside the engine
    ├── BalanceError            10   a stage's counters do not add up: nothing was published
    └── PluginError             11   a plugin cannot be loaded or breaks its contract
    Interrupted                130   Ctrl-C; the same command goes on

Messages are one line: what happened, then how to cure it.
"""

from __future__ import annotations

import errno


class GossamerError(Exception):
    """What Gossamer raises; `exit_code` is what the command line returns."""

    exit_code = 1


class UsageError(GossamerError):
    """The request itself cannot be met."""

    exit_code = 2


class SettingsError(GossamerError):
    """A setting is unknown or has a wrong value."""

    exit_code = 3


class CrawlMissing(GossamerError):
    """No crawl at this place."""

    exit_code = 4


class ConflictError(GossamerError):
    """Another process holds the lease or published first."""

    exit_code = 5


class CorruptError(GossamerError):
    """A file of the crawl cannot be read as what it should be."""

    exit_code = 6


class VersionError(GossamerError):
    """The crawl needs a newer Gossamer."""

    exit_code = 7


class StorageError(GossamerError):
    """The file system or object store refused."""

    exit_code = 8


class EngineError(GossamerError):
    """A worker or executor died, or a query failed."""

    exit_code = 9


class BalanceError(GossamerError):
    """Rows in and rows out of a stage differ without a reason."""

    exit_code = 10


class PluginError(GossamerError):
    """A plugin cannot be used."""

    exit_code = 11


CURES = {
    errno.ENOSPC: "the disk is full; free some space and run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space and run the same command again",
    errno.EROFS: "the file system is read-only; choose another place or remount it",
    errno.EACCES: "check who owns the crawl directory",
    errno.EPERM: "check who owns the crawl directory",
    errno.EIO: "the device reported an input/output error; check the disk, then run the same command again",
    errno.ENOTDIR: "a file is in the way of a directory; choose another place or move that file",
    errno.EMFILE: "too many open files; raise the limit (ulimit -n) and run the same command again",
}


def storage_error(error: OSError, path: str) -> GossamerError:
    """The storage error for an OSError met at `path`, with its cure."""
    if isinstance(error, FileNotFoundError):
        return CorruptError(f"{path}: file is missing; roll back with `gossamer snapshots rollback` or restore it")
    cure = CURES.get(error.errno or 0, "check the storage and run the same command again")
    return StorageError(f"{path}: {error.strerror or error}: {cure}")
