"""Writes token files like those of `data prepare`; io/README.md specifies the format."""

import hashlib
import json
import pathlib
import re
import struct

from data_tables import InputError, Rows

MAGIC, TOKENS_AT, HASH_BLOCK = b"concertina token file 1\n", 128, 16 << 20


def tokenizer_of(choice, vocabulary):
    """(fingerprint, vocabulary) of a tokenizer: "bytes", a tokenizer.json or its folder, or a fingerprint shown
    by `data inspect`, which requires the vocabulary size `vocabulary` (0: not given)."""
    if choice == "bytes":
        return agreed(b"bytes", 256, vocabulary, choice)
    if re.fullmatch("[0-9a-f]{64}", choice):
        if not vocabulary:
            raise InputError("a fingerprint does not determine the number of tokens", "--vocabulary",
                             "--vocabulary N, as shown by `concertina data inspect`")
        return choice, vocabulary
    path = pathlib.Path(choice)
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.exists():
        raise InputError(f"no tokenizer '{choice}'", "--tokenizer", "bytes, a tokenizer.json, or a fingerprint")
    text = path.read_bytes()
    try:
        description = json.loads(text)
        ids = list(description["model"]["vocab"].values())
        ids += [token["id"] for token in description.get("added_tokens", [])]
        return agreed(text, max(ids) + 1, vocabulary, path)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError("not the tokenizer.json of a BPE or WordPiece tokenizer", path,
                         "such a file, or the tokenizer's fingerprint and --vocabulary") from None


def agreed(text, has, asked, tokenizer):
    if asked not in (0, has):
        raise InputError(f"the tokenizer {tokenizer} has {has} tokens, not {asked}", "--vocabulary", "no --vocabulary: the tokenizer determines it")
    return hashlib.sha256(text).hexdigest(), has


def token_bytes(lists, type_):
    """Returns the numbers in an array of lists as bytes; `type_`: the type of each number, such as "<u2"."""
    return lists.flatten().to_numpy().astype(type_).tobytes()


def write_token_file(options, files, out):
    """Writes one document per row. Like empty lines in `data prepare`, rows without tokens are skipped."""
    import numpy
    file, = out
    fingerprint, vocabulary = tokenizer_of(options.tokenizer, options.vocabulary)
    width = 2 if vocabulary <= 1 << 16 else 4
    rows, sizes = Rows(files, [options.column]), []
    file.write(bytes(TOKENS_AT))
    for lists, _ in rows.integer_lists(options.column, vocabulary):
        sizes.append(lists.value_lengths().to_numpy())
        file.write(token_bytes(lists, f"<u{width}"))
    sizes = numpy.concatenate(sizes, dtype="u8", casting="unsafe") if sizes else numpy.zeros(0, "u8")
    ends = numpy.cumsum(sizes[sizes > 0])
    if not len(ends):
        raise InputError("there are no tokens", files[0], "rows with tokens")
    file.write(bytes((TOKENS_AT - file.tell()) % 8) + numpy.append(0, ends).astype("<u8").tobytes())
    file.seek(TOKENS_AT)
    hashes = b"".join(hashlib.sha256(block).hexdigest().encode() for block in iter(lambda: file.read(HASH_BLOCK), b""))
    header = MAGIC + struct.pack("<IIQQQQ", width, 0, vocabulary, ends[-1], len(ends), 0) + bytes.fromhex(fingerprint)
    file.seek(0)
    file.write(header + hashlib.sha256(header + hashes).digest())
    return rows.read
