"""SQL over the `records.parquet` of many studies, without a database: DuckDB reads the files where they lie."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from transect.analysis.records_schema import ALWAYS, COLUMNS, EARLIER, VERSION, VERSION_KEY, Type
from transect.domain.errors import BadInput, Complaints
from transect.domain.files import sha256_file
from transect.domain.terminal import printable

FILE = "records.parquet"
_PLAN = "plan.json"
# The column that says which folder a row is from.
FOLDER = "study_folder"

# Without these it is somebody else's table.
_LEAST = ("study", "stage", "cell", "metric", "value")
_ARROW: Mapping[Type, pa.DataType] = {"text": pa.large_string(), "integer": pa.int64(), "number": pa.float64()}
# Types that a column of a type may have in a file.
_FITS: Mapping[Type, set[str]] = {"text": {"text"}, "integer": {"integer"}, "number": {"number", "integer"}}
_CELL = re.compile("~[0-9a-f]{8}$")
# Nothing is loaded, and nothing written: not even what does not fit into memory.
_CONFIG: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "temp_directory": "",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a query gave: the names of its columns, and its rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def ask(sql: str, tables: Sequence[Path]) -> Answer:
    """Answer one SELECT over the table `records`: the rows of every table below the folders, and where each is from.

    `tables` are those that `find_tables` gives. Raises BadInput for a table that cannot be read, SQL that is wrong, and for what
    would write, or read anything else.
    """
    _check_select(sql)
    records = _dataset(tables)
    with duckdb.connect(config=_CONFIG) as connection:
        connection.register("records", records)
        # From here on no statement reaches a file, a network or an extension, and none changes that.
        for statement in ("SET enable_external_access=false", "SET lock_configuration=true"):
            connection.execute(statement)
        connection.execute("BEGIN TRANSACTION READ ONLY")
        try:
            return _run(connection, sql)
        except duckdb.PermissionException as error:
            raise _wrong(error, "a query reads the table `records`, and nothing else") from None
        except (duckdb.BinderException, duckdb.CatalogException) as error:
            raise _wrong(error) from None
        except (duckdb.Error, ArithmeticError, ValueError) as error:
            _check_whole(tables)
            raise _wrong(error) from None


def _run(connection: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    def fetch() -> Answer:
        made = connection.execute(sql)
        return Answer(columns=[column[0] for column in made.description or ()], rows=made.fetchall())

    # A thread that DuckDB computes in hears no Ctrl-C before it is done.
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(fetch)
        try:
            return running.result()
        except BaseException:
            connection.interrupt()
            raise


def find_tables(folders: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return each table below the folders, and the studies that have none; one that is met again, by any way, counts once.

    Links are followed. Folders of cells and hidden ones are left out. Raises BadInput for a folder that is none, and for
    one without any table.
    """
    tables: list[Path] = []
    without: list[Path] = []
    seen: set[Path] = set()
    for folder in folders:
        below = list(_below(folder))
        if not any(path.name == FILE for path in below):
            raise BadInput(f"{folder}: no {FILE} there or below: expected results of studies with a report")
        for path in below:
            if (real := path.resolve()) not in seen:
                seen.add(real)
                (tables if path.name == FILE else without).append(path)
    return tables, [plan.parent for plan in without]


def copies(tables: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield each table with the first one that holds just the same: the results may be a copy."""
    sizes = Counter(path.stat().st_size for path in tables)
    first: dict[str, Path] = {}
    for path in tables:
        if sizes[path.stat().st_size] > 1 and (known := first.setdefault(sha256_file(path), path)) is not path:
            yield path, known


def _below(folder: Path) -> Iterator[Path]:
    """Yield the table of each study, or its plan where it has none."""

    def refuse(error: OSError) -> None:
        raise BadInput(f"{error.filename}: cannot be read: {error.strerror}: expected a folder of results") from None

    seen: set[str] = set()
    for place, inner, files in os.walk(folder, onerror=refuse, followlinks=True):
        if (real := os.path.realpath(place)) in seen:
            inner.clear()  # a link led back
            continue
        seen.add(real)
        # In the folder of a stage; a person may have called a folder of results like that too.
        of_stage = any(Path(place, "..", name).is_file() for name in (FILE, _PLAN))
        inner[:] = sorted(n for n in inner if not n.startswith(".") and not (of_stage and _CELL.search(n)))
        if name := next((name for name in (FILE, _PLAN) if name in files), ""):
            yield Path(place, name)


def _dataset(tables: Sequence[Path]) -> ds.Dataset:
    """Return all tables as one with the columns that any has, each of one type."""
    wrong = Complaints()
    kinds: dict[str, set[str]] = defaultdict(set)
    for path in tables:
        with wrong.noted():
            for name, kind in _columns(path).items():
                kinds[name] |= {kind} - {""}
    wrong.end()
    always = [column.name for column in ALWAYS]
    names = [*always, *sorted({*kinds}.difference(always))]
    schema = pa.schema([(FOLDER, pa.large_string()), *((name, _ARROW[_common(name, kinds[name])]) for name in names)])
    form, local = ds.ParquetFileFormat(), fs.LocalFileSystem()
    parts = [
        form.make_fragment(
            _source(path), filesystem=local, partition_expression=ds.field(FOLDER) == printable(str(path.parent))
        )
        for path in tables
    ]
    return ds.FileSystemDataset(parts, schema, form, local)


def _columns(path: Path) -> dict[str, str]:
    """Return the kind of each column of a file: empty where it holds nothing. Raises BadInput for what is no such table."""
    try:
        with path.open("rb") as stream:
            facts = pq.read_metadata(stream)
        schema = facts.schema.to_arrow_schema()
    except (pa.ArrowException, ValueError) as error:
        raise BadInput(f"{path}: damaged: {str(error).splitlines()[0]}: `transect report` makes it anew") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None
    _check_version(path, (facts.metadata or {}).get(VERSION_KEY, b"0"))
    if missing := [name for name in _LEAST if name not in schema.names]:
        raise BadInput(f"{path}: no table of records: it has no column {', '.join(missing)}")
    if FOLDER in schema.names:
        raise BadInput(f"{path}: has a column {FOLDER} of its own: expected another name for that axis")
    kinds = {field.name: _kind(field.type) for field in schema}
    for place, name in enumerate(facts.schema.names):
        groups = [facts.row_group(group) for group in range(facts.num_row_groups)]
        if all(_is_null(group.column(place), group.num_rows) for group in groups):
            kinds[name] = ""
    for column in ALWAYS:
        kind = kinds.get(column.name, "")
        if kind and kind not in _FITS[column.type]:
            raise BadInput(f"{path}: column {column.name} is {schema.field(column.name).type}: expected {column.type}")
    return kinds


def _check_version(path: Path, given: bytes) -> None:
    version = given.decode("ascii", "replace")
    if version in map(str, (*EARLIER, VERSION)):
        return
    if version.isdecimal() and int(version) > VERSION:
        raise BadInput(
            f"{path}: version {version} of the table, this transect reads up to {VERSION}: a newer one wrote it"
        )
    raise BadInput(f"{path}: version {version!r} of the table: expected a number up to {VERSION}")


def _kind(held: pa.DataType) -> str:
    if pa.types.is_null(held):
        return ""
    if pa.types.is_integer(held):
        return "integer"
    return "number" if pa.types.is_floating(held) else "text"


def _is_null(column: pq.ColumnChunkMetaData, rows: int) -> bool:
    known = column.statistics
    return known is not None and known.has_null_count and known.null_count == rows


def _common(name: str, kinds: set[str]) -> Type:
    """Return the type that holds a column of all files: what the schema says, unless a plug-in means something else."""
    if name in COLUMNS and kinds <= _FITS[COLUMNS[name].type]:
        return COLUMNS[name].type
    if kinds == {"integer"}:
        return "integer"
    return "number" if kinds and kinds <= _FITS["number"] else "text"


def _source(path: Path) -> Any:
    try:
        str(path).encode()
        return str(path)
    except UnicodeEncodeError:  # Arrow takes names that are text alone
        return pa.PythonFile(path.open("rb"), mode="r")


def _check_select(sql: str) -> None:
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise _wrong(error) from None
    if len(statements) != 1:
        raise BadInput(f"{len(statements)} statements: expected one SELECT")
    if (kind := statements[0].type.name) != "SELECT":
        hint = "; a PIVOT with its columns, ON … IN (…)" if kind == "MULTI" else ""
        raise BadInput(f"{kind} is no query: expected a SELECT, results are never changed{hint}")


def _check_whole(tables: Sequence[Path]) -> None:
    """Raise BadInput for each table that cannot be read to its end: no error of a query names the file."""
    wrong = Complaints()
    for path in tables:
        with wrong.noted():
            try:
                with path.open("rb") as stream, pq.ParquetFile(stream) as file:
                    for _ in file.iter_batches():
                        pass
            except (pa.ArrowException, OSError) as error:
                raise BadInput(
                    f"{path}: damaged: {str(error).splitlines()[0]}: `transect report` makes it anew"
                ) from None
    wrong.end()


def _wrong(error: Exception, besides: str = "") -> BadInput:
    lines = [line.expandtabs(2) for line in str(error).splitlines() if line.strip()]
    return BadInput(*lines, *([besides] if besides else []))
