"""Graph passes of this backend: fusion, layout, packing. The order stands in `pipeline.py`."""
