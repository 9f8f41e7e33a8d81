"""The construction of the sample site in each period: one module for each look, with `LOOK` and `build`; only
the texts are shared.
"""
