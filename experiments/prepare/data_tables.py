"""Reads the rows of Hugging Face datasets and of Parquet and Arrow files, for data_import.py."""

import contextlib
import importlib
import json
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from concertina import InputError  # noqa: E402


def exit_code(tool, work, where, left=""):
    """Calls `work` and prints errors. Returns 0 for success, 1 for a failure, or 2 for bad input."""
    try:
        work()
        return 0
    except InputError as error:
        print(f"{tool}: error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{tool}: error: {error.strerror or error}\n  at: {error.filename or where}\n"
              f"  try: again after fixing the cause{left}", file=sys.stderr)
        return 1


@contextlib.contextmanager
def whole_files(paths, force):
    """Opens files for writing; they get their names, in this order, only once all are on disk."""
    for path in paths:
        if path.exists() and not force:
            raise InputError("the file already exists", path, "another --out, or --force to replace it")
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    parts = [path.with_name(f".{path.name}.{os.getpid()}.part") for path in paths]
    try:
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(open(part, "w+b")) for part in parts]
            yield files
            for file in files:
                file.flush()
                os.fsync(file.fileno())
        for path in paths:  # never an old file next to a new one
            path.unlink(missing_ok=True)
        for part, path in zip(parts, paths):
            os.replace(part, path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def load_pyarrow():
    """Imports pyarrow, which Debian does not package, as globals of this module."""
    global pa, pc, pq
    try:
        pa, pc, pq, _ = map(importlib.import_module, ("pyarrow", "pyarrow.compute", "pyarrow.parquet", "numpy"))
    except ImportError as error:
        raise InputError(f"pyarrow cannot be imported with numpy ({error})", sys.executable,
                         "pip install pyarrow numpy, in a virtual environment if pip requires one") from None


def splits_of(path):
    """The files of each split in `path`, {name: [files]}; a split without a name is ""."""
    if not path.exists():
        raise InputError("no such file or folder", path, "the folder or the files of a dataset")
    if not path.is_dir():
        return {"": [path]}
    if (path / "dataset_dict.json").exists():
        names = read_json(path / "dataset_dict.json").get("splits")
        if not isinstance(names, list) or not names or not all(
                isinstance(name, str) and name and pathlib.Path(name).name == name for name in names):
            raise InputError("it does not name any splits", path / "dataset_dict.json", '{"splits": ["train", ...]}')
        return {name: saved_files(path / name) for name in names}
    if (path / "state.json").exists():
        return {"": saved_files(path)}
    splits = {}
    for file in sorted(f for end in ("parquet", "arrow") for f in path.rglob(f"*.{end}")):
        # train.parquet, train-00000-of-00002.parquet, train-00000-of-00001-a09b74b3ef9c3b56.parquet
        name = re.fullmatch(r"(.+?)(?:[-_.]\d+(?:-of-\d+)?(?:-[0-9a-f]{16})?)?", file.stem)[1]
        if file.stem.isdecimal():  # train/0000.parquet
            name = file.parent.name
        splits.setdefault(name, []).append(file)
    if not splits:
        raise InputError("the folder does not contain a dataset", path, "a folder written by save_to_disk(), or one with .parquet files")
    return splits


def saved_files(folder):
    """The Arrow files of a Dataset written by save_to_disk()."""
    state = read_json(folder / "state.json")
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise InputError("the rows are selected by a list of indices", folder / "state.json", "flatten_indices() before save_to_disk()")
    try:
        files = [folder / one["filename"] for one in state["_data_files"]]
    except (KeyError, TypeError):
        files = []
    if not files:
        raise InputError("it does not name any files", folder / "state.json", "a folder written by save_to_disk()")
    if missing := [file for file in files if not file.exists()]:
        raise InputError("a file that state.json names is missing", missing[0], "the whole folder")
    return files


def read_json(path):
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError) as error:
        raise InputError(f"this is not JSON: {error}" if path.exists() else "the file is missing", path, "a folder of save_to_disk()") from None
    if not isinstance(value, dict):
        raise InputError("this is not a JSON object", path, "a folder written by save_to_disk()")
    return value


def choose_splits(inputs, wanted):
    """{split: [files]} of all inputs together: the splits in `wanted`, in that order, or all."""
    found = {}
    for path in inputs:
        for name, files in splits_of(pathlib.Path(path)).items():
            found.setdefault(name, []).extend(files)
    names = sorted(name for name in found if name)
    for name in wanted:
        if name not in found:
            raise InputError(f"there is no split '{name}'", ", ".join(inputs),
                             f"one of: {', '.join(names)}" if names else "no --split: the input has one table")
    return {name: found[name] for name in wanted} if wanted else found


@contextlib.contextmanager
def reading(file):
    """Reports errors from pyarrow as damage to `file`."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        what = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"the file cannot be read: {what[:200]}", file,
                         "an undamaged Parquet file, or a stream or file of Arrow") from None


def open_table(file):
    """The schema of a file, and a function that yields (batch of `columns`, share of the file read so far)."""
    with open(file, "rb") as one:
        magic = one.read(6)
    if not magic:
        raise InputError("the file is empty", file, "the original file")
    if magic[:4] == b"PAR1":
        parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)  # reads less than a row group at a time
        rows = parquet.metadata.num_rows
        return parquet.schema_arrow, lambda columns, size: (
            (batch.select(columns), min(1, (at + 1) * size / rows)) for at, batch in enumerate(parquet.iter_batches(size, columns=columns)))
    source = pa.OSFile(str(file))  # if mapped, a file that is truncated meanwhile would crash the program
    if magic == b"ARROW1":
        arrow = pa.ipc.open_file(source)
        every = (arrow.get_batch(i) for i in range(arrow.num_record_batches))
    else:
        every = arrow = pa.ipc.open_stream(source)
    return arrow.schema, lambda columns, size: (
        (batch.select(columns).slice(begin, size), source.tell() / source.size()) for batch in every for begin in range(0, batch.num_rows, size))


class Progress:
    """Prints progress to stderr: every second on a terminal, otherwise every 10 s."""

    def __init__(self, total):
        self.total, self.start = total, time.monotonic()
        self.terminal = sys.stderr.isatty()
        self.next = self.start + (1 if self.terminal else 10)

    def show(self, done, rows):
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + (1 if self.terminal else 10)
        left = (now - self.start) * (self.total - done) / max(done, 1)
        print(f"{100 * done / self.total:.0f}%, {rows:,} rows, {left:.0f} s left   ", file=sys.stderr,
              end="\r" if self.terminal else "\n", flush=True)


class Rows:
    """Some columns of the rows in several files, read in sequence with at most one batch in memory.

    `read` is the number of rows yielded so far. Raises InputError for missing or differing columns and damaged files.
    """

    def __init__(self, files, columns, optional=()):
        self.files, self.read, self.columns = files, 0, []
        for file in files:
            with reading(file):
                schema = open_table(file)[0]
                there = schema.names
            for name in columns:
                if name not in there:
                    raise InputError(f"there is no column '{name}'", file, f"one of: {', '.join(there)}")
            if file == files[0]:
                self.schema = schema
                self.columns = list(dict.fromkeys(columns)) + [name for name in optional if name in there]
            for name in self.columns:
                here = schema.field(name).type if name in there else "missing"
                if here != self.schema.field(name).type:
                    raise InputError(f"column '{name}' is {here}; in {files[0]} it is "
                                     f"{self.schema.field(name).type}", file, "files with the same columns")

    def batches(self, size):
        """Yields (file, number of the batch's first row, record batch)."""
        sizes = [file.stat().st_size for file in self.files]
        progress = Progress(sum(sizes))
        for i, file in enumerate(self.files):
            first = 0
            for batch, share in self.batches_of(file, size):
                yield file, first, batch
                first += batch.num_rows
                self.read += batch.num_rows
                progress.show(sum(sizes[:i]) + share * sizes[i], self.read)

    def batches_of(self, file, size):
        """Catches only errors from pyarrow, not from the caller."""
        with reading(file):
            batches = open_table(file)[1](self.columns, size)
        while True:
            with reading(file):
                one = next(batches, None)
                if one is None:
                    return
                one[0].validate(full=True)  # wrong offsets would cause invalid memory accesses
            yield one

    def rows(self, size=1024):
        """Yields (place(column), {column: value}); a null is an error."""
        for file, first, batch in self.batches(size):
            with reading(file):
                values = batch.to_pylist()
            for i, row in enumerate(values, first):
                place = f"{file}: row {i}, column '{{}}'".format
                for name, value in row.items():
                    if value is None:
                        raise InputError("the value is null", place(name), "rows without nulls: filter() the dataset")
                yield place, row

    def integer_lists(self, column, limit):
        """Yields (array of lists, largest number in it or 0); numbers are in [0, min(limit, 2^31))."""
        kind = self.type(column)
        nested = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
        if not nested or not pa.types.is_integer(kind.value_type):
            raise InputError(f"column '{column}' is {kind}", self.files[0], "a column of lists of integers")
        limit = min(limit, 1 << 31)
        for file, first, batch in self.batches(1024):
            lists = batch.column(0).cast(pa.list_(kind.value_type))
            values = lists.flatten()
            bounds = pc.min_max(values)
            low, high = bounds["min"].as_py() or 0, bounds["max"].as_py() or 0
            if lists.null_count or values.null_count or low < 0 or high >= limit:
                row, why = next((row, why) for row, tokens in enumerate(lists.to_pylist(), first) if (why := self.wrong_tokens(tokens, limit)))
                raise InputError(why, f"{file}: row {row}, column '{column}'",
                                 "rows without nulls: filter() the dataset" if "null" in why else f"tokens 0 to {limit - 1}")
            yield lists, high

    @staticmethod
    def wrong_tokens(tokens, limit):
        """The error in the tokens of a row; empty if they are valid."""
        if tokens is None or None in tokens:
            return "a token is null"
        return next((f"token {token} is out of range" for token in tokens if not 0 <= token < limit), "")

    def type(self, column):
        kind = self.schema.field(column).type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def is_integer(self, column):
        return pa.types.is_integer(self.type(column))

    def require_text(self, column, what="strings"):
        """Raises InputError unless the column contains strings."""
        kind = self.type(column)
        if str(kind) not in ("string", "large_string", "string_view"):
            raise InputError(f"column '{column}' is {kind}", self.files[0], f"a column of {what}")

    def class_count(self, column):
        """The number of classes in a ClassLabel; 0: unknown (the datasets package writes features into the schema)."""
        try:
            return len(json.loads((self.schema.metadata or {}).get(b"huggingface", b"{}"))["info"]["features"][column]["names"])
        except (ValueError, KeyError, TypeError):
            return 0
