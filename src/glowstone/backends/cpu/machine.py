"""The few calls into LLVM that everything else goes through: target machines, parsing, optimizing."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.binding as llvm

OPTIMIZATION_LEVEL = 3
_OPTIONS_LOCK = threading.Lock()


@functools.cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@functools.cache
def create_target_machine(triple: str, cpu: str, features: str) -> llvm.TargetMachine:
    """A machine that emits position-independent code.

    Raises:
        ValueError: LLVM does not know the triple.
    """
    _initialize()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise ValueError(f"target triple {triple!r}: {error}") from error
    return target.create_target_machine(
        cpu=cpu, features=features, opt=OPTIMIZATION_LEVEL, reloc="pic", codemodel="small"
    )


def parse_module(text: str) -> llvm.ModuleRef:
    """Parse and verify IR text in a context of its own, so that equal text gives equal code.

    Raises:
        RuntimeError: the IR is not well formed: a fault of a kernel family.
    """
    module = llvm.parse_assembly(text, context=llvm.create_context())
    module.verify()
    return module


@contextmanager
def code_generation(is_scheduled: bool) -> Iterator[None]:
    """Inside the body LLVM generates code as kernels need it.

    It reorders machine instructions before it assigns registers only where that is wanted. It does not look for other
    ways to step through memory (loop strength reduction): generators say which addresses a loop carries, and a third of
    the time goes there. These are options of the process, the only way LLVM has; outside they stand at its defaults.
    """
    with _OPTIONS_LOCK:
        llvm.set_option("", f"-enable-misched={str(is_scheduled).lower()}")
        llvm.set_option("", "-disable-lsr=true")
        try:
            yield
        finally:
            llvm.set_option("", "-enable-misched=true")
            llvm.set_option("", "-disable-lsr=false")


def optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Simplify the module in place.

    Kernels are vectorized, unrolled and hoisted by their generators; of LLVM's O3 pipeline, which takes six times as
    long, these passes are what makes a difference to them.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=OPTIMIZATION_LEVEL)
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_new_gvn_pass()
    passes.add_loop_rotate_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.run(module, builder)
