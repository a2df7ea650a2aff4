"""IOR 2.x to 4.x: text, JSON and CSV.

Columns are found by their names: 3.3 put IOPS and latency between bandwidth and sizes, and the
summary gained columns with every version. Rows are rounded, so the summary is the result and the
repetitions are samples. Bandwidth is recomputed from bytes and total time (ior.c: dataMoved /
totalTime); with a deadline the bytes are those that IOR says it used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.hpc.base import PARSERS, Parser, Proof, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._ior import Group, Session, Test, asked_for
from transect.hpc.parsers._ior_json import JsonReader
from transect.hpc.parsers._ior_result import judge, metrics_of, parameters_of, rows_alone, samples_of
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4}"
_BANNER = re.compile(r"IOR-(\d[\w.+\-]{0,40}):? ?MPI Coordinated Test")
_JSON = re.compile(rf'"Began"[ ]?: ?"{_DAY}')
_VERSION = re.compile(r'"Version"[ ]?: ?"([\w.+\-]{1,40})"')
_BROKEN_CSV = re.compile(rf"(\d\.\d{{1,3}}[\w.+\-]{{0,12}}?){_DAY}")
_KEYS = {
    "api": "api",
    "apiVersion": "apiVersion",
    "test filename": "test_filename",
    "access": "access",
    "type": "type",
    "pattern": "pattern",
    "segments": "segments",
    "ordering in a file": "ordering_in_a_file",
    "ordering inter file": "ordering_inter_file",
    "task offset": "task_offset",
    "nodes": "nodes",
    "tasks": "tasks",
    "clients": "clients",
    "clients per node": "clients_per_node",
    "memoryPerTask": "memoryPerTask",
    "memoryPerNode": "memoryPerNode",
    "memoryBuffer": "memoryBuffer",
    "dataAccess": "dataAccess",
    "GPUDirect": "GPUDirect",
    "repetitions": "repetitions",
    "xfersize": "xfersize",
    "blocksize": "blocksize",
    "aggregate filesize": "aggregate_filesize",
    "stonewallingTime": "stonewallingTime",
    "stoneWallingWearOut": "stoneWallingWearOut",
    "Using stonewalling": "stonewallingTime",
    "deadlineForStonewall": "stonewallingTime",
    "Lustre stripe size": "lustre_stripe_size",
    "stripe count": "lustre_stripe_count",
    "Command line": "command",
    "Command line used": "command",
    "Machine": "machine",
    "Path": "path",
    "Began": "began",
    "Run began": "began",
}
_OPTION = re.compile(rf"({'|'.join(sorted(_KEYS, key=len, reverse=True))})[ \t]{{0,24}}[:=][ \t]*(.*)")
_TEST = re.compile(r"(?:Test (\d{1,9}) started:|TestID[ \t]{0,24}:[ \t]*(\d{1,9}))")
_MAX = re.compile(rf"Max (Write|Read): +({NUMBER}) MiB/sec \(({NUMBER}) MB/sec\)")
_WRONG = re.compile(r"(?:ior )?WARNING: [Ii]ncorrect data on \w{1,12} \(")
_MOVED = re.compile(r"(?:ior )?WARNING: Using actual aggregate bytes moved *= *(\d{1,24})")
_ERROR = re.compile(r"(?:ior |IOR )?ERROR\b|\*\* error \*\*")
_COLUMNS = {
    "Max(MiB)": "max",
    "Min(MiB)": "min",
    "Mean(MiB)": "mean",
    "Max(OPs)": "max_ops",
    "Min(OPs)": "min_ops",
    "Mean(OPs)": "mean_ops",
    "Mean(s)": "mean_s",
    "Test#": "test",
    "#Tasks": "tasks",
    "tPN": "tpn",
    "reps": "reps",
    "segcnt": "segcnt",
    "blksiz": "blksiz",
    "xsize": "xsize",
    "aggs(MiB)": "aggs",
    "aggsize": "aggs",
    "API": "api",
}
_OLD = ["access", "bw(MiB/s)", "block(KiB)", "xfer(KiB)", "open(s)", "wr/rd(s)", "close(s)", "total(s)", "iter"]
_NEW = [*_OLD[:2], "IOPS", "Latency(s)", *_OLD[2:]]
_MOST_TESTS = 200


@PARSERS.register("ior")
class Ior(Parser):
    """Reads the summary of every test, and its repetitions."""

    benchmark = "ior"
    description = "IOR 2.x to 4.x: bandwidth of parallel reading and writing; text, JSON and CSV"
    proof = Proof(
        identity="`IOR-3.3.0: MPI Coordinated Test`, the head of its tables or CSV, `Max Write:`, JSON that begins with `Began`",
        success="the summary of each operation that has rows; the rows alone when they are all that was asked for, which is `suspicious`",
        failure="incorrect data, a bandwidth that bytes and time refute, a summary that is not that of its repetitions",
    )
    programs = (r"ior(?:\.exe)?",)
    starts = (
        r"IOR-\d[\w.+\-]{0,40}:? ?MPI Coordinated Test",
        r"access[ \t]+bw\(MiB/s\)",
        r"access,bw\(MiB/s\),IOPS,",
        r"Operation[ \t]+Max ?\(MiB\)[ \t]",
        r"Max (?:Write|Read): +[\d.]{1,40} MiB/sec \(",
        rf'"Began"[ ]?: ?"{_DAY}',
        rf"[34]\.\d\.\d[\w.+\-]{{0,8}}?{_DAY}",
    )
    wants = (
        r"IOR-\d",
        r"(?:access|Operation|write|read)[ \t,]",
        r"Max (?:Write|Read):",
        rf"(?:{'|'.join(_KEYS)})[ \t]{{0,24}}[:=]",
        r"(?:Test \d{1,9} started|TestID[ \t]{0,24}|Summary|Finished[ \t]{0,24}|Run finished):",
        r"(?:ior )?WARNING: ",
        r"(?:ior |IOR )?ERROR\b",
        r"\*\* error \*\*",
        r'"[A-Za-z]',
    )

    def sniff(self, line: Line) -> bool:
        """Refuse a version and a date that are not followed by the values of IOR's options."""
        text = line.text.lstrip()
        return not text[:1].isdigit() or "single-shared-file" in text or "file-per-process" in text

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield one run per test."""
        session, reader = _session(block.first.number), None
        for line in block:
            text = line.text.strip()
            begins = _BANNER.match(text) or _JSON.match(text)
            if _repeats(session.tests[-1], text) or (begins and _begun(session)) or len(session.tests) > _MOST_TESTS:
                yield from self._close(block, session, reader)
                session, reader = _session(line.number), None
            if _JSON.match(text):
                reader = JsonReader()
                version = _VERSION.search(block.last_words())  # it stands on the line before
                session.form, session.version = "json", version[1] if version else ""
                session.line -= 1 if version else 0
            if reader is None:
                _read(session, line, text)
            else:
                _read_json(session, reader, line, text)
            if session.finished:
                yield from self._close(block, session, reader)
                return
        yield from self._close(block, session, reader)

    def _close(self, block: Block, session: Session, reader: JsonReader | None) -> Iterator[Run]:
        if reader is not None:
            reader.close(session.tests)
        stops = [*session.errors[:2], block.take_trouble()]
        for place, test in enumerate(session.tests):
            draft = Draft(
                block=block,
                line=test.line if place else session.line,
                variant=session.form,
                version=session.version,
                metrics=metrics_of(test),
                parameters=parameters_of(session, test),
                samples=samples_of(test),
                warnings=[*test.warnings],
                stops=stops,
            )
            judge(draft, session, test, last=place == len(session.tests) - 1)
            if draft.ok:
                draft.warnings += session.errors[:2]
                alone = rows_alone(session, test)
                if not session.finished and session.form != "csv" and not alone:
                    words = block.last_words()
                    draft.warnings.append(f"no 'Finished': the log ends with: {words}")
                if alone:
                    draft.suspicions.append("its rows alone, no summary and no 'Finished': as IO500 runs IOR")
            yield draft.run()


def _session(line: int) -> Session:
    return Session(line=line, tests=[Test(line=line)])


def _repeats(test: Test, text: str) -> bool:
    """Tell whether a table begins that the test has: the head of another run is lost."""
    if text.startswith("access"):
        return "bw(MiB/s)" in text and bool(test.groups)
    return text.startswith("Operation") and bool(test.summary)


def _begun(session: Session) -> bool:
    return session.banner or len(session.tests) > 1 or not session.tests[0].blank()


def _read_json(session: Session, reader: JsonReader, line: Line, text: str) -> None:
    for test, key, value in reader.read(line, session.tests):
        _read_option(session, test, key, value)
    session.finished = reader.finished
    if _ERROR.match(text) and len(session.errors) < 5:
        session.errors.append(excerpt(text))


def _read(session: Session, line: Line, text: str) -> None:
    test = session.tests[-1]
    if text.startswith(("write", "read")):
        _read_row(session, line, text)
    elif text.startswith(("access ", "access\t", "access,")) and "bw(MiB/s)" in text:
        session.form = "csv" if text.startswith("access,") else session.form
        session.columns = text.replace(",", " ").split()
        session.table = "results"
    elif text.startswith("Operation"):
        session.columns, session.table = _summary_columns(text), "summary"
    elif (match := _MAX.match(text)) is not None:
        test.maxima[match[1].lower()] = (match[2], match[3])
    elif (match := _BANNER.match(text)) is not None:
        session.banner, session.version = True, match[1]
    elif (match := _TEST.match(text)) is not None:
        if not test.blank():
            test = Test(line=line.number)
            session.tests.append(test)
        test.number = int(match[1] or match[2])
    elif text.startswith("Summary:"):
        if test.operations():  # 2.x says so only here that another test begins
            session.tests.append(Test(line=line.number))
    elif text.startswith(("Finished", "Run finished")):
        session.finished = True
    elif (match := _BROKEN_CSV.match(text)) is not None:
        session.form, session.version = "csv", match[1]
    elif (match := _OPTION.match(text)) is not None:
        _read_option(session, test, match[1], match[2])
    else:
        _read_trouble(session, test, text)


def _read_trouble(session: Session, test: Test, text: str) -> None:
    if (match := _MOVED.match(text)) is not None:
        if len(test.moved) < 64:
            test.moved.append(int(match[1]))
    elif _WRONG.match(text):
        test.wrong_data = test.wrong_data or excerpt(text)
    elif _ERROR.match(text):
        if len(session.errors) < 5:
            session.errors.append(excerpt(text))
    elif text.startswith(("WARNING", "ior WARNING")) and len(test.warnings) < 5:
        test.warnings.append(excerpt(text))


def _read_option(session: Session, test: Test, name: str, value: str) -> None:
    key, value = _KEYS.get(name, ""), value.strip()
    if not key:
        return
    first = value.split(" ", 1)[0]
    if key == "command":
        session.asked = asked_for(value)
    if key in ("command", "machine", "began"):
        session.facts[key] = excerpt(value, 400)
        return
    if key == "clients":
        key = "tasks"
        inner = re.search(r"\((\d{1,9}) per node\)", value)
        if inner is not None:
            test.options["clients_per_node"] = int(inner[1])
    elif key == "pattern":
        inner = re.search(r"\((\d{1,18}) segment", value)
        if inner is not None:
            test.options["segments"] = int(inner[1])
    counts = ("tasks", "segments", "nodes", "repetitions", "clients_per_node", "stonewallingTime")
    if key in counts and first.isdecimal() and len(first) < 19:
        test.options[key] = int(first)
    elif key not in counts and value:
        test.options[key] = excerpt(value, 400)


def _summary_columns(text: str) -> list[str]:
    plain = text.replace(" (", "(").replace("Std Dev", "StdDev").replace(" Op grep", " ")
    out, seen = [], 0
    for name in plain.split():
        if name == "StdDev":
            seen += 1
        key = ("stddev", "stddev_ops")[seen - 1] if name == "StdDev" and seen < 3 else ""
        out.append(key or _COLUMNS.get(name, name))
    return [*out, "aggsize"] if "aggsize" in plain else out


def _read_row(session: Session, line: Line, text: str) -> None:
    cells = (text.replace(",", " ") if session.form == "csv" else text).split()
    operation = cells[0]
    if operation not in ("write", "read"):
        return
    if session.table == "summary":
        in_bytes = session.columns[-1] == "aggsize"
        columns = session.columns[:-1] if in_bytes else session.columns
        old = cells[-1] == "EXCEL"
        row = dict(zip(columns[1:], cells[1:-1] if old else cells[1:], strict=False))
        whole = len(cells) - old >= len(columns) and not (line.cut and len(cells) <= 10)
        if not whole or "max" not in row:
            return
        row["aggs_unit"] = "B" if in_bytes else "MiB"
        by_number = (t for t in session.tests if str(t.number) == row.get("test"))
        next(by_number, session.tests[-1]).summary[operation] = row
        return
    columns = session.columns or (_NEW if len(cells) >= len(_NEW) else _OLD)
    whole = len(cells) >= len(columns) and not (line.cut and columns[-1] != "iter")
    if not whole or "bw(MiB/s)" not in columns:
        return
    named = dict(zip(columns, cells, strict=False))
    test = session.tests[-1]
    if "numTasks" in named and named["numTasks"].isdecimal():
        _read_option(session, test, "tasks", named["numTasks"])
    group = test.groups.setdefault(operation, Group())
    group.add(named["bw(MiB/s)"], named.get("total(s)", ""), named.get("block(KiB)", ""))
