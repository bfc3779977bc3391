"""Install the alias when an interpreter starts with ``TESSARR_AS_ZARR`` set; then run the next ``sitecustomize``.

`tessarr.as_zarr.install` puts this directory on ``PYTHONPATH``, so that child processes install the alias too.
"""

import os
import sys

if os.environ.get("TESSARR_AS_ZARR"):
    try:
        import tessarr.as_zarr

        tessarr.as_zarr.install_from_environment()
    except ImportError:  # an interpreter without tessarr: `import zarr` is not answered by the alias there
        pass

_here = os.path.dirname(os.path.abspath(__file__))
_others = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _here]
_spec = __import__("importlib.machinery", fromlist=["PathFinder"]).PathFinder.find_spec("sitecustomize", _others)
if _spec is not None and _spec.loader is not None:
    _module = __import__("importlib.util", fromlist=["module_from_spec"]).module_from_spec(_spec)
    _spec.loader.exec_module(_module)
