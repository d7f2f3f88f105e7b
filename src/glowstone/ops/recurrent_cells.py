"""The cells of RNN, GRU and LSTM as scalar expressions, with the activations of the ONNX specification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glowstone.errors import ModelError
from glowstone.scalar import Expression, Input, Literal, apply
from glowstone.scalar.recurrence import Cell
from glowstone.types import ElementType

Activation = Callable[[Expression], Expression]
Formula = Callable[[Expression, float, float], Expression]


@dataclass(frozen=True)
class _Form:
    """A formula of x, alpha and beta, with defaults for those that it uses."""

    formula: Formula
    alpha: float | None = None
    beta: float | None = None


def _times(x: Expression, number: float) -> Expression:
    return apply("mul", x, Literal(x.element, number))


def _plus(x: Expression, number: float) -> Expression:
    return apply("add", x, Literal(x.element, number))


def _where_below_zero(x: Expression, below: Expression) -> Expression:
    return apply("select", apply("less", x, Literal(x.element, 0.0)), below, x)


def _hard_sigmoid(x: Expression, alpha: float, beta: float) -> Expression:
    line = _plus(_times(x, alpha), beta)
    return apply("max", apply("min", line, Literal(x.element, 1.0)), Literal(x.element, 0.0))


def _softplus(x: Expression) -> Expression:
    """log(1 + exp(x)), which does not overflow."""
    power = apply("exp", apply("neg", apply("abs", x)))
    return apply("add", apply("max", x, Literal(x.element, 0.0)), apply("log", _plus(power, 1.0)))


def _thresholded(x: Expression, alpha: float) -> Expression:
    zero = Literal(x.element, 0.0)
    return apply("select", apply("less", x, Literal(x.element, alpha)), zero, x)


_FORMS: dict[str, _Form] = {
    "relu": _Form(lambda x, a, b: apply("max", x, Literal(x.element, 0.0))),
    "tanh": _Form(lambda x, a, b: apply("tanh", x)),
    "sigmoid": _Form(lambda x, a, b: apply("sigmoid", x)),
    "softsign": _Form(lambda x, a, b: apply("div", x, _plus(apply("abs", x), 1.0))),
    "softplus": _Form(lambda x, a, b: _softplus(x)),
    "affine": _Form(lambda x, a, b: _plus(_times(x, a), b), 1.0, 0.0),
    "leakyrelu": _Form(lambda x, a, b: _where_below_zero(x, _times(x, a)), 0.01),
    "thresholdedrelu": _Form(lambda x, a, b: _thresholded(x, a), 1.0),
    "scaledtanh": _Form(lambda x, a, b: _times(apply("tanh", _times(x, b)), a), 1.0, 1.0),
    "hardsigmoid": _Form(_hard_sigmoid, 0.2, 0.5),
    "elu": _Form(lambda x, a, b: _where_below_zero(x, _times(_plus(apply("exp", x), -1.0), a)), 1.0),
}
"""By lower-case name."""


def activation_functions(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float], limits: Sequence[float | None]
) -> list[Activation]:
    """The activations by name; those that use an alpha or a beta take the next of the lists, or their default.

    `limits` bound the magnitude of what each activation is applied to.

    Raises:
        ModelError: an unknown name.
    """
    next_alpha, next_beta = iter(alphas), iter(betas)
    result: list[Activation] = []
    for name, limit in zip(names, limits, strict=True):
        form = _FORMS.get(name.lower())
        if form is None:
            raise ModelError("unknown activation", expected=", ".join(sorted(_FORMS)), found=name)
        alpha = next(next_alpha, form.alpha) if form.alpha is not None else 0.0
        beta = next(next_beta, form.beta) if form.beta is not None else 0.0
        result.append(_bound(form.formula, alpha, beta, limit))
    return result


def _bound(formula: Formula, alpha: float, beta: float, limit: float | None) -> Activation:
    def activation(x: Expression) -> Expression:
        return formula(x if limit is None else clipped(x, limit), alpha, beta)

    return activation


def clipped(x: Expression, limit: float) -> Expression:
    """x limited to [-limit, limit]."""
    return apply("max", apply("min", x, Literal(x.element, limit)), Literal(x.element, -limit))


def _inputs(element: ElementType, gates: int, others: int) -> tuple[list[Expression], list[Expression]]:
    """(the sum of both products per gate, states and parameters)."""
    numbered: list[Expression] = [Input(element, number) for number in range(2 * gates + others)]
    sums = [apply("add", numbered[gate], numbered[gates + gate]) for gate in range(gates)]
    return sums, numbered[2 * gates :]


def rnn_cell(element: ElementType, activations: Sequence[Activation]) -> Cell:
    """h' = f(x + R h)."""
    (gate,), _ = _inputs(element, 1, 1)
    return Cell(1, (activations[0](gate),))


def gru_cell(element: ElementType, activations: Sequence[Activation], linear_before_reset: bool) -> Cell:
    """Gates z, r, h. With `linear_before_reset` the parameter is the recurrent bias of the last gate."""
    f, g = activations
    (update, reset, candidate), (h, *parameters) = _inputs(element, 3, 1 + linear_before_reset)
    z, r = f(update), f(reset)
    factor = None
    if linear_before_reset:
        given, recurrent = Input(element, 2), Input(element, 5)
        candidate = apply("add", given, apply("mul", r, apply("add", recurrent, parameters[0])))
    else:
        factor = apply("mul", r, h)
    new, kept = apply("mul", _complement(z), g(candidate)), apply("mul", z, h)
    return Cell(3, (apply("add", new, kept),), factor)


def lstm_cell(element: ElementType, activations: Sequence[Activation], peepholes: bool, couples_input: bool) -> Cell:
    """Gates i, o, f, c; states h and c; the parameters are peepholes of i, o and f."""
    f, g, h = activations
    (i, o, forget, candidate), (_, c, *parameters) = _inputs(element, 4, 2 + 3 * peepholes)

    def peeping(gate: Expression, number: int, state: Expression) -> Expression:
        return apply("add", gate, apply("mul", parameters[number], state)) if peepholes else gate

    admitted = f(peeping(i, 0, c))
    kept = _complement(admitted) if couples_input else f(peeping(forget, 2, c))
    new = apply("add", apply("mul", kept, c), apply("mul", admitted, g(candidate)))
    shown = apply("mul", f(peeping(o, 1, new)), h(new))
    return Cell(4, (shown, new))


def _complement(x: Expression) -> Expression:
    return apply("sub", Literal(x.element, 1.0), x)
