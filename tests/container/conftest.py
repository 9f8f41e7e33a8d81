"""FastWARC, the other reader that ours is compared with, warns about its own old names when it is imported."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import fastwarc  # noqa: F401
