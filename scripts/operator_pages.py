"""Write docs/operators/ from the operator definitions, and docs/onnx_support.md from the import rules.

Run it after a change of either, and after `make conformance`: `python scripts/operator_pages.py`.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np

from glowstone.backends.cpu.irgen_rules import CPU_RULES
from glowstone.graph import OPERATORS, Builder, Graph, Operand, Operator, Sample, Value
from glowstone.graph.printer import print_operator
from glowstone.host import HOST_RULES
from glowstone.host.registry import TEXT_RULES
from glowstone.importer.registry import RULES, canonical_domain
from glowstone.importer.tensors import ELEMENT_TYPES
from glowstone.irgen import find_rule
from glowstone.ops.constant import constant
from glowstone.types import ElementType, TensorType

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
CASES = ROOT / "tests" / "conformance" / "cases.txt"
PACKAGE = "glowstone.ops."
MADE_BY = "<!-- Written by scripts/operator_pages.py; edits are lost. -->\n\n"

SHOWN_SAMPLES = 3
GROUPS = {
    "any type": frozenset(ElementType),
    "floats": frozenset(element for element in ElementType if element.is_float),
    "integers": frozenset(element for element in ElementType if element.is_integer),
}


def pages() -> dict[Path, str]:
    """The text of every page by its path under docs/."""
    families = _families()
    result = {Path("operators") / f"{page}.md": _page(module, kinds) for (page, module), kinds in families.items()}
    result[Path("operators") / "index.md"] = _index(families)
    result[Path("onnx_support.md")] = support_page()
    return result


def _families() -> dict[tuple[str, ModuleType], list[type[Operator]]]:
    """Operators by the module that defines them, with the name of its page."""
    families: dict[tuple[str, ModuleType], list[type[Operator]]] = defaultdict(list)
    for kind in OPERATORS.values():
        if kind.__module__.startswith(PACKAGE):
            page = kind.__module__.removeprefix(PACKAGE).replace(".", "_")
            families[page, sys.modules[kind.__module__]].append(kind)
    return dict(sorted(families.items(), key=lambda item: item[0][0]))


def _index(families: dict[tuple[str, ModuleType], list[type[Operator]]]) -> str:
    rows = [
        f"| [{_title(module)}]({page}.md) | {', '.join(f'`{kind.__name__}`' for kind in kinds)} |"
        for (page, module), kinds in families.items()
    ]
    count = sum(map(len, families.values()))
    introduction = (
        f"The {count} operators of the graph, by family; [adding one](../adding-an-operator.md) says how.\n\n"
    )
    return f"{MADE_BY}# Operators\n\n{introduction}| family | operators |\n| --- | --- |\n" + "\n".join(rows) + "\n"


def _title(module: ModuleType) -> str:
    return inspect.cleandoc(module.__doc__ or "").splitlines()[0].removesuffix(".")


def _page(module: ModuleType, kinds: list[type[Operator]]) -> str:
    further = "\n".join(inspect.cleandoc(module.__doc__ or "").splitlines()[1:]).strip()
    parts = [f"# {_title(module)}", *([further] if further else []), *map(_section, kinds)]
    return MADE_BY + "\n\n".join(parts) + "\n"


def _section(kind: type[Operator]) -> str:
    parts = [f"## {kind.__name__}", inspect.cleandoc(kind.__doc__ or ""), _ways(kind), _operand_table(kind)]
    fields = _field_table(kind)
    return "\n\n".join(part for part in (*parts, fields, _sample_text(kind)) if part)


def _ways(kind: type[Operator]) -> str:
    """ONNX name, and how the operator becomes instructions."""
    has_rule = find_rule(CPU_RULES, kind) is not None
    is_composed = kind.decompose is not Operator.decompose
    if has_rule:
        way = "instructions of its own" + (", or others where those do not fit" if is_composed else "")
    else:
        way = "made of other operators" if is_composed else "data of the plan"
    return f"ONNX: {kind.onnx or 'none'}. On the CPU: {way}. Results: {', '.join(kind.result_names)}."


def _operand_table(kind: type[Operator]) -> str:
    if not kind.operands:
        return ""
    rows = [f"| `{operand.name}` | {_elements(operand)} | {_notes(operand)} |" for operand in kind.operands]
    return "| operand | element types | |\n| --- | --- | --- |\n" + "\n".join(rows)


def _elements(operand: Operand) -> str:
    return element_words(operand.elements if operand.elements is not None else frozenset(ElementType))


def element_words(elements: frozenset[ElementType]) -> str:
    """Names of element types, whole groups by one word."""
    words, rest = [], set(elements)
    for word, group in GROUPS.items():
        if group <= rest:
            words.append(word)
            rest -= group
    return ", ".join([*words, *(str(element) for element in ElementType if element in rest)])


def _notes(operand: Operand) -> str:
    flags = {
        "optional": operand.optional,
        "any number": operand.variadic,
        "known on the host": operand.host,
    }
    return ", ".join(name for name, holds in flags.items() if holds)


def _field_table(kind: type[Operator]) -> str:
    rows = []
    for field in dataclasses.fields(kind):
        default = "" if field.default is dataclasses.MISSING else f"`{_default(field.default)}`"
        rows.append(f"| `{field.name}` | `{str(field.type).replace('|', chr(92) + '|')}` | {default} |")
    return "| field | type | default |\n| --- | --- | --- |\n" + "\n".join(rows) if rows else ""


def _default(value: object) -> str:
    return str(value) if isinstance(value, ElementType) else repr(value)


def _sample_text(kind: type[Operator]) -> str:
    samples = kind.samples()[:SHOWN_SAMPLES]
    return "```\n" + "\n".join(map(_sample_line, samples)) + "\n```" if samples else ""


def _sample_line(sample: Sample) -> str:
    """The operator on the types of a sample, as the text form has it."""
    graph = Graph()
    builder = Builder(graph)
    operands: list[Value | None] = []
    words: list[str] = []
    rules = sample.operator.operands
    for index, array in enumerate(sample.operands):
        if array is None:
            operands.append(None)
            words.append("_")
            continue
        array = np.asarray(array)
        type = TensorType(ElementType.from_dtype(array.dtype), array.shape)
        is_host = rules[min(index, len(rules) - 1)].host
        operands.append(constant(builder, array) if is_host else graph.add_input(f"x{index}", type))
        words.append(" ".join(f"{type}{array.tolist() if is_host else ''}".split()))
    results = builder.emit_node(sample.operator, *operands).results
    return f"{print_operator(sample.operator)}({', '.join(words)}) : {', '.join(str(one.type) for one in results)}"


# The page on ONNX


def support_page() -> str:
    """Every operator of the onnx package's schemas: opsets read, element types, where it runs, cases of the suite."""
    outcomes = list(read_cases())
    totals = Counter(kind for kind, _ in outcomes)
    by_operator: dict[str, Counter[str]] = defaultdict(Counter)
    for kind, operators in outcomes:
        for name in operators:
            by_operator[name][kind] += 1
    counted = "".join(f"| {kind} | {count} |\n" for kind, count in sorted(totals.items()))
    introduction = (
        "Cases of onnx's backend suite, by what came of them. `pass`: right, all of it generated code; `host`: right, "
        "with\nparts on the host; `wrong`: for the reason that `tests/conformance/cases.txt` gives.\n\n"
        f"| outcome | cases |\n| --- | --- |\n{counted}| all | {len(outcomes)} |\n\n"
        "An operator's cases are those of models with a node of it; right ones are `pass` or `host`. Opsets are those "
        "of\nthe domain. The element types are what ONNX allows for the first operand.\n"
    )
    parts = [f"{MADE_BY}# ONNX support\n", introduction]
    for domain, names in _schemas().items():
        rows = [_support_row(domain, name, opsets, by_operator) for name, opsets in sorted(names.items())]
        head = "| operator | opsets | element types | runs as | cases right |\n| --- | --- | --- | --- | --- |\n"
        parts.append(f"## {domain or 'ai.onnx'}\n\n{head}" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def read_cases() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Outcome and operators of every case in the list of the conformance test."""
    for line in CASES.read_text().splitlines():
        if line and not line.startswith("#"):
            _, kind, operators = line.split(maxsplit=3)[:3]
            yield kind, tuple(operators.split(","))


def _schemas() -> dict[str, dict[str, list[int]]]:
    """Versions by domain and operator: those the onnx package knows, and those we read besides."""
    from onnx import defs

    found: dict[str, dict[str, list[int]]] = {}
    for schema in defs.get_all_schemas_with_history():
        names = found.setdefault(canonical_domain(schema.domain), {})
        names.setdefault(schema.name, []).append(schema.since_version)
    for domain, name in RULES:
        found.setdefault(domain, {}).setdefault(name, [1])
    return dict(sorted(found.items()))


def _support_row(domain: str, name: str, versions: list[int], by_operator: dict[str, Counter[str]]) -> str:
    cases = by_operator[f"{domain}.{name}" if domain else name]
    right = f"{cases['pass'] + cases['host']} of {cases.total()}" if cases else ""
    forms, where = RULES.get((domain, name), ()), _place(domain, name)
    if not forms:
        return f"| {name} | {f'{min(versions)} on' if where else ''} | | {where or 'not supported'} | {right} |"
    first = min([version for version in versions if any(form.since <= version <= form.until for form in forms)])
    last = max(form.until for form in forms)
    opsets = f"{first} on" if math.isinf(last) else f"{first} to {last:g}"
    return f"| {name} | {opsets} | {_missing_types(domain, name)} | {where} | {right} |"


def _place(domain: str, name: str) -> str:
    """Where the operator runs; empty where nothing runs it."""
    rule = HOST_RULES.get((domain, name))
    if (domain, name) not in RULES:
        return "" if rule is None else "on the host"
    others = "" if rule is None else ", texts on the host" if rule in TEXT_RULES else ", what is no tensor on the host"
    return f"generated code{others}"


def _missing_types(domain: str, name: str) -> str:
    """ONNX's element types of the first operand that our operator of the same meaning does not take."""
    from onnx import defs

    kinds = [kind for kind in OPERATORS.values() if (kind.onnx or "").rpartition("-")[0] == name]
    if domain or not kinds or not kinds[0].operands or not defs.has(name):
        return ""
    schema = defs.get_schema(name)
    if not schema.inputs:
        return ""
    ours = {element for kind in kinds for element in _taken(kind.operands[0])}
    numbers = {str(value): number for number, value in _type_numbers().items()}
    theirs = [text[len("tensor(") : -1] for text in sorted(schema.inputs[0].types) if text.startswith("tensor(")]
    missing = [text for text in theirs if ELEMENT_TYPES.get(int(numbers.get(text, 0))) not in ours]
    return "all" if not missing else f"without {', '.join(missing)}"


def _taken(operand: Operand) -> Iterable[ElementType]:
    return ElementType if operand.elements is None else operand.elements


def _type_numbers() -> dict[int, str]:
    """ONNX's names of element types in schemas, by number."""
    from onnx import TensorProto

    return {number: name.lower() for name, number in TensorProto.DataType.items()}


def main() -> None:
    made = pages()
    (DOCS / "operators").mkdir(exist_ok=True)
    for path in (DOCS / "operators").glob("*.md"):
        if path.relative_to(DOCS) not in made:
            path.unlink()
    for path, text in made.items():
        (DOCS / path).write_text(text)


if __name__ == "__main__":
    main()
