#include "io/datasets/dataset.h"

#include <algorithm>

#include "core/tensor.h"
#include "dataset_table.h"
#include "io/datasets/split_files.h"
#include "io/sha256.h"

namespace concertina {

CONCERTINA_REGISTRY_IN(CONCERTINA_DATASETS, DatasetFormat, dataset_makers, dataset_formats)

const DatasetFormat& find_format(const std::string& name) {
  return lookup(dataset_formats(), name, "data format", "data.format");
}

OptionValues default_data_options() {
  OptionValues all;
  for (const Entry<DatasetFormat>& format : dataset_formats())
    all = with_defaults(format.value.options, std::move(all));
  return all;
}

const OptionValue& DataOptions::own_value(std::string_view name) const {
  static const OptionValues kDefaults = default_data_options();
  if (const auto set = options.find(name); set != options.end()) return set->second;
  const auto found = kDefaults.find(name);
  CONCERTINA_CHECK(found != kDefaults.end(), "unknown data format option {}", name);
  return found->second;
}

std::shared_ptr<const Dataset> open_dataset(const DataOptions& options) {
  return find_format(options.format).make(options);
}

SplitContent FileDataset::content(Split split, const std::function<void()>& progress) const {
  if (const Splits* const items = splits(); items != nullptr)
    if (const SplitContent& known = items->content[static_cast<std::size_t>(split)];
        !known.sha256.empty())
      return known;
  std::vector<std::vector<std::byte>> rows;
  std::vector<View> views;
  for (const Field& field : fields()) {
    rows.emplace_back(static_cast<std::size_t>(field.elements()) * size_of(field.type));
    views.push_back({rows.back().data(), static_cast<std::size_t>(field.elements()), field.type});
  }
  Sha256 hash;
  for (std::uint64_t sample = 0; sample < samples(split); ++sample) {
    write({.split = split, .sample = sample}, views);
    for (const std::vector<std::byte>& row : rows) hash.update(row);
    progress();
  }
  return {.sha256 = hash.hex()};
}

int field_index(const Dataset& dataset, std::string_view name) {
  const std::span<const Field> fields = dataset.fields();
  const auto found =
      std::ranges::find_if(fields, [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? -1 : static_cast<int>(found - fields.begin());
}

}  // namespace concertina
