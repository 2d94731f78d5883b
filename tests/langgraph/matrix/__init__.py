"""Graphs of every kind and shape, for the crash matrix."""
