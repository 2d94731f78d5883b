"""The programs of the schedules: what a run's code does, the same on every attempt unless the schedule says otherwise."""

from . import branches, changes, edits, graphs, orders, retries, turns

__all__ = ["branches", "changes", "edits", "graphs", "orders", "retries", "turns"]
