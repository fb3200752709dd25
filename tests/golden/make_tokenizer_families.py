"""Makes tokenizers/families/ and tokenizer_families.json for tests/io/tokenizer_families_test.cc:
python3 make_tokenizer_families.py (tokenizers 0.23, sentencepiece)

The tokenizers of tokenizer_families.py, and their results for chunks of tokenizer_corpus.py, as in
make_tokenizers.py, and for some texts with special tokens; also their special tokens around one text and two.
"""
import json
import os
import shutil
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

import compare_tokenizers
import tokenizer_corpus
import tokenizer_families
from make_tokenizers import hash_of

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "tokenizers", "families")
TRAINING_CHUNKS, CHUNKS, TEXTS, SEED = 60, 40, 12, 3
# A small table with a rule of each kind in nmt_nfkc: removed, replaced by a space, one to one, one
# to several, several to one. The table of nmt_nfkc has 250 kB; compare_tokenizers.py uses it.
RULES = ([([c], []) for c in (0x1, 0x7F, 0x200B, 0xAD)] +
         [([c], [0x20]) for c in (0x9, 0xA, 0xD, 0xA0, 0x2003, 0x3000)] +
         [([0xFF01 + i], [0x21 + i]) for i in range(90)] +
         [([0xFB01], [0x66, 0x69]), ([0xBD], [0x31, 0x2044, 0x32]), ([0x2026], [0x2E] * 3),
          ([0x65, 0x301], [0xE9]), ([0x61, 0x308], [0xE4]), ([0x1100, 0x1161], [0xAC00])])


def small_charsmap():
    with tempfile.TemporaryDirectory() as folder:
        rules, prefix = os.path.join(folder, "rules.tsv"), os.path.join(folder, "m")
        with open(rules, "w") as file:
            for source, target in RULES:
                file.write("\t".join(" ".join(f"{c:X}" for c in side)
                                     for side in (source, target)) + "\n")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c d"] * 5), model_prefix=prefix, vocab_size=9,
            model_type="unigram", minloglevel=2, normalization_rule_tsv=rules, hard_vocab_limit=False)
        model = sentencepiece_model_pb2.ModelProto()
        with open(prefix + ".model", "rb") as file:
            model.ParseFromString(file.read())
    return model.normalizer_spec.precompiled_charsmap


def expected(tokenizer):
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(text):
        return tokenizer.encode(text, add_special_tokens=False).ids

    def decode(ids):
        return tokenizer.decode(ids, skip_special_tokens=False)

    rows = []
    for i in range(CHUNKS):
        ids = encode(tokenizer_corpus.chunk(SEED, i))
        packed = b"".join(token.to_bytes(4, "little") for token in ids)
        rows.append([len(ids), hash_of(packed), hash_of(decode(ids).encode())])
    added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    texts = compare_tokenizers.texts(TEXTS, added + [" " + added[-1], added[-1] + "\n "])[:TEXTS]
    around = {}
    for name, pair in (("single", ("the",)), ("pair", ("the", "of and"))):
        encoding = tokenizer.encode(*pair)
        around[name] = {"ids": encoding.ids, "types": encoding.type_ids}
    return {"chunks": rows, "texts": [[text, encode(text), decode(encode(text))] for text in texts],
            "around": around}


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    learned = [tokenizer_corpus.chunk(1, i) for i in range(TRAINING_CHUNKS)]
    results = {"seed": SEED}
    for name, tokenizer in tokenizer_families.families(learned, small_charsmap()).items():
        tokenizer.save(os.path.join(FOLDER, name + ".json"), pretty=False)
        results[name] = expected(tokenizer)
    with open(os.path.join(HERE, "tokenizer_families.json"), "w") as file:
        lines = ",\n".join(f'"{name}": {json.dumps(value, separators=(",", ":"), ensure_ascii=True)}'
                           for name, value in results.items())
        file.write("{\n%s\n}\n" % lines)
    print(f"{len(results) - 1} tokenizers")


if __name__ == "__main__":
    main()
