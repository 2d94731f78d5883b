"""The errors of the toolkit."""

from gnl_middleware.errors import GnlError


class CrashToolkitError(GnlError):
    """A check with crashes could not be made, so it says nothing about the agent.

    Attributes:
        problem: What stood in the way.
        remedy: What to do about it.
        details: What a process said, such as a traceback.
    """

    def __init__(self, *, problem: str, remedy: str, details: str = "") -> None:
        self.problem, self.remedy, self.details = problem, remedy, details
        told = f"\n{details.strip()}" if details.strip() else ""
        super().__init__(
            f"{problem}. A check that cannot fail proves nothing, so it stops here. {remedy}{told}"
        )
