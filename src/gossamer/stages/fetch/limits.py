"""Open files: a process may have as many as the operating system lets it."""

from __future__ import annotations

import resource

SPARE = 256  # besides connections


def raise_file_limit(connections: int) -> None:
    """Raise this process's own limit as far as it may, if it needs that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3 * connections + SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
