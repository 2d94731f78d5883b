"""`python -m gnl_middleware.cli` is `gnl`."""

from . import main

main()
