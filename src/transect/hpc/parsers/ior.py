"""IOR 2.x to 4.x: text, JSON and CSV.

Columns are found by their names: 3.3 put IOPS and latency between bandwidth and sizes, and the
summary gained columns with every version. Rows are rounded, so the summary is the result and the
repetitions are samples. Bandwidth is recomputed from bytes and total time (ior.c: dataMoved /
totalTime); with a deadline the bytes are those that IOR says it used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from transect.hpc.base import PARSERS, Proof, Run
from transect.hpc.parsers._ior_json import JsonReader
from transect.hpc.parsers._ior_result import add_metrics, judge, parameters_of, rows_alone, samples_of
from transect.hpc.parsers._ior_tests import Group, Session, Test, asked_for, summary_columns
from transect.hpc.rules import OutputParser, keeps, rule, sets
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4}"
_BANNER = re.compile(r"IOR-(\d[\w.+\-]{0,40}):? ?MPI Coordinated Test")
_JSON = re.compile(rf'"Began"[ ]?: ?"{_DAY}')
_BROKEN_CSV = re.compile(rf"(\d\.\d{{1,3}}[\w.+\-]{{0,12}}?){_DAY}")
_VERSION = re.compile(r'"Version"[ ]?: ?"([\w.+\-]{1,40})"')
_OPTION = (
    r"api|apiVersion|test filename|access|type|pattern|segments|ordering in a file|ordering inter file|task offset|nodes"
    r"|tasks|clients(?: per node)?|memoryPer(?:Task|Node)|memoryBuffer|dataAccess|GPUDirect|repetitions|xfersize|blocksize"
    r"|aggregate filesize|stonewallingTime|stoneWallingWearOut|Using stonewalling|deadlineForStonewall"
    r"|Lustre stripe size|stripe count|Command line(?: used)?|Machine|Path|Began|Run began"
)
# Where it is not the name itself, with `_` for blanks.
_KEYS = {
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
_ERROR = re.compile(r"(?:ior |IOR )?ERROR\b|\*\* error \*\*")
_OLD = ["access", "bw(MiB/s)", "block(KiB)", "xfer(KiB)", "open(s)", "wr/rd(s)", "close(s)", "total(s)", "iter"]
_NEW = [*_OLD[:2], "IOPS", "Latency(s)", *_OLD[2:]]


@dataclass(kw_only=True)
class _Output(Session):
    reader: JsonReader | None = None

    def __post_init__(self) -> None:
        self.tests.append(Test(line=self.line))

    def begins(self, text: str) -> bool:
        """Tell whether another start follows, or a table that the test has: the head of another run is lost."""
        test = self.tests[-1]
        if text.startswith("access") and "bw(MiB/s)" in text and test.groups:
            return True
        if text.startswith("Operation") and test.summary:
            return True
        begun = self.banner or len(self.tests) > 1 or not self.tests[0].blank()
        start = _BANNER.match(text) or _JSON.match(text)
        return start is not None and begun

    def read(self, line: Line, text: str) -> None:
        if _JSON.match(text):
            self.reader = JsonReader()
            version = _VERSION.search(self.block.last_words())  # it stands on the line before
            self.form, self.version = "json", version[1] if version else ""
            self.line -= 1 if version else 0
        if (broken := _BROKEN_CSV.match(text)) is not None:
            self.form, self.version = "csv", broken[1]
        if self.reader is None:
            # A row ends with the number of its repetition, which is not read.
            whole = self.columns[-1:] == ["iter"] and len(text.split()) == len(self.columns)
            super().read(replace(line, cut=line.cut and not whole), text)
            return
        for test, key, value in self.reader.read(line, self.tests):
            self._option(test, key, value)
        self.ended = self.reader.finished
        if _ERROR.match(text):
            self.errors.append(excerpt(text))

    @rule(r"(?:write|read)", wanted=r"(?:access|Operation|write|read)[ \t,]")
    def row(self, match: re.Match[str], line: Line) -> None:
        cells = (match.string.replace(",", " ") if self.form == "csv" else match.string).split()
        operation = cells[0]
        if operation not in ("write", "read"):
            return
        if self.table == "summary":
            in_bytes = self.columns[-1] == "aggsize"
            columns = self.columns[:-1] if in_bytes else self.columns
            old = cells[-1] == "EXCEL"
            row = dict(zip(columns[1:], cells[1:-1] if old else cells[1:], strict=False))
            whole = len(cells) - old >= len(columns)
            if not whole or "max" not in row:
                return
            row["aggs_unit"] = "B" if in_bytes else "MiB"
            by_number = (t for t in self.tests if str(t.number) == row.get("test"))
            next(by_number, self.tests[-1]).summary[operation] = row
            return
        columns = self.columns or (_NEW if len(cells) >= len(_NEW) else _OLD)
        whole = len(cells) >= len(columns)
        if not whole or "bw(MiB/s)" not in columns:
            return
        named = dict(zip(columns, cells, strict=False))
        test = self.tests[-1]
        if "numTasks" in named and named["numTasks"].isdecimal():
            self._option(test, "tasks", named["numTasks"])
        group = test.groups.setdefault(operation, Group())
        group.rows.append((named["bw(MiB/s)"], named.get("total(s)", ""), named.get("block(KiB)", "")))

    @rule(r"access([ \t,]).*bw\(MiB/s\).*", wanted="")
    def table_head(self, match: re.Match[str], line: Line) -> None:
        self.form = "csv" if match[1] == "," else self.form
        self.columns = match[0].replace(",", " ").split()
        self.table = "results"

    @rule(r"Operation.*", wanted="")
    def summary_head(self, match: re.Match[str], line: Line) -> None:
        self.columns, self.table = summary_columns(match[0]), "summary"

    @rule(rf"Max (Write|Read): +({NUMBER}) MiB/sec \(({NUMBER}) MB/sec\)", wanted=r"Max (?:Write|Read):")
    def best(self, match: re.Match[str], line: Line) -> None:
        self.tests[-1].maxima[match[1].lower()] = (match[2], match[3])

    @rule(_BANNER, wanted=r"IOR-\d")
    def head(self, match: re.Match[str], line: Line) -> None:
        self.banner, self.version = True, match[1]

    @rule(
        r"(?:Test (\d{1,9}) started:|TestID[ \t]{0,24}:[ \t]*(\d{1,9}))",
        wanted=r"(?:Test \d{1,9} started|TestID[ \t]{0,24}|Summary|Finished[ \t]{0,24}|Run finished):",
    )
    def test(self, match: re.Match[str], line: Line) -> None:
        if not self.tests[-1].blank():
            self.tests.append(Test(line=line.number))
        self.tests[-1].number = int(match[1] or match[2])

    @rule(r"Summary:", wanted="")
    def summary(self, match: re.Match[str], line: Line) -> None:
        if self.tests[-1].operations():  # 2.x says so only here that another test begins
            self.tests.append(Test(line=line.number))

    end = sets(r"(?:Finished|Run finished)", "ended", True, wanted="")

    @rule(rf"({_OPTION})[ \t]{{0,24}}[:=][ \t]*(.*)", wanted=rf"(?:{_OPTION})[ \t]{{0,24}}[:=]")
    def option(self, match: re.Match[str], line: Line) -> None:
        self._option(self.tests[-1], match[1], match[2])

    def _option(self, test: Test, name: str, value: str) -> None:
        if not re.fullmatch(_OPTION, name):
            return
        key, value = _KEYS.get(name, name.replace(" ", "_")), value.strip()
        first = value.split(" ", 1)[0]
        if key == "command":
            self.asked = asked_for(value)
        if key in ("command", "machine", "began"):
            self.facts[key] = excerpt(value, 400)
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

    @rule(r"(?:ior )?WARNING: Using actual aggregate bytes moved *= *(\d{1,24})", wanted=r"(?:ior )?WARNING: ")
    def moved(self, match: re.Match[str], line: Line) -> None:
        self.tests[-1].moved.append(int(match[1]))

    @rule(r"(?:ior )?WARNING: [Ii]ncorrect data on \w{1,12} \(", wanted="")
    def wrong(self, match: re.Match[str], line: Line) -> None:
        self.tests[-1].wrong_data = self.tests[-1].wrong_data or excerpt(match.string)

    error = keeps(_ERROR, "errors")

    @rule(r"(?:ior )?WARNING", wanted="")
    def warning(self, match: re.Match[str], line: Line) -> None:
        if len(self.tests[-1].warnings) < 5:
            self.tests[-1].warnings.append(excerpt(match.string))

    def runs(self) -> Iterator[Run]:
        if self.reader is not None:
            self.reader.close(self.tests)
        stops = [*self.errors[:2], self.block.take_trouble()]
        for place, test in enumerate(self.tests):
            draft = self.draft(
                test.line if place else None,
                variant=self.form,
                parameters=parameters_of(self, test),
                samples=samples_of(test),
                warnings=[*test.warnings],
                stops=stops,
            )
            add_metrics(draft, test)
            judge(draft, self, test, last=place == len(self.tests) - 1)
            if draft.ok:
                draft.warnings += self.errors[:2]
                alone = rows_alone(self, test)
                if not self.ended and self.form != "csv" and not alone:
                    words = self.block.last_words()
                    draft.warnings.append(f"no 'Finished': the log ends with: {words}")
                if alone:
                    draft.suspicions.append("its rows alone, no summary and no 'Finished': as IO500 runs IOR")
            yield draft.run()


@PARSERS.register("ior")
class Ior(OutputParser):
    """Reads the summary of every test, and its repetitions."""

    benchmark = "ior"
    description = "IOR 2.x to 4.x: bandwidth of parallel reading and writing; text, JSON and CSV"
    validity_notes = Proof(
        identity="`IOR-3.3.0: MPI Coordinated Test`, the head of its tables or CSV, `Max Write:`, JSON that begins with `Began`",
        success="the summary of each operation that has rows; the rows alone when they are all that was asked for, which is `suspicious`",
        failure="incorrect data, a bandwidth that bytes and time refute, a summary that is not that of its repetitions",
    )
    programs = (r"ior(?:\.exe)?",)
    output = _Output
    start_patterns = (
        r"IOR-\d[\w.+\-]{0,40}:? ?MPI Coordinated Test",
        r"access[ \t]+bw\(MiB/s\)",
        r"access,bw\(MiB/s\),IOPS,",
        r"Operation[ \t]+Max ?\(MiB\)[ \t]",
        r"Max (?:Write|Read): +[\d.]{1,40} MiB/sec \(",
        rf'"Began"[ ]?: ?"{_DAY}',
        rf"[34]\.\d\.\d[\w.+\-]{{0,8}}?{_DAY}",
    )
    also = (r'"[A-Za-z]',)

    def matches(self, line: Line) -> bool:
        """Refuse a version and a date that are not followed by the values of IOR's options."""
        text = line.text.lstrip()
        return not text[:1].isdigit() or "single-shared-file" in text or "file-per-process" in text
