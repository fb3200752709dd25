"""Quantizes exported ONNX models to int8 with onnxruntime's quantizer, and measures what it costs.

The arrays that measure a model, and calibrate a static one, are those of `concertina eval RUN --logits DIRECTORY`."""
import os
import pathlib
import typing

import numpy as np

_BATCH = 16  # samples


def _arrays(folder: str | os.PathLike) -> dict[str, np.ndarray]:
    arrays = {path.stem: np.load(path) for path in pathlib.Path(folder).glob("*.npy")}
    if "logits" not in arrays:
        raise FileNotFoundError(f"{folder} has no logits.npy; `concertina eval RUN --logits {folder}` writes it")
    return arrays


def _feeds(session, arrays: dict[str, np.ndarray]) -> typing.Iterator[dict[str, np.ndarray]]:
    """Batches of the model's inputs, by transformers' names."""
    inputs: dict[str, np.ndarray]
    if "image" in arrays:
        inputs = {"pixel_values": arrays["image"].astype(np.float32)}
    else:
        tokens = arrays["tokens"].astype(np.int64)
        places = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
        mask = places < arrays["lengths"][:, None] if "lengths" in arrays else np.ones(tokens.shape)
        inputs = {"input_ids": tokens, "attention_mask": mask.astype(np.int64), "position_ids": places,
                  "token_type_ids": arrays.get("types", np.zeros(tokens.shape)).astype(np.int64)}
    used = {one.name for one in session.get_inputs()}
    for begin in range(0, len(arrays["logits"]), _BATCH):
        yield {name: value[begin:begin + _BATCH] for name, value in inputs.items() if name in used}


def _session(model: pathlib.Path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def score(model: str | os.PathLike, data: str | os.PathLike) -> dict[str, float]:
    """A model's size, loss and accuracy, and `agreement`, the share of its predictions that are equal to the run's. Raises ValueError unless
    `data` has one target token or class for each row of logits."""
    path, arrays = pathlib.Path(model), _arrays(data)
    targets = arrays.get("targets", arrays.get("label"))
    if targets is None or targets.size != arrays["logits"][..., 0].size:
        raise ValueError(f"{data} has no target token or class for each row of logits; other tasks are not measured")
    session = _session(path)
    logits = np.concatenate([session.run(None, feeds)[0] for feeds in _feeds(session, arrays)]).astype(float)
    weights = path.with_name(f"{path.name}_data")
    found = {"bytes": path.stat().st_size + (weights.stat().st_size if weights.exists() else 0),
             "agreement": float(np.mean(logits.argmax(-1) == arrays["logits"].argmax(-1)))}
    counts = targets.reshape(-1) >= 0
    logits, targets = logits.reshape(-1, logits.shape[-1])[counts], targets.reshape(-1)[counts].astype(int)
    top = logits.max(-1, keepdims=True)
    losses = np.log(np.exp(logits - top).sum(-1)) + top[:, 0] - np.take_along_axis(logits, targets[:, None], -1)[:, 0]
    return found | {"loss": float(losses.mean()), "accuracy": float(np.mean(logits.argmax(-1) == targets))}


def quantize(model: str | os.PathLike, out: str | os.PathLike, data: str | os.PathLike,
             calibrate: str | os.PathLike | None = None) -> list[dict[str, float]]:
    """Writes the model with int8 weights to `out`, and returns score() of both for `data`. Activations are quantized as they are computed,
    or, with another folder of arrays `calibrate`, by the ranges that they have for its samples."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process
    if pathlib.Path(out).exists():
        raise FileExistsError(f"{out} already exists")
    before, prepared = score(model, data), pathlib.Path(f"{out}.prepared")
    try:
        quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
        if calibrate:
            feeds = _feeds(_session(pathlib.Path(model)), _arrays(calibrate))
            reader = type("Reader", (quantization.CalibrationDataReader,), {"get_next": lambda self: next(feeds, None)})()
            quantization.quantize_static(str(prepared), str(out), reader, op_types_to_quantize=["MatMul", "Gemm"], per_channel=True)
        else:
            quantization.quantize_dynamic(str(prepared), str(out), op_types_to_quantize=["MatMul", "Gemm"], per_channel=True)
    finally:
        prepared.unlink(missing_ok=True)
    return [before, score(out, data)]
