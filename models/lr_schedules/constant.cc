// The peak to the end; `min` has no say.
namespace concertina::lr_shapes {

double constant(double, double) {
  return 1;
}

}  // namespace concertina::lr_shapes
