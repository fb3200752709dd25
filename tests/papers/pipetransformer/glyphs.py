#!/usr/bin/env python3
"""Makes images to pretrain a ViT on, for data.format = "mnist": letters drawn with the free fonts of Debian,
upper and lower case in one class. As in MNIST, an image has 28 x 28 pixels, and its letter is in a
box of 20 x 20 around the center of mass.

Downloads the packages of fonts.txt with apt-get (70 MB, no root) into OUT/fonts and unpacks them there;
--fonts DIR uses existing fonts instead. Each drawing is randomly rotated, sheared and bent. Fonts that draw
the same letters are used once, as are letters shared by two fonts. The pixels depend only on
the packages and on Pillow's version; OUT/glyphs.json has both and the digests of the files."""
import argparse
import hashlib
import json
import multiprocessing
import pathlib
import random
import struct
import subprocess
import sys

try:
    import numpy
    import PIL
    from PIL import Image, ImageDraw, ImageFont
except ImportError as missing:
    sys.exit(f"glyphs.py: {missing}\n  try: apt-get install python3-numpy python3-pil, or pip install numpy pillow")

FONTS = pathlib.Path(__file__).resolve().parents[3] / "experiments" / "papers" / "pipetransformer" / "fonts.txt"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SIZE, BOX, CANVAS = 28, 20, 160
LEAST_LETTERS = 22  # fonts of symbols or other scripts have fewer distinct ones


def fail(what, fix):
    sys.exit(f"glyphs.py: {what}\n  try: {fix}")


def download(folder):
    """Unpacks the packages below `folder`, unless an earlier run did."""
    if (folder / "complete").exists():
        return
    (folder / "deb").mkdir(parents=True, exist_ok=True)
    packages = [line for line in FONTS.read_text(encoding="utf-8").split("\n") if line.strip() and not line.startswith("#")]
    got = subprocess.run(["apt-get", "download", *map(str.strip, packages)], cwd=folder / "deb", capture_output=True, text=True)
    if got.returncode != 0:
        fail(f"apt-get download failed: {got.stderr.strip()}", "apt-get update, or --fonts DIR with fonts of your own")
    for package in sorted((folder / "deb").iterdir()):
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    (folder / "complete").touch()


def bend(image, chance, cells=4, most=7):
    """Returns the image, warped by a grid whose corners move by up to `most` pixels."""
    side = image.size[0] // cells
    corner = [[(x * side + chance.uniform(-most, most), y * side + chance.uniform(-most, most))
               for x in range(cells + 1)] for y in range(cells + 1)]
    mesh = [((x * side, y * side, (x + 1) * side, (y + 1) * side),
             corner[y][x] + corner[y + 1][x] + corner[y + 1][x + 1] + corner[y][x + 1])
            for y in range(cells) for x in range(cells)]
    return image.transform(image.size, Image.MESH, mesh, Image.BILINEAR)


def draw(font, letter, chance=None):
    """Returns the letter as SIZE x SIZE bytes, randomly rotated, sheared and bent; None if it has no ink."""
    image = Image.new("L", (CANVAS, CANVAS), 0)
    try:
        ImageDraw.Draw(image).text((CANVAS // 2, CANVAS // 2), letter, fill=255, font=font, anchor="mm")
    except (OSError, ValueError):
        return None
    if chance:
        turn, shear = chance.uniform(-15, 15), chance.uniform(-.25, .25)
        image = image.transform(image.size, Image.AFFINE, (1, shear, -CANVAS / 2 * shear, 0, 1, 0), Image.BILINEAR)
        image = bend(image.rotate(turn, Image.BILINEAR), chance)
    ink = image.getbbox()
    if not ink or max(ink[2] - ink[0], ink[3] - ink[1]) < 8:
        return None
    image = image.crop(ink)
    scale = BOX / max(image.size)
    image = image.resize([max(1, round(side * scale)) for side in image.size], Image.LANCZOS)
    pixels = numpy.asarray(image).astype(float)
    if pixels.sum() == 0:
        return None
    across, down = ((pixels.sum(axis) * numpy.arange(pixels.shape[1 - axis])).sum() / pixels.sum() for axis in (0, 1))
    whole = Image.new("L", (SIZE, SIZE), 0)
    whole.paste(image, (round((SIZE - 1) / 2 - across), round((SIZE - 1) / 2 - down)))
    return whole.tobytes()


def draw_font(job):
    """Returns plain and changed drawings of a font's letters: [(letter, plain, [changed])]; nothing
    for a font without these letters."""
    path, copies, seed = job
    try:
        font = ImageFont.truetype(path, 96)
    except OSError:
        return []
    plain = {letter: draw(font, letter) for letter in LETTERS}
    if len({pixels for pixels in plain.values() if pixels}) < LEAST_LETTERS:
        return []
    chance = random.Random(seed)
    return [(letter, pixels, [draw(font, letter, chance) for _ in range(copies)]) for letter, pixels in plain.items() if pixels]


def collect(folder, copies, seed):
    """Returns images and classes in a random order, and the number of fonts."""
    fonts = sorted((path for path in folder.rglob("*") if path.suffix.lower() in (".ttf", ".otf")), key=lambda path: str(path.relative_to(folder)))
    jobs = [(str(path), copies, f"{seed} {number}") for number, path in enumerate(fonts)]
    known, items, fonts = set(), [], 0
    with multiprocessing.Pool() as pool:
        for number, drawn in enumerate(pool.imap(draw_font, jobs, chunksize=4)):
            if sys.stderr.isatty():
                print(f"\r{number + 1}/{len(jobs)} fonts", end="", file=sys.stderr)
            whole = b"".join(plain for _, plain, _ in drawn)
            if not drawn or whole in known:
                continue
            known.add(whole)
            fonts += 1
            for letter, plain, changed in drawn:
                if (letter, plain) not in known:  # another font may have drawn the same
                    known.add((letter, plain))
                    items += [(one, LETTERS.index(letter) % 26) for one in changed if one]
    random.Random(seed).shuffle(items)
    return items, fonts


def write(path, header, body):
    data = struct.pack(f">{len(header)}I", *header) + body
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT", type=pathlib.Path, help="folder for the files")
    parser.add_argument("--fonts", metavar="DIR", type=pathlib.Path, help="existing fonts to use instead of Debian's packages")
    parser.add_argument("--copies", type=int, default=3, help="drawings of each letter of a font (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the changes and the order (default: 1)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    folder = options.fonts or options.out / "fonts"
    if not options.fonts:
        download(folder)
    items, fonts = collect(folder, options.copies, options.seed)
    if not items:
        fail(f"no font in {folder} draws letters", "--fonts DIR with .ttf or .otf files")
    images = write(options.out / "letters-images", (0x803, len(items), SIZE, SIZE), b"".join(pixels for pixels, _ in items))
    labels = write(options.out / "letters-labels", (0x801, len(items)), bytes(kind for _, kind in items))
    about = {"fonts": fonts, "images": len(items), "pillow": PIL.__version__, "images_sha256": images,
             "labels_sha256": labels, "from": str(options.fonts or "") or sorted(path.name for path in (folder / "deb").iterdir())}
    (options.out / "glyphs.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    print(f"{fonts} fonts, {len(items)} images of 26 letters in {options.out}")


if __name__ == "__main__":
    main()
