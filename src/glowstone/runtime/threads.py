"""How many threads a model uses unless told: the physical cores that this process may use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from glowstone.runtime import operating_system as system

_ROOT = Path("/")


def default_threads(limit: int = 64) -> int:
    """Physical cores allowed by the processor affinity and by the control group's quota; at least 1."""
    if sys.platform == "linux":
        cores = physical_cores(os.sched_getaffinity(0))
        quota = cgroup_quota()
        return max(1, min(limit, cores, cores if quota is None else int(quota)))
    return max(1, min(limit, system.physical_core_count() or os.cpu_count() or 1))


def physical_cores(processors: set[int], root: Path = _ROOT) -> int:
    """Number of cores that the logical processors belong to. Processors of unknown topology count by themselves."""
    cores = set()
    for processor in processors:
        topology = root / f"sys/devices/system/cpu/cpu{processor}/topology"
        siblings = _read(topology / "core_cpus_list") or _read(topology / "thread_siblings_list")
        cores.add(siblings or f"alone {processor}")
    return len(cores)


def cgroup_quota(root: Path = _ROOT) -> float | None:
    """Processors' worth of time that the control groups of this process allow, or None without a limit."""
    limits = []
    for line in (_read(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            limits += _limits_upwards(root / "sys/fs/cgroup", path, _quota_version_2)
        elif "cpu" in controllers.split(","):
            limits += _limits_upwards(root / "sys/fs/cgroup/cpu", path, _quota_version_1)
    return min(limits, default=None)


def _limits_upwards(mount: Path, path: str, quota_of: Callable[[Path], float | None]) -> list[float]:
    """Limits of a group and of all groups around it. In a container the mount may show the group itself as its root."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    folders = [mount.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]
    return [quota for quota in map(quota_of, folders) if quota is not None]


def _quota_version_2(folder: Path) -> float | None:
    quota, _, period = (_read(folder / "cpu.max") or "max").partition(" ")
    return None if quota == "max" else int(quota) / int(period)


def _quota_version_1(folder: Path) -> float | None:
    quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
    if quota is None or period is None or int(quota) <= 0:
        return None
    return int(quota) / int(period)


def _read(path: Path) -> str | None:
    """A file's text without surrounding space, or None where there is no such file."""
    try:
        return path.read_text().strip()
    except OSError:
        return None
