"""One module per op: what it is, what to try it with, and what must come out.

    OP                       arguments, and words for NaN, ties, padding, sentinels, empty calls
    VARIANTS                 the named ways in which implementations of the op differ
    cases(set, variant)      "quick", "full" or "mutation"
    inputs(case, rng)        every argument that is read, and every scalar
    outputs(case)            shape and dtype of every argument that is only written
    exact(variant, ...)      what should be: float64 or better
    deployed(variant, ...)   what the contract says, rounding by rounding

An oracle is written in another style than the kernels, from the mathematics, so that the same
mistake is not made twice.  Modules with an underscore are shared helpers.
"""
