"""The ports: interfaces behind which implementations can be exchanged, with the values they use.

An implementation is named after what it uses (`LmdbFrontier`, `SqliteCaptureIndex`). `archive.py` chooses the
implementation, except for frontier and fetcher, which a harvest opens itself, and for what the parts of one
harvest share (`Ledger`, `Handover`, `Servers`). Every implementation passes the suite of its port in
`tests/contracts/`; the fetcher is tested in `tests/harvest`.

`Frontier` and `Fetcher` have one implementation each today, the other ports have several.
"""
