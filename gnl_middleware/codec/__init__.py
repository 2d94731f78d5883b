"""Values to bytes and back, without loss or not at all.

The bytes are strict JSON. What JSON cannot hold stands in it as a tagged object, ``{"$gnl": tag, "value": payload}``:
tuples, sets, bytes, ``nan``, integers over 64 bits, dates, dictionaries whose keys are no plain strings, and so on.
A dictionary of the user's that happens to hold the key ``"$gnl"`` is written as a list of pairs, so no data can pass
for a tag. Reading looks tags up in a table of this process; it never imports or builds anything that the data names.

A value's type must be exactly a supported or registered one. A subclass (an enum member, a named tuple, a
``defaultdict``) would come back as its base, so it is refused with its path instead. What is referred to twice is
written twice.
"""

from .declared import classes_in, declared, hints_of, register
from .encoding import canonical, content_hash, decode, digest, encode, outline
from .redaction import redacted
from .shapes import built
from .tree import MAX_DEPTH

__all__ = [
    "MAX_DEPTH",
    "built",
    "canonical",
    "classes_in",
    "content_hash",
    "declared",
    "decode",
    "digest",
    "encode",
    "hints_of",
    "outline",
    "redacted",
    "register",
]
