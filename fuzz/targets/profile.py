"""Harvest profiles (TOML) that staff save."""

from webdepot.harvest import profile, profile_text

TOKENS = (
    b"description = ''\n", b"seeds = ['http://a.example/']\n", b"[[rules]]\n", b"accept = 'regex'\n",
    b"reject = 'path'\n", b"of = ['(a+)+$']\n", b"[hosts.'a.example']\n", b"delay_s = 1\n",
    b"robots = 'ignore'\n", b"reason = 'x'\n", b"limit_pages = 10\n", b"[profiles.fuzz]\n", b"nan", b"inf",
    b"-1", b"true", b"[[", b"]]", b"2020-01-01", b'"""', b"over = 5\n", b"unless = 'x'\n", b"mime",
    b"a.b.c = 1\n", b"{", b"}", b"0x", b"1_0",
)  # fmt: skip


def one_input(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    profile.from_text("fuzz", text, origin="fuzz.toml")
    profile.from_text("fuzz", profile_text.with_key(text, "robots", "obey"), origin="fuzz.toml")
