"""Times, sizes and savings as people read them."""

from datetime import UTC, datetime

from gnl_middleware.records import Attempt


def moment(seconds: float | None) -> str:
    """A time in UTC, to the second.

    Example:
        >>> moment(0)
        '1970-01-01 00:00:00Z'
    """
    if seconds is None:
        return "unknown"
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}Z"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s"  # a clock was that far off


def duration(seconds: float) -> str:
    """A length of time in two figures that matter.

    Example:
        >>> [duration(0.0123), duration(3.44), duration(125)]
        ['12 ms', '3.4 s', '2 min 5 s']
    """
    if seconds < 1:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 60:  # noqa: PLR2004 - seconds in a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def size(count: int) -> str:
    """A number of bytes in the unit that fits.

    Example:
        >>> [size(999), size(20_480), size(5_300_000)]
        ['999 B', '20 kB', '5.3 MB']
    """
    if count < 1000:  # noqa: PLR2004 - bytes in a kilobyte
        return f"{count} B"
    unit, bytes_in = ("kB", 1e3) if count < 1e6 else ("MB", 1e6) if count < 1e9 else ("GB", 1e9)  # noqa: PLR2004
    return f"{count / bytes_in:.{0 if count >= 10 * bytes_in else 1}f} {unit}"


def spared(attempt: Attempt) -> str:
    """What an attempt did not spend again.

    Example:
        >>> spared(Attempt(2, "pid 1", 0, 9, "completed", None, 1, 3, 1240, 3.7))
        '3 steps: 3.7 s and 1,240 tokens not spent again'
    """
    steps = f"{attempt.steps_read_back} step" + ("" if attempt.steps_read_back == 1 else "s")
    tokens = f" and {attempt.tokens_not_spent:,} tokens" if attempt.tokens_not_spent else ""
    return f"{steps}: {duration(attempt.seconds_not_spent or 0)}{tokens} not spent again"
