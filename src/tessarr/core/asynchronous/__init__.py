"""The asynchronous surface: steps without I/O, `AsyncArray` and `AsyncGroup`, stores whose methods are coroutines."""
