// The JSON form of checkpoint_format.h. Input is untrusted: the type and range of each number and
// the form of each text are checked before they are used.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "io/checkpoint/checkpoint_format.h"
#include "io/checkpoint/part_hash.h"
#include "io/sha256.h"
#include "io/strict_json.h"

namespace concertina {
namespace {

constexpr const char* kFormat = "concertina-checkpoint";
constexpr std::int64_t kVersion = 1;
constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 62;
constexpr int kDeepest = 64;  // maximum nesting depth

/// Whether `value` is an integer in [0, kMaxNumber].
bool is_size(const nlohmann::json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>() <= kMaxNumber;
  return value.is_number_integer() && value.get<std::int64_t>() >= 0;
}

/// An object in the document, with its location for errors.
class Reader {
 public:
  Reader(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object()) reject("not an object");
  }

  [[noreturn]] void reject(const std::string& what) const {
    throw_input("the checkpoint's manifest is invalid: " + what, where_,
                "use another checkpoint; this one is damaged or from another program");
  }

  const nlohmann::json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) reject(fmt::format("'{}' is missing", key));
    return *found;
  }

  std::uint64_t number(const char* key) const {
    return sound(key, is_size(at(key)), "number in [0, 2^62]").get<std::uint64_t>();
  }
  const std::string& text(const char* key) const {
    return sound(key, at(key).is_string(), "text").get_ref<const std::string&>();
  }
  const std::string& hash(const char* key) const {
    return sound(key, is_sha256_hex(text(key)), "SHA-256").get_ref<const std::string&>();
  }
  const std::string& part_hash(const char* key) const {
    return sound(key, is_part_hash(text(key)), "hash").get_ref<const std::string&>();
  }
  const nlohmann::json& list(const char* key) const {
    return sound(key, at(key).is_array(), "list");
  }

  Reader item(const nlohmann::json& value, const char* key, std::size_t index) const {
    return Reader(value, fmt::format("{}, {}[{}]", where_, key, index));
  }

  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& sound(const char* key, bool is_kind, const char* kind) const {
    if (!is_kind) reject(fmt::format("'{}' is not a {}", key, kind));
    return at(key);
  }

  const nlohmann::json& object_;
  std::string where_;
};

/// Calls `parse` for each object of the list.
template <class Parse>
auto parse_list(const Reader& reader, const char* key, Parse parse) {
  std::vector<decltype(parse(reader))> values;
  const nlohmann::json& list = reader.list(key);
  values.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    values.push_back(parse(reader.item(list[i], key, i)));
  return values;
}

StoredPart parse_part(const Reader& reader) {
  return {reader.text("name"), reader.number("at"), reader.part_hash("sha256")};
}

StoredPiece parse_piece(const Reader& reader) {
  StoredPiece piece;
  piece.tensor = reader.text("tensor");
  if (piece.tensor.empty()) reader.reject("a tensor has no name");
  for (const nlohmann::json& dim : reader.list("shape")) {
    if (!is_size(dim)) reader.reject("'shape' has an element that is not a size");
    piece.shape.push_back(dim.get<std::int64_t>());
  }
  element_count(piece.shape, reader.where());
  piece.offset = reader.number("offset");
  piece.count = reader.number("count");
  piece.parts = parse_list(reader, "parts", parse_part);
  return piece;
}

ShardRecord parse_shard(const Reader& reader) {
  return {reader.text("file"), reader.number("bytes"), reader.hash("skeleton_sha256"),
          parse_list(reader, "pieces", parse_piece)};
}

nlohmann::json to_json(const StoredPiece& piece) {
  nlohmann::json parts = nlohmann::json::array();
  for (const StoredPart& part : piece.parts)
    parts.push_back({{"name", part.name}, {"at", part.at}, {"sha256", part.sha256}});
  return {{"tensor", piece.tensor},
          {"shape", piece.shape},
          {"offset", piece.offset},
          {"count", piece.count},
          {"parts", std::move(parts)}};
}

}  // namespace

nlohmann::json to_json(const ShardRecord& record) {
  nlohmann::json pieces = nlohmann::json::array();
  for (const StoredPiece& piece : record.pieces) pieces.push_back(to_json(piece));
  return {{"file", record.file},
          {"bytes", record.bytes},
          {"skeleton_sha256", record.skeleton_sha256},
          {"pieces", std::move(pieces)}};
}

nlohmann::json to_json(const Manifest& manifest) {
  nlohmann::json shards = nlohmann::json::array();
  for (const ShardRecord& record : manifest.shards) shards.push_back(to_json(record));
  return {{"format", kFormat},
          {"version", kVersion},
          {"dtype", "float32"},
          {"step", manifest.step},
          {"metadata", manifest.metadata},
          {"view", {{"bytes", manifest.view.bytes}, {"sha256", manifest.view.sha256}}},
          {"shards", std::move(shards)}};
}

ShardRecord parse_shard_record(const nlohmann::json& record, const std::string& where) {
  return parse_shard(Reader(record, where));
}

Manifest parse_manifest(const std::string& text, const std::string& where) {
  const nlohmann::json document =
      nested_deeper(text, kDeepest) ? nlohmann::json() : parse_json(text);
  const Reader reader(document, where);
  if (reader.text("format") != kFormat) reader.reject("'format' is not " + std::string(kFormat));
  if (const auto version = reader.number("version"); version != kVersion)
    reader.reject(
        fmt::format("unsupported format version {}; this program reads {}", version, kVersion));
  if (reader.text("dtype") != "float32") reader.reject("'dtype' is not float32");
  const nlohmann::json& metadata = reader.at("metadata");
  if (!metadata.is_object() && !metadata.is_null()) reader.reject("'metadata' is not an object");
  const Reader view(reader.at("view"), where + ", view");
  return {static_cast<std::int64_t>(reader.number("step")),
          metadata,
          parse_list(reader, "shards", parse_shard),
          {view.number("bytes"), view.hash("sha256")}};
}

}  // namespace concertina
