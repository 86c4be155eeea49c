"""Crawl: the Python door. Open a crawl, read its tables as Ibis tables, run its stages."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from gossamer.clock import Clock, format_time
from gossamer.errors import CorruptError, SettingsError, UsageError, VersionError
from gossamer.events import Event, Reporter, Silent
from gossamer.settings import FILE, Settings, load_settings, template
from gossamer.storage import snapshots
from gossamer.storage.files import Exists, Files, open_files
from gossamer.storage.snapshots import Snapshot

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pluggy
    import pyarrow as pa

    from gossamer.engine.base import Engine
    from gossamer.rounds import Round
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
        self._given_engine = engine
        self._reporter = reporter or Silent()
        self._failing: set[str] = set()  # plugins whose failure was told
        self._verified: set[str] = set()
        with suppress(CorruptError):  # whoever reads it is told; a rollback must still be possible
            snapshots.latest(self.files)
        self.origins = load_settings(_settings_text(self.files), self.files.url(FILE), sets=sets)

    @classmethod
    def init(cls, root: str, *, shards: int = SHARDS, clock: Clock | None = None, **options: Any) -> Crawl:
        """Make an empty crawl with a commented settings file."""
        from gossamer.stages.rewrite.job import MAX_SHARDS

        if shards < 1 or shards & (shards - 1) or shards > MAX_SHARDS:
            raise UsageError(f"{shards} shards: choose a power of two from 1 to {MAX_SHARDS}")
        files = options.get("files") or open_files(str(root))
        load_settings(_settings_text(files), files.url(FILE), sets=options.get("sets", ()))
        with suppress(Exists):
            files.create(FILE, template().encode())
        snapshots.publish_first(files, shards, format_time((clock or Clock.system()).now))
        return cls(root, **options)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.origins.settings

    @property
    def verified(self) -> set[str] | None:
        """Files whose checksums were compared, if that is wanted."""
        return self._verified if self.settings.storage.verify_reads else None

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

        try:
            return self._given_engine or open_engine(self.settings.engine, self.files)
        except OSError as error:
            where = self.settings.engine.scratch or tempfile.gettempdir()
            raise SettingsError(
                f"engine.scratch: {where}: {error.strerror}; name a directory that can be written"
            ) from error

    @property
    def snapshot(self) -> Snapshot:
        """The latest snapshot."""
        return snapshots.latest(self.files)

    def tell(self, event: Event) -> int:
        """Tell the listener of this crawl and the plugins that want to know; how many of these failed."""
        from gossamer.plugins.manager import tell_plugins

        self._reporter.tell(event)
        failures = tell_plugins(self.plugins, event)
        for name, reason in failures.items():
            if name not in self._failing:
                self._failing.add(name)
                text = f"plugin {name}: gossamer_event failed ({reason}); the run goes on, fix the plugin"
                self._reporter.tell(
                    {k: event[k] for k in ("stage", "run") if k in event} | {"event": "note", "text": text}
                )
        return len(failures)

    def tables_at(self, *at: Snapshot) -> dict[str, Table]:
        """The tables, with the columns of plugins and those the snapshots' files hold."""
        from gossamer.plugins.manager import plugin_columns
        from gossamer.tables.extra import remembered, tables_with

        columns = plugin_columns(self.plugins)
        for snapshot in at:
            columns = remembered(snapshot, columns)
        tables = tables_with(columns)
        unknown = sorted({name for snapshot in at for name in snapshot.tables} - tables.keys())
        if unknown:
            raise VersionError(
                f"{self.files.root}: this Gossamer knows no table {unknown[0]}; upgrade with `pip install -U gossamer`"
            )
        return tables

    def source(self, snapshot: int | None = None) -> Source:
        """The crawl at a snapshot, for reading."""
        from gossamer.tables.read import Source

        at = self.snapshot if snapshot is None else snapshots.load(self.files, snapshot)
        return Source(self.engine, self.files, at, self.tables_at(at), self.verified)

    def table(self, name: str, *, segment: str | None = None, snapshot: int | None = None) -> ir.Table:
        """A table of the crawl as an Ibis table."""
        source = self.source(snapshot)
        _refuse_unknown(name, source.tables)
        return source.table(name, segment=segment)

    def run(self, stage: str, *, segment: str | None = None, **arguments: Any) -> RunRecord:
        """Run a stage of the pipeline; the same call again resumes it."""
        from gossamer.runner import run_stage

        return run_stage(self, stage, arguments, segment)

    def load(self, table: str, *paths: str, segment: str | None = None) -> RunRecord:
        """Add rows from files to a table."""
        from gossamer.stages.load.inputs import stamp_of

        _refuse_unknown(table, self.tables_at(self.snapshot))
        known = list(map(str, paths))
        arguments = {"table": table, "paths": known, "stamps": [stamp_of(path) for path in known]}
        return self.run("load", segment=segment, **arguments)

    def generate(
        self,
        *,
        top: int | None = None,
        batches: int = 1,
        hours: float = 0.0,
        urls: str | None = None,
        frequency: str | None = None,
    ) -> list[str]:
        """Choose what to fetch next; the names of the batches made."""
        record = self.run("generate", **self._generate_arguments(top, batches, hours, urls, frequency))
        made = self.snapshot.sets("fetchlist")
        return sorted({s.segment for s in made if s.segment and s.folder.rsplit("/", 1)[1] == record.run})

    def plan(
        self,
        *,
        top: int | None = None,
        batches: int = 1,
        hours: float = 0.0,
        urls: str | None = None,
        frequency: str | None = None,
    ) -> dict[tuple[str, str], int]:
        """What generate would choose: for each host and fate (`chosen`, `not due`, …) how many URLs."""
        from gossamer.runner import rehearsal
        from gossamer.stages.generate.job import Options, plan

        arguments = self._generate_arguments(top, batches, hours, urls, frequency)
        chosen = Options(arguments["top"], batches, hours, urls, frequency=frequency)
        return dict(plan(rehearsal(self, "generate", arguments), chosen))

    def _generate_arguments(
        self, top: int | None, batches: int, hours: float, urls: str | None, frequency: str | None
    ) -> dict[str, Any]:
        generate = self.settings.generate
        return {
            "top": top or generate.top,
            "batches": batches,
            "hours": hours,
            "urls": urls,
            "stamp": stamp(urls) if urls else "",
            "lease_hours": generate.lease_hours,
            "frequency": frequency,
        }

    def fetch(self, segment: str | None = None) -> RunRecord | None:
        """Fetch a batch (the oldest that waits, if none is named); None if there is none."""
        chosen = segment or next(iter(self.waiting()), None)
        return self.run("fetch", segment=chosen) if chosen else None

    def rounds(self, rounds: int, **generate: Any) -> Iterator[Round]:
        """Generate, fetch and update so many times; the same call again goes on where it was interrupted."""
        from gossamer.rounds import run_rounds

        return run_rounds(self, rounds, **generate)

    def waiting(self) -> list[str]:
        """Batches that still hold their URLs and were not fetched."""
        from gossamer.stages.generate.batches import LIVE, batches

        found = batches(self.files, self.snapshot, self.clock().now)
        return [batch.segment for batch in found if batch.state == LIVE and "fetch" not in batch.stages]

    def update(self, *segments: str) -> RunRecord | None:
        """Apply fetched segments (those not applied yet, if none is named); compacts the crawldb when that is due.

        The record of the update; None if there was nothing to apply (a compaction that was interrupted is still made).
        """
        chosen = sorted(segments) or self.pending()
        record = self.run("update", segments=chosen) if chosen else None
        self.tidy()
        return record

    def pending(self) -> list[str]:
        """Segments that were fetched and not applied yet."""
        snapshot = self.snapshot
        fetched = {s.segment for s in snapshot.sets("fetch") if s.segment}
        return sorted(name for name in fetched if "update" not in snapshot.segments.get(name, ()))

    def tidy(self) -> bool:
        """Fold the crawldb's change sets when they are many; when they hold much, purge and compact. Whether it was due."""
        from gossamer.stages.rewrite.job import due

        snapshot = self.snapshot
        wanted = due(snapshot, "crawldb", self.settings.storage) if snapshot.sets("crawldb") else None
        if wanted == "compact":
            self.run("purge")
        if wanted:
            self.run(wanted, table="crawldb")
        return wanted is not None

    def inject(
        self, *paths: str, source: str | None = None, update: bool = False, errors: str | None = None
    ) -> RunRecord:
        """Add the URLs of seed lists (`-`: stdin) to the crawldb; bad lines are written to the file `errors`."""
        from gossamer.stages.inject.inputs import spooled

        with spooled([str(path) for path in paths], self.files, self.settings.engine.scratch or None) as stamps:
            return self.run(
                "inject", paths=[*map(str, paths)], stamps=stamps, source=source, update=update, errors=errors
            )

    def compact(self, *tables: str) -> list[RunRecord]:
        """Fold change sets into the base of these tables; without any, do what is due for each."""
        from gossamer.stages.rewrite.job import due

        snapshot = self.snapshot
        for name in tables:
            _refuse_unknown(name, self.tables_at(snapshot))
        if tables:
            return [self.run("compact", table=name) for name in tables]
        called_for = {name: due(snapshot, name, self.settings.storage) for name in snapshot.tables}
        return [self.run(stage, table=name) for name, stage in called_for.items() if stage]

    def fold(self, table: str) -> RunRecord:
        """Make one change set of all change sets of a table."""
        _refuse_unknown(table, self.tables_at(self.snapshot))
        return self.run("fold", table=table)

    def batches(self, rows: ir.Table, *, small: bool = False) -> Iterator[pa.RecordBatch]:
        """Compute a table and stream its rows; through files, so that any number fits, unless they are few."""
        from gossamer.storage.parquet import Target, read_batches

        if small:
            yield from self.engine.collect(rows).to_batches()
            return
        scratch = self.settings.engine.scratch or None
        with tempfile.TemporaryDirectory(prefix="gossamer-read-", dir=scratch) as folder:
            files = open_files(folder) if self.engine.name == "embedded" else self.files
            target = Target(files, f"scratch/read-{uuid.uuid4().hex}", rows.schema().to_pyarrow())
            for entry in self.engine.write(rows, target):
                yield from read_batches(files, entry)
                files.delete(entry.path)

    def verify(self, *tables: str, snapshot: int | None = None) -> Iterator[dict[str, Any]]:
        """Check every file of these tables, or of all, against its checksum: table, path, bytes and error of each."""
        from gossamer.storage.parquet import verify

        at = self.snapshot if snapshot is None else snapshots.load(self.files, snapshot)
        for name in tables:
            _refuse_unknown(name, self.tables_at(at))
        for name in tables or sorted(at.tables):
            for entry in (e for s in at.sets(name) for e in snapshots.read_manifest(self.files, s)):
                error = ""
                try:
                    verify(self.files, entry)
                except CorruptError as damage:
                    error = str(damage)
                yield {"table": name, "path": entry.path, "bytes": entry.bytes, "error": error}

    def row_changes(self, name: str, old: int, new: int) -> list[dict[str, Any]]:
        """How many rows of a table were added, removed and changed between two snapshots."""
        from gossamer.tables.diff import changes
        from gossamer.tables.read import Source

        at = [snapshots.load(self.files, number) for number in (old, new)]
        tables = self.tables_at(*at)  # one of them may not know all columns
        _refuse_unknown(name, tables)
        before, after = (Source(self.engine, self.files, snapshot, tables).table(name) for snapshot in at)
        found: list[dict[str, Any]] = self.engine.collect(changes(tables[name], before, after)).to_pylist()
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


def stamp(path: str) -> str:
    """Size and time of a local file: a changed one makes another job."""
    try:
        known = Path(path).stat()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; check the path") from error
    return f"{known.st_size} {known.st_mtime_ns}"


def _refuse_unknown(name: str, tables: dict[str, Table]) -> None:
    if name not in tables:
        raise UsageError(f"there is no table {name}; choose from {', '.join(sorted(tables))}")


def _settings_text(files: Files) -> str:
    """What gossamer.toml says, if it is there."""
    if not files.exists(FILE):
        return ""
    try:
        return files.read(FILE).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{files.url(FILE)}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
