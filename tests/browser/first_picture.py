"""Measure how long the page takes to its first picture, in seconds of the clock and of the processor.

    python -m tests.browser.first_picture --times 7

Of each array the page is opened in a new tab of a running Chromium, without a cache. Processor time is that of all processes
of Chromium, the one that computes WebGL included; of other work on the machine, the least of some times is nearly free.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

import tessarr
from tessarr.storage import MemoryStore
from tests.browser.chromium import Browser, find_chromium
from tests.browser.conftest import GRADIENT, serving

DRAWN = "document.querySelector('canvas:is(.flat, .plot):is([data-frame], [data-domain], [data-pending=\"0\"])')"
"""A plane, whose tiles are all there, or curves or points are drawn."""
PLACES = ("gradient", "huge", "noise", "wave", "wave?view=scatter")


def fill(store: MemoryStore) -> None:
    group = tessarr.open_group(store, mode="w")
    group.create_array("gradient", data=GRADIENT, chunks=(64, 64))
    huge = group.create_array("huge", shape=(10**6, 10**6), chunks=(1000, 1000), dtype="f4")
    huge[500_000:501_000, :3000] = 5
    noise = np.random.default_rng(0).normal(size=(4096, 4096)).astype("f4")
    group.create_array("noise", data=noise, chunks=(512, 512))
    group.create_array("wave", data=np.sin(np.arange(10_000) / 300))


def processor_s(group: int) -> float:
    """Return the processor time of a group of processes, in seconds."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it ended
            continue
        ticks += int(fields[11]) + int(fields[12]) if int(fields[2]) == group else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(browser: Browser, url: str) -> tuple[float, float]:
    """Open a page, and return the seconds to its first picture, and those of the processor."""
    page = browser.open("about:blank")
    page.call("Network.setCacheDisabled", cacheDisabled=True)
    before = processor_s(browser.group)
    page.go(url)
    page.wait(DRAWN)
    found = page.evaluate("performance.now()") / 1000, processor_s(browser.group) - before
    page.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=7, help="how often each page is opened")
    times = parser.parse_args().times
    program = find_chromium()
    if program is None:
        raise SystemExit("needs the program chromium (Debian: apt-get install chromium)")
    store = MemoryStore()
    fill(store)
    server, url = serving(store)
    with server, Browser(program) as browser:
        measure(browser, f"{url}#/gradient")  # programs and fonts are loaded
        print(f"{'s to the first picture':24}{'clock: least':>14}{'middle':>8}{'processor: least':>18}{'middle':>8}")
        for place in PLACES:
            clock, processor = np.sort([measure(browser, f"{url}#/{place}") for _ in range(times)], axis=0).T
            middle = times // 2
            print(f"{place:24}{clock[0]:14.2f}{clock[middle]:8.2f}{processor[0]:18.2f}{processor[middle]:8.2f}")


if __name__ == "__main__":
    main()
