#!/usr/bin/env python3
"""Converts Hugging Face datasets, Parquet files and Arrow files to files that data.format supports.

Inputs are files (.parquet, .arrow) or folders: a Dataset or DatasetDict saved with save_to_disk()
from the datasets package, or Parquet files named after their splits, as on the hub
(data/train-00000-of-00002.parquet). Rows are streamed, so a table may be larger than memory. An output
file gets its final name once it is complete; an existing file is kept unless --force is given. Rows are
counted from 0. Requires pyarrow and numpy (pip install pyarrow numpy).

Exit codes: 0 success, 1 failure (such as a full disk), 2 bad input, 130 interrupted.
"""
import argparse
import io
import itertools
import json
import pathlib
import signal
import struct
import sys
import tarfile

from data_tables import InputError, Rows, choose_splits, exit_code, load_pyarrow, whole_files
from data_token_file import token_bytes, write_token_file

EXAMPLES = """examples:
  data_import.py text wikitext --split train --out train.txt
  data_import.py tsv glue-sst2 --split train --split validation --out 'sst2/{split}.tsv'
  data_import.py tsv mrpc.parquet --sentence sentence1 --sentence2 sentence2 --out mrpc.tsv
  data_import.py squad squad --split train --out train-v1.1.json
  data_import.py tokens fineweb/*.parquet --column input_ids --out fineweb.bin
  data_import.py tokens fineweb/*.parquet --tokenizer gpt2/tokenizer.json --out fineweb.tok
  data_import.py images cifar10 --split train --image img --out cifar10.tar
"""


def check_label(label, classes, place):
    """Raises InputError unless `label` is the number of one of `classes` classes (0: unlimited)."""
    if label < 0 or (classes and label >= classes):
        raise InputError(f"label {label} is out of range", place,
                         f"labels 0 to {classes - 1}" if classes else "labels 0, 1, ...; a split whose labels are all -1 has no labels")


def write_text(options, files, out):
    """Writes the text of each row, followed by the separator."""
    rows = Rows(files, [options.column])
    rows.require_text(options.column)
    for _, row in rows.rows():
        out[0].write((row[options.column] + options.separator).encode())
    return rows.read


def write_tsv(options, files, out):
    """Writes a TSV file for data.format = "tsv" (io/labelled/tsv.cc): column names, no quotes."""
    texts = [options.sentence] + ([options.sentence2] if options.sentence2 else [])
    rows = Rows(files, texts + [options.label])
    for name in texts:
        rows.require_text(name)
    numbers = rows.is_integer(options.label)
    if not numbers:
        rows.require_text(options.label, "integers or strings")
    classes = options.classes or rows.class_count(options.label)
    names = ["sentence1", "sentence2"] if options.sentence2 else ["sentence"]
    out[0].write(("\t".join(names + ["label"]) + "\n").encode())
    to_spaces = str.maketrans("\t\n\r", "   ")
    for place, row in rows.rows():
        if numbers:
            check_label(row[options.label], classes, place(options.label))
        cells = [str(row[name]) for name in rows.columns]
        if options.spaces:
            cells = [cell.translate(to_spaces) for cell in cells]
        for name, cell in zip(rows.columns, cells):
            bad = next((what for mark, what in (("\t", "tab"), ("\n", "newline"), ("\r", "carriage return")) if mark in cell), None)
            if bad:
                raise InputError(f"the cell has a {bad}, which a TSV file cannot contain", place(name),
                                 "--spaces, which replaces it with a space")
        if not cells[-1]:
            raise InputError("the label is empty", place(options.label), "a label in each row")
        out[0].write(("\t".join(cells) + "\n").encode())
    return rows.read


def answers_of(row, options, place):
    """The answers to a question in SQuAD 1.1 format, each checked against its context."""
    context, answers, where = row[options.context], row[options.answers], place(options.answers)
    if isinstance(answers, dict) and isinstance(answers.get("text"), list) and \
            isinstance(answers.get("answer_start"), list) and \
            len(answers["text"]) == len(answers["answer_start"]):
        pairs = list(zip(answers["text"], answers["answer_start"]))
    elif isinstance(answers, list) and all(isinstance(one, dict) for one in answers):
        pairs = [(one.get("text"), one.get("answer_start")) for one in answers]
    else:
        raise InputError("the answers are not those of SQuAD", where, "{text: [...], answer_start: [...]} of equal length")
    if not pairs:
        raise InputError("the question has no answer (allowed in SQuAD 2.0, but not in 1.1)", where,
                         "questions with answers: filter() the dataset")
    for text, start in pairs:
        if not isinstance(text, str) or not isinstance(start, int):
            raise InputError("an answer is null or has the wrong type", where, "a string and an integer")
        if start < 0 or not text.strip() or context[start:start + len(text)] != text:
            raise InputError(f"the context does not contain the answer '{text[:60]}' at answer_start = {start} "
                             "(counted in code points)", where, "answers that occur in the context")
    return [{"answer_start": start, "text": text} for text, start in pairs]


def write_squad(options, files, out):
    """Writes JSON as in SQuAD 1.1: consecutive rows with the same title form an article; those with the same context, a paragraph."""
    rows = Rows(files, [options.context, options.question, options.answers], optional=["title", "id"])
    rows.require_text(options.context)
    rows.require_text(options.question)

    def asked():
        for number, (place, row) in enumerate(rows.rows()):
            row["qas"] = {"answers": answers_of(row, options, place), "question": row[options.question], "id": str(row.get("id", number))}
            yield row

    out[0].write(b'{"version": "1.1", "data": [')
    for a, (title, questions) in enumerate(itertools.groupby(asked(), lambda row: row.get("title", ""))):
        out[0].write(b",\n" if a else b"\n")
        out[0].write(b'{"title": %s, "paragraphs": [' % json.dumps(title, ensure_ascii=False).encode())
        for p, (context, same) in enumerate(itertools.groupby(questions, lambda row: row[options.context])):
            out[0].write(b",\n" if p else b"\n")
            out[0].write(json.dumps({"context": context, "qas": [row["qas"] for row in same]}, ensure_ascii=False).encode())
        out[0].write(b"]}")
    out[0].write(b"\n]}\n")
    return rows.read


def write_tokens(options, files, out):
    """Writes a token file if the tokenizer is given, otherwise an indexed dataset for Megatron-LM with
    one document per row and 2 bytes per token if they suffice.

    Source: megatron/core/datasets/indexed_dataset.py; io/datasets/tokens.cc reads it."""
    if options.tokenizer:
        return write_token_file(options, files, out)
    options.vocabulary = options.vocabulary or 1 << 31
    import numpy
    index, tokens = out
    rows = Rows(files, [options.column])
    largest = max((most for _, most in rows.integer_lists(options.column, options.vocabulary)), default=0)
    width, code, kind = (2, 8, "<u2") if largest < 1 << 16 else (4, 4, "<i4")
    lengths, rows = [numpy.zeros(0, "<i4")], Rows(files, [options.column])
    for lists, _ in rows.integer_lists(options.column, options.vocabulary):
        lengths.append(lists.value_lengths().to_numpy())
        tokens.write(token_bytes(lists, kind))
    lengths = numpy.concatenate(lengths).astype("<i4")
    if not lengths.any():
        raise InputError("there are no tokens", files[0], "rows with tokens")
    begins = numpy.append(0, numpy.cumsum(lengths[:-1], dtype="<i8") * width)
    index.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1))
    for numbers in (lengths, begins, numpy.arange(len(lengths) + 1, dtype="<i8")):
        index.write(numbers.tobytes())
    return rows.read


def write_images(options, files, out):
    """Writes a tar file for webdataset: KEY.png or KEY.jpg, then KEY.cls with the class number."""
    rows = Rows(files, [options.image, options.label])
    if not rows.is_integer(options.label):
        raise InputError(f"column '{options.label}' is {rows.type(options.label)}", files[0], "a column of integers")
    classes = options.classes or rows.class_count(options.label)
    with tarfile.open(fileobj=out[0], mode="w|", format=tarfile.USTAR_FORMAT) as tar:
        def add(name, content):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))

        for number, (place, row) in enumerate(rows.rows(32)):
            image = row[options.image]
            image = image.get("bytes") if isinstance(image, dict) else image
            if not isinstance(image, bytes):
                raise InputError("the image's bytes are not in the table", place(options.image), "a column of bytes, or of {bytes, path}")
            end = "png" if image[:8] == b"\x89PNG\r\n\x1a\n" else "jpg" if image[:3] == b"\xff\xd8\xff" else None
            if end is None:
                raise InputError("the image is neither PNG nor JPEG", place(options.image), "PNG or JPEG")
            check_label(row[options.label], classes, place(options.label))
            add(f"{number:09}.{end}", image)
            add(f"{number:09}.cls", str(row[options.label]).encode())
    return rows.read


def outputs(options, split):
    """The output files of a split. The .bin is last, since without its .idx it would be read as another format."""
    path = pathlib.Path(options.out.replace("{split}", split))
    if options.write is not write_tokens or (options.tokenizer and path.suffix not in (".bin", ".idx")):
        return [path]
    if options.tokenizer:
        raise InputError("a token file with its tokenizer does not have Megatron's format", path, "--out NAME.tok, or no --tokenizer")
    if path.suffix != ".bin":
        raise InputError("tokens are written to a .bin file and an .idx file next to it", path,
                         "--out NAME.bin, or --tokenizer for a single file with documents and a hash")
    return [path.with_suffix(".idx"), path]


def unescaped(text):
    """Replaces \\n, \\t, \\u2028, ... with the characters that they represent."""
    try:
        plain = text.encode("latin-1", "backslashreplace").decode("unicode_escape")
        plain.encode()  # fails for half of a surrogate pair
        return plain
    except UnicodeError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


LABELS = {"--label": {"default": "label", "help": "column of classes (default: label)"},
          "--classes": {"type": positive, "default": 0, "help": "number of classes (default: that of the ClassLabel)"}}
# The function that writes each kind, its help, and its options.
KINDS = {
    "text": (write_text, "a column of strings, for data.format=text", {
        "--column": {"default": "text", "help": "column of texts (default: text)"},
        "--separator": {"type": unescaped, "default": "\n", "help": "text after each row (default: \\n)"}}),
    "tsv": (write_tsv, "sentences and labels, for data.format=tsv", {
        "--sentence": {"default": "sentence", "help": "column of sentences (default: sentence)"},
        "--sentence2": {"help": "column of the second sentences of pairs"}, **LABELS,
        "--spaces": {"action": "store_true", "help": "replace tabs and line breaks in cells with spaces"}}),
    "squad": (write_squad, "questions with answers, for data.format=squad", {
        "--context": {"default": "context", "help": "column of contexts (default: context)"},
        "--question": {"default": "question", "help": "column of questions (default: question)"},
        "--answers": {"default": "answers", "help": "column of answers (default: answers)"}}),
    "tokens": (write_tokens, "lists of integers, for data.format=tokens: .bin and .idx of Megatron, or a token file", {
        "--column": {"default": "input_ids", "help": "column of token lists (default: input_ids)"},
        "--vocabulary": {"type": positive, "default": 0, "help": "number of tokens in the vocabulary (default: that of the tokenizer)"},
        "--tokenizer": {"default": "", "metavar": "PATH|bytes|FINGERPRINT",
                        "help": "tokenizer that produced the tokens: a tokenizer.json, bytes, or a fingerprint that data inspect "
                                "shows; writes a file like that of data prepare"}}),
    "images": (write_images, "PNG or JPEG images and labels, as a tar for webdataset",
               {"--image": {"default": "image", "help": "column of images (default: image)"}, **LABELS})}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLES, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(metavar="KIND", required=True)
    for name, (write, what, options) in KINDS.items():
        kind = kinds.add_parser(name, help=what, description=what, allow_abbrev=False)
        kind.add_argument("inputs", nargs="+", metavar="INPUT", help="file or folder; several form one table")
        kind.add_argument("--split", action="append", default=[], help="split to write; may be repeated")
        kind.add_argument("--out", required=True, help="file to write; {split} stands for the name of the split")
        kind.add_argument("--force", action="store_true", help="replace existing files")
        for option, settings in options.items():
            kind.add_argument(option, **settings)
        kind.set_defaults(write=write)
    return parser.parse_args()


def run(options):
    load_pyarrow()
    splits = choose_splits(options.inputs, options.split)
    if "{split}" in options.out and "" in splits:
        raise InputError("the input has no splits", "--out", "a name without {split}")
    if len(splits) > 1 and "{split}" not in options.out:
        raise InputError(f"there are {len(splits)} splits: {', '.join(splits)}", "--out", "--split with one of them, or {split} in the name")
    for split, files in splits.items():
        paths = outputs(options, split)
        with whole_files(paths, options.force) as out:
            rows = options.write(options, files, out)
            if rows == 0:
                raise InputError("there are no rows", files[0] if files else options.inputs[0], "a table with rows")
        print(f"{paths[-1]}: {rows:,} rows, {paths[-1].stat().st_size:,} bytes")


def main():
    options = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return exit_code("data_import", lambda: run(options), options.out, "; no incomplete file is left")
    except KeyboardInterrupt:
        print("data_import: interrupted; incomplete files were removed", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
