#include "io/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include <optional>

#include "core/bf16.h"
#include "core/error.h"
#include "io/strict_json.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMostHeader = 100'000'000;  // limit of the reference library
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48;
constexpr std::size_t kChunkElements = std::size_t{1} << 16;

struct StoredTypeName {
  StoredType type;
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<StoredTypeName, 10> kStoredTypes{{{StoredType::f64, "F64", 8},
                                                       {StoredType::f32, "F32", 4},
                                                       {StoredType::f16, "F16", 2},
                                                       {StoredType::bf16, "BF16", 2},
                                                       {StoredType::i64, "I64", 8},
                                                       {StoredType::i32, "I32", 4},
                                                       {StoredType::i16, "I16", 2},
                                                       {StoredType::i8, "I8", 1},
                                                       {StoredType::u8, "U8", 1},
                                                       {StoredType::boolean, "BOOL", 1}}};

const StoredTypeName& facts_of(StoredType type) {
  return *std::ranges::find(kStoredTypes, type, &StoredTypeName::type);
}

/// Converts binary16 (IEEE 754) exactly.
float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1FU, fraction = half & 0x3FFU;
  if (exponent == 0)  // zero and denormals: fraction x 2^-24
    return std::bit_cast<float>(
        sign | std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24F));
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

float float_of(const std::byte* bytes, StoredType type) {
  const auto bits = [&]<class T>(T value) {
    std::memcpy(&value, bytes, sizeof value);
    return value;
  };
  switch (type) {
    case StoredType::f64:
      return static_cast<float>(bits(double{}));
    case StoredType::f32:
      return bits(float{});
    case StoredType::f16:
      return half_to_float(bits(std::uint16_t{}));
    case StoredType::bf16:
      return to_float(Bf16{bits(std::uint16_t{})});
    default:
      return 0;
  }
  return 0;
}

/// Throws Error{bad_input} naming the tensor.
[[noreturn]] void refuse_tensor(const std::string& name, const std::string& what,
                                const std::string& path, const std::string& fix) {
  throw_input(fmt::format("the tensor '{}' {}", name.substr(0, 100), what), path, fix);
}

/// Returns the values of a list of non-negative integers, or nothing if `list` is anything else.
std::optional<std::vector<std::int64_t>> whole_numbers(const nlohmann::json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const nlohmann::json& one : list) {
    if (!one.is_number_unsigned() ||
        one.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      return std::nullopt;
    numbers.push_back(one.get<std::int64_t>());
  }
  return numbers;
}

/// One entry of the header, and where its bytes end. Offsets are relative to the header's end.
struct HeaderEntry {
  StoredTensor tensor;
  std::uint64_t end = 0;
};

HeaderEntry read_entry(const std::string& name, const nlohmann::json& value,
                       const std::string& path) {
  const std::string advice =
      "{\"dtype\": \"F32\", \"shape\": [...], \"data_offsets\": [begin, end]}";
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value["dtype"].is_string() || !value.contains("shape") || !value.contains("data_offsets"))
    refuse_tensor(name, "has an invalid description", path, advice);
  const auto& type_name = value["dtype"].get_ref<const std::string&>();
  const auto type = std::ranges::find(kStoredTypes, type_name, &StoredTypeName::name);
  if (type == kStoredTypes.end())
    refuse_tensor(name, fmt::format("has the unsupported type {}", type_name.substr(0, 20)), path,
                  "use F64, F32, F16 or BF16; integer tensors cannot be read");
  const auto shape = whole_numbers(value["shape"]), offsets = whole_numbers(value["data_offsets"]);
  if (!shape || !offsets || offsets->size() != 2)
    refuse_tensor(name, "has a shape or data_offsets that are not integers", path, advice);
  HeaderEntry entry;
  entry.tensor = {name, type->type, *shape, static_cast<std::uint64_t>((*offsets)[0])};
  entry.end = static_cast<std::uint64_t>((*offsets)[1]);
  std::uint64_t elements = 1;
  for (const std::int64_t size : *shape) {
    if (size > 0 && elements > kMostElements / static_cast<std::uint64_t>(size))
      refuse_tensor(name, "has more than 2^48 elements", path, "use a smaller tensor");
    elements *= static_cast<std::uint64_t>(size);
  }
  if (entry.end < entry.tensor.begin || entry.end - entry.tensor.begin != elements * type->bytes)
    refuse_tensor(name,
                  fmt::format("has data_offsets [{}, {}], but its shape needs {} bytes",
                              entry.tensor.begin, entry.end, elements * type->bytes),
                  path, "use an undamaged file");
  return entry;
}

void require_text_metadata(const nlohmann::json& metadata, const std::string& path) {
  if (metadata.is_null()) return;  // as in the reference library
  const bool texts = metadata.is_object() && std::ranges::all_of(metadata, [](const auto& value) {
                       return value.is_string();
                     });
  if (!texts) throw_input("__metadata__ has a non-text value", path, "{\"format\": \"pt\"}");
}

std::string read_header(const File& file) {
  const std::uint64_t size = file.size();
  std::uint64_t length = 0;
  if (size < sizeof length)
    throw_input(fmt::format("a file of {} bytes is not a safetensors file", size), file.path(),
                "check whether the file was truncated");
  file.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMostHeader || length > size - sizeof length)
    throw_input(fmt::format("the header should have {} bytes, but the file has {}", length, size),
                file.path(), "use a complete safetensors file with a header of at most 100 MB");
  std::string header(length, '\0');
  file.read_at(sizeof length, std::as_writable_bytes(std::span(header)));
  if (!header.starts_with('{'))
    throw_input("the header does not begin with '{'", file.path(), "use a safetensors file");
  return header;
}

}  // namespace

std::uint64_t StoredTensor::elements() const {
  std::uint64_t product = 1;
  for (const std::int64_t size : shape) product *= static_cast<std::uint64_t>(size);
  return product;
}

std::uint64_t StoredTensor::bytes() const {
  return elements() * facts_of(type).bytes;
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(path, File::Mode::read), header_(read_header(file_)) {
  const nlohmann::json header = parse_strict_object(header_, path);
  std::vector<HeaderEntry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__")
      require_text_metadata(value, path);
    else
      entries.push_back(read_entry(name, value, path));
  }
  std::ranges::stable_sort(entries, {}, [](const HeaderEntry& entry) {
    return std::pair(entry.tensor.begin, entry.end);
  });
  std::uint64_t end = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.tensor.begin != end)
      refuse_tensor(entry.tensor.name,
                    fmt::format("begins at byte {}, but the previous one ends at {}",
                                entry.tensor.begin, end),
                    path, "store tensors contiguously, without gaps");
    end = entry.end;
  }
  const std::uint64_t start = sizeof(std::uint64_t) + header_.size();
  if (end != file_.size() - start)
    throw_input(fmt::format("the tensors need {} bytes, but the file has {} for them", end,
                            file_.size() - start),
                path, "check whether the file was truncated");
  for (HeaderEntry& entry : entries) {
    entry.tensor.begin += start;
    const std::string name = entry.tensor.name;
    tensors_.emplace(name, std::move(entry.tensor));
  }
}

void SafetensorsFile::read(const StoredTensor& tensor, std::uint64_t first,
                           std::span<float> out) const {
  CONCERTINA_CHECK(first + out.size() <= tensor.elements(), "{} elements at {} are not in {}",
                   out.size(), first, tensor.name);
  if (!tensor.is_real())
    refuse_tensor(
        tensor.name,
        fmt::format("has type {}, expected a floating-point type", facts_of(tensor.type).name),
        path(), "use F64, F32, F16 or BF16");
  const std::uint64_t size = facts_of(tensor.type).bytes;
  if (tensor.type == StoredType::f32)
    return file_.read_at(tensor.begin + first * size, std::as_writable_bytes(out));
  std::vector<std::byte> chunk;
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t n = std::min(out.size() - done, kChunkElements);
    chunk.resize(n * size);
    file_.read_at(tensor.begin + (first + done) * size, chunk);
    for (std::size_t i = 0; i < n; ++i)
      out[done + i] = float_of(chunk.data() + i * size, tensor.type);
    done += n;
  }
}

namespace {

/// Formats the header as the reference library does: no spaces except for padding to 8 bytes.
std::string header_of(const std::vector<StoredTensor>& tensors) {
  std::string text = R"({"__metadata__":{"format":"pt"})";
  std::uint64_t at = 0;
  for (const StoredTensor& tensor : tensors) {
    const StoredTypeName& type = facts_of(tensor.type);
    const std::uint64_t end = at + tensor.bytes();
    text += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        nlohmann::json(tensor.name).dump(), type.name, fmt::join(tensor.shape, ","),
                        at, end);
    at = end;
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<StoredTensor> tensors)
    : tensors_(std::move(tensors)), file_(path, File::Mode::create) {
  std::ranges::sort(tensors_, {}, &StoredTensor::name);
  const std::string header = header_of(tensors_);
  end_ = sizeof(std::uint64_t) + header.size();
  for (const StoredTensor& tensor : tensors_) end_ += tensor.bytes();
  file_.reserve(end_);
  const std::uint64_t length = header.size();
  append_bytes(std::as_bytes(std::span(&length, 1)));
  append_bytes(std::as_bytes(std::span(header)));
  left_ = tensors_.empty() ? 0 : tensors_[0].elements();
}

void SafetensorsWriter::append_bytes(std::span<const std::byte> bytes) {
  file_.write_at(at_, bytes);
  at_ += bytes.size();
}

std::size_t SafetensorsWriter::append(std::span<const float> values) {
  std::vector<std::uint16_t> rounded_values;
  std::size_t taken = 0;
  while (taken < values.size()) {
    while (left_ == 0) {
      if (current_ + 1 >= tensors_.size()) return taken;
      left_ = tensors_[++current_].elements();
    }
    const auto part = values.subspan(taken, std::min<std::uint64_t>(left_, values.size() - taken));
    if (tensors_[current_].type == StoredType::f32) {
      append_bytes(std::as_bytes(part));
    } else {
      rounded_values.resize(part.size());
      std::ranges::transform(part, rounded_values.begin(),
                             [](float x) { return rounded<Bf16>(x).bits; });
      append_bytes(std::as_bytes(std::span(rounded_values)));
    }
    left_ -= part.size();
    taken += part.size();
  }
  return taken;
}

void SafetensorsWriter::finish() {
  CONCERTINA_CHECK(at_ == end_, "wrote {} of {} bytes of {}", at_, end_, file_.path());
  file_.truncate(end_);
  file_.sync();
  file_.close();
}

}  // namespace concertina
