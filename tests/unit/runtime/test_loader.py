"""The object loader: relocations, what it refuses, and damaged files."""

from __future__ import annotations

import ctypes
import gc
import struct

import numpy as np
import pytest
from helpers.native import KERNELS, emit

from glowstone.backends.cpu.native.emit import emit_run_loop
from glowstone.backends.cpu.target import Target
from glowstone.runtime import operating_system as system
from glowstone.runtime.elf import Machine, parse_object
from glowstone.runtime.loader import load_object
from glowstone.runtime.relocate import DIRECT, THROUGH_TABLE

AARCH64 = Target("aarch64-unknown-linux-gnu", "generic")

X86_64 = Target("x86_64-unknown-linux-gnu", "x86-64-v4")

PROGRAM = """
@primes = internal constant [5 x i64] [i64 2, i64 3, i64 5, i64 7, i64 11]
@visible = global i64 40
@zeroes = internal global [100 x i64] zeroinitializer
@functions = internal constant [2 x ptr] [ptr @prime, ptr @visible_value]
@pi = internal constant <4 x float> <float 1.0, float 2.0, float 3.0, float 4.0>, align 64

define i64 @prime(i64 %i) {
  %place = getelementptr i64, ptr @primes, i64 %i
  %value = load i64, ptr %place
  ret i64 %value
}
define i64 @visible_value(i64 %i) {
  %old = load i64, ptr @visible
  %new = add i64 %old, %i
  store i64 %new, ptr @visible
  ret i64 %new
}
define i64 @through_pointer(i64 %which, i64 %i) {
  %place = getelementptr ptr, ptr @functions, i64 %which
  %function = load ptr, ptr %place
  %value = call i64 %function(i64 %i)
  ret i64 %value
}
define i64 @count(i64 %i) noinline {
  %place = getelementptr i64, ptr @zeroes, i64 %i
  %old = load i64, ptr %place
  %new = add i64 %old, 1
  store i64 %new, ptr %place
  ret i64 %new
}
define i64 @count_twice(i64 %i) {
  %first = call i64 @count(i64 %i)
  %second = call i64 @count(i64 %i)
  ret i64 %second
}
define i64 @address_of_constant() {
  %address = ptrtoint ptr @pi to i64
  ret i64 %address
}
"""


@pytest.fixture(scope="module")
def program():
    return load_object(emit(PROGRAM))


def call(loaded, name, *arguments):
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))
    return kind(loaded.symbols[name])(*arguments)


def test_constants_and_pointers_to_functions(program):
    assert [call(program, "prime", i) for i in range(5)] == [2, 3, 5, 7, 11]
    assert call(program, "through_pointer", 0, 4) == 11


def test_writable_data():
    loaded = load_object(emit(PROGRAM))
    assert call(loaded, "through_pointer", 1, 2) == 42
    assert call(loaded, "visible_value", 1) == 43
    assert ctypes.c_int64.from_address(loaded.symbols["visible"]).value == 43
    assert call(loaded, "count_twice", 99) == 2
    assert call(load_object(emit(PROGRAM)), "visible_value", 1) == 41, "every load has data of its own"


def test_alignment_of_constants(program):
    address = call(program, "address_of_constant")
    assert address % 64 == 0
    assert np.ctypeslib.as_array((ctypes.c_float * 4).from_address(address)).tolist() == [1, 2, 3, 4]


def test_only_exported_symbols_are_given(program):
    functions = {"prime", "visible_value", "through_pointer", "count", "count_twice", "address_of_constant"}
    assert set(program.symbols) == {*functions, "visible"}


def test_memory_is_given_back(monkeypatch):
    given = []
    monkeypatch.setattr(system, "unmap_memory", lambda address, size: given.append((address, size)))
    loaded = load_object(emit(KERNELS["increase"]))
    address = loaded.symbols["increase"]
    del loaded
    gc.collect()
    assert len(given) == 1
    assert given[0][0] <= address < sum(given[0])


def test_memory_is_never_writable_and_executable(monkeypatch):
    protections = []
    protect = system.protect_memory

    def record(address, size, protection):
        protections.append(protection)
        protect(address, size, protection)

    monkeypatch.setattr(system, "protect_memory", record)
    load_object(emit(PROGRAM))
    assert system.PROTECTION_READ | system.PROTECTION_EXECUTE in protections
    assert not any(p & system.PROTECTION_WRITE and p & system.PROTECTION_EXECUTE for p in protections)


def test_outside_symbols_are_refused():
    text = (
        "declare double @sin(double)\ndefine double @f(double %x) {\n%y = call double @sin(double %x)\nret double %y\n}"
    )
    with pytest.raises(ValueError, match="'sin'"):
        load_object(emit(text))


def test_another_machine_is_refused():
    foreign = AARCH64 if parse_object(emit(PROGRAM)).machine is Machine.X86_64 else X86_64
    with pytest.raises(ValueError, match="this machine is"):
        load_object(emit(PROGRAM, foreign))


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"MZ" + bytes(200), bytes(64)])
def test_something_else_is_refused(content):
    with pytest.raises(ValueError, match="object"):
        load_object(content)


def test_every_truncation_is_refused():
    content = emit(PROGRAM)
    for length in range(0, len(content), 5):
        with pytest.raises(ValueError, match="object file"):
            parse_object(content[:length])


def test_damaged_files_give_clean_errors():
    content = emit(PROGRAM)
    random = np.random.default_rng(7)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(content)
        for position in random.integers(0, len(content), 3):
            damaged[position] = random.integers(256)
        try:
            load_object(bytes(damaged))
        except ValueError:
            refused += 1
    assert refused > 300


def test_a_section_larger_than_memory_is_refused():
    content = bytearray(emit(PROGRAM))
    (table,) = struct.unpack_from("<Q", content, 40)
    for number in range(struct.unpack_from("<H", content, 60)[0]):
        header = table + 64 * number
        if struct.unpack_from("<I", content, header + 4)[0] == 8:  # SHT_NOBITS
            struct.pack_into("<Q", content, header + 32, 1 << 63)
    with pytest.raises(ValueError, match="bytes of memory"):
        load_object(bytes(content))


PLACE = 0x10000


@pytest.mark.parametrize(
    ("kind", "before", "target", "expected"),
    [
        # Encodings from the Arm Architecture Reference Manual: instruction before, target, instruction after
        pytest.param(275, 0x90000000, PLACE + 0x3123, 0xF0000000, id="adrp x0, +3 pages"),
        pytest.param(275, 0x90000001, PLACE - 0x1000, 0xF0FFFFE1, id="adrp x1, -1 page"),
        pytest.param(277, 0x91000000, 0x40123, 0x91048C00, id="add x0, x0, #0x123"),
        pytest.param(278, 0x39400020, 0x40FFF, 0x397FFC20, id="ldrb w0, [x1, #0xfff]"),
        pytest.param(284, 0x79400020, 0x40FFE, 0x795FFC20, id="ldrh w0, [x1, #0xffe]"),
        pytest.param(285, 0xB9400020, 0x40010, 0xB9401020, id="ldr w0, [x1, #16]"),
        pytest.param(286, 0xF9400020, 0x40018, 0xF9400C20, id="ldr x0, [x1, #24]"),
        pytest.param(299, 0x3DC00020, 0x40030, 0x3DC00C20, id="ldr q0, [x1, #48]"),
        pytest.param(283, 0x94000000, PLACE + 8, 0x94000002, id="bl +8"),
        pytest.param(282, 0x14000000, PLACE - 4, 0x17FFFFFF, id="b -4"),
        pytest.param(280, 0x54000001, PLACE + 16, 0x54000081, id="b.ne +16"),
        pytest.param(279, 0x37000000, PLACE - 8, 0x3707FFC0, id="tbnz w0, #0, -8"),
        pytest.param(274, 0x10000000, PLACE + 5, 0x30000020, id="adr x0, +5"),
        pytest.param(261, 0, PLACE - 2, 0xFFFFFFFE, id="32 bits relative"),
    ],
)
def test_aarch64_relocations(kind, before, target, expected):
    content = bytearray(struct.pack("<I", before))
    DIRECT[Machine.AARCH64][kind](content, 0, target, PLACE)
    assert content == struct.pack("<I", expected)


def test_a_distance_that_does_not_fit_is_refused():
    with pytest.raises(struct.error, match="26 bits"):
        DIRECT[Machine.AARCH64][283](bytearray(4), 0, PLACE + (1 << 28), PLACE)


@pytest.mark.parametrize(
    "target", [AARCH64, Target("x86_64-unknown-linux-gnu", "x86-64-v4")], ids=["aarch64", "x86_64"]
)
def test_all_relocations_that_occur_are_known(target):
    for content in (emit(PROGRAM, target), emit_run_loop(target)):
        parsed = parse_object(content)
        known = DIRECT[parsed.machine].keys() | THROUGH_TABLE[parsed.machine].keys()
        used = {entry.kind for section in parsed.sections.values() for entry in section.relocations}
        assert used <= known
        outside = [symbol.name for symbol in parsed.symbols[1:] if symbol.section is None and symbol.is_global]
        assert outside == []
