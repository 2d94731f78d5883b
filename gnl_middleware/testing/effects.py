"""Count what tools did to the world: outside the worker, since a worker that dies forgets what it knew."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gnl_middleware.adapter import current_session


@dataclass(frozen=True, slots=True)
class EffectLog:
    """What the doubles of tools did, in a file that outlives their worker; call it with a run id to count.

    A double that is given an idempotency key behaves as a service that knows it: the same key counts once.

    Attributes:
        path: The file; it need not exist.

    Example:
        >>> log = EffectLog(tmp_path / "effects.jsonl")     # doctest: +SKIP
        >>> def send_email(to: str) -> str:     # doctest: +SKIP
        ...     log.note("send_email")
        ...     return "sent"
        >>> crash_matrix(build, run, effects=log).assert_safe()     # doctest: +SKIP
    """

    path: str | os.PathLike[str]

    def note(self, tool: str, *, key: str | None = None) -> None:
        """Note that the effect of a tool happens now, in the run that is open here (or in none).

        Args:
            tool: The tool's name.
            key: The idempotency key that the service is given: ``current_step().idempotency_key``.

        Example:
            >>> effect_log.note("send_email")     # doctest: +SKIP
        """
        session = current_session()
        run_id = None if session is None else session.run_id
        line = json.dumps({"run_id": run_id, "tool": tool, "key": key}) + "\n"
        # One write of a file opened for appending: lines of parallel calls do not mix.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def has(self, tool: str, *, key: str) -> bool:
        """Whether the service has seen this idempotency key; for the double of a ``recover`` hook.

        Example:
            >>> effect_log.has("send_email", key=call.idempotency_key)     # doctest: +SKIP
            True
        """
        return any(line["tool"] == tool and line["key"] == key for line in self._lines())

    def __call__(self, run_id: str) -> Mapping[str, int]:
        """How often the effect of each tool happened in a run."""
        counts, seen = Counter[str](), set[tuple[str, str]]()
        for line in self._lines():
            tool, key = str(line["tool"]), line["key"]
            if line["run_id"] != run_id or (key is not None and (tool, key) in seen):
                continue
            if key is not None:
                seen.add((tool, key))
            counts[tool] += 1
        return dict(counts)

    def _lines(self) -> list[dict[str, str | None]]:
        path = Path(self.path)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]
