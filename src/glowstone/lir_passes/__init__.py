"""lir_passes."""
