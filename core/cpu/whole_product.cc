#include "core/cpu/whole_product.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/cpu/product.h"

namespace concertina::cpu {
namespace {

using dnnl::memory;

memory::desc matrix(std::int64_t rows, std::int64_t columns, memory::format_tag tag) {
  return memory::desc({rows, columns}, memory::data_type::f32, tag);
}

/// C[m,n] (+)= A[m,k] B[k,n].
class WholeProduct {
 public:
  WholeProduct(const memory::desc& a, const memory::desc& b, const memory::desc& c, bool add) {
    dnnl::primitive_attr attributes;
    dnnl::post_ops post;
    if (add) post.append_sum(1.0F);
    attributes.set_post_ops(post);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), attributes,
                                                   engine());
    product_ = dnnl::matmul(description);
    a_ = memory(a, engine(), nullptr);
    b_ = memory(description.weights_desc(), engine(), nullptr);
    c_ = memory(c, engine(), nullptr);
  }

  std::size_t b_bytes() const { return b_.get_desc().get_size(); }

  void run(const void* a, const void* b, void* c) {
    a_.set_data_handle(const_cast<void*>(a));
    b_.set_data_handle(const_cast<void*>(b));
    c_.set_data_handle(c);
    product_.execute(stream_, {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}});
  }

 private:
  dnnl::matmul product_;
  memory a_, b_, c_;
  dnnl::stream stream_{engine()};
};

/// Sets oneDNN's number of threads for its lifetime, then back to one, as Team requires.
struct Threads {
  explicit Threads(int threads) { omp_set_num_threads(threads); }
  ~Threads() { omp_set_num_threads(1); }
};

class Whole final : public WholeProducts {
 public:
  Whole(const LinearShape& s, int threads) : threads_(threads), transposed_(s.transposed) {
    const Threads all(threads);
    using Tag = memory::format_tag;
    const auto x = [&](Tag tag) { return matrix(s.rows, s.in, tag); };
    const auto y = [&](Tag tag) { return matrix(s.rows, s.out, tag); };
    const std::int64_t m = transposed_ ? s.out : s.in, n = transposed_ ? s.in : s.out;
    forward_.emplace(x(Tag::ab), matrix(s.in, s.out, Tag::any), y(Tag::ab), false);
    input_.emplace(y(Tag::ab), matrix(s.out, s.in, Tag::any), x(Tag::ab), false);
    weight_.emplace(matrix(m, s.rows, Tag::ba), transposed_ ? x(Tag::ab) : y(Tag::ab),
                    matrix(m, n, Tag::ab), true);
    weights_.resize(std::max(forward_->b_bytes(), input_->b_bytes()) / sizeof(float), 0.01F);
  }

  void forward(View x, View y) override {
    const Threads all(threads_);
    forward_->run(x.f32(), weights_.data(), y.f32());
  }
  void backward_input(View dy, View dx) override {
    const Threads all(threads_);
    input_->run(dy.f32(), weights_.data(), dx.f32());
  }
  void backward_weight(View x, View dy, View dweight) override {
    const Threads all(threads_);
    weight_->run((transposed_ ? dy : x).f32(), (transposed_ ? x : dy).f32(), dweight.f32());
  }

 private:
  int threads_;
  bool transposed_;
  std::optional<WholeProduct> forward_, input_, weight_;
  std::vector<float> weights_;  // arbitrary: a product's time does not depend on its values
};

}  // namespace

std::unique_ptr<WholeProducts> make_whole_products(const LinearShape& shape, int threads) {
  if (shape.compute != DType::f32) return nullptr;
  return std::make_unique<Whole>(shape, threads);
}

}  // namespace concertina::cpu
