// A data format from outside io/: one file in plugins/ and one word in this folder's meson.build.
// It is found by name and read in epochs like the built-in ones.
#include <gtest/gtest.h>

#include <set>

#include "io/datasets/source.h"
#include "tests/buffer.h"
#include "tests/io/io_test.h"

namespace concertina {
namespace {

TEST(DatasetPlugin, StandsBesideTheBuiltIn) {
  EXPECT_EQ(names_of(dataset_formats()).front(), "text");
  EXPECT_EQ(names_of(dataset_formats()).back(), "letters");
  DataOptions options;
  options.format = "leters";
  EXPECT_ERROR(open_dataset(options), "letters");
}

TEST(DatasetPlugin, IsReadInEpochs) {
  const TemporaryDirectory root;
  spill(root.path() + "/a", "house");
  DataOptions options;
  options.format = "letters";
  options.files = {root.path() + "/a"};
  options.validation = 0.2;
  const auto dataset = open_dataset(options);
  TrainingSource source(dataset, 3, 4);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    const Buffer tokens(4, DType::i32), labels(4, DType::i32);
    source.load(epoch, 0, 4, std::array{tokens.view(), labels.view()});
    std::multiset<std::pair<std::int32_t, std::int32_t>> seen;
    for (int i = 0; i < 4; ++i) seen.emplace(tokens.view().i32()[i], labels.view().i32()[i]);
    EXPECT_EQ(seen, (std::multiset<std::pair<std::int32_t, std::int32_t>>{
                        {'h', 0}, {'o', 1}, {'u', 1}, {'s', 0}}));
  }
  options.options["vowels"] = "h";
  const Buffer label(1, DType::i32);
  open_dataset(options)->write({.split = Split::validation}, std::array{View{}, label.view()});
  EXPECT_EQ(label.view().i32()[0], 0);  // e
  EXPECT_EQ(std::get<std::string>(default_data_options().at("vowels")), "aeiou");
  ValidationSource held(dataset, 1);
  EXPECT_EQ(held.targets(), 1);
}

}  // namespace
}  // namespace concertina
