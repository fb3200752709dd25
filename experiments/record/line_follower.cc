#include "experiments/record/line_follower.h"

#include <filesystem>
#include <fstream>

namespace concertina {

void LineFollower::skip() {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path_, error);
  read_ = error ? 0 : size;
}

std::vector<nlohmann::json> LineFollower::look() {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path_);
  file.seekg(static_cast<std::streamoff>(read_));
  for (std::string line; std::getline(file, line) && !file.eof();) {
    read_ += line.size() + 1;
    if (auto json = nlohmann::json::parse(line, nullptr, false); json.is_object())
      lines.push_back(std::move(json));
  }
  return lines;
}

}  // namespace concertina
