"""Links of HTML pages."""

from fuzz.body_links import read

TOKENS = (
    b'<a href="', b"<img srcset='a 1x, b 2x'>", b"<base href=", b"<meta http-equiv=refresh content='0; url=",
    b"<meta name=robots content=", b"<style>", b"</style>", b"<script>", b"</script>", b"<!--", b"-->",
    b"<link rel=stylesheet href=", b"<iframe srcdoc='", b"<object data=", b"<param name=movie value=",
    b"<form action=", b"style='background:url(", b"&amp;", b"&#x41;", b"&#99999999;",
    b"<svg><use xlink:href=", b"<video poster=", b"data-src=", b"<template>", b"<noscript>",
    b"<meta charset=", b"utf-16", b'{"@id": "http://a.example/"}', b"<script type='application/ld+json'>",
    b"<area href=", b"target=", b'"', b"'", b">", b"<applet codebase=", b"<frame src=", b"onclick=", b"ping=",
    b" rel=nofollow", b"//b.example/", b"data:text/html,<a href=/x>", b"%ff", b"\0",
)  # fmt: skip


def one_input(data: bytes) -> None:
    read(data, "text/html; charset=utf-8", allowed=frozenset({"JSONDecodeError", "RecursionError"}))
    read(data[:4096], "text/html", allowed=frozenset({"JSONDecodeError", "RecursionError"}))
