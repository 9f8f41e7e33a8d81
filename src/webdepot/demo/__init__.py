"""The demonstration: a sample institution, its web site in several editions, and a run that archives all of
them.

Everything is invented: town, river, people, prices and dates. Host names end in `.example`, which RFC 2606
reserves for this, and the site is served on loopback only.
"""
