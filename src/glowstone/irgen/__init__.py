"""irgen."""
