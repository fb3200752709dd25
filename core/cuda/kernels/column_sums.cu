// Column sums of a gradient: the bias gradient of a linear map.
#include "core/cuda/kernels/column_sums.cuh"

namespace concertina::cuda {
namespace {

template <class T, int N>
struct Element {
  const T* x;
  Int columns;
  __device__ void operator()(Int row, Int column, float (&v)[1][N]) const {
    load(x + row * columns + column, v[0]);
  }
};

}  // namespace

void column_sums(cudaStream_t stream, View x, View sums, bool accumulate, void* scratch) {
  const auto columns = static_cast<Int>(sums.count);
  const Int rows = static_cast<Int>(x.count) / columns;
  with_access(x.dtype, columns, {x}, [&]<class T, int N>() {
    sum_columns<1, N>("column sums", stream, Element<T, N>{x.as<T>(), columns}, rows, columns,
                      ColumnResults<1>{{sums.f32()}}, accumulate, scratch);
  });
}

}  // namespace concertina::cuda
