"""Makes tokenizers/ and tokenizers.json for tests/io/tokenizer_test.cc with Hugging Face's
`tokenizers` and Google's `sentencepiece`:
python3 make_tokenizers.py (tokenizers 0.23, sentencepiece 0.1.97, as in Debian 12: of two equally likely
segmentations of a word, "l ll" and "ll l", 0.2 chooses the other one in a fifth of these chunks).

Small tokenizers are trained on the text of tokenizer_corpus.py (seed 1). The results for every chunk
of another seed are written as the number of tokens, their hash, and the hash of the decoded text.
that they are decoded to.
"""
import json
import os
import shutil

import sentencepiece
import tokenizer_corpus
from tokenizers import (Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "tokenizers")
TRAINING_CHUNKS, CHUNKS, SEED = 300, 700, 2
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def training_text():
    return [tokenizer_corpus.chunk(1, i) for i in range(TRAINING_CHUNKS)]


def bpe(pre_tokenizer, special, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.train_from_iterator(training_text(), trainers.BpeTrainer(
        vocab_size=1000, special_tokens=[special], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def wordpiece(lowercase):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(training_text(), trainers.WordPieceTrainer(
        vocab_size=1500, limit_alphabet=700, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    return tokenizer


def trained_sentencepiece(kind):
    prefix = os.path.join(FOLDER, "sentencepiece_" + kind)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line for text in training_text() for line in text.splitlines()),
        model_prefix=prefix, vocab_size=2600, model_type=kind, byte_fallback=True,
        character_coverage=0.98, num_threads=1, minloglevel=2,
        normalization_rule_name="identity" if kind == "bpe" else "nmt_nfkc")
    os.remove(prefix + ".vocab")
    return sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")


def small_sentencepiece(kind):
    """A few hundred bytes, for tests/io/model_fuzz_seeds.cc."""
    lines = ["to be or not to be", "that is the question", "be that as it may 123"] * 20
    prefix = os.path.join(FOLDER, "small_" + kind)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=prefix, vocab_size=40, model_type=kind,
        num_threads=1, minloglevel=2, normalization_rule_name="identity", hard_vocab_limit=False)
    os.remove(prefix + ".vocab")


def hash_of(data):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & tokenizer_corpus.MASK
    return f"{value:016x}"


def expected(encode, decode):
    rows = []
    for i in range(CHUNKS):
        tokens = encode(tokenizer_corpus.chunk(SEED, i))
        packed = b"".join(token.to_bytes(4, "little") for token in tokens)
        rows.append([len(tokens), hash_of(packed), hash_of(decode(tokens).encode())])
    return rows


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    results = {}

    def add(name, file, tokenizer):
        if file:
            tokenizer.save(os.path.join(FOLDER, file), pretty=False)
        results[name] = expected(lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
                                 lambda ids: tokenizer.decode(ids, skip_special_tokens=False))

    gpt2 = bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), "<|endoftext|>")
    add("gpt2.json", "gpt2.json", gpt2)
    os.makedirs(os.path.join(FOLDER, "gpt2"))
    gpt2.model.save(os.path.join(FOLDER, "gpt2"))
    results["gpt2"] = results["gpt2.json"]
    add("gpt2_prefix.json", "gpt2_prefix.json",
        bpe(pre_tokenizers.ByteLevel(add_prefix_space=True), "<|endoftext|>"))
    add("llama3.json", "llama3.json", bpe(pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), "<|endoftext|>",
        ignore_merges=True))
    uncased = wordpiece(True)
    add("uncased.json", "uncased.json", uncased)
    uncased.model.save(FOLDER)
    os.rename(os.path.join(FOLDER, "vocab.txt"), os.path.join(FOLDER, "uncased.txt"))
    results["uncased.txt"] = results["uncased.json"]
    add("cased.json", "cased.json", wordpiece(False))
    for kind in ("unigram", "bpe"):
        small_sentencepiece(kind)
        model = trained_sentencepiece(kind)
        results[f"sentencepiece_{kind}.model"] = expected(model.encode, model.decode)

    with open(os.path.join(HERE, "tokenizers.json"), "w") as file:
        lines = ",\n".join(f'  "{name}": {json.dumps(rows, separators=(",", ":"))}'
                           for name, rows in results.items())
        file.write('{\n  "seed": %d,\n%s\n}\n' % (SEED, lines))
    size = sum(len(tokenizer_corpus.chunk(SEED, i).encode()) for i in range(CHUNKS))
    print(f"{len(results)} tokenizers, {size} bytes of text each")


if __name__ == "__main__":
    main()
