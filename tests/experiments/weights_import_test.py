"""What experiments/prepare/weights_import.py makes of pytorch_model.bin, and that it runs nothing.

usage: weights_import_test.py CONCERTINA. Needs no PyTorch: files are written here as torch.save() does,
byte by byte; where PyTorch is installed, its own files are read too.
"""
import collections
import io
import json
import os
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

try:
    import torch
except ImportError:
    torch = None

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "prepare" / "weights_import.py"
PUBLISHED = pathlib.Path(__file__).resolve().parents[1] / "golden" / "published"
CONCERTINA = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else sys.exit(__doc__)
sys.dont_write_bytecode = True
TYPES = {"F64": "DoubleStorage", "F32": "FloatStorage", "F16": "HalfStorage", "BF16": "BFloat16Storage",
         "I64": "LongStorage", "U8": "ByteStorage", "BOOL": "BoolStorage"}
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "U8": 1, "BOOL": 1}


class Named:
    """Is pickled as MODULE.NAME."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Call:
    """Is pickled as a call of a Named."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


class TorchPickler(pickle._Pickler):
    """As torch.save(): names without importing them, storages as persistent identifiers."""

    def persistent_id(self, value):
        return value if isinstance(value, tuple) and value[:1] == ("storage",) else None

    def save(self, value, save_persistent_id=True):
        if isinstance(value, Named):
            return self.write(b"c" + f"{value.module}\n{value.name}\n".encode())
        return super().save(value, save_persistent_id)

    def save_reduce(self, func, args, *rest, **named):
        if not isinstance(func, Named):
            return super().save_reduce(func, args, *rest, **named)
        self.save(func)
        self.save(args)
        self.write(pickle.REDUCE)


def pickled(value):
    out = io.BytesIO()
    TorchPickler(out, 2).dump(value)
    return out.getvalue()


def tensor_call(key, kind, elements, offset, shape, strides, legacy=False):
    storage = ("storage", Named("torch", TYPES[kind]), key, "cpu", elements) + ((None,) if legacy else ())
    return Call(Named("torch._utils", "_rebuild_tensor_v2"), storage, offset, shape, strides, False,
                collections.OrderedDict())


def write_zip(path, value, storages, packed=False):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as file:
        file.writestr("archive/data.pkl", pickled(value))
        for key, data in storages.items():
            file.writestr(f"archive/data/{key}", data)


def write_legacy(path, value, storages, sizes):
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    parts = [0x1950A86A20F9469CFC6C, 1001, system, value, list(storages)]
    path.write_bytes(b"".join(map(pickled, parts)) + b"".join(
        struct.pack("<q", len(data) // sizes[key]) + data for key, data in storages.items()))


def read_safetensors(path):
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    return {name: (one["dtype"], one["shape"], data[start + one["data_offsets"][0]:start + one["data_offsets"][1]])
            for name, one in header.items() if name != "__metadata__"}


def strides_of(shape):
    strides = []
    for n in reversed(shape):
        strides.insert(0, strides[0] * last if strides else 1)
        last = n
    return tuple(strides)


class WeightsImport(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.folder = pathlib.Path(self.place.name)

    def convert(self, *options):
        return subprocess.run([sys.executable, SCRIPT, self.folder, *options], capture_output=True, text=True,
                              timeout=60, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})

    def refused(self, text):
        done = self.convert()
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 3, done.stderr)
        self.assertEqual([path.name for path in self.folder.glob("*safetensors*")], [])

    def model(self, name, legacy=False):
        """A golden model as a pickle: its tensors by name."""
        tensors = read_safetensors(PUBLISHED / name / "model.safetensors")
        storages = {str(i): data for i, (_, _, data) in enumerate(tensors.values())}
        value = collections.OrderedDict(
            (tensor, tensor_call(str(i), kind, len(data) // SIZES[kind], 0, tuple(shape), strides_of(shape), legacy))
            for i, (tensor, (kind, shape, data)) in enumerate(tensors.items()))
        (self.folder / "config.json").write_bytes((PUBLISHED / name / "config.json").read_bytes())
        return tensors, value, storages

    def check_model(self, name, legacy):
        tensors, value, storages = self.model(name, legacy)
        path = self.folder / "pytorch_model.bin"
        if legacy:
            write_legacy(path, value, storages, {key: SIZES[kind] for key, (kind, _, _) in
                                                 zip(storages, tensors.values())})
        else:
            write_zip(path, value, storages)
        refused = subprocess.run([CONCERTINA, "checkpoint", "import", self.folder, "--out", self.folder / "run"],
                                 capture_output=True, text=True, timeout=60)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("weights_import.py", refused.stderr)
        done = self.convert()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read_safetensors(self.folder / "model.safetensors"), tensors)
        done = subprocess.run([CONCERTINA, "checkpoint", "import", self.folder, "--out", self.folder / "run"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_zip_is_the_same_tensors(self):
        self.check_model("bert-masked-lm", legacy=False)

    def test_a_file_of_before_is_the_same_tensors(self):
        self.check_model("gpt2", legacy=True)

    def test_several_files_and_their_index(self):
        tensors, value, storages = self.model("gpt2")
        names = list(value)
        where = {name: f"pytorch_model-0000{1 + i % 2}-of-00002.bin" for i, name in enumerate(names)}
        for file in set(where.values()):
            write_zip(self.folder / file, {name: value[name] for name in names if where[name] == file}, storages)
        index = self.folder / "pytorch_model.bin.index.json"
        index.write_text(json.dumps({"metadata": {}, "weight_map": where}))
        done = self.convert()
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads((self.folder / "model.safetensors.index.json").read_text())["weight_map"]
        found = {name: read_safetensors(self.folder / file)[name] for name, file in said.items()}
        self.assertEqual(found, tensors)
        self.assertEqual(self.convert().returncode, 2)
        self.assertEqual(self.convert("--force").returncode, 0)
        for path in self.folder.glob("*safetensors*"):
            path.unlink()
        for bad in ({"a": "../a.bin"}, {"a": 1}, []):
            index.write_text(json.dumps({"weight_map": bad}))
            self.refused("not an index of files")

    def test_views_types_and_shared_storages(self):
        data = struct.pack("<12f", *range(12))
        write_zip(self.folder / "pytorch_model.bin", {
            "rows": tensor_call("0", "F32", 12, 4, (2, 4), (4, 1)),
            "turned": Call(Named("torch._utils", "_rebuild_parameter"),
                           tensor_call("0", "F32", 12, 0, (4, 3), (1, 4)), True, collections.OrderedDict()),
            "one": tensor_call("0", "F32", 12, 5, (), ()),
            "none": tensor_call("0", "F32", 12, 0, (0, 3), (3, 1)),
            "flags": tensor_call("1", "BOOL", 3, 0, (3,), (1,)),
            "half": tensor_call("2", "BF16", 2, 0, (2,), (1,))},
            {"0": data, "1": b"\0\1\1", "2": b"\x80\x3f\0\x40"})
        done = self.convert()
        self.assertEqual(done.returncode, 0, done.stderr)
        found = read_safetensors(self.folder / "model.safetensors")
        self.assertEqual(struct.unpack("<8f", found["rows"][2]), tuple(range(4, 12)))
        self.assertEqual(struct.unpack("<12f", found["turned"][2]), (0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11))
        self.assertEqual((found["one"][1], struct.unpack("<f", found["one"][2])), ([], (5.0,)))
        self.assertEqual(found["none"][1:], ([0, 3], b""))
        self.assertEqual(found["flags"], ("BOOL", [3], b"\0\1\1"))
        self.assertEqual(found["half"], ("BF16", [2], b"\x80\x3f\0\x40"))

    def test_nothing_that_a_file_names_is_run(self):
        trace = self.folder / "ran"
        good = tensor_call("0", "F32", 1, 0, (1,), (1,))
        hostile = {
            "os.system": Call(Named("os", "system"), f"touch {trace}"),
            "posix.system": Call(Named("posix", "system"), f"touch {trace}"),
            "builtins.eval": Call(Named("builtins", "eval"), f"open({str(trace)!r}, 'w')"),
            "builtins.getattr": Call(Named("builtins", "getattr"), good, "__class__"),
            "torch.load": Call(Named("torch", "load"), str(trace)),
            "torch.hub.load": Call(Named("torch", "hub.load"), str(trace)),
            "collections.namedtuple": Call(Named("collections", "namedtuple"), "a", "b"),
            "subprocess.Popen": Call(Named("subprocess", "Popen"), ["touch", str(trace)]),
        }
        for name, call in hostile.items():
            write_zip(self.folder / "pytorch_model.bin", {"a": good, "b": call}, {"0": bytes(4)})
            self.refused(f"the pickle refers to {name}, which weights do not need")
            write_legacy(self.folder / "pytorch_model.bin", {"b": call}, {}, {})
            self.refused(f"the pickle refers to {name}, which weights do not need")
        # As a value of another key, as what an object is built of, and by INST, OBJ and NEWOBJ.
        for code in (b"cos\nsystem\n(S'touch %b'\ntR.", b"(S'touch %b'\nios\nsystem\n.", b"(cos\nsystem\nS'touch %b'\no.",
                     b"\x80\x02cos\nsystem\n(S'touch %b'\nt\x81.", b"\x80\x04\x8c\x02os\x8c\x06system\x93S'touch %b'\n\x85R."):
            with zipfile.ZipFile(self.folder / "pytorch_model.bin", "w") as file:
                file.writestr("archive/data.pkl", code.replace(b"%b", str(trace).encode()))
            self.refused("the pickle refers to os.system")
        # What is known cannot be given other attributes, or be called with what is no tensor.
        for code in (b"ctorch._utils\n_rebuild_tensor_v2\n}S'__call__'\nI1\nsb.",
                     b"ccollections\nOrderedDict\n(N}S'keys'\nI1\nstb.",
                     b"ctorch._utils\n_rebuild_parameter\n)R."):
            with zipfile.ZipFile(self.folder / "pytorch_model.bin", "w") as file:
                file.writestr("archive/data.pkl", code)
            self.refused("at: ")
        self.assertFalse(trace.exists())

    def test_what_lies_about_its_size_is_refused(self):
        path = self.folder / "pytorch_model.bin"
        for shape, strides, offset, elements, data in (
                ((3,), (1,), 0, 2, bytes(8)), ((2,), (1,), 1, 2, bytes(8)), ((2,), (9,), 0, 2, bytes(8)),
                ((2,), (-1,), 1, 2, bytes(8)), ((1 << 40,), (0,), 0, 2, bytes(8)), ((2,), (1,), 0, 2, bytes(7)),
                ((2,), (1,), 0, 2, bytes(400)), ((2,), (1, 1), 0, 2, bytes(8)), ((2.0,), (1,), 0, 2, bytes(8)),
                ((2,), (1,), 0, -2, bytes(8))):
            write_zip(path, {"a": tensor_call("0", "F32", elements, offset, shape, strides)}, {"0": data})
            self.refused("at: ")
        good = {"a": tensor_call("0", "F32", 2, 0, (2,), (1,))}
        write_zip(path, good, {"0": bytes(8)}, packed=True)
        self.refused("is compressed")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:  # some kilobytes that become 200 MB
            archive.writestr("a/data.pkl", b"\x80\x02X" + struct.pack("<I", 200 << 20) + bytes(200 << 20) + b".")
        self.refused("is compressed")
        for value in ([1], {"a": 3}, {1: good["a"]}, "text"):
            write_zip(path, value, {"0": bytes(8)})
            self.refused("at: ")
        path.unlink()
        self.refused("there is no pytorch_model.bin")

    def test_damaged_files_are_errors_and_nothing_else(self):
        sys.path.insert(0, str(SCRIPT.parent))
        import data_tables
        import weights_import
        good = {"a": tensor_call("0", "F32", 2, 0, (2,), (1,)), "b": tensor_call("0", "F32", 2, 0, (1, 2), (2, 1))}
        path, out = self.folder / "pytorch_model.bin", self.folder / "model.safetensors"
        rng = random.Random(3)
        write_zip(path, good, {"0": bytes(8)})
        zipped = path.read_bytes()
        write_legacy(path, good, {"0": bytes(8)}, {"0": 4})
        turns = int(os.environ.get("CONCERTINA_MUTATIONS", 100))
        for whole in (zipped, path.read_bytes()):
            refused = 0
            for _ in range(turns):
                data = bytearray(whole)
                for _ in range(rng.randrange(1, 4)):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                path.write_bytes(data[:rng.randrange(len(data))] if rng.random() < 0.2 else data)
                try:
                    weights_import.convert(self.folder, True)
                except data_tables.InputError:
                    refused += 1
            self.assertGreater(refused, turns // 3)
            out.unlink(missing_ok=True)

    @unittest.skipIf(torch is None, "without PyTorch")
    def test_files_of_pytorch(self):
        tied = torch.randn(4, 3)
        tensors = {"a": tied, "b": tied, "t": tied.t(), "h": torch.randn(5).half(), "n": torch.arange(3),
                   "p": torch.nn.Parameter(torch.randn(2)), "e": torch.zeros(0, 2)}
        for legacy in (False, True):
            torch.save(tensors, self.folder / "pytorch_model.bin", _use_new_zipfile_serialization=not legacy)
            done = self.convert("--force")
            self.assertEqual(done.returncode, 0, done.stderr)
            found = read_safetensors(self.folder / "model.safetensors")
            for name, tensor in tensors.items():
                self.assertEqual(found[name][2], tensor.detach().contiguous().numpy().tobytes(), name)
                self.assertEqual(found[name][1], list(tensor.shape), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
