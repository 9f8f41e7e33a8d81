"""Generated addresses."""

import string

from hypothesis import strategies as st

HEX32 = "0123456789abcdef" * 2
HEX24 = "0123456789abcdefABCDEF12"


labels = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=12).filter(
    lambda text: not text.lower().startswith("xn--")
)
hosts = st.builds(
    lambda www, middle, top, dot: ".".join([*www, *middle, top]) + dot,
    st.sampled_from([[], ["www"], ["WWW"], ["www2"], ["wwwx"], ["m", "www"]]),
    st.lists(labels, min_size=0, max_size=3),
    st.text(string.ascii_letters, min_size=2, max_size=6),
    st.sampled_from(["", "", "", "."]),
)
printable = "".join(map(chr, range(0x21, 0x7F)))
pieces = st.one_of(
    st.text("".join(char for char in printable if char not in "/?#\\."), min_size=1, max_size=10),
    st.sampled_from(
        [
            "%41",
            "%2541",
            "%252541",
            "%c3%A9",
            "%E9",
            "%",
            "%zz",
            "%00",
            "%23",
            "%3f",
            "%26",
            "%20",
            " ",
            "\u00e9",
            "\u6f22",
            ".aspx",
            "a.b",
            "page.aspx",
        ]
    ),
    st.sampled_from([f"({HEX24})", f"(S({HEX24}))", f"(A({HEX24})F({HEX24}))"]),
)
segments = st.lists(pieces, min_size=0, max_size=3).map("".join).filter(lambda text: not text.endswith(" "))
paths = st.one_of(st.just(""), st.lists(segments, max_size=5).map(lambda found: "/" + "/".join(found)))
arguments = st.one_of(
    st.text("".join(char for char in printable if char != "#"), max_size=12),
    st.sampled_from(
        [
            f"jsessionid={HEX32}",
            f"PHPSESSID={HEX32}",
            f"sid={HEX32}",
            "aspsessionidqwertyui=" + "q" * 24,
            "cfid=1",
            "CFTOKEN=2",
            "cfid=",
            "xcfid=1",
            "a=%26b",
            "b=%C3%A9",
        ]
    ),
)
queries = st.one_of(st.just(""), st.lists(arguments, max_size=5).map(lambda found: "?" + "&".join(found)))
addresses = st.builds(
    lambda scheme, user, host, port, path, query, fragment: (
        f"{scheme}://{user}{host}{port}{path}{query}{fragment}"
    ),
    st.sampled_from(["http", "https", "HTTP", "https", "ftp"]),
    st.sampled_from(["", "", "", "user@", "user:pass@"]),
    hosts,
    st.sampled_from(["", "", "", ":", ":80", ":443", ":8080"]),
    paths,
    queries,
    st.sampled_from(["", "", "#", "#top"]),
)
