"""Where activation buffers lie in the arena: liveness, planner, checker."""

from glowstone.memory.addresses import AddressMap, assign_addresses
from glowstone.memory.checker import check_plan
from glowstone.memory.liveness import LiveInterval, largest_live_sum, live_intervals
from glowstone.memory.planner import ALIGNMENT, MemoryPlan, plan_memory

__all__ = [
    "ALIGNMENT",
    "AddressMap",
    "LiveInterval",
    "MemoryPlan",
    "assign_addresses",
    "check_plan",
    "largest_live_sum",
    "live_intervals",
    "plan_memory",
]
