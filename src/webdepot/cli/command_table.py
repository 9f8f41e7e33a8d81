"""The table of commands: every noun and every command without a noun, with its module and its help text.

The table is separate from the modules, so that `webdepot --help` loads only the table, and a command loads
only its own module. The help text of a command without a noun is here and nowhere else.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command (`function`), or a noun with commands (`group`, a `typer.Typer`)."""

    name: str
    module: str
    help: str
    function: str = ""
    group: str = "commands"
    epilog: str | None = None


COMMANDS = (
    Command(
        name="init",
        module="home",
        function="init",
        help="Create an archive: folder, configuration, database. "
        "If there is one, bring its database up to date.",
        epilog="Example: webdepot init /srv/webarchive",
    ),
    Command(
        name="archive",
        module="archive",
        function="archive",
        help="Archive web sites: harvest, check, identify formats, deposit and index. "
        "Resumes a harvest that was stopped.",
        epilog="Example: webdepot archive https://www.example.org/ --limit-pages 500",
    ),
    Command(
        name="import",
        module="archive",
        function="import_",
        help="Import existing WARC, ARC, WACZ and HAR files, or folders of them. Your files are not changed; "
        "files that were imported before are recognised.",
        epilog="Example: webdepot import old/*.arc.gz more-warcs/",
    ),
    Command(
        name="search",
        module="search",
        function="search",
        help="Search the text of archived pages. Prints one result per page; exits 1 if there are none.",
        epilog="Example: webdepot search '\"town council\" after:2010' --json",
    ),
    Command(
        name="derive",
        module="index",
        function="derive",
        help="Write a table for research, as Parquet or CSV: hosts, links between sites, texts or pictures "
        "of the whole archive.",
        epilog="Example: webdepot derive web-graph --to links.parquet",
    ),
    Command(
        name="serve",
        module="serve",
        function="serve",
        help="Serve the portal and, at a separate address, the archived pages. Stop with Ctrl-C.",
        epilog="Example: webdepot serve --port 8080",
    ),
    Command(
        name="scheduler",
        module="schedule",
        function="scheduler",
        help="Harvest what is due, check it and, where the rules allow, accept it automatically, "
        "as `webdepot serve` does. Stop with Ctrl-C.",
        epilog="Example: webdepot scheduler --once",
    ),
    Command(
        name="batch",
        module="serve",
        function="batch",
        help="Run the jobs that people start in the portal, as `webdepot serve` does. Works on any machine "
        "that shares the home, or the database and the depot. With a Dask cluster, it also reads containers. "
        "Stop with Ctrl-C.",
        epilog="Example: webdepot batch",
    ),
    Command(
        name="harvester",
        module="deployment.harvester",
        function="harvester",
        help="Run parts of harvests, on any number of machines that share the database and the working "
        "place. Stop with Ctrl-C; the other harvesters continue.",
        epilog="Example: webdepot harvester --parts 4",
    ),
    Command(
        name="status",
        module="home",
        function="status",
        help="Show what is in the archive, what is running, what is not indexed yet, and free disk space.",
        epilog="Example: webdepot status --json",
    ),
    Command(
        name="doctor",
        module="home",
        function="doctor",
        help="Check installation, configuration, disk, database, depot and indexes, "
        "and show how to repair them. Exits 1 on errors.",
        epilog="Example: webdepot doctor --mend",
    ),
    Command(
        name="demo",
        module="serve",
        function="demo",
        help="Archive a sample site in several editions (the dates are invented) and open the portal. "
        "A second run reuses the archive.",
        epilog="Example: webdepot --home demo-home demo",
    ),
    Command(
        name="organisation",
        module="selection.organisation",
        help="Organisations: find the domains that belong to one, and correct the result.",
    ),
    Command(
        name="harvest",
        module="harvest",
        help="Harvests: list, control, resume, report.",
    ),
    Command(
        name="job",
        module="serve",
        group="job_commands",
        help="Jobs: list long-running work started in the portal, and cancel it.",
    ),
    Command(
        name="profile",
        module="profile",
        help="Profiles: named sets of harvest settings.",
    ),
    Command(
        name="target",
        module="selection.target",
        help="Sites: nominate, assess, select; import and export as CSV.",
    ),
    Command(
        name="permission",
        module="selection.permission",
        help="Permission of site owners: contacts, letters with a deadline, replies, legal grounds.",
    ),
    Command(
        name="schedule",
        module="schedule",
        help="Schedules: how often targets are harvested, and what is due.",
    ),
    Command(
        name="review",
        module="review",
        help="Harvests awaiting a decision: accept, reject, annotate, patch.",
    ),
    Command(
        name="case",
        module="case",
        help="Complaints: record, decide, lift, reopen.",
    ),
    Command(
        name="scope",
        module="profile",
        group="scope_commands",
        help="Scope: which addresses belong to a harvest, and why.",
    ),
    Command(
        name="quality",
        module="quality",
        help="Quality: check whether a harvest is complete, and fetch missing parts.",
    ),
    Command(
        name="formats",
        module="formats",
        help="File formats: identify and validate files.",
    ),
    Command(
        name="index",
        module="index",
        help="The capture index and the text index: build, rebuild, export, import.",
    ),
    Command(
        name="pictures",
        module="pictures",
        help="Pictures of archived pages: make those that are missing.",
    ),
    Command(
        name="cdx",
        module="search",
        function="cdx",
        help="List captures as CDXJ lines, with the parameters of a CDX server. "
        "You read as staff: only access rules for staff apply.",
        epilog="Example: webdepot cdx 'example.org/*' --filter '=status:200' --limit 20",
    ),
    Command(
        name="rule",
        module="rule",
        help="Access rules: what may be seen, where and when.",
    ),
    Command(
        name="statistics",
        module="statistics",
        function="statistics",
        help="Show usage: pages opened, lists viewed, searches and refusals by month, site and collection. "
        "No personal data is stored.",
        epilog="Example: webdepot statistics --from 2026-01 --to 2026-06 --csv > usage.csv",
    ),
    Command(
        name="package",
        module="package",
        help="Packages of the depot: list, export, import, withdraw, hold, migrate.",
    ),
    Command(
        name="partner",
        module="partner",
        help="Partner depots: harvest their records, ingest their objects.",
    ),
    Command(
        name="webhook",
        module="webhook",
        help="Web hooks: messages to other programs about harvests, reviews and alarms.",
    ),
    Command(
        name="depot",
        module="depot",
        help="Long-term preservation: audits, copies, recovery.",
    ),
    Command(
        name="evidence",
        module="evidence",
        help="Evidence of captures: write it as a signed document, and verify such documents.",
    ),
    Command(
        name="account",
        module="account",
        help="Accounts: people who may sign in, their roles, sessions and API keys.",
    ),
    Command(
        name="service",
        module="deployment.service",
        help="Run the portal as a service (systemd).",
    ),
    Command(
        name="cluster",
        module="deployment.cluster",
        help="Several machines: try a cluster on one machine, and move an archive to one and back.",
    ),
    Command(
        name="config",
        module="home",
        group="config_commands",
        help="Show the configuration.",
    ),
)
"""In the order in which a new user needs them."""
