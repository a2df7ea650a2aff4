"""Jobs that died before their program printed a line that is its own: only the launcher's line names it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePath

from transect.hpc.base import Parser, Run, RunStatus
from transect.hpc.block import TROUBLE
from transect.hpc.text import Line, excerpt

# `+ ` is what a shell prints before a command under `set -x`; words before the program are options, a
# container, a wrapper.
_LAUNCHERS = (
    r"(?:\+{1,4}[ \t]+|\$[ \t]+|executing:[ \t]+|Command:[ \t]+|cmd = )?"
    r"(?:srun|mpirun|mpiexec(?:\.hydra)?|orterun|prterun|ibrun|aprun|jsrun|lrun|flux run|pdsh)[ \t]"
)
_END = r"(?=[\s\"';]|\Z)"
_TROUBLE = re.compile("|".join(TROUBLE))
_WORDS = re.compile(
    r"\b(?:error|fail(?:ed|ure)?|fatal|abort(?:ed)?|killed|cannot|can't|unable|denied|unrecognized|unknown option"
    r"|not (?:found|in range|available|supported)|no such|out of memory|segmentation|exceeded|invalid|illegal"
    r"|timed? ?out|cancelled)\b",
    re.IGNORECASE,
)
# What a launcher may start beside a benchmark's program, whose name is then a file's.
_NO_BENCHMARK = re.compile(
    r"[ \t](?:[^\s]{0,200}/)?(?:ls|cat|cp|mv|rm|mkdir|rmdir|echo|printf|stat|du|df|tar|chmod|touch|grep|find|ldd"
    r"|which|file|lfs|head|tail|wc|sbcast|md5sum|sha256sum)[ \t]"
)
# Options of launchers that take a value in the next word, which may be called like a program.
_VALUE_NEXT = re.compile(
    r"[ \t](?:-[ADJeopqtwx]|-(?:wdir|path|host|hosts|x|env)|--(?:account|chdir|comment|container-(?:image|mounts|name)"
    r"|error|export|host|hosts|input|job-name|name|nodelist|output|partition|prefix|qos|reservation|tag|time"
    r"|wdir|workdir))[ \t]+\Z"
)
_LINES = 400
_KEPT = 3
# What stands in a script and in no log of it: variables, redirections, a command that goes on in the next line.
_SCRIPTED = re.compile(r"\\$|\$[\w({@]|(?<![-=<])>|\|\||&&")
_SOURCE = re.compile(
    rb"\A\s*#(?:!|SBATCH|PBS|BSUB|COBALT|OAR|FLUX:)|^[ \t]*(?:```|~~~(?!~)|\.\. code|apiVersion:)", re.MULTILINE
)
# fmt: off
_SOURCES = frozenset((
    ".md", ".rst", ".html", ".htm", ".adoc", ".ipynb", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".sh", ".bash", ".slurm",
    ".sbatch", ".pbs", ".lsf", ".py", ".pl", ".lua", ".c", ".cc", ".cpp", ".h", ".hpp", ".cu", ".f90", ".go", ".rs", ".js",
    ".j2", ".jinja", ".tmpl", ".template", ".mk", ".cmake",
))
# fmt: on
# A job may show its script first.
_LOG_NAMES = re.compile(r"slurm-\d|.*\.(?:out|err|log|stdout|stderr|[oe]\d+)\Z", re.IGNORECASE)
_SOURCE_NAMES = frozenset(("makefile", "dockerfile", "jenkinsfile"))


def is_source(file: str, head: bytes, *, named: bool = True) -> bool:
    """Tell whether a file is a script, a page or a program's source, where a launcher's line started nothing.

    What is `named` as a log is none, whatever it begins with.
    """
    path = PurePath(file)
    if path.suffix.lower() in _SOURCES or path.name.lower() in _SOURCE_NAMES:
        return True
    return not (named and _LOG_NAMES.match(path.name)) and _SOURCE.search(head) is not None


def _programs(parser: Parser) -> str:
    return rf"(?:[^\s]{{0,200}}/)?(?:{'|'.join(parser.programs)}){_END}"


def _started(text: str, program: re.Match[str]) -> bool:
    """Tell whether a word that is called like a program is one: no option, and no option's value."""
    before = text[max(0, program.start() - 80) : program.start()]
    return not program[0].startswith("-") and _VALUE_NEXT.search(before) is None


def launch_pattern(parsers: Iterable[Parser]) -> str:
    """Return the pattern of a launcher's line that names a program of one of the parsers."""
    named = "|".join(pattern for parser in parsers for pattern in parser.programs)
    return rf"{_LAUNCHERS}[^\n]{{0,2000}}?[/ \t](?:{named}){_END}"


@dataclass(kw_only=True, slots=True)
class Launch:
    """A program that a launcher started, and the log's lines after that."""

    line: int
    benchmark: str
    program: str
    command: str = ""
    rank: int | None = None
    traced: bool = False  # the shell itself says that it runs it
    scripted: bool = False
    troubled: bool = False
    words: list[str] = field(default_factory=list)
    seen: int = 0

    @classmethod
    def of(cls, line: Line, parsers: Iterable[Parser]) -> Launch | None:
        """Return the launch of a line, of the parser whose program stands first in it; None for none."""
        found: list[tuple[int, str, str]] = []
        for parser in parsers:
            if parser.programs:
                matches = re.finditer(rf"(?<![^\s]){_programs(parser)}", line.text)
                match = next((candidate for candidate in matches if _started(line.text, candidate)), None)
                if match is not None:
                    found.append((match.start(), parser.benchmark, match[0]))
        if not found:
            return None
        start, benchmark, program = min(found)
        if _NO_BENCHMARK.search(line.text, 0, start):
            return None
        return cls(
            line=line.number,
            benchmark=benchmark,
            program=program,
            command=line.text[start:].strip(),
            rank=line.rank,
            traced=line.text.lstrip().startswith("+"),
            scripted=_SCRIPTED.search(line.text) is not None,
        )

    def believed(self, *, source: bool) -> bool:
        """Tell whether it took place: `source` where the file is a script or a page (`is_source`)."""
        return self.traced or self.troubled or not (source or self.scripted)

    def repeats(self, before: Launch) -> bool:
        """Tell whether it is the launch before once more: shells, launchers and ranks say one command twice."""
        if self.benchmark != before.benchmark:
            return False
        return not before.words or self.command == before.command or self.rank != before.rank

    @property
    def open(self) -> bool:
        """Whether it still looks at every line."""
        return self.seen < _LINES and len(self.words) < _KEPT

    def read(self, line: Line) -> None:
        """Keep the first lines that say why a program stopped, each once."""
        self.seen += 1
        text = line.text.strip()
        message = excerpt(text)
        if message in self.words or len(self.words) >= _KEPT or text.startswith(("+", "#")):
            return
        troubled = _TROUBLE.match(text) is not None
        if troubled or _WORDS.search(text):
            self.troubled = self.troubled or troubled
            self.words.append(message)

    def run(self, file: str, last_line: str) -> Run:
        """Return what it left: no result, `failed` with the log's own words, else `truncated`."""
        began = f"{excerpt(self.program, 60)} was started and printed no line of its own"
        if self.words:
            status, reason = RunStatus.FAILED, f"{began}: {'; '.join(self.words)}"
        else:
            status = RunStatus.TRUNCATED
            reason = f"{began}; the log ends with: {excerpt(last_line)}"
        return Run(file=file, line=self.line, benchmark=self.benchmark, status=status, reason=reason)
