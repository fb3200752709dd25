#include "experiments/evaluate/logits_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/error.h"
#include "core/tensor.h"
#include "experiments/machine/gather.h"

namespace concertina {
namespace {

// Arrays in NumPy's .npy format, version 1.0, little-endian, in C order: a header of kNpyHeader
// bytes, then the elements.
inline constexpr std::uint64_t kNpyHeader = 256;

/// The header of an array of f32 or i32 with at most 8 dimensions.
std::string npy_header(DType type, std::span<const std::int64_t> shape) {
  CONCERTINA_CHECK(type == DType::f32 || type == DType::i32, "the array is neither f32 nor i32");
  CONCERTINA_CHECK(shape.size() <= 8, "{} extents", shape.size());
  std::string extents;
  for (const std::int64_t extent : shape) extents += fmt::format("{}, ", extent);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 type == DType::f32 ? "<f4" : "<i4", extents);
  constexpr std::size_t kBefore = 10;  // magic, version, length
  text.resize(kNpyHeader - kBefore - 1, ' ');
  constexpr std::size_t kLength = kNpyHeader - kBefore;
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(kLength & 0xff) +
         static_cast<char>(kLength >> 8) + text + "\n";
}

}  // namespace

LogitsFiles::LogitsFiles(Trainer& trainer, std::shared_ptr<const Dataset> dataset, Split split,
                         std::string directory)
    : trainer_(trainer),
      dataset_(std::move(dataset)),
      split_(split),
      directory_(std::move(directory)) {
  together(trainer_.world(), [&] {
    if (trainer_.world().rank() != 0) return;
    make_directories(directory_);
    File(path("logits"), File::Mode::open_or_create).truncate(0);
  });
  together(trainer_.world(), [&] { logits_ = File(path("logits"), File::Mode::open_or_create); });
}

SampleLogits LogitsFiles::see() {
  return [this](std::uint64_t sample, std::span<const float> logits) {
    logits_.write_at(kNpyHeader + sample * logits.size_bytes(), std::as_bytes(logits));
  };
}

void LogitsFiles::finish(std::int64_t samples) {
  together(trainer_.world(), [&] { logits_.close(); });
  together(trainer_.world(), [&] {
    if (trainer_.world().rank() != 0) return;
    write_logits_header(samples);
    for (const Field& field : fields_of(trainer_.job().model)) write_field(field, samples);
  });
}

void LogitsFiles::write_logits_header(std::int64_t samples) {
  const ModelSpec& model = trainer_.job().model;
  const std::vector<Field> fields = fields_of(model);
  const bool one_row = std::ranges::any_of(
      fields, [](const Field& field) { return field.name == "label" || field.name == "scores"; });
  File file(path("logits"), File::Mode::open_or_create);
  const auto all = static_cast<std::int64_t>((file.size() - kNpyHeader) / sizeof(float));
  std::vector<std::int64_t> shape{samples};
  if (!one_row) shape.push_back(model.tokens_per_sample);
  shape.push_back(all / samples / (one_row ? 1 : model.tokens_per_sample));
  const std::string header = npy_header(DType::f32, shape);
  file.write_at(0, std::as_bytes(std::span(header)));
}

void LogitsFiles::write_field(const Field& field, std::int64_t samples) {
  const auto count = static_cast<std::size_t>(field.elements());
  std::vector<std::byte> row(count * size_of(field.type));
  std::vector<View> views(dataset_->fields().size());
  views[static_cast<std::size_t>(field_index(*dataset_, field.name))] = {row.data(), count,
                                                                         field.type};
  std::vector<std::int64_t> shape{samples};
  shape.insert(shape.end(), field.shape.begin(), field.shape.end());
  File file(path(field.name), File::Mode::open_or_create);
  file.truncate(0);
  file.write(npy_header(field.type, shape));
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    dataset_->write({.split = split_, .sample = static_cast<std::uint64_t>(sample)}, views);
    file.write({reinterpret_cast<const char*>(row.data()), row.size()});
  }
}

}  // namespace concertina
