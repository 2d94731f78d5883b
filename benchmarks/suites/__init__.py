"""What is measured, one question per module."""
