"""Glowstone: a neural-network compiler."""
