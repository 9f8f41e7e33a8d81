"""How the sample site was built in each age: one module a look, each with `LOOK`, `build` and nothing shared
but texts.
"""
