"""What experiments/prepare/data_import.py writes, what it refuses, and that concertina reads the former.

usage: data_import_test.py CONCERTINA. Exit code 77 (skipped) without pyarrow, after the checks that
need none.
"""

import contextlib
import io
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import unittest.mock

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = None

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "prepare" / "data_import.py"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPT.parent))
import data_import  # noqa: E402
CONCERTINA = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else sys.exit(__doc__)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
JPEG = b"\xff\xd8\xff\xe0" + bytes(600)


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)


def convert(*arguments):
    """data_import.py in this process: starting Python and pyarrow would take most of the test's time."""
    out, err = io.StringIO(), io.StringIO()
    with unittest.mock.patch("sys.argv", [str(SCRIPT), *arguments]), \
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = data_import.main()
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(scratch.name)

    def refused(self, done, what, where):
        """One error of three lines that has `what` and `where`, and no file left."""
        self.assertEqual(done.returncode, 2, done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual([line[:5] for line in lines], ["data_", "  at:", "  try"], done.stderr)
        self.assertIn(what, lines[0])
        self.assertIn(where, lines[1])
        left = [name for name in os.listdir() if name.startswith(("out", ".out"))]
        self.assertEqual(left, [])

    def written(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def opens(self, *assignments):
        """concertina reads the files: it would train on them."""
        done = run(CONCERTINA, "train", "--dry-run", "model.layers=1", "model.width=16", "model.heads=2",
                   "batch.global=2", "batch.microbatches=1", "run.steps=1", "run.threads=1", *assignments)
        self.assertEqual(done.returncode, 0, done.stderr)


class WithoutPyarrow(Folder):
    def test_help_and_the_missing_library(self):
        for arguments in ([], ["tsv"], ["images"]):
            done = run(sys.executable, "-S", SCRIPT, *arguments, "--help")
            self.assertEqual((done.returncode, done.stdout[:6]), (0, "usage:"), done.stderr)
        blocked = pathlib.Path("pyarrow.py")
        blocked.write_text("raise ImportError('none here')\n")
        done = subprocess.run([sys.executable, "-S", SCRIPT, "text", "x.parquet", "--out", "out.txt"],
                              capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()})
        self.refused(done, "pyarrow cannot be imported with numpy", "python")
        self.assertIn("pip install pyarrow", done.stderr)


@unittest.skipIf(pa is None, "pyarrow is not installed")
class Import(Folder):
    def parquet(self, columns, name="in.parquet", **kinds):
        """A Parquet file of several row groups; `kinds` are the types of columns that need one said."""
        arrays = {key: pa.array(value, kinds.get(key)) for key, value in columns.items()}
        pq.write_table(pa.table(arrays), name, row_group_size=3)
        return name

    def saved(self, folder, columns, features=None, rows=4):
        """A Dataset as save_to_disk() writes it: Arrow streams, named by state.json."""
        os.makedirs(folder)
        table = pa.table(columns)
        if features:
            about = json.dumps({"info": {"features": features}})
            table = table.replace_schema_metadata({"huggingface": about})
        files = []
        for i in range(0, table.num_rows, rows):
            files.append({"filename": f"data-{i:05}.arrow"})
            with pa.OSFile(f"{folder}/{files[-1]['filename']}", "wb") as out, \
                    pa.ipc.new_stream(out, table.schema) as stream:
                stream.write_table(table.slice(i, rows), max_chunksize=3)
        pathlib.Path(folder, "state.json").write_text(json.dumps({"_data_files": files}))

    def test_text(self):
        texts = [f"line {i} é\nmore" for i in range(5000)]
        self.written(convert("text", self.parquet({"text": texts}), "--out", "out.txt", "--separator", "\\n\\u2028é"))
        self.assertEqual(pathlib.Path("out.txt").read_text(), "".join(text + "\n\u2028é" for text in texts))
        self.opens("data.text=out.txt", "model.context=16")

    def test_splits_of_a_dataset_dict_become_tables(self):
        classes = {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}}
        for split, n in (("train", 40), ("validation", 20)):
            self.saved(f"sst2/{split}", {"sentence": [f"{split} {i}" for i in range(n)],
                                         "label": [i % 2 for i in range(n)]}, classes)
        pathlib.Path("sst2/dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
        self.refused(convert("tsv", "sst2", "--out", "out.tsv"), "2 splits: train, validation", "--out")
        self.refused(convert("tsv", "sst2", "--split", "test", "--out", "out.tsv"), "no split 'test'", "sst2")
        self.written(convert("tsv", "sst2", "--out", "made/{split}.tsv"))
        lines = pathlib.Path("made/train.tsv").read_text().splitlines()
        self.assertEqual(lines, ["sentence\tlabel"] + [f"train {i}\t{i % 2}" for i in range(40)])
        self.opens("model.family=bert", "model.task=classification", "data.format=tsv", "model.context=16",
                   "model.classes=2", "model.vocab=260", 'data.files=["made/train.tsv"]', 'data.validation_files=["made/validation.tsv"]')

    def test_pairs_from_published_parquet_files(self):
        os.makedirs("mrpc/data")
        for part in (0, 1):
            self.parquet({"a": [f"a{part}", "b"], "b": ["c", "d"], "is": ["same", "other"]},
                         f"mrpc/data/train-0000{part}-of-00002.parquet")
        self.parquet({"a": ["e"], "b": ["f"], "is": ["same"]}, "mrpc/data/test-00000-of-00001.parquet")
        self.written(convert("tsv", "mrpc", "--split", "train", "--sentence", "a", "--sentence2", "b",
                             "--label", "is", "--out", "pairs.tsv"))
        self.assertEqual(pathlib.Path("pairs.tsv").read_text(), "sentence1\tsentence2\tlabel\na0\tc\tsame\n"
                         "b\td\tother\na1\tc\tsame\nb\td\tother\n")

    def test_tables_that_are_refused(self):
        good = {"sentence": ["a", "b", "c", "d"], "label": [0, 1, 1, 0]}
        row = "in.parquet: row 3, column '{}'"
        for column, value, what in (("sentence", "x\ty", "tab"), ("sentence", "x\ny", "newline"),
                                    ("sentence", "x\r", "carriage return"), ("sentence", None, "null"),
                                    ("label", None, "null"), ("label", -1, "label -1 is out of range"),
                                    ("label", 2, "label 2 is out of range")):
            with self.subTest(what):
                table = {**good, column: good[column][:3] + [value]}
                done = convert("tsv", self.parquet(table), "--classes", "2", "--out", "out.tsv")
                self.refused(done, what, row.format(column))
        self.saved("labelled", {"sentence": ["a", "b"], "label": [0, 2]},
                   {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}})
        self.refused(convert("tsv", "labelled", "--out", "out.tsv"), "label 2 is out of range", "row 1")
        self.parquet(good)
        for arguments, what in ((["--label", "class"], "no column 'class'"),
                                (["--sentence", "label"], "column 'label' is int64")):
            self.refused(convert("tsv", "in.parquet", *arguments, "--out", "out.tsv"), what, "in.parquet")
        done = convert("tsv", self.parquet({**good, "label": [True] * 4}), "--out", "out.tsv")
        self.refused(done, "column 'label' is bool", "in.parquet")
        self.assertIn("whole numbers or strings", done.stderr)
        self.refused(convert("tsv", self.parquet({"sentence": pa.array([], "string"), "label": pa.array([], "int8")}),
                             "--out", "out.tsv"), "no rows", "in.parquet")

    def test_spaces_in_place_of_tabs(self):
        self.parquet({"sentence": ["a\tb\nc", "d"], "label": [0, 1]})
        self.written(convert("tsv", "in.parquet", "--spaces", "--out", "spaces.tsv"))
        self.assertEqual(pathlib.Path("spaces.tsv").read_text(), "sentence\tlabel\na b c\t0\nd\t1\n")

    def test_an_older_file_stays(self):
        self.parquet({"text": ["new"]})
        pathlib.Path("kept.txt").write_text("old")
        self.refused(convert("text", "in.parquet", "--out", "kept.txt"), "the file already exists", "kept.txt")
        self.assertEqual(pathlib.Path("kept.txt").read_text(), "old")
        failed = convert("text", self.parquet({"text": ["new", None]}), "--out", "kept.txt", "--force")
        self.refused(failed, "null", "row 1")
        self.assertEqual(pathlib.Path("kept.txt").read_text(), "old")
        self.written(convert("text", self.parquet({"text": ["new"]}), "--out", "kept.txt", "--force"))
        self.assertEqual(pathlib.Path("kept.txt").read_text(), "new\n")

    def squad(self, answers, **more):
        n = len(answers)
        return {"id": [f"q{i}" for i in range(n)], "title": ["T"] * n, "context": ["Ünder the oak it lay."] * n,
                "question": [f"Where {i}?" for i in range(n)], "answers": answers, **more}

    def test_squad(self):
        oak = {"text": ["the oak"], "answer_start": [6]}  # code points: Ü has two bytes
        rows = self.squad([oak] * 4, title=["T", "T", "T", "U"])
        rows["context"][2] = "the oak, the oak"
        rows["answers"][2] = {"text": ["the oak", "oak"], "answer_start": [9, 13]}
        self.written(convert("squad", self.parquet(rows), "--out", "squad.json"))
        data = json.loads(pathlib.Path("squad.json").read_text())["data"]
        self.assertEqual([article["title"] for article in data], ["T", "U"])
        self.assertEqual([[qa["id"] for qa in p["qas"]] for p in data[0]["paragraphs"]], [["q0", "q1"], ["q2"]])
        self.assertEqual(data[0]["paragraphs"][1]["qas"][0]["answers"],
                         [{"answer_start": 9, "text": "the oak"}, {"answer_start": 13, "text": "oak"}])
        self.opens("model.family=bert", "model.task=question-answering", "data.format=squad", "model.context=96", "model.vocab=260",
                   'data.files=["squad.json"]', "data.validation=0.25")
        listed = self.squad([[{"text": "the oak", "answer_start": 6}]])
        self.written(convert("squad", self.parquet(listed), "--out", "listed.json"))
        self.assertEqual(json.loads(pathlib.Path("listed.json").read_text())["data"][0]["paragraphs"][0]["qas"],
                         [{"answers": [{"answer_start": 6, "text": "the oak"}], "question": "Where 0?", "id": "q0"}])

    def test_answers_that_are_refused(self):
        oak = {"text": ["the oak"], "answer_start": [6]}
        for answer, what in (({"text": ["the oak"], "answer_start": [7]}, "at answer_start = 7"),
                             ({"text": ["the oak"], "answer_start": [-1]}, "at answer_start = -1"),
                             ({"text": [], "answer_start": []}, "has no answer"),
                             ({"text": [None], "answer_start": [6]}, "null"),
                             ({"text": ["oak", "it"], "answer_start": [10]}, "not those of SQuAD")):
            with self.subTest(what):
                done = convert("squad", self.parquet(self.squad([oak, answer])), "--out", "out.json")
                self.refused(done, what, "row 1, column 'answers'")

    def tokens(self, lists, **options):
        """Writes `lists`, and returns what Megatron's reader would: type, sequences, document bounds."""
        self.written(convert("tokens", self.parquet({"input_ids": lists}, **options), "--out", "t.bin", "--force"))
        index, data = pathlib.Path("t.idx").read_bytes(), pathlib.Path("t.bin").read_bytes()
        magic, version, code, sequences, documents = struct.unpack_from("<9sQBQQ", index)
        self.assertEqual((magic, version, documents), (b"MMIDIDX\0\0", 1, sequences + 1))
        lengths = struct.unpack_from(f"<{sequences}i", index, 34)
        begins = struct.unpack_from(f"<{sequences}q", index, 34 + 4 * sequences)
        bounds = struct.unpack(f"<{documents}q", index[34 + 12 * sequences:])
        self.assertEqual(bounds, tuple(range(documents)))
        letter = {8: "H", 4: "i"}[code]
        return code, [list(struct.unpack_from(f"<{n}{letter}", data, at)) for n, at in zip(lengths, begins)], len(data)

    def test_tokens(self):
        many = [[i * 7 % 65536 for i in range(n % 23)] for n in range(70000)]
        self.assertEqual(self.tokens(many), (8, many, 2 * sum(map(len, many))))
        self.opens("data.format=tokens", 'data.files=["t.bin"]', "model.vocab=65536", "model.context=16")
        wide = [[1, 2], [], [70000, 3]]
        self.assertEqual(self.tokens(wide), (4, wide, 16))
        self.assertEqual(self.tokens([[1, 2], [3, 4]], input_ids=pa.list_(pa.int32(), 2)), (8, [[1, 2], [3, 4]], 8))
        for value, what in (([1, -2], "token -2 is out of range"), ([100], "token 100 is out of range"),
                            ([1, None], "a token is null"), (None, "a token is null")):
            with self.subTest(what):
                self.parquet({"input_ids": [[5]] * 4 + [value]})
                done = convert("tokens", "in.parquet", "--vocabulary", "100", "--out", "out.bin")
                self.refused(done, what, "in.parquet: row 4, column 'input_ids'")
        self.refused(convert("tokens", self.parquet({"input_ids": ["a"]}), "--out", "out.bin"),
                     "column 'input_ids' is string", "in.parquet")
        self.refused(convert("tokens", self.parquet({"input_ids": [[1]]}), "--out", "out.idx"), ".bin file", "out.idx")

    def test_token_files_are_those_of_data_prepare(self):
        lines = [f"{'ship under far stars ' * (i % 5)}{i * i}" for i in range(3000)]
        pathlib.Path("text").write_text("\n".join(lines) + "\n")
        learn = run(CONCERTINA, "data", "train-tokenizer", "text", "--vocabulary", "400", "--out", "bpe")
        self.assertEqual(learn.returncode, 0, learn.stderr)
        ids = [list((line + "\n").encode()) for line in lines]
        for name, lists in (("bytes", ids), ("bpe/tokenizer.json", None), ("./bpe", None)):
            done = run(CONCERTINA, "data", "prepare", "data.text=text", f"data.tokenizer={name}", "--documents",
                       "line", "--out", "prepared.tok")
            self.assertEqual(done.returncode, 0, done.stderr)
            whole = pathlib.Path("prepared.tok").read_bytes()
            vocabulary, tokens, documents = struct.unpack_from("<QQQ", whole, 32)
            at = (128 + 2 * tokens + 7) // 8 * 8
            bounds = struct.unpack_from(f"<{documents + 1}Q", whole, at)
            if lists is None:  # the tokens of the program; the rest of the file is this script's
                flat = struct.unpack_from(f"<{tokens}H", whole, 128)
                lists = [list(flat[a:b]) for a, b in zip(bounds, bounds[1:])]
            self.parquet({"input_ids": lists[:7] + [[]] + lists[7:]})
            fingerprint = whole[64:96].hex()
            for say in ((name,), (fingerprint, "--vocabulary", str(vocabulary))):
                self.written(convert("tokens", "in.parquet", "--tokenizer", *say, "--out", "t.tok", "--force"))
                self.assertEqual(pathlib.Path("t.tok").read_bytes(), whole)
            shown = run(CONCERTINA, "data", "inspect", "t.tok", "--verify", "--json", "--tokenizer", name)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertEqual(json.loads(shown.stdout)["documents"], len(lines))
            os.remove("prepared.tok")

    def test_token_files_of_any_size(self):
        """Several blocks of the hash, tokens of 4 bytes, and zeros before the bounds."""
        self.parquet({"input_ids": [list(range(70000))] * 63 + [[1]]})
        self.written(convert("tokens", "in.parquet", "--tokenizer", "ab" * 32, "--vocabulary", "70000", "--out", "t.tok"))
        self.assertGreater(os.path.getsize("t.tok"), 16 << 20)
        shown = run(CONCERTINA, "data", "inspect", "t.tok", "--verify", "--json")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        said = json.loads(shown.stdout)
        self.assertEqual((said["token_bytes"], said["tokens"], said["documents"]), (4, 63 * 70000 + 1, 64))

    def test_token_files_that_are_refused(self):
        self.parquet({"input_ids": [[1, 300]]})
        pathlib.Path("wrong.json").write_text('{"model": {"vocab": [["a", 0.5]]}}')
        for say, what, where in ((["bytes"], "token 300 is out of range", "row 0, column 'input_ids'"),
                                 (["bytes", "--vocabulary", "400"], "has 256 tokens, not 400", "--vocabulary"),
                                 (["ab" * 32], "does not say how many", "--vocabulary"),
                                 (["nowhere"], "no tokenizer 'nowhere'", "--tokenizer"),
                                 (["wrong.json"], "not the tokenizer.json", "wrong.json")):
            with self.subTest(what):
                self.refused(convert("tokens", "in.parquet", "--tokenizer", *say, "--out", "out.tok"), what, where)
        self.refused(convert("tokens", "in.parquet", "--tokenizer", "bytes", "--out", "out.bin"), "Megatron", "out.bin")

    def test_images(self):
        images = [{"bytes": PNG, "path": None}, {"bytes": JPEG, "path": "a.jpg"}] * 40
        self.saved("img", {"image": images, "label": [i % 2 for i in range(80)]}, rows=50)
        self.written(convert("images", "img", "--out", "img.tar"))
        with tarfile.open("img.tar") as tar:
            members = [(m.name, tar.extractfile(m).read()) for m in tar]
        self.assertEqual(len(members), 160)
        self.assertEqual(members[2:4], [("000000001.jpg", JPEG), ("000000001.cls", b"1")])
        self.assertEqual(members[156:158], [("000000078.png", PNG), ("000000078.cls", b"0")])
        for image, label, what in (({"bytes": b"GIF89a", "path": None}, 0, "neither PNG nor JPEG"),
                                   ({"bytes": None, "path": "x.png"}, 0, "not in the table"),
                                   ({"bytes": PNG, "path": None}, 7, "label 7 is out of range")):
            with self.subTest(what):
                self.parquet({"image": images[:5] + [image], "label": [1] * 5 + [label]})
                self.refused(convert("images", "in.parquet", "--classes", "7", "--out", "out.tar"), what, "row 5")

    def test_damaged_files(self):
        whole = pathlib.Path(self.parquet({"text": ["some text"] * 50})).read_bytes()
        self.saved("arrow", {"text": [f"some text {i}" for i in range(50)]}, rows=50)
        stream = pathlib.Path("arrow/data-00000.arrow").read_bytes()
        for name, content in (("empty", b""), ("text", b"no table at all"), ("cut parquet", whole[:-9]),
                              ("cut stream", stream[:len(stream) // 2])):
            with self.subTest(name):
                pathlib.Path("bad.parquet").write_bytes(content)
                self.refused(convert("text", "bad.parquet", "--out", "out.txt"), "the file", "bad.parquet")
        self.parquet({"text": pa.array([b"a", b"b\xffc"]).view("string")})
        self.refused(convert("text", "in.parquet", "--out", "out.txt"), "the file cannot be read", "in.parquet")
        self.parquet({"text": pa.array([b"a", b"b\xffc"]).view("string").dictionary_encode()})
        self.refused(convert("text", "in.parquet", "--out", "out.txt"), "the file cannot be read", "in.parquet")
        self.refused(convert("text", "nowhere", "--out", "out.txt"), "no such file", "nowhere")
        os.makedirs("dict")
        for names in ('["../arrow"]', "[]", '"arrow"'):
            pathlib.Path("dict/dataset_dict.json").write_text('{"splits": %s}' % names)
            self.refused(convert("text", "dict", "--out", "out.txt"), "it names no splits", "dataset_dict.json")
        os.remove("arrow/data-00000.arrow")
        self.refused(convert("text", "arrow", "--out", "out.txt"), "missing", "data-00000.arrow")
        self.parquet({"text": [1, 2]}, "other.parquet")
        self.parquet({"text": ["a"]})
        self.refused(convert("text", "in.parquet", "other.parquet", "--out", "out.txt"), "is int64", "other.parquet")

    def test_killed_it_leaves_nothing(self):
        self.parquet({"sentence": ["x" * 100] * 400000, "label": [0] * 400000})
        going = subprocess.Popen([sys.executable, SCRIPT, "tsv", "in.parquet", "--out", "out.tsv"],
                                 stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not list(pathlib.Path().glob(".out.tsv.*.part")) and time.monotonic() < deadline:
            self.assertIsNone(going.poll(), "it ended before it could be killed")
        self.assertLess(time.monotonic(), deadline)
        going.send_signal(signal.SIGTERM)
        self.assertIn("interrupted", going.communicate(timeout=60)[1])
        self.assertEqual(going.returncode, 130)
        self.assertEqual([name for name in os.listdir() if "out" in name], [])


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=1).result
    if not result.wasSuccessful():
        sys.exit(1)
    if pa is None:
        print("skipped: pyarrow is not installed")
        sys.exit(77)
