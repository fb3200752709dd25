#!/usr/bin/env python3
"""Converts the pytorch_model.bin of an older Hugging Face model to safetensors.

FOLDER contains pytorch_model.bin, or several files and pytorch_model.bin.index.json; model.safetensors,
or as many files and an index, are written next to them. Such files are pickles, which can name any Python
function to call when they are read. This program imports and calls nothing: it accepts only the names of
tensors and storages, as values, and refuses files that name anything else. It does not require PyTorch.

Exit codes: 0 success, 1 failure (such as a full disk), 2 bad input.
"""

import argparse
import collections
import errno
import io
import json
import math
import pathlib
import pickle
import struct
import sys
import zipfile

from data_tables import InputError, exit_code, whole_files

from concertina.files import replace_file

# Storages by torch's name: name in safetensors, bytes per element.
STORAGES = {"DoubleStorage": ("F64", 8), "FloatStorage": ("F32", 4), "HalfStorage": ("F16", 2),
            "BFloat16Storage": ("BF16", 2), "LongStorage": ("I64", 8), "IntStorage": ("I32", 4),
            "ShortStorage": ("I16", 2), "CharStorage": ("I8", 1), "ByteStorage": ("U8", 1),
            "BoolStorage": ("BOOL", 1)}
# Maximum size of a pickle in bytes: 100,000 tensors of about 150 bytes. Each byte may become an object of 64 bytes.
MOST_PICKLE = 16 << 20
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C  # of torch.save() before 1.6
AGAIN = "the original file, or a model with model.safetensors"
DAMAGED = (pickle.UnpicklingError, ValueError, TypeError, KeyError, AttributeError, IndexError, EOFError,
           OverflowError, MemoryError, RuntimeError, ImportError, struct.error, zipfile.BadZipFile)

Storage = collections.namedtuple("Storage", "key kind size elements")
Tensor = collections.namedtuple("Tensor", "storage offset shape strides")


class MakeTensor:
    """Makes a tensor from a storage, or a parameter from a tensor: the only callable besides OrderedDict that a file may name. It has no attributes."""
    __slots__ = ()

    def __call__(self, of, offset=0, shape=(), strides=(), *_):
        return of if isinstance(of, Tensor) else Tensor(of, offset, tuple(shape), tuple(strides))


KNOWN = {("torch._utils", "_rebuild_tensor_v2"): MakeTensor(), ("torch._utils", "_rebuild_parameter"): MakeTensor(),
         ("collections", "OrderedDict"): collections.OrderedDict}


class TensorUnpickler(pickle.Unpickler):
    """Reads one pickle from `path`; `file` contains at most MOST_PICKLE bytes."""

    def __init__(self, file, path):
        super().__init__(file, encoding="utf-8")
        self.path = path

    def find_class(self, module, name):
        if (module, name) in KNOWN:
            return KNOWN[module, name]
        if module == "torch" and name in STORAGES:
            return name
        raise InputError(f"the pickle refers to {module}.{name}, which weights do not need", self.path, AGAIN)

    def persistent_load(self, saved):
        if not isinstance(saved, tuple) or len(saved) < 5 or saved[0] != "storage" or any(saved[5:]):
            raise pickle.UnpicklingError("no storage")
        _, kind, key, _, elements = saved[:5]
        kind, size = STORAGES[kind]
        if not isinstance(key, str) or not isinstance(elements, int) or elements < 0:
            raise pickle.UnpicklingError("no storage")
        return Storage(key, kind, size, elements)


def check_tensor(name, tensor, path):
    """Checks that the elements are within the storage."""
    whole = isinstance(tensor, Tensor) and isinstance(tensor.storage, Storage)
    numbers = whole and (tensor.offset, *tensor.shape, *tensor.strides)
    if not isinstance(name, str) or not whole or any(type(n) is not int or n < 0 for n in numbers) or len(tensor.shape) != len(tensor.strides):
        raise InputError(f"{str(name)[:100]!r} is not a tensor", path, "a dictionary of tensors, such as state_dict()")
    last = tensor.offset + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.strides))
    if 0 not in tensor.shape and (last >= tensor.storage.elements or math.prod(tensor.shape) > tensor.storage.elements):
        raise InputError(f"the tensor {name[:100]!r} is larger than its storage", path, AGAIN)


def elements_in_order(tensor, data):
    """The bytes of a tensor's elements; `data`: the bytes of its storage."""
    size = tensor.storage.size
    strides, expected = [math.prod(tensor.shape[at + 1:]) for at in range(len(tensor.shape))], math.prod(tensor.shape)
    if expected == 0:
        return b""
    if all(n == 1 or a == b for n, a, b in zip(tensor.shape, tensor.strides, strides)):
        return data[tensor.offset * size:(tensor.offset + expected) * size]
    places = [tensor.offset]
    for n, step in zip(tensor.shape, tensor.strides):
        places = [place + i * step for place in places for i in range(n)]
    return b"".join(data[place * size:(place + 1) * size] for place in places)


class ZippedFile:
    """A file written by torch.save() since version 1.6: a zip with uncompressed entries."""

    def __init__(self, path):
        self.path, self.zip = path, zipfile.ZipFile(path)
        pickles = [name for name in self.zip.namelist() if name.count("/") == 1 and name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise InputError("there is no data.pkl in this zip", path, AGAIN)
        self.root = pickles[0].removesuffix("data.pkl")
        if self.root + "byteorder" in self.zip.namelist() and self.entry("byteorder", 16) != b"little":
            raise InputError("its numbers are big-endian", path, "a file from a little-endian machine")
        self.tensors = TensorUnpickler(io.BytesIO(self.entry("data.pkl", MOST_PICKLE)), path).load()

    def entry(self, name, most):
        info = self.zip.getinfo(self.root + name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size > most:
            raise InputError(f"the entry {name} is compressed, or has more than {most:,} bytes", self.path, AGAIN)
        return self.zip.read(info)

    def data(self, storage):
        wanted = storage.elements * storage.size
        found = self.entry(f"data/{storage.key}", max(wanted, 64))
        if len(found) < wanted:
            raise InputError(f"the entry data/{storage.key} is too short", self.path, AGAIN)
        return found


class LegacyFile:
    """A file written by torch.save() before version 1.6: a sequence of pickles, then the storages."""

    def __init__(self, path):
        self.path, self.file = path, open(path, "rb")
        head = io.BytesIO(self.file.read(MOST_PICKLE))
        if TensorUnpickler(head, path).load() != LEGACY_MAGIC:
            raise InputError("this file was not written by torch.save()", path, AGAIN)
        _, system, self.tensors, keys = [TensorUnpickler(head, path).load() for _ in range(4)]
        if not system["little_endian"]:
            raise InputError("its numbers are big-endian", path, "a file from a little-endian machine")
        self.sizes = {tensor.storage.key: tensor.storage.size for tensor in tensors_of(self.tensors, path).values()}
        self.places, at = {}, head.tell()
        for key in keys:
            self.file.seek(at)
            elements, = struct.unpack("<q", self.file.read(8))
            self.places[key] = (at + 8, elements)
            if elements < 0 or key not in self.sizes:
                raise InputError(f"the storage {str(key)[:100]} does not belong to a tensor", path, AGAIN)
            at += 8 + elements * self.sizes[key]

    def data(self, storage):
        place, elements = self.places[storage.key]
        self.file.seek(place)
        wanted = storage.elements * storage.size
        found = self.file.read(wanted) if elements == storage.elements else b""
        if len(found) < wanted:
            raise InputError(f"the storage {storage.key} is too short", self.path, AGAIN)
        return found


def tensors_of(value, path):
    if not isinstance(value, dict):
        raise InputError("this is not a dictionary of tensors", path, "the result of state_dict()")
    for name, tensor in value.items():
        check_tensor(name, tensor, path)
    return value


def write_safetensors(source, out):
    """Writes all tensors of an opened file, sorted by name, with one storage in memory at a time."""
    tensors = tensors_of(source.tensors, source.path)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(tensors):
        tensor = tensors[name]
        size = math.prod(tensor.shape) * tensor.storage.size
        header[name] = {"dtype": tensor.storage.kind, "shape": tensor.shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with whole_files([out], force=True) as (file,):
        file.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            file.write(elements_in_order(tensors[name], source.data(tensors[name].storage)))
    return list(tensors)


def files_of(folder):
    """The pickles, by the name of the file to write for each; and the index if there are several."""
    single, index = folder / "pytorch_model.bin", folder / "pytorch_model.bin.index.json"
    if single.exists():
        return {"model.safetensors": single}, None
    if not index.exists():
        raise InputError("there is no pytorch_model.bin and no index of several files", folder, "the folder of a Hugging Face model")
    try:
        said = json.loads(index.read_text())
        names = sorted(set(said["weight_map"].values()))
        if any(not isinstance(name, str) or pathlib.Path(name).name != name or not name.endswith(".bin") for name in names):
            raise ValueError
    except DAMAGED:
        raise InputError("this is not an index of files", index, '{"weight_map": {"TENSOR": "FILE.bin"}}') from None
    return {name.removesuffix(".bin").replace("pytorch_model", "model") + ".safetensors": folder / name for name in names}, said


def convert(folder, force):
    files, index = files_of(folder)
    last = folder / ("model.safetensors.index.json" if index else "model.safetensors")
    if last.exists() and not force:
        raise InputError("the file already exists", last, "--force to replace it")
    places = {}
    for name, path in files.items():
        try:
            places |= dict.fromkeys(write_safetensors((ZippedFile if zipfile.is_zipfile(path) else LegacyFile)(path), folder / name), name)
        except InputError:
            raise
        except (*DAMAGED, OSError) as error:
            # Re-raises system errors except for an invalid position; decompressor errors have no number.
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise
            raise InputError(f"this is not a complete file of torch.save() ({type(error).__name__})", path, AGAIN) from None
    if index:
        if missing := set(index["weight_map"]) - set(places):
            raise InputError(f"none of the files has the tensor {min(missing)!r}", folder, AGAIN)
        text = json.dumps({"metadata": index.get("metadata", {}), "weight_map": places}, indent=2)
        replace_file(last, text + "\n")
    print(f"{last}: {len(places)} tensors of {len(files)} file{'s' if len(files) > 1 else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="folder with pytorch_model.bin")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    options = parser.parse_args()
    return exit_code("weights_import", lambda: convert(options.folder, options.force), options.folder)


if __name__ == "__main__":
    sys.exit(main())
