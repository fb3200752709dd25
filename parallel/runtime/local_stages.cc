#include "parallel/runtime/local_stages.h"

#include "core/error.h"

namespace concertina {

LocalStages::LocalStages(const Layout& layout, const RowMemory& memory,
                         const std::vector<Stage*>& stages, int microbatches, Transfers& transfers)
    : memory_(memory), transfers_(transfers), index_(stages.size(), -1) {
  const std::vector<StageInfo> infos = stage_infos(layout);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s] == nullptr) continue;
    index_[s] = static_cast<int>(stages_.size());
    LocalStage& one = stages_.emplace_back();
    one.id = static_cast<int>(s);
    one.info = infos[s];
    one.stage = stages[s];
    one.activations.resize(static_cast<std::size_t>(microbatches));
    boundary_bytes_ = one.stage->memory().boundary_bytes;
    boundary_type_ = one.stage->memory().activation;
  }
  CONCERTINA_CHECK(stages_.size() == memory_.stages.size(),
                   "a rank has {} stages, but its row has {}", stages_.size(),
                   memory_.stages.size());
}

std::size_t LocalStages::saved_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const StageMemory memory = stages_[i].stage->memory();
    bytes += static_cast<std::size_t>(memory_.stages[i].saved) * align_up(memory.saved_bytes) +
             static_cast<std::size_t>(memory_.stages[i].grads) * align_up(memory.grad_bytes);
  }
  return bytes;
}

std::size_t LocalStages::boundary_bytes() const {
  return static_cast<std::size_t>(memory_.boundaries()) * align_up(boundary_bytes_);
}

void LocalStages::attach(Arena& arena) {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const StageMemory memory = stages_[i].stage->memory();
    stages_[i].saved.attach(arena, memory_.stages[i].saved, memory.saved_bytes,
                            "saved activations");
    stages_[i].grads.attach(arena, memory_.stages[i].grads, memory.grad_bytes, "saved gradients");
  }
  inputs_.attach(arena, memory_.inputs, boundary_bytes_, "stage inputs");
  outputs_.attach(arena, memory_.outputs, boundary_bytes_, "stage outputs");
  output_grads_.attach(arena, memory_.output_grads, boundary_bytes_, "gradients of stage outputs");
  transfers_.attach(arena, memory_, boundary_bytes_);
}

RowMemory LocalStages::measured() const {
  RowMemory memory{{},
                   inputs_.peak(),
                   outputs_.peak(),
                   output_grads_.peak(),
                   transfers_.buffers(Kind::SEND_B).peak(),
                   transfers_.buffers(Kind::SEND_F).peak()};
  for (const LocalStage& one : stages_)
    memory.stages.push_back({one.id, one.saved.peak(), one.grads.peak()});
  return memory;
}

MemoryUse LocalStages::use() const {
  MemoryUse use;
  for (const LocalStage& one : stages_) {
    use.activations += one.saved.in_use();
    use.saved_bytes += one.saved.bytes_in_use() + one.grads.bytes_in_use();
  }
  for (const BufferPool* pool :
       {&inputs_, &outputs_, &output_grads_, &transfers_.buffers(Kind::SEND_B),
        &transfers_.buffers(Kind::SEND_F)})
    use.boundary_bytes += pool->bytes_in_use();
  return use;
}

MicrobatchIo LocalStages::io(const Action& action, const StepInput& input) {
  const LocalStage& stage = of(action.stage);
  const auto microbatch = static_cast<std::size_t>(action.microbatch);
  const Activations& at = stage.activations[microbatch];
  MicrobatchIo io;
  io.microbatch = action.microbatch;
  if (input.batch != nullptr) io.fields = input.batch->fields(action.microbatch);
  io.input = at.input;
  io.output = at.output;
  io.input_grad = at.input_grad;
  io.output_grad = at.output_grad;
  io.saved = at.saved;
  io.grads = at.grads;
  io.loss_scale = input.loss_scale;
  io.seed = input.seed;
  io.step = input.step;
  return io;
}

void LocalStages::begin(const Action& action) {
  if (action.kind == Kind::F) begin_forward(action);
  if (makes_input_gradient(action.kind)) begin_backward(action);
}

void LocalStages::end(const Action& action) {
  if (action.kind == Kind::F) end_forward(action);
  if (makes_weight_gradient(action.kind)) end_backward(action);
}

void LocalStages::begin_forward(const Action& action) {
  LocalStage& stage = of(action.stage);
  Activations& at = activations(action);
  if (stage.info.remote_previous)
    transfers_.wait({Kind::RECV_F, action.stage, action.microbatch}, at.receive_f);
  if (stage.info.sends_unanswered()) at.output = boundary(transfers_.take_buffer(Kind::SEND_F));
  if (stage.info.trains) at.saved = stage.saved.take();
  if (stage.info.receives_gradient) at.output = boundary(outputs_.take());
  if (!stage.info.last && !stage.info.remote_next)
    at.output = activations(stage.id + 1, action.microbatch).input = boundary(inputs_.take());
}

void LocalStages::end_forward(const Action& action) {
  const StageInfo& info = of(action.stage).info;
  if (info.first || info.keeps_input) return;
  View& input = activations(action).input;
  inputs_.give(input.data);
  input = {};
}

void LocalStages::begin_backward(const Action& action) {
  LocalStage& stage = of(action.stage);
  Activations& at = activations(action);
  if (stage.info.receives_gradient)
    transfers_.wait({Kind::RECV_B, action.stage, action.microbatch}, at.receive_b);
  if (action.kind == Kind::I) at.grads = stage.grads.take();
  if (!stage.info.gives_gradient) return;
  if (stage.info.sends_gradient) {
    at.input_grad = boundary(transfers_.take_buffer(Kind::SEND_B));
    return;
  }
  at.input_grad = boundary(output_grads_.take());
  activations(action.stage - 1, action.microbatch).output_grad = at.input_grad;
}

void LocalStages::end_backward(const Action& action) {
  LocalStage& stage = of(action.stage);
  Activations& at = activations(action);
  stage.saved.give(at.saved);
  if (action.kind == Kind::W) stage.grads.give(at.grads);
  if (stage.info.keeps_input) inputs_.give(at.input.data);
  if (!stage.info.last) output_grads_.give(at.output_grad.data);
  if (stage.info.remote_next) {
    transfers_.wait({Kind::SEND_F, action.stage, action.microbatch}, at.send_f);
    outputs_.give(at.output.data);
  }
  const View unsent = at.input_grad;  // SEND_B may still follow
  at = Activations{};
  at.input_grad = unsent;
}

void LocalStages::discard(const Action& forward) {
  LocalStage& stage = of(forward.stage);
  Activations& at = activations(forward);
  if (stage.info.sends_unanswered()) {
    transfers_.reclaim_oldest(Kind::SEND_F);
  } else if (stage.info.remote_next) {
    transfers_.wait({Kind::SEND_F, forward.stage, forward.microbatch}, at.send_f);
    outputs_.give(at.output.data);
  }
  if (stage.info.trains) stage.saved.give(at.saved);
  if (!stage.info.first) inputs_.give(at.input.data);
  at = Activations{};
}

void LocalStages::start_transfer(const Action& action) {
  Activations& at = activations(action);
  switch (action.kind) {
    case Kind::RECV_F:
      at.input = boundary(inputs_.take());
      return transfers_.start(action, at.input, at.receive_f);
    case Kind::RECV_B:
      at.output_grad = boundary(output_grads_.take());
      return transfers_.start(action, at.output_grad, at.receive_b);
    case Kind::SEND_F:
      if (of(action.stage).info.sends_unanswered()) return transfers_.post(action, at.output);
      return transfers_.start(action, at.output, at.send_f);
    default:
      transfers_.post(action, at.input_grad);
  }
}

}  // namespace concertina
