"""A compiled program as one object file with a C header."""

from glowstone.bundle.argument import Argument
from glowstone.bundle.bundle import Bundle, write_bundle

__all__ = ["Argument", "Bundle", "write_bundle"]
