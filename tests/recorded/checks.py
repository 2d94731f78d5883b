"""What must be true of a sweep, whatever framework played the recording."""


def check_ends_as_recorded(swept):
    """Each killed run really died, was finished by one other worker, and left the world as the recording has it."""
    clean, killed = swept["clean"], swept["killed"]
    for run in [clean, *killed]:
        assert (run.get("error"), run["differs"]) == (None, {}), run
    assert clean["answers"] == list(range(clean["recorded_answers"]))
    for run in killed:
        assert run["died"], run
        assert run["workers"] == (2 if run["died"] != "raced" else 1), run
        assert set(run["executed"].values()) <= {1}, run
        assert run["answers_given_otherwise"] == [], run
        assert run["requests_differ"] == [], run
        assert run["events"] == clean["events"], run
