"""Look at a database: which version of a journal it holds, and whether it is fit to hold one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy.exc

from . import operations
from .address import Address
from .database import link_to
from .link import Link
from .migrate import found_version

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Health:
    """What was found in a journal's database.

    Attributes:
        syncing: The settings on which it depends whether an acknowledged write survives a crash.
        seconds_apart: How far the clocks of this machine, of the server and of the latest run are apart.
        counts: How many ``runs``, ``steps`` and ``payloads`` there are, and their ``bytes``.
        largest: The largest payloads: ``run_id``, ``number``, ``name``, ``what`` and ``bytes``.
    """

    syncing: Mapping[str, str]
    seconds_apart: float
    counts: Mapping[str, int]
    largest: Sequence[Mapping[str, Any]]


def version_at(address: Address) -> int | None:
    """The schema version of the journal there; None where there is none. Creates and upgrades nothing.

    Raises:
        JournalError: It cannot be reached, or is another program's.
    """

    def look(link: Link) -> int | None:
        with link.engine.connect() as connection:
            return found_version(connection, address.shown, address.schema)

    return _looked(address, look)


def health_of(address: Address, now: float, limit: int = 5) -> Health:
    """How the journal there is, at this time in seconds since the epoch; brings its tables up to date.

    Raises:
        JournalError: It cannot be reached, or read.
    """

    def look(link: Link) -> Health:
        with link.connect() as connection:
            there = operations.time_of(connection, now)
            return Health(
                syncing=operations.syncing(connection),
                seconds_apart=max(abs(there - now), operations.newest(connection) - there),
                counts=operations.counts(connection),
                largest=operations.largest(connection, limit),
            )

    return _looked(address, look)


def _looked(address: Address, look: Callable[[Link], _T]) -> _T:
    link = link_to(address)
    try:
        return look(link)
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise link.describe(error) from error
    finally:
        link.engine.dispose()
