"""Mutants of kernels: small faults put into a `.s`, each of which a check must notice.

source.py      the instructions of a .s, by line
operators.py   which faults there are, and what each makes of an instruction
decoded.py     the assembled kernel as LLVM prints it: lines, registers, branches
waits.py       proof that a wait can go: no path reaches an unfinished load
campaign.py    assembles every mutant, runs it, counts
"""
