"""HTTP without I/O: messages, the wire format, byte ranges, conditions, paths, CORS, hosts and tokens."""
