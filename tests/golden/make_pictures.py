#!/usr/bin/env python3
"""Writes tests/golden/pictures.json: results of Pillow and torchvision for a small picture.

python3 tests/golden/make_pictures.py      needs Pillow and torchvision (written with 13.0.0 and 0.29.2)

A case has the size of the initial picture (see picture()), the operations, and the pixels [C, H, W] of the
result, in hexadecimal.
"""
import json
import pathlib

import numpy as np
from PIL import Image
from torchvision import transforms
from torchvision.transforms import functional
from torchvision.transforms.autoaugment import _apply_op
from torchvision.transforms.functional import InterpolationMode

FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}


def picture(channels, height, width):
    """The same as picture_of() in tests/io/picture_test.cc."""
    c, y, x = np.mgrid[:channels, :height, :width]
    pixels = (40 + (x * 11 + y * 7 + c * 50 + x * y * 13 % 31) % 161).astype(np.uint8)
    return Image.fromarray(pixels[0] if channels == 1 else pixels.transpose(1, 2, 0))


def row(shape, outcome, **what):
    pixels = np.asarray(outcome)
    pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    return {"picture": shape, **what, "shape": pixels.shape, "pixels": pixels.tobytes().hex()}


def main():
    color, grey, wide = (3, 20, 17), (1, 20, 17), (3, 11, 26)
    space = transforms.RandAugment()._augmentation_space(31, (20, 17))
    cases = {"resized": [], "fitted": [], "changed": []}
    for height, width in ((9, 7), (41, 34), (20, 5), (1, 1), (3, 60)):
        for name, how in FILTERS.items():
            cases["resized"].append(row(color, picture(*color).resize((width, height), how),
                                        height=height, width=width, interpolation=name))
    for shape, size, resize in ((color, 8, 10), (color, 9, 12), (wide, 8, 0), (wide, 7, 9), (grey, 17, 0)):
        steps = [transforms.Resize(resize or size), transforms.CenterCrop(size)]
        cases["fitted"].append(row(shape, transforms.Compose(steps)(picture(*shape)), fit="cut", size=size, resize=resize))
    cases["fitted"].append(row(wide, transforms.Resize((12, 12))(picture(*wide)), fit="stretch", size=12, resize=0))
    for name, (strengths, signed) in space.items():
        for magnitude, sign, shape in ((9, 1, color), (25, -1 if signed else 1, color), (17, 1, grey)):
            strength = sign * float(strengths[magnitude]) if strengths.ndim else 0.0
            if strengths.ndim or magnitude == 9:
                outcome = _apply_op(picture(*shape), name, strength, InterpolationMode.NEAREST, None)
                cases["changed"].append(row(shape, outcome, name=name, strength=strength))
    for degrees in (45.0, 90.0, -180.0, 133.7):
        cases["changed"].append(row(color, functional.rotate(picture(*color), degrees), name="Rotate", strength=degrees))
    cases["strengths"] = {name: strengths.double().tolist() for name, (strengths, _) in space.items() if strengths.ndim}
    text = json.dumps(cases).replace('{"picture"', '\n{"picture"').replace('], "', '],\n"')
    pathlib.Path(__file__).with_name("pictures.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
