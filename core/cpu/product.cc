#include "core/cpu/product.h"

#include <array>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace concertina::cpu {
namespace {

using dnnl::memory;
// Converts an exception from oneDNN to an Error that describes the product.
[[noreturn]] void refuse(const ProductShape& s, const dnnl::error& error) {
  throw_failure(fmt::format("oneDNN does not support a product of {} x {} x {} in {}: {}", s.m, s.k,
                            s.n, name_of(s.type), error.what()),
                "CPU backend", "an installation of oneDNN >= 2.6 for this processor");
}

dnnl_memory_t set(memory& m, const void* data) {
  m.set_data_handle(const_cast<void*>(data));
  return m.get();
}

}  // namespace

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

bool may_use(dnnl::cpu_isa isa) {
  const auto wanted = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

bool has_packed_products() {
  const auto matrix = [](memory::format_tag tag) {
    return memory::desc({64, 64}, memory::data_type::f32, tag);
  };
  const dnnl::matmul::desc operation(matrix(memory::format_tag::ab),
                                     matrix(memory::format_tag::any),
                                     matrix(memory::format_tag::ab));
  const dnnl::matmul::primitive_desc description(operation, engine());
  return std::string_view(description.impl_info_str()).starts_with("brg");
}

bool has_bf16_products() {
  return may_use(dnnl::cpu_isa::avx512_core_bf16);
}

bool has_amx_products() {
  return may_use(dnnl::cpu_isa::avx512_core_amx);
}

Product::Product(const ProductShape& shape, Context& context, const memory::desc* packed)
    : context_(&context) {
  omp_set_num_threads(1);  // the blocking must not depend on the team
  ProductShape s = shape;
  const bool pack = s.b_row == 0;
  memory::data_type type = memory::data_type::f32;
  if (s.type == DType::bf16 && context.bf16_products) {
    type = memory::data_type::bf16;
  } else if (s.type == DType::bf16) {
    a_ = widen(s.m, s.k, s.a_row, s.a_column);
    if (!pack) b_ = widen(s.k, s.n, s.b_row, s.b_column);
  }
  const memory::desc a({s.m, s.k}, type, memory::dims{s.a_row, s.a_column});
  const memory::desc c({s.m, s.n}, memory::data_type::f32, memory::dims{s.c_row, 1});
  memory::desc b = pack ? memory::desc({s.k, s.n}, type, memory::format_tag::any)
                        : memory::desc({s.k, s.n}, type, memory::dims{s.b_row, s.b_column});
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
    context.workspace.need_product(a_.bytes() + b_.bytes() +
                                   description.scratchpad_desc().get_size());
    for (int t = 0; t < context.team.threads(); ++t)
      threads_.push_back({memory(a, engine(), nullptr), memory(b_desc_, engine(), nullptr),
                          memory(c, engine(), nullptr),
                          memory(description.scratchpad_desc(), engine(), nullptr),
                          dnnl::stream(engine())});
  } catch (const dnnl::error& error) {
    refuse(s, error);
  }
}

/// The copy is dense; `row` and `column` are set to its strides.
Product::Widened Product::widen(Int rows, Int columns, Int& row, Int& column) {
  Widened matrix{rows, columns, row};
  if (column != 1) matrix = {columns, rows, column};
  (column != 1 ? column : row) = matrix.length;
  return matrix;
}

const void* Product::widened(const Widened& matrix, const void* from, std::byte*& scratch) const {
  if (matrix.lines == 0) return from;
  const auto* line = static_cast<const Bf16*>(from);
  auto* copy = reinterpret_cast<float*>(std::exchange(scratch, scratch + matrix.bytes()));
  for (Int i = 0; i < matrix.lines; ++i)
    context_->loops.widen(line + i * matrix.stride, copy + i * matrix.length, matrix.length);
  return copy;
}

void Product::run(int thread, const void* a, const void* b, float* c) const {
  auto* scratch = static_cast<std::byte*>(context_->workspace.of_product(thread));
  a = widened(a_, a, scratch);
  b = widened(b_, b, scratch);
  Arguments& arguments = threads_[static_cast<std::size_t>(thread)];
  const std::array<dnnl_exec_arg_t, 4> list{{
      {DNNL_ARG_SRC, set(arguments.a, a)},
      {DNNL_ARG_WEIGHTS, set(arguments.b, b)},
      {DNNL_ARG_DST, set(arguments.c, c)},
      {DNNL_ARG_SCRATCHPAD, set(arguments.scratch, scratch)},
  }};
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), arguments.stream.get(), 4, list.data());
  CONCERTINA_CHECK(status == dnnl_success, "oneDNN product returned {}", static_cast<int>(status));
}

Packing::Packing(const memory::desc& from, const memory::desc& to, DType type,
                 const Context& context)
    : primitive_(dnnl::reorder::primitive_desc(engine(), from, engine(), to)),
      from_(from, engine(), nullptr),
      to_(to, engine(), nullptr),
      stream_(engine()),
      context_(&context) {
  if (type == DType::bf16 && !context.bf16_products)
    cut_ = static_cast<Int>(to.get_size() / sizeof(float));
}

void Packing::run(const void* from, void* to) {
  const std::array<dnnl_exec_arg_t, 2> list{
      {{DNNL_ARG_FROM, set(from_, from)}, {DNNL_ARG_TO, set(to_, to)}}};
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), stream_.get(), 2, list.data());
  CONCERTINA_CHECK(status == dnnl_success, "oneDNN reorder returned {}", static_cast<int>(status));
  context_->loops.cut(static_cast<float*>(to), cut_);
}

}  // namespace concertina::cpu
