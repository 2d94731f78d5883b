"""Fixtures of the schedules."""

from tests.schedules.fixtures import nursery, sweep, trial

__all__ = ["nursery", "sweep", "trial"]
