"""Logs of IO500 as the tests of its parser need them."""

from __future__ import annotations

import math

BW = {"ior-easy-write": 4.0, "ior-hard-write": 0.5, "ior-easy-read": 8.0, "ior-hard-read": 1.0}


MD = {
    "mdtest-easy-write": 20.0,
    "mdtest-hard-write": 5.0,
    "find": 640.0,
    "mdtest-easy-stat": 80.0,
    "mdtest-hard-stat": 40.0,
    "mdtest-easy-delete": 10.0,
    "mdtest-hard-read": 16.0,
    "mdtest-hard-delete": 8.0,
}


EXTRA = {"ior-rnd4K-write": 0.25, "find-easy": 320.0}


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def scores(bw: dict[str, float], md: dict[str, float]) -> tuple[float, float, float]:
    bandwidth, metadata = mean(list(bw.values())), mean(list(md.values()))
    return bandwidth, metadata, math.sqrt(bandwidth * metadata)


def seconds(name: str) -> float:
    return 320.125 if name.endswith("write") else 41.5


def summary(extended: bool = False, version: str = "io500-sc23_v1") -> str:
    mode = "extended" if extended else "standard"
    out = [f"IO500 version {version} ({mode})"]
    phases = {**BW, **MD, **(EXTRA if extended else {})}
    for name, value in phases.items():
        unit = "GiB/s" if name.startswith("ior") else "kIOPS"
        out.append(f"[RESULT] {name:>20} {value:15f} {unit} : time {seconds(name):.3f} seconds")
    out.append(f"[      ] {'timestamp':>20} {0.0:15f} kIOPS : time 0.001 seconds")
    out.append(f"[      ] {'ior-rnd4K-easy-read':>20} {0.125:15f} GiB/s : time 30.000 seconds")
    bw, md, total = scores(BW, MD)
    out.append(f"[SCORE ] Bandwidth {bw:f} GiB/s : IOPS {md:f} kiops : TOTAL {total:f}")
    if extended:
        bw, md, total = scores({**BW, "ior-rnd4K-write": 0.25}, {**MD, "find-easy": 320.0})
        out.append(f"[SCOREX] Bandwidth {bw:f} GiB/s : IOPS {md:f} kiops : TOTAL {total:f}")
    return "\n".join(out) + "\n"


def ini() -> str:
    out = ["[run]", "procs           = 96", "version         = io500-isc24_v1"]
    out += ["config-hash     = 1A2B3C4D", "result-dir      = ./results/x", "mode            = standard"]
    out += ["; START 2024-01-01 00:00:00", ""]
    for name, value in {**BW, **MD}.items():
        out += ["", f"[{name}]", "t_start         = 2024-01-01 00:00:01"]
        out += ["exe             = ./ior -C -Q 1 -g", f"score           = {value:f}"]
        out += [f"t_delta         = {seconds(name):.4f}", "t_end           = 2024-01-01 00:05:00"]
    out += ["", "[timestamp]", "t_delta         = 0.0010"]
    bw, md, total = scores(BW, MD)
    out += ["", "[SCORE]", f"MD              = {md:f}", f"BW              = {bw:f}"]
    out += [f"SCORE           = {total:f}", "hash            = 5E6F7A8B", "; END 2024-01-01 02:00:00"]
    return "\n".join(out) + "\n"


def bash() -> str:
    lines = {}
    for kind, phases, unit in (("BW  ", BW, "GiB/s"), ("IOPS", MD, "kiops")):
        for place, (name, value) in enumerate(phases.items()):
            shown = name.replace("-", "_")
            lines[shown] = (
                f"[RESULT] {kind} phase {place + 1} {shown:>25} {value:20.3f} {unit} "
                f": time {seconds(name):6.2f} seconds"
            )
    out = []
    for name, line in lines.items():
        out += ["", f"[Starting] {name}", "[Exec] mpirun -np 96 bin/ior -w", line]
    out += ["[Summary] Results files in /fs/results", *lines.values()]
    bw, md, total = scores(BW, MD)
    out.append(f"[SCORE] Bandwidth {bw:.6g} GB/s : IOPS {md:.6g} kiops : TOTAL {total:.6g}")
    return "\n".join(out) + "\n"


def pretty(value: float) -> str:
    digits = 6 if value < 1 else 2 if value < 3600 else 0
    return f"{value:<10.{digits}f} "
