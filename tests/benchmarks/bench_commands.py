"""What a call of the command line costs before it does its work, beside Python's own start: commands in turn."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from measuring import about

LAUNCH = ("-m", "transect", "launch", "--framework", "numpy", "--strategy", "single", "--ranks", "1")
COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "transect --help": ("-m", "transect", "--help"),
    "transect launch … --dry-run -- true": (*LAUNCH, "--dry-run", "--", "true"),
    "transect launch … -- true": (*LAUNCH, "--", "true"),
}


def main() -> None:
    """Print a row for each command. A folder in PYTHONPATH with another version of a library measures that one."""
    # Without the compiled modules every call would compile: what is installed has them.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 15):
        for name, words in COMMANDS.items():
            begin = time.perf_counter()
            subprocess.run([sys.executable, *words], env=variables, stdout=subprocess.DEVNULL, check=True)
            times[name].append(1e3 * (time.perf_counter() - begin))
    print(f"# {about()}\n| command | least, ms | median, ms | median over Python's own |\n|---|---|---|---|")
    start = statistics.median(times["python -c pass"])
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"| `{name}` | {min(found):.0f} | {middle:.0f} | {middle / start:.1f} |")


if __name__ == "__main__":
    main()
