import pytest

from webdepot.selection.domains.evidence import below_domain


@pytest.mark.parametrize(
    ("host", "root", "is_below"),
    [
        ("kaart.museum.example", "www.museum.example", True),
        ("museum.example", "www.museum.example", True),
        ("notmuseum.example", "www.museum.example", False),
        ("lib.ox.ac.uk", "www.ox.ac.uk", True),
        ("cam.ac.uk", "www.ox.ac.uk", False),
        ("b.github.io", "a.github.io", False),
        ("KAART.Museum.example:8080", "museum.example", True),
    ],
)
def test_only_hosts_of_the_same_registrable_domain_lie_below_it(host, root, is_below):
    sign = below_domain(host, root)
    assert (sign is not None) == is_below
    if sign:
        assert sign.weight > 0
        assert root in sign.words
