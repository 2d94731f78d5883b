"""What tests of effects that happen once share. Imports nothing heavy."""

PATIENCE = 20
"""Seconds after which something that hangs fails its test."""


def per_order(arguments):
    """What makes two calls the same refund."""
    return arguments["order"]
