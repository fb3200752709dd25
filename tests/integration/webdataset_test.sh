#!/usr/bin/env bash
# Runs from tars of images in webdataset's format, and from folders of images of many sizes:
# webdataset_test.sh PROGRAM MPIRUN OPTIONS...
# Two epochs give the same bits at two layouts, after a resume, and from the same tar compressed by
# gzip or zstd; equal numbers per channel give the bits of one number. The same holds for folders
# with every augmentation, and with cached activations of repeated views.
set -euo pipefail
program=$(realpath -- "$1") mpirun=$2
shift 2
options=("$@")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
die() {
  echo "FAILED: $*"
  exit 1
}
run() { # ranks, name, keys
  local ranks=$1 name=$2
  shift 2
  "$mpirun" -n "$ranks" "${options[@]}" "$program" train @base.toml "run.name=$name" "$@" >out 2>&1 ||
    { cat out; die "$ranks ranks: $name $*"; }
}
refused() { # texts, separated by |, then keys
  local texts=$1 text code=0
  shift
  "$program" train @base.toml run.name=refused "$@" >out 2>&1 || code=$?
  [ "$code" = 2 ] || die "exit code $code: $* $(cat out)"
  [ "$(grep -c error: out)" = 1 ] || die "not one error: $(cat out)"
  while read -r text; do grep -qF -- "$text" out || die "no '$text' in: $(cat out)"; done <<<"${texts//|/$'\n'}"
}
hash_of() { python3 -c 'import json, sys; print(json.load(open(f"runs/{sys.argv[1]}/result.json"))["state_sha256"])' "$1"; }
same() { # names
  [ "$(hash_of "$1")" = "$(hash_of "$2")" ] || die "the bits of $1 and $2 differ"
}

# 32 images of 16 x 16: PNGs of noise, gray and color, and baseline JPEGs of four flat blocks,
# labelled by the bright corner. A test set of 8 more.
python3 - <<'EOF'
import io, os, random, struct, tarfile, zlib

random.seed(1)
SIDE = 16


def png(channels, pixel, height=SIDE, width=SIDE):
    rows = b"".join(b"\0" + bytes(pixel(y, x) for x in range(width) for _ in range(channels)) for y in range(height))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def jpeg(channels, blocks):
    """Of a value of each 8 x 8 block in each channel (Y, Cb, Cr): only DC coefficients, in steps of 1."""
    segment = lambda mark, data: bytes([0xFF, mark]) + struct.pack(">H", len(data) + 2) + data
    # 12 codes of 4 bits for the sizes of DC differences; one of 1 bit, for the end of a block.
    tables = bytes([0x00] + [0, 0, 0, 12] + [0] * 12 + list(range(12)) + [0x10] + [1] + [0] * 15 + [0])
    ids = range(1, channels + 1)
    frame = struct.pack(">BHHB", 8, SIDE, SIDE, channels) + b"".join(bytes([i, 0x11, 0]) for i in ids)
    scan = bytes([channels]) + b"".join(bytes([i, 0]) for i in ids) + bytes([0, 63, 0])
    bits, before = "", [0] * channels
    for values in blocks:
        for c in range(channels):
            step = values[c] - 128 - before[c]
            before[c] += step
            size = abs(step).bit_length()
            bits += f"{size:04b}" + (f"{step if step > 0 else step + (1 << size) - 1:0{size}b}" if size else "") + "0"
    bits += "1" * (-len(bits) % 8)
    data = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)).replace(b"\xff", b"\xff\0")
    return (b"\xff\xd8" + segment(0xDB, bytes([0]) + bytes([8] * 64)) + segment(0xC0, frame) +
            segment(0xC4, tables) + segment(0xDA, scan) + data + b"\xff\xd9")


def sample(i):
    label, channels = random.randrange(4), random.choice([1, 3])
    bright = lambda corner: random.randrange(170, 250) if corner == label else random.randrange(10, 90)
    if i % 2:
        return label, "png", png(channels, lambda y, x: bright(2 * (y // 8) + x // 8))
    chroma = [random.randrange(100, 156) for _ in range(2)]
    return label, "jpg" if i % 4 else "jpeg", jpeg(channels, [[bright(corner)] + chroma for corner in range(4)])


def write(path, count, how="w"):
    with tarfile.open(path, how) as tar:
        for i in range(count):
            label, kind, image = sample(i)
            for ending, data in ((kind, image), ("cls", b"%d" % label)):
                member = tarfile.TarInfo(f"{i:04d}.{ending}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


write("photos-0.tar", 20)
write("photos-1.tar", 12)
write("held.tar", 8)
for part, count in (("train", 32), ("val", 8)):
    for i in range(count):
        height, width, name = random.randrange(9, 40), random.randrange(9, 40), ("emu", "fox", "bee", "ant")[i % 4]
        os.makedirs(f"photos/{part}/{name}", exist_ok=True)
        with open(f"photos/{part}/{name}/{i}.png", "wb") as file:
            file.write(png(1 + i % 2 * 2, lambda y, x: (9 * y * (i % 4) + 5 * x + random.randrange(60)) % 256, height, width))
os.makedirs("broken/ant")
open("broken/ant/1.png", "wb").write(png(1, lambda y, x: x)[:20])
EOF
for part in 0 1; do
  gzip -k "photos-$part.tar"
  zstd -q "photos-$part.tar"
done

cat >base.toml <<'EOF'
[run]
steps = 8        # two epochs
threads = 1
[model]
family = "vit"
layers = 2
width = 16
heads = 2
classes = 4
vit.image = 16
vit.channels = 3
vit.patch = 8
[data]
format = "webdataset"
files = ["photos-{0..1}.tar"]
validation_files = ["held.tar"]
crop = 1
flip = true
[batch]
global = 8
microbatches = 4
[numerics]
leaves = 2
[eval]
every = 4
[checkpoint]
every = 3
[lr]
warmup = 2
[log]
tensorboard = false
EOF

run 1 alone
run 2 stages parallel.pp=2
run 2 replicas parallel.dp=2
same alone stages
same alone replicas

# Stopped in the second epoch, and resumed at another layout.
run 2 resumed parallel.pp=2 run.steps=6 lr.steps=8
run 1 resumed run.steps=8 lr.steps=8
same alone resumed

run 1 gzipped 'data.files=["photos-{0..1}.tar.gz"]'
run 1 packed 'data.files=["photos-{0..1}.tar.zst"]'
same alone gzipped
same alone packed

# torchvision's Normalize: one number per channel.
run 1 each data.mean=[0.5,0.5,0.5] data.deviation=[0.5,0.5,0.5]
same alone each
run 1 other data.mean=[0.5,0.4,0.5]
[ "$(hash_of alone)" != "$(hash_of other)" ] || die "the mean of a channel has no effect"
refused '2 numbers for 3-channel images|data.mean|one number, or 3' data.mean=[0.5,0.4]
refused 'data.deviation|each > 0' data.deviation=[0.5,0.5,0]

# Folders with random crops, rotations and colors; then repeated views of them.
folders=(data.format=image-folder 'data.files=["photos"]' data.validation_files=[] data.size=16 data.scale=0.4 data.rotate=20
  data.brightness=0.4 data.contrast=0.4 data.saturation=0.4 data.randaugment=2)
run 1 folders "${folders[@]}"
run 2 folder_stages "${folders[@]}" parallel.pp=2
run 2 folder_replicas "${folders[@]}" parallel.dp=2
same folders folder_stages
same folders folder_replicas
run 2 folders_resumed "${folders[@]}" parallel.pp=2 run.steps=6 lr.steps=8
run 1 folders_resumed "${folders[@]}" run.steps=8 lr.steps=8
same folders folders_resumed
run 1 other_angles "${folders[@]}" data.rotate=10
[ "$(hash_of folders)" != "$(hash_of other_angles)" ] || die "data.rotate has no effect"
refused 'no sample is ever repeated|cache.memory|data.views = 4' "${folders[@]}" cache.memory=1MiB
views=("${folders[@]}" data.views=2 freeze.units=3 run.steps=16)
run 1 views "${views[@]}"
run 2 views_cached "${views[@]}" parallel.pp=2 cache.memory=1MiB cache.use=always
same views views_cached
python3 -c '
import json
cache = json.load(open("runs/views_cached/result.json"))["cache"]
assert cache["memory_hits"] == 64 and cache["misses"] == 64, cache' || die "two epochs of two views are not read from the cache"
refused 'broken/ant/1.png|cannot decode' "${folders[@]}" 'data.files=["broken"]' data.validation=0
refused 'png|after images of' "${folders[@]}" data.size=0
refused 'data.resize|data.resize >= data.size' "${folders[@]}" data.resize=8

# One error for each fault in a tar.
head -c 9000 photos-0.tar >short.tar
refused 'short.tar' 'data.files=["short.tar"]'
head -c 1500 photos-0.tar.zst >short.tar.zst
refused 'short.tar.zst' 'data.files=["short.tar.zst"]'
echo "1 passed, 0 failed"
