"""The shape of catalog.bin: what its writer and its reader agree on (docs/catalog-format.md)."""

from __future__ import annotations

import struct

MAGIC, VERSION = b"NETRACAT", 1
HEADER = struct.Struct("<8sIIQ32s")
SECTION = struct.Struct("<IIII")
KIND_BYTES = {"ptr": 8, "u64": 8, "i64": 8, "f64": 8, "u32": 4, "i32": 4, "f32": 4}
KINDS = tuple(KIND_BYTES)
MATURITIES = ("experiment", "simulated", "verified", "accepted", "rejected", "quarantined")
SIGNATURE = ("arch", "phase", "graph", "cu_count")

# name -> (number, record); every record is a multiple of 4 bytes long.
SECTIONS: dict[str, tuple[int, struct.Struct]] = {
    "text": (1, struct.Struct("<B")),
    "strings": (2, struct.Struct("<II")),
    "constants": (3, struct.Struct("<16s")),
    "code": (4, struct.Struct("<BBHI")),
    "lists": (5, struct.Struct("<I")),
    "ops": (6, struct.Struct("<13I")),
    "op_args": (7, struct.Struct("<I4B7I")),
    "tactics": (8, struct.Struct("<32I32s32s")),
    "predicates": (9, struct.Struct("<4I")),
    "launches": (10, struct.Struct("<12I")),
    "args": (11, struct.Struct("<5I")),
    "kernels": (12, struct.Struct("<12I32s32s")),
}
