"""dst[r, i] = alpha * src[r, i]; total[r] is the sum of a row.  Never computed: a
small catalog for the tests of the catalog."""

from netra_catalog.op import Op, ScalarArg, TensorArg

OP = Op(
    name="toy.scale",
    args=(
        TensorArg("src", ("f32", "bf16"), ("rows", "n"), "in"),
        TensorArg("dst", ("f32",), ("rows", "n"), "out"),
        TensorArg("total", ("f32",), ("rows", "ceildiv(n, 256)"), "out"),
        ScalarArg("alpha", "f32"),
        ScalarArg("flags", "u32", default=5),
    ),
    phases=("decode", "prefill"),
    nan="passes through",
    ties="none",
    padding="none",
    sentinels="none",
    empty="not admitted",
    doc="a toy",
)
