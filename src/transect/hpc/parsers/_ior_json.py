"""IOR with `-O summaryFormat=JSON`, read line by line: its summary repeats keys, and a log that
was cut is no JSON at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.hpc.parsers._ior_tests import Group, Test
from transect.hpc.text import Line

_PAIR = re.compile(r'"([^"\n]{1,60})"[ \t]{0,8}:[ \t]{0,8}(?:"([^"\n]{0,2000})"|([-+.\w]{1,40})|(\{|\[))')
_OPERATIONS = ("write", "read", "remove")
_RESULT = frozenset(("bwMiB", "blockKiB", "xferKiB", "totalTime", "openTime", "wrRdTime"))
_SUMMARY = {
    "bwMaxMIB": "max",
    "bwMinMIB": "min",
    "bwMeanMIB": "mean",
    "bwStdMIB": "stddev",
    "OPsMax": "max_ops",
    "OPsMin": "min_ops",
    "OPsMean": "mean_ops",
    "OPsSD": "stddev_ops",
    "MeanTime": "mean_s",
    "xsizeMiB": "aggs",
    "repetitions": "reps",
    "numTasks": "tasks",
    "tasksPerNode": "tpn",
    "segmentCount": "segcnt",
    "blockSize": "blksiz",
    "transferSize": "xsize",
    "API": "api",
    "TestID": "test",
}
_MAXIMA = {"writeMiB": ("write", 0), "writeMB": ("write", 1), "readMiB": ("read", 0), "readMB": ("read", 1)}


class JsonReader:
    """Sorts pairs of key and value into tests."""

    def __init__(self) -> None:
        self._operation = ""  # of the open result or summary
        self._cells: dict[str, str] = {}
        self._summarising = False
        self.finished = False

    def read(self, line: Line, tests: list[Test]) -> Iterator[tuple[Test, str, str]]:
        """Read one line and yield the parameters in it: test, key, value.

        A line that the end of the file cuts is only read up to its last comma.
        """
        text = line.text
        if line.cut and not text.rstrip().endswith(("}", "]")):
            text = text[: text.rfind(",") + 1]
        for match in _PAIR.finditer(text):
            value = match[2] if match[3] is None else match[3]
            if match[4] is None and not self._pair(line, tests, match[1], value):
                yield tests[-1], match[1], value

    def _pair(self, line: Line, tests: list[Test], key: str, value: str) -> bool:
        """Take a pair that belongs to a result; False for any other."""
        test = tests[-1]
        if key == "Finished":
            self.close(tests)
            self.finished = True
        elif key == "operation" and value in _OPERATIONS:
            self.close(tests)
            self._operation, self._summarising = value, True
        elif self._summarising:
            if key in _SUMMARY:
                self._cells[_SUMMARY[key]] = value
        elif key == "TestID":
            self.close(tests)
            if not test.blank():
                test = Test(line=line.number)
                tests.append(test)
            test.number = int(value) if value.isdigit() else None
        elif key == "access" and value in _OPERATIONS:
            self.close(tests)
            self._operation = value
        elif key in _RESULT:
            self._cells[key] = value
        elif key in _MAXIMA:
            self.close(tests)
            operation, place = _MAXIMA[key]
            pair = list(test.maxima.get(operation, ("", "")))
            pair[place] = value
            test.maxima[operation] = (pair[0], pair[1])
        else:
            return False
        return True

    def close(self, tests: list[Test]) -> None:
        """Take over the open result or summary, when it has all that is needed."""
        operation, cells = self._operation, self._cells
        self._operation, self._cells = "", {}
        if operation not in ("write", "read"):
            return
        if self._summarising and {"max", "mean", "mean_s"} <= cells.keys():
            wanted = cells.get("test", "")
            test = next((t for t in tests if str(t.number) == wanted), tests[-1])
            test.summary[operation] = {**cells, "aggs_unit": "MiB"}
        elif not self._summarising and {"bwMiB", "totalTime"} <= cells.keys():
            group = tests[-1].groups.setdefault(operation, Group())
            group.rows.append((cells["bwMiB"], cells["totalTime"], cells.get("blockKiB", "")))
