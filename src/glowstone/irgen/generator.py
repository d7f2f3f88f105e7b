"""From a legal graph to a program: one rule per operator class, driven over the schedule.

In: a graph, the order of its nodes, and the table of rules of a backend. Out: a `Program` with lifetime marks and the
ONNX names of every instruction. Invariant: every value that an instruction needs is bound to a view before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from glowstone.errors import InternalError, UnsupportedError
from glowstone.graph import Graph, Node, Operator, Tensor, Value
from glowstone.irgen.constants import ConstantPool, block_channels
from glowstone.irgen.schedule import schedule
from glowstone.lir import Buffer, BufferKind, Copy, Instruction, Operation, Program, View
from glowstone.lir.lifetimes import place_lifetimes
from glowstone.ops import Constant, Fused
from glowstone.scalar import Expression
from glowstone.support.budget import budget, tick
from glowstone.types import CHANNEL_AXIS, Shape, TensorType

Array = np.ndarray[Any, np.dtype[Any]]
Rule = Callable[["Generator", "Application"], None]
RuleTable = Mapping[type[Operator], Rule]


class Application:
    """One node to generate: the operator (a fused node's anchor), its operands, result, and epilogue."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.operator: Operator = node.operator
        self.operands: tuple[Value | None, ...] = node.operands
        self.epilogue: Expression | None = None
        self.extras: tuple[Value, ...] = ()
        if isinstance(node.operator, Fused):
            arity = node.operator.anchor_arity
            self.operator = node.operator.anchor
            self.operands = node.operands[:arity]
            self.epilogue = node.operator.epilogue
            self.extras = tuple(extra for extra in node.operands[arity:] if extra is not None)

    @property
    def result(self) -> Value:
        return self.node.result

    def operand(self, index: int) -> Value:
        value = self.operands[index]
        assert value is not None, f"{self.operator} lacks operand {index}"
        return value


def find_rule(table: RuleTable, kind: type[Operator]) -> Rule | None:
    """The rule of the nearest class in the method resolution order."""
    return next((table[base] for base in kind.__mro__ if base in table), None)


class Generator:
    """The state of one generation. Rules use its methods; see `irgen/rules`."""

    def __init__(self, graph: Graph, order: Sequence[Node], table: RuleTable, constants: ConstantPool) -> None:
        self.graph = graph
        self._order = order
        self.program = Program()
        self._table = table
        self._constants = constants
        self._views: dict[Value, View] = {}
        self._names: tuple[str, ...] = ()
        self._count = 0

    def run(self) -> Program:
        """Generate every node in order, then the copies to the outputs.

        Raises:
            UnsupportedError: an operator without a rule.
        """
        for value in self.graph.inputs:
            buffer = Buffer(value.name, BufferKind.INPUT, value.element, value.type.physical_shape)
            self.program.inputs.append(buffer)
            self._views[value] = buffer.view()
        self._generate(self._order)
        self._store_outputs()
        place_lifetimes(self.program)
        return self.program

    def _generate(self, order: Sequence[Node]) -> None:
        for node in order:
            tick()
            if all(value.known is not None for value in node.results) or isinstance(node.operator, Constant):
                continue
            application = Application(node)
            rule = find_rule(self._table, type(application.operator))
            if rule is None:
                raise UnsupportedError("no rule generates this operator", operator=application.operator.name)
            self._names = node.names
            rule(self, application)

    def body(self, body: Graph, arguments: Sequence[View]) -> list[View]:
        """Generate a body here, on arguments that are somewhere already; returns where its outputs are."""
        for value, view in zip(body.inputs, arguments, strict=True):
            self.bind(value, view)
        names = self._names
        self._generate(schedule(body))
        self._names = names
        return [self.view(value) for value in body.outputs]

    def _store_outputs(self) -> None:
        for name, value in zip(self.graph.output_names, self.graph.outputs, strict=True):
            self._names = (name,)
            buffer = Buffer(f"out.{name}", BufferKind.OUTPUT, value.element, value.shape)
            self.program.outputs.append(buffer)
            if value.type.size:
                self.emit(Copy(), buffer.view(), self.view(value))

    def view(self, value: Value) -> View:
        """Where a value is. Constants and values that the host knows get their buffers here."""
        view = self._views.get(value)
        if view is None:
            view = self._views[value] = self._constant_view(value)
        return view

    def _constant_view(self, value: Value) -> View:
        block = value.type.channel_block
        if isinstance(value.operator, Constant):
            tensor = value.operator.tensor
            if tensor.is_splat and tensor.array.size > 1 and block is None:
                one = Tensor(tensor.array.reshape(-1)[:1].copy(), tensor.element)
                return self._constants.buffer(one, None).view().broadcast(tensor.array.shape)
            return self._constants.buffer(tensor, block).view()
        assert value.known is not None, f"{value} is used before it is generated"
        data = np.asarray(value.known, value.element.dtype, order="C")  # keeps rank 0
        if block is not None:
            data = block_channels(data, block)
        channels = value.shape[CHANNEL_AXIS] if block is not None else None
        self._count += 1
        return Buffer(f"p{self._count}", BufferKind.PLAN_CONSTANT, value.element, data.shape, channels, data).view()

    def window(self, rows: View) -> View:
        """A buffer that a loop moves along the first axis of a view, and the row it shows."""
        row = View(rows.buffer, 0, rows.shape[1:], rows.strides[1:])
        self._count += 1
        buffer = Buffer(f"w{self._count}", BufferKind.WINDOW, rows.element, (row.last + 1,))
        return View(buffer, 0, row.shape, row.strides)

    def new(self, type: TensorType) -> View:
        """A fresh activation buffer for a value of this type."""
        self._count += 1
        channels = type.shape[CHANNEL_AXIS] if type.channel_block is not None else None
        return Buffer(f"t{self._count}", BufferKind.ACTIVATION, type.element, type.physical_shape, channels).view()

    def plan_constant(self, array: Array) -> View:
        """Data that belongs to one shape, as a buffer."""
        tensor = Tensor(np.asarray(array, order="C"))  # ascontiguousarray makes a vector of a scalar
        self._count += 1
        buffer = Buffer(f"p{self._count}", BufferKind.PLAN_CONSTANT, tensor.element, array.shape, None, tensor.array)
        return buffer.view()

    def numbers(self, count: int) -> View:
        """i64[count]: 0, 1, 2 ...

        Raises:
            LimitError: there are more than the compiler may write out.
        """
        budget().take_bytes(count * np.dtype(np.int64).itemsize, "numbers of positions")
        return self.plan_constant(np.arange(count, dtype=np.int64))

    def bind(self, value: Value, view: View) -> None:
        """Say where a value is.

        Raises:
            InternalError: the view has another shape or element type, so that its users would leave their buffers.
        """
        expected = value.type.physical_shape
        if (view.shape, view.element) != (expected, value.element):
            raise InternalError(
                f"a generation rule made another result than inferred: {value.operator}",
                expected=f"{value.element}{list(expected)}",
                found=f"{view.element}{list(view.shape)}",
            )
        self._views[value] = view

    def result(self, value: Value) -> View:
        """A fresh buffer for a value, bound to it."""
        view = self.new(value.type)
        self.bind(value, view)
        return view

    def emit(self, operation: Operation, *views: View, integers: Sequence[int] = ()) -> None:
        """Append an instruction. Operands: outputs first. Inputs whose strides the operation refuses are copied."""
        operands = tuple(self._acceptable(operation, index, view) for index, view in enumerate(views))
        self.program.body.append(Instruction(operation, operands, tuple(integers), self._names))

    def insert(self, position: int, operation: Operation, *views: View, integers: Sequence[int] = ()) -> None:
        """Put an instruction of control flow at a position of the body: its operands are known when its region is."""
        self.program.body.insert(position, Instruction(operation, views, tuple(integers), self._names))

    def _acceptable(self, operation: Operation, index: int, view: View) -> View:
        if operation.accepts(index, view):
            return view
        assert not operation.accesses[index].writes, f"{operation.name} cannot write {view}"
        copied = self.new(TensorType(view.element, view.shape))
        self.program.body.append(Instruction(Copy(), (copied, view), (), self._names))
        return copied

    def reshaped(self, view: View, shape: Shape) -> View:
        """The view under another shape; copied first where its strides do not allow that."""
        other = view.reshape(shape)
        if other is not None:
            return other
        copied = self.new(TensorType(view.element, view.shape))
        self.emit(Copy(), copied, view)
        again = copied.reshape(shape)
        assert again is not None
        return again

    def broadcast(self, value: Value, type: TensorType) -> View:
        """A value stretched to the physical shape of a result."""
        view = self.view(value)
        target = type.physical_shape
        if type.channel_block is not None and value.type.channel_block is None:
            view = self.reshaped(view, (1,) * len(target))  # one element, by the rule of elementwise operators
        return view.broadcast(target)

    def extra_views(self, application: Application) -> tuple[View, ...]:
        """The extra operands of an epilogue, stretched to the result."""
        return tuple(self.broadcast(extra, application.result.type) for extra in application.extras)
