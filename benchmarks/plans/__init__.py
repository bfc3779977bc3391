"""Rows P1 to P11, P4L: rechunking, converting, pyramids, many tasks, lost workers and copies, beside what people use.

Each peer does the whole work in a process of its own, which is watched while it runs (`watch.py`). A row is a module's function
that makes the source (`Row.make`), one that compares the result with it (`Row.check`), and one job per peer (`Row.jobs`).
"""
