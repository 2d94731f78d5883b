"""What journalling costs: measured beside floors written by hand and beside what a user would pick instead.

    python -m benchmarks             # everything, about ten minutes
    python -m benchmarks --quick     # a look, under a minute

Everything is a ratio within one run on one machine; see ``benchmarks/README.md``.
"""
