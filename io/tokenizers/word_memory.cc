#include "io/tokenizers/word_memory.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace concertina {

void WordMemory::encode(const WordModel& model, std::string_view word,
                        std::vector<std::int32_t>& tokens) {
  Word& place = words_[XXH3_64bits(word.data(), word.size()) % kPlaces];
  if (place.size == word.size() && std::memcmp(place.bytes.data(), word.data(), word.size()) == 0) {
    tokens.insert(tokens.end(), place.tokens.begin(), place.tokens.begin() + place.count);
    return;
  }
  const std::size_t before = tokens.size();
  model.encode(word, tokens);
  const std::size_t count = tokens.size() - before;
  if (word.size() > place.bytes.size() || count > place.tokens.size()) return;
  place.size = static_cast<std::uint8_t>(word.size());
  std::ranges::copy(word, place.bytes.begin());
  std::copy(tokens.end() - static_cast<std::ptrdiff_t>(count), tokens.end(), place.tokens.begin());
  place.count = static_cast<std::int32_t>(count);
}

WordMemories::Lease::Lease(WordMemories& all) : all_(all) {
  const std::lock_guard lock(all_.mutex_);
  if (!all_.idle_.empty()) {
    memory_ = std::move(all_.idle_.back());
    all_.idle_.pop_back();
  } else {
    memory_ = std::make_unique<WordMemory>();
  }
}

WordMemories::Lease::~Lease() {
  const std::lock_guard lock(all_.mutex_);
  all_.idle_.push_back(std::move(memory_));
}

}  // namespace concertina
