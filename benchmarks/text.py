"""Text that tools return and models say: the same on every machine, and about as compressible as prose."""

import functools
import random

_WORDS = 6000
_SYLLABLES = (
    "ba",
    "cen",
    "da",
    "er",
    "fo",
    "ga",
    "hi",
    "in",
    "ka",
    "li",
    "mo",
    "no",
    "que",
    "ra",
    "se",
    "ti",
    "un",
    "va",
    "we",
    "ze",
)


@functools.cache
def _pool() -> str:
    """Half a megabyte of words, frequent and rare ones as in prose, each different from the other."""
    random_ = random.Random(1)
    words = ["".join(random_.choices(_SYLLABLES, k=random_.randint(1, 4))) for _ in range(_WORDS)]
    weights = [1 / rank for rank in range(1, _WORDS + 1)]
    return " ".join(random_.choices(words, weights, k=80_000))


def payload(number: int, size: int) -> str:
    """A text of this many bytes, another one for each number; taking it costs next to nothing."""
    pool, start = _pool(), f"{number}: "
    offset = number * 7919 % (len(pool) - size)
    return (start + pool[offset : offset + size])[:size]
