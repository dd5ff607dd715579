"""Just enough ELF to damage a code object on purpose."""

from __future__ import annotations

import struct


def descriptor_offset(image: bytes, kernel: str) -> int:
    """Where the 64-byte descriptor of a kernel lies in the file."""
    sections = _table(image, 40, 58, 60)
    wanted = f"{kernel}.kd".encode()
    for kind, offset, size, link, entry in (_section(image, at) for at in sections):
        if kind != 11:  # SHT_DYNSYM
            continue
        _, names, names_size, _, _ = _section(image, sections[link])
        strings = image[names : names + names_size]
        for at in range(offset, offset + size, entry):
            name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", image, at)
            if strings[name : strings.index(b"\0", name)] == wanted:
                return _file_offset(image, value)
    raise AssertionError(f"no {kernel}.kd")


def with_u32(image: bytes, offset: int, value: int) -> bytes:
    return image[:offset] + struct.pack("<I", value) + image[offset + 4 :]


def _table(image: bytes, at: int, size_at: int, count_at: int) -> list[int]:
    (start,) = struct.unpack_from("<Q", image, at)
    (size,) = struct.unpack_from("<H", image, size_at)
    (count,) = struct.unpack_from("<H", image, count_at)
    return [start + i * size for i in range(count)]


def _section(image: bytes, at: int) -> tuple[int, int, int, int, int]:
    _, kind, _, _, offset, size, link, _, _, entry = struct.unpack_from("<IIQQQQIIQQ", image, at)
    return kind, offset, size, link, entry


def _file_offset(image: bytes, address: int) -> int:
    for at in _table(image, 32, 54, 56):
        kind, _, offset, start, _, size, _, _ = struct.unpack_from("<IIQQQQQQ", image, at)
        if kind == 1 and start <= address < start + size:
            return offset + address - start
    raise AssertionError(f"{address:#x} is in no segment")
