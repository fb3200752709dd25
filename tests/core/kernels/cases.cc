#include "tests/core/kernels/cases.h"

#include <fmt/format.h>

#include <cstring>

namespace concertina {

KernelCase& CaseRound::push(const std::string& name, std::function<Outputs(Backend&)> run) {
  return cases.emplace_back(KernelCase{fmt::format("{} in {}", name, name_of(precision)),
                                       tolerance(compute()), std::move(run)});
}

void expect_close(const Outputs& got, const Outputs& expected, const KernelCase& kernel) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_LE(relative_error(got[i].values, expected[i].values, expected[i].scale),
              kernel.tolerance)
        << kernel.name << ": " << got[i].name;
}

void expect_same_bits(const Outputs& got, const Outputs& expected, const KernelCase& kernel) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].values.size(), expected[i].values.size());
    EXPECT_EQ(0, std::memcmp(got[i].values.data(), expected[i].values.data(),
                             got[i].values.size() * sizeof(float)))
        << kernel.name << ": " << got[i].name;
  }
}

std::vector<KernelCase> kernel_cases(unsigned seed, int rounds, const Precision& precision) {
  std::vector<KernelCase> cases;
  for (int number = 0; number < rounds; ++number) {
    CaseRound round{seed * 1000 + static_cast<unsigned>(number), number, precision, cases};
    add_product_cases(round);
    if (precision.products != Products::as_stored) continue;
    add_norm_cases(round);
    add_activation_cases(round);
    add_vocabulary_cases(round);
    add_token_row_cases(round);
    add_elementwise_cases(round);
    add_update_cases(round);
  }
  return cases;
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const KernelCase& one : kernel_cases(1, 1, DType::f32)) {
    const std::string name = one.name.substr(0, one.name.find(' '));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace concertina
