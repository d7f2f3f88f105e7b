"""A typed layer over llvmlite's builder for the kernel signature of `docs/architecture.md`.

In: a kernel key. Out: one LLVM function in a module. Words of the call are read once, in the entry block, and so
dominate all uses. Integer arithmetic is on i64 and does not wrap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from llvmlite import ir

from glowstone.backends.cpu.ir_types import F32, I1, I8, I32, I64, POINTER, VOID, Type, Value, suffix, vector
from glowstone.backends.cpu.kernel_family import KernelKey
from glowstone.backends.cpu.loops import Loop
from glowstone.backends.cpu.target import Target
from glowstone.table import STATUS_CODE, STATUS_UNIT, STATUS_VALUE, StatusCode

KERNEL_TYPE = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, POINTER, POINTER])
Branch: TypeAlias = AbstractContextManager[object]
WORD_BYTES = 8
FLOAT_ALIGNMENT = 4
ATTRIBUTES = ("nounwind", '"no-builtins"', '"min-legal-vector-width"="512"')
"""No calls out of the kernel; vectors as wide as the registers, whatever the processor's tuning prefers."""
READ, KEEP_IN_ALL_CACHES, DATA_CACHE = 0, 3, 1


class Emitter:
    """Emits one kernel."""

    def __init__(self, module: ir.Module, key: KernelKey, target: Target) -> None:
        self.module = module
        self.key = key
        self.target = target
        self.function = ir.Function(module, KERNEL_TYPE, key.symbol)
        for attribute in ATTRIBUTES:
            set.add(self.function.attributes, attribute)  # past llvmlite's list, which has no string attributes
        self.call, self.bases, self.unit_begin, self.unit_end, self.scratch, self.status = self.function.args
        for argument in (self.call, self.bases, self.status):
            argument.add_attribute("noalias")
        self._entry = self.function.append_basic_block("entry")
        self._start = self.function.append_basic_block("start")
        self.builder = ir.IRBuilder(self._start)
        self._words: dict[int, Value] = {}
        self._pointers: dict[int, Value] = {}

    def finish(self) -> None:
        """Close the function: called once, after the family's `build`."""
        self.builder.ret_void()
        ir.IRBuilder(self._entry).branch(self._start)

    # The call record

    def word(self, number: int) -> Value:
        """Word of the call record."""
        if number not in self._words:
            self._words[number] = self._load_word(number)
        return self._words[number]

    def _load_word(self, number: int) -> Value:
        builder = ir.IRBuilder(self._entry)
        address = builder.gep(self.call, [I64(number)], inbounds=True, source_etype=I64)
        return builder.load(address, typ=I64, align=WORD_BYTES)

    def pointer(self, operand: int) -> Value:
        """Address of the first element of an operand."""
        if operand not in self._pointers:
            position = self.key.layout.operand(operand)
            base, offset = self.word(position), self.word(position + 1)
            builder = ir.IRBuilder(self._entry)
            slot = builder.gep(self.bases, [base], inbounds=True, source_etype=POINTER)
            start = builder.load(slot, typ=POINTER, align=WORD_BYTES)
            self._pointers[operand] = builder.gep(start, [offset], source_etype=I8)
        return self._pointers[operand]

    def extent(self, operand: int, axis: int) -> Value:
        """Extent of an operand's axis (negative axes count from the last)."""
        return self.word(self.key.layout.extent(operand, self._axis(operand, axis)))

    def stride(self, operand: int, axis: int) -> Value:
        """Stride of an operand's axis, in elements (negative axes count from the last)."""
        return self.word(self.key.layout.stride(operand, self._axis(operand, axis)))

    def _axis(self, operand: int, axis: int) -> int:
        return axis % self.key.operands[operand].rank

    def integer(self, number: int) -> Value:
        """Run-time integer of the instruction."""
        return self.word(self.key.layout.integers + number)

    def derived(self, number: int) -> Value:
        """Derived integer of the `KernelCall`."""
        return self.word(self.key.layout.integers + self.key.integers + number)

    # Control flow

    def for_range(self, low: Value | int, high: Value | int, step: int = 1, carried: Sequence[Value] = ()) -> Loop:
        """A counted loop: `with emitter.for_range(0, n) as loop: ... loop.index`."""
        return Loop(self.builder, self.i64(low), self.i64(high), I64(step), carried)

    def for_units(self) -> Loop:
        """The loop over this call's units."""
        return self.for_range(self.unit_begin, self.unit_end)

    @contextmanager
    def if_true(self, condition: Value, likely: bool | None = None) -> Iterator[None]:
        """The body runs where the condition (i1) holds."""
        with self.builder.if_then(condition, likely=likely):
            yield

    @contextmanager
    def if_else(self, condition: Value) -> Iterator[tuple[Branch, Branch]]:
        """`with emitter.if_else(c) as (then, otherwise): with then: ... with otherwise: ...`."""
        with self.builder.if_else(condition) as branches:
            yield branches

    def merge(self, *incoming: tuple[Value, ir.Block]) -> Value:
        """The value that comes from the block control came from."""
        phi = self.builder.phi(incoming[0][0].type)
        for value, block in incoming:
            phi.add_incoming(value, block)
        return phi

    # Integers

    def i64(self, value: Value | int) -> Value:
        return I64(value) if isinstance(value, int) else value

    def add(self, x: Value | int, y: Value | int) -> Value:
        return self.builder.add(self.i64(x), self.i64(y), flags=["nsw"])

    def sub(self, x: Value | int, y: Value | int) -> Value:
        return self.builder.sub(self.i64(x), self.i64(y), flags=["nsw"])

    def mul(self, x: Value | int, y: Value | int) -> Value:
        return self.builder.mul(self.i64(x), self.i64(y), flags=["nsw"])

    def div(self, x: Value | int, y: Value | int) -> Value:
        """Quotient of numbers that are not negative."""
        return self.builder.udiv(self.i64(x), self.i64(y))

    def rem(self, x: Value | int, y: Value | int) -> Value:
        """Remainder of numbers that are not negative."""
        return self.builder.urem(self.i64(x), self.i64(y))

    def divmod(self, x: Value | int, y: Value | int) -> tuple[Value, Value]:
        """Quotient and remainder of numbers that are not negative."""
        quotient = self.div(x, y)
        return quotient, self.sub(x, self.mul(quotient, y))

    def ceil_div(self, x: Value | int, y: int) -> Value:
        """Quotient rounded up, of a number that is not negative."""
        return self.div(self.add(x, y - 1), y)

    def minimum(self, x: Value | int, y: Value | int) -> Value:
        """The smaller signed integer."""
        return self.intrinsic("llvm.smin", I64, [self.i64(x), self.i64(y)])

    def maximum(self, x: Value | int, y: Value | int) -> Value:
        """The larger signed integer."""
        return self.intrinsic("llvm.smax", I64, [self.i64(x), self.i64(y)])

    def compare(self, x: Value | int, comparison: str, y: Value | int) -> Value:
        """Signed comparison ("<", "<=", "==", "!=", ">", ">="), an i1."""
        return self.builder.icmp_signed(comparison, self.i64(x), self.i64(y))

    def both(self, x: Value, y: Value) -> Value:
        """Logical and of two i1."""
        return self.builder.and_(x, y)

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        return self.builder.select(condition, x, y)

    def unravel(self, index: Value, extents: Sequence[Value | int]) -> list[Value]:
        """Coordinates of a row-major index in a box; the first extent is not needed for it."""
        coordinates = []
        for extent in reversed(extents[1:]):
            index, coordinate = self.divmod(index, extent)
            coordinates.append(coordinate)
        return [index, *reversed(coordinates)]

    # Memory

    def offset(self, pointer: Value, count: Value | int, element: Type = F32) -> Value:
        """The address `count` elements further on."""
        return self.builder.gep(pointer, [self.i64(count)], source_etype=element)

    def strided(self, pointer: Value, element: Type, *terms: tuple[Value | int, Value | int]) -> Value:
        """The address moved by the sum of (index, stride in elements) products."""
        total: Value = I64(0)
        for index, stride in terms:
            total = self.add(total, self.mul(index, stride))
        return self.offset(pointer, total, element)

    def load(self, pointer: Value, kind: Type, align: int = 1) -> Value:
        return self.builder.load(pointer, typ=kind, align=align)

    def store(self, value: Value, pointer: Value, align: int = 1) -> None:
        self.builder.store(value, pointer, align=align)

    def load_floats(self, pointer: Value, lanes: int) -> Value:
        """`lanes` consecutive floats."""
        return self.load(pointer, vector(F32, lanes), FLOAT_ALIGNMENT)

    def store_floats(self, value: Value, pointer: Value) -> None:
        self.store(value, pointer, FLOAT_ALIGNMENT)

    def masked_load(self, pointer: Value, mask: Value, otherwise: Value, align: int = FLOAT_ALIGNMENT) -> Value:
        """Lanes where the mask (<n x i1>) holds from memory, which is not touched elsewhere."""
        name = f"llvm.masked.load.{suffix(otherwise.type)}.p0"
        kind = ir.FunctionType(otherwise.type, [POINTER, I32, mask.type, otherwise.type])
        return self._call(name, kind, [pointer, I32(align), mask, otherwise])

    def masked_store(self, value: Value, pointer: Value, mask: Value, align: int = FLOAT_ALIGNMENT) -> None:
        """Store the lanes where the mask (<n x i1>) holds."""
        name = f"llvm.masked.store.{suffix(value.type)}.p0"
        kind = ir.FunctionType(VOID, [value.type, POINTER, I32, mask.type])
        self._call(name, kind, [value, pointer, I32(align), mask])

    def prefetch(self, pointer: Value) -> None:
        """Ask for the cache line at an address, which may lie outside every buffer."""
        kind = ir.FunctionType(VOID, [POINTER, I32, I32, I32])
        arguments = [pointer, I32(READ), I32(KEEP_IN_ALL_CACHES), I32(DATA_CACHE)]
        self._call("llvm.prefetch.p0", kind, arguments)

    def stack(self, kind: Type, count: int, align: int = 64) -> Value:
        """Space for `count` elements that lives as long as the call."""
        slot = ir.IRBuilder(self._entry).alloca(ir.ArrayType(kind, count))
        slot.align = align
        slot.type = POINTER  # llvmlite would type it by its content, which LLVM no longer reads
        return slot

    # Vectors

    def f32(self, value: float) -> Value:
        return ir.Constant(F32, value)

    def join(self, vectors: Sequence[Value]) -> Value:
        """One vector with the lanes of all, in order; the vectors have the same type."""
        joined, *rest = vectors
        for value in rest:
            before, more = joined.type.count, value.type.count
            wide = self._shuffled(value, [min(lane, more) for lane in range(before)])
            joined = self.builder.shuffle_vector(joined, wide, self._numbers(list(range(before + more))))
        return joined

    def part(self, vector: Value, first: int, lanes: int) -> Value:
        """Some lanes of a vector, from the first given on."""
        if vector.type.count == lanes:
            return vector
        return self._shuffled(vector, list(range(first, first + lanes)))

    def _shuffled(self, vector: Value, order: list[int]) -> Value:
        """The lanes named; the number behind the last lane stands for any value."""
        return self.builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), self._numbers(order))

    def _numbers(self, order: list[int]) -> Value:
        return ir.Constant(ir.VectorType(I32, len(order)), order)

    def splat(self, scalar: Value, lanes: int) -> Value:
        """A vector of equal lanes; the scalar itself for one lane."""
        if lanes == 1:
            return scalar
        if isinstance(scalar, ir.Constant):
            return ir.Constant(vector(scalar.type, lanes), [scalar] * lanes)
        undefined = ir.Constant(vector(scalar.type, lanes), ir.Undefined)
        single = self.builder.insert_element(undefined, scalar, I32(0))
        return self.builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(I32, lanes), None))

    def zeros(self, lanes: int) -> Value:
        """Float zeros."""
        return self.splat(self.f32(0.0), lanes)

    def lane_numbers(self, lanes: int) -> Value:
        """<lanes x i32> 0, 1, 2 ..."""
        return ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))

    def first_lanes(self, count: Value, lanes: int) -> Value:
        """Mask <lanes x i1> of the lanes below `count` (an i64)."""
        bound = self.builder.trunc(self.minimum(count, lanes), I32)
        return self.builder.icmp_signed("<", self.lane_numbers(lanes), self.splat(bound, lanes))

    def multiply_add(self, x: Value, y: Value, z: Value) -> Value:
        """`x * y + z`, fused where the target can."""
        return self.intrinsic("llvm.fmuladd", z.type, [x, y, z])

    def float_maximum(self, x: Value, y: Value) -> Value:
        """The larger; NaN if either is NaN."""
        larger = self.builder.select(self.builder.fcmp_ordered(">", x, y), x, y)
        return self.builder.select(self.builder.fcmp_unordered("uno", x, x), x, larger)

    def intrinsic(self, name: str, result: Type, arguments: Sequence[Value]) -> Value:
        """Call an intrinsic overloaded on its result type only: `intrinsic("llvm.fabs", <8 x float>, [x])`."""
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return self._call(f"{name}.{suffix(result)}", kind, arguments)

    def _call(self, name: str, kind: ir.FunctionType, arguments: Sequence[Value]) -> Value:
        function = self.module.globals.get(name)
        if function is None:
            function = ir.Function(self.module, kind, name)
        return self.builder.call(function, arguments)

    # Errors

    def report(self, condition: Value, unit: Value, code: StatusCode, value: Value) -> None:
        """Where the condition (i1) holds, write the status unless an earlier unit has; go on."""
        previous_code = self._status_word(STATUS_CODE)
        previous_unit = self._status_word(STATUS_UNIT)
        no_error = self.compare(self.load(previous_code, I64, WORD_BYTES), "==", int(StatusCode.GOOD))
        later = self.compare(unit, "<", self.load(previous_unit, I64, WORD_BYTES))
        with self.if_true(self.both(condition, self.builder.or_(no_error, later)), likely=False):
            self.store(unit, previous_unit, WORD_BYTES)
            self.store(I64(int(code)), previous_code, WORD_BYTES)
            self.store(value, self._status_word(STATUS_VALUE), WORD_BYTES)

    def _status_word(self, number: int) -> Value:
        return self.offset(self.status, number, I64)


TRUE, FALSE = ir.Constant(I1, 1), ir.Constant(I1, 0)
