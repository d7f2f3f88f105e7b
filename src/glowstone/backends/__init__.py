"""Backends: the protocol, and one folder for each."""
