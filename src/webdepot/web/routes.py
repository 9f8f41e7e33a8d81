"""The route tables: every page with its path, its function, its methods and the roles that may call it.

A function is named as text and its module is imported on the first request for it: a server that only replays
archived pages loads no crawler, no search engine and no format identification. A test checks that every name
leads to a function that takes a request and returns a response.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from starlette.requests import Request

from webdepot.accounts.accounts import STAFF, Role
from webdepot.web.site import ADMINISTRATORS, CURATORS, PARTNERS, REVIEWERS, SIGNED_IN

Endpoint = Callable[[Request], Any]


ALL = re.compile(b"")
LISTS = re.compile(rb"/[^/]+/(?:[0-9]*(?:\*|%2[Aa])|timemap/)")
"""Versions of an address, for people and for machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRow:
    """A row of the route table."""

    path: str
    endpoint: str
    """Module below `webdepot.web` and function, as in "staff.targets.target_page:show"."""
    methods: tuple[str, ...] = ("GET",)
    roles: frozenset[Role] = field(default_factory=frozenset)
    """A person with any of these may call it; empty means everybody."""
    heavy: re.Pattern[bytes] | None = None
    """Raw paths whose answers take long (`heavy_work.py`)."""


API_ROUTES = (
    RouteRow(path="/api/search", endpoint="api.search:as_json", heavy=ALL),
    RouteRow(path="/api/suggest", endpoint="api.search:suggest", heavy=ALL),
    RouteRow(path="/api/images", endpoint="reader.images:as_json", heavy=ALL),
    RouteRow(path="/api/trend", endpoint="api.search:trend", heavy=ALL),
    RouteRow(path="/api/openapi.json", endpoint="api.openapi:send_document"),
    RouteRow(path="/api/targets", endpoint="api.staff.targets:show_list", roles=STAFF),
    RouteRow(path="/api/targets", endpoint="api.staff.targets:nominate", methods=("POST",), roles=PARTNERS),
    RouteRow(path="/api/targets/{target}", endpoint="api.staff.targets:show", roles=STAFF),
    RouteRow(
        path="/api/targets/{target}",
        endpoint="api.staff.targets:describe",
        methods=("PATCH",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/api/targets/{target}/answers",
        endpoint="api.staff.targets:answer",
        methods=("POST",),
        roles=STAFF,
    ),
    RouteRow(
        path="/api/targets/{target}/decisions",
        endpoint="api.staff.targets:decide",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/api/targets/{target}/grounds",
        endpoint="api.staff.targets:ground",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/api/targets/{target}/harvests",
        endpoint="api.staff.targets:harvest",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/api/harvests", endpoint="api.staff.harvests:show_list", roles=STAFF),
    RouteRow(path="/api/harvests/{harvest}", endpoint="api.staff.harvests:show", roles=STAFF),
    RouteRow(
        path="/api/harvests/{harvest}/orders",
        endpoint="api.staff.harvests:order",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/api/harvests/{harvest}/findings", endpoint="api.staff.harvests:show_findings", roles=STAFF
    ),
    RouteRow(path="/api/harvests/{harvest}/review", endpoint="api.staff.reviews:show", roles=STAFF),
    RouteRow(
        path="/api/harvests/{harvest}/review/decisions",
        endpoint="api.staff.reviews:decide",
        methods=("POST",),
        roles=REVIEWERS,
    ),
    RouteRow(
        path="/api/harvests/{harvest}/review/notes",
        endpoint="api.staff.reviews:annotate",
        methods=("POST",),
        roles=STAFF,
    ),
    RouteRow(
        path="/api/harvests/{harvest}/review/ratings",
        endpoint="api.staff.reviews:rate",
        methods=("POST",),
        roles=STAFF,
    ),
    RouteRow(path="/api/rules", endpoint="api.staff.rules:show_list", roles=STAFF),
    RouteRow(path="/api/rules", endpoint="api.staff.rules:add", methods=("POST",), roles=REVIEWERS),
    RouteRow(
        path="/api/rules/{rule}/end", endpoint="api.staff.rules:end", methods=("POST",), roles=REVIEWERS
    ),
    RouteRow(path="/api/packages", endpoint="api.staff.packages:show_list", roles=STAFF),
    RouteRow(path="/api/packages/{package}", endpoint="api.staff.packages:show", roles=STAFF),
    RouteRow(path="/api/depot", endpoint="api.staff.packages:show_depot", roles=STAFF),
    RouteRow(
        path="/api/depot/audits", endpoint="api.staff.packages:start_audit", methods=("POST",), roles=CURATORS
    ),
    RouteRow(path="/api/targets/{target}/plan", endpoint="api.staff.plans:show", roles=STAFF),
    RouteRow(
        path="/api/targets/{target}/plan", endpoint="api.staff.plans:save", methods=("PUT",), roles=CURATORS
    ),
    RouteRow(
        path="/api/targets/{target}/plan",
        endpoint="api.staff.plans:remove",
        methods=("DELETE",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/api/targets/{target}/plan/orders",
        endpoint="api.staff.plans:order",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/api/profiles", endpoint="api.staff.plans:show_profiles", roles=STAFF),
    RouteRow(path="/api/profiles/{profile}", endpoint="api.staff.plans:show_profile", roles=STAFF),
    RouteRow(
        path="/api/profiles/{profile}",
        endpoint="api.staff.plans:save_profile",
        methods=("PUT",),
        roles=CURATORS,
    ),
    RouteRow(path="/api/targets/{target}/contacts", endpoint="api.staff.letters:show_contacts", roles=STAFF),
    RouteRow(
        path="/api/targets/{target}/contacts",
        endpoint="api.staff.letters:add_contact",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/api/targets/{target}/contacts/{contact}",
        endpoint="api.staff.letters:end_contact",
        methods=("DELETE",),
        roles=CURATORS,
    ),
    RouteRow(path="/api/targets/{target}/letters", endpoint="api.staff.letters:show_of_target", roles=STAFF),
    RouteRow(
        path="/api/targets/{target}/letters",
        endpoint="api.staff.letters:ask",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/api/targets/{target}/replies",
        endpoint="api.staff.letters:reply",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/api/letters", endpoint="api.staff.letters:show_list", roles=STAFF),
    RouteRow(
        path="/api/letters/deliveries",
        endpoint="api.staff.letters:deliver",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/api/letters/templates/{kind}/{language}",
        endpoint="api.staff.letters:show_template",
        roles=STAFF,
    ),
    RouteRow(
        path="/api/letters/templates/{kind}/{language}",
        endpoint="api.staff.letters:save_template",
        methods=("PUT",),
        roles=CURATORS,
    ),
    RouteRow(path="/api/letters/{letter}", endpoint="api.staff.letters:show", roles=STAFF),
    RouteRow(path="/api/cases", endpoint="api.staff.cases:show_list", roles=STAFF),
    RouteRow(path="/api/cases", endpoint="api.staff.cases:record", methods=("POST",), roles=STAFF),
    RouteRow(path="/api/cases/{case}", endpoint="api.staff.cases:show", roles=STAFF),
    RouteRow(
        path="/api/cases/{case}/actions", endpoint="api.staff.cases:act", methods=("POST",), roles=REVIEWERS
    ),
    RouteRow(path="/api/collections", endpoint="api.staff.collections:show_list", roles=STAFF),
    RouteRow(path="/api/collections/{collection}", endpoint="api.staff.collections:show", roles=STAFF),
    RouteRow(
        path="/api/collections/{collection}",
        endpoint="api.staff.collections:save",
        methods=("PUT",),
        roles=CURATORS,
    ),
    RouteRow(path="/api/records", endpoint="api.staff.records:show_list", roles=STAFF),
    RouteRow(path="/api/records/{record}", endpoint="api.staff.records:show", roles=STAFF),
    RouteRow(
        path="/api/records/{record}", endpoint="api.staff.records:change", methods=("PATCH",), roles=CURATORS
    ),
    RouteRow(
        path="/api/targets/{target}/record",
        endpoint="api.staff.records:make",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/api/imports", endpoint="api.staff.jobs:import_files", methods=("POST",), roles=CURATORS),
    RouteRow(path="/api/jobs", endpoint="api.staff.jobs:show_list", roles=STAFF),
    RouteRow(path="/api/jobs/{job}", endpoint="api.staff.jobs:show", roles=STAFF),
    RouteRow(
        path="/api/jobs/{job}/cancellations", endpoint="api.staff.jobs:cancel", methods=("POST",), roles=STAFF
    ),
    RouteRow(path="/api/partners", endpoint="api.staff.partners:show_list", roles=STAFF),
    RouteRow(
        path="/api/partners", endpoint="api.staff.partners:add", methods=("POST",), roles=ADMINISTRATORS
    ),
    RouteRow(path="/api/partners/{partner}", endpoint="api.staff.partners:show", roles=STAFF),
    RouteRow(
        path="/api/partners/{partner}/orders",
        endpoint="api.staff.partners:order",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/api/organisations", endpoint="api.staff.organisations:show_list", roles=STAFF),
    RouteRow(
        path="/api/organisations",
        endpoint="api.staff.organisations:survey",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/api/organisations/{organisation}", endpoint="api.staff.organisations:show", roles=STAFF),
    RouteRow(
        path="/api/organisations/{organisation}/decisions",
        endpoint="api.staff.organisations:decide",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/api/organisations/{organisation}/corrections",
        endpoint="api.staff.organisations:correct",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/api/organisations/{organisation}/targets",
        endpoint="api.staff.organisations:nominate",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/api/users", endpoint="api.staff.users:show_list", roles=ADMINISTRATORS),
    RouteRow(path="/api/users", endpoint="api.staff.users:add", methods=("POST",), roles=ADMINISTRATORS),
    RouteRow(path="/api/users/{name}", endpoint="api.staff.users:show", roles=ADMINISTRATORS),
    RouteRow(
        path="/api/users/{name}", endpoint="api.staff.users:change", methods=("PATCH",), roles=ADMINISTRATORS
    ),
    RouteRow(
        path="/api/users/{name}/keys/{key}",
        endpoint="api.staff.users:revoke_key",
        methods=("DELETE",),
        roles=ADMINISTRATORS,
    ),
    RouteRow(
        path="/api/users/{name}/sessions",
        endpoint="api.staff.users:end_sessions",
        methods=("DELETE",),
        roles=ADMINISTRATORS,
    ),
    RouteRow(
        path="/api/harvests/{harvest}/review/orders",
        endpoint="api.staff.reviews:order",
        methods=("POST",),
        roles=STAFF,
    ),
    RouteRow(
        path="/api/harvests/{harvest}/review/ignored",
        endpoint="api.staff.reviews:ignore",
        methods=("POST",),
        roles=STAFF,
    ),
    RouteRow(
        path="/api/depot/places",
        endpoint="api.staff.packages:add_place",
        methods=("POST",),
        roles=ADMINISTRATORS,
    ),
    RouteRow(path="/api/pages", endpoint="api.staff.plans:archive_page", methods=("POST",), roles=CURATORS),
    RouteRow(
        path="/api/turns/{turn}/orders",
        endpoint="api.staff.plans:order_turn",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/api/webhooks", endpoint="api.staff.webhooks:show_list", roles=ADMINISTRATORS),
    RouteRow(
        path="/api/webhooks", endpoint="api.staff.webhooks:add", methods=("POST",), roles=ADMINISTRATORS
    ),
    RouteRow(
        path="/api/webhooks/{hook}",
        endpoint="api.staff.webhooks:remove",
        methods=("DELETE",),
        roles=ADMINISTRATORS,
    ),
    RouteRow(
        path="/api/webhooks/{hook}/tests",
        endpoint="api.staff.webhooks:test",
        methods=("POST",),
        roles=ADMINISTRATORS,
    ),
    RouteRow(
        path="/api/{rest:path}",
        endpoint="api.openapi:answer_unknown",
        methods=("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
    ),
)
"""Interfaces that answer in JSON; their errors are problem details. The last row takes every other path below
/api/.
"""

PORTAL_ROUTES = (
    RouteRow(path="/", endpoint="reader.home:home"),
    RouteRow(path="/collections", endpoint="reader.collections:show_list", heavy=ALL),
    RouteRow(path="/collections/{name}", endpoint="reader.collections:show", heavy=ALL),
    RouteRow(path="/collections/{name}/edit", endpoint="reader.collections:show_form", roles=CURATORS),
    RouteRow(
        path="/collections/{name}/edit",
        endpoint="reader.collections:save",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/picture", endpoint="reader.page_pictures:send", heavy=ALL),
    RouteRow(path="/search", endpoint="reader.search:search", heavy=ALL),
    RouteRow(path="/search/why", endpoint="reader.search:why", heavy=ALL),
    RouteRow(path="/search/trend", endpoint="reader.search:trend", heavy=ALL),
    RouteRow(path="/search/export", endpoint="reader.search:export", heavy=ALL),
    RouteRow(path="/search/images", endpoint="reader.images:show", heavy=ALL),
    RouteRow(path="/search.atom", endpoint="api.search:feed", heavy=ALL),
    RouteRow(path="/searches", endpoint="api.search:saved_list", roles=SIGNED_IN),
    RouteRow(path="/searches", endpoint="api.search:save", methods=("POST",), roles=SIGNED_IN),
    RouteRow(path="/searches/{token}.atom", endpoint="api.search:saved_feed", heavy=ALL),
    RouteRow(path="/health", endpoint="api.monitoring:health"),
    RouteRow(path="/ready", endpoint="api.monitoring:ready"),
    RouteRow(path="/metrics", endpoint="api.monitoring:send_metrics", roles=STAFF),
    *API_ROUTES,
    RouteRow(path="/opensearch.xml", endpoint="api.search:opensearch"),
    RouteRow(path="/versions", endpoint="reader.versions:look_up", heavy=ALL),
    RouteRow(path="/oai", endpoint="api.oai:answer", methods=("GET", "POST")),
    RouteRow(path="/urn/{urn:path}", endpoint="api.oai:resolve"),
    RouteRow(path="/title/{key}", endpoint="api.oai:show_title"),
    RouteRow(path="/title/{key}/{form}", endpoint="reader.catalogue:export", heavy=ALL),
    RouteRow(path="/catalogue", endpoint="reader.catalogue:show_list", heavy=ALL),
    RouteRow(path="/catalogue/subjects", endpoint="reader.catalogue:show_subjects", heavy=ALL),
    RouteRow(path="/transfer/{key}.zip", endpoint="api.oai:send_transfer"),
    RouteRow(path="/cite", endpoint="reader.citation:cite"),
    RouteRow(path="/evidence", endpoint="reader.evidence:show", heavy=ALL),
    RouteRow(path="/evidence/key.pem", endpoint="reader.evidence:send_key"),
    RouteRow(path="/compare", endpoint="reader.comparison:compare", heavy=ALL),
    RouteRow(path="/compare/picture", endpoint="reader.comparison:send_picture", heavy=ALL),
    RouteRow(path="/about", endpoint="reader.home:about"),
    RouteRow(path="/robots.txt", endpoint="reader.home:robots"),
    RouteRow(path="/favicon.ico", endpoint="reader.home:icon"),
    RouteRow(path="/help", endpoint="reader.home:help_page"),
    RouteRow(path="/developers", endpoint="reader.developers:show"),
    RouteRow(path="/sign-in", endpoint="session.sign_in:sign_in_form"),
    RouteRow(path="/sign-in", endpoint="session.sign_in:sign_in", methods=("POST",)),
    RouteRow(path="/sign-out", endpoint="session.sign_in:sign_out", methods=("POST",)),
    RouteRow(path="/sign-in/oidc", endpoint="session.oidc:begin"),
    RouteRow(path="/sign-in/oidc/back", endpoint="session.oidc:back"),
    RouteRow(path="/account", endpoint="staff.users:show_own", roles=SIGNED_IN),
    RouteRow(
        path="/account/password", endpoint="staff.users:change_password", methods=("POST",), roles=SIGNED_IN
    ),
    RouteRow(
        path="/account/sessions", endpoint="staff.users:end_own_session", methods=("POST",), roles=SIGNED_IN
    ),
    RouteRow(
        path="/account/keys", endpoint="staff.users:change_own_keys", methods=("POST",), roles=SIGNED_IN
    ),
    RouteRow(path="/users", endpoint="staff.users:show_list", roles=ADMINISTRATORS),
    RouteRow(path="/users", endpoint="staff.users:add", methods=("POST",), roles=ADMINISTRATORS),
    RouteRow(path="/users/{name}", endpoint="staff.users:show", roles=ADMINISTRATORS),
    RouteRow(path="/users/{name}", endpoint="staff.users:change", methods=("POST",), roles=ADMINISTRATORS),
    RouteRow(path="/audit", endpoint="staff.audit:show_list", roles=STAFF),
    RouteRow(path="/audit.csv", endpoint="staff.audit:as_csv", roles=STAFF),
    RouteRow(path="/status", endpoint="staff.status:show", roles=STAFF),
    RouteRow(path="/statistics", endpoint="staff.statistics:show", roles=STAFF),
    RouteRow(path="/statistics.csv", endpoint="staff.statistics:as_csv", roles=STAFF),
    RouteRow(path="/jobs", endpoint="jobs.pages:show_list", roles=STAFF),
    RouteRow(path="/jobs", endpoint="jobs.pages:cancel", methods=("POST",), roles=STAFF),
    RouteRow(path="/machines", endpoint="jobs.machines:show", roles=ADMINISTRATORS),
    RouteRow(path="/depot", endpoint="staff.depot:show_overview", roles=STAFF),
    RouteRow(path="/depot/packages", endpoint="staff.depot:show_packages", roles=STAFF),
    RouteRow(path="/depot/packages/{identifier}", endpoint="staff.depot:show_package", roles=STAFF),
    RouteRow(
        path="/depot/packages/{identifier}/download.{form}",
        endpoint="staff.depot:download",
        roles=ADMINISTRATORS,
    ),
    RouteRow(path="/depot/audit", endpoint="staff.depot:start_audit", methods=("POST",), roles=CURATORS),
    RouteRow(path="/depot/places", endpoint="staff.depot:add_place", methods=("POST",), roles=ADMINISTRATORS),
    RouteRow(path="/depot/report.json", endpoint="staff.depot:send_report", roles=STAFF),
    RouteRow(path="/partners", endpoint="staff.partners:show_list", roles=STAFF),
    RouteRow(path="/partners", endpoint="staff.partners:add", methods=("POST",), roles=ADMINISTRATORS),
    RouteRow(path="/partners/{name}", endpoint="staff.partners:show", roles=STAFF),
    RouteRow(path="/partners/{name}", endpoint="staff.partners:order", methods=("POST",), roles=CURATORS),
    RouteRow(path="/organisations", endpoint="staff.organisations:show_list", roles=STAFF),
    RouteRow(path="/organisations", endpoint="staff.organisations:start", methods=("POST",), roles=CURATORS),
    RouteRow(path="/organisations/{root}", endpoint="staff.organisations:show", roles=STAFF),
    RouteRow(path="/organisations/{root}/hosts.csv", endpoint="staff.organisations:as_csv", roles=STAFF),
    RouteRow(
        path="/organisations/{root}/decide",
        endpoint="staff.organisations:decide",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/organisations/{root}/correct",
        endpoint="staff.organisations:correct",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/organisations/{root}/sites",
        endpoint="staff.organisations:nominate",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/harvests", endpoint="staff.harvests:show_list", roles=STAFF),
    RouteRow(path="/harvests/{harvest}", endpoint="staff.harvests:show", roles=STAFF),
    RouteRow(path="/harvests/{harvest}/live", endpoint="staff.harvests:show_live", roles=STAFF),
    RouteRow(path="/harvests/{harvest}/events", endpoint="staff.harvests:stream_live", roles=STAFF),
    RouteRow(
        path="/harvests/{harvest}/orders", endpoint="staff.harvests:order", methods=("POST",), roles=CURATORS
    ),
    RouteRow(
        path="/harvests/{harvest}/pictures/{picture}", endpoint="staff.harvests:send_picture", roles=STAFF
    ),
    RouteRow(path="/harvests/{harvest}/reports/{kind}", endpoint="staff.harvests:show_report", roles=STAFF),
    RouteRow(path="/import", endpoint="staff.imports:show", roles=CURATORS),
    RouteRow(path="/import", endpoint="staff.imports:upload", methods=("POST",), roles=CURATORS),
    RouteRow(path="/schedule", endpoint="staff.schedule:show_calendar", roles=STAFF),
    RouteRow(path="/schedule/targets", endpoint="staff.schedule:show_list", roles=STAFF),
    RouteRow(path="/schedule/targets/{target}", endpoint="staff.schedule:show", roles=STAFF),
    RouteRow(
        path="/schedule/targets/{target}", endpoint="staff.schedule:change", methods=("POST",), roles=CURATORS
    ),
    RouteRow(path="/schedule/queue", endpoint="staff.schedule:show_queue", roles=STAFF),
    RouteRow(
        path="/schedule/queue", endpoint="staff.schedule:change_turn", methods=("POST",), roles=CURATORS
    ),
    RouteRow(path="/schedule/page", endpoint="staff.schedule:show_page_form", roles=CURATORS),
    RouteRow(
        path="/schedule/page", endpoint="staff.schedule:archive_page", methods=("POST",), roles=CURATORS
    ),
    RouteRow(path="/review", endpoint="staff.review:show_list", roles=STAFF),
    RouteRow(path="/review/{harvest}", endpoint="staff.review:show", roles=STAFF),
    RouteRow(
        path="/review/{harvest}/decide", endpoint="staff.review:decide", methods=("POST",), roles=REVIEWERS
    ),
    RouteRow(path="/review/{harvest}/note", endpoint="staff.review:annotate", methods=("POST",), roles=STAFF),
    RouteRow(path="/review/{harvest}/patch", endpoint="staff.review:patch", methods=("POST",), roles=STAFF),
    RouteRow(path="/review/{harvest}/rate", endpoint="staff.review:rate", methods=("POST",), roles=STAFF),
    RouteRow(
        path="/review/{harvest}/check", endpoint="staff.review:check_again", methods=("POST",), roles=STAFF
    ),
    RouteRow(path="/review/{harvest}/ignore", endpoint="staff.review:ignore", methods=("POST",), roles=STAFF),
    RouteRow(
        path="/review/{harvest}/pictures",
        endpoint="staff.review:take_pictures",
        methods=("POST",),
        roles=STAFF,
    ),
    RouteRow(
        path="/review/{harvest}/replay/{name}", endpoint="staff.review:send_replay_picture", roles=STAFF
    ),
    RouteRow(path="/review/pictures/{number}", endpoint="staff.review:send_picture", roles=STAFF),
    RouteRow(path="/dashboard", endpoint="staff.dashboard:show", roles=STAFF),
    RouteRow(path="/dashboard.csv", endpoint="staff.dashboard:as_csv", roles=STAFF),
    RouteRow(path="/dashboard/months.csv", endpoint="staff.dashboard:months_csv", roles=STAFF),
    RouteRow(path="/profiles", endpoint="staff.profiles:show_list", roles=STAFF),
    RouteRow(path="/profiles", endpoint="staff.profiles:make", methods=("POST",), roles=CURATORS),
    RouteRow(path="/profiles/{name}", endpoint="staff.profiles:show", roles=STAFF),
    RouteRow(path="/profiles/{name}", endpoint="staff.profiles:save", methods=("POST",), roles=CURATORS),
    RouteRow(path="/scope", endpoint="staff.profiles:explain", roles=STAFF),
    RouteRow(path="/scope/test", endpoint="staff.crawl_tests:show_form", roles=STAFF),
    RouteRow(path="/scope/test", endpoint="staff.crawl_tests:start", methods=("POST",), roles=CURATORS),
    RouteRow(path="/scope/test/{test}", endpoint="staff.crawl_tests:show", roles=STAFF),
    RouteRow(path="/scope/test/{test}/live", endpoint="staff.crawl_tests:show_live", roles=STAFF),
    RouteRow(path="/quality/{harvest}", endpoint="staff.review:show_quality", roles=STAFF),
    RouteRow(path="/formats", endpoint="staff.formats:show", roles=STAFF),
    RouteRow(path="/formats.csv", endpoint="staff.formats:as_csv", roles=STAFF),
    RouteRow(path="/formats/watch", endpoint="staff.formats:show_watch_list", roles=STAFF),
    RouteRow(path="/formats/registry", endpoint="staff.formats:show_registry", roles=STAFF),
    RouteRow(
        path="/formats/registry", endpoint="staff.formats:change_registry", methods=("POST",), roles=STAFF
    ),
    RouteRow(path="/formats/registry.json", endpoint="staff.formats:send_registry", roles=STAFF),
    RouteRow(path="/suggest", endpoint="reader.public_forms:suggest_form"),
    RouteRow(path="/suggest", endpoint="reader.public_forms:suggest", methods=("POST",)),
    RouteRow(path="/complain", endpoint="reader.public_forms:complain_form"),
    RouteRow(path="/complain", endpoint="reader.public_forms:complain", methods=("POST",)),
    RouteRow(path="/answer/{token}", endpoint="reader.public_forms:answer_form"),
    RouteRow(path="/answer/{token}", endpoint="reader.public_forms:answer", methods=("POST",)),
    RouteRow(path="/targets", endpoint="staff.targets.target_list:show_list", roles=STAFF),
    RouteRow(path="/targets", endpoint="staff.targets.nomination:make", methods=("POST",), roles=PARTNERS),
    RouteRow(path="/targets.csv", endpoint="staff.targets.target_list:as_csv", roles=STAFF),
    RouteRow(
        path="/nominations", endpoint="staff.targets.nomination:show_own", roles=frozenset({Role.PARTNER})
    ),
    RouteRow(path="/targets/new", endpoint="staff.targets.nomination:show_new", roles=PARTNERS),
    RouteRow(
        path="/targets/import", endpoint="staff.targets.nomination:upload", methods=("POST",), roles=PARTNERS
    ),
    RouteRow(path="/targets/import/{token}", endpoint="staff.targets.nomination:show_import", roles=PARTNERS),
    RouteRow(
        path="/targets/import/{token}",
        endpoint="staff.targets.nomination:take_in",
        methods=("POST",),
        roles=PARTNERS,
    ),
    RouteRow(path="/targets/ask", endpoint="staff.letters:show_ask_list", roles=CURATORS),
    RouteRow(path="/targets/ask", endpoint="staff.letters:ask", methods=("POST",), roles=CURATORS),
    RouteRow(path="/targets/bulk", endpoint="staff.targets.bulk:prepare", methods=("POST",), roles=CURATORS),
    RouteRow(path="/targets/bulk/run", endpoint="staff.targets.bulk:run", methods=("POST",), roles=CURATORS),
    RouteRow(path="/targets/bulk/{job}", endpoint="staff.targets.bulk:show", roles=CURATORS),
    RouteRow(path="/targets/{target}", endpoint="staff.targets.target_page:show", roles=STAFF),
    RouteRow(
        path="/targets/{target}/answers",
        endpoint="staff.targets.target_page:answer",
        methods=("POST",),
        roles=STAFF,
    ),
    RouteRow(
        path="/targets/{target}/decide",
        endpoint="staff.targets.target_page:decide",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/targets/{target}/change",
        endpoint="staff.targets.target_page:change",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/targets/{target}/contacts",
        endpoint="staff.targets.owner:add_contact",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(
        path="/targets/{target}/harvest",
        endpoint="staff.targets.target_page:harvest",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/targets/{target}/letter", endpoint="staff.targets.owner:preview_letter", roles=STAFF),
    RouteRow(
        path="/targets/{target}/ask", endpoint="staff.targets.owner:ask", methods=("POST",), roles=CURATORS
    ),
    RouteRow(
        path="/targets/{target}/reply",
        endpoint="staff.targets.owner:reply",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/targets/{target}/title", endpoint="reader.catalogue:show_form", roles=CURATORS),
    RouteRow(
        path="/targets/{target}/title", endpoint="reader.catalogue:save", methods=("POST",), roles=CURATORS
    ),
    RouteRow(
        path="/targets/{target}/grounds",
        endpoint="staff.targets.owner:ground",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/letters", endpoint="staff.letters:show_list", roles=STAFF),
    RouteRow(path="/letters/send", endpoint="staff.letters:send", methods=("POST",), roles=CURATORS),
    RouteRow(
        path="/letters/templates/{kind}/{language}", endpoint="staff.letters:show_template", roles=STAFF
    ),
    RouteRow(
        path="/letters/templates/{kind}/{language}",
        endpoint="staff.letters:save_template",
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/letters/{letter}", endpoint="staff.letters:show", roles=STAFF),
    RouteRow(path="/criteria", endpoint="staff.criteria:show_list", roles=STAFF),
    RouteRow(path="/criteria", endpoint="staff.criteria:save", methods=("POST",), roles=ADMINISTRATORS),
    RouteRow(path="/rules", endpoint="staff.rules:show", roles=STAFF),
    RouteRow(path="/rules", endpoint="staff.rules:change", methods=("POST",), roles=REVIEWERS),
    RouteRow(path="/cases", endpoint="staff.cases:show_list", roles=STAFF),
    RouteRow(path="/cases", endpoint="staff.cases:record", methods=("POST",), roles=STAFF),
    RouteRow(path="/cases/{case}", endpoint="staff.cases:show", roles=STAFF),
    RouteRow(path="/cases/{case}", endpoint="staff.cases:act", methods=("POST",), roles=REVIEWERS),
    RouteRow(path="/-/language", endpoint="reader.home:set_language"),
    RouteRow(path="/-/go", endpoint="reader.asked_dates:go"),
    RouteRow(path="/-/banner/{address:path}", endpoint="reader.versions:show_banner"),
    RouteRow(path="/-/seat/{address:path}", endpoint="reader.versions:renew_seat", methods=("POST",)),
    RouteRow(path="/-/left/{address:path}", endpoint="reader.versions:leave_seat", methods=("POST",)),
    RouteRow(path="/cdx/search/cdx", endpoint="api.cdx:of_everything"),
    RouteRow(path="/web/timemap/cdx", endpoint="api.cdx:of_everything"),
    RouteRow(path="/outbackcdx/{collection}", endpoint="api.cdx:of_outbackcdx"),
    RouteRow(path="/wayback/available", endpoint="api.cdx:available"),
    RouteRow(path="/{collection}/cdx", endpoint="api.cdx:of_collection"),
    RouteRow(path="/{collection}/xmlquery", endpoint="api.cdx:of_xmlquery"),
    RouteRow(path="/{collection}/{address:path}", endpoint="reader.versions:show_archived", heavy=LISTS),
)

FRAME_ROUTES = (
    RouteRow(path="/", endpoint="reader.home:to_portal"),
    RouteRow(path="/-/pass/{token}/{address:path}", endpoint="reader.versions:accept_pass"),
    RouteRow(path="/compare", endpoint="reader.comparison:compare", heavy=ALL),
    RouteRow(path="/compare/picture", endpoint="reader.comparison:send_picture", heavy=ALL),
    RouteRow(path="/robots.txt", endpoint="reader.home:robots"),
    RouteRow(path="/favicon.ico", endpoint="reader.home:icon"),
    RouteRow(path="/{page}", endpoint="reader.home:to_portal"),
    RouteRow(path="/-/language", endpoint="reader.home:set_language"),
    RouteRow(path="/-/go", endpoint="reader.asked_dates:go"),
    RouteRow(path="/-/banner/{address:path}", endpoint="reader.versions:show_banner"),
    RouteRow(path="/-/seat/{address:path}", endpoint="reader.versions:renew_seat", methods=("POST",)),
    RouteRow(path="/-/left/{address:path}", endpoint="reader.versions:leave_seat", methods=("POST",)),
    RouteRow(path="/{collection}/{address:path}", endpoint="reader.versions:show_archived", heavy=LISTS),
)

REPLAY_ROUTES = (
    RouteRow(path="/robots.txt", endpoint="reader.home:robots"),
    RouteRow(path="/-/start/{address:path}", endpoint="replay.raw:show_start"),
    RouteRow(path="/-/migrated/{address:path}", endpoint="replay.raw:send_migrated"),
    RouteRow(path="/-/thumbnail/{address:path}", endpoint="reader.images:send_thumbnail"),
    RouteRow(path="/cdx/search/cdx", endpoint="api.cdx:of_everything"),
    RouteRow(path="/web/timemap/cdx", endpoint="api.cdx:of_everything"),
    RouteRow(path="/outbackcdx/{collection}", endpoint="api.cdx:of_outbackcdx", methods=("GET", "POST")),
    RouteRow(path="/wayback/available", endpoint="api.cdx:available"),
    RouteRow(path="/{collection}/cdx", endpoint="api.cdx:of_collection"),
    RouteRow(path="/{collection}/xmlquery", endpoint="api.cdx:of_xmlquery"),
    RouteRow(
        path="/{collection}/{address:path}",
        endpoint="replay.raw:answer",
        heavy=LISTS,
        methods=("GET", "POST", "PUT", "DELETE", "PATCH"),
    ),
)


@cache
def load_endpoint(name: str) -> Endpoint:
    """The function with this name, as in "staff.targets.target_page:show"; imports its module."""
    module, _, function = name.partition(":")
    endpoint: Endpoint = getattr(import_module(f"webdepot.web.{module}"), function)
    return endpoint
