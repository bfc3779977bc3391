"""Respond to an HTTP request: a pure function of what is served and the request, which yields the calls of the store.

| request | answer |
|---|---|
| GET, HEAD of a key | 200 or 206 with the bytes as stored; 304, 412, 416 by conditions and ranges; 404 for no value |
| GET, HEAD of a path with ``/`` | HTML about a node, with links to members and documents; with ``?keys`` to every key |
| GET of a node without ``/`` | 404, which clients of keys need; 308 to the listing for ``Accept: text/html`` |
| GET, HEAD of an array and ``.png .csv .npy .json .raw .stats .chunks`` | elements, computed (`tessarr.serve.dynamic`) |
| GET of a path with ``/`` and the query ``json`` | the description of a node and its members |
| any of a path with a segment ``@chunks=…`` or the like | the same of a view (`tessarr.serve.views`) |
| GET of ``@view/…`` beside the hierarchy | files of the viewer's page |
| PROPFIND | 207 with the keys below |
| OPTIONS | 204 with ``Allow``, and what pages of other origins may do |
| other methods | 405 |

Responses are never compressed: sizes and ranges are those of the stored bytes.
"""

from __future__ import annotations

import errno
import logging

from tessarr.errors import KeyValidationError, TessarrError, UnsupportedOperationError
from tessarr.serve import listing
from tessarr.serve.content import key_steps
from tessarr.serve.dynamic.answers import description_steps, slice_steps
from tessarr.serve.dynamic.refusal import Refusal
from tessarr.serve.http import cors
from tessarr.serve.http.messages import Request, Response, problem, with_headers, without_content
from tessarr.serve.http.paths import Path, below, host_is_allowed, parse_path, quoted, without_token
from tessarr.serve.page import page_answer
from tessarr.serve.served import MAX_DEPTH, Served
from tessarr.serve.views.find import find_steps

_LOG = logging.getLogger("tessarr.serve")
_ALWAYS = (
    ("Cache-Control", "no-cache, no-transform"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
)


async def respond(served: Served, request: Request) -> Response:
    """Respond to a request. Every error becomes a response; failures of the store are logged, without the token."""
    response = await _checked_steps(served, request)
    if request.method == "HEAD":
        response = without_content(response)
    policy = "same-origin" if served.cors is None else "cross-origin"
    response = with_headers(response, (*_ALWAYS, ("Cross-Origin-Resource-Policy", policy)))
    return cors.with_cors(served.cors, request, response)


async def _checked_steps(served: Served, request: Request) -> Response:
    if not host_is_allowed(request, served.allowed_hosts):
        return problem(421, "this host name is not served here; allow it with --allowed-host")
    if request.method not in served.methods:
        return problem(405, "", (("Allow", ", ".join(served.methods)),))
    if request.method == "OPTIONS":
        return cors.preflight(served.cors, request, served.methods)
    path = below(request.path, served.root_path)
    rest = request.path if path is None else path
    if served.token is not None:
        found = without_token(request, rest, served.token)
        if found is None:
            return problem(401, "the URL needs its token", (("WWW-Authenticate", "Bearer"),))
        rest = found
    page = page_answer(served, rest, request)
    if page is not None:
        return page
    if served.name:
        inside = below(rest, f"/{quoted(served.name)}")
        if inside is None:
            inside = _root_array(rest, quoted(served.name))
        if inside is None:
            return problem(404)
        rest = inside
    rest = rest or "/"
    parsed = Path((), True) if rest.strip("/") == "" else parse_path(_without_double_slash(rest))
    if parsed is None or len(parsed.segments) > MAX_DEPTH:
        return problem(404)
    try:
        return await _found_steps(served, parsed, request) or problem(404)
    except Refusal as refusal:
        return refusal.response()
    except KeyValidationError:
        return problem(404)
    except UnsupportedOperationError:
        return problem(501, "this store cannot list its keys")
    except Exception as error:
        if getattr(error, "errno", None) == errno.ENAMETOOLONG:  # no file has such a name
            return problem(404)
        _LOG.exception("could not answer %s of %r", request.method, parsed.key)
        kind = error.kind if isinstance(error, TessarrError) else type(error).__name__
        return problem(500, f"the value could not be read ({kind}); it is not missing")


def _without_double_slash(path: str) -> str:
    """Forgive ``URL/`` + ``/zarr.json``: slashes at the root are one."""
    return "/" + path.lstrip("/")


async def _found_steps(served: Served, path: Path, request: Request) -> Response | None:
    """Answer for a decoded path; ``None``: there is nothing."""
    view = await find_steps(served, path) if served.is_dynamic else None
    if request.method == "PROPFIND":
        base = _base(served, request)
        if view is None:
            return await listing.propfind_steps(served, path, request, base)
        above = path.segments[: len(path.segments) - len(view.path.segments)]
        return await listing.propfind_steps(*view, request, f"{base}/{quoted('/'.join(above))}")
    if view is not None:
        served, path = view
    if path.is_directory and served.is_dynamic and "json" in request.query.split("&"):
        return await description_steps(served, path, request)
    if path.is_directory:
        return await listing.html_steps(served, path, request)
    response = await key_steps(served, path.key, request)
    if response is None and served.is_dynamic:
        response = await slice_steps(served, path, request)
    if response is not None or "text/html" not in (request.header("accept") or ""):
        return response
    if await served.node_steps(path.key) is None:
        return None
    query = f"?{request.query}" if request.query else ""
    return problem(308, "", (("Location", f"{quoted(path.segments[-1])}/{query}"),))


def _root_array(rest: str, name: str) -> str | None:
    """Return the path of computed content of the array at the root: ``/name.png`` is ``/.png``."""
    return f"/{rest.removeprefix(f'/{name}')}" if rest.startswith(f"/{name}.") and "/" not in rest[1:] else None


def _base(served: Served, request: Request) -> str:
    """Return the path of URLs of the root, as the client wrote it: with or without the token."""
    base = served.base
    if below(request.path, base) is not None or not served.token:
        return base
    name = f"/{quoted(served.name)}" if served.name else ""
    at = request.path.find(name)
    return request.path[: at + len(name)] if name and at >= 0 else base
