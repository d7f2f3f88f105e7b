"""`python -m glowstone` is the command line `glowstone`."""

from __future__ import annotations

import sys

from glowstone.cli.main import main

sys.exit(main())
