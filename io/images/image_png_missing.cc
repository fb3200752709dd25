#include "io/images/image_codec.h"

namespace concertina {

const ImageCodec& png_codec() {
  static constexpr ImageCodec kCodec{"libpng", "libpng-dev"};
  return kCodec;
}

}  // namespace concertina
