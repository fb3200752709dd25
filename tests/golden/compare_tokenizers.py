"""Counts the texts that the program and Hugging Face's `tokenizers` (0.23) tokenize or decode differently:
python3 compare_tokenizers.py build/tests/io/tokenizer_texts [--families NAME,...] [--texts N]

Each tokenizer of tokenizer_families.py gets N texts of tokenizer_corpus.py (cut short, with special tokens,
unusual spaces and rare characters), and all assigned code points, separately and between letters. With
sentencepiece, it uses the full table of nmt_nfkc.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import unicodedata2 as unicodedata
import tokenizer_corpus
import tokenizer_families


def full_charsmap():
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "m")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c d"] * 5), model_prefix=prefix, vocab_size=9,
            model_type="unigram", minloglevel=2, normalization_rule_name="nmt_nfkc",
            hard_vocab_limit=False)
        model = sentencepiece_model_pb2.ModelProto()
        with open(prefix + ".model", "rb") as file:
            model.ParseFromString(file.read())
    return model.normalizer_spec.precompiled_charsmap


def code_points():
    """Returns the assigned code points, but only every fiftieth of large uniform blocks."""
    alike = [(0x3400, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xF8FF), (0x13000, 0x1345F),
             (0x14400, 0x1467F), (0x17000, 0x18CFF), (0x20000, 0x3FFFF), (0xF0000, 0x10FFFF)]
    return [c for c in range(1, 0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs") and
            (c % 50 == 0 or not any(a <= c <= b for a, b in alike))]


def texts(count, names):
    made = []
    for i in range(count):
        n = tokenizer_corpus.Numbers(i * 77 + 5)
        atoms = [tokenizer_corpus.atom(n) for _ in range(1 + n.below(24))]
        for _ in range(n.below(4)):
            name = names[n.below(len(names))]
            atoms.insert(n.below(len(atoms) + 1), name.upper() if n.below(6) == 0 else name)
        made.append("".join(atoms))
    codes = code_points()
    for begin in range(0, len(codes), 16):  # several per text, separated
        made.append(" ".join(chr(c) for c in codes[begin:begin + 16]))
        made.append("".join("b" + chr(c) + "a" for c in codes[begin:begin + 16]))
    return made


def ours(program, path, lines):
    given = b"\0".join(text.encode() for text in lines)
    out = subprocess.run([program, path], input=given, stdout=subprocess.PIPE, check=True).stdout
    return [part for part in out.split(b"\0")[:-1]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--families", default="")
    parser.add_argument("--texts", type=int, default=4000)
    options = parser.parse_args()
    tokenizer_families.LEARNED = 600
    learned = [tokenizer_corpus.chunk(1, i) for i in range(60)]
    wanted = options.families.split(",") if options.families else None
    total = 0
    for name, tokenizer in tokenizer_families.families(learned, full_charsmap()).items():
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokenizer.json")
            tokenizer.save(path)
            tokenizer.no_truncation()
            tokenizer.no_padding()
            added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
            lines = texts(options.texts, added + [" " + added[-1], added[-1] + "\n "])
            given = ours(options.program, path, lines)
        assert len(given) == len(lines), (len(given), len(lines))
        tokens = texts_differ = 0
        example = None
        theirs = tokenizer.encode_batch(lines, add_special_tokens=False)
        decoded = tokenizer.decode_batch([e.ids for e in theirs], skip_special_tokens=False)
        for line, answer, encoding, text in zip(lines, given, theirs, decoded):
            ids, _, back = answer.partition(b"\n")
            mine = [int(i) for i in ids.split()]
            if mine != encoding.ids:
                tokens += 1
                example = example or (line, mine, encoding.ids)
            elif back.decode(errors="replace") != text:
                texts_differ += 1
                example = example or (line, back, text)
        total += tokens + texts_differ
        print(json.dumps({"tokenizer": name, "texts": len(lines), "tokens_differ": tokens,
                          "decoded_differ": texts_differ}), flush=True)
        if example:
            print("  first:", ascii(example)[:600], file=sys.stderr)
    print(json.dumps({"differ": total}))
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
