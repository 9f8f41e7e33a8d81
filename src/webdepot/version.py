"""The version of this program, as it was installed."""

from importlib.metadata import version

VERSION = version("webdepot")
