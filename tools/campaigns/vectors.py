"""Recorded instruction programs: raw code that left known values in a buffer.

A record is one JSON object a line: `code` (hex), `arch` (rdna3 or cdna), `block`, `rsrc2` (user
SGPRs, workgroup ids and LDS of the dispatch), `scratch` (bytes per lane), `after` (hex: the buffer
when the program had ended; it was zero before) and `test` (where it comes from).  The code is
wrapped as it is: s[0:1] points to the address of the buffer, v0 is the packed work-item id.

Most programs end by storing v0-v15 of every lane, s0-s15, VCC, SCC and EXEC; differences are told
in these names.  What is known to differ from the hardware is in settled.py.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netra_catalog import paths
from netra_catalog.errors import NetraError, UsageError

from campaigns import compiler, core, simulate
from campaigns.settled import EXCUSED, REWRITES, SETTLED, Settled

NAME = "vectors"
TARGETS = {"rdna3": "gfx1151", "cdna": "gfx950"}
KERNELS = 16  # in one code object
_LANE_REGISTERS = 16
_SCALARS = 76  # bytes: s0-s15, VCC, SCC, EXEC
_SHOWN_WORDS = 6

_KERNEL = """
        .globl  {name}
        .p2align 8
        .type   {name},@function
{name}:
        .byte   {code}
.Lend_{name}:
        .size   {name}, .Lend_{name}-{name}
"""
_DESCRIPTOR = """
        .amdhsa_kernel {name}
          .amdhsa_kernarg_size 8
          .amdhsa_next_free_vgpr 256
          .amdhsa_next_free_sgpr {sgprs}
          .amdhsa_user_sgpr_kernarg_segment_ptr 1
          .amdhsa_user_sgpr_count {user_sgprs}
          .amdhsa_system_sgpr_workgroup_id_x {x}
          .amdhsa_system_sgpr_workgroup_id_y {y}
          .amdhsa_system_sgpr_workgroup_id_z {z}
          .amdhsa_system_vgpr_workitem_id 2
          .amdhsa_group_segment_fixed_size {lds}
          .amdhsa_private_segment_fixed_size {scratch}
          .amdhsa_enable_private_segment {has_scratch}
          .amdhsa_float_denorm_mode_32 0
          .amdhsa_float_denorm_mode_16_64 3
          .amdhsa_ieee_mode 1
          .amdhsa_dx10_clamp 1
{extra}        .end_amdhsa_kernel
"""
_METADATA = """  - .name: {name}
    .symbol: {name}.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: {scratch}
    .wavefront_size: {wave}
    .sgpr_count: {sgprs}
    .vgpr_count: 256
    .max_flat_workgroup_size: 1024
    .args:
      - .name: out
        .offset: 0
        .size: 8
        .value_kind: global_buffer
        .address_space: global
"""


# ---- reading ---------------------------------------------------------------------------------


def read(path: Path) -> list[dict[str, Any]]:
    """The records, each with its line as `name` ("17") and its target as `target`."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    records = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            bytes.fromhex(record["code"])
            bytes.fromhex(record["after"])
            n_x, n_y, n_z = record["block"]
            assert n_x * n_y * n_z > 0 and isinstance(record["rsrc2"], int)
        except (ValueError, KeyError, TypeError, AssertionError) as error:
            raise NetraError(f"no record: {error!r}", where=f"{path}:{number}") from None
        record["name"] = str(number)
        record["target"] = TARGETS.get(record["arch"])
        records.append(record)
    return records


# ---- wrapping raw code -----------------------------------------------------------------------


def code(record: Mapping[str, Any]) -> bytes:
    """The recorded code, with the replacements that REWRITES has for it."""
    raw = bytes.fromhex(record["code"])
    for rewrite in REWRITES:
        if rewrite.applies(record["test"]):
            old, new = (struct.pack(f"<{len(w)}I", *w) for w in (rewrite.old, rewrite.new))
            raw = raw.replace(old, new)
    return raw


def fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """The dispatch of a record, from COMPUTE_PGM_RSRC2 (both ISA guides and LLVM AMDGPUUsage)."""
    rsrc2, gfx950 = record["rsrc2"], record["target"] == "gfx950"
    scratch = record.get("scratch", 0)
    return {
        "user_sgprs": max(2, rsrc2 >> 1 & 31),
        "x": rsrc2 >> 7 & 1, "y": rsrc2 >> 8 & 1, "z": rsrc2 >> 9 & 1,
        "lds": (rsrc2 >> 15 & 0x1FF) * 512,
        "scratch": scratch, "has_scratch": int(scratch > 0),
        "sgprs": 96 if gfx950 else 100,
        "wave": 64 if gfx950 else 32,
        "extra": "          .amdhsa_accum_offset 256\n" if gfx950 else "",
    }  # fmt: skip


def kernel_name(record: Mapping[str, Any]) -> str:
    return f"record_{record['name']}"


def assembly(records: Sequence[Mapping[str, Any]], arch: str) -> str:
    """One .s with a kernel for each record."""
    text = [f'        .amdgcn_target "amdgcn-amd-amdhsa--{arch}"\n        .text\n']
    for record in records:
        hexes = ",".join(f"0x{byte:02x}" for byte in code(record))
        text.append(_KERNEL.format(name=kernel_name(record), code=hexes))
    text.append("\n        .rodata\n        .p2align 6\n")
    text += [_DESCRIPTOR.format(name=kernel_name(r), **fields(r)) for r in records]
    text.append("\n        .amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:\n")
    text += [_METADATA.format(name=kernel_name(r), **fields(r)) for r in records]
    text.append(f"amdhsa.target: amdgcn-amd-amdhsa--{arch}\n...\n        .end_amdgpu_metadata\n")
    return "".join(text)


def code_object(records: Sequence[Mapping[str, Any]], arch: str) -> Path:
    """The records as one code object."""
    command = [*compiler.target_command(paths.llvm_bin(), arch), "-x", "assembler", "-"]
    output = core.folder(NAME) / arch / f"{kernel_name(records[0])}.co"
    return compiler.build(command, [], output, assembly(records, arch))


# ---- comparing -------------------------------------------------------------------------------


def label(offset: int, lanes: int, size: int) -> str:
    """What the dword at `offset` of the buffer holds."""
    registers = 4 * _LANE_REGISTERS * lanes
    if size < registers + _SCALARS:
        return f"out[{offset // 4}]"
    if offset < registers:
        register, lane = divmod(offset // 4, lanes)
        return f"v{register}[{lane}]" if lanes > 1 else f"v{register}"
    index = (offset - registers) // 4
    if index < 16:
        return f"s{index}"
    return {16: "vcc", 17: "scc", 18: "exec"}.get(index, f"out[{offset // 4}]")


def differences(record: Mapping[str, Any], output: bytes) -> list[tuple[str, int, int]]:
    """(register, got, recorded) of every dword that differs."""
    after = bytes.fromhex(record["after"])
    x, y, z = record["block"]
    found = []
    for offset in range(0, len(after) & ~3, 4):
        (got,) = struct.unpack_from("<I", output, offset)
        (want,) = struct.unpack_from("<I", after, offset)
        if got != want:
            found.append((label(offset, x * y * z, len(after)), got, want))
    return found  # fmt: skip


def settled(record: Mapping[str, Any], register: str, got: int, want: int) -> Settled | None:
    """The entry of SETTLED that this difference is an instance of."""
    for entry in SETTLED:
        if entry.covers(record["test"], register, got, want):
            return entry
    return None


# ---- running ---------------------------------------------------------------------------------

_open: tuple[str, simulate.Module] | None = None


def _module(path: str, arch: str) -> simulate.Module:
    """Records of one code object come one after the other: it is loaded once."""
    global _open
    if _open is None or _open[0] != path:
        if _open is not None:
            _open[1].unload()
        _open = path, simulate.Module(Path(path), arch)
    return _open[1]


def work(job: dict[str, Any]) -> dict[str, Any]:
    """In the worker: runs one record and compares."""
    record = job["record"]
    x, y, z = record["block"]
    # All that the usual ending stores, even where less was recorded.
    size = max(len(record["after"]) // 2, 4 * _LANE_REGISTERS * x * y * z + _SCALARS)
    launched = _module(job["object"], job["arch"]).launch(
        kernel_name(record), size, record["block"]
    )
    if launched.fault:
        covering = [e.why for e in EXCUSED if e.covers(record["test"], launched.fault)]
        excuse = covering[0] if covering else None
        return {"failure": launched.fault, "excuse": excuse}
    words, notes = [], []
    for register, got, want in differences(record, launched.output):
        entry = settled(record, register, got, want)
        if entry is None:
            words.append(f"{register} is 0x{got:08x}, recorded 0x{want:08x}")
        elif entry.why not in notes:
            notes.append(entry.why)
    more = f" and {len(words) - _SHOWN_WORDS} more" if len(words) > _SHOWN_WORDS else ""
    failure = "; ".join(words[:_SHOWN_WORDS]) + more
    return {"failure": failure or None, "instructions": launched.instructions, "notes": notes}


def run(options: core.Options) -> int:
    """The campaign; its exit code."""
    if not options.file:
        raise UsageError("vectors needs the recorded programs: make vectors VECTORS=FILE")
    records = read(Path(options.file))
    absent = [record for record in records if record["target"] not in options.arches]
    records = [record for record in records if record["target"] in options.arches]
    if absent:
        print(f"not run: {len(absent)} records for other targets")
    by_name = {record["name"]: record for record in records}
    for name in options.names:
        if name not in by_name:
            raise UsageError(f"{options.file} has no record '{name}'; records are named by line")
    chosen = list(options.names) or core.choose(list(by_name), options)
    tasks = []
    for arch in options.arches:
        there = [by_name[name] for name in chosen if by_name[name]["target"] == arch]
        for first in range(0, len(there), KERNELS):
            group = there[first : first + KERNELS]
            path = str(code_object(group, arch))
            tasks += [
                core.Task(
                    f"{record['name']} {record['test'].rpartition('/')[2]}", arch,
                    "campaigns.vectors:work", {"record": record, "object": path},
                    f"make vectors VECTORS={options.file} ARGS={record['name']}",
                )
                for record in group
            ]  # fmt: skip
    tally = core.run(NAME, tasks, options)
    for note, count in tally.notes.most_common():
        print(f"settled in {count} records: {note}")
    return core.finish(NAME, tally, options.seed)
