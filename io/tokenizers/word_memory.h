// The tokens of words that were met before: a text repeats its words.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "io/tokenizers/stages.h"

namespace concertina {

/// Words, each in the place that its hash has: a word that has the same place takes it. For one
/// thread at a time.
class WordMemory {
 public:
  /// Appends the tokens that `model` makes of `word`.
  void encode(const WordModel& model, std::string_view word, std::vector<std::int32_t>& tokens);

 private:
  static constexpr std::size_t kPlaces = std::size_t{1} << 16;
  struct Word {
    std::array<char, 23> bytes{};
    std::uint8_t size = 0;  // 0: none
    std::array<std::int32_t, 9> tokens{};
    std::int32_t count = 0;
  };
  std::vector<Word> words_ = std::vector<Word>(kPlaces);
};

/// Memories that no thread uses at the moment.
class WordMemories {
 public:
  /// Gives the memory back when it ends.
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
