#include "parallel/comm/tensor_communicator.h"

#include "core/error.h"
#include "core/log.h"
#include "parallel/comm/nccl_communicator.h"
#include "parallel/comm/staged_communicator.h"

namespace concertina {

std::vector<std::string_view> transport_names() {
  return {"auto", "nccl", "host"};
}

std::unique_ptr<Communicator> tensor_communicator(Communicator& control, Memory& memory,
                                                  std::string_view transport) {
  const bool must = transport == "nccl";
  if (memory.on_host() && !must) return nullptr;
  if (transport == "host" || (control.size() == 1 && !must))
    return stage_through_host(control, memory);
  const std::string refusal = nccl_refusal(control, memory);
  if (refusal.empty()) return make_nccl_communicator(control, memory);
  if (must)
    throw_input("NCCL cannot pass the messages: " + refusal, "parallel.transport",
                "parallel.transport = \"auto\", or NCCL and a separate GPU for each rank");
  if (control.rank() == 0) log::info("messages pass through host memory: {}", refusal);
  return stage_through_host(control, memory);
}

}  // namespace concertina
