#include "core/error.h"
#include "io/export/onnx_writer.h"

namespace concertina {

bool onnx_available() {
  return false;
}

OnnxFiles write_onnx(const Graph&, const TensorReader&, const std::string& path,
                     const OnnxOptions&) {
  throw_input("this program was built without libonnx", path,
              "the packages libonnx-dev and libprotobuf-dev, then a new `meson setup`");
}

}  // namespace concertina
