"""The text on which tokenizers are compared: chunk `i` of a seed is a pure function of both, equal
to that of tests/io/tokenizer_corpus.h."""

MASK = (1 << 64) - 1
WORDS = ("the of and a to in is you that it he was for on are as with his they I at be this have from "
         "or one had by word but not what all were we when your can said there use an each which she "
         "do how their if will up other about out many then them these so some her would make like "
         "him into time has look two more write go see number no way could people my than first "
         "water been call who oil its now find long down day did get come made may part "
         "DON'T I'll we've they're he'd it's I'm can't WON'T naïve Übermut façade été İstanbul ſ").split()
SPACES = [" ", " ", " ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2028", "\u2003",
          "\x0b", "\x0c", "\x85", "   ", " \n", "\n "]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'RE", "'LL", "'x", "\u2019s", "'"]
SEQUENCES = ["\U0001F468\u200d\U0001F469\u200d\U0001F467", "\U0001F1E9\U0001F1EA", "\U0001F44D\U0001F3FD",
             "e\u0301", "a\u0308\u0323", "\u05d1\u05bc\u05b0", "\u0e01\u0e33", "\u1100\u1161\u11a8",
             "\u0915\u094d\u0937", "\ufb01", "\u200b", "\ufeff", "\u2060", "<|endoftext|>", "[MASK]",
             "[UNK]", "##", "<s>", "\u2581", "\u00ad", "\u180e"]
RANGES = [(0x20, 0x7E), (0x20, 0x7E), (0xA1, 0xFF), (0x100, 0x17F), (0x386, 0x3CE), (0x400, 0x45F),
          (0x5D0, 0x5EA), (0x621, 0x64A), (0x905, 0x939), (0xE01, 0xE30), (0x3041, 0x3096),
          (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0x20000, 0x2A6D6), (0xAC00, 0xD7A3),
          (0x1F300, 0x1F64F), (0x300, 0x345), (0x2010, 0x2027), (0x2030, 0x205E), (0x2200, 0x22FF),
          (0x1, 0x1F), (0x7F, 0xA0), (0x660, 0x669), (0x2160, 0x2188), (0xFF10, 0xFF19),
          (0xE000, 0xE00F)]


class Numbers:
    """Steele, Lea and Flood's SplitMix (2014)."""

    def __init__(self, state):
        self.state = state & MASK

    def below(self, end):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        return (z ^ z >> 31) % end


def atom(n):
    kind = n.below(10)
    if kind < 3:
        return (" " if n.below(2) else "") + WORDS[n.below(len(WORDS))]
    if kind == 3:
        return "".join(chr(97 + n.below(26)) for _ in range(1 + n.below(12)))
    if kind == 4:
        return SPACES[n.below(len(SPACES))] * (1 + n.below(3))
    if kind == 5:
        return CONTRACTIONS[n.below(len(CONTRACTIONS))]
    if kind == 6:
        return "".join(chr(48 + n.below(10)) for _ in range(1 + n.below(8)))
    if kind == 7:
        return SEQUENCES[n.below(len(SEQUENCES))]
    first, last = RANGES[n.below(len(RANGES))]
    return "".join(chr(first + n.below(last - first + 1)) for _ in range(1 + n.below(5)))


def chunk(seed, i):
    """About 2 kB."""
    n = Numbers(seed * 0x100000001B3 + i)
    return "".join(atom(n) for _ in range(400))
