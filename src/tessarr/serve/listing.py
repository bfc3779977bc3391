"""List what is below a path: as HTML, which fsspec, GDAL, neuroglancer and wget read, and as WebDAV, which obstore reads.

The HTML of a node is that which notebooks show of it, with a link to each member; it costs the requests of the list alone.
Listings name nodes and documents. Chunk keys, which may be millions, are in the HTML only where the query is ``keys``, and
always in WebDAV, whose clients list a store's keys.

Source: RFC 4918 (PROPFIND, ``multistatus``).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from html import escape
from typing import NamedTuple
from urllib.parse import parse_qs, quote

from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import store_call
from tessarr.core.notebook.describe import array_html, branch_of, consolidated_tree
from tessarr.core.notebook.node_html import CSS, Branch, node_html
from tessarr.core.stored.read_nodes import parsed
from tessarr.core.stored.walk import Entry, block_of, read_entries_steps
from tessarr.errors import TessarrError, UnsupportedOperationError
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.consolidated import V2_KEY
from tessarr.metadata.formats import DOCUMENT_NAMES
from tessarr.serve.content import content_of, key_steps
from tessarr.serve.dynamic.refusal import problem_text
from tessarr.serve.http.messages import Request, Response, content, problem, with_headers
from tessarr.serve.http.paths import Path, quoted
from tessarr.serve.served import Served
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import List

PAGE = 1000
"""Links of one page of HTML."""
MAX_ENTRIES = 10_000
"""Resources that one PROPFIND lists; more are refused."""
_NODE_DOCUMENTS = ("zarr.json", ".zarray", ".zgroup")
_STYLE = (
    ":root{color-scheme:light dark}body{margin:1em;font:13px/1.4 sans-serif;overflow-wrap:anywhere}h1{font-size:1.2em}"
)
_HASHES = " ".join(f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" for style in (_STYLE, CSS))
_POLICY = f"default-src 'none'; style-src {_HASHES}; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
_OF_THIS_PROCESS = frozenset({"Store", "Store type", "Read-only", "Write empty chunks", "Engine"})
"""Facts that notebooks show, and clients need not know."""
_HEAD = Request(method="HEAD", path="")
_EPOCH = "Thu, 01 Jan 1970 00:00:00 GMT"
"""Versions are not times, and clients of WebDAV insist on a time."""


class Children(NamedTuple):
    """What is directly below a path: names."""

    files: list[str]
    folders: list[str]
    node: Entry | None
    """The documents of the node at the path."""


async def html_steps(served: Served, path: Path, request: Request) -> Response | None:
    """Answer a GET of a directory; ``None``: there is no such node, or it may not be listed."""
    asked = parse_qs(request.query, keep_blank_values=True, max_num_fields=10, errors="replace")
    keys, after = "keys" in asked, asked.get("after", [""])[0]
    children = await _children_steps(served, path, keys=keys)
    if children is None:
        return None
    names = sorted([(name, False) for name in children.files] + [(name, True) for name in children.folders])
    later = [one for one in names if one[0] > after]
    page, more = later[:PAGE], "" if len(later) <= PAGE else _more(later[PAGE - 1][0], keys)
    if keys or children.node is None:
        links = [_link(name, is_folder, keys) for name, is_folder in page]
        text = f"<h1>{escape(f'/{path.key}')}</h1>\n<ul>{_items(links)}</ul>{more}"
    else:
        members = await _members_steps(served, path, [name for name, is_folder in page if is_folder])
        documents = [_link(name, False, False) for name, is_folder in page if not is_folder and name in DOCUMENT_NAMES]
        text = f"{_node(served, path, children.node, members)}{more}\n<p>As stored:</p>\n<ul>{_items(documents)}</ul>"
    response = content_of(_page(path, text, keys), "text/html; charset=utf-8", request, served.boundary)
    return with_headers(response, (("Content-Security-Policy", _POLICY),))


def _page(path: Path, text: str, keys: bool) -> bytes:
    above = f'<p><a href="../{"?keys" if keys else ""}">↑ ..</a></p>\n' if path.segments else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape("/" + path.key)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body>\n{above}{text}\n</body></html>\n"
    ).encode()


def _items(links: Sequence[str]) -> str:
    return "".join(f"\n<li>{link}</li>" for link in links)


def _link(name: str, is_folder: bool, keys: bool) -> str:
    link = quoted(name) + ("/" if is_folder else "") + ("?keys" if is_folder and keys else "")
    return f'<a href="{link}">{escape(name)}{"/" if is_folder else ""}</a>'


def _more(last: str, keys: bool) -> str:
    return f'<p><a href="?{"keys&amp;" if keys else ""}after={quote(last, safe="")}">more</a></p>'


def _node(served: Served, path: Path, entry: Entry, members: Sequence[Entry]) -> str:
    """Describe a node as notebooks do, by the documents that were read, without what is about this process."""
    title = f"{(entry.kind or 'node').capitalize()} /{path.key}"
    facts, attributes = [("Zarr format", str(entry.formats[0]))], {}
    below: dict[str, Branch] = {}
    try:
        metadata = parsed(served.store, entry, entry.formats[0])
        if isinstance(metadata, ArrayMetadata):
            array = Array._opened(served.store, entry.path, metadata, read_only=True, config=None)
            return array_html(array, title=title, without=_OF_THIS_PROCESS)
        attributes = {} if metadata is None else metadata.attributes
        block = block_of(entry)
        below = {} if block is None else {one.name: one for one in consolidated_tree(block).below}
    except (TessarrError, ValueError) as error:
        facts.append(("Problem", f"the metadata are invalid: {problem_text(error)}"))
    tree = [_member(served, one, below) for one in members]
    return node_html(title, facts, attributes, tree=Branch("", below=tree))


def _member(served: Served, entry: Entry, known: Mapping[str, Branch]) -> Branch:
    """Describe a member by its documents, with a link, and what is known to be below it."""
    name = entry.path.rpartition("/")[2]
    inside = known.get(name, Branch(name))
    return replace(branch_of(served.store, name, entry), link=f"{quoted(name)}/", below=inside.below, note=inside.note)


async def _members_steps(served: Served, path: Path, names: Sequence[str]) -> list[Entry]:
    """Read the documents of folders, and select the nodes."""
    paths = [served.key(path.prefix + name) for name in names]
    entries = await read_entries_steps(served.store, paths, _NODE_DOCUMENTS, v1=False)
    return [entry for entry in entries if entry.kind is not None]


async def _children_steps(served: Served, path: Path, *, keys: bool) -> Children | None:
    """List the children of a directory, without those that are never served; ``None``: it is not served."""
    segments = path.segments
    if served.is_private([*segments, "zarr.json"]):
        return None
    entry = await served.node_steps(path.key)
    is_listed = entry is not None or served.scope == "store"
    if not is_listed and not (keys and await served.is_below_array_steps(path.key)):
        return None
    if entry is not None and entry.kind == "array" and not keys:
        return Children([name for name in entry.values if name in DOCUMENT_NAMES], [], entry)
    if not isinstance(served.store, List):
        raise UnsupportedOperationError("this store cannot list its keys", store=served.store.url)
    prefix = prefix_of(served.key(path.key))
    listing = await store_call(served.store, "list_dir", prefix)
    files = [key[len(prefix) :] for key in listing.keys]
    folders = [key[len(prefix) : -1] for key in listing.prefixes]
    if not files and not folders and entry is None:
        return None
    if not served.as_stored and ".zgroup" in files and V2_KEY not in files:
        files.append(V2_KEY)
    return Children(
        [name for name in files if not served.is_private([*segments, name])],
        [name for name in folders if not served.is_private([*segments, name, "zarr.json"])],
        entry,
    )


# -- WebDAV ------------------------------------------------------------------------------------------------------------------


async def propfind_steps(served: Served, path: Path, request: Request, base: str) -> Response | None:
    """Answer PROPFIND with the depth of the request; `base` is the path of URLs of the root, without a slash at its end.

    A depth of infinity is refused where there are more than `MAX_ENTRIES` resources, as RFC 4918, 9.1 provides for.
    """
    depth = (request.header("depth") or "infinity").strip().lower()
    if depth not in ("0", "1", "infinity"):
        return problem(400, "Depth is 0, 1 or infinity")
    responses: list[str] = []
    if not path.is_directory and path.segments:
        described = await key_steps(served, path.key, _HEAD)
        if described is not None:
            return _multistatus([_file(base, path.key, described)])
    level = [path]
    first = True
    while level:
        deeper: list[Path] = []
        for folder in level:
            children = await _children_steps(served, folder, keys=True)
            if children is None:
                if first:
                    return None
                continue
            if first:
                responses.append(_folder(base, folder))
                first = False
            if depth == "0":
                continue
            responses += await _files_steps(served, folder, children.files, base)
            below = [Path((*folder.segments, name), True) for name in children.folders]
            responses += [_folder(base, one) for one in below]
            deeper += below
            if len(responses) > MAX_ENTRIES:
                return content(403, _TOO_DEEP, "application/xml; charset=utf-8")
        level = deeper if depth == "infinity" else []
    return _multistatus(responses)


_TOO_DEEP = b'<?xml version="1.0" encoding="utf-8"?>\n<D:error xmlns:D="DAV:"><D:propfind-finite-depth/></D:error>\n'


async def _files_steps(served: Served, folder: Path, names: Sequence[str], base: str) -> list[str]:
    """Describe the files of a folder that may be read."""
    found: list[str] = []
    for name in names[: MAX_ENTRIES + 1]:
        key = folder.prefix + name
        described = await key_steps(served, key, _HEAD)
        if described is not None:
            found.append(_file(base, key, described))
    return found


def _folder(base: str, path: Path) -> str:
    return _response(f"{base}/{quoted(path.prefix)}", "<D:resourcetype><D:collection/></D:resourcetype>")


def _file(base: str, key: str, described: Response) -> str:
    etag = described.header("etag")
    tag = "" if etag is None else f"<D:getetag>{escape(etag)}</D:getetag>"
    length = f"<D:getcontentlength>{described.nbytes}</D:getcontentlength>"
    return _response(f"{base}/{quoted(key)}", f"<D:resourcetype/>{length}{tag}")


def _response(path: str, properties: str) -> str:
    return (
        f"<D:response><D:href>{escape(path)}</D:href><D:propstat><D:prop>{properties}"
        f"<D:getlastmodified>{_EPOCH}</D:getlastmodified></D:prop>"
        "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    )


def _multistatus(responses: Sequence[str]) -> Response:
    head = '<?xml version="1.0" encoding="utf-8"?>\n<D:multistatus xmlns:D="DAV:">'
    return content(207, "\n".join([head, *responses, "</D:multistatus>\n"]).encode(), "application/xml; charset=utf-8")
