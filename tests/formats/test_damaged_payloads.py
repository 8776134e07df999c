"""A damaged payload gives one kind of error, however it is read: as a range, as a part, at points, transposed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr
from onnx import numpy_helper
from safetensors.numpy import save_file

from eltwise.core.errors import FileFormatError
from eltwise.formats.tensor_sets import open_tensors
from eltwise.ir.tensors import Tensor

X = np.random.default_rng(3).standard_normal((40, 50)).astype(np.float32)


def _npy(folder: Path) -> tuple[Path, Path]:
    np.save(folder / "x.npy", X)
    return folder / "x.npy", folder / "x.npy"


def _stored(folder: Path) -> tuple[Path, Path]:
    np.savez(folder / "m.npz", x=X)
    return folder / "m.npz", folder / "m.npz"


def _compressed(folder: Path) -> tuple[Path, Path]:
    np.savez_compressed(folder / "m.npz", x=X)
    return folder / "m.npz", folder / "m.npz"


def _safetensors(folder: Path) -> tuple[Path, Path]:
    save_file({"x": X}, folder / "m.safetensors")
    return folder / "m.safetensors", folder / "m.safetensors"


def _zarr(form: int) -> Callable[[Path], tuple[Path, Path]]:
    def made(folder: Path) -> tuple[Path, Path]:
        zarr.create_array(str(folder / "x.zarr"), data=X, chunks=(40, 50), zarr_format=form)
        return folder / "x.zarr", folder / "x.zarr" / ("0.0" if form == 2 else "c/0/0")

    return made


READS: dict[str, Callable[[Tensor], object]] = {
    "range": lambda tensor: tensor.read(3, 1999),
    "all": lambda tensor: tensor.array,
    "part": lambda tensor: tensor.box((slice(1, 40), slice(2, 49))),
    "points": lambda tensor: tensor.at(np.array([0, 1000, 1999])),
    "transposed part": lambda tensor: tensor.transposed((1, 0)).box((slice(1, 50), slice(2, 39))),
    "transposed points": lambda tensor: tensor.transposed((1, 0)).at(np.array([0, 1000, 1999])),
}
MAKERS = {
    "npy": _npy,
    "npz": _stored,
    "npz, compressed": _compressed,
    "safetensors": _safetensors,
    "zarr 2": _zarr(2),
    "zarr 3": _zarr(3),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_payload_that_is_cut_is_an_error_with_file_and_tensor(tmp_path: Path, maker: str, read: str) -> None:
    path, file = MAKERS[maker](tmp_path)
    tensor = open_tensors(path)["x"]
    with file.open("r+b") as stream:
        stream.truncate(file.stat().st_size // 3)
    for _again in range(2):
        with pytest.raises(FileFormatError) as found:
            READS[read](tensor)
        assert str(path) in str(found.value)
        assert "tensor 'x'" in str(found.value)
        assert "\n" not in str(found.value)


def test_a_payload_of_a_message_is_read_with_it(tmp_path: Path) -> None:
    content = numpy_helper.from_array(X, "x").SerializeToString()
    (tmp_path / "x.pb").write_bytes(content[: len(content) // 3])
    with pytest.raises(FileFormatError, match=r"x\.pb: "):
        open_tensors(tmp_path / "x.pb")
