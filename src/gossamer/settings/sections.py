"""Everything that can be set: a small tree of dataclasses, each field with its prose."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
PROXY = re.compile(r"(?:https?|socks[45][ah]?)://(?:[^\s@/]*@)?(?:\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::\d{1,5})?/?")


def setting(default: Any, doc: str, least: float | None = None, most: float | None = None) -> Any:
    """A field with its default, its prose and, for numbers, the least and the most that make sense."""
    known = {"doc": doc, "least": least, "most": most}
    if isinstance(default, dict | list):
        return field(default_factory=lambda: type(default)(default), metadata=known)
    return field(default=default, metadata=known)


@dataclass(frozen=True)
class EngineSettings:
    """Where jobs run."""

    kind: Literal["embedded", "spark"] = setting("embedded", "`embedded` (this machine) or `spark`.")
    workers: int = setting(
        -1, "Worker processes of the embedded engine; -1: one per core, 0: none, all in one process.", least=-1
    )
    memory_mb: int = setting(4096, "Memory DuckDB may use before it spills to disk.", least=64, most=1 << 30)
    scratch: str = setting(
        "", "Directory for temporary files and for what is on its way to object storage; empty: the system's."
    )
    spark_master: str = setting("local[*]", "Spark master URL.")
    spark_conf: dict[str, str] = setting({}, "Further Spark properties, such as `spark.executor.memory`.")


@dataclass(frozen=True)
class StorageSettings:
    """What is kept."""

    keep_snapshots: int = setting(
        20, "Snapshots that remain after a collection; you can roll back to any of them.", least=1
    )
    compact_at: float = setting(
        0.2, "Compact a keyed table when its change sets hold this share of its base's rows.", least=0
    )
    compact_sets: int = setting(8, "Make one change set of all when there are so many.", least=2)
    verify_reads: bool = setting(
        False,
        "Compare the checksum of every file before its first use; rewriting tables and `gossamer verify` always do.",
    )


@dataclass(frozen=True)
class ScheduleSettings:
    """When pages are fetched again."""

    kind: Literal["adaptive", "fixed"] = setting(
        "adaptive", "`adaptive` (pages that change are fetched more often) or `fixed`."
    )
    interval_s: int = setting(2_592_000, "Seconds between two fetches of a page, at first.", least=60, most=7_776_000)
    min_interval_s: int = setting(3_600, "The adaptive schedule goes no lower.", least=60, most=7_776_000)
    max_interval_s: int = setting(7_776_000, "The adaptive schedule goes no higher.", least=60, most=7_776_000)
    grow: float = setting(0.4, "An unchanged page's interval grows by this share.", least=0, most=10)
    shrink: float = setting(0.2, "A changed page's interval shrinks by this share.", least=0, most=0.99)
    max_failures: int = setting(5, "A URL that failed so often in a row is gone.", least=1, most=1000)


@dataclass(frozen=True)
class LinkSettings:
    """Which links of a page are followed and counted."""

    max_per_page: int = setting(1_000, "Links taken from one page, the first ones; 0: all.", least=0)
    max_new_per_page: int = setting(200, "URLs one page may add that the crawl did not know; 0: any number.", least=0)
    follow_nofollow: bool = setting(False, "Follow and count links marked nofollow, ugc or sponsored.")


@dataclass(frozen=True)
class GenerateSettings:
    """How a batch is chosen."""

    top: int = setting(50_000, "URLs in a batch, at most.", least=1)
    per: Literal["host", "domain", "ip"] = setting("host", "What max_per and politeness queues go by.")
    max_per: int = setting(0, "URLs of one host (or domain, or address) in a batch, at most; 0: any number.", least=0)
    partitions: int = setting(
        8, "Parts a batch is cut into, by registered domain, to be fetched side by side.", least=1
    )
    lease_hours: float = setting(72.0, "A batch that was not updated after so long no longer blocks its URLs.", least=0)
    filter: bool = setting(False, "Check every due URL against the filters of today.")


@dataclass(frozen=True)
class ScoreSettings:
    """What makes a URL come early."""

    chain: list[str] = setting(["inlinks", "cash", "depth", "rank", "freshness", "useful"], "Scorers, in order.")
    weights: dict[str, float] = setting(
        {}, "How much each built-in scorer counts, 0 to 1; those not named count fully."
    )
    useful_yes: float = setting(1.0, "The useful scorer multiplies useful URLs by this.", least=0)
    useful_no: float = setting(0.2, "… and others by this.", least=0)


@dataclass(frozen=True)
class PluginSettings:
    """Which plugins run."""

    load: list[str] = setting([], "Plugins to load besides the installed ones, as `module` or `module:attribute`.")
    disable: list[str] = setting([], "Names of installed plugins not to load.")


@dataclass(frozen=True)
class UrlSettings:
    """How URLs are normalised; see docs/urls.md."""

    normalizers: list[str] = setting(
        ["encoding", "sessions", "tracking", "query", "www"],
        "Normalisers in their order, after parsing by the WHATWG standard. There are also `index` and `slashes`.",
    )
    at: dict[str, str] = setting(
        {},
        'Other normalisers at a stage (`inject`, `fetch`, `parse`, `update`, `generate`), such as `generate = "www"`.',
    )
    session_parameters: list[str] = setting(
        [
            *("sid", "_sid", "jsid", "lsid", "bv_sid", "oscsid", "sessid", "phpsessid", "sessionid", "_sessionid"),
            *("jsessionid", "_jsessionid", "lsessionid", "bv_sessionid", "session_id", "aspsessionid*"),
            *("cfid", "cftoken", "zenid"),
        ],
        "Parameters that `sessions` takes out of path and query; any case, `*` stands for anything.",
    )
    tracking_parameters: list[str] = setting(
        [
            *("utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid", "twclid"),
            *("ttclid", "igshid", "mc_cid", "mc_eid", "_ga", "_gl", "_hsenc", "_hsmi", "mkt_tok", "vero_id"),
        ],
        "Parameters that `tracking` takes out of the query; any case, `*` stands for anything.",
    )
    www: dict[str, str] = setting({}, "Domains whose canonical host is known: `with` or `without` the `www.` in front.")


@dataclass(frozen=True)
class FilterSettings:
    """Which URLs are taken; see docs/urls.md."""

    chain: list[str] = setting(
        ["length", "depth", "segments", "repeats", "scope", "prefix", "suffix", "regex"],
        "Filters in their order; the first that rejects a URL gives the reason.",
    )
    at: dict[str, str] = setting({}, 'Other filters at a stage, such as `fetch = "scope regex"`.')
    regex_files: list[str] = setting(
        [], "Files of regular expressions in Nutch's syntax, relative to the crawl; each must accept a URL."
    )
    prefix_files: list[str] = setting([], "Files of URL prefixes; `-` before one excludes, the longest decides.")
    suffix_files: list[str] = setting([], "Files of URL suffixes in Nutch's syntax.")
    scope: Literal["any", "host", "domain", "seed"] = setting(
        "any", "Where a crawl stays: on the hosts, in the domains or below the URLs that were injected or are listed."
    )
    scope_files: list[str] = setting([], "Files with hosts, domains or URLs that are in scope, one a line.")
    scope_list: list[str] = setting([], "Hosts, domains or URLs that are in scope.")
    max_length: int = setting(2048, "Longest URL, in bytes.", least=16, most=65536)
    max_depth: int = setting(-1, "Most links between a seed and a page; -1: any number.", least=-1)
    max_segments: int = setting(32, "Most segments in a path.", least=1)
    max_repeats: int = setting(
        2, "How often a directory may come in a path, others between, before it is taken for a loop; 0: any.", least=0
    )


@dataclass(frozen=True)
class AgentSettings:
    """Who we say we are."""

    name: str = setting("gossamer", "The name in User-Agent, and the one looked for in robots.txt.")
    contact: str = setting(
        "", "An address (mail or https) where you can be told of trouble; a crawl of public hosts needs one."
    )
    operator: str = setting("", "Who crawls, for the archive's warcinfo records.")


@dataclass(frozen=True)
class FetchSettings:
    """How pages are fetched; see docs/fetching.md."""

    delay_ms: int = setting(
        1_000, "Least time between two requests to a host; its crawl-delay may ask for more.", least=0
    )
    connections: int = setting(1_000, "Requests under way at a time, in each process.", least=1, most=100_000)
    per_host: int = setting(1, "Connections to a host (or whatever generate.per names) at a time.", least=1)
    per_address: int = setting(16, "Connections to one address at a time, in all processes; 0: any number.", least=0)
    address_delay_ms: int = setting(0, "Least time between two requests to one address.", least=0)
    longest_wait_s: float = setting(
        300.0, "A host that wants to be left alone for longer is left for another round.", least=1
    )
    host_failures: int = setting(10, "Failures in a row after which a host is left for another round.", least=1)
    time_limit_s: int = setting(0, "End the round after so long; what was not tried stays due; 0: never.", least=0)
    tail_s: int = setting(
        600, "… and when a twentieth of the hosts or fewer has kept all others waiting for so long; 0: never.", least=0
    )
    connect_timeout_s: float = setting(10.0, "Time to connect, TLS included.", least=0.1, most=86_400)
    read_timeout_s: float = setting(
        20.0, "Longest silence of a server, in whole seconds; not less than connect_timeout_s.", least=1, most=86_400
    )
    deadline_s: float = setting(120.0, "Longest time for one request in all.", least=0.1, most=86_400)
    max_bytes: int = setting(10_485_760, "Bytes of a body that are kept.", least=1, most=2_000_000_000)
    cut: bool = setting(True, "Keep the beginning of a body that is too large; if not, it counts as too large.")
    types: list[str] = setting([], "Media types that are wanted, such as `text/html` or `text/*`; empty: all.")
    max_redirects: int = setting(5, "Redirects followed one after the other within a round.", least=0, most=20)
    robots: Literal["obey", "ignore"] = setting("obey", "Whether robots.txt is asked for and obeyed.")
    http2: bool = setting(True, "Speak HTTP/2 where a server offers it over TLS.")
    tls: Literal["require", "record"] = setting(
        "require", "`require` good certificates, or fetch all the same and `record` what is wrong with them."
    )
    ca_file: str = setting("", "Certificate authorities to believe, as a PEM file; empty: the system's.")
    dns_servers: list[str] = setting([], "Name servers, such as `192.0.2.1` or `127.0.0.1:5353`; empty: the system's.")
    connect_to: dict[str, str] = setting(
        {}, 'Hosts (`*` stands for anything) to reach at an address and port: {"*.test" = "127.0.0.1:8080"}.'
    )
    allow_networks: list[str] = setting(
        [], "Networks that may be connected to although they are not public, such as `10.0.0.0/8`."
    )
    protocols: list[str] = setting(["http", "https"], "Schemes to fetch; `file` and those of plugins can be added.")
    warc_mb: int = setting(1_024, "A WARC file that has grown so large is followed by another.", least=1)
    warc_requests: bool = setting(True, "Archive requests as well.")


@dataclass(frozen=True)
class HostSettings:
    """A `[[host]]`: other manners for some hosts. The first whose pattern fits counts."""

    pattern: str  # such as `*.example.org`
    delay_ms: int | None = None
    connections: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    proxy: str = ""
    cap: int = 0  # requests in a round; 0: any number

    def problem(self) -> str | None:
        """What is wrong with it, if anything is."""
        if not self.pattern or not self.pattern.isprintable():
            return "pattern must name hosts, such as *.example.org"
        if self.delay_ms is not None and not 0 <= self.delay_ms <= 86_400_000:
            return f"delay_ms = {self.delay_ms} must be from 0 to 86400000, a day"
        if self.connections is not None and self.connections < 1:
            return f"connections = {self.connections} must be at least 1"
        if self.cap < 0:
            return f"cap = {self.cap} must be at least 0"
        for name, value in self.headers.items():
            if not TOKEN.fullmatch(name) or not (value.isascii() and value.isprintable()):
                return f"headers: {name!r} = {value!r} is no header: use a plain name and one line of ASCII"
        if self.proxy and not PROXY.fullmatch(self.proxy):
            return f"proxy = {self.proxy!r}: write it as http://host:port"
        return None


@dataclass(frozen=True)
class Settings:
    """Everything that can be set."""

    engine: EngineSettings = field(default_factory=EngineSettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    links: LinkSettings = field(default_factory=LinkSettings)
    generate: GenerateSettings = field(default_factory=GenerateSettings)
    score: ScoreSettings = field(default_factory=ScoreSettings)
    plugins: PluginSettings = field(default_factory=PluginSettings)
    urls: UrlSettings = field(default_factory=UrlSettings)
    filters: FilterSettings = field(default_factory=FilterSettings)
    agent: AgentSettings = field(default_factory=AgentSettings)
    fetch: FetchSettings = field(default_factory=FetchSettings)
    host: list[HostSettings] = setting(
        [],
        "`[[host]]` tables: other manners for the hosts that fit `pattern` (delay_ms, connections, headers, proxy, cap).",
    )
