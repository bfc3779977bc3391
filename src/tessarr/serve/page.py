"""Answer requests for the files of the viewer's page, at ``@view/`` beside the hierarchy, and for what they need to know."""

from __future__ import annotations

import json

from tessarr.serve.content import content_of
from tessarr.serve.http.messages import Request, Response, problem, with_headers
from tessarr.serve.http.paths import below, quoted
from tessarr.serve.served import PAGE_SEGMENT, Served

# Notebooks, whose server is another origin of this machine, may show the page in a frame.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-ancestors 'self' http://localhost:* http://127.0.0.1:* https://localhost:* vscode-webview:; "
    "base-uri 'none'; form-action 'none'"
)


def page_answer(served: Served, rest: str, request: Request) -> Response | None:
    """Answer for a path after the token; ``None``: it is not one of the page, or no page is served."""
    if served.page is None:
        return None
    if rest in ("", "/") and served.name:
        return problem(302, "", (("Location", f"{served.page_base}/{PAGE_SEGMENT}/"),))
    inside = below(rest, f"/{PAGE_SEGMENT}")
    if inside is None:
        return None
    if inside == "":
        return problem(308, "", (("Location", f"{PAGE_SEGMENT}/"),))
    if inside == "/place.json":
        root = f"../{quoted(served.name)}" if served.name else ".."
        place = json.dumps({"root": root, "name": served.name or "data"})
        return content_of(place.encode(), "application/json", request, served.boundary)
    found = served.page.get(inside[1:] or "index.html")
    if found is None:
        return problem(404)
    data, kind = found
    return with_headers(content_of(data, kind, request, served.boundary), (("Content-Security-Policy", _POLICY),))
