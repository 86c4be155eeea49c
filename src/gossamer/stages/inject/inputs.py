"""Seed lists as bytes: where they come from, how they are cut into ranges, and their blocks of whole lines.

What can be read only once (stdin, a pipe) is copied into the crawl's scratch first, named by its content, so that the
same command again finds the same input. Of a line longer than `MAX_LINE` only a little more than that is kept.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from xxhash import xxh3_128

from gossamer.errors import GossamerError, UsageError
from gossamer.storage.files import Files

STDIN, SPOOL = "-", "scratch/seeds-"
BLOCK = 4 << 20  # bytes read at once; their lines are parsed as one batch
MAX_LINE = 1 << 20
RANGE = 16 << 20  # bytes of a large file that one task reads
GZIP, BOM, UTF16 = b"\x1f\x8b", b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class SeedList:
    """One input: a file a worker can open."""

    path: str
    name: str  # as users know it
    tag: str
    files: Files | None = None  # where a copied stream lies; None: `path` is a file of this machine

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes as they are stored."""
        try:
            with self.files.open(self.path) if self.files else Path(self.path).open("rb") as stream:
                yield stream
        except OSError as error:
            raise UsageError(f"{self.name}: {error.strerror or error}; check the file") from error


@dataclass(frozen=True)
class Part:
    """Some bytes of a seed list: the lines that begin there."""

    seeds: SeedList
    start: int = 0
    stop: int | None = None  # None: to the end


def tag_of(path: str) -> str:
    """The source tag of a seed list that was given none: its base name without suffixes."""
    if path == STDIN:
        return "stdin"
    name = Path(path).name
    return name.lstrip(".").split(".")[0] or name


def stamp_of(path: str) -> str:
    """Size and time of a file, so that a changed file is another job; empty for what can be read only once."""
    if path == STDIN:
        return ""
    try:
        file = Path(path)
        known = file.stat()
        if file.is_dir():
            raise UsageError(f"{path}: is a directory; name the files in it")
        return f"{known.st_size} {known.st_mtime_ns}" if file.is_file() else ""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path}: {reason}; check the path") from error


@contextmanager
def spooled(paths: Sequence[str], files: Files, scratch: str | None) -> Iterator[list[str]]:
    """A stamp of each seed list; streams lie in the crawl's scratch meanwhile, and their stamp is where."""
    if not paths:
        raise UsageError("no seed list was named; give a file, or - for stdin")
    stamps = [stamp_of(path) or _spool(path, files, scratch) for path in paths]
    try:
        yield stamps
    finally:
        with suppress(GossamerError):  # what cannot be removed now is collected later
            files.delete(*(stamp for stamp in stamps if stamp.startswith(SPOOL)))


def _spool(path: str, files: Files, scratch: str | None) -> str:
    """Copy a stream into the crawl, under a name that follows from its content."""
    digest = xxh3_128()
    try:
        with tempfile.TemporaryFile(dir=scratch) as copy:
            with _stream(path) as stream:
                while piece := stream.read(BLOCK):
                    digest.update(piece)
                    copy.write(piece)
            copy.seek(0)
            _store(copy, files, f"{SPOOL}{digest.hexdigest()}")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; give the seeds as a file") from error
    return f"{SPOOL}{digest.hexdigest()}"


@contextmanager
def _stream(path: str) -> Iterator[BinaryIO]:
    if path == STDIN:
        yield sys.stdin.buffer
        return
    with Path(path).open("rb") as stream:
        yield stream


def _store(copy: BinaryIO, files: Files, path: str) -> None:
    files.delete(path)
    writer = files.writer(path)
    try:
        while piece := copy.read(BLOCK):
            writer.write(piece)
    except BaseException:
        writer.abort()
        raise
    writer.close()


def seed_lists(paths: Sequence[str], stamps: Sequence[str], source: str | None, files: Files) -> list[SeedList]:
    """The inputs of a run, each with its source tag."""
    return [
        SeedList(stamp, "stdin" if path == STDIN else path, source or tag_of(path), files)
        if stamp.startswith(SPOOL)
        else SeedList(str(Path(path).absolute()), path, source or tag_of(path))
        for path, stamp in zip(paths, stamps, strict=True)
    ]


def parts_of(seeds: SeedList) -> list[Part]:
    """A large plain file in ranges; a compressed one as a whole."""
    with seeds.open() as stream:
        head = stream.read(2)
        if head in UTF16:
            raise UsageError(f"{seeds.name}: the text is UTF-16; save it as UTF-8")
        size = stream.seek(0, 2)
    if head == GZIP or size <= RANGE:
        return [Part(seeds)]
    cuts = [*range(0, size, RANGE)]
    return [Part(seeds, start, stop) for start, stop in zip(cuts, [*cuts[1:], None], strict=True)]


def blocks(part: Part) -> Iterator[bytes]:
    """The lines that begin in a part, as blocks of whole lines without the last line end."""
    with part.seeds.open() as stream:
        compressed = stream.read(2) == GZIP
        stream.seek(0)
        yield from whole_lines(_unpacked(stream, part.seeds.name) if compressed else _bytes_of(stream, part))


def whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces cut anew, at line ends; a line that never ends does not fill the memory."""
    rest = b""
    for piece in pieces:
        data = rest + piece
        head, end, tail = data.rpartition(b"\n")
        if end:
            yield head
        rest = tail[: MAX_LINE + 1]
    if rest:
        yield rest


def _bytes_of(stream: BinaryIO, part: Part) -> Iterator[bytes]:
    """The bytes of a part, moved to where lines begin."""
    at = _line_begin(stream, part.start)
    stop = None if part.stop is None else _line_begin(stream, part.stop)
    if at == 0:
        stream.seek(0)
        at = len(BOM) if stream.read(len(BOM)) == BOM else 0
    stream.seek(at)
    while piece := stream.read(BLOCK if stop is None else min(BLOCK, stop - at)):
        yield piece
        at += len(piece)


def _line_begin(stream: BinaryIO, at: int) -> int:
    """Where the first line begins that begins at this byte or later."""
    if at == 0:
        return 0
    stream.seek(at - 1)
    while (piece := stream.readline(BLOCK)) and not piece.endswith(b"\n"):
        pass
    return stream.tell()


def _unpacked(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """The text in a gzip file of one or more members."""
    try:
        with gzip.open(stream) as plain:
            yield plain.read(BLOCK).removeprefix(BOM)
            while piece := plain.read(BLOCK):
                yield piece
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(
            f"{name}: the gzip file is cut or damaged ({error}); get or make it again, nothing was injected"
        ) from error
