"""A registry: the named choices of one kind, from which menus, help and checks are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar

from reconpriv.errors import PolicyError, ReconprivError


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """What users write to choose it."""
        ...


Member = TypeVar("Member", bound=Named)


class Registry(dict[str, Member]):
    """Members by name, in the order in which they were registered.

    ``former`` maps names of earlier versions to the hint that says what to use instead.
    """

    def __init__(
        self,
        what: str,
        members: Iterable[Member],
        error: type[ReconprivError] = PolicyError,
        former: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._what, self._error, self._former = what, error, former or {}
        for member in members:
            self.register(member)

    def register(self, member: Member) -> Member:
        """Add a member; its name must be free."""
        if member.name in self:
            raise ValueError(f"There is already a {self._what} called {member.name!r}.")
        self[member.name] = member
        return member

    @contextmanager
    def including(self, member: Member) -> Iterator[Member]:
        """Register a member for a while: for tests and for trying things out."""
        try:
            yield self.register(member)
        finally:
            self.pop(member.name, None)

    def find(self, name: str) -> Member:
        """The member of this name, or an error that lists them all."""
        if not isinstance(name, str) or name not in self:
            hint = f"Choose one of: {', '.join(self)}."
            if isinstance(name, str) and name in self._former:
                hint = self._former[name]
            raise self._error(f"There is no {self._what} called {name!r}.", hint=hint)
        return self[name]
