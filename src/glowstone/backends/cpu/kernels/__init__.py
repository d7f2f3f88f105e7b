"""One file per kernel family. Importing this package registers every module in it."""

import importlib
import pkgutil

for _module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
    importlib.import_module(f"{__name__}.{_module.name}")
