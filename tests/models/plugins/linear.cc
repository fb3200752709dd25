// A straight line from the peak down to `min`.
namespace concertina::lr_shapes {

double linear(double progress, double min) {
  return 1 - (1 - min) * progress;
}

}  // namespace concertina::lr_shapes
