"""Reads model.h5 with h5py: complete tensors with the right shapes and values, from the shards next to it.

usage: h5py_test.py WRITE_CHECKPOINT. Exits with 77 (skipped) without h5py.
"""
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

SHAPES = [(5,), (4, 6), (3, 2, 5), (1, 7, 2, 3), (50, 40)]


def check(step):
    """Checks all tensors of the checkpoint directory `step`; returns what h5py found."""
    found = []
    with h5py.File(os.path.join(step, "model.h5"), "r") as model:
        model.visititems(lambda name, o: found.append(name) if isinstance(o, h5py.Dataset) else None)
        for t, shape in enumerate(SHAPES):
            for p, part in enumerate(["weight", "m", "v"]):
                dataset = model[f"{t:03}.unit/tensor/{part}"]
                expected = 1000 * t + 100 * p + np.arange(np.prod(shape)).reshape(shape) / 4
                assert dataset.dtype == np.dtype("<f4"), dataset.dtype
                assert dataset.shape == shape, (dataset.shape, shape)
                assert np.array_equal(dataset[...], expected.astype("<f4")), (t, part)
                assert np.array_equal(dataset[-1:], expected[-1:].astype("<f4")), (t, part)
    assert len(found) == 3 * len(SHAPES), found


def check_shards(step):
    """Each shard is a plain HDF5 file: contiguous pieces with their positions."""
    elements = 0
    for name in sorted(os.listdir(step)):
        if not name.startswith("shard-"):
            continue
        with h5py.File(os.path.join(step, name), "r") as shard:
            datasets = []
            shard.visititems(
                lambda _, o: datasets.append(o) if isinstance(o, h5py.Dataset) else None)
            for dataset in datasets:
                assert dataset.chunks is None
                t, offset = int(dataset.name[1:4]), int(dataset.attrs["offset"][0])
                part = ["weight", "m", "v"].index(dataset.name.split("/")[-1].split(".")[0])
                assert tuple(dataset.attrs["shape"]) == SHAPES[t]
                expected = 1000 * t + 100 * part + (offset + np.arange(dataset.size)) / 4
                assert np.array_equal(dataset[...], expected.astype("<f4")), dataset.name
                elements += dataset.size
    assert elements == 3 * sum(int(np.prod(shape)) for shape in SHAPES), elements


with tempfile.TemporaryDirectory() as root:
    step = subprocess.run([sys.argv[1], root], check=True, capture_output=True,
                          text=True).stdout.strip()
    check(step)
    check_shards(step)
    moved = shutil.move(step, os.path.join(root, "elsewhere"))  # a checkpoint may be moved
    check(moved)
print("ok")
