"""The error tree: drawn in the docstring, an exit code for each branch, a cure for each fault of the disk."""

from __future__ import annotations

import errno
import os
import re

import pytest

from gossamer import errors
from gossamer.errors import CURES, CorruptError, GossamerError, StorageError, storage_error

CLASSES = {name: c for name, c in vars(errors).items() if isinstance(c, type) and issubclass(c, GossamerError)}
DRAWN = {name: int(code) for name, code in re.findall(r"^[ │├└─]*(\w+) +(\d+)  ", str(errors.__doc__), re.MULTILINE)}


def test_the_tree_lists_every_class_with_its_code():
    assert DRAWN.pop("Interrupted") == 130
    assert {name: c.exit_code for name, c in CLASSES.items()} == DRAWN


def test_every_branch_has_its_own_code_and_its_words():
    assert len({c.exit_code for c in CLASSES.values()}) == len(CLASSES)
    assert all(c.__doc__ for c in CLASSES.values())


def test_the_tree_is_one_level_deep():
    assert all(c.__bases__ == (GossamerError,) for c in CLASSES.values() if c is not GossamerError)


@pytest.mark.parametrize(
    ("number", "cure"),
    [
        (errno.ENOSPC, "free some space and run the same command again"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "who owns the crawl directory"),
        (errno.EIO, "check the disk"),
        (errno.EMFILE, "ulimit -n"),
        (errno.ENOTDIR, "choose another place"),
        (errno.ELOOP, "check the storage"),
    ],
)
def test_an_os_error_becomes_a_storage_error_that_names_file_and_cure(number: int, cure: str):
    told = storage_error(OSError(number, os.strerror(number)), "/crawl/x.parquet")
    assert isinstance(told, StorageError)
    assert str(told).startswith(f"/crawl/x.parquet: {os.strerror(number)}: ")
    assert cure in str(told)


def test_a_missing_file_is_damage_to_the_crawl():
    told = storage_error(FileNotFoundError(errno.ENOENT, "No such file or directory"), "/crawl/x.parquet")
    assert isinstance(told, CorruptError)
    assert "gossamer snapshots rollback" in str(told)


def test_an_os_error_without_number_or_words():
    assert "strange: check the storage" in str(storage_error(OSError("strange"), "/x"))


def test_cures_are_one_line():
    assert not any("\n" in cure for cure in CURES.values())
