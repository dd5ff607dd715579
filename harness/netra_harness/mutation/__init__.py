"""Mutants of kernels: small faults put into a `.s`, each of which a check must notice.

source.py      the instructions of a .s, by line
operators.py   which faults there are, and what each makes of an instruction
assembly.py    from text to code object, and the line that each instruction came from
decoded.py     the assembled kernel as LLVM prints it: lines, registers, branches
waits.py       proof that a wait can go: no path reaches an unfinished load
symbolic.py    proof that two kernels do the same, on terms: terms.py, operands.py, state.py, and
               what instructions do: scalar_steps.py, vector_steps.py, memory_steps.py
equivalence.py why a mutant does the same as the kernel
trial.py       assembles one mutant and runs it, in a worker
campaign.py    every mutant of the selected kernels, counted
"""
