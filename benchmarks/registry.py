"""All that is measured, and what cannot be measured here."""

import importlib
import importlib.util
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from .core import CoreOnPostgres, CoreOnSqlite
from .floors import PostgresFloor, SqliteFloor
from .langchain_agents import HandedOver
from .langchain_agents import subjects as langchain_subjects
from .measure import do
from .openai_agents import SdkHandedOver, SdkJournaled, SdkUndurable
from .subject import Place, Subject

FLOORS = {"sqlite": SqliteFloor.name, "postgres": PostgresFloor.name}
"""What a subject on each database is compared with."""
ROWS = "by hand, the rows of gnl, SQLite"
"""What loading a run is compared with besides: reading and decoding the journal's own rows, without checking any of them."""


class Registry:
    """The subjects of a campaign.

    Args:
        place: Where they put their databases; without a server there, subjects on PostgreSQL are left out.
        why_no_server: Why there is none.
        ways_of_dbos: How many of the ways of DBOS are measured.
    """

    def __init__(self, place: Place, *, why_no_server: str = "", ways_of_dbos: int = 3) -> None:
        self.place, self._ways_of_dbos = place, ways_of_dbos
        self.missing: dict[str, str] = {}
        if place.postgres is None:
            self.missing["PostgreSQL"] = why_no_server
        self._workflows = self._workflows_of_dbos()

    def _workflows_of_dbos(self) -> Callable[..., Subject] | None:
        try:
            return importlib.import_module("benchmarks.dbos_workflows").DbosWorkflows
        except ModuleNotFoundError as error:
            self.missing["DBOS"] = f"{error}: install the dependency group benchmarks"
            return None

    def floors_and_core(self) -> list[Subject]:
        """The floors, and this library without a framework."""
        return self._here([SqliteFloor(), PostgresFloor(), CoreOnSqlite(), CoreOnPostgres()])

    def workflows(self) -> list[Any]:
        """DBOS, in its ways."""
        if self._workflows is None:
            return []
        made = [self._workflows("sqlite"), self._workflows("sqlite", wal=True), self._workflows("postgres")]
        return self._here(made[: self._ways_of_dbos])

    def agents(self, framework: str) -> list[Subject]:
        """An agent of ``create_agent`` or ``LangGraph`` in all the ways."""
        return self._here(langchain_subjects(framework))

    def sdk(self) -> list[Subject]:
        """An agent of the Agents SDK in all the ways."""
        return self._here([SdkUndurable(), SdkJournaled("sqlite"), SdkJournaled("postgres")])

    def handed_over(self, framework: str) -> list[Subject]:
        """An agent of ``create_agent`` or the SDK whose recorded runs are handed over, if this version can do so."""
        made, module = {
            "create_agent": (HandedOver("create_agent", "sqlite"), "gnl_langchain.handover"),
            "SDK": (SdkHandedOver("sqlite"), "gnl_openai_agents.handover"),
        }[framework]
        return [made] if importlib.util.find_spec(module) else []

    def _here(self, subjects: Iterable[Subject]) -> list[Any]:
        return [each for each in subjects if self.place.postgres or each.database != "postgres"]

    @contextmanager
    def prepared(self, subjects: Sequence[Subject]) -> Generator[None]:
        """Prepare these subjects and let each do a step; close them afterwards."""
        with ExitStack() as stack:
            stack.callback(self.place.clear)
            for subject in subjects:
                subject.prepare(self.place)
                stack.callback(subject.close)
                # Tables are made, and code is loaded, at nobody's expense.
                do(subject, ["warm-up"], 1, 100)
            yield
