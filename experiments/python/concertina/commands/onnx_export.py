"""`concertina checkpoint export --onnx`: combines the model's graph, read as JSON from the input, with the weights of a checkpoint.

Equal graphs, weights and facts give identical bytes. A reader sees a complete model or none. If the weights are in a separate file, at most one
tensor is in memory."""
import hashlib
import json
import math
import os
import pathlib
import shutil
import sys
import typing

import numpy as np
import onnx
from onnx import helper, shape_inference
from onnx.external_data_helper import set_external_data

from ..checkpoint import Checkpoint
from ..errors import InputError
from . import Options

_OPSET, _IR_VERSION = 17, 8
_PAGE, _EXTERNAL_FROM = 4096, 1024  # for the weights file: alignment of offsets; size of its smallest tensor
_TYPES = {"float32": (onnx.TensorProto.FLOAT, "<f4"), "int64": (onnx.TensorProto.INT64, "<i8")}
Json = dict[str, typing.Any]


def _model(graph: Json) -> onnx.ModelProto:
    """The model without parameter values."""
    values = {kind: [helper.make_tensor_value_info(one["name"], _TYPES[one["type"]][0], one["shape"]) for one in graph[kind]]
              for kind in ("inputs", "outputs")}
    nodes = [helper.make_node(one["op"], one["inputs"], one["outputs"], one["name"], **one["attributes"]) for one in graph["nodes"]]
    tensors = [onnx.TensorProto(name=one["name"], data_type=_TYPES[one["type"]][0], dims=one["shape"]) for one in graph["tensors"]]
    for tensor, one in zip(tensors, graph["tensors"]):
        if "values" in one:
            tensor.raw_data = np.array(one["values"], _TYPES[one["type"]][1]).tobytes()
    made = helper.make_graph(nodes, "main_graph", values["inputs"], values["outputs"], tensors)
    return helper.make_model(made, producer_name="concertina", ir_version=_IR_VERSION, opset_imports=[onnx.OperatorSetIdProto(version=_OPSET)])


def _fill(model: onnx.ModelProto, given: Json, data: pathlib.Path | None) -> tuple[str, int]:
    """Adds the weights, or their places in the file `data`. Returns their hash and the file's size."""
    checkpoint, digest, end = Checkpoint(given["checkpoint"], given["average"]), hashlib.sha256(), 0
    with open(data or os.devnull, "wb") as file:
        for tensor, one in zip(model.graph.initializer, given["graph"]["tensors"]):
            if one["type"] != "float32":
                continue
            raw = checkpoint.merged(one["parameter"]).astype("<f4").tobytes() if "parameter" in one else tensor.raw_data
            if "parameter" in one:
                digest.update(raw)
            tensor.raw_data = raw
            if data is None or len(raw) < _EXTERNAL_FROM:
                continue
            begin = -(-end // _PAGE) * _PAGE
            file.seek(begin)
            end = begin + file.write(raw)
            set_external_data(tensor, data.name, begin, len(raw))
            tensor.ClearField("raw_data")
    return digest.hexdigest(), end


def _write(given: Json, folder: pathlib.Path, path: pathlib.Path) -> tuple[onnx.ModelProto, str, int]:
    model = _model(given["graph"])
    try:
        shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        weights = sum(4 * math.prod(one["shape"]) for one in given["graph"]["tensors"] if one["type"] == "float32")
        external = folder / f"{path.name}_data" if weights > given["inline_limit"] else None
        digest, data_bytes = _fill(model, given, external)
        helper.set_model_props(model, dict(sorted((given["facts"] | {"weights.sha256": digest}).items())))
        if model.ByteSize() >= 1 << 31:
            raise InputError(f"the model would have {model.ByteSize():,} bytes, more than protobuf's limit of 2 GiB", str(path),
                             "a smaller --inline-limit")
        with open(folder / path.name, "wb") as file:
            file.write(model.SerializeToString(deterministic=True))
            os.fsync(file.fileno())
        onnx.checker.check_model(str(folder / path.name))
    except (shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        raise InputError(f"ONNX's checker rejects the model: {error}", str(path), code=1) from error
    return model, digest, data_bytes


def main(options: Options) -> int:
    given = json.load(sys.stdin)
    path = pathlib.Path(given["file"])
    data, folder = pathlib.Path(f"{path}_data"), pathlib.Path(f"{path}.writing")
    shutil.rmtree(folder, ignore_errors=True)  # of a killed process
    folder.mkdir()
    try:
        model, digest, data_bytes = _write(given, folder, path)
        for old in (path, data):  # a reader never sees a model with another model's weights
            old.unlink(missing_ok=True)
        for new in filter(lambda one: (folder / one.name).exists(), (data, path)):
            os.replace(folder / new.name, new)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    size, nodes = path.stat().st_size, len(model.graph.node)
    text = f"{given['step_text']}: {nodes} nodes in {path}, {size:,} bytes"
    text += f"; weights in {data}, {data_bytes:,} bytes" if data_bytes else ""
    options.print_result(f"{text}\n", {"step": given["step"], "model": str(path), "bytes": size, "data": str(data) if data_bytes else "",
                                       "data_bytes": data_bytes, "nodes": nodes, "weights_sha256": digest})
    return 0
