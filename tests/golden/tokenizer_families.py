"""Small tokenizers in the forms that well-known models publish: the same normalizer,
pre-tokenizer, model, post-processor and decoder, and a vocabulary trained on a short text.
`families(text, charsmap)` returns them by name; `charsmap` is a precompiled_charsmap of SentencePiece.
"""
import collections
import json

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + ENDING +
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + ENDING +
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
DEEPSEEK = [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
BLANK = "▁"
FALLBACK = [f"<0x{byte:02X}>" for byte in range(256)]
LEARNED = 200  # approximate number of tokens besides an alphabet


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior=behavior, invert=invert)


def bytes_of(regex=False, prefix=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


def blanks(scheme, split=True):
    return pre_tokenizers.Metaspace(replacement=BLANK, prepend_scheme=scheme, split=split)


def template(cls, sep, ids, pair=None):
    single = f"{cls}:0 $A:0 {sep}:0".replace(":0 :0", ":0").removeprefix(":0 ").removesuffix(" :0")
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)


def special(*names, **flags):
    return [AddedToken(name, special=True, normalized=False, **flags) for name in names]


def byte_bpe(text, cutter, tokens, normalizer=None, post=None, alphabet=256,
             **model_options):
    tokenizer = Tokenizer(models.BPE(**model_options))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = cutter
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = post or processors.ByteLevel(trim_offsets=False)
    suffix = model_options.get("end_of_word_suffix")
    tokenizer.train_from_iterator(text, trainers.BpeTrainer(
        vocab_size=alphabet + LEARNED, special_tokens=tokens, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        **({"end_of_word_suffix": suffix} if suffix else {})))
    return tokenizer


def wordpiece(text, lowercase, tokens):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(text, trainers.WordPieceTrainer(
        vocab_size=200 + LEARNED, limit_alphabet=100, show_progress=False, special_tokens=tokens))
    return tokenizer


def blank_bpe(text, normalizer, cutter, first_blank, special_names, post, fallback=True):
    """Llama 2's kind: characters, and bytes for unknown ones."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace(
        replacement=BLANK, prepend_scheme="always" if first_blank else "never")
    trained.train_from_iterator(text, trainers.BpeTrainer(
        vocab_size=100 + LEARNED, limit_alphabet=100, show_progress=False))
    learned = json.loads(trained.to_str())["model"]
    names = special_names + (FALLBACK if fallback else [])
    names += [name for name in learned["vocab"] if name not in names]
    # Runs of blanks are tokens too, as in Llama 2.
    merges = [tuple(pair) for pair in learned["merges"]]
    for run in (2, 4):
        names.append(BLANK * run)
        merges.append((BLANK * (run // 2),) * 2)
    tokenizer = Tokenizer(models.BPE(vocab={name: i for i, name in enumerate(names)}, merges=merges,
                                     unk_token="<unk>", fuse_unk=True, byte_fallback=fallback))
    if normalizer:
        tokenizer.normalizer = normalizer
    if cutter:
        tokenizer.pre_tokenizer = cutter
    steps = [decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if first_blank else []))
    if post:
        tokenizer.post_processor = post
    tokenizer.add_special_tokens(special(*special_names))
    return tokenizer


def of_common_characters(text, count=100):
    """The trainer needs room for each character; rare characters become unknown."""
    common = {c for c, _ in collections.Counter("".join(text)).most_common(count)}
    return ["".join(c for c in part if c in common) for part in text]


def unigram(text, normalizer, cutter, names, unknown, post, fallback=False, added=()):
    trained = Tokenizer(models.Unigram())
    trained.normalizer = normalizer
    trained.pre_tokenizer = cutter
    trained.train_from_iterator(of_common_characters(text), trainers.UnigramTrainer(
        vocab_size=130 + LEARNED, show_progress=False, special_tokens=names, unk_token=unknown,
        initial_alphabet=[BLANK]))
    model = json.loads(trained.to_str())["model"]
    if fallback:
        model["vocab"] += [[name, 0.0] for name in FALLBACK]
    tokenizer = Tokenizer(models.Unigram(vocab=[tuple(piece) for piece in model["vocab"]],
                                         unk_id=model["unk_id"], byte_fallback=fallback))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = cutter
    tokenizer.decoder = decoders.Metaspace(replacement=BLANK, prepend_scheme="always")
    tokenizer.post_processor = post
    tokenizer.add_special_tokens(special(*names))
    tokenizer.add_special_tokens(list(added))
    return tokenizer


def roberta(text):
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = byte_bpe(text, bytes_of(regex=True), names + special("<mask>", lstrip=True),
                         post=processors.RobertaProcessing(("</s>", 2), ("<s>", 0),
                                                           trim_offsets=True, add_prefix_space=False))
    return tokenizer


def minilm(text):
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = wordpiece(text, True, names)
    tokenizer.post_processor = template("[CLS]", "[SEP]", [("[CLS]", 2), ("[SEP]", 3)],
                                        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1")
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding(length=128, pad_id=0, pad_token="[PAD]")
    return tokenizer


def mpnet(text):
    names = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]"]
    tokenizer = wordpiece(text, True, names + special("<mask>", lstrip=True))
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return tokenizer


def neox(text):
    tokenizer = byte_bpe(text, bytes_of(regex=True), ["<|endoftext|>", "<|padding|>"],
                         normalizer=normalizers.NFC())
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True, special=False) for n in (8, 4, 3, 2)])
    return tokenizer


def clip(text):
    tokenizer = byte_bpe(
        text, pre_tokenizers.Sequence([split(CLIP, "removed", invert=True), bytes_of(regex=True)]),
        ["<|startoftext|>", "<|endoftext|>"],
        normalizer=normalizers.Sequence([normalizers.NFC(),
                                         normalizers.Replace(Regex(r"\s+"), " "),
                                         normalizers.Lowercase()]),
        post=processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0),
                                          trim_offsets=False, add_prefix_space=False),
        alphabet=512, unk_token="<|endoftext|>", end_of_word_suffix="</w>")
    return tokenizer


def families(text, charsmap):
    sequence = pre_tokenizers.Sequence
    precompiled = normalizers.Precompiled(charsmap)
    runs = normalizers.Replace(Regex(" {2,}"), " ")
    llama_pair = "<s>:0 $A:0 <s>:1 $B:1"
    llama_marks = template("<s>", "", [("<s>", 1)], pair=llama_pair)
    words_and_blanks = sequence([pre_tokenizers.WhitespaceSplit(), blanks("always")])
    bert_pair = "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"
    return {
        "roberta": roberta(text),
        "minilm": minilm(text),
        "mpnet": mpnet(text),
        "smollm": byte_bpe(text, sequence([pre_tokenizers.Digits(individual_digits=True),
                                           bytes_of(regex=True)]),
                           ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>"],
                           unk_token="<|endoftext|>"),
        "qwen2": byte_bpe(text, sequence([split(QWEN2), bytes_of()]),
                          ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
                          normalizer=normalizers.NFC()),
        "neox": neox(text),
        "gpt4o": byte_bpe(text, sequence([split(GPT4O, "removed", invert=True), bytes_of()]),
                          ["<|endoftext|>", "<|endofprompt|>"]),
        "deepseek": byte_bpe(text, sequence([split(p) for p in DEEPSEEK] + [bytes_of()]),
                             ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"],
                             normalizer=normalizers.Sequence([])),
        "falcon": byte_bpe(text, sequence([pre_tokenizers.Punctuation("contiguous"),
                                           bytes_of(regex=True),
                                           pre_tokenizers.Digits(individual_digits=False),
                                           split("[0-9][0-9][0-9]")]), [">>TITLE<<", "<|endoftext|>"]),
        "clip": clip(text),
        "llama2": blank_bpe(text, normalizers.Sequence([normalizers.Prepend(BLANK),
                                                        normalizers.Replace(" ", BLANK)]),
                            None, True, ["<unk>", "<s>", "</s>"], llama_marks),
        "mistral": blank_bpe(text, None, blanks("first", split=False), True,
                             ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"], llama_marks),
        "gemma": blank_bpe(text, normalizers.Replace(" ", BLANK),
                           pre_tokenizers.Split(" ", "merged_with_previous"), False,
                           ["<pad>", "<eos>", "<bos>", "<unk>"],
                           template("<bos>", "", [("<bos>", 2)], pair="<bos>:0 $A:0 <bos>:1 $B:1")),
        "unknown_bpe": blank_bpe(text, None, blanks("always"), True, ["<unk>"], None, fallback=False),
        "t5": unigram(text, precompiled, words_and_blanks, ["<pad>", "</s>", "<unk>"], "<unk>",
                      template("", "</s>", [("</s>", 1)], pair="$A:0 </s>:0 $B:0 </s>:0"),
                      added=special("<extra_id_1>", "<extra_id_0>")),
        "xlmr": unigram(text, normalizers.Sequence([precompiled, runs]), blanks("always"),
                        ["<s>", "<pad>", "</s>", "<unk>"], "<unk>",
                        template("<s>", "</s>", [("<s>", 0), ("</s>", 2)],
                                 pair="<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0"),
                        added=special("<mask>", lstrip=True)),
        "albert": unigram(text, normalizers.Sequence([
            normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(),
            normalizers.StripAccents(), normalizers.Lowercase(), precompiled]), words_and_blanks,
            ["<pad>", "<unk>", "[CLS]", "[SEP]"], "<unk>",
            template("[CLS]", "[SEP]", [("[CLS]", 2), ("[SEP]", 3)], pair=bert_pair),
            added=special("[MASK]", lstrip=True)),
        "deberta": unigram(text, normalizers.Sequence([
            normalizers.Strip(), precompiled, runs]), blanks("always"),
            ["[PAD]", "[CLS]", "[SEP]", "[UNK]"], "[UNK]",
            template("[CLS]", "[SEP]", [("[CLS]", 1), ("[SEP]", 2)], pair=bert_pair),
            added=[AddedToken("[MASK]", special=True, normalized=True, rstrip=True)]),
        "unigram_bytes": unigram(text, normalizers.Sequence([normalizers.NFKC()]), blanks("first"),
                                 ["<unk>", "<s>"], "<unk>",
                                 template("<s>", "", [("<s>", 1)], pair=llama_pair), fallback=True),
    }
