"""What each encrypted cell belongs to: moved elsewhere, it cannot be read."""


def payload_bound(run_id: str, content_hash: str) -> tuple[str, ...]:
    """What an encrypted payload belongs to: moved elsewhere, it cannot be read."""
    return "payload", run_id, content_hash


def failure_bound(run_id: str, key: str, token: str) -> tuple[str, ...]:
    """What an encrypted error belongs to."""
    return "failure", run_id, key, token


def late_bound(run_id: str, key: str) -> tuple[str, ...]:
    """What encrypted late news belongs to."""
    return "late", run_id, key


def note_bound(audit_id: str) -> tuple[str, ...]:
    """What the encrypted note of a person's decision belongs to."""
    return "note", audit_id


def attempt_bound(run_id: str, attempt: int) -> tuple[str, ...]:
    """What the encrypted error of an attempt belongs to."""
    return "attempt", run_id, str(attempt)


def reason_bound(run_id: str, key: str) -> tuple[str, ...]:
    """What the encrypted reason of a block belongs to."""
    return "blocked", run_id, key
