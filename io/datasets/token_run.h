// Files of tokens, little-endian. What a file is follows from it:
//   "concertina token file 1"      ours, of `data prepare` (io/token_file.h)
//   PREFIX.bin beside PREFIX.idx   Megatron-LM's indexed dataset (core/datasets/indexed_dataset.py)
//   magic 20240520 or 20240801     llm.c (dev/data/data_common.py): u16 or u32 after 1024 bytes
//   all else                       nanoGPT (data/*/prepare.py): numbers without a header: u16 where
//                                  the vocabulary has at most 65,536 tokens, else u32
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace concertina {

/// Numbers of one kind in a file of the corpus.
struct TokenRun {
  std::string path;
  std::uint64_t offset = 0;           // in the file, bytes
  std::uint64_t bytes_before = 0;     // in the corpus, of the data
  std::uint64_t first = 0, size = 0;  // tokens of the sequence
  int width = 2;                      // bytes of a token
  bool is_signed = false;
  std::int64_t vocabulary = 0;  // 0: the file does not say
  std::string tokenizer{};      // its fingerprint; empty: likewise
  bool hashed = false;          // the file says its own hash
  bool parted = false;          // the file says where documents begin
};

/// Reads the header of the file at `path`, of `bytes`; bytes_before and first are 0. `vocabulary`
/// is the model's. Input errors, with the byte: a header or index that lies; a file without a
/// header that looks like another kind, or like tokens of another width.
TokenRun read_token_run(const std::string& path, std::uint64_t bytes, std::int64_t vocabulary);
/// Appends to `bounds` where the documents of a run that is parted begin, in its tokens; its first
/// stands there already, and its end is added.
void append_bounds(const TokenRun& run, std::vector<std::uint64_t>& bounds);
/// The path of Megatron's index of `path`; empty where there is none.
std::string index_beside(const std::string& path);
/// Throws the input error `what` about byte `at` of a file.
[[noreturn]] void refuse_tokens(const std::string& what, const std::string& path, std::uint64_t at,
                                const std::string& fix = "the file as its maker wrote it");

}  // namespace concertina
