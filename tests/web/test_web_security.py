"""The policies of archived pages."""

import pytest

from webdepot.web import security


@pytest.mark.parametrize(
    "policy",
    [
        security.page_policy("https://archive.example.org"),
        security.still_policy("https://archive.example.org"),
    ],
)
def test_policies_of_archived_pages_let_nothing_out(policy: str):
    for word in ("ws:", "http:", "https: ", "*"):
        assert word not in policy
