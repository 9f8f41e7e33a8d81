"""Configurations of Apache and nginx that staff upload to find the names of hosts."""

from fuzz.scratch import folder
from webdepot.selection.domains import vhosts

TOKENS = (
    b"<VirtualHost *:80>\n", b"</VirtualHost>\n", b"ServerName a.example\n",
    b"ServerAlias *.b.example ${x}\n", b"Define x y\n", b"Include *.conf\n", b"IncludeOptional a.conf\n",
    b"<IfModule x>\n", b"</IfModule>\n", b"\\\n", b"# ", b"server {", b"server_name a.example ~^(.+)\\.b$;",
    b"listen 80;", b"}", b"include a.conf;", b"http {", b'"', b"'", b"Use VHost a\n", b"<Macro VHost $a>\n",
    b";", b"lua_block {",
)  # fmt: skip


def one_input(data: bytes) -> None:
    with folder() as place:
        (place / "a.conf").write_bytes(data)
        vhosts.read([place / "a.conf"])
