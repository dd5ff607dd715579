"""Campaigns: thousands of programs on the simulator, each of which knows its own right answer.

    ctorture    GCC's self-checking C programs
    csmith      random C programs, compared with the host
    vectors     recorded instruction programs, compared with what was recorded

`make NAME N=... SEED=...` runs one; tools/campaign.py is the command behind it.
"""
