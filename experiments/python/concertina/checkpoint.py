"""Reads single tensors from checkpoints and verifies every byte (io/README.md, "A checkpoint")."""
import hashlib
import math
import pathlib
import re
import typing

import numpy as np

from .errors import nearest
from .files import parse_json, read_bytes

_MOST_MANIFEST_BYTES = 256 << 20
_CHUNK = 16 << 20  # bytes that are read and hashed at once


class DamagedCheckpoint(ValueError):
    """A checkpoint is damaged; the message names the file, the tensor and the fault."""


class _Piece(typing.NamedTuple):
    file: pathlib.Path
    file_bytes: int
    offset: int  # elements
    elements: int
    parts: dict  # name: (at, sha256)


class Checkpoint:
    """A commit: the directory `step-NNNNNNNN`. Opening it reads only the manifest; `read` reads one tensor. With `average`, weights
    are their moving averages (`optimizer.ema`), except in tensors without one."""

    def __init__(self, path: str | pathlib.Path, average: bool = False):
        self.path = pathlib.Path(path)
        named = re.fullmatch(r"step-(\d{8,})", self.path.name)
        text = self._manifest_bytes()
        manifest = parse_json(text)
        if (manifest.get("format"), manifest.get("version"), manifest.get("dtype")) != ("concertina-checkpoint", 1, "float32"):
            raise DamagedCheckpoint(f"{self.path}/manifest.json has a different format; this package may be older than the run")
        self.step: int = manifest["step"]
        if named and int(named[1]) != self.step:
            raise DamagedCheckpoint(f"{self.path} belongs to step {self.step}; the directory was renamed")
        self.metadata: dict[str, str] = manifest["metadata"]
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._pieces: dict[str, list[_Piece]] = {}
        for shard in manifest["shards"]:
            self._add(shard)
        for name in self._pieces:
            self._check(name)
        self._average = average

    def _manifest_bytes(self) -> bytes:
        manifest = self.path / "manifest.json"
        if not manifest.is_file():
            raise FileNotFoundError(f"{self.path} is not a checkpoint: manifest.json is missing")
        try:
            text, written = read_bytes(manifest, _MOST_MANIFEST_BYTES), read_bytes(self.path / "manifest.sha256", 1024)
        except ValueError as error:
            raise DamagedCheckpoint(str(error)) from error
        if written != f"{hashlib.sha256(text).hexdigest()}  manifest.json\n".encode():
            raise DamagedCheckpoint(f"{manifest} does not match manifest.sha256")
        return text

    def _add(self, shard: dict) -> None:
        for piece in shard["pieces"]:
            name, shape = piece["tensor"], tuple(piece["shape"])
            if self._shapes.setdefault(name, shape) != shape:
                raise DamagedCheckpoint(f"{self.path}: the pieces of {name} have different shapes")
            parts = {part["name"]: (part["at"], part["sha256"]) for part in piece["parts"]}
            self._pieces.setdefault(name, []).append(
                _Piece(self.path / pathlib.PurePath(shard["file"]).name, shard["bytes"], piece["offset"], piece["count"], parts))

    def _check(self, name: str) -> None:
        """Checks that the pieces have the same parts and cover each element once."""
        pieces, end = sorted(self._pieces[name], key=lambda piece: piece.offset), 0
        for piece in pieces:
            if piece.offset != end or piece.parts.keys() != pieces[0].parts.keys():
                raise DamagedCheckpoint(f"{self.path}: the pieces of {name} do not fit together")
            end += piece.elements
        if end != math.prod(self._shapes[name]):
            raise DamagedCheckpoint(f"{self.path}: the pieces of {name} have {end} elements, which does not match the shape {self._shapes[name]}")
        self._pieces[name] = pieces

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """The shape of each tensor, sorted by name."""
        return dict(sorted(self._shapes.items()))

    def parts(self, tensor: str) -> list[str]:
        """`weight` and the parts of the optimizer's state, such as `m` and `v`; a frozen tensor only has `weight`."""
        return list(self._of(tensor)[0].parts)

    def read(self, tensor: str, part: str = "weight") -> np.ndarray:
        """Reads and verifies a part of a tensor as float32. Other tensors are not read and use no memory."""
        pieces = self._of(tensor)
        if self._average and part == "weight" and "ema" in pieces[0].parts:
            part = "ema"
        if part not in pieces[0].parts:
            raise KeyError(f"{tensor} has no part {part!r}; it has {', '.join(pieces[0].parts)}")
        out = np.empty(math.prod(self._shapes[tensor]), "<f4")
        for piece in pieces:
            self._read_piece(tensor, part, piece, out[piece.offset:piece.offset + piece.elements])
        return out.reshape(self._shapes[tensor])

    def merged(self, tensor: str) -> np.ndarray:
        """Reads a weight, with its adapter added if the run trained one ([lora])."""
        weight, adapter = self.read(tensor), tensor.removesuffix(".weight") + ".lora_a"
        if adapter not in self._pieces:
            return weight
        scale = np.float32(float(self.metadata["lora.alpha"]) / int(self.metadata["lora.rank"]))
        return weight + scale * (self.read(adapter) @ self.read(adapter[:-1] + "b"))

    def torch(self, tensor: str, part: str = "weight"):
        """Like `read`, but returns a torch tensor that shares the array's memory."""
        import torch
        return torch.from_numpy(self.read(tensor, part))

    def state_dict(self, torch: bool = False) -> dict:
        """All weights by name, as torch tensors or arrays."""
        return {name: self.torch(name) if torch else self.read(name) for name in self.tensors}

    def _of(self, tensor: str) -> list[_Piece]:
        if tensor not in self._pieces:
            near = nearest(tensor, self._pieces)
            raise KeyError(f"{self.path} has no tensor {tensor!r}" + f"; did you mean {near!r}?" * bool(near))
        return self._pieces[tensor]

    @staticmethod
    def _read_piece(tensor: str, part: str, piece: _Piece, out: np.ndarray) -> None:
        at, wanted = piece.parts[part]
        bytes_ = memoryview(out.data).cast("B")
        digest = hashlib.sha256()
        if not piece.file.is_file():
            raise DamagedCheckpoint(f"{piece.file} is not a regular file")
        with open(piece.file, "rb") as file:
            if file.seek(0, 2) != piece.file_bytes or at + len(bytes_) > piece.file_bytes:
                raise DamagedCheckpoint(f"{piece.file} does not have the expected {piece.file_bytes} bytes")
            file.seek(at)
            for begin in range(0, len(bytes_), _CHUNK):
                chunk = bytes_[begin:begin + _CHUNK]
                if file.readinto(chunk) != len(chunk):
                    raise DamagedCheckpoint(f"{piece.file} ends within {tensor}/{part}")
                digest.update(chunk)
        if digest.hexdigest() != wanted:
            raise DamagedCheckpoint(f"{piece.file}: SHA-256 mismatch in {tensor}/{part}")

    def __repr__(self) -> str:
        return f"Checkpoint(step={self.step}, {len(self._shapes)} tensors, {self.path})"
