// Follows a file of JSON lines that a run writes to.
// Invariant: a line is seen once, when it is whole; one that is no object is passed over.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace concertina {

class LineFollower {
 public:
  /// `path` may not be there yet.
  explicit LineFollower(std::string path) : path_(std::move(path)) {}

  /// Leaves out what is there now.
  void skip();
  /// The lines that are new.
  std::vector<nlohmann::json> look();

 private:
  std::string path_;
  std::uint64_t read_ = 0;  // bytes
};

}  // namespace concertina
