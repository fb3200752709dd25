// Decides whether a device uses cuDNN's attention. Separate from attention.cc, so that a program
// that needs only this decision does not link the kernels.
#include "core/cuda/backend.h"
#include "core/cuda/device.h"
#include "core/cuda/dnn/attention.h"
#include "core/cuda/operators.h"
#include "core/error.h"
#include "core/log.h"

namespace concertina::cuda {
namespace {

// The only generation whose plans have been tested: deterministic, within dnn_plan_scratch().
constexpr int kMajor = 9;

}  // namespace

std::string dnn_status() {
  return dnn_problem().empty() ? dnn_version_text() : dnn_problem();
}

std::string dnn_refusal(int index) {
  if (!dnn_problem().empty()) return dnn_problem();
  const std::optional<Device> device = find_device(index);
  if (!device) return fmt::format("there is no GPU {}", index);
  if (device->major == kMajor) return {};
  return fmt::format("GPU {} has compute capability {}.{}, not {}.x", index, device->major,
                     device->minor, kMajor);
}

void choose_attention(AttentionBy by, int device, Context& context) {
  if (by == AttentionBy::own) return;
  const std::string refusal = dnn_refusal(device);
  if (refusal.empty()) {
    // A failure here must not fall back to our kernels: other ranks would compute different bits.
    context.dnn = make_dnn_attentions(context.stream);
    context.attention = by;
    return;
  }
  if (by == AttentionBy::cudnn)
    throw_input("cuDNN's attention cannot be used: " + refusal, "numerics.attention",
                "numerics.attention = \"auto\", or a Hopper GPU and cuDNN in LD_LIBRARY_PATH");
  log::info("attention uses concertina's kernels: {}", refusal);
}

}  // namespace concertina::cuda
