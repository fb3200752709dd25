#include "io/images/image_codec.h"

namespace concertina {

const ImageCodec& jpeg_codec() {
  static constexpr ImageCodec kCodec{"libjpeg", "libjpeg62-turbo-dev"};
  return kCodec;
}

}  // namespace concertina
