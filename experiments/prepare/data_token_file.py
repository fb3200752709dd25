"""Token files of concertina, as `data prepare` writes them; io/README.md specifies the bytes."""

import array
import hashlib
import json
import pathlib
import re
import struct
import sys

from data_tables import InputError, Rows

MAGIC, TOKENS_AT, HASH_BLOCK = b"concertina token file 1\n", 128, 16 << 20


def tokenizer_of(choice, vocabulary):
    """(fingerprint, vocabulary) of a tokenizer: "bytes", a tokenizer.json or the folder that has it, or a
    fingerprint as `data inspect` shows it, of which `vocabulary` must say the size (0: it was not given)."""
    if choice == "bytes":
        return agreed(b"bytes", 256, vocabulary, choice)
    if re.fullmatch("[0-9a-f]{64}", choice):
        if not vocabulary:
            raise InputError("a fingerprint does not say how many tokens there are", "--vocabulary",
                             "--vocabulary, as `concertina data inspect` shows it")
        return choice, vocabulary
    path = pathlib.Path(choice)
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.exists():
        raise InputError(f"there is no tokenizer '{choice}'", "--tokenizer", "bytes, a tokenizer.json, or a fingerprint")
    text = path.read_bytes()
    try:
        description = json.loads(text)
        ids = list(description["model"]["vocab"].values())
        ids += [token["id"] for token in description.get("added_tokens", [])]
        return agreed(text, max(ids) + 1, vocabulary, path)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError("it is not the tokenizer.json of a BPE or WordPiece", path,
                         "such a file, or the tokenizer's fingerprint and --vocabulary") from None


def agreed(text, has, asked, tokenizer):
    if asked not in (0, has):
        raise InputError(f"the tokenizer {tokenizer} has {has} tokens, not {asked}", "--vocabulary", "no --vocabulary: the tokenizer says it")
    return hashlib.sha256(text).hexdigest(), has


class Blocks:
    """What follows the header, and the hash of each block of it."""

    def __init__(self, out):
        self.out, self.written, self.hashes, self.block = out, 0, [], hashlib.sha256()
        out.write(bytes(TOKENS_AT))

    def write(self, data):
        self.out.write(data)
        data = memoryview(data).cast("B")
        while len(data):
            part = data[:HASH_BLOCK - self.written % HASH_BLOCK]
            self.block.update(part)
            self.written += len(part)
            data = data[len(part):]
            if self.written % HASH_BLOCK == 0:
                self.close_block()

    def close_block(self):
        self.hashes.append(self.block.hexdigest().encode())
        self.block = hashlib.sha256()

    def end(self, header):
        """Writes the header, with the hash of all."""
        if self.written % HASH_BLOCK:
            self.close_block()
        self.out.seek(0)
        self.out.write(header + hashlib.sha256(header + b"".join(self.hashes)).digest())


def write_token_file(options, files, out):
    """A document per row; a row without tokens is none, as a line without any is to `data prepare`."""
    fingerprint, vocabulary = tokenizer_of(options.tokenizer, options.vocabulary)
    width, kind = (2, "uint16") if vocabulary <= 1 << 16 else (4, "uint32")
    rows, blocks, bounds = Rows(files, [options.column]), Blocks(out[0]), array.array("Q", [0])
    for lists, _ in rows.integer_lists(options.column, vocabulary):
        for size in lists.value_lengths().to_pylist():
            if size:
                bounds.append(bounds[-1] + size)
        values = lists.flatten().cast(kind)
        if len(values):
            blocks.write(values.buffers()[1][values.offset * width:(values.offset + len(values)) * width])
    tokens, documents = bounds[-1], len(bounds) - 1
    if not tokens:
        raise InputError("there are no tokens", files[0], "rows with tokens in them")
    blocks.write(bytes(-blocks.written % 8))
    if sys.byteorder == "big":
        bounds.byteswap()
    blocks.write(bounds.tobytes())
    blocks.end(MAGIC + struct.pack("<IIQQQQ", width, 0, vocabulary, tokens, documents, 0) + bytes.fromhex(fingerprint))
    return rows.read
