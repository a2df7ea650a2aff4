"""Finds the runs of all known benchmarks in one stream, in one pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from transect.domain.errors import FAULTS
from transect.hpc.base import PARSERS, UNKNOWN, Parser, Run, RunStatus
from transect.hpc.block import STARTS, TROUBLE, Block
from transect.hpc.hosts import MAX_HOSTS
from transect.hpc.launched import Launch, is_source, launch_pattern
from transect.hpc.prefilter import LinePattern
from transect.hpc.refusal import Refusal
from transect.hpc.text import Line, Reader, excerpt, line_pattern

_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")
# What stands for a number, or for words, in a form that nobody has filled in.
_PLACEHOLDER = re.compile(
    r"\bX{1,6}\.X{1,6}\b|[\[<](?:(?:fill|insert|enter)[ _\-]?(?:in|here|value)?|TBD|TODO)[\]>]|<(?:value|number|result)>",
    re.IGNORECASE,
)
_NOTHING = (RunStatus.TRUNCATED, RunStatus.NO_RESULT)
# Finds what is suspicious, refuses nothing.
_DOUBTS = Refusal()
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b\0")) + b"\x7f"


class Scanner:
    """Holds the parsers and the patterns made of theirs; one instance serves many files."""

    def __init__(self, benchmark: str | None = None) -> None:
        """Use all parsers, or one: `benchmark` overrides the guess.

        Raises BadInput with the nearest name when there is no such parser.
        """
        self._forced = None if benchmark is None else PARSERS.get(benchmark)
        self._parsers = [PARSERS.get(name) for name in PARSERS]
        self._starts = {p.benchmark: re.compile("|".join(p.start_patterns)) for p in self._parsers}
        self._any_start = re.compile("|".join(s for p in self._parsers for s in p.start_patterns))
        launched = launch_pattern(self._parsers)
        self._launched = re.compile(launched)
        self._idle = line_pattern([*(s for p in self._parsers for s in p.start_patterns), launched], hosts=True)
        self._every = line_pattern()
        # Made when a log has their benchmark: one takes a hundredth of a second.
        self._inside: dict[str, LinePattern | re.Pattern[bytes]] = {}
        if self._forced is not None:
            wants = self._forced.line_patterns
            self._idle = (
                self._every if wants is None else line_pattern([*wants, *self._forced.start_patterns], hosts=True)
            )

    def _inside_pattern(self, parser: Parser) -> LinePattern | re.Pattern[bytes]:
        """Return the pattern of all lines that matter inside a block; its lists are those of `Block`."""
        if parser.line_patterns is None:
            return self._every
        pattern = self._inside.get(parser.benchmark)
        if pattern is None:
            starts = [start for other_parser in self._others(parser) for start in other_parser.start_patterns]
            starts += [] if self._forced else [self._launched.pattern]
            patterns = (*parser.line_patterns, *(parser.start_patterns if self._forced else ()))
            pattern = self._inside[parser.benchmark] = line_pattern(starts, TROUBLE, patterns)
        return pattern

    def _others(self, parser: Parser) -> list[Parser]:
        if self._forced:
            return []
        inside = parser.nested | {parser.benchmark}
        return [p for p in self._parsers if p.benchmark not in inside]

    def _opener(self, line: Line, among: list[Parser]) -> Parser | None:
        text = line.text.lstrip()
        if self._any_start.match(text):
            for parser in among:
                if self._starts[parser.benchmark].match(text) and parser.matches(line):
                    return parser
        return None

    def scan(self, stream: BinaryIO, file: str) -> Iterator[Run]:
        """Yield every run; a stream without one yields a single `unknown` run that says why.

        Where hosts' labels stand in front of the lines it is read once for each host, from its beginning.
        """
        reader = Reader(stream, self._idle)
        yield from self._scanned(reader, file)
        others = reader.hosts.others
        for host in others[:MAX_HOSTS]:
            stream.seek(0)
            reader.hosts.turn_to(host)
            yield from self._scanned(Reader(stream, self._idle, reader.hosts), file, again=True)
        if len(others) > MAX_HOSTS:
            why = f"lines of more than {MAX_HOSTS} hosts: those of {excerpt(others[-1].decode('utf-8', 'replace'))}"
            yield no_result(file, f"{why} and of further ones were not read")

    def _scanned(self, reader: Reader, file: str, *, again: bool = False) -> Iterator[Run]:
        understood = False
        pushed: Line | None = None
        launch: Launch | None = None
        adopted: set[bytes] = set()

        def believed(candidate: Launch, *, last: bool = False) -> bool:
            # Before other output the words behind a line of a script that is shown may be the script's own.
            return candidate.believed(source=is_source(file, reader.head, named=last))

        while True:
            # After a launcher's line every line counts, for a while: a program may die with any words.
            reader.pattern = self._every if launch is not None and launch.open else self._idle
            line = pushed or reader.next_line()
            if line is None:
                break
            parser = self._forced or self._opener(line, self._parsers)
            if line.host and self._forced and self._opener(line, [self._forced]) is None:
                # `cpus: 2` has no host: only what begins a benchmark's output tells one.
                parser = None
            if parser is not None and line.host and line.host not in adopted:
                adopted.add(line.host)
                reader.adopt(line.host, joined=parser.merge_hosts)
                continue
            if parser is None:
                pushed = None
                found = self._launch(line, launch)
                if launch is not None and found is not launch and launch.words and believed(launch):
                    yield launch.run(file, "")
                launch = found
                continue
            if launch is not None and launch.words and launch.benchmark != parser.benchmark and believed(launch):
                yield launch.run(file, "")
            block = self._block(parser, file, reader, line)
            if launch is not None and launch.benchmark == parser.benchmark:
                block.command = launch.command
            launch = None
            runs = _parse(parser, block)
            if not self._forced:
                runs = _of_a_log(runs, block, is_source(file, reader.head), reader.head)
            for run in runs:
                understood = True
                yield _DOUBTS.judged(run)
            pushed = block.pushed_back
        if launch is not None and believed(launch, last=True):
            yield launch.run(file, reader.last_line())
        elif not understood and not again:
            yield self._nothing(reader, file)

    def _launch(self, line: Line, before: Launch | None) -> Launch | None:
        """Return the launch that a line is, or the one that it is a line of."""
        if not line.host and self._launched.match(line.text.lstrip()):
            found = Launch.of(line, self._parsers)
            if found is not None and (before is None or not found.repeats(before)):
                return found
            if found is not None and before is not None:
                before.traced = before.traced or found.traced
        if before is not None:
            before.read(line)
        return before

    def _launches(self, line: Line, others: list[Parser]) -> bool:
        """Tell whether a launcher starts one of these, so that the lines after it belong to that program."""
        if not others or not self._launched.match(line.text.lstrip()):
            return False
        launch = Launch.of(line, self._parsers)
        return launch is not None and launch.benchmark in {other_parser.benchmark for other_parser in others}

    def _block(self, parser: Parser, file: str, reader: Reader, line: Line) -> Block:
        reader.pattern = self._inside_pattern(parser)
        others = self._others(parser)
        wanted = (
            None
            if parser.line_patterns is None
            else re.compile("|".join((*parser.line_patterns, *parser.start_patterns)))
        )

        def ends(next_line: Line) -> bool:
            if next_line.found_by not in (0, STARTS):
                return False
            return self._opener(next_line, others) is not None or self._launches(next_line, others)

        return Block(file, parser.benchmark, reader, line, ends, wanted)

    def _nothing(self, reader: Reader, file: str) -> Run:
        benchmark = self._forced.benchmark if self._forced else UNKNOWN
        if reader.size == 0:
            return no_result(file, "the file is empty", benchmark)
        if (kind := _binary(reader.head)) is not None:
            return no_result(file, f"the file is binary: {kind}", benchmark)
        what = f"output of {benchmark}" if self._forced else "output of a known benchmark"
        first = excerpt(reader.first_line or reader.last_line())
        return no_result(file, f"no {what} in it; the first line is: {first or '(blank)'}", benchmark)


def no_result(file: str, reason: str, benchmark: str = UNKNOWN) -> Run:
    """Make the run that stands for a file without one."""
    return Run(file=file, line=0, benchmark=benchmark, status=RunStatus.NO_RESULT, reason=reason)


def _of_a_log(runs: Iterator[Run], block: Block, source: bool, head: bytes) -> Iterator[Run]:
    """Yield the runs of a block, and none of what is no log.

    Words stand in the place of all numbers, or a script or a page (`source`) has lines with which output begins,
    without a number behind them.
    """
    held: list[Run] | None = []
    for run in runs:
        if held is not None and not run.metrics:
            held.append(run)
            continue
        yield from held or ()
        held = None
        yield run
    if not held or (source and all(run.status in _NOTHING for run in held)):
        return
    texts = (block.first.text, head.decode("utf-8", "replace"), *(run.reason for run in held))
    form = any(map(_PLACEHOLDER.search, texts))
    # What a program says of its options looks like a form, and is there where it was refused.
    yield from (run for run in held if run.status is RunStatus.FAILED or not form)


def _parse(parser: Parser, block: Block) -> Iterator[Run]:
    """Run a parser over a block. What it raises becomes a run: other files must still be read."""
    count = 0
    line = block.first.number
    try:
        for run in parser.parse(block):
            count += 1
            yield run
    except FAULTS as error:  # a plug-in may raise anything
        what = f"{type(error).__name__}: {excerpt(str(error))}"
        for _ in block:
            pass
        count += 1
        yield Run(
            file=block.file,
            line=line,
            benchmark=parser.benchmark,
            status=RunStatus.FAILED,
            reason=f"fault of the parser '{parser.benchmark}': {what}",
        )
    if count == 0:
        yield Run(
            file=block.file,
            line=line,
            benchmark=parser.benchmark,
            status=RunStatus.NO_RESULT,
            reason=f"a start line without a result: {excerpt(block.first.text)}",
        )


def _binary(head: bytes) -> str | None:
    if head.startswith(_PACKED):
        return "packed data: unpack it first"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    if len(head) - len(head.translate(None, _CONTROL)) > len(head) // 20:
        return "more than a twentieth of its first bytes are control characters"
    return "its first bytes are all zero" if head.count(0) == len(head) else None
