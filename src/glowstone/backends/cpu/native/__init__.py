"""The code around the kernels: the run loop over the table of calls and the thread pool, as LLVM IR."""
