"""`python -m benchmarks [NAME [ARGUMENTS]]`: one benchmark, or all of them."""

from __future__ import annotations

import importlib
import os
import platform
import sys

ALL = ("start", "urls", "engine", "merge", "inject", "crawldb", "fetch", "simweb", "realism", "politeness", "hostile")


def main() -> None:
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}")
    names = [sys.argv[1]] if len(sys.argv) > 1 else ALL
    for name in names:
        if name not in ALL:
            raise SystemExit(f"there is no benchmark {name}; choose from {', '.join(ALL)}")
        importlib.import_module(f"benchmarks.{name}").main(sys.argv[2:])


if __name__ == "__main__":
    main()
