"""Mathematical functions as vector code: no call leaves the kernel, so objects refer to nothing outside themselves.

The polynomials come from `scripts/fit_polynomials.py`.
"""
