"""Install the alias as an interpreter starts, where ``TESSARR_AS_ZARR`` asks for it; then run the next ``sitecustomize``.

`tessarr.as_zarr.install` puts this directory on ``PYTHONPATH``, so that the processes that a process spawns have the alias too.
"""

import os
import sys

if os.environ.get("TESSARR_AS_ZARR"):
    try:
        import tessarr.as_zarr

        tessarr.as_zarr.install_from_environment()
    except ImportError:  # another interpreter, which has no tessarr: zarr is what it finds there
        pass

_here = os.path.dirname(os.path.abspath(__file__))
_others = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _here]
_spec = __import__("importlib.machinery", fromlist=["PathFinder"]).PathFinder.find_spec("sitecustomize", _others)
if _spec is not None and _spec.loader is not None:
    _module = __import__("importlib.util", fromlist=["module_from_spec"]).module_from_spec(_spec)
    _spec.loader.exec_module(_module)
