"""How long `gossamer --help` takes, beside a bare interpreter and a bare `import typer`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.report import table

ROUNDS = 9


def median_ms(command: list[str]) -> float:
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    return 1000 * sorted(taken)[ROUNDS // 2]


def main(_: list[str]) -> None:
    gossamer = str(Path(sys.executable).with_name("gossamer"))
    commands = {
        "gossamer --help": [gossamer, "--help"],
        "gossamer --version": [gossamer, "--version"],
        "python -c 'import typer, rich.console'": [sys.executable, "-c", "import typer, rich.console"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    taken = {name: median_ms(command) for name, command in commands.items()}
    bare = taken["python -c pass"]
    table(
        "Start-up, median of 9",
        ["command", "ms", "times bare Python"],
        [[n, f"{t:.0f}", f"{t / bare:.1f}"] for n, t in taken.items()],
    )


if __name__ == "__main__":
    main(sys.argv[1:])
