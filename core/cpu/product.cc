#include "core/cpu/product.h"

#include <array>

#include "core/error.h"

namespace concertina::cpu {
namespace {

using dnnl::memory;

// oneDNN reports failures by exceptions of its own; ours say what was asked for.
[[noreturn]] void refuse(const ProductShape& s, const dnnl::error& error) {
  throw_failure(
      fmt::format("oneDNN refuses a product of {} x {} x {}: {}", s.m, s.k, s.n, error.what()),
      "CPU backend", "an installation of oneDNN >= 2.6 for this processor");
}

memory::desc strided(std::int64_t rows, std::int64_t columns, std::int64_t row,
                     std::int64_t column) {
  return {{rows, columns}, memory::data_type::f32, memory::dims{row, column}};
}

}  // namespace

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

Product::Product(const ProductShape& s, Workspace& workspace, int threads,
                 const memory::desc* packed)
    : workspace_(&workspace) {
  omp_set_num_threads(1);  // the blocking must not depend on the team
  const memory::desc a = strided(s.m, s.k, s.a_row, s.a_column);
  const memory::desc c = strided(s.m, s.n, s.c_row, 1);
  memory::desc b = s.b_row == 0
                       ? memory::desc({s.k, s.n}, memory::data_type::f32, memory::format_tag::any)
                       : strided(s.k, s.n, s.b_row, s.b_column);
  if (packed != nullptr) b = *packed;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops post;
    post.append_sum(1.0F);
    attributes.set_post_ops(post);
  }
  try {
    const dnnl::matmul::desc operation(a, b, c);
    const dnnl::matmul::primitive_desc description(operation, attributes, engine());
    primitive_ = dnnl::matmul(description);
    b_desc_ = description.weights_desc();
    workspace.need(description.scratchpad_desc().get_size());
    for (int t = 0; t < threads; ++t)
      threads_.push_back({memory(a, engine(), nullptr), memory(b_desc_, engine(), nullptr),
                          memory(c, engine(), nullptr),
                          memory(description.scratchpad_desc(), engine(), nullptr),
                          dnnl::stream(engine())});
  } catch (const dnnl::error& error) {
    refuse(s, error);
  }
}

void Product::run(int thread, const float* a, const void* b, float* c) {
  Arguments& arguments = threads_[static_cast<std::size_t>(thread)];
  const auto set = [](memory& m, const void* data) {
    m.set_data_handle(const_cast<void*>(data));
    return m.get();
  };
  const std::array<dnnl_exec_arg_t, 4> list{{
      {DNNL_ARG_SRC, set(arguments.a, a)},
      {DNNL_ARG_WEIGHTS, set(arguments.b, b)},
      {DNNL_ARG_DST, set(arguments.c, c)},
      {DNNL_ARG_SCRATCHPAD, set(arguments.scratch, workspace_->of(thread))},
  }};
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), arguments.stream.get(), 4, list.data());
  CONCERTINA_CHECK(status == dnnl_success, "oneDNN product returned {}", static_cast<int>(status));
}

}  // namespace concertina::cpu
