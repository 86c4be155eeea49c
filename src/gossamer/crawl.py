"""Crawl: the Python door. Open a crawl, read its tables as Ibis tables, run its stages."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from gossamer.clock import Clock, format_time
from gossamer.errors import UsageError
from gossamer.events import Event, Reporter, Silent
from gossamer.settings import FILE, Origins, load_settings, template
from gossamer.storage import snapshots
from gossamer.storage.files import Exists, Files, open_files
from gossamer.storage.snapshots import Snapshot

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pluggy
    import pyarrow as pa

    from gossamer.engine.base import Engine
    from gossamer.storage.runs import RunRecord
    from gossamer.tables.read import Source
    from gossamer.tables.spec import Table

SHARDS = 16


class Crawl:
    """One crawl: a directory, or a prefix in a bucket.

    with Crawl("mycrawl") as crawl:
        crawl.table("crawldb").count().execute()
    """

    def __init__(
        self,
        root: str,
        *,
        sets: Sequence[str] = (),
        reporter: Reporter | None = None,
        clock: Callable[[], Clock] = Clock.system,
        files: Files | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.files = files or open_files(str(root))
        self.clock = clock
        self._sets = sets
        self._given_engine = engine
        self._reporter = reporter or Silent()
        snapshots.latest(self.files)

    @classmethod
    def init(cls, root: str, *, shards: int = SHARDS, clock: Clock | None = None, **options: Any) -> Crawl:
        """Make an empty crawl with a commented settings file."""
        if shards < 1 or shards & (shards - 1):
            raise UsageError(f"{shards} shards: choose a power of two")
        files = options.get("files") or open_files(str(root))
        with suppress(Exists):
            files.create(FILE, template().encode())
        snapshots.publish_first(files, shards, format_time((clock or Clock.system()).now))
        return cls(root, **options)

    @cached_property
    def origins(self) -> Origins:
        """Settings and where each came from."""
        text = self.files.read(FILE).decode() if self.files.exists(FILE) else ""
        return load_settings(text, self.files.url(FILE), sets=self._sets)

    @property
    def settings(self) -> Any:
        """The settings in force."""
        return self.origins.settings

    @property
    def origin(self) -> dict[str, str]:
        """Where the value of each dotted key came from."""
        return self.origins.origin

    @cached_property
    def plugins(self) -> pluggy.PluginManager:
        """The plugins of this crawl."""
        from gossamer.plugins.manager import load_plugins

        return load_plugins(self.settings.plugins)

    @cached_property
    def engine(self) -> Engine:
        """Where this crawl's jobs run; started on first use."""
        from gossamer.engine import open_engine

        return self._given_engine or open_engine(self.settings.engine, self.files)

    @property
    def snapshot(self) -> Snapshot:
        """The latest snapshot."""
        return snapshots.latest(self.files)

    @property
    def reporter(self) -> Reporter:
        """Tells the listener of this crawl, and plugins that want to know."""
        return _WithPlugins(self._reporter, self)

    def tables_at(self, snapshot: Snapshot) -> dict[str, Table]:
        """The tables, with the columns of plugins and those the snapshot's files hold."""
        from gossamer.plugins.manager import plugin_columns
        from gossamer.tables.extra import remembered, tables_with

        return tables_with(remembered(snapshot, plugin_columns(self.plugins)))

    def source(self, snapshot: int | None = None) -> Source:
        """The crawl at a snapshot, for reading."""
        from gossamer.tables.read import Source

        at = self.snapshot if snapshot is None else snapshots.load(self.files, snapshot)
        return Source(self.engine, self.files, at, self.tables_at(at))

    def table(self, name: str, *, segment: str | None = None, snapshot: int | None = None) -> ir.Table:
        """A table of the crawl as an Ibis table."""
        source = self.source(snapshot)
        if name not in source.tables:
            raise UsageError(f"there is no table {name}; choose from {', '.join(sorted(source.tables))}")
        return source.table(name, segment=segment)

    def run(self, stage: str, *, segment: str | None = None, **arguments: Any) -> RunRecord:
        """Run a stage of the pipeline; the same call again resumes it."""
        from gossamer.runner import run_stage

        return run_stage(self, stage, arguments, segment)

    def load(self, table: str, *paths: str, segment: str | None = None) -> RunRecord:
        """Add rows from files to a table."""
        from gossamer.stages.load.rows import stamp_of

        known = list(map(str, paths))
        arguments = {"table": table, "paths": known, "stamps": [stamp_of(path) for path in known]}
        return self.run("load", segment=segment, **arguments)

    def compact(self, *tables: str) -> list[RunRecord]:
        """Fold change sets into the base of these tables, or of those that are due."""
        from gossamer.stages.rewrite.job import due

        snapshot = self.snapshot
        chosen = tables or [name for name in snapshot.tables if due(snapshot, name, self.settings.storage)]
        return [self.run("compact", table=name) for name in chosen]

    def batches(self, rows: ir.Table, *, small: bool = False) -> Iterator[pa.RecordBatch]:
        """Compute a table and stream its rows; through files, so that any number fits, unless they are few."""
        from gossamer.storage.parquet import Target, read_batches

        if small:
            yield from self.engine.collect(rows).to_batches()
            return
        with tempfile.TemporaryDirectory(prefix="gossamer-read-") as folder:
            files = open_files(folder) if self.engine.name == "embedded" else self.files
            target = Target(files, f"scratch/read-{uuid.uuid4().hex}", rows.schema().to_pyarrow())
            for entry in self.engine.write(rows, target):
                yield from read_batches(files, entry)
                files.delete(entry.path)

    def row_changes(self, name: str, old: int, new: int) -> list[dict[str, Any]]:
        """How many rows of a table were added, removed and changed between two snapshots."""
        from gossamer.tables.diff import changes

        before, after = self.table(name, snapshot=old), self.table(name, snapshot=new)
        found: list[dict[str, Any]] = self.engine.collect(
            changes(self.tables_at(self.snapshot)[name], before, after)
        ).to_pylist()
        return found

    def close(self) -> None:
        """Stop the engine."""
        if "engine" in self.__dict__ and self._given_engine is None:
            self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _WithPlugins:
    """A reporter that also tells the plugins."""

    def __init__(self, reporter: Reporter, crawl: Crawl) -> None:
        self._reporter, self._crawl = reporter, crawl

    def tell(self, event: Event) -> None:
        self._reporter.tell(event)
        self._crawl.plugins.hook.gossamer_event(event=event)
