// data.format = "conll": a word and its class per line, an empty line after each sentence (Tjong
// Kim Sang and De Meulder 2003).
#include "io/labelled/tagged_words.h"

namespace concertina::dataset_makers {

DatasetFormat conll() {
  return {.make = tagged_words, .keys = {"data.test"}, .options = split_options()};
}

}  // namespace concertina::dataset_makers
