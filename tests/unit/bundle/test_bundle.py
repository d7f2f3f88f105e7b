"""A program as an object file: linked with a C program it gives the bits that it gives in this process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from glowstone.backends.cpu.compile import emit_object
from glowstone.backends.cpu.kernel_family import KernelKey, family_for
from glowstone.backends.cpu.native.emit import emit_run_loop
from glowstone.backends.cpu.target import Target
from glowstone.bundle import Argument, Bundle, write_bundle
from glowstone.errors import InputError, UnsupportedError
from glowstone.lir import Buffer, BufferKind, Elementwise, Instruction, MatMul
from glowstone.lir.table import TableEntry, encode
from glowstone.runtime.loader import load_object
from glowstone.runtime.native import native_code
from glowstone.runtime.runner import Runner, prepare
from glowstone.scalar import parse_expression
from glowstone.table import BASE_ARENA, BASE_CONSTANTS, BASE_PLAN_CONSTANTS, FIRST_ARGUMENT_BASE, Address, Record
from glowstone.types import ElementType

F32, I64 = ElementType.F32, ElementType.I64
ROWS, DEPTH, COLUMNS, LAYERS = 6, 40, 13, 4

C_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "first.h"
#include "second.h"

static _Alignas(FIRST_ARENA_ALIGNMENT) unsigned char arena[FIRST_ARENA_BYTES];

static int read_file(const char *path, void *to, size_t size) {
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    size_t count = fread(to, 1, size, file);
    fclose(file);
    return count == size;
}

int main(int argc, char **argv) {
    static float x[FIRST_INPUT_X_BYTES / sizeof(float)];
    static long long passes[FIRST_INPUT_PASSES_0_BYTES / sizeof(long long)];
    static float y[FIRST_OUTPUT_Y_BYTES / sizeof(float)];
    const void *inputs[FIRST_INPUT_COUNT];
    void *outputs[FIRST_OUTPUT_COUNT] = {y};
    inputs[FIRST_INPUT_X] = x;
    inputs[FIRST_INPUT_PASSES_0] = passes;
    if (argc != 3 || !read_file(argv[1], x, sizeof x) || !read_file(argv[2], passes, sizeof passes)) return 2;
    for (int i = 0; i < 2; i++) {
        for (size_t b = 0; b < sizeof arena; b++) arena[b] = 0xff;
        int failed = i == 0 ? first_run(inputs, outputs, arena) : second_run(inputs, outputs, arena);
        if (failed) return 3;
        fwrite(y, sizeof y, 1, stdout);
    }
    return 0;
}
"""


class Example:
    """y[layer] = exp(x W) scale for every pass of a loop, with all kinds of base in use."""

    def __init__(self) -> None:
        random = np.random.default_rng(3)
        self.weights = random.standard_normal((DEPTH, COLUMNS)).astype(np.float32)
        self.scale = random.standard_normal((ROWS, COLUMNS)).astype(np.float32)
        self.x = random.standard_normal((ROWS, DEPTH)).astype(np.float32)
        self.passes = np.array([3])
        self.target = Target.host()
        self.words, self.keys, self.scratch = self._encode()

    def _encode(self):
        slot = FIRST_ARGUMENT_BASE + 3
        x = Buffer("x", BufferKind.INPUT, F32, (ROWS, DEPTH))
        weights = Buffer("weights", BufferKind.CONSTANT, F32, (DEPTH, COLUMNS))
        scale = Buffer("scale", BufferKind.PLAN_CONSTANT, F32, (ROWS, COLUMNS))
        product = Buffer("product", BufferKind.ACTIVATION, F32, (ROWS, COLUMNS))
        layer = Buffer("layer", BufferKind.OUTPUT, F32, (ROWS, COLUMNS))
        addresses = {
            x: Address(FIRST_ARGUMENT_BASE, 0),
            weights: Address(BASE_CONSTANTS, 64),
            scale: Address(BASE_PLAN_CONSTANTS, 0),
            product: Address(BASE_ARENA, 64),
            layer: Address(slot, 0),
        }
        expression = parse_expression("mul(exp(x0:f32), x1:f32)")
        instructions = [
            Instruction(MatMul(), (product.view(), x.view(), weights.view())),
            Instruction(Elementwise((expression,), 2), (layer.view(), product.view(), scale.view())),
        ]
        calls = [family_for(step.operation).plan(step, self.target) for step in instructions]
        keys = [call.key for call in calls]
        assert all(isinstance(key, KernelKey) for key in keys)
        entries = [TableEntry(step, call, i) for i, (step, call) in enumerate(zip(instructions, calls, strict=True))]
        straight = encode(entries, addresses).tolist()
        loop = [Record.LOOP, 8, FIRST_ARGUMENT_BASE + 1, 0, 1, slot, FIRST_ARGUMENT_BASE + 2, layer.bytes]
        words = [*loop, *straight[:-2], Record.NEXT, 3, 0, *straight[-2:]]
        return np.array(words, np.int64), tuple(keys), max(call.scratch for call in calls)

    @property
    def arena_bytes(self) -> int:
        return 64 + ROWS * COLUMNS * 4

    def bundle(self, name: str) -> Bundle:
        return Bundle(
            name,
            self.words,
            self.keys,
            [memoryview(bytes(64)), memoryview(self.weights)],
            [memoryview(self.scale)],
            self.arena_bytes,
            self.scratch,
            (Argument("x", F32, (ROWS, DEPTH)), Argument("passes:0", I64, (1,))),
            (Argument("y", F32, (LAYERS, ROWS, COLUMNS)),),
            loop_slots=1,
            has_loops=True,
        )

    def run_here(self) -> np.ndarray:
        loaded = load_object(emit_object(self.keys, self.target))
        addresses = [loaded.symbols[key.symbol] for key in self.keys]
        code = native_code(lambda: emit_run_loop(self.target))
        runner = Runner(code, prepare(self.words, addresses, FIRST_ARGUMENT_BASE + 4, loaded), 1, str)
        constants = np.concatenate([np.zeros(16, np.float32), self.weights.ravel()])
        arena = np.full(self.arena_bytes, 255, np.uint8)
        y = np.zeros((LAYERS, ROWS, COLUMNS), np.float32)
        memory = [constants, self.scale, arena, self.x, self.passes, y]
        runner.bases[: len(memory)] = [array.ctypes.data for array in memory]
        runner.run()
        return y


@pytest.fixture(scope="module")
def example():
    return Example()


def test_linked_with_c_it_gives_the_same_bits(example, tmp_path):
    # Two bundles of the same kernels in one program: their symbols must not meet.
    objects = [write_bundle(tmp_path, example.bundle(name), example.target)[0] for name in ("first", "second")]
    (tmp_path / "main.c").write_text(C_PROGRAM)
    example.x.tofile(tmp_path / "x")
    example.passes.tofile(tmp_path / "passes")
    compiler = [sys.executable, "-m", "ziglang", "cc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"]
    program = tmp_path / "program"
    subprocess.run([*compiler, tmp_path / "main.c", *objects, "-o", program], check=True)
    outcome = subprocess.run([program, tmp_path / "x", tmp_path / "passes"], capture_output=True, check=True)
    here = example.run_here()
    for there in np.split(np.frombuffer(outcome.stdout, np.float32), 2):
        np.testing.assert_array_equal(there.view(np.uint32), here.ravel().view(np.uint32))
    expected = np.exp(example.x.astype(np.float64) @ example.weights) * example.scale
    np.testing.assert_allclose(here[:3], np.broadcast_to(expected, (3, ROWS, COLUMNS)), rtol=1e-4)
    assert not here[3:].any()


def test_the_object_needs_nothing(example, tmp_path):
    loaded = load_object(write_bundle(tmp_path, example.bundle("alone"), example.target)[0].read_bytes())
    assert set(loaded.symbols) == {"alone_run", "alone_constants", "alone_plan_constants"}
    assert loaded.symbols["alone_constants"] % 64 == 0


def test_the_same_bytes_every_time(example, tmp_path):
    contents = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        contents.append(
            [file.read_bytes() for file in write_bundle(tmp_path / folder, example.bundle("m"), example.target)]
        )
    assert contents[0] == contents[1]


def test_for_another_machine(example, tmp_path):
    object_file, header = write_bundle(
        tmp_path, example.bundle("m"), Target("aarch64-unknown-linux-gnu", "neoverse-n1")
    )
    assert object_file.read_bytes()[18:20] == (183).to_bytes(2, "little")
    assert "int m_run(const void *const *inputs, void *const *outputs, void *arena);" in header.read_text()


def test_names_that_are_no_identifiers_are_refused(example, tmp_path):
    with pytest.raises(InputError, match="C identifier"):
        write_bundle(tmp_path, example.bundle("not a name"), example.target)


def test_other_object_formats_are_refused(example, tmp_path):
    with pytest.raises(UnsupportedError, match="ELF"):
        write_bundle(tmp_path, example.bundle("m"), Target("arm64-apple-macosx14.0.0", "apple-m1"))
