"""Serve a directory over HTTP as buckets do: whole files, and ranges of them."""

from __future__ import annotations

import re
from http.server import SimpleHTTPRequestHandler
from pathlib import Path


class RangedFiles(SimpleHTTPRequestHandler):
    """Answers requests for files below ``directory``; one range per request."""

    def do_GET(self) -> None:
        """Send a file, or the range of it that is requested."""
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            super().do_GET()
            return
        file = Path(self.translate_path(self.path))
        if not file.is_file():
            self.send_error(404)
            return
        data = file.read_bytes()
        first, last = asked.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        part = data[start : int(last) + 1 if first and last else len(data)]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        """Print nothing."""
