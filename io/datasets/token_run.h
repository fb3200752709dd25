// Little-endian token files. The format is detected automatically:
//   "concertina token file 1"      written by `data prepare` (io/token_file.h)
//   PREFIX.bin with PREFIX.idx     Megatron-LM's indexed dataset (core/datasets/indexed_dataset.py)
//   magic 20240520 or 20240801     llm.c (dev/data/data_common.py): u16 or u32 after 1024 bytes
//   otherwise                      nanoGPT (data/*/prepare.py): numbers without a header: u16 if
//                                  the vocabulary has at most 65,536 tokens, else u32
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace concertina {

/// A range of tokens of one type in a file of the corpus.
struct TokenRun {
  std::string path;
  std::uint64_t offset = 0;           // bytes from the start of the file
  std::uint64_t bytes_before = 0;     // bytes of data before it in the corpus
  std::uint64_t first = 0, size = 0;  // tokens of the sequence
  int width = 2;                      // bytes per token
  bool is_signed = false;
  std::int64_t vocabulary = 0;  // 0: not specified by the file
  std::string tokenizer{};      // fingerprint; empty: not specified
  bool hashed = false;          // whether the file contains its hash
  bool parted = false;          // whether the file specifies where documents begin
};

/// Reads the header of the file of `bytes` bytes at `path`; leaves bytes_before and first at 0.
/// `vocabulary` is the model's. Throws Error{bad_input} naming the byte if the header or index is
/// inconsistent, or a file without a header seems to have another format or token width.
TokenRun read_token_run(const std::string& path, std::uint64_t bytes, std::int64_t vocabulary);
/// Appends to `bounds` the starts, in tokens, of a `parted` run's documents, except for the first
/// one, which `bounds` already ends with, and then the run's end.
void append_bounds(const TokenRun& run, std::vector<std::uint64_t>& bounds);
/// Returns the path of Megatron's index for `path`; empty if there is none.
std::string adjacent_index(const std::string& path);
/// Throws Error{bad_input} with the message `what` about byte `at` of a file.
[[noreturn]] void refuse_tokens(const std::string& what, const std::string& path, std::uint64_t at,
                                const std::string& fix = "use the unmodified original file");

}  // namespace concertina
