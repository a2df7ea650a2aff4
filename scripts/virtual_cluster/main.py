"""The command line."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from . import cluster, world
from .errors import BadInput, ClusterError
from .options import Link, Options
from .shell import shell
from .state import Folder
from .status import Status, status

EXIT_CODES = """\
exit codes: 0 done, 1 something failed, 2 bad input, 3 not up, unhealthy or not possible here;
`shell` returns the exit code of its command.
State: $TRANSECT_CLUSTERS, else transect-clusters in $XDG_RUNTIME_DIR, $TMPDIR or /tmp.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message} (see {self.prog} --help)")


def _add_up(add: argparse._SubParsersAction[_Parser], common: _Parser) -> None:
    default = Options()
    up = add.add_parser("up", parents=[common], help="start a cluster; idempotent")
    for option, value, text in (
        ("--nodes", default.nodes, "CPU nodes n1, n2, ..."),
        ("--gpu-nodes", default.gpu_nodes, "nodes g1, g2, ... with fake GPUs"),
        ("--gpus-per-node", default.gpus_per_node, "fake GPUs of each"),
        ("--cpus", default.cpus, "CPUs declared per node; all nodes share the machine's"),
        ("--memory-mb", default.memory_mb, "memory declared per node"),
        ("--max-time", default.max_time_min, "time limit of the partitions in minutes"),
    ):
        metavar = "MIN" if option == "--max-time" else "N"
        up.add_argument(option, type=int, default=value, metavar=metavar, help=f"{text} (default {value})")
    up.add_argument("--accounting", action="store_true", help="run slurmdbd with MariaDB")
    up.add_argument(
        "--link",
        action="append",
        default=[],
        metavar="NAME=RATE[,DELAY]",
        help="one more interface NAME on every node, such as fast=1gbit,50us; NAME= is not shaped; may be repeated",
    )


def _parser() -> _Parser:
    parser = _Parser(
        prog="virtual-cluster",
        description="A throw-away multi-node Slurm cluster on this machine, in private namespaces.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    common = _Parser(add_help=False)
    common.add_argument("--name", default="default", help="which cluster (default: default)")
    add = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_up(add, common)
    down = add.add_parser("down", help="end a cluster and leave nothing")
    which = down.add_mutually_exclusive_group()
    which.add_argument("--name", default="default", help="which cluster (default: default)")
    which.add_argument("--all", action="store_true", help="all clusters of this user")
    shown = add.add_parser("status", parents=[common], help="tell how a cluster is")
    shown.add_argument("--json", action="store_true", help="for programs")
    run = add.add_parser(
        "shell",
        parents=[common],
        help="run a command, or a shell, on the login node",
        usage="%(prog)s [--name NAME] [--node NODE] [-- COMMAND...]",
    )
    run.add_argument("--node", help="on this compute node instead")
    for command, text in (
        ("kill-node", "cut a node's power: all that runs on it dies at once"),
        ("start-node", "power a node on"),
    ):
        add.add_parser(command, parents=[common], help=text).add_argument("node")
    again = add.add_parser("restart", parents=[common], help="restart a daemon; jobs go on")
    again.add_argument("daemon", choices=("slurmd", "slurmctld"))
    again.add_argument("node", nargs="?", help="with slurmd: on which node")
    shape = add.add_parser("shape", parents=[common], help="change a link while the cluster is up")
    shape.add_argument("link", help="eth0 (rate only) or a name given by --link")
    shape.add_argument("--rate", help="such as 100mbit; '' for no limit")
    shape.add_argument("--delay", help="one way, such as 50us; '' for none")
    return parser


def _up(given: argparse.Namespace, folder: Folder) -> int:
    options = Options(
        nodes=given.nodes,
        gpu_nodes=given.gpu_nodes,
        gpus_per_node=given.gpus_per_node,
        cpus=given.cpus,
        memory_mb=given.memory_mb,
        accounting=given.accounting,
        max_time_min=given.max_time,
        links=tuple(Link.parse(text) for text in given.link),
    )
    now, took_s = cluster.up(folder, options)
    _show(now)
    if took_s is None:
        print("it was up already, with these options")
    else:
        print(f"up in {took_s:.2f} s")
    return 0 if now.healthy else 3


def _show(now: Status) -> None:
    print("\n".join(now.lines()))


def _down(given: argparse.Namespace, folder: Folder) -> int:
    if given.all:
        names = cluster.down_all()
        print(f"ended: {', '.join(names)}" if names else "no cluster was there")
    else:
        there = cluster.down(folder)
        print(f"cluster {folder.name} {'ended' if there else 'was not there'}")
    return 0


def _shell(given: argparse.Namespace, folder: Folder, argv: Sequence[str]) -> int:
    options = cluster.options_of(folder)
    init = cluster.world_of(folder) if given.node is None else cluster.init_of(folder, options.node(given.node))
    return shell(init, argv or [os.environ.get("SHELL", "/bin/sh")])


def _dispatch(given: argparse.Namespace, folder: Folder, rest: Sequence[str]) -> int:
    match given.command:
        case "up":
            return _up(given, folder)
        case "down":
            return _down(given, folder)
        case "status":
            now = status(folder)
            if given.json:
                print(json.dumps(now.as_json(), indent=1))
            else:
                _show(now)
            return 0 if now.healthy else 3
        case "shell":
            return _shell(given, folder, rest)
        case "kill-node":
            cut = cluster.kill_node(folder, given.node)
            print(f"{given.node}: power cut" if cut else f"{given.node}: was off already")
        case "start-node":
            on = cluster.start_node(folder, given.node)
            print(f"{given.node}: power on" if on else f"{given.node}: was on already")
        case "restart":
            cluster.restart(folder, given.daemon, given.node)
            print(f"{given.daemon} restarted")
        case "shape":
            link = cluster.shape(folder, given.link, given.rate, given.delay).link(given.link)
            shape = ", ".join(filter(None, (link.rate, link.delay))) or "not shaped"
            print(f"link {link.name}: {shape}")
    return 0


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide at the first ``--``: argparse would eat a later one of the command's own."""
    argv = list(argv)
    if "--" not in argv:
        return argv, []
    at = argv.index("--")
    return argv[:at], argv[at + 1 :]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] == ["_world"]:  # how `up` starts the first process
        world.make(Folder(Path(argv[1])))
    try:
        own, rest = _split(argv)
        given = _parser().parse_args(own)
        if rest and given.command != "shell":
            raise BadInput(f"{given.command}: expected nothing after --, but got {rest[0]!r}")
        return _dispatch(given, Folder.of(given.name), rest)
    except ClusterError as error:
        print(f"virtual-cluster: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("virtual-cluster: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            os.close(1)
        return 1
    except OSError as error:
        print(f"virtual-cluster: {error}", file=sys.stderr)
        return 1
