"""What the scalar ALU rows compute: (destination, SCC) from the sources, SCC, EXEC and the old D.

None for a destination or SCC says that it stays.  A row that writes EXEC returns it as a third.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import floats
import others
import softfloat as sf
from integers import signed
from softfloat import Mode

Row = Callable[..., Any]
ROWS: dict[str, Row] = {}
ONES = {32: 0xFFFFFFFF, 64: (1 << 64) - 1}
FULL = ONES[64]


def plain(names: str, function: Callable[..., int], width: int = 32) -> None:
    """SCC stays."""
    for name in names.split():
        ROWS[name] = lambda s, scc, d: (function(*s) & ONES[width], None)


def tested(names: str, function: Callable[..., int], width: int = 32) -> None:
    """SCC says whether the result is not zero."""
    for name in names.split():
        ROWS[name] = lambda s, scc, d: (
            function(*s) & ONES[width], int(function(*s) & ONES[width] != 0))


def bits(name: str, function: Callable[[list[int]], list[int]], out: int | None = None) -> None:
    """A row over the bits of its source, lowest first, in both widths; SCC is "not zero"."""
    for width in (32, 64):
        def row(s: list[int], scc: int, d: int, w: int = width) -> tuple[int, int]:
            made = function([s[0] >> k & 1 for k in range(w)])
            value = sum(b << k for k, b in enumerate(made))
            return value, int(value != 0)

        ROWS[f"{name}_b{width}"] = row


for _w in (32, 64):
    plain(f"s_mov_b{_w}", lambda a: a, _w)
    tested(f"s_not_b{_w}", lambda a: ~a, _w)
    plain(f"s_brev_b{_w}", lambda a, w=_w: int(f"{a:0{w}b}"[::-1], 2), _w)
    ROWS[f"s_cmov_b{_w}"] = lambda s, scc, d: (s[0] if scc else None, None)
    ROWS[f"s_cselect_b{_w}"] = lambda s, scc, d: (s[0] if scc else s[1], None)
    tested(f"s_bcnt0_i32_b{_w}", lambda a, w=_w: w - bin(a).count("1"))
    tested(f"s_bcnt1_i32_b{_w}", lambda a: bin(a).count("1"))
    plain(f"s_ff0_i32_b{_w}",
          lambda a, w=_w: (~a & a + 1).bit_length() - 1 if a != ONES[w] else -1)
    plain(f"s_ff1_i32_b{_w} s_ctz_i32_b{_w}", lambda a: (a & -a).bit_length() - 1 if a else -1)
    plain(f"s_flbit_i32_b{_w} s_clz_i32_u{_w}", lambda a, w=_w: w - a.bit_length() if a else -1)
    for _n, _f in (("0", lambda d, k: d & ~(1 << k)), ("1", lambda d, k: d | 1 << k)):
        ROWS[f"s_bitset{_n}_b{_w}"] = lambda s, scc, d, f=_f, w=_w: (f(d, s[0] % w), None)
        ROWS[f"s_bitcmp{_n}_b{_w}"] = lambda s, scc, d, n=int(_n), w=_w: (
            None, int((s[0] >> s[1] % w & 1) == n))
    for _name, _op in {
        "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
        "nand": lambda a, b: ~(a & b), "nor": lambda a, b: ~(a | b), "xnor": lambda a, b: ~(a ^ b),
        "andn2": lambda a, b: a & ~b, "orn2": lambda a, b: a | ~b,
        "and_not1": lambda a, b: a & ~b, "or_not1": lambda a, b: a | ~b,
        "and_not0": lambda a, b: ~a & b, "or_not0": lambda a, b: ~a | b,
        "andn1": lambda a, b: ~a & b, "orn1": lambda a, b: ~a | b,
    }.items():
        tested(f"s_{_name}_b{_w}", _op, _w)
        # EXEC is all ones before; what a b32 form does not name of it stays.
        ROWS[f"s_{_name}_saveexec_b{_w}"] = lambda s, scc, d, f=_op, w=_w: (
            ONES[w], int(f(s[0], ONES[w]) & ONES[w] != 0), f(s[0], ONES[w]) & ONES[w])
        ROWS[f"s_{_name}_wrexec_b{_w}"] = lambda s, scc, d, f=_op, w=_w: (
            f(s[0], ONES[w]) & ONES[w], int(f(s[0], ONES[w]) & ONES[w] != 0),
            f(s[0], ONES[w]) & ONES[w])
    tested(f"s_lshl_b{_w}", lambda a, b, w=_w: a << b % w, _w)
    tested(f"s_lshr_b{_w}", lambda a, b, w=_w: a >> b % w, _w)
    tested(f"s_ashr_i{_w}", lambda a, b, w=_w: signed(a, w) >> b % w, _w)
    plain(f"s_bfm_b{_w}", lambda a, b, w=_w: ((1 << a % w) - 1) << b % w, _w)
    tested(f"s_bfe_u{_w}", lambda a, b, w=_w: a >> b % w & ((1 << (b >> 16 & 127)) - 1), _w)

    def _bfe_signed(a: int, b: int, w: int = _w) -> int:
        width = b >> 16 & 127
        field = signed(a, w) >> b % w
        return 0 if width == 0 else signed(field, width) if width < w else field

    tested(f"s_bfe_i{_w}", _bfe_signed, _w)


def _sign_run(a: int, width: int) -> int:
    text = f"{a:0{width}b}"
    at = text.find("1" if text[0] == "0" else "0")
    return at if at > 0 else -1


plain("s_flbit_i32 s_cls_i32", lambda a: _sign_run(a, 32))
plain("s_flbit_i32_i64 s_cls_i32_i64", lambda a: _sign_run(a, 64))
bits("s_wqm", lambda b: [int(any(b[k // 4 * 4:][:4])) for k in range(len(b))])
bits("s_quadmask", lambda b: [int(any(b[k:k + 4])) for k in range(0, len(b), 4)])
plain("s_bitreplicate_b64_b32", lambda a: sum((a >> k & 1) * 3 << 2 * k for k in range(32)), 64)
plain("s_sext_i32_i8", lambda a: signed(a, 8))
plain("s_sext_i32_i16", lambda a: signed(a, 16))
tested("s_abs_i32", lambda a: abs(signed(a)))
tested("s_absdiff_i32", lambda a, b: abs(signed(signed(a) - signed(b))))


def carried(name: str, function: Callable[[int, int, int], int]) -> None:
    ROWS[name] = lambda s, scc, d: (
        function(s[0], s[1], scc) & ONES[32], int(not 0 <= function(s[0], s[1], scc) < 1 << 32))


carried("s_add_u32", lambda a, b, c: a + b)
carried("s_sub_u32", lambda a, b, c: a - b)
carried("s_addc_u32", lambda a, b, c: a + b + c)
carried("s_subb_u32", lambda a, b, c: a - b - c)
for _k in range(1, 5):
    carried(f"s_lshl{_k}_add_u32", lambda a, b, c, k=_k: (a << k) + b)


def overflowing(name: str, function: Callable[[int, int], int]) -> None:
    def row(s: list[int], scc: int, d: int) -> tuple[int, int]:
        x = function(signed(s[0]), signed(s[1]))
        return x & ONES[32], int(not -(1 << 31) <= x < 1 << 31)

    ROWS[name] = row


overflowing("s_add_i32", lambda a, b: a + b)
overflowing("s_sub_i32", lambda a, b: a - b)
for _t in ("u32", "i32"):
    def _num(x: int, t: str = _t) -> int:
        return signed(x) if t == "i32" else x

    ROWS[f"s_min_{_t}"] = lambda s, scc, d, n=_num: (
        min(s, key=n), int(n(s[0]) < n(s[1])))
    ROWS[f"s_max_{_t}"] = lambda s, scc, d, n=_num: (
        max(s, key=n), int(n(s[0]) >= n(s[1])))
    for _c in ("eq", "lg", "gt", "ge", "lt", "le"):
        _test = others.CONDITIONS[_c][0]
        ROWS[f"s_cmp_{_c}_{_t}"] = lambda s, scc, d, n=_num, f=_test: (
            None, int(f(n(s[0]), n(s[1]))))
        _k16 = (lambda k: signed(k, 16)) if _t == "i32" else (lambda k: k)
        ROWS[f"s_cmpk_{_c}_{_t}"] = lambda s, scc, d, n=_num, f=_test, k=_k16: (
            None, int(f(n(s[0]), k(s[1]))))
for _c in ("eq", "lg"):
    ROWS[f"s_cmp_{_c}_u64"] = lambda s, scc, d, f=others.CONDITIONS[_c][0]: (None, int(f(*s)))
plain("s_mul_i32", lambda a, b: a * b)
plain("s_mul_hi_u32", lambda a, b: a * b >> 32)
plain("s_mul_hi_i32", lambda a, b: signed(a) * signed(b) >> 32)
plain("s_pack_ll_b32_b16", lambda a, b: a & 0xFFFF | b << 16)
plain("s_pack_lh_b32_b16", lambda a, b: a & 0xFFFF | b >> 16 << 16)
plain("s_pack_hl_b32_b16", lambda a, b: a >> 16 | b << 16)
plain("s_pack_hh_b32_b16", lambda a, b: a >> 16 | b >> 16 << 16)

# SOPK: the constant is the last source.
plain("s_movk_i32", lambda k: signed(k, 16))
ROWS["s_cmovk_i32"] = lambda s, scc, d: (signed(s[0], 16) & ONES[32] if scc else None, None)
ROWS["s_mulk_i32"] = lambda s, scc, d: (d * signed(s[0], 16) & ONES[32], None)


def _addk(s: list[int], scc: int, d: int) -> tuple[int, int]:
    x = signed(d) + signed(s[0], 16)
    return x & ONES[32], int(not -(1 << 31) <= x < 1 << 31)


ROWS["s_addk_i32"] = _addk

# Floats of RDNA3.5: the vector twin in the default mode; a 16-bit result clears the high half.
MODE = Mode(gfx11=True)


def twin(name: str, other: str) -> None:
    row = floats.ROWS[other]
    kept = name.startswith("s_fmac")
    ROWS[name] = lambda s, scc, d: (row(MODE, *s, *([d] if kept else [])), None)


for _t in ("f16", "f32"):
    for _n in ("ceil", "floor", "trunc", "rndne", "add", "sub", "mul", "min", "max", "fmac"):
        twin(f"s_{_n}_{_t}", f"v_{_n}_{_t}" if _n != "fmac" else f"v_fma_{_t}")
    for _c in ("lt", "eq", "le", "gt", "lg", "ge", "o", "u", "nge", "nlg", "ngt", "nle", "neq",
               "nlt"):
        ROWS[f"s_cmp_{_c}_{_t}"] = lambda s, scc, d, f=others.COMPARES[f"{_c}_{_t}"]: (
            None, f(MODE, *s))
for _n in ("fmaak_f32", "fmamk_f32", "cvt_f32_i32", "cvt_f32_u32", "cvt_i32_f32", "cvt_u32_f32",
           "cvt_f16_f32", "cvt_f32_f16", "cvt_pk_rtz_f16_f32"):
    twin(f"s_{_n}", f"v_{_n}")
ROWS["s_cvt_hi_f32_f16"] = lambda s, scc, d: (sf.convert(s[0] >> 16, "f16", "f32", MODE), None)
