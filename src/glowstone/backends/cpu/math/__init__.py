"""Mathematical functions as vector code: no call leaves the kernel, so objects refer to nothing outside themselves."""
