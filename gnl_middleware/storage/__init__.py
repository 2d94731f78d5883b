"""Where runs are kept: one synchronous implementation, one writer thread per journal."""
