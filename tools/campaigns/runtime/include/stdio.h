/* Nothing: a kernel prints nothing. */
