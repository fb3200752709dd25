"""Makes the tables of io/tokenizers/library_characters.inc: what Hugging Face's `tokenizers` takes
each code point for. Its tables are of several versions of Unicode (8, 9, 16 and 17), so none of a
library of ours has all of them.
python3 make_characters.py > ../../io/tokenizers/library_characters.inc
(tokenizers 0.23; unicodedata2 18.0, for the code points that are newer than Python's own)
"""
import unicodedata

import unicodedata2
from tokenizers import Regex, normalizers, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So").split()


def ranges(codes):
    out = []
    for c in sorted(codes):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def array(name, kind, rows, what):
    print(f"// {what}\nconstexpr {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        entry = " {" + ", ".join(row) + "},"
        if len(line) + len(entry) > 100:
            print(line)
            line = "   "
        line += entry
    print(line.rstrip(",") + "};\n")


def spans(codes):
    return [(f"0x{a:X}", f"0x{b:X}") for a, b in ranges(codes)]


def removed_by(normalizer):
    return {c for c in CODES if normalizer.normalize_str("a" + chr(c) + "b") == "ab"}


def pieces(step, code):
    return [piece for piece, _ in step.pre_tokenize_str("a" + chr(code) + "b")]


def opaque():
    """Code points that normalization leaves alone there, and Unicode 18 does not."""
    nfd, nfkd = normalizers.NFD(), normalizers.NFKD()
    found = set()
    for c in CODES:
        char = chr(c)
        if nfkd.normalize_str(char) != unicodedata2.normalize("NFKD", char):
            found.add(c)
            parts = unicodedata2.normalize("NFD", char)
            # It is not composed either: of its two parts the one that is new is as good as a letter.
            if len(parts) == 2:
                new = [p for p in parts if unicodedata.ucd_3_2_0.category(p) == "Cn"]
                found.add(ord((new or parts)[0]))
        combining = unicodedata2.combining(char)
        if combining and combining < 240:
            # U+0345 (240) moves behind a mark of a lower class that is known.
            if nfd.normalize_str("a\u0345" + char) == "a\u0345" + char:
                found.add(c)
    return found


def newer(category):
    """Code points of a category there that Unicode 14 (PCRE2 10.42) does not have."""
    split = pre_tokenizers.Split(Regex(r"\p{%s}" % category), "isolated")
    return {c for c in CODES if unicodedata.category(chr(c)) == "Cn"
            and len([p for p, _ in split.pre_tokenize_str("\x01" + chr(c) + "\x01")]) == 3}


def main():
    assert unicodedata.unidata_version == "14.0.0"
    print("// Made by tests/golden/make_characters.py.")
    bert = lambda **on: normalizers.BertNormalizer(**(dict(
        clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False) | on))
    array("kControls", "CodeRange", spans(removed_by(bert(clean_text=True))),
          "Removed by BertNormalizer's clean_text.")
    array("kNonSpacing", "CodeRange", spans(removed_by(bert(strip_accents=True))),
          "Removed by its strip_accents.")
    array("kCombining", "CodeRange", spans(removed_by(normalizers.StripAccents())),
          "Removed by StripAccents.")
    bert_words = pre_tokenizers.BertPreTokenizer()
    array("kPunctuation", "CodeRange",
          spans(c for c in CODES if pieces(bert_words, c) == ["a", chr(c), "b"]),
          "Words of their own for BertPreTokenizer.")
    digits = pre_tokenizers.Digits(individual_digits=True)
    array("kNumeric", "CodeRange", spans(c for c in CODES if len(pieces(digits, c)) == 3),
          "Numbers for Digits.")
    array("kOpaque", "CodeRange", spans(opaque()), "Unknown to NFC, NFD, NFKC and NFKD.")
    lower = normalizers.Lowercase()
    moved = [(c, lower.normalize_str(chr(c))) for c in CODES]
    array("kNewLower", "CodeRange",
          [(f"0x{c:X}", f"0x{ord(small):X}") for c, small in moved
           if len(small) == 1 and small != chr(c) and unicodedata.category(chr(c)) == "Cn"],
          "Capital letters since Unicode 15, and their small letters.")
    rows = sorted((a, b, category) for category in CATEGORIES for a, b in ranges(newer(category)))
    array("kNewer", "NewCharacters", [(f"0x{a:X}", f"0x{b:X}", f'"{c}"') for a, b, c in rows],
          "Characters of Unicode 15, 15.1 and 16, and their categories.")


main()
