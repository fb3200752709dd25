#include "io/datasets/dataset.h"

#include <algorithm>
#include <array>

#include "dataset_table.h"

namespace concertina {

namespace dataset_makers {
#define CONCERTINA_DECLARE(name, symbol) DatasetFormat symbol();
CONCERTINA_DATASETS(CONCERTINA_DECLARE)
#undef CONCERTINA_DECLARE
}  // namespace dataset_makers

std::span<const Entry<DatasetFormat>> dataset_formats() {
#define CONCERTINA_ENTRY(name, symbol) Entry<DatasetFormat>{name, dataset_makers::symbol()},
  static const std::array kFormats{CONCERTINA_DATASETS(CONCERTINA_ENTRY)};
#undef CONCERTINA_ENTRY
  return kFormats;
}

const DatasetFormat& find_format(const std::string& name) {
  return lookup(dataset_formats(), name, "data format", "data.format");
}

std::shared_ptr<const Dataset> open_dataset(const DataOptions& options) {
  return find_format(options.format).make(options);
}

int field_index(const Dataset& dataset, std::string_view name) {
  const std::span<const Field> fields = dataset.fields();
  const auto found =
      std::ranges::find_if(fields, [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? -1 : static_cast<int>(found - fields.begin());
}

}  // namespace concertina
