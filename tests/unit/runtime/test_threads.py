"""How many threads are used by default, on made-up machines."""

from __future__ import annotations

import pytest

from glowstone.runtime.threads import cgroup_quota, default_threads, physical_cores


def write(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")


@pytest.mark.parametrize(("processors", "cores"), [({0, 1, 2, 3}, 2), ({0, 2}, 1), ({0, 1}, 2), ({3}, 1)])
def test_siblings_are_one_core(tmp_path, processors, cores):
    siblings = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}
    write(tmp_path, {f"sys/devices/system/cpu/cpu{i}/topology/core_cpus_list": text for i, text in siblings.items()})
    assert physical_cores(processors, tmp_path) == cores


def test_unknown_topology_counts_every_processor(tmp_path):
    assert physical_cores({0, 5, 6}, tmp_path) == 3


def test_quota_is_the_smallest_on_the_way_up(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/outer/inner",
            "sys/fs/cgroup/outer/cpu.max": "150000 100000",
            "sys/fs/cgroup/outer/inner/cpu.max": "max 100000",
        },
    )
    assert cgroup_quota(tmp_path) == 1.5


def test_quota_of_a_container_that_sees_itself_as_root(tmp_path):
    write(tmp_path, {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "400000 100000"})
    assert cgroup_quota(tmp_path) == 4


def test_quota_of_version_1(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/job\n3:cpu,cpuacct:/job",
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "250000",
            "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        },
    )
    assert cgroup_quota(tmp_path) == 2.5


def test_no_quota(tmp_path):
    assert cgroup_quota(tmp_path) is None


def test_at_least_one_thread():
    assert 1 <= default_threads() <= 64
    assert default_threads(limit=1) == 1
