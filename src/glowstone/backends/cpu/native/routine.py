"""A function under construction: words in memory, and control flow, on top of llvmlite's builder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from glowstone.backends.cpu.ir_types import I8, I64, POINTER, Type, Value
from glowstone.backends.cpu.native.layout import WORD_BYTES


class _Attributes(ir.FunctionAttributes):  # type: ignore[misc]
    """Adds the attribute that keeps LLVM from making library calls of loops."""

    _known = ir.FunctionAttributes._known | {'"no-builtins"'}


def typed_pointer(builder: ir.IRBuilder, address: Value, kind: Type) -> Value:
    """The same address as a typed pointer, which some of llvmlite's instructions insist on; LLVM has one pointer type.

    By way of an integer, because llvmlite leaves out a cast between pointers.
    """
    return builder.inttoptr(builder.ptrtoint(address, I64), kind.as_pointer())


class Routine:
    """One native function. Words are i64; addresses are pointers."""

    def __init__(
        self, module: ir.Module, name: str, result: Type, parameters: Sequence[Type], *, exported: bool = False
    ) -> None:
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(result, list(parameters)), name)
        self.function.attributes = _Attributes(["nounwind", '"no-builtins"'])
        if not exported:
            self.function.linkage = "internal"
        self.arguments: tuple[Value, ...] = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))

    # Memory

    def at(self, base: Value, word: Value | int) -> Value:
        """Address of a word behind `base`."""
        index = I64(int(word)) if isinstance(word, int) else word
        return self.builder.gep(base, [index], source_etype=I64)

    def shifted(self, base: Value, offset: Value) -> Value:
        """Address `offset` bytes behind `base`."""
        return self.builder.gep(base, [offset], source_etype=I8)

    def word(self, base: Value, word: Value | int) -> Value:
        """The i64 at a word behind `base`."""
        return self.builder.load(self.at(base, word), typ=I64, align=WORD_BYTES)

    def pointer(self, base: Value, word: Value | int) -> Value:
        """The address kept at a word behind `base`."""
        return self.builder.load(self.at(base, word), typ=POINTER, align=WORD_BYTES)

    def set(self, base: Value, word: Value | int, value: Value | int) -> None:
        """Store an i64 or an address."""
        stored = I64(int(value)) if isinstance(value, int) else value
        self.builder.store(stored, self.at(base, word), align=WORD_BYTES)

    # Control flow

    def block(self, name: str) -> ir.Block:
        return self.function.append_basic_block(name)

    def go_to(self, block: ir.Block) -> None:
        """Branch there and go on building there."""
        self.builder.branch(block)
        self.builder.position_at_end(block)

    @contextmanager
    def counted(self, low: Value | int, high: Value) -> Iterator[Value]:
        """`for index in low .. high - 1`. The body may leave by branching to a block of its own."""
        builder = self.builder
        first = I64(low) if isinstance(low, int) else low
        header, body, done = self.block("loop"), self.block("loop.body"), self.block("loop.done")
        entry = builder.block
        self.go_to(header)
        index = builder.phi(I64)
        index.add_incoming(first, entry)
        builder.cbranch(builder.icmp_signed("<", index, high), body, done)
        builder.position_at_end(body)
        yield index
        index.add_incoming(builder.add(index, I64(1)), builder.block)
        builder.branch(header)
        builder.position_at_end(done)

    def call(self, function: Value, arguments: Sequence[Value]) -> Value:
        return self.builder.call(function, list(arguments))

    def call_address(self, address: Value, kind: ir.FunctionType, arguments: Sequence[Value]) -> Value:
        """Call a function by its address."""
        return self.builder.call(typed_pointer(self.builder, address, kind), list(arguments))
