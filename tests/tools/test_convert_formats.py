"""Each format by its references and by its package, against what the package reads."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import registry
from tessarr.errors import MissingDependencyError, StoreError
from tessarr.tools.convert import convert, save_file_references
from tessarr.tools.files.scan import scan
from tessarr.tools.sources import source_kind
from tessarr.tools.sources.base import SourceArray, SourceGroup, StoredChunks
from tessarr.tools.sources.grib import message_starts
from tests.narrow import array_of

IMAGE = np.random.default_rng(1).integers(0, 50, (3, 130, 150)).astype("u2")


def values_of(place: str | Path, path: str = "") -> Any:
    node = tessarr.open(place, mode="r")
    return array_of(node[path] if isinstance(node, tessarr.Group) else node)[...]


def check_both_ways(source: Path, path: str, expected: Any, folder: Path) -> None:
    """Convert a file and refer to it, and compare an array with what is expected."""
    convert(source, folder / "out.zarr")
    np.testing.assert_array_equal(values_of(folder / "out.zarr", path), expected)
    save_file_references(source, folder / "refs.json", include=[path] if path else [])
    np.testing.assert_array_equal(values_of(f"reference:{folder}/refs.json", path), expected)


def reason(source: Path, path: str = "") -> str:
    stored = scan(str(source)).arrays[path].stored
    assert isinstance(stored, str)
    return stored


# -- TIFF ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [
    {"photometric": "minisblack"},
    {"photometric": "rgb", "planarconfig": "separate", "tile": (64, 64)},
    {"photometric": "minisblack", "tile": (64, 64), "compression": "zlib"},
    {"tile": (32, 32), "photometric": "minisblack", "bigtiff": True, "byteorder": ">"},
    {"rowsperstrip": 10, "compression": "zlib", "photometric": "minisblack"},
], ids=str)  # fmt: skip
def test_tiles_and_strips_of_tiff_are_referred_to(tmp_path: Path, options: dict[str, Any]) -> None:
    tifffile = pytest.importorskip("tifffile", reason="belongs to the extra [convert]")
    tifffile.imwrite(tmp_path / "a.tif", IMAGE, **options)
    check_both_ways(tmp_path / "a.tif", "", IMAGE, tmp_path)


def test_interleaved_samples_and_levels_of_tiff_are_referred_to(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile", reason="belongs to the extra [convert]")
    colours = np.ascontiguousarray(np.moveaxis(IMAGE, 0, -1)).astype("u1")
    tifffile.imwrite(tmp_path / "rgb.tif", colours, photometric="rgb", tile=(64, 64), compression="zlib")
    check_both_ways(tmp_path / "rgb.tif", "", colours, tmp_path)
    with tifffile.TiffWriter(tmp_path / "cog.tif") as file:
        file.write(IMAGE[0], tile=(64, 64), subifds=1, compression="zlib")
        file.write(IMAGE[0, ::2, ::2], tile=(64, 64), subfiletype=1, compression="zlib")
    (tmp_path / "levels").mkdir()
    check_both_ways(tmp_path / "cog.tif", "0/1", IMAGE[0, ::2, ::2], tmp_path / "levels")


@pytest.mark.parametrize(("options", "why"), [
    ({"tile": (64, 64), "compression": "zlib", "predictor": 2}, "predictor"),
    ({"rowsperstrip": 7, "compression": "zlib"}, "strip"),
])  # fmt: skip
def test_what_zarr_cannot_decode_in_a_tiff_is_read_by_tifffile(
    tmp_path: Path, options: dict[str, Any], why: str
) -> None:
    tifffile = pytest.importorskip("tifffile", reason="belongs to the extra [convert]")
    if "predictor" in options:
        pytest.importorskip("imagecodecs", reason="tifffile writes predictors by it")
    tifffile.imwrite(tmp_path / "a.tif", IMAGE, photometric="minisblack", **options)
    assert why in reason(tmp_path / "a.tif")
    convert(tmp_path / "a.tif", tmp_path / "out.zarr")
    np.testing.assert_array_equal(values_of(tmp_path / "out.zarr"), IMAGE)


def test_planes_are_stacked(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile", reason="belongs to the extra [convert]")
    for number, plane in enumerate(IMAGE):
        tifffile.imwrite(tmp_path / f"z{number}.tif", plane, tile=(64, 64))
    convert(str(tmp_path / "z*.tif"), tmp_path / "out.zarr", along="z")
    np.testing.assert_array_equal(values_of(tmp_path / "out.zarr"), IMAGE)
    assert save_file_references(str(tmp_path / "z*.tif"), tmp_path / "refs.json", along="z") == 27
    np.testing.assert_array_equal(values_of(f"reference:{tmp_path}/refs.json"), IMAGE)


def test_a_tiff_that_is_cut_off_is_named(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile", reason="belongs to the extra [convert]")
    tifffile.imwrite(tmp_path / "a.tif", IMAGE, photometric="minisblack")
    (tmp_path / "a.tif").write_bytes((tmp_path / "a.tif").read_bytes()[:-100])
    with pytest.raises(StoreError, match=r"cut off|page offset"):
        convert(tmp_path / "a.tif", tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()


@pytest.mark.parametrize("bigtiff", [False, True])
@pytest.mark.parametrize("is_told", [True, False])
def test_a_tiff_of_which_pages_are_cut_off_is_refused_also_where_nothing_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bigtiff: bool, is_told: bool
) -> None:
    """What tifffile logs is all that it says of pages that it leaves out."""
    tifffile = pytest.importorskip("tifffile", reason="belongs to the extra [convert]")
    monkeypatch.setattr(logging.getLogger("tifffile"), "disabled", not is_told)
    place = tmp_path / "a.tif"
    with tifffile.TiffWriter(place, bigtiff=bigtiff) as file:
        for plane in IMAGE:
            file.write(plane, tile=(64, 64), photometric="minisblack")
    convert(place, tmp_path / "whole.zarr")
    whole = place.read_bytes()
    for length in range(len(whole) // len(IMAGE), len(whole), len(whole) // 17):
        place.write_bytes(whole[:length])
        with pytest.raises(StoreError, match=r"cut off|page offset"):
            convert(place, tmp_path / "out.zarr")
        assert not (tmp_path / "out.zarr").exists()


def test_pages_of_an_ome_tiff_that_are_in_a_file_which_is_not_there_are_named(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile", reason="belongs to the extra [convert]")
    identifiers = [f"urn:uuid:00000000-0000-0000-0000-00000000000{number}" for number in range(2)]
    places = "".join(
        f'<TiffData FirstZ="{number}" IFD="0" PlaneCount="1"><UUID FileName="{number}.ome.tif">{one}</UUID></TiffData>'
        for number, one in enumerate(identifiers)
    )
    for number, one in enumerate(identifiers):
        described = (
            f'<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="{one}">'
            '<Image ID="Image:0">'
            f'<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="{IMAGE.shape[2]}" SizeY="{IMAGE.shape[1]}"'
            f' SizeZ="2" SizeC="1" SizeT="1"><Channel ID="Channel:0:0" SamplesPerPixel="1"/>{places}</Pixels></Image></OME>'
        )
        tifffile.imwrite(tmp_path / f"{number}.ome.tif", IMAGE[number], description=described, metadata=None, ome=False)
    report = convert(tmp_path / "0.ome.tif", tmp_path / "both.zarr")
    assert not any("missing" in notice for notice in report.plan.notices)
    np.testing.assert_array_equal(values_of(tmp_path / "both.zarr"), IMAGE[:2])
    (tmp_path / "1.ome.tif").unlink()
    report = convert(tmp_path / "0.ome.tif", tmp_path / "one.zarr")
    assert any("1 of 2 pages are missing" in notice for notice in report.plan.notices)
    np.testing.assert_array_equal(values_of(tmp_path / "one.zarr"), np.stack([IMAGE[0], np.zeros_like(IMAGE[0])]))


# -- NIfTI, FITS, GRIB ---------------------------------------------------------------------------------------------------


def test_nifti_is_what_nibabel_reads(tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel", reason="belongs to the extra [convert]")
    volumes = IMAGE[:, :20, :28].reshape(5, 6, 7, 8).astype("i2")
    nibabel.save(nibabel.Nifti1Image(volumes, np.diag([2.0, 3, 4, 1])), tmp_path / "a.nii")
    check_both_ways(tmp_path / "a.nii", "", volumes, tmp_path)
    converted = tessarr.open_array(tmp_path / "out.zarr", mode="r")
    assert (converted.dims, converted.attrs["zooms"]) == (("x", "y", "z", "t"), [2, 3, 4, 1])
    (tmp_path / "b.nii.gz").write_bytes(gzip.compress((tmp_path / "a.nii").read_bytes()))
    assert "compressed" in reason(tmp_path / "b.nii.gz")
    convert(tmp_path / "b.nii.gz", tmp_path / "b.zarr")
    np.testing.assert_array_equal(values_of(tmp_path / "b.zarr"), volumes)
    scaled = nibabel.Nifti2Image(np.linspace(0, 1, 24).reshape(2, 3, 4), np.eye(4))
    scaled.set_data_dtype("i2")
    nibabel.save(scaled, tmp_path / "s.nii")
    convert(tmp_path / "s.nii", tmp_path / "s.zarr", unpack=True)
    np.testing.assert_array_equal(values_of(tmp_path / "s.zarr"), np.asarray(nibabel.load(tmp_path / "s.nii").dataobj))


def test_fits_is_what_astropy_reads(tmp_path: Path) -> None:
    fits = pytest.importorskip("astropy.io.fits", reason="belongs to the extra [fits]")
    fits.PrimaryHDU(IMAGE.astype("f4")).writeto(tmp_path / "a.fits")
    check_both_ways(tmp_path / "a.fits", "", IMAGE.astype("f4"), tmp_path)
    units = [
        fits.PrimaryHDU(),
        fits.ImageHDU(IMAGE, name="SCI"),
        fits.CompImageHDU(IMAGE[0].astype("i2"), name="SMALL"),
        fits.BinTableHDU.from_columns([fits.Column("a", "J", array=[1, 2])]),
    ]
    fits.HDUList(units).writeto(tmp_path / "b.fits")
    report = convert(tmp_path / "b.fits", tmp_path / "b.zarr", unpack=True)
    np.testing.assert_array_equal(values_of(tmp_path / "b.zarr", "sci"), IMAGE)
    np.testing.assert_array_equal(values_of(tmp_path / "b.zarr", "small"), IMAGE[0])
    assert "compressed" in reason(tmp_path / "b.fits", "small")
    assert any("table" in notice for notice in report.plan.notices)


def write_grib(place: Path, days: range) -> None:
    eccodes = pytest.importorskip("eccodes", reason="belongs to the extra [grib]")
    with open(place, "wb") as file:
        for day in days:
            for level in (500, 850):
                message = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
                for name, value in (
                    ("dataDate", 20200101 + day),
                    ("dataTime", 0),
                    ("shortName", "t"),
                    ("level", level),
                ):
                    eccodes.codes_set(message, name, value)
                count = eccodes.codes_get_size(message, "values")
                eccodes.codes_set_values(message, np.random.default_rng(day + level).normal(280, 5, count))
                eccodes.codes_write(message, file)
                eccodes.codes_release(message)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "days", [(range(2), range(2, 5)), (range(1), range(1, 2))], ids=["some times", "one time each"]
)
def test_grib_is_what_cfgrib_reads(tmp_path: Path, days: tuple[range, range]) -> None:
    cfgrib = pytest.importorskip("cfgrib", reason="belongs to the extra [grib]")
    xarray = pytest.importorskip("xarray", reason="belongs to the extra [grib]")
    places = [tmp_path / name for name in ("a.grib", "b.grib")]
    for place, some in zip(places, days, strict=True):
        write_grib(place, some)
    convert(str(tmp_path / "?.grib"), tmp_path / "out.zarr", along="time")
    options: dict[str, Any] = {"backend_kwargs": {"indexpath": ""}, "decode_times": False}
    found = [cfgrib.open_datasets(str(place), **options)[0] for place in places]
    theirs = xarray.concat(found, "time", coords="different")
    for name in ("time", "valid_time", "t"):
        np.testing.assert_array_equal(values_of(tmp_path / "out.zarr", name), theirs[name].values)
    assert "no codec" in reason(places[0], "t")


def begins(data: bytes, number: int) -> int:
    return [at for at in range(len(data)) if data.startswith(b"GRIB", at)][number]


DAMAGES: dict[str, Any] = {
    "cut off": lambda data: data[:-100],
    "cut off behind a header": lambda data: data[: begins(data, 1) + 12],
    "its beginning": lambda data: data[: begins(data, 1)] + b"XXXX" + data[begins(data, 1) + 4 :],
    "its end": lambda data: data[: begins(data, 1) - 4] + b"XXXX" + data[begins(data, 1) :],
    "its length": lambda data: data[: begins(data, 1) + 13] + b"\7" + data[begins(data, 1) + 14 :],
    "a section": lambda data: data[: begins(data, 1) + 20] + b"\xff" * 60 + data[begins(data, 1) + 80 :],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_grib_file_with_a_damaged_message_is_refused(tmp_path: Path, damage: str) -> None:
    """Where cfgrib leaves the message out, and those behind it."""
    pytest.importorskip("cfgrib", reason="belongs to the extra [grib]")
    write_grib(tmp_path / "whole.grib", range(4))
    data = (tmp_path / "whole.grib").read_bytes()
    (tmp_path / "a.grib").write_bytes(DAMAGES[damage](data))
    with pytest.raises(StoreError, match=r"a\.grib"):
        convert(tmp_path / "a.grib", tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()


@pytest.mark.filterwarnings("ignore")
def test_texts_between_the_messages_of_a_grib_file_and_what_is_there_twice(tmp_path: Path) -> None:
    pytest.importorskip("cfgrib", reason="belongs to the extra [grib]")
    for number in range(2):
        write_grib(tmp_path / f"{number}.grib", range(number, number + 1))
    first, second = ((tmp_path / f"{number}.grib").read_bytes() for number in range(2))
    heading = b"\x01\r\r\n001\r\r\nHTXA85 ECMF 010000\r\r\n"
    (tmp_path / "a.grib").write_bytes(first + b"\r\r\n\x03" + bytes(512) + heading + second)
    report = convert(tmp_path / "a.grib", tmp_path / "a.zarr")
    assert not any("left out" in notice for notice in report.plan.notices)
    assert values_of(tmp_path / "a.zarr", "t").shape[0] == 2
    (tmp_path / "b.grib").write_bytes(first + second + first)
    report = convert(tmp_path / "b.grib", tmp_path / "b.zarr")
    assert any("fields with the keys of one before are left out: 2" in notice for notice in report.plan.notices)
    np.testing.assert_array_equal(values_of(tmp_path / "b.zarr", "t"), values_of(tmp_path / "a.zarr", "t"))


def test_messages_of_edition_1_of_more_than_8_mib_have_the_length_that_eccodes_says(tmp_path: Path) -> None:
    eccodes = pytest.importorskip("eccodes", reason="belongs to the extra [grib]")
    lengths = []
    with open(tmp_path / "a.grib", "wb") as file:
        for width in (1700, 20, 1701):
            message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib1")
            for name, value in (("Ni", width), ("Nj", 1700), ("bitsPerValue", 24)):
                eccodes.codes_set(message, name, value)
            eccodes.codes_set_values(message, np.random.default_rng(width).random(width * 1700))
            eccodes.codes_write(message, file)
            lengths.append(eccodes.codes_get(message, "totalLength"))
            eccodes.codes_release(message)
    assert max(lengths) > 8 << 20
    assert message_starts(str(tmp_path / "a.grib")) == [0, lengths[0], sum(lengths[:2])]


def test_a_file_that_is_replaced_is_opened_again(tmp_path: Path) -> None:
    pytest.importorskip("cfgrib", reason="belongs to the extra [grib]")
    for days in (1, 3):
        write_grib(tmp_path / "a.grib", range(days))
        convert(tmp_path / "a.grib", tmp_path / f"{days}.zarr")
    assert values_of(tmp_path / "3.zarr", "t").shape[0] == 3


@pytest.mark.parametrize("suffix", ["fits", "fits.gz", "nii", "nii.gz", "grib"])
@pytest.mark.filterwarnings("ignore")
def test_a_file_of_any_of_these_formats_that_is_cut_off_is_an_error(tmp_path: Path, suffix: str) -> None:
    place = tmp_path / f"a.{suffix}"
    if suffix.startswith("fits"):
        fits = pytest.importorskip("astropy.io.fits", reason="belongs to the extra [fits]")
        fits.HDUList([fits.PrimaryHDU(IMAGE), fits.ImageHDU(IMAGE)]).writeto(place)
    elif suffix.startswith("nii"):
        nibabel = pytest.importorskip("nibabel", reason="belongs to the extra [convert]")
        nibabel.save(nibabel.Nifti1Image(IMAGE.astype("i2"), np.eye(4)), place)
    else:
        write_grib(place, range(3))
    whole = place.read_bytes()
    for length in (len(whole) - 3001, len(whole) // 3 + 7, len(whole) * 3 // 4 + 7):
        place.write_bytes(whole[:length])
        with pytest.raises(StoreError):
            convert(place, tmp_path / "out.zarr")
        assert not (tmp_path / "out.zarr").exists()


@pytest.mark.parametrize(
    ("package", "start"), [("nibabel", b"\0" * 344 + b"n+1\0"), ("astropy.io.fits", b"SIMPLE  ="), ("cfgrib", b"GRIB")]
)
def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, start: bytes
) -> None:
    (tmp_path / "a.bin").write_bytes(start + bytes(600))
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'tessarr\["):
        convert(tmp_path / "a.bin", tmp_path / "out.zarr")


# -- formats of others ---------------------------------------------------------------------------------------------------


class Raw:
    """Bytes after a magic number, as others would write a source."""

    kind = "example.raw"
    parallel = True

    def __init__(self, place: str) -> None:
        values = np.fromfile(place, "u1")[4:]
        self.notices: list[str] = []
        self.unsupported: list[tuple[str, str]] = []
        self.nodes: list[SourceArray | SourceGroup] = [
            SourceArray(path="", shape=values.shape, dtype=values.dtype, read=lambda box: np.asarray(values[box]))
        ]

    def close(self) -> None:
        self.nodes = []


def recognises(place: str, start: bytes) -> bool:
    return start.startswith(b"RAW1")


def test_a_format_of_others_is_recognised_and_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._TABLE, "source", dict(registry._TABLE["source"]))
    monkeypatch.setattr(registry, "_extended", set(registry._extended))
    (tmp_path / "a.raw").write_bytes(b"RAW1abc")
    with pytest.raises(StoreError, match="unknown"):
        source_kind(str(tmp_path / "a.raw"))
    opener = type("Opener", (), {"__call__": staticmethod(Raw), "recognises": staticmethod(recognises)})()
    registry.register("source", "example.raw", opener)
    (tmp_path / "b.raw").write_bytes(b"RAW1def")
    convert(str(tmp_path / "?.raw"), tmp_path / "out.zarr", along="row")
    assert values_of(tmp_path / "out.zarr").tobytes() == b"abcdef"
    assert not isinstance(scan(str(tmp_path / "a.raw")).arrays[""].stored, StoredChunks)


def test_tiles_of_jpeg_that_share_their_tables_are_decoded(tmp_path: Path) -> None:
    """As GDAL writes them: the tables are in a tag of the page, and not in its tiles."""
    tifffile = pytest.importorskip("tifffile", reason="belongs to the extra [convert]")
    imagecodecs = pytest.importorskip("imagecodecs", reason="tifffile decodes JPEG by it")
    image = np.tile(np.arange(0, 128, dtype="u1"), (128, 1))
    tiles, tables = [], b""
    for row, column in np.ndindex(2, 2):
        data = imagecodecs.jpeg8_encode(image[row * 64 : row * 64 + 64, column * 64 : column * 64 + 64], level=90)
        at, kept, shared = 2, b"\xff\xd8", b"\xff\xd8"
        while data[at + 1] != 0xDA:  # the scan
            stop = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
            if data[at + 1] in (0xDB, 0xC4):
                shared += data[at:stop]
            else:
                kept += data[at:stop]
            at = stop
        tiles.append(kept + data[at:])
        tables = shared + b"\xff\xd9"
    tifffile.imwrite(
        tmp_path / "a.tif", iter(tiles), shape=image.shape, dtype="u1", tile=(64, 64), compression="jpeg",
        jpegtables=tables, photometric="minisblack",
    )  # fmt: skip
    expected = tifffile.imread(tmp_path / "a.tif")
    assert np.abs(expected.astype(int) - image).max() < 8
    convert(tmp_path / "a.tif", tmp_path / "a.zarr")
    np.testing.assert_array_equal(values_of(tmp_path / "a.zarr"), expected)


@pytest.mark.parametrize("name", ["a.img", "a.hdr"])
def test_an_image_in_two_files_is_converted_by_the_name_of_either(name: str, tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel", reason="belongs to the extra [convert]")
    values = np.arange(24, dtype="i2").reshape(2, 3, 4)
    nibabel.save(nibabel.Nifti1Pair(values, np.eye(4)), tmp_path / "a.img")
    convert(tmp_path / name, tmp_path / "a.zarr")
    np.testing.assert_array_equal(values_of(tmp_path / "a.zarr"), values)


def test_a_fits_file_that_is_compressed_as_a_whole_is_read(tmp_path: Path) -> None:
    fits = pytest.importorskip("astropy.io.fits", reason="belongs to the extra [fits]")
    fits.PrimaryHDU(IMAGE.astype("f4")).writeto(tmp_path / "a.fits.gz")
    assert "compressed" in reason(tmp_path / "a.fits.gz")
    convert(tmp_path / "a.fits.gz", tmp_path / "a.zarr")
    np.testing.assert_array_equal(values_of(tmp_path / "a.zarr"), IMAGE)
