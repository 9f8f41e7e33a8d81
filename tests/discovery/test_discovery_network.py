"""Discovery on the closed network: profile, five sectors, reasons, corrections, curators' decisions."""

import json

import pytest
from closed_network import ClosedNetwork
from musterstadt import MEMBERS, STRANGERS

from webdepot.archive import Archive
from webdepot.services.selection import discovery as discovery_service
from webdepot.services.selection import organisations


@pytest.fixture
def discovery(closed: ClosedNetwork, archive: Archive) -> discovery_service.Discovery:
    return discovery_service.discover(archive, "uni-musterstadt.example", allow_private=True)


def test_the_profile_says_what_and_from_where(discovery: discovery_service.Discovery) -> None:
    profile = discovery.organisation.profile
    print(
        json.dumps(organisations.as_objects(discovery.hosts), indent=1, ensure_ascii=False),
        discovery.asked,
    )
    assert profile.name == "Universität Musterstadt"
    assert [item.value for item in profile.ranges] == ["127.10.0.0/24"]
    assert "held by" in profile.ranges[0].source
    assert {item.value for item in profile.name_servers} == {
        "ns1.uni-musterstadt.example",
        "ns2.uni-musterstadt.example",
    }
    assert profile.registrant[0].value == "Universität Musterstadt"
    assert "127.0.0.1" in profile.registrant[0].source
    assert profile.address[0].value == "Seestr. 10 Musterstadt"
    assert "DE123456789" in {item.value for item in profile.vat_ids}


def test_every_member_that_can_be_found_is_found_with_its_case_and_nobody_else(
    discovery: discovery_service.Discovery,
) -> None:
    found = {host.host: host.case for host in discovery.hosts if host.own}
    assert found == MEMBERS
    assert {host.host for host in discovery.hosts if host.own is False} >= STRANGERS
    for host in discovery.hosts:
        assert host.evidence or not host.own
