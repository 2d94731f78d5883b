"""Run a program of the faults on a small disk, and check it there: python -m tests.storage.on_a_small_disk PROGRAM PATH."""

import json
import sys
from typing import Any

from tests.storage import faults, test_faults


class Heard:
    """Keeps what a program says."""

    def __init__(self) -> None:
        self.words: list[Any] = []

    def say(self, word: Any) -> None:
        """Keep and show a word."""
        text = json.dumps(word)
        self.words.append(json.loads(text))
        sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    name, path = sys.argv[1:]
    heard = Heard()
    getattr(faults, name)(heard, path, "disk")
    check = test_faults.check_intents if name == "no_space_for_an_intent" else test_faults.check_outcomes
    check(heard.words)
    print("held")  # noqa: T201 - read by the test
    sys.stdout.write("held\n")
