"""The world outside of a run: what happened in it stays, whatever becomes of the process that did it."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from gnl_middleware import Done, InterruptedCall, NotDone, current_step

_EFFECTS = "effects.jsonl"
_ASKED = "asked.jsonl"


class World:
    """Effects and model calls, in files: counted the same by every process that looks.

    Nothing here protects itself: the same effect twice makes two lines.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def act(self, effect: str, result: str) -> str:
        """Let an effect happen, durably, under the idempotency key of the step that asked for it."""
        step = current_step()
        key = None if step is None else step.idempotency_key
        self._append(_EFFECTS, {"effect": effect, "key": key, "result": result})
        return result

    def recover(self, call: InterruptedCall) -> Done | NotDone:
        """The truth about an interrupted call: what its effect's record says, looked up by its key."""
        happened = [line for line in self._lines(_EFFECTS) if line["key"] == call.idempotency_key]
        return Done(happened[0]["result"]) if happened else NotDone()

    @property
    def effects(self) -> dict[str, int]:
        """How often each effect happened."""
        return dict(Counter(line["effect"] for line in self._lines(_EFFECTS)))

    def asked(self, model: str) -> int:
        """Note that a model is asked; gives how often any model was, so that replies can differ each time."""
        self._append(_ASKED, {"model": model})
        return self.model_calls

    @property
    def model_calls(self) -> int:
        """How often any model was asked."""
        return len(self._lines(_ASKED))

    def _append(self, name: str, line: dict[str, Any]) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _lines(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / name
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
