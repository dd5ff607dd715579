"""What the integer rows of the vector ALU compute, in Python integers.

An entry takes the mode and the sources as unsigned patterns of their slots, and returns the pattern
of the destination; with a carry, (destination, carry).  CLAMPED holds the rows that clamp selects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softfloat import Mode

Row = Callable[..., Any]
ROWS: dict[str, Row] = {}
CLAMPED: dict[str, Row] = {}


def signed(x: int, width: int = 32) -> int:
    x &= (1 << width) - 1
    return x - (1 << width) if x >> (width - 1) else x


def fields(x: int, width: int, count: int, sign: bool = False) -> list[int]:
    parts = [x >> (width * k) & ((1 << width) - 1) for k in range(count)]
    return [signed(p, width) for p in parts] if sign else parts


def columns(width: int, count: int, *sources: int) -> list[tuple[int, ...]]:
    """The fields of several patterns, side by side."""
    return list(zip(*(fields(s, width, count) for s in sources), strict=True))


def pack(parts: list[int], width: int) -> int:
    return sum((p & ((1 << width) - 1)) << (width * k) for k, p in enumerate(parts))


def saturated(x: int, width: int, sign: bool) -> int:
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if sign else (0, (1 << width) - 1)
    return min(max(x, low), high) & ((1 << width) - 1)


def both(names: str, function: Row) -> None:
    for name in names.split():
        ROWS[name] = function


def exact(names: str, width: int, sign: bool, function: Callable[..., int]) -> None:
    """A row that wraps, and its twin that saturates; the function gets typed integers."""
    for name in names.split():
        ROWS[name] = lambda m, *s: function(*s) & ((1 << width) - 1)
        CLAMPED[name] = lambda m, *s: saturated(function(*s), width, sign)


def typed(width: int, sign: bool, function: Callable[..., int]) -> Callable[..., int]:
    return lambda *s: function(*(signed(x, width) if sign else x for x in s))


# Moves and bits.
both("v_mov_b32 v_mov_b64 v_mov_b16 v_accvgpr_read_b32 v_accvgpr_write_b32 v_accvgpr_mov_b32",
     lambda m, a: a)
both("v_not_b32", lambda m, a: a ^ 0xFFFFFFFF)
both("v_not_b16", lambda m, a: a ^ 0xFFFF)
both("v_bfrev_b32", lambda m, a: int(f"{a:032b}"[::-1], 2))
both("v_ffbh_u32 v_clz_i32_u32", lambda m, a: 32 - a.bit_length() if a else 0xFFFFFFFF)
both("v_ffbl_b32 v_ctz_i32_b32",
     lambda m, a: (a & -a).bit_length() - 1 if a else 0xFFFFFFFF)


def _sign_run(m: Mode, a: int) -> int:
    bits = f"{a:032b}"
    other = bits.find("1" if bits[0] == "0" else "0")
    return other if other > 0 else 0xFFFFFFFF


both("v_ffbh_i32 v_cls_i32", _sign_run)
both("v_prng_b32", lambda m, a: (a << 1 & 0xFFFFFFFF) ^ (197 if a >> 31 else 0))
both("v_sat_pk_u8_i16", lambda m, a: pack([min(max(x, 0), 255) for x in fields(a, 16, 2, True)], 8))
both("v_cvt_i32_i16", lambda m, a: signed(a, 16) & 0xFFFFFFFF)
both("v_cvt_u32_u16", lambda m, a: a)
for _name, _op in {"and": lambda a, b: a & b, "or": lambda a, b: a | b,
                   "xor": lambda a, b: a ^ b}.items():
    both(f"v_{_name}_b32 v_{_name}_b16", lambda m, a, b, op=_op: op(a, b))
both("v_xnor_b32", lambda m, a, b: (a ^ b) ^ 0xFFFFFFFF)
both("v_cndmask_b32 v_cndmask_b16", lambda m, a, b: b if m.carry else a)
for _w, _t in ((16, "16"), (32, "32"), (64, "64")):
    both(f"v_lshlrev_b{_t}", lambda m, a, b, w=_w: b << a % w & ((1 << w) - 1))
    both(f"v_lshrrev_b{_t}", lambda m, a, b, w=_w: b >> a % w)
    both(f"v_ashrrev_i{_t}", lambda m, a, b, w=_w: signed(b, w) >> a % w & ((1 << w) - 1))

# Addition and its carries.
for _suffix in ("", "_nc"):
    exact(f"v_add{_suffix}_u32", 32, False, lambda a, b: a + b)
    exact(f"v_sub{_suffix}_u32", 32, False, lambda a, b: a - b)
    exact(f"v_subrev{_suffix}_u32", 32, False, lambda a, b: b - a)
    for _w in (16, 32):
        exact(f"v_add{_suffix}_i{_w}", _w, True, typed(_w, True, lambda a, b: a + b))
        exact(f"v_sub{_suffix}_i{_w}", _w, True, typed(_w, True, lambda a, b: a - b))
    exact(f"v_add{_suffix}_u16", 16, False, lambda a, b: a + b)
    exact(f"v_sub{_suffix}_u16", 16, False, lambda a, b: a - b)
exact("v_subrev_u16", 16, False, lambda a, b: b - a)


def carried(names: str, function: Callable[[int, int, int], int]) -> None:
    for name in names.split():
        ROWS[name] = lambda m, a, b: (
            function(a, b, m.carry) & 0xFFFFFFFF, int(not 0 <= function(a, b, m.carry) < 1 << 32))
        CLAMPED[name] = lambda m, a, b: (
            saturated(function(a, b, m.carry), 32, False),
            int(not 0 <= function(a, b, m.carry) < 1 << 32))


carried("v_add_co_u32", lambda a, b, c: a + b)
carried("v_sub_co_u32", lambda a, b, c: a - b)
carried("v_subrev_co_u32", lambda a, b, c: b - a)
carried("v_addc_co_u32 v_add_co_ci_u32", lambda a, b, c: a + b + c)
carried("v_subb_co_u32 v_sub_co_ci_u32", lambda a, b, c: a - b - c)
carried("v_subbrev_co_u32 v_subrev_co_ci_u32", lambda a, b, c: b - a - c)

# Multiplication.
exact("v_mul_u32_u24", 32, False, lambda a, b: a % (1 << 24) * (b % (1 << 24)))
exact("v_mul_i32_i24", 32, True, typed(24, True, lambda a, b: a * b))
both("v_mul_hi_u32_u24", lambda m, a, b: a % (1 << 24) * (b % (1 << 24)) >> 32)
both("v_mul_hi_i32_i24", lambda m, a, b: signed(a, 24) * signed(b, 24) >> 32 & 0xFFFFFFFF)
both("v_mul_lo_u32", lambda m, a, b: a * b & 0xFFFFFFFF)
both("v_mul_hi_u32", lambda m, a, b: a * b >> 32)
both("v_mul_hi_i32", lambda m, a, b: signed(a) * signed(b) >> 32 & 0xFFFFFFFF)
exact("v_mul_lo_u16", 16, False, lambda a, b: a * b)
exact("v_mad_u32_u24", 32, False, lambda a, b, c: a % (1 << 24) * (b % (1 << 24)) + c)
exact("v_mad_i32_i24", 32, True, lambda a, b, c: signed(a, 24) * signed(b, 24) + signed(c))
exact("v_mad_u16 v_mad_legacy_u16", 16, False, lambda a, b, c: a * b + c)
exact("v_mad_i16 v_mad_legacy_i16", 16, True, typed(16, True, lambda a, b, c: a * b + c))
exact("v_mad_u32_u16", 32, False, lambda a, b, c: a * b + c)
exact("v_mad_i32_i16", 32, True, lambda a, b, c: signed(a, 16) * signed(b, 16) + signed(c))
ROWS["v_mad_u64_u32"] = lambda m, a, b, c: ((a * b + c) % (1 << 64), (a * b + c) >> 64)
CLAMPED["v_mad_u64_u32"] = lambda m, a, b, c: (min(a * b + c, (1 << 64) - 1), (a * b + c) >> 64)


def _mad_i64(m: Mode, a: int, b: int, c: int) -> int:
    return signed(a) * signed(b) + signed(c, 64)


ROWS["v_mad_i64_i32"] = lambda m, *s: (_mad_i64(m, *s) % (1 << 64), int(_mad_i64(m, *s) < 0))
CLAMPED["v_mad_i64_i32"] = lambda m, *s: (saturated(_mad_i64(m, *s), 64, True),
                                         int(_mad_i64(m, *s) < 0))

# Shifts with something else, fields, bytes.
U32 = 0xFFFFFFFF
both("v_lshl_add_u32", lambda m, a, b, c: ((a << b % 32) + c) & U32)
both("v_add_lshl_u32", lambda m, a, b, c: ((a + b) & U32) << c % 32 & U32)
both("v_lshl_or_b32", lambda m, a, b, c: (a << b % 32 | c) & U32)
both("v_and_or_b32", lambda m, a, b, c: a & b | c)
both("v_or3_b32", lambda m, a, b, c: a | b | c)
both("v_xor3_b32", lambda m, a, b, c: a ^ b ^ c)
both("v_add3_u32", lambda m, a, b, c: (a + b + c) & U32)
both("v_xad_u32", lambda m, a, b, c: ((a ^ b) + c) & U32)
both("v_lshl_add_u64", lambda m, a, b, c: ((a << (b if b <= 4 else 0)) + c) % (1 << 64))
both("v_bfe_u32", lambda m, a, b, c: a >> b % 32 & ((1 << c % 32) - 1))
both("v_bfe_i32",
     lambda m, a, b, c: signed(signed(a) >> b % 32, c % 32) & U32 if c % 32 else 0)
both("v_bfi_b32", lambda m, a, b, c: a & b | (a ^ U32) & c)
both("v_bfm_b32", lambda m, a, b: ((1 << a % 32) - 1) << b % 32 & U32)
both("v_alignbit_b32", lambda m, a, b, c: (a << 32 | b) >> c % 32 & U32)
both("v_alignbyte_b32", lambda m, a, b, c: (a << 32 | b) >> 8 * (c % 4) & U32)
both("v_bcnt_u32_b32", lambda m, a, b: (bin(a).count("1") + b) & U32)
both("v_mbcnt_lo_u32_b32",
     lambda m, a, b: (bin(a & ((1 << m.lane) - 1)).count("1") + b) & U32)
both("v_mbcnt_hi_u32_b32",
     lambda m, a, b: (bin((a << 32) & ((1 << m.lane) - 1)).count("1") + b) & U32)
both("v_lerp_u8", lambda m, a, b, c: pack(
    [(x + y + (z & 1)) >> 1 for x, y, z in columns(8, 4, a, b, c)], 8))


def _perm(m: Mode, a: int, b: int, c: int) -> int:
    data = fields(b, 8, 4) + fields(a, 8, 4)
    special = {8: data[1], 9: data[3], 10: data[5], 11: data[7]}
    out = []
    for s in fields(c, 8, 4):
        if s < 8:
            out.append(data[s])
        elif s in special:
            out.append(0xFF if special[s] & 0x80 else 0)
        else:
            out.append(0 if s == 12 else 0xFF)
    return pack(out, 8)


both("v_perm_b32", _perm)
BITOP3 = 0x6C  # the table that the test's text names


def _bitop3(m: Mode, a: int, b: int, c: int) -> int:
    out = 0
    for k in range(32):
        index = (a >> k & 1) << 2 | (b >> k & 1) << 1 | c >> k & 1
        out |= (BITOP3 >> index & 1) << k
    return out


both("v_bitop3_b32", _bitop3)
both("v_bitop3_b16", lambda m, a, b, c: _bitop3(m, a, b, c) & 0xFFFF)


def _sad(a: int, b: int, masked: bool = False) -> int:
    return sum(abs(x - y) for x, y in columns(8, 4, a, b) if y or not masked)


exact("v_sad_u8", 32, False, lambda a, b, c: _sad(a, b) + c)
exact("v_sad_hi_u8", 32, False, lambda a, b, c: (_sad(a, b) << 16) + c)
exact("v_sad_u16", 32, False,
      lambda a, b, c: sum(abs(x - y) for x, y in columns(16, 2, a, b)) + c)
exact("v_sad_u32", 32, False, lambda a, b, c: abs(a - b) + c)
exact("v_msad_u8", 32, False, lambda a, b, c: _sad(a, b, True) + c)


def _qsad(a: int, b: int, c: int, masked: bool, width: int) -> list[int]:
    add = fields(c, width, 4)
    return [_sad(a >> 8 * k & U32, b, masked) + add[k] for k in range(4)]


for _name, _masked in (("v_qsad_pk_u16_u8", False), ("v_mqsad_pk_u16_u8", True)):
    ROWS[_name] = lambda m, a, b, c, k=_masked: pack(_qsad(a, b, c, k, 16), 16)
    CLAMPED[_name] = lambda m, a, b, c, k=_masked: pack(
        [min(x, 0xFFFF) for x in _qsad(a, b, c, k, 16)], 16)
ROWS["v_mqsad_u32_u8"] = lambda m, a, b, c: pack(_qsad(a, b, c, True, 32), 32)
CLAMPED["v_mqsad_u32_u8"] = lambda m, a, b, c: pack(
    [min(x, U32) for x in _qsad(a, b, c, True, 32)], 32)

# Ordering.
for _w in (16, 32):
    for _t, _sign in (("u", False), ("i", True)):
        def _key(x: int, w: int = _w, s: bool = _sign) -> int:
            return signed(x, w) if s else x

        for _name, _row in {
            "min": lambda m, *s, k=_key: min(s, key=k),
            "max": lambda m, *s, k=_key: max(s, key=k),
            "med3": lambda m, *s, k=_key: sorted(s, key=k)[1],
            "maxmin": lambda m, a, b, c, k=_key: min(max(a, b, key=k), c, key=k),
            "minmax": lambda m, a, b, c, k=_key: max(min(a, b, key=k), c, key=k),
        }.items():
            ROWS[f"v_{_name}_{_t}{_w}"] = _row
        ROWS[f"v_min3_{_t}{_w}"] = ROWS[f"v_min_{_t}{_w}"]
        ROWS[f"v_max3_{_t}{_w}"] = ROWS[f"v_max_{_t}{_w}"]
both("v_cvt_pk_u16_u32", lambda m, *s: pack([min(x, 0xFFFF) for x in s], 16))
both("v_cvt_pk_i16_i32", lambda m, *s: pack([saturated(signed(x), 16, True) for x in s], 16))
both("v_pack_b32_f16", lambda m, *s: pack(list(s), 16))
both("v_ashr_pk_i8_i32", lambda m, a, b, c: pack(
    [saturated(signed(x) >> c % 32, 8, True) for x in (a, b)], 8))
both("v_ashr_pk_u8_i32", lambda m, a, b, c: pack(
    [saturated(signed(x) >> c % 32, 8, False) for x in (a, b)], 8))


# Packed halves: the row of one half, applied to both.
def packed(name: str, sign: bool, function: Callable[..., int], *, clamps: bool = True) -> None:
    def run(saturate: bool, *s: int) -> int:
        halves = zip(*(fields(x, 16, 2, sign) for x in s), strict=False)
        out = [function(*h) for h in halves]
        return pack([saturated(x, 16, sign) for x in out] if saturate else out, 16)

    ROWS[name] = lambda m, *s: run(False, *s)
    if clamps:
        CLAMPED[name] = lambda m, *s: run(True, *s)


for _t, _sign in (("u", False), ("i", True)):
    packed(f"v_pk_mad_{_t}16", _sign, lambda a, b, c: a * b + c)
    packed(f"v_pk_add_{_t}16", _sign, lambda a, b: a + b)
    packed(f"v_pk_sub_{_t}16", _sign, lambda a, b: a - b)
    packed(f"v_pk_max_{_t}16", _sign, max, clamps=False)
    packed(f"v_pk_min_{_t}16", _sign, min, clamps=False)
packed("v_pk_mul_lo_u16", False, lambda a, b: a * b)
packed("v_pk_lshlrev_b16", False, lambda a, b: b << a % 16, clamps=False)
packed("v_pk_lshrrev_b16", False, lambda a, b: b >> a % 16, clamps=False)
packed("v_pk_ashrrev_i16", True, lambda a, b: b >> a % 16, clamps=False)
both("v_pk_mov_b32", lambda m, a, b: a & U32 | b >> 32 << 32)  # the text takes a's low, b's high


# Dot products.
def dot(name: str, width: int, sign: bool) -> None:
    def sum_of(a: int, b: int, c: int) -> int:
        count = 32 // width
        pairs = zip(fields(a, width, count, sign), fields(b, width, count, sign), strict=False)
        return sum(x * y for x, y in pairs) + (signed(c) if sign else c)

    exact(name, 32, sign, sum_of)


for _name, _w, _sign in (
    ("v_dot2_i32_i16", 16, True), ("v_dot2_u32_u16", 16, False), ("v_dot4_i32_i8", 8, True),
    ("v_dot4_u32_u8", 8, False), ("v_dot8_i32_i4", 4, True), ("v_dot8_u32_u4", 4, False),
    ("v_dot4_i32_iu8", 8, True), ("v_dot8_i32_iu4", 4, True),  # the text says both are signed
    ("v_dot2c_i32_i16", 16, True), ("v_dot4c_i32_i8", 8, True), ("v_dot8c_i32_i4", 4, True),
):
    dot(_name, _w, _sign)
