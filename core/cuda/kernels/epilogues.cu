// Kernels around linear maps' products: casts, biases and their gradients (GELU: activations.cu).
#include "core/cuda/kernels/column_sums.cuh"
#include "core/cuda/kernels/elements.cuh"
#include "core/cuda/kernels/kernels.h"

namespace concertina::cuda {
namespace {

template <class T>
struct Cast {
  static constexpr int kMost = 16 / sizeof(T);
  const float* x;
  T* y;
  template <int N>
  __device__ void operator()(Int i) const {
    float v[N];
    load(x + i, v);
    store(y + i, v);
  }
};

template <class T>
struct AddBias {
  static constexpr int kMost = 1;  // used for widths that products do not support
  const float* bias;
  T* y;
  Int columns;
  template <int N>
  __device__ void operator()(Int i) const {
    float v[1];
    load(y + i, v);
    v[0] += bias[i % columns];
    store(y + i, v);
  }
};

/// A term of a column sum.
template <class T, int N>
struct ColumnTerm {
  const T* x;
  Int columns;
  __device__ void operator()(Int row, Int column, float (&v)[1][N]) const {
    load(x + row * columns + column, v[0]);
  }
};

}  // namespace

void cast(cudaStream_t stream, View x, View y) {
  with_type(y.dtype, [&]<class T>() {
    over("cast", stream, static_cast<Int>(y.count), aligned({x, y}), Cast<T>{x.f32(), y.as<T>()});
  });
}

void add_bias(cudaStream_t stream, View bias, View y) {
  with_type(y.dtype, [&]<class T>() {
    over("add bias", stream, static_cast<Int>(y.count), false,
         AddBias<T>{bias.f32(), y.as<T>(), static_cast<Int>(bias.count)});
  });
}

void column_sums(cudaStream_t stream, View x, View sums, bool accumulate, void* scratch) {
  const auto columns = static_cast<Int>(sums.count);
  const Int rows = static_cast<Int>(x.count) / columns;
  with_access(x.dtype, columns, {x}, [&]<class T, int N>() {
    sum_columns<1, N>("column sums", stream, ColumnTerm<T, N>{x.as<T>(), columns}, rows, columns,
                      ColumnResults<1>{{sums.f32()}}, accumulate, scratch);
  });
}

}  // namespace concertina::cuda
