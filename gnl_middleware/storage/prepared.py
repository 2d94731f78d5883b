"""Statements that run for every step: compiled once, then handed to the driver itself.

SQLAlchemy spends several times what the database does on a statement of thirty columns: it looks up its text, sorts its
parameters and builds a result that nobody reads. Who listens to SQLAlchemy's events still hears of each of them.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, TypeVar, cast

import sqlalchemy as sa
import sqlalchemy.exc
from sqlalchemy.sql.compiler import SQLCompiler

_Row = Mapping[str, Any]
_Read = TypeVar("_Read")


class Prepared:
    """A statement whose text is made once per database.

    Args:
        build: The statement, by the name of SQLAlchemy's dialect.
        columns: What an insert without values gets; for all else, the statement's own parameters are taken.
    """

    def __init__(self, build: Callable[[str], sa.Executable], columns: Sequence[str] | None = None) -> None:
        self._build, self._columns = build, columns
        self._compiled: dict[tuple[str, Any], tuple[str, Callable[[_Row], Any]]] = {}

    def run(self, connection: sa.Connection, rows: Sequence[_Row]) -> int:
        """Run it with each of the rows' values by name; how many rows it changed.

        Raises:
            sqlalchemy.exc.DBAPIError: The database refused it.
        """
        text, values = self._text(connection)
        given = values(rows[0]) if len(rows) == 1 else [values(row) for row in rows]
        return _executed(connection, text, given, _rowcount)

    def fetch(self, connection: sa.Connection, parameters: _Row) -> Sequence[Sequence[Any]]:
        """Run it with these values by name; the rows that it gives.

        Raises:
            sqlalchemy.exc.DBAPIError: The database refused it.
        """
        text, values = self._text(connection)
        return _executed(connection, text, values(parameters), _rows)

    def _text(self, connection: sa.Connection) -> tuple[str, Callable[[_Row], Any]]:
        schemas = connection.get_execution_options().get("schema_translate_map")
        known = connection.dialect.name, schemas and schemas[None]
        if known not in self._compiled:
            statement: Any = self._build(connection.dialect.name)
            compiled = statement.compile(
                dialect=connection.dialect,
                column_keys=self._columns,
                schema_translate_map=schemas,
                render_schema_translate=schemas is not None,
            )
            self._compiled[known] = str(compiled), _values(compiled)
        return self._compiled[known]


def _values(compiled: SQLCompiler) -> Callable[[_Row], Any]:
    """From a row to the parameters as the driver takes them: by name, or in the order of the text."""
    constants = {name: bound.value for name, bound in compiled.binds.items() if not bound.required}
    if compiled.positiontup is None:
        return lambda row: {**row, **constants}
    names = compiled.positiontup
    if len(names) == 1:  # of one name a getter makes no tuple
        return lambda row: ({**row, **constants}[names[0]],)
    in_order = itemgetter(*names)
    return (lambda row: in_order({**row, **constants})) if constants else in_order


def execute(connection: sa.Connection, text: str, parameters: Any = None) -> int:
    """Run a statement as the driver takes it, once or (a list of parameters) many times; how many rows it changed.

    Raises:
        sqlalchemy.exc.DBAPIError: The database refused it.
    """
    return _executed(connection, text, parameters, _rowcount)


_rowcount = attrgetter("rowcount")
_rows = methodcaller("fetchall")


def _executed(connection: sa.Connection, text: str, parameters: Any, read: Callable[[Any], _Read]) -> _Read:
    listened: Any = connection.engine.dispatch
    if listened.before_cursor_execute or listened.after_cursor_execute:
        kept = {"preserve_rowcount": True}
        return read(connection.exec_driver_sql(text, parameters, execution_options=kept))
    opened: Any = connection.connection.dbapi_connection
    cursor = opened.cursor()
    try:
        if parameters is None:
            cursor.execute(text)
        elif type(parameters) is list:
            cursor.executemany(text, cast("list[Any]", parameters))
        else:
            cursor.execute(text, parameters)
        return read(cursor)
    except connection.dialect.loaded_dbapi.Error as error:
        driver = connection.dialect.loaded_dbapi
        raise sqlalchemy.exc.DBAPIError.instance(
            text, None, error, driver.Error, dialect=connection.dialect
        ) from error
    finally:
        cursor.close()
