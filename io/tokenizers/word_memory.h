// A cache of the tokens of words, since words recur in texts.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "io/tokenizers/stages.h"

namespace concertina {

/// A direct-mapped cache: a word replaces the one in the same hash slot. Not thread-safe.
class WordMemory {
 public:
  /// Appends the tokens of `word` according to `model`.
  void encode(const WordModel& model, std::string_view word, std::vector<std::int32_t>& tokens);

 private:
  static constexpr std::size_t kPlaces = std::size_t{1} << 16;
  struct Word {
    std::array<char, 23> bytes{};
    std::uint8_t size = 0;  // 0: empty slot
    std::array<std::int32_t, 9> tokens{};
    std::int32_t count = 0;
  };
  std::vector<Word> words_ = std::vector<Word>(kPlaces);
};

/// A pool of caches that no thread is using.
class WordMemories {
 public:
  /// Returns the cache to the pool on destruction.
  class Lease {
   public:
    explicit Lease(WordMemories& all);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    WordMemory& operator*() const { return *memory_; }

   private:
    WordMemories& all_;
    std::unique_ptr<WordMemory> memory_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordMemory>> idle_;
};

}  // namespace concertina
