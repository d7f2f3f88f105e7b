"""What the text forms of both representations share: a scanner, and fields of dataclasses."""

from glowstone.text.fields import Printers, Readers, field_types, parse_value, print_value
from glowstone.text.scanner import ParseError, Scanner, quote_name

__all__ = ["ParseError", "Printers", "Readers", "Scanner", "field_types", "parse_value", "print_value", "quote_name"]
