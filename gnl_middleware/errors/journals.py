"""Errors of the journal itself."""

from .base import GnlError


class JournalError(GnlError):
    """The journal itself is the problem."""


class JournalUnavailableError(JournalError):
    """The journal cannot be read or written now; what needed it has not run.

    Attributes:
        url: The journal, without its password.
        cause_text: What the database said.
    """

    def __init__(
        self, *, url: str, cause_text: str, remedy: str = "Free or repair the database, then run again."
    ) -> None:
        self.url, self.cause_text = url, cause_text
        super().__init__(
            f"The journal {url} cannot be used: {cause_text}. A call that cannot be recorded is not run (a recorded outcome is "
            f"never run again either), so this attempt stops. {remedy}"
        )


class JournalCorruptError(JournalError):
    """A row of the journal is not what was written.

    Attributes:
        where: The row: run and step, or the table.
        problem: What is wrong with it.
    """

    def __init__(self, *, problem: str, where: str = "value") -> None:
        self.where, self.problem = where, problem
        super().__init__(
            f"The journal is damaged at {where}: {problem}. It is not guessed at, since a wrong record could repeat an effect. "
            f"Restore the file from a backup, or start a new run id."
        )

    def at(self, where: str) -> "JournalCorruptError":
        """The same of a known place."""
        return JournalCorruptError(problem=self.problem, where=where)


class UnreadableTypeError(JournalCorruptError):
    """A value is of a class that this program does not have, or that no longer takes what was recorded.

    Attributes:
        where: The row: run and step.
        type_name: The class, as the journal names it.
        problem: Why no value of it can be made.
    """

    def __init__(self, *, type_name: str, problem: str, where: str = "value") -> None:
        super().__init__(problem=problem, where=where)
        self.type_name = type_name
        message = (
            f"The journal holds a value of {type_name} at {where} that this program cannot make: {problem}. It is not replaced by plain "
            f"data, since the program would go on with something else than it recorded. Bring the class back as it was and "
            f"declare it (def step(...) -> {type_name}) or register it (gnl_middleware.register({type_name})), or start a new "
            f"run id."
        )
        self.args = (message,)

    def at(self, where: str) -> "UnreadableTypeError":
        """The same of a known place."""
        return UnreadableTypeError(type_name=self.type_name, problem=self.problem, where=where)


class JournalKeyError(JournalError):
    """A row of the journal cannot be read or believed with the keys that the journal was opened with.

    Attributes:
        where: The row: run and step, or what was about to be written.
        key_id: The key that it names, or empty.
        problem: Why the keys do not fit.
    """

    def __init__(self, *, where: str, key_id: str, problem: str) -> None:
        self.where, self.key_id, self.problem = where, key_id, problem
        super().__init__(
            f"The keys do not fit the journal at {where}: {problem}. It is neither read nor run over, since a record that cannot "
            f"be trusted could repeat an effect. Open it with the keys that wrote it: Journal(..., integrity_key=..., "
            f"encryption=Encryption(current=..., key=...)); for gnl, name a function that does so in GNL_OPEN_WITH."
        )


class JournalVersionError(JournalError):
    """The journal was written by a newer version of the library.

    Attributes:
        url: The journal.
        found: Its schema version.
        supported: The newest schema version that this library reads.
    """

    def __init__(self, *, url: str, found: int, supported: int) -> None:
        self.url, self.found, self.supported = url, found, supported
        super().__init__(
            f"The journal {url} has schema version {found}; this version of gnl-middleware reads up to {supported}. Reading it "
            f"could misunderstand its records. Upgrade: pip install --upgrade gnl-middleware."
        )
