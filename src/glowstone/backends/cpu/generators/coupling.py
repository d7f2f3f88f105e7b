"""Bodies of couplings: the rounds of `scalar.coupling` for one row, in scratch."""

from __future__ import annotations

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.outer_loops import emit_rows, operand_at
from glowstone.backends.cpu.ir_types import F64, I64, Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.scalar.coupling import ROUNDS, TOLERANCE

Y, X = range(2)
WORD_BYTES = 8


class Coupling:
    """Emits one kernel. Scratch: the matrix [classes, classes], its products with p [classes], p [classes]."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.classes = emitter.extent(Y, 1)
        self.products = emitter.mul(self.classes, self.classes)
        self.p = emitter.add(self.products, self.classes)
        self.flag = emitter.stack(I64, 1)

    def emit(self) -> None:
        emitter = self.emitter
        with emit_rows(emitter) as row:
            self._fill(row)
            emitter.store(I64(1), self.flag, WORD_BYTES)
            with emitter.for_range(0, ROUNDS):
                is_active = emitter.compare(emitter.load(self.flag, I64, WORD_BYTES), "!=", 0)
                with emitter.if_true(is_active):
                    total = self._multiply()
                    is_far = self._is_far(total)
                    emitter.store(emitter.builder.zext(is_far, I64), self.flag, WORD_BYTES)
                    with emitter.if_true(is_far):
                        self._balance(total)
            y = operand_at(emitter, Y, 1, InnerStride.ONE, (0, row))
            with emitter.for_range(0, self.classes) as classes:
                y.store(self._load(self.p, classes.index), classes.index, 1)

    def _address(self, base: Value | int, place: Value) -> Value:
        return self.emitter.offset(self.emitter.scratch, self.emitter.add(base, place), F64)

    def _load(self, base: Value | int, place: Value) -> Value:
        return self.emitter.load(self._address(base, place), F64, WORD_BYTES)

    def _store(self, value: Value, base: Value | int, place: Value) -> None:
        self.emitter.store(value, self._address(base, place), WORD_BYTES)

    def _fill(self, row: Value) -> None:
        """The matrix of the row, and p of equal probabilities."""
        emitter, builder, classes = self.emitter, self.emitter.builder, self.classes
        pairs = operand_at(emitter, X, 1, InnerStride.ONE, (0, row))
        equal = builder.fdiv(F64(1.0), builder.sitofp(classes, F64))
        with emitter.for_range(0, classes) as loop:
            self._store(equal, self.p, loop.index)
            self._store(F64(0.0), emitter.mul(loop.index, classes), loop.index)
        with emitter.for_range(0, classes, carried=[I64(0)]) as rows:
            first = rows.index
            with emitter.for_range(emitter.add(first, 1), classes, carried=[rows.values[0]]) as columns:
                second, pair = columns.index, columns.values[0]
                ratio = pairs.load(pair, 1)
                rest = builder.fsub(F64(1.0), ratio)
                product = builder.fneg(builder.fmul(ratio, rest))
                for line, column, own in ((first, second, rest), (second, first, ratio)):
                    base = emitter.mul(line, classes)
                    self._store(product, base, column)
                    self._store(builder.fadd(self._load(base, line), builder.fmul(own, own)), base, line)
                columns.carry([emitter.add(pair, 1)])
            rows.carry([columns.results[0]])

    def _multiply(self) -> Value:
        """The products of the matrix with p; returns p times them."""
        emitter, builder = self.emitter, self.emitter.builder
        with emitter.for_range(0, self.classes, carried=[F64(0.0)]) as rows:
            base = emitter.mul(rows.index, self.classes)
            with emitter.for_range(0, self.classes, carried=[F64(0.0)]) as columns:
                term = builder.fmul(self._load(base, columns.index), self._load(self.p, columns.index))
                columns.carry([builder.fadd(columns.values[0], term)])
            product = columns.results[0]
            self._store(product, self.products, rows.index)
            rows.carry([builder.fadd(rows.values[0], builder.fmul(product, self._load(self.p, rows.index)))])
        return rows.results[0]

    def _is_far(self, total: Value) -> Value:
        """Whether any class is further from balance than it may be."""
        emitter, builder = self.emitter, self.emitter.builder
        bound = builder.fdiv(F64(TOLERANCE), builder.sitofp(self.classes, F64))
        with emitter.for_range(0, self.classes, carried=[F64(0.0)]) as loop:
            distance = emitter.intrinsic("llvm.fabs", F64, [builder.fsub(self._load(self.products, loop.index), total)])
            largest = builder.select(builder.fcmp_ordered(">", distance, loop.values[0]), distance, loop.values[0])
            loop.carry([largest])
        return builder.fcmp_ordered(">=", loop.results[0], bound)

    def _balance(self, total: Value) -> None:
        """One round."""
        emitter, builder = self.emitter, self.emitter.builder
        with emitter.for_range(0, self.classes, carried=[total]) as rows:
            base, place = emitter.mul(rows.index, self.classes), rows.index
            own, product, held = self._load(base, place), self._load(self.products, place), rows.values[0]
            step = builder.fdiv(builder.fsub(held, product), own)
            self._store(builder.fadd(self._load(self.p, place), step), self.p, place)
            growth = builder.fadd(F64(1.0), step)
            bend = builder.fadd(builder.fmul(step, own), builder.fmul(F64(2.0), product))
            following = builder.fdiv(builder.fadd(held, builder.fmul(step, bend)), builder.fmul(growth, growth))
            with emitter.for_range(0, self.classes) as columns:
                column = columns.index
                moved = builder.fadd(self._load(self.products, column), builder.fmul(step, self._load(base, column)))
                self._store(builder.fdiv(moved, growth), self.products, column)
                self._store(builder.fdiv(self._load(self.p, column), growth), self.p, column)
            rows.carry([following])
