"""graph_passes."""
