"""Plain functions as the steps of a program, and what they did in the world."""

from dataclasses import dataclass, field

from gnl_middleware import current_step, journaled


class Killed(BaseException):
    """The worker ends here."""


@dataclass
class World:
    """What happened, and what is to go wrong.

    Attributes:
        ran: The steps that ran, in order.
        keys: The idempotency key that each of them was given.
        raises: What a step raises instead of returning.
    """

    ran: list = field(default_factory=list)
    keys: dict = field(default_factory=dict)
    raises: dict = field(default_factory=dict)

    def act(self, name, policy, *arguments, value=None):
        """Call a step of this name."""

        def body(*given):
            self.ran.append(name)
            self.keys[name] = current_step().idempotency_key
            if name in self.raises:
                raise self.raises[name]
            return f"{name} done" if value is None else value

        return journaled(body, replay=policy, name=name)(*arguments)

    def inside(self, name, policy, body):
        """Call a step inside of which others happen."""
        self.ran.append(name)
        return journaled(body, replay=policy, name=name)()
