"""The table of commands: every noun and every command of its own, with the module that has it and its line in
the help.

It stands apart from the modules so that `webdepot --help` reads the table alone, and a command loads its own
module alone.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of its own, or, without a function, a noun with its commands. Its module is loaded when it is
    asked for.
    """

    name: str
    module: str
    help: str
    function: str = ""
    epilog: str | None = None


COMMANDS = (
    Command(
        name="init",
        module="home",
        function="init",
        help="Make an archive: folder, configuration, database. On an existing one: bring its database up to date.",
        epilog="Example: webdepot init /srv/webarchive",
    ),
    Command(
        name="archive",
        module="archive",
        function="archive",
        help="Archive web sites: harvest, check, identify, put into the depot and index them. Goes on where it was stopped.",
        epilog="Example: webdepot archive https://www.example.org/ --limit-pages 500",
    ),
    Command(
        name="import",
        module="archive",
        function="import_",
        help="Take in existing WARC and ARC files. Your files are not changed; the same file twice is recognised.",
        epilog="Example: webdepot import old/*.arc.gz more-warcs/",
    ),
    Command(
        name="search",
        module="search",
        function="search",
        help="Find pages by their words. Prints one result per page; exits 1 when there is none.",
        epilog="Example: webdepot search '\"town council\" after:2010' --json",
    ),
    Command(
        name="serve",
        module="serve",
        function="serve",
        help="Serve the portal and, on a host name of its own, the archived pages. Stops on Ctrl-C.",
        epilog="Example: webdepot serve --port 8080",
    ),
    Command(
        name="scheduler",
        module="schedule",
        function="scheduler",
        help="Harvest what is due, check it, and accept it by rules where these may, as `webdepot serve` does. Stops tidily on Ctrl-C.",
        epilog="Example: webdepot scheduler --once",
    ),
    Command(
        name="status",
        module="home",
        function="status",
        help="What is in the archive, what runs, what waits, and how much room is left.",
        epilog="Example: webdepot status --json",
    ),
    Command(
        name="doctor",
        module="home",
        function="doctor",
        help="Check installation, configuration, disk, database, depot and indexes, and say how to mend. Exits 1 on errors.",
        epilog="Example: webdepot doctor --mend",
    ),
    Command(
        name="demo",
        module="demo",
        function="demo",
        help="Archive a sample site in several editions (the dates are invented) and open the portal. A second run reuses it.",
        epilog="Example: webdepot --home demo-home demo",
    ),
    Command(
        name="organisation",
        module="organisation",
        help="Organisations: find the domains that belong to one, and correct what was found.",
    ),
    Command(
        name="harvest",
        module="harvest",
        help="Harvests: one run for a site, or one import.",
    ),
    Command(
        name="profile",
        module="profile",
        help="Profiles: how kinds of sites are harvested.",
    ),
    Command(
        name="target",
        module="target",
        help="Sites: nominate, judge, select; lists as CSV.",
    ),
    Command(
        name="permission",
        module="permission",
        help="Owners: contacts, letters with a term, answers, grounds.",
    ),
    Command(
        name="schedule",
        module="schedule",
        help="Plans: how often targets are harvested, and what is due.",
    ),
    Command(
        name="review",
        module="review",
        help="Harvests that wait for a decision: accept, reject, annotate, patch.",
    ),
    Command(
        name="case",
        module="case",
        help="Complaints: record, decide, lift, reopen.",
    ),
    Command(
        name="scope",
        module="scope",
        help="Scope: which addresses belong to a harvest, and why.",
    ),
    Command(
        name="quality",
        module="quality",
        help="Quality: is a harvest whole?",
    ),
    Command(
        name="formats",
        module="formats",
        help="Formats: what files are by their bytes, and whether they are sound.",
    ),
    Command(
        name="index",
        module="index",
        help="The indexes of addresses and words.",
    ),
    Command(
        name="cdx",
        module="cdx",
        function="cdx",
        help="List captures as CDXJ lines, in the words of the CDX server. On the archive's own machine only rules for staff apply.",
        epilog="Example: webdepot cdx 'example.org/*' --filter '=status:200' --limit 20",
    ),
    Command(
        name="rule",
        module="rule",
        help="Rules of access: what may be seen, where and when.",
    ),
    Command(
        name="statistics",
        module="statistics",
        function="statistics",
        help="What is read: pages opened, lists looked at, searches, and what was refused, by month, site and collection. Nobody is known.",
        epilog="Example: webdepot statistics --from 2026-01 --to 2026-06 --csv > usage.csv",
    ),
    Command(
        name="package",
        module="package",
        help="Packages of the depot.",
    ),
    Command(
        name="partner",
        module="partner",
        help="Partner depots: harvest their records, take in their objects.",
    ),
    Command(
        name="depot",
        module="depot",
        help="Long-term keeping: audits, copies, and getting everything back.",
    ),
    Command(
        name="account",
        module="account",
        help="The people who may sign in.",
    ),
    Command(
        name="config",
        module="config",
        help="See the configuration.",
    ),
)
"""In the order a newcomer meets them."""
