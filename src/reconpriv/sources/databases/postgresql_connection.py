"""A connection to PostgreSQL through ADBC: interruptible waits, and errors that reveal nothing.

What libpq and the server say may hold a host, a user or the whole URL, so none of it is passed on.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from reconpriv.errors import InputError, OutputError, ReconprivError
from reconpriv.extras import needs
from reconpriv.messages.remedies import REPLACE, Control, Remedy, either
from reconpriv.sources.databases.troubles import meaning

T = TypeVar("T")

_PATIENCE = 5.0  # seconds that a server has to end a query
_TURN = 0.1
_REFUSED = (
    (("URI", "connection info string", "invalid port", "invalid integer", "connection option"),
     "The URL of the database is malformed.",
     "Write postgresql://user@host:5432/database, and escape special characters (%40 for @)."),
    ((' value: "',),
     "An option of the database's URL has a value that PostgreSQL does not know.",
     "Check what follows the question mark, and PGSSLMODE."),
    (("password authentication", "no password supplied", "SASL", "SCRAM"),
     "The PostgreSQL server did not accept the user and password.",
     "Passwords are looked for in the URL, PGPASSWORD and ~/.pgpass."),
    (("pg_hba.conf", "authentication failed", "role "),
     "The PostgreSQL server does not let this user in from here.",
     "Check the user, and ask its administrator."),
    (("database ",), "The PostgreSQL server has no such database.",
     "Check the name at the end of the URL."),
    (("refused", "translate host", "timeout", "timed out", "No route", "unreachable", "No such",
      "server closed"),
     "The PostgreSQL server cannot be reached.",
     "Check the host and the port, and whether the server is running."),
    (("too many", "remaining connection slots", "starting up", "shutting down", "recovery"),
     "The PostgreSQL server accepts no more connections for now.", "Try again later."),
    (("SSL", "certificate"), "No secure connection to the PostgreSQL server could be made.",
     "Check sslmode and the certificates."),
    (("service",), "The service of the connection is not defined.",
     "Check PGSERVICE and ~/.pg_service.conf."),
)  # fmt: skip
_STATES: dict[str, tuple[str, str | Remedy]] = {
    "42501": ("The database does not permit it.", "Ask for the right to read the table's columns"
              " and to use its schema."),
    "3F000": ("The database has no such schema.", "Check the part before the dot."),
    "42P07": ("The table exists already.", REPLACE),
    "25006": ("The database is read-only.", Remedy("write to another one", Control.DATABASE)),
    "2BP01": ("Something else in the database depends on the table.",
              "Remove that first (a view, for example), or choose another name."),
    "57014": ("The server ended the query before it was done.",
              "It may have a time limit (statement_timeout), or somebody cancelled it."),
    "40001": ("The server ended the query to resolve a conflict.", "Try again."),
    "22021": ("The table holds text that is not UTF-8.", "Correct it, or leave the column out."),
}  # fmt: skip
_STATES_OF_WRITING: dict[str, tuple[str, str | Remedy]] = {
    "42501": ("The database does not permit it.",
              "Ask for the right to replace the tables, or choose another name."),
    "22021": ("The release holds text with a null character, which PostgreSQL cannot store.",
              either(Remedy("correct it", Control.SQL), "leave the column out")),
    "22P05": ("The release holds characters that the encoding of the database lacks.",
              "Load it into a database of encoding UTF8."),
}  # fmt: skip
_ROW_POLICY = (
    "A row policy hides some records from this user.",
    "Read the table as a user with BYPASSRLS, or copy the rows you can see into a separate table.",
)


class Connection:
    """One transaction with one PostgreSQL server."""

    def __init__(self, url: str, what: type[ReconprivError] = InputError) -> None:
        """Connect; ``what`` is the error that is raised if something goes wrong."""
        with needs("databases", "PostgreSQL needs adbc-driver-postgresql, which is not installed."):
            import adbc_driver_postgresql.dbapi  # noqa: PLC0415 - an extra
        self._what = what
        self._stopped = threading.Event()
        self._busy = False
        self._cursor: Any = None
        self._connection: Any = None
        connect = adbc_driver_postgresql.dbapi.connect
        # Raised below, not in the handler: the driver's error, which may quote the URL, must not
        # even be the context of ours.
        refused = None
        try:
            self._connection = self.wait(lambda: connect(url, autocommit=False))
            self._cursor = self._connection.cursor()
        except Exception as error:
            refused = str(error)
        if refused is not None:
            raise _refused(refused, what)
        try:
            # In the server's own encoding a text need not be UTF-8.
            self.run("SET client_encoding = 'UTF8'")
            self.run("SET TimeZone = 'UTC'")
        except BaseException:
            self.close()
            raise

    def wait(self, work: Callable[[], T]) -> T:
        """Do something in a thread, so a signal does not have to wait for the server."""
        # Not Thread.join: if interrupted, it takes a running thread for ended (Python 3.11).
        future: Future[T] = Future()

        def attempt() -> None:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        self._busy = True  # a connection still in use must not be closed
        try:
            threading.Thread(target=attempt, daemon=True).start()
            self._attend(future)
        except BaseException:
            self._stopped.set()
            self._attend(future, _PATIENCE)
            raise
        finally:
            self._busy = not future.done()
        if self._stopped.is_set():
            raise KeyboardInterrupt
        return future.result()

    def _attend(self, future: Future[Any], seconds: float = math.inf) -> None:
        """Wait for a thread, and have the server end its query when asked to."""
        until = time.monotonic() + seconds
        # In short turns: a library may have set a handler after which a plain wait goes on. And one
        # cancel is not enough: it is lost if it comes between two statements.
        while not wait([future], _TURN).done and time.monotonic() < until:
            if self._stopped.is_set() and self._cursor is not None:
                with suppress(Exception):
                    self._cursor.adbc_cancel()

    def interrupt(self) -> None:
        """Have the server end what it is doing for us; whoever waits for it is interrupted."""
        self._stopped.set()

    def run(self, statement: str, parameters: tuple[Any, ...] | None = None) -> None:
        """Run a statement that returns nothing."""
        with self._clear():
            self.wait(lambda: self._cursor.execute(statement, parameters))

    def ask(self, query: str, parameters: tuple[Any, ...] | None = None) -> list[tuple[Any, ...]]:
        """A few rows."""
        with self._clear():
            self.wait(lambda: self._cursor.execute(query, parameters))
            rows: list[tuple[Any, ...]] = self.wait(self._cursor.fetchall)
        return rows

    def stream(self, query: str) -> Iterator[Any]:
        """The record batches of a query as they come."""
        with self._clear():
            self.wait(lambda: self._cursor.execute(query))
            reader = self._reader()
            while (batch := self.wait(lambda: next(reader, None))) is not None:
                yield batch

    def _reader(self) -> Any:
        """The driver's own reader, whose errors have codes; otherwise the plain one."""
        results: Any = getattr(self._cursor, "_results", None)
        return results.reader if hasattr(results, "reader") else self._cursor.fetch_record_batch()

    def ingest(self, table: str, schema: str | None, batches: Any) -> None:
        """Make a table of record batches (COPY)."""
        with self._clear():
            self.wait(
                lambda: self._cursor.adbc_ingest(
                    table, batches, mode="create", db_schema_name=schema
                )
            )

    def commit(self) -> None:
        """Make everything visible at once."""
        with self._clear():
            self.wait(self._connection.commit)

    def close(self) -> None:
        """Close the connection; what was not committed is discarded."""
        connection, self._connection = self._connection, None
        if connection is None or self._busy:
            return
        for give_back in (self._cursor.close, connection.close):
            with suppress(Exception):
                give_back()

    @contextmanager
    def _clear(self) -> Iterator[None]:
        """Turn the driver's errors into a sentence of ours."""
        if self._connection is None:
            raise self._what("The table has been closed.", hint="Open it again.")
        try:
            yield
        except (ReconprivError, GeneratorExit, KeyboardInterrupt):
            raise
        except Exception as error:
            raise self._translated(error) from None

    def _translated(self, error: Exception) -> ReconprivError:
        state = getattr(error, "sqlstate", None)
        if not state and "canceling statement" in str(error):
            state = "57014"  # what comes out of an Arrow stream has no code, only words
        writes = self._what is OutputError
        said = (_STATES | _STATES_OF_WRITING if writes else _STATES).get(state or "")
        if state == "42501" and "row-level security" in str(error):
            said = _ROW_POLICY
        if said is not None:
            sentence, hint = said
            return self._what(sentence, hint=hint)
        if self._is_lost() if state is None else state.startswith(("08", "57P")):
            return self._what(
                "The connection to the PostgreSQL server was lost.",
                hint="Nothing was left behind; try again when the server is running.",
            )
        if state and state.startswith("53"):
            return self._what(
                "The PostgreSQL server has no memory, disk space or connections left.",
                hint="Ask its administrator.",
            )
        code = f" (SQLSTATE {state})" if state else ""
        return self._what(
            f"The PostgreSQL server could not do it{code}.",
            hint="A view may fail on some rows; its log says more."
            if not writes
            else "Its log says more.",
        )

    def _is_lost(self) -> bool:
        """True if the server no longer answers a query."""
        try:
            self.wait(self._connection.rollback)
            self.wait(lambda: self._cursor.execute("SELECT 1"))
        except Exception:
            return True
        return False


def _refused(message: str, what: type[ReconprivError]) -> ReconprivError:
    unknown = (
        "The PostgreSQL server did not let us in.",
        "Check host, port, database, user, password and the options of the URL.",
    )
    sentence, hint = meaning(message, _REFUSED, unknown)
    return what(sentence, hint=hint)
