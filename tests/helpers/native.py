"""Small kernels for tests of the run loop, written as LLVM IR, and tables that call them.

Every kernel reads what it needs from the words behind the call's header ("word 8" and on).
"""

from __future__ import annotations

import ctypes
import functools
import platform

import numpy as np

from glowstone.backends.cpu.machine import create_target_machine, parse_module
from glowstone.backends.cpu.native.emit import emit_run_loop
from glowstone.backends.cpu.target import Target
from glowstone.runtime.loader import LoadedObject, load_object
from glowstone.runtime.native import NativeCode, native_code
from glowstone.runtime.runner import Runner, prepare
from glowstone.table import FIRST_ARGUMENT_BASE, HEADER_WORDS, Record

MEETING_PATIENCE = 1 << 32
"""Looks at a counter, at least some seconds."""
SIGNATURE = "(ptr %call, ptr %bases, i64 %begin, i64 %end, ptr %scratch, ptr %status)"


def kernel(name: str, body: str, words: tuple[str, ...]) -> str:
    """A kernel whose body runs for every unit %u; %<name> is a word of the call, `body` ends in a block `next`."""
    loads = "\n".join(
        f"%{word}.at = getelementptr i64, ptr %call, i64 {HEADER_WORDS + i}\n%{word} = load i64, ptr %{word}.at"
        for i, word in enumerate(words)
    )
    return f"""
define void @{name}{SIGNATURE} {{
entry:
  {loads}
  br label %head
head:
  %u = phi i64 [ %begin, %entry ], [ %u.next, %next ]
  %more = icmp slt i64 %u, %end
  br i1 %more, label %body, label %done
body:
  {body}
next:
  %u.next = add i64 %u, 1
  br label %head
done:
  ret void
}}
"""


def load_from(name: str, base: str, index: str, kind: str = "i64") -> str:
    """%name = element `index` of base number `base`."""
    return f"""
  %{name}.slot = getelementptr ptr, ptr %bases, i64 {base}
  %{name}.base = load ptr, ptr %{name}.slot
  %{name}.place = getelementptr {kind}, ptr %{name}.base, i64 {index}
  %{name} = load {kind}, ptr %{name}.place
"""


KERNELS = {
    # to[u] = from[(u + 1) % count] * 3 + u: right only if every unit of the instruction before is finished
    "rotate": kernel(
        "rotate",
        "%v = add i64 %u, 1\n%index = urem i64 %v, %count\n"
        + load_from("x", "%from", "%index")
        + load_from("old", "%to", "%u")
        + "%tripled = mul i64 %x, 3\n%y = add i64 %tripled, %u\nstore i64 %y, ptr %old.place\nbr label %next",
        ("from", "to", "count"),
    ),
    # to[u] += amount
    "increase": kernel(
        "increase",
        load_from("x", "%to", "%u") + "%y = add i64 %x, %amount\nstore i64 %y, ptr %x.place\nbr label %next",
        ("to", "amount"),
    ),
    # to[u] = from[u] / 2, in float32
    "halve": kernel(
        "halve",
        load_from("x", "%from", "%u", "float")
        + load_from("old", "%to", "%u", "float")
        + "%y = fmul float %x, 0.5\nstore float %y, ptr %old.place\nbr label %next",
        ("from", "to"),
    ),
    # to[u] = from[u] / 2, in float32, but only when `count` units are being executed at once; -1 if they never are
    "meet": kernel(
        "meet",
        load_from("x", "%from", "%u", "float")
        + load_from("old", "%to", "%u", "float")
        + load_from("arrived", "%counter", "0")
        + f"""
  %mine = atomicrmw add ptr %arrived.place, i64 1 seq_cst
  br label %wait
wait:
  %i = phi i64 [ 0, %body ], [ %i.next, %wait ]
  %i.next = add i64 %i, 1
  %there = load atomic i64, ptr %arrived.place seq_cst, align 8
  %met = icmp sge i64 %there, %count
  %tired = icmp sgt i64 %i, {MEETING_PATIENCE}
  %leave = or i1 %met, %tired
  br i1 %leave, label %write, label %wait
write:
  %half = fmul float %x, 0.5
  %y = select i1 %met, float %half, float -1.0
  store float %y, ptr %old.place
  br label %next
""",
        ("from", "to", "counter", "count"),
    ),
    # Status: units from `first` on have a bad value, ten times the unit; the lowest unit stays.
    "refuse": kernel(
        "refuse",
        """
  %bad = icmp sge i64 %u, %first
  %code.at = getelementptr i64, ptr %status, i64 2
  %code = load i64, ptr %code.at
  %unit.at = getelementptr i64, ptr %status, i64 1
  %unit = load i64, ptr %unit.at
  %good = icmp eq i64 %code, 0
  %lower = icmp slt i64 %u, %unit
  %wins = or i1 %good, %lower
  %write = and i1 %bad, %wins
  br i1 %write, label %report, label %next
report:
  store i64 %u, ptr %unit.at
  store i64 1, ptr %code.at
  %value = mul i64 %u, 10
  %value.at = getelementptr i64, ptr %status, i64 3
  store i64 %value, ptr %value.at
  br label %next
""",
        ("first",),
    ),
    # Fills its scratch with the unit and sums it up again: wrong if two threads share scratch.
    "sum_scratch": kernel(
        "sum_scratch",
        load_from("old", "%to", "%u")
        + """
  br label %fill
fill:
  %i = phi i64 [ 0, %body ], [ %i.next, %fill ]
  %cell = getelementptr i64, ptr %scratch, i64 %i
  store volatile i64 %u, ptr %cell
  %i.next = add i64 %i, 1
  %filled = icmp eq i64 %i.next, %count
  br i1 %filled, label %sum, label %fill
sum:
  %j = phi i64 [ 0, %fill ], [ %j.next, %sum ]
  %total = phi i64 [ 0, %fill ], [ %total.next, %sum ]
  %read = getelementptr i64, ptr %scratch, i64 %j
  %value = load volatile i64, ptr %read
  %total.next = add i64 %total, %value
  %j.next = add i64 %j, 1
  %summed = icmp eq i64 %j.next, %count
  br i1 %summed, label %write, label %sum
write:
  store i64 %total.next, ptr %old.place
  br label %next
""",
        ("to", "count"),
    ),
}
KERNEL_NAMES = tuple(KERNELS)

_FLOATING_POINT = {
    "x86_64": """
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse.stmxcsr(ptr)
define i64 @control() {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %word = load i32, ptr %place
  %wide = zext i32 %word to i64
  ret i64 %wide
}
define void @set_control(i64 %wide) {
  %word = trunc i64 %wide to i32
  %place = alloca i32
  store i32 %word, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret void
}
""",
    "aarch64": """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define i64 @control() {
  %word = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %word
}
define void @set_control(i64 %word) {
  call void @llvm.aarch64.set.fpcr(i64 %word)
  ret void
}
""",
}
_FLUSH_BITS = {"x86_64": 0x8040, "aarch64": 1 << 24}


def architecture() -> str:
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())


def flush_bits() -> int:
    """Bits of the floating-point control register that turn denormals into zeroes."""
    return _FLUSH_BITS[architecture()]


def emit(text: str, target: Target | None = None) -> bytes:
    """The object file of a module of LLVM IR."""
    target = target or Target.host()
    machine = create_target_machine(target.triple, target.cpu, target.features)
    return bytes(machine.emit_object(parse_module(text)))


@functools.cache
def kernels() -> LoadedObject:
    return load_object(emit("\n".join(KERNELS.values())))


@functools.cache
def control_functions():
    """(read, set) of this thread's floating-point control register."""
    loaded = load_object(emit(_FLOATING_POINT[architecture()]))
    read = ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.symbols["control"])
    write = ctypes.CFUNCTYPE(None, ctypes.c_int64)(loaded.symbols["set_control"])
    return read, write, loaded


@functools.cache
def _run_loop() -> bytes:
    return emit_run_loop(Target.host())


def code() -> NativeCode:
    return native_code(_run_loop)


class Table:
    """Records one after another."""

    def __init__(self) -> None:
        self.words: list[int] = []

    def call(self, name, *words, units, grain=1, cost=0, scratch=0, number=0) -> None:
        """A call of a test kernel."""
        header = (Record.CALL, HEADER_WORDS + len(words), KERNEL_NAMES.index(name), units, grain, scratch, cost, number)
        self.words += [*header, *words]

    def loop(self, count: tuple[int, int], *slots: tuple[int, int, int]) -> int:
        """A loop of count = (base, offset) passes; slots are (slot, source, increment). Gives its word index."""
        position = len(self.words)
        flat = [word for slot in slots for word in slot]
        self.words += [Record.LOOP, 5 + len(flat), *count, len(slots), *flat]
        return position

    def next(self, loop: int) -> None:
        self.words += [Record.NEXT, 3, loop]

    def branch(self, condition: tuple[int, int]) -> int:
        """Goes to a target set later by `land` where the bool at (base, offset) is false."""
        self.words += [Record.BRANCH, 5, *condition, -1]
        return len(self.words) - 1

    def jump(self) -> int:
        self.words += [Record.JUMP, 3, -1]
        return len(self.words) - 1

    def land(self, target: int) -> None:
        """The next record is where the branch or jump goes."""
        self.words[target] = len(self.words)

    def runner(self, arrays, *, threads=1, slots=0) -> Runner:
        """A runner with the arrays as argument bases, then loop slots."""
        words = np.array([*self.words, Record.END, 2], np.int64)
        addresses = [kernels().symbols[name] for name in KERNEL_NAMES]
        prepared = prepare(words, addresses, FIRST_ARGUMENT_BASE + len(arrays) + slots, kernels())
        runner = Runner(code(), prepared, threads, lambda number: f"instruction {number}")
        for i, array in enumerate(arrays):
            runner.bases[FIRST_ARGUMENT_BASE + i] = array.ctypes.data
        return runner


A, B, C = (FIRST_ARGUMENT_BASE + i for i in range(3))
"""Numbers of the first argument bases."""


def rotations(instructions: int, count: int, *, grain: int = 3, cost: int = 2_000) -> Table:
    """`rotate` from A to B, B to A and so on."""
    table = Table()
    for i in range(instructions):
        source, target = (A, B) if i % 2 == 0 else (B, A)
        table.call("rotate", source, target, count, units=count, grain=grain, cost=cost, number=i)
    return table


def rotated(start: np.ndarray, instructions: int) -> np.ndarray:
    """What `rotations` leaves in the last array written, by NumPy."""
    values = start.copy()
    for _ in range(instructions):
        values = np.roll(values, -1) * 3 + np.arange(len(values))
    return values
