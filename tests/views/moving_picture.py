"""Animated PNGs. GitHub shows them in every browser, unlike pictures inside an SVG."""

from collections.abc import Iterator
from struct import pack, unpack_from
from zlib import crc32

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def moving_picture(frames: list[bytes], seconds: int) -> bytes:
    """Return one picture that shows PNGs of the same size in turn, each for some seconds."""
    parts = [dict(_chunks(frame)) for frame in frames]
    (head,) = {part[b"IHDR"] for part in parts}
    made = [SIGNATURE, _chunk(b"IHDR", head), _chunk(b"acTL", pack(">II", len(frames), 0))]
    for number, part in enumerate(parts):
        # All of a frame's chunks are numbered, except the data of the first.
        order = max(2 * number - 1, 0)
        where = pack(">IIHHBB", 0, 0, seconds, 1, 0, 0)
        made.append(_chunk(b"fcTL", pack(">I", order) + head[:8] + where))
        data = part[b"IDAT"]
        made.append(
            _chunk(b"fdAT", pack(">I", order + 1) + data) if number else _chunk(b"IDAT", data)
        )
    return b"".join([*made, _chunk(b"IEND", b"")])


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks of a PNG, with all of its data in one."""
    at, data = len(SIGNATURE), b""
    while at < len(png):
        size, name = unpack_from(">I4s", png, at)
        chunk = png[at + 8 : at + 8 + size]
        data += chunk if name == b"IDAT" else b""
        yield name, data if name == b"IDAT" else chunk
        at += 12 + size


def _chunk(name: bytes, data: bytes) -> bytes:
    return pack(">I", len(data)) + name + data + pack(">I", crc32(name + data))
