"""Sections about what is kept and where: database, depot, exchange with other archives, indexes."""

from collections.abc import Mapping
from dataclasses import dataclass

from webdepot.config.keys import at_least, check_index_name, check_postgresql, check_search_nodes, key, one_of

MOST_MEMBERS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseConfig:
    """The database: decisions of people, states and events."""

    url: str = key(
        "",
        "Address of a PostgreSQL database, for an archive on several machines: "
        "postgresql://USER@HOST/NAME (needs webdepot[cluster]). Empty means the file webdepot.db in the "
        "home.",
        check_postgresql,
    )
    password: str = key("", "Password at the database server; better set as WEBDEPOT_DATABASE_PASSWORD.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotConfig:
    """Long-term preservation."""

    place: str = key(
        "depot",
        "Main place of the depot: a folder, relative to the home, or "
        "s3://BUCKET/PREFIX?endpoint=URL&region=NAME.",
    )
    import_files: int = key(
        1000,
        "Maximum number of containers that `webdepot import` puts into one harvest and package; more files "
        "are split into several.",
        at_least(1),
    )
    import_members: int = key(
        MOST_MEMBERS,
        "Maximum number of files and folders in a ZIP or tar file that is submitted or comes from a partner; "
        "one with more is refused before anything is unpacked.",
        at_least(1),
    )
    import_bytes: int = key(
        10 << 30,
        "An import begins the next harvest and package after this many bytes of containers. The disk must "
        "have room for that much in addition to the depot.",
        at_least(1),
    )
    portal_places: tuple[str, ...] = key(
        (),
        "Folders and buckets, such as /mnt/vault or s3://depot, below which administrators may add places of "
        "the depot in the portal. Empty: places are added with `webdepot depot copy add` only.",
    )
    audit_days: int = key(90, "Maximum number of days between two fixity checks of a copy.", at_least(1))
    audit_bytes_per_s: int = key(
        0,
        "Maximum number of bytes per second read by audits and copying; 0 means no limit.",
        at_least(0),
    )
    audit_threads: int = key(2, "Number of copies checked in parallel.", at_least(1))
    cache_bytes: int = key(
        20 << 30,
        "Maximum size of the cache of containers fetched from a remote depot, in bytes.",
        at_least(1 << 20),
    )
    virus_scanner: str = key(
        "",
        "Command that scans a submission for viruses: gets its path as the last argument; exit code 0 means "
        "clean, 1 infected. It gets only environment variables such as PATH and HOME. A daemon that "
        "runs as another user cannot read the files: use `clamdscan --fdpass`.",
    )
    migration_tools: Mapping[str, str] = key(
        {}, 'Format conversion tools: {"name" = "SOURCE-TYPE TARGET-TYPE command {input} {output}"}.'
    )
    alarm_mail: tuple[str, ...] = key(
        (),
        "Email addresses to notify if damage cannot be repaired or a place stays unreachable (needs [mail]).",
    )
    alarm_command: str = key(
        "",
        "Command to run if damage cannot be repaired or a place stays unreachable; gets the message on its "
        "standard input, and only environment variables such as PATH and HOME.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeConfig:
    """The catalogue, and exchange with partner depots over OAI-PMH."""

    urn_namespace: str = key(
        "urn:nbn:de:0000-",
        "Prefix of URNs for sites and their harvests; request your own from your national library.",
    )
    repository: str = key(
        "",
        "Domain name in OAI identifiers (oai:NAME:key). It must never change. Empty means the host of "
        "web.portal_url, if set.",
    )
    admin_email: str = key(
        "", "Email address for partners; empty means archive.contact, if it is an email address."
    )
    institution_code: str = key(
        "", "Code of the institution in library records (ISIL, such as DE-9999); empty means none."
    )
    records_per_page: int = key(
        100, "Records in one OAI-PMH response; validators expect 100 to 500.", at_least(1)
    )
    token_hours: int = key(
        48, "Validity of a resumption token in hours; validators expect at least 24.", at_least(1)
    )
    most_requests: int = key(
        4,
        "Maximum number of OAI-PMH requests in progress or waiting; further ones are asked to retry later.",
        at_least(1),
    )
    provenance: bool = key(
        False,
        "State the origin of partners' records in OAI-PMH responses (an `about` element, as recommended by "
        "the DINI certificate).",
    )
    transfer: str = key(
        "containers",
        "How partners get a harvest, unless set for the partner: containers, or files (unpacked into "
        "folders).",
        one_of("containers", "files"),
    )
    most_tree_files: int = key(
        10_000,
        "Harvests with more files than this are transferred as containers even if files are wanted, because "
        "each file is listed in the record.",
        at_least(1),
    )
    largest_transfer_bytes: int = key(
        1 << 40, "Maximum size of a partner's object in bytes; larger ones are refused.", at_least(1024)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexConfig:
    """The indexes. All of them can be rebuilt from the depot."""

    workers: int = key(0, "Processes that read containers; 0 means one per core.", at_least(0))
    niceness: int = key(
        10,
        "Nice value of imports and rebuilds, so that readers on the same machine come first: 0 is normal "
        "priority, 19 the lowest.",
        at_least(0),
    )
    limit_text_bytes: int = key(
        8 << 20, "Maximum number of bytes of one document that are indexed as text.", at_least(1024)
    )
    memory_bytes: int = key(128 << 20, "Memory for writing the text index, in bytes.", at_least(16 << 20))
    engine: str = key(
        "tantivy",
        "Engine of the text index: tantivy; sqlite for a small archive (no stemming, slower); or opensearch, "
        "a server, for an archive on several machines. After a change run: webdepot index rebuild",
        one_of("tantivy", "sqlite", "opensearch"),
    )
    opensearch_url: str = key(
        "",
        "Address of the OpenSearch server, such as https://search.example.org:9200; several nodes are "
        "separated by commas.",
        check_search_nodes,
    )
    opensearch_index: str = key(
        "webdepot",
        "Prefix of the names of the archive's indexes on the server; different for each archive.",
        check_index_name,
    )
    opensearch_user: str = key("", "User name at the search server; empty if it needs none.")
    opensearch_password: str = key(
        "", "Password at the search server; better set as WEBDEPOT_INDEX_OPENSEARCH_PASSWORD."
    )
    opensearch_shards: int = key(
        1,
        "Number of shards of the text index: one for each 30 GB, at most one for each core. After a change "
        "run: webdepot index rebuild",
        at_least(1),
    )
    opensearch_replicas: int = key(
        0,
        "Number of replicas of the text index on other nodes; with 1, search continues when a node fails. "
        "After a change run: webdepot index rebuild",
        at_least(0),
    )
    captures: str = key(
        "sqlite",
        "Where the capture index is: sqlite (a file in the home), or postgresql (in the database of "
        "[database] url, for an archive on several machines). After a change run: webdepot index rebuild",
        one_of("sqlite", "postgresql"),
    )
