"""Function bodies of the kernel families: all that needs LLVM, apart from the planning that a cached model repeats."""
