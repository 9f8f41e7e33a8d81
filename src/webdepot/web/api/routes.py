"""The routes of the JSON API (`/api/`), which are part of those of the portal."""

from webdepot.accounts.roles import ADMINISTRATORS, CURATORS, PARTNERS, REVIEWERS, STAFF
from webdepot.web.route_row import ALL, RouteRow

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
