"""Roles of people and keys, and who may do what.

reader         has saved searches
partner        another institution: nominates sites
curator        selects sites, asks owners, plans, harvests
reviewer       accepts and rejects harvests, decides complaints
administrator  everything, and the accounts

A page or operation names one of the groups below: `web/routes.py` has a row for each page.
"""

from enum import StrEnum


class Role(StrEnum):
    READER = "reader"
    PARTNER = "partner"
    CURATOR = "curator"
    REVIEWER = "reviewer"
    ADMINISTRATOR = "administrator"


STAFF = frozenset({Role.CURATOR, Role.REVIEWER, Role.ADMINISTRATOR})
"""The roles of people who work for the archive."""
SIGNED_IN = frozenset(Role)
CURATORS = frozenset({Role.CURATOR, Role.ADMINISTRATOR})
REVIEWERS = frozenset({Role.REVIEWER, Role.ADMINISTRATOR})
PARTNERS = frozenset({Role.PARTNER, *STAFF})
"""People who may nominate sites."""
ADMINISTRATORS = frozenset({Role.ADMINISTRATOR})
