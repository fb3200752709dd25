// Forward passes only, for a loss on held-out data.
#include "parallel/runtime/executor.h"

namespace concertina {

void Executor::evaluate(const StepInput& input, int count,
                        const std::function<void(int, View)>& see) {
  losses_.begin();
  // Microbatch by microbatch, stage by stage: this order is the same on every rank, so no two ranks
  // wait for each other.
  for (int microbatch = 0; microbatch < count; ++microbatch)
    for (const LocalStage& stage : stages_.all())
      if (microbatch >= stage.info.first_microbatch && microbatch < stage.info.last_microbatch)
        evaluate_one(stage, microbatch, input, see);
  losses_.read();
}

void Executor::evaluate_one(const LocalStage& stage, int microbatch, const StepInput& input,
                            const std::function<void(int, View)>& see) {
  const Action forward{Kind::F, stage.id, microbatch};
  if (watchdog_ != nullptr) watchdog_->at("evaluate", stage.id, microbatch);
  if (stage.info.remote_previous) stages_.start_transfer({Kind::RECV_F, stage.id, microbatch});
  stages_.begin(forward);
  MicrobatchIo io = stages_.io(forward, input);
  io.training = false;
  stage.stage->forward(io);
  if (stage.info.last) {
    losses_.keep(microbatch, stage.stage->row_loss(io));
    if (see) see(microbatch, stage.stage->logits(io));
  }
  if (stage.info.remote_next) stages_.start_transfer({Kind::SEND_F, stage.id, microbatch});
  stages_.discard(forward);
}

}  // namespace concertina
