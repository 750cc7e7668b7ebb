"""Tables of PostgreSQL with a vector column (pgvector)."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.stores.file_index import ADAPTER
from relcore.stores.index import StoredRows
from relscope_stores.database import Database

_COLUMNS = """
SELECT a.attname, t.typname, a.atttypmod,
    format_type(a.atttypid, a.atttypmod), coalesce(i.indisprimary, false)
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""


class PgvectorIndex(Database):
    """A table, written as ``pgvector:postgresql://HOST/DATABASE#TABLE``, or as ``pgvector:FOLDER#TABLE`` if
    the server has a socket in this folder.

    User, database and password can be set by libpq's environment variables (PGUSER, PGDATABASE, PGPASSWORD,
    PGPASSFILE). The id is the primary key, or the column ``id`` if there is none. If there are several vector
    columns, choose one by ``#TABLE/COLUMN``. All other columns are payload.
    """

    _connection = None

    def connect(self) -> None:
        import psycopg

        where = {}
        if not self.place.address:
            where = {"host": str(self.place.path.absolute())}
        self._connection = psycopg.connect(self.place.address, connect_timeout=20, **where)

    def close(self) -> None:
        if self._connection:
            self._connection.close()

    def facts(self) -> tuple[int, int] | None:
        from psycopg.sql import SQL, Identifier

        base = self._connection
        self._table = Identifier(*self.name.split("."))
        columns = base.execute(_COLUMNS, [self._table.as_string(base)]).fetchall()
        if not columns:
            return None
        vectors = [name for name, kind, *_ in columns if kind == "vector"]
        keys = [name for name, *_, primary in columns if primary] or ["id"]
        if (self.column or len(vectors) == 1) and self.column in ("", *vectors) and len(keys) == 1:
            self._vector = self.column or vectors[0]
            self._id = keys[0]
        else:
            raise SpaceError(
                f"{self.place.text}: expected one column of vectors and a key of one column, got"
                f" {len(vectors)} and {len(keys)}; name the column as #TABLE/COLUMN"
            )
        (self._id_type,) = [text for name, *_, text, _ in columns if name == self._id]
        (width,) = [size for name, _, size, *_ in columns if name == self._vector]
        self._others = {name: kind for name, kind, *_ in columns if name not in (self._id, self._vector)}
        (n,) = base.execute(SQL("SELECT count(*) FROM {}").format(self._table)).fetchone()
        if width < 1:  # the type of the column has no width
            query = SQL("SELECT vector_dims({}) FROM {} LIMIT 1").format(
                Identifier(self._vector), self._table
            )
            width = (base.execute(query).fetchone() or [0])[0]
        return n, width

    def create(self, width: int, adapter: str) -> None:
        from psycopg.sql import SQL

        self._connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        query = SQL("CREATE TABLE {} (id text PRIMARY KEY, payload jsonb, vector vector({}))")
        self._connection.execute(query.format(self._table, width))
        self.facts()
        if adapter:
            self.record(adapter)

    def recorded(self) -> str:
        _, _, adapter = self._comment().partition(f"{ADAPTER}:")
        return adapter.partition(" ")[0]

    def record(self, adapter: str) -> None:
        """Record the digest in the comment of the table, after an existing comment."""
        from psycopg.sql import SQL, Literal

        comment = f"{self._comment()} {ADAPTER}:{adapter}".strip()
        self._connection.execute(SQL("COMMENT ON TABLE {} IS {}").format(self._table, Literal(comment)))

    def _comment(self) -> str:
        query = "SELECT obj_description(to_regclass(%s), 'pg_class')"
        (comment,) = self._connection.execute(query, [self._table.as_string(self._connection)]).fetchone()
        return comment or ""

    def rows(self, size: int, start: int) -> Iterator[StoredRows]:
        """Read by a cursor on the server, which sees the table as it was when reading began."""
        from psycopg.sql import SQL, Identifier

        names = SQL(", ").join(SQL("t.{}").format(Identifier(name)) for name in self._others)
        if self._others:
            payload = SQL("(SELECT to_jsonb(r) FROM (SELECT {}) r)").format(names)
        else:
            payload = SQL("NULL")
        if self._others == {"payload": "jsonb"}:  # a table made by `create`
            payload = SQL("t.payload")
        query = SQL(
            "SELECT t.{id}::text, t.{vector}, {payload} FROM {table} t ORDER BY t.{id} OFFSET {start}"
        )
        with self._connection.cursor("relscope_rows", binary=True) as cursor:
            cursor.execute(
                query.format(
                    id=Identifier(self._id),
                    vector=Identifier(self._vector),
                    payload=payload,
                    table=self._table,
                    start=start,
                )
            )
            while some := cursor.fetchmany(size):
                ids, vectors, kept = zip(*some, strict=True)
                # Each vector is sent as 4 bytes with its width, then big-endian float32 numbers.
                whole = b"".join(vector[4:] for vector in vectors)
                rows = np.frombuffer(whole, ">f4").reshape(len(ids), self.width).astype(np.float32)
                payload: tuple[dict[str, Any], ...] = ()
                if any(kept):
                    payload = tuple(item or {} for item in kept)
                yield StoredRows([*ids], rows, payload)

    def put(self, block: StoredRows) -> None:
        from psycopg.sql import SQL, Identifier

        has_payload = self._others.get("payload") == "jsonb"
        names = [self._id, self._vector, *["payload"] * has_payload]
        values = [SQL("id::{}").format(SQL(self._id_type)), SQL("vector"), *[SQL("payload")] * has_payload]
        width = block.vectors.shape[1]
        with self._connection.transaction():
            # Copy the rows into a temporary table first, because COPY cannot overwrite rows.
            temporary = (
                "CREATE TEMP TABLE IF NOT EXISTS relscope_rows (id text, payload jsonb, vector vector)"
            )
            self._connection.execute(f"{temporary} ON COMMIT DELETE ROWS")
            with self._connection.cursor().copy("COPY relscope_rows FROM STDIN BINARY") as copy:
                copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
                payload = block.payload or ({},) * len(block.ids)
                for key, kept, vector in zip(block.ids, payload, block.vectors.astype(">f4"), strict=True):
                    fields = [
                        key.encode(),
                        b"\1" + json.dumps(kept, default=str).encode(),
                        struct.pack(">hh", width, 0) + vector.tobytes(),
                    ]
                    sized = b"".join(struct.pack(">i", len(field)) + field for field in fields)
                    copy.write(struct.pack(">h", len(fields)) + sized)
                copy.write(b"\xff\xff")
            query = SQL("INSERT INTO {} ({}) SELECT {} FROM relscope_rows ON CONFLICT ({}) DO UPDATE SET {}")
            names = [Identifier(name) for name in names]
            new = SQL(", ").join(SQL("{0} = EXCLUDED.{0}").format(name) for name in names[1:])
            listed = SQL(", ").join(names)
            values = SQL(", ").join(values)
            self._connection.execute(query.format(self._table, listed, values, names[0], new))

    def finish(self) -> None:
        self._connection.commit()
