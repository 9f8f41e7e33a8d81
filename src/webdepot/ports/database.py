"""What `Database` needs of a kind of database."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from webdepot.errors import WebdepotError

if TYPE_CHECKING:
    import sqlalchemy


class DatabaseDialect(Protocol):
    """What `Database` needs from a kind of database besides SQL: one writer at a time, detection of commits,
    messages for errors. Any thread may call it.
    """

    @property
    def engine(self) -> "sqlalchemy.Engine":
        """Opens connections."""

    @property
    def reading_options(self) -> Mapping[str, Any]:
        """Execution options of a connection that only reads, from one snapshot."""

    def begin_writing(self, connection: "sqlalchemy.Connection") -> None:
        """Wait until no other transaction writes, in any process of any machine. Called first in each
        writing transaction. If another one takes too long, raises an error that `explain` knows.
        """

    def end_writing(self, connection: "sqlalchemy.Connection") -> None:
        """Called last in each writing transaction, before it is committed."""

    def written(self) -> None:
        """Called after a commit of this process; from now on `state` returns another value."""

    def state(self) -> object | None:
        """A value that every commit of any process changes; None if that is not known."""

    def limited(self, connection: "sqlalchemy.Connection") -> AbstractContextManager[None]:
        """A block that ends queries when the budget of the request (`query_budget`) is spent."""

    def one_upgrade(self) -> AbstractContextManager[None]:
        """A block that only one process on all machines runs at a time."""

    def restart_ids(self, connection: "sqlalchemy.Connection") -> None:
        """Give new rows ids above the existing ones."""

    def explain(self, error: "sqlalchemy.exc.DBAPIError") -> WebdepotError | None:
        """Our error if the disk, the server or the budget is the reason; None for a program error."""

    def close(self) -> None:
        """Close all connections."""
