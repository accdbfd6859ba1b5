"""One transaction as a bank function sees it: records in and out, on either database.

A bank function is synchronous code that gets a `Transaction` and runs in one piece, on the thread
of its connection. It uses SQLAlchemy's statements, built once; their texts are compiled once for
each database, and go straight to the driver.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.sql.compiler import SQLCompiler
from sqlmodel import SQLModel

from banking_server.bank.models import TABLES, Customer

_T = TypeVar("_T")
_Record = TypeVar("_Record", bound=SQLModel)


class Statement(Generic[_T]):
    """A statement, built once; `make` turns the columns of each row into the returned value.

    Its parameters are `sa.bindparam("name")`.
    """

    def __init__(self, construct: sa.Executable, make: Callable[..., _T]) -> None:
        self._construct = construct
        self.make = make
        self._compiled: dict[str, _Compiled] = {}

    def compiled(self, dialect: sa.Dialect) -> "_Compiled":
        """Return the statement compiled for this database, as the driver takes it."""
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._compiled[dialect.name] = _compile(self._construct, dialect)
        return compiled


@dataclass(frozen=True)
class _Compiled:
    """A statement compiled for one database."""

    text: str
    places: Sequence[tuple[str, Callable[[Any], Any] | None]]
    """Its parameters in order, each with its converter for the database."""
    constants: Mapping[str, Any]
    """Parameters whose value is part of the statement."""
    from_database: Sequence[tuple[int, Callable[[Any], Any]]]
    by_name: bool
    """Whether the driver takes parameters by name, not by position."""

    def parameters(self, values: Mapping[str, Any]) -> Any:
        """Return the values as the driver takes them."""
        given = {**values, **self.constants} if self.constants else values
        converted = [
            convert(given[name]) if convert else given[name] for name, convert in self.places
        ]
        if self.by_name:
            return dict(zip((name for name, _ in self.places), converted, strict=True))
        return converted

    def row(self, row: Sequence[Any]) -> Sequence[Any]:
        """Return a row of the driver's as Python's values."""
        if not self.from_database:
            return row
        values = list(row)
        for place, convert in self.from_database:
            values[place] = convert(values[place])
        return values


def _compile(construct: Any, dialect: sa.Dialect) -> _Compiled:
    compiled: SQLCompiler = construct.compile(dialect=dialect)
    names = compiled.positiontup if compiled.positional else compiled.bind_names.values()
    binds = {name: compiled.binds[name] for name in names or ()}
    from_database = [
        (place, convert)
        for place, column in enumerate(getattr(construct, "exported_columns", ()))
        if (convert := column.type.dialect_impl(dialect).result_processor(dialect, None))
        is not None
    ]
    return _Compiled(
        compiled.string,
        places=[
            (name, binds[name].type.dialect_impl(dialect).bind_processor(dialect))
            for name in names or ()
        ],
        constants={name: bind.effective_value for name, bind in binds.items() if not bind.required},
        from_database=from_database,
        by_name=not compiled.positional,
    )


class Transaction:
    """An open transaction, for the code that runs in it. It ends when that code returns."""

    def __init__(
        self, execute: Callable[[str, Any], Any], dialect: sa.Dialect, *, lock_rows: bool
    ) -> None:
        self._execute = execute
        self.dialect = dialect
        """The SQL dialect of this database."""
        self._lock_rows = lock_rows

    def all(self, statement: Statement[_T], **values: Any) -> list[_T]:
        """Run the statement and return everything that it finds."""
        compiled = statement.compiled(self.dialect)
        rows = self._execute(compiled.text, compiled.parameters(values)).fetchall()
        return [statement.make(*compiled.row(row)) for row in rows]

    def first(self, statement: Statement[_T], **values: Any) -> _T | None:
        """Run the statement and return the first that it finds; None if it finds nothing."""
        found = self.all(statement, **values)
        return found[0] if found else None

    def run(self, statement: Statement[Any], **values: Any) -> None:
        """Run a statement that returns nothing."""
        compiled = statement.compiled(self.dialect)
        self._execute(compiled.text, compiled.parameters(values))

    def run_text(self, text: str) -> None:
        """Run a statement in this database's own SQL, such as one of the schema."""
        self._execute(text, ())

    def take_time(self) -> None:
        """Lift the time limit, for statements over whole tables at the desks."""
        if self.dialect.name == "postgresql":
            self.run_text("SET LOCAL statement_timeout = 0")

    def find(self, model: type[_Record], key: Any) -> _Record | None:
        """Return the record with this primary key."""
        return self.first(_by_key(model), key=key)

    def get(self, model: type[_Record], key: Any) -> _Record:
        """Return the record with this primary key, whose existence a foreign key guarantees."""
        found: _Record = self.all(_by_key(model), key=key)[0]
        return found

    def add(self, record: SQLModel) -> None:
        """Store a new record, and set the number that the database assigns to it."""
        statement, table = _insert(type(record)), TABLES[type(record)]
        if is_numbered(table):
            vars(record)[key_of(table).name] = self.all(statement, **vars(record))[0]
        else:
            self.run(statement, **vars(record))

    def change(self, record: SQLModel, **values: Any) -> None:
        """Set these fields of a record, in memory and in the database."""
        key = key_of(TABLES[type(record)]).name
        self.run(_update(type(record), tuple(values)), **values, key=getattr(record, key))
        vars(record).update(values)

    def lock(self, customer_id: str) -> None:
        """Keep everybody else from changing this customer's data until the end of the transaction.

        On SQLite nobody else can write during the transaction, so there is nothing to do.
        """
        if self._lock_rows:
            self.all(_LOCK_CUSTOMER, key=customer_id)


def unchecked(model: type[_Record], values: dict[str, Any]) -> _Record:
    """Return a record, or a view of one, with a value for every field.

    The values are not checked: that happened when they were stored. With every field given, it does
    what pydantic's `model_construct` does, in a quarter of the time.
    """
    record = object.__new__(model)
    give = object.__setattr__
    give(record, "__dict__", values)
    give(record, "__pydantic_fields_set__", set(values))
    give(record, "__pydantic_extra__", None)
    give(record, "__pydantic_private__", None)
    return record


def reading(model: type[_Record]) -> Callable[..., _Record]:
    """Return a function that makes a record from the columns of `sa.select(TABLES[model])`."""
    names = list(model.model_fields)
    return lambda *values: unchecked(model, dict(zip(names, values, strict=True)))


def records(
    model: type[_Record], *where: sa.ColumnElement[bool], order_by: Sequence[Any] = ()
) -> Statement[_Record]:
    """Return the statement that finds records by a condition."""
    return Statement(sa.select(TABLES[model]).where(*where).order_by(*order_by), reading(model))


def has_status(model: type[SQLModel], status: str) -> sa.ColumnElement[bool]:
    """Return the condition that a record has this status, for which a partial index can be used.

    The status is part of the statement's text, because SQLite does not know a parameter's value
    when it chooses an index.
    """
    return TABLES[model].c.status == sa.literal_column(f"'{status}'")


def command(construct: sa.Executable) -> Statement[None]:
    """Return a statement that changes something and returns no rows."""
    return Statement(construct, lambda *_: None)


def insertion(model: type[SQLModel]) -> Statement[None]:
    """Return the statement that stores a record, field by field, without returning its number."""
    return command(_insertion(TABLES[model]))


def value(first: Any) -> Any:
    """Return the only column of a row."""
    return first


@cache
def key_of(table: sa.Table) -> sa.Column[Any]:
    """Return the primary key of a table; each has one column."""
    (key,) = table.primary_key.columns
    return key


@cache
def is_numbered(table: sa.Table) -> bool:
    """Whether the database assigns the key, as a number."""
    return key_of(table).type.python_type is int


def _insertion(table: sa.Table) -> sa.Insert:
    names = [
        column.name
        for column in table.columns
        if not (column is key_of(table) and is_numbered(table))
    ]
    return sa.insert(table).values({name: sa.bindparam(name) for name in names})


@cache
def _by_key(model: type[_Record]) -> Statement[_Record]:
    return records(model, key_of(TABLES[model]) == sa.bindparam("key"))


_customer = TABLES[Customer]
_LOCK_CUSTOMER = Statement(
    sa.select(_customer.c.customer_id)
    .where(_customer.c.customer_id == sa.bindparam("key"))
    .with_for_update(key_share=True),
    value,
)


@cache
def _insert(model: type[SQLModel]) -> Statement[Any]:
    table = TABLES[model]
    construct: Any = _insertion(table)
    if is_numbered(table):
        construct = construct.returning(key_of(table))
    return Statement(construct, value)


@cache
def _update(model: type[SQLModel], names: tuple[str, ...]) -> Statement[None]:
    table = TABLES[model]
    return command(
        sa.update(table)
        .where(key_of(table) == sa.bindparam("key"))
        .values({name: sa.bindparam(name) for name in names})
    )
