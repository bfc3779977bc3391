"""anndata with tessarr inside zarr-python: its choice of the codec pipeline, and the patch."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("anndata", reason="the extra `apps`; make test-apps")

PROGRAM = """
    import contextlib
    import anndata, numpy as np, scipy.sparse, zarr
    import tessarr.zarr_python, tessarr.zarr_python.pipeline

    values = np.arange(600, dtype="f4").reshape(30, 20)
    adata = anndata.AnnData(
        X=scipy.sparse.csr_matrix(values * (values % 3 == 0)),
        obs={"name": [f"cell {i}" for i in range(30)]},
        obsm={"pca": values[:, :5]},
    )
    path = "tessarr.zarr_python.pipeline.TessarrCodecPipeline"
    with DOOR:
        adata.write_zarr("a.zarr")
        again = anndata.read_zarr("a.zarr")
        assert np.array_equal(again.X.toarray(), adata.X.toarray())
        assert np.array_equal(again.obsm["pca"], adata.obsm["pca"])
        assert again.obs["name"].tolist() == adata.obs["name"].tolist()
    stats = tessarr.zarr_python.stats()
    print(stats.reads > 3, stats.writes > 3)
    plain = anndata.read_zarr("a.zarr")
    assert np.array_equal(plain.X.toarray(), adata.X.toarray())
"""


@pytest.mark.parametrize(
    "door",
    [
        'zarr.config.set({"codec_pipeline.path": path})',
        'zarr.config.set({"codec_pipeline.path": path}), tessarr.zarr_python.patch(force=True)',
    ],
    ids=["pipeline", "pipeline and patch"],
)
def test_anndata_reads_and_writes_by_tessarr(door: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM.replace("DOOR", door)))
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["True", "True"]
