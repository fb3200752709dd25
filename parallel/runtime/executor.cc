#include "parallel/runtime/executor.h"

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"

namespace concertina {
namespace {

Bytes bytes_of(View view) {
  return {static_cast<std::byte*>(view.data), view.bytes()};
}

/// For the watchdog, which keeps the pointer.
const char* name_of(Kind transfer) {
  switch (transfer) {
    case Kind::SEND_F:
      return "SEND_F";
    case Kind::RECV_F:
      return "RECV_F";
    case Kind::SEND_B:
      return "SEND_B";
    default:
      return "RECV_B";
  }
}

int unit_count(const Layout& layout) {
  int units = 0;
  for (const Pipeline& pipeline : layout.pipelines)
    units = std::max(units, pipeline.stages.back().last_unit);
  return units;
}

}  // namespace

void BufferPool::attach(Arena& arena, int count, std::size_t bytes, const char* name) {
  count_ = count;
  bytes_ = align_up(bytes);
  free_.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) free_.push_back(arena.take(bytes, name));
}

void* BufferPool::take() {
  CONCERTINA_CHECK(!free_.empty(), "all {} buffers of a pool are in use", count_);
  void* buffer = free_.back();
  free_.pop_back();
  peak_ = std::max(peak_, count_ - static_cast<int>(free_.size()));
  return buffer;
}

Executor::Executor(const Layout& layout, const Plan& plan, std::vector<Stage*> stages, int rank,
                   int microbatches)
    : layout_(layout),
      row_(plan.rows[static_cast<std::size_t>(rank)]),
      local_of_(stages.size(), -1),
      memory_(plan_memory(plan, layout)[static_cast<std::size_t>(rank)]),
      recorder_(row_),
      unit_clock_(unit_count(layout)),
      losses_(static_cast<std::size_t>(microbatches)) {
  const std::vector<StageInfo> infos = stage_infos(layout);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s] == nullptr) continue;
    local_of_[s] = static_cast<int>(locals_.size());
    Local& one = locals_.emplace_back();
    one.id = static_cast<int>(s);
    one.info = infos[s];
    one.stage = stages[s];
    one.stage->observe(&unit_clock_);
    one.states.resize(static_cast<std::size_t>(microbatches));
    boundary_bytes_ = one.stage->memory().boundary_bytes;
    boundary_type_ = one.stage->memory().activation;
  }
  CONCERTINA_CHECK(locals_.size() == memory_.stages.size(), "rank {} has {} stages, its row {}",
                   rank, locals_.size(), memory_.stages.size());
  for (Outbox* outbox : {&input_grads_, &frozen_outputs_}) outbox->sends.reserve(kSendBuffers);
}

std::size_t Executor::saved_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < locals_.size(); ++i) {
    const StageMemory memory = locals_[i].stage->memory();
    bytes += static_cast<std::size_t>(memory_.stages[i].saved) * align_up(memory.saved_bytes) +
             static_cast<std::size_t>(memory_.stages[i].grads) * align_up(memory.grad_bytes);
  }
  return bytes;
}

std::size_t Executor::boundary_bytes() const {
  const int count = memory_.boundaries();
  return static_cast<std::size_t>(count) * align_up(boundary_bytes_);
}

void Executor::attach(Arena& arena) {
  for (std::size_t i = 0; i < locals_.size(); ++i) {
    const StageMemory memory = locals_[i].stage->memory();
    locals_[i].saved.attach(arena, memory_.stages[i].saved, memory.saved_bytes,
                            "saved activations");
    locals_[i].grads.attach(arena, memory_.stages[i].grads, memory.grad_bytes, "saved gradients");
  }
  const auto pool = [&](BufferPool& buffers, int count, const char* name) {
    buffers.attach(arena, count, boundary_bytes_, name);
  };
  pool(inputs_, memory_.inputs, "stage inputs");
  pool(outputs_, memory_.outputs, "stage outputs");
  pool(output_grads_, memory_.output_grads, "gradients of stage outputs");
  pool(input_grads_.buffers, memory_.input_grads, "gradients of stage inputs");
  pool(frozen_outputs_.buffers, memory_.frozen_outputs, "outputs of frozen stages");
}

void Executor::connect(Communicator& world, GradientExchange& exchange, Watchdog* watchdog) {
  world_ = &world;
  exchange_ = &exchange;
  watchdog_ = watchdog;
  const auto transfers = static_cast<std::size_t>(memory_.boundaries());
  open_.reserve(transfers);
  world.reserve(transfers, 0);
}

RowMemory Executor::measured() const {
  RowMemory memory{{},
                   inputs_.peak(),
                   outputs_.peak(),
                   output_grads_.peak(),
                   input_grads_.buffers.peak(),
                   frozen_outputs_.buffers.peak()};
  for (std::size_t i = 0; i < locals_.size(); ++i)
    memory.stages.push_back(
        {memory_.stages[i].stage, locals_[i].saved.peak(), locals_[i].grads.peak()});
  return memory;
}

/// For the recorder, where something was taken or given back.
void Executor::note_memory() {
  if (!recorder_.detailed()) return;
  MemoryUse use;
  for (const Local& one : locals_) {
    use.activations += one.saved.in_use();
    use.saved_bytes += one.saved.bytes_in_use() + one.grads.bytes_in_use();
  }
  for (const BufferPool* pool :
       {&inputs_, &outputs_, &output_grads_, &input_grads_.buffers, &frozen_outputs_.buffers})
    use.boundary_bytes += pool->bytes_in_use();
  recorder_.memory(use);
}

Executor::Local& Executor::local(int stage) {
  return locals_[static_cast<std::size_t>(local_of_[static_cast<std::size_t>(stage)])];
}

MicrobatchIo Executor::io(const Local& stage, int microbatch, const StepInput& input) const {
  const State& at = stage.states[static_cast<std::size_t>(microbatch)];
  const auto part = [&](View all) {
    const std::size_t rows = all.count / losses_.size();
    return all.slice(static_cast<std::size_t>(microbatch) * rows, rows);
  };
  MicrobatchIo io;
  io.microbatch = microbatch;
  if (stage.info.first) io.tokens = part(input.tokens);
  if (stage.info.last) io.targets = part(input.targets);
  io.input = at.input;
  io.output = at.output;
  io.input_grad = at.input_grad;
  io.output_grad = at.output_grad;
  io.saved = at.saved;
  io.grads = at.grads;
  io.loss_scale = input.loss_scale;
  return io;
}

int Executor::peer_of(const Action& transfer) const {
  const bool next = transfer.kind == Kind::SEND_F || transfer.kind == Kind::RECV_B;
  return layout_.stage(transfer.stage + (next ? 1 : -1)).rank;
}

void Executor::wait(Work& work, WaitFor what, const Action& transfer) {
  const double start = now();  // a test may copy what has arrived
  const auto is_this = [&](const OpenTransfer& open) { return open.work == &work; };
  const bool open = std::erase_if(open_, is_this) > 0;
  if (!work.test()) {
    if (watchdog_ != nullptr)
      watchdog_->at(name_of(transfer.kind), transfer.stage, transfer.microbatch, peer_of(transfer));
    work.wait();
  }
  recorder_.waited(what, transfer, start);
  if (open) recorder_.completed(transfer);
}

void Executor::await_input(const Action& action) {
  if (local(action.stage).info.remote_previous)
    wait(state(action.stage, action.microbatch).receive_f, WaitFor::receive,
         {Kind::RECV_F, action.stage, action.microbatch});
}

void Executor::await_output_grad(const Action& action) {
  if (local(action.stage).info.receives_gradient)
    wait(state(action.stage, action.microbatch).receive_b, WaitFor::receive,
         {Kind::RECV_B, action.stage, action.microbatch});
}

void Executor::start_transfer(const Action& action) {
  State& at = state(action.stage, action.microbatch);
  const int peer = peer_of(action);
  switch (action.kind) {
    case Kind::RECV_F:
      at.input = boundary(inputs_);
      at.receive_f = world_->irecv(bytes_of(at.input), peer);
      return open_.push_back({&at.receive_f, action});
    case Kind::RECV_B:
      at.output_grad = boundary(output_grads_);
      at.receive_b = world_->irecv(bytes_of(at.output_grad), peer);
      return open_.push_back({&at.receive_b, action});
    case Kind::SEND_F:
      if (local(action.stage).info.sends_unanswered())
        return start_send(frozen_outputs_, at.output, action);
      at.send_f = world_->isend(bytes_of(at.output), peer);
      return open_.push_back({&at.send_f, action});
    default:
      start_send(input_grads_, at.input_grad, action);
  }
}

void Executor::start_send(Outbox& outbox, View message, const Action& action) {
  outbox.sends.push_back({world_->isend(bytes_of(message), peer_of(action)), message.data, action});
}

void Executor::start_forward(Local& stage, int microbatch) {
  State& at = stage.states[static_cast<std::size_t>(microbatch)];
  if (stage.info.trains) at.saved = stage.saved.take();
  if (stage.info.receives_gradient) at.output = boundary(outputs_);
  if (!stage.info.last && !stage.info.remote_next)
    at.output = state(stage.id + 1, microbatch).input = boundary(inputs_);
}

void Executor::end_forward(Local& stage, int microbatch) {
  if (stage.info.first || stage.info.keeps_input) return;
  State& at = stage.states[static_cast<std::size_t>(microbatch)];
  inputs_.give(at.input.data);
  at.input = {};
}

void Executor::start_backward(Local& stage, const Action& action) {
  State& at = state(action.stage, action.microbatch);
  if (action.kind == Kind::I) at.grads = stage.grads.take();
  if (!stage.info.gives_gradient) return;
  if (stage.info.sends_gradient) return take_send_buffer(input_grads_, at.input_grad);
  at.input_grad = boundary(output_grads_);
  state(action.stage - 1, action.microbatch).output_grad = at.input_grad;
}

void Executor::take_send_buffer(Outbox& outbox, View& message) {
  if (outbox.buffers.empty()) reclaim_oldest(outbox);
  message = boundary(outbox.buffers);
}

void Executor::reclaim_oldest(Outbox& outbox) {
  CONCERTINA_CHECK(!outbox.sends.empty(), "no send is under way");
  Sent& send = outbox.sends.front();
  wait(send.work, WaitFor::send, send.action);
  if (!send.over) recorder_.completed(send.action);
  outbox.buffers.give(send.buffer);
  outbox.sends.erase(outbox.sends.begin());
}

void Executor::end_backward(Local& stage, const Action& action) {
  State& at = state(action.stage, action.microbatch);
  stage.saved.give(at.saved);
  if (action.kind == Kind::W) stage.grads.give(at.grads);
  if (stage.info.keeps_input) inputs_.give(at.input.data);
  if (!stage.info.last) {
    output_grads_.give(at.output_grad.data);
    if (stage.info.remote_next) {
      wait(at.send_f, WaitFor::send, {Kind::SEND_F, action.stage, action.microbatch});
      outputs_.give(at.output.data);
    }
  }
  const View unsent = at.input_grad;  // SEND_B may still be to come
  at = State{};
  at.input_grad = unsent;
}

void Executor::progress() {
  std::erase_if(open_, [this](const OpenTransfer& open) {
    if (!open.work->test()) return false;
    recorder_.completed(open.action);
    return true;
  });
  for (Outbox* outbox : {&input_grads_, &frozen_outputs_})
    for (Sent& send : outbox->sends) {
      if (send.over || !send.work.test()) continue;
      send.over = true;
      recorder_.completed(send.action);
    }
}

/// Until `action` can start.
void Executor::await(const Action& action) {
  if (action.kind == Kind::F) {
    await_input(action);
    if (local(action.stage).info.sends_unanswered())
      take_send_buffer(frozen_outputs_, state(action.stage, action.microbatch).output);
  }
  if (action.kind == Kind::B || action.kind == Kind::I) {
    await_output_grad(action);
    start_backward(local(action.stage), action);
  }
  if (action.kind == Kind::STEP) {
    for (Outbox* outbox : {&input_grads_, &frozen_outputs_})
      while (!outbox->sends.empty()) reclaim_oldest(*outbox);
    if (watchdog_ != nullptr) watchdog_->at("REDUCE");
    const double start = now();
    exchange_->finish();
    recorder_.waited(WaitFor::reduction, action, start);
  }
}

Executor::Pass Executor::begin_pass(const Action& action, const StepInput& input) {
  Local& stage = local(action.stage);
  if (action.kind == Kind::F) start_forward(stage, action.microbatch);
  note_memory();
  return {action, &stage, io(stage, action.microbatch, input)};
}

/// The next unit; then what is under way between ranks.
void Executor::advance(Pass& pass) {
  const double start = unit_clock_.start();
  Stage& stage = *pass.stage->stage;
  const bool forward = pass.action.kind == Kind::F;
  const int unit = forward ? stage.first_unit() + pass.done : stage.last_unit() - 1 - pass.done;
  switch (pass.action.kind) {
    case Kind::F:
      stage.forward_unit(unit, pass.io);
      break;
    case Kind::B:
      stage.backward_unit(unit, pass.io, *exchange_);
      break;
    case Kind::I:
      stage.backward_input_unit(unit, pass.io);
      break;
    default:
      stage.backward_weight_unit(unit, pass.io, *exchange_);
  }
  recorder_.worked(now() - start);
  ++pass.done;
  progress();
  // Where gradients are made, the sink has done that.
  if (forward || pass.action.kind == Kind::I) exchange_->progress();
  pass.seconds += now() - start;
}

void Executor::end_pass(const Pass& pass) {
  const Action& action = pass.action;
  if (action.kind == Kind::F && pass.stage->info.last)
    losses_[static_cast<std::size_t>(action.microbatch)] = pass.stage->stage->loss(pass.io);
  if (action.kind == Kind::F) end_forward(*pass.stage, action.microbatch);
  if (action.kind == Kind::B || action.kind == Kind::W) end_backward(*pass.stage, action);
  note_memory();
}

void Executor::compute(std::size_t position, const StepInput& input) {
  Pass pass = begin_pass(row_[position], input);
  while (pass.done < pass.units()) advance(pass);
  end_pass(pass);
}

/// Units by turns, so that both passes end together.
void Executor::compute_pair(std::size_t position, const StepInput& input) {
  Pass first = begin_pass(row_[position], input), second = begin_pass(row_[position + 1], input);
  while (first.done < first.units() || second.done < second.units())
    advance(first.done * second.units() <= second.done * first.units() ? first : second);
  end_pass(first);
  end_pass(second);
  ActionTime &one = recorder_.time(position), &other = recorder_.time(position + 1);
  const double rest = now() - one.start - first.seconds - second.seconds;
  one.busy = first.seconds + rest / 2;
  other.busy = second.seconds + rest / 2;
}

void Executor::run(const StepInput& input) {
  std::fill(losses_.begin(), losses_.end(), 0.0);
  for (std::size_t i = 0; i < row_.size(); ++i) {
    const Action& action = row_[i];
    ActionTime& time = recorder_.time(i);
    await(action);
    if (action.overlapped) await(row_[i + 1]);
    if (watchdog_ != nullptr) watchdog_->at("compute", action.stage, action.microbatch);
    time.start = now();
    if (action.overlapped)
      compute_pair(i, input);
    else if (is_compute(action.kind))
      compute(i, input);
    else if (action.kind == Kind::STEP)
      update_();
    else if (action.kind == Kind::REDUCE)
      exchange_->progress();  // STEP waits for all of them
    else
      start_transfer(action), note_memory();
    time.end = now();
    if (!action.overlapped) {
      time.busy = time.end - time.start;
      continue;
    }
    ++i;
    recorder_.time(i).start = time.start;
    recorder_.time(i).end = time.end;
  }
  unit_clock_.end_step();
}

void Executor::evaluate(const StepInput& input, int count,
                        const std::function<void(int, View)>& see) {
  std::fill(losses_.begin(), losses_.end(), 0.0);
  // Microbatch by microbatch, stage by stage: the same order on every rank, so no rank waits for
  // one that waits for it.
  for (int microbatch = 0; microbatch < count; ++microbatch)
    for (Local& stage : locals_) {
      const Pipeline& pipeline =
          layout_.pipelines[static_cast<std::size_t>(layout_.pipeline_of(stage.id))];
      if (microbatch >= pipeline.first_microbatch && microbatch < pipeline.last_microbatch)
        evaluate_one(stage, microbatch, input, see);
    }
}

void Executor::evaluate_one(Local& stage, int microbatch, const StepInput& input,
                            const std::function<void(int, View)>& see) {
  State& at = stage.states[static_cast<std::size_t>(microbatch)];
  const int id = stage.id;
  if (watchdog_ != nullptr) watchdog_->at("evaluate", id, microbatch);
  if (stage.info.remote_previous) {
    start_transfer({Kind::RECV_F, id, microbatch});
    await_input({Kind::F, id, microbatch});
  }
  if (stage.info.sends_unanswered()) take_send_buffer(frozen_outputs_, at.output);
  start_forward(stage, microbatch);
  MicrobatchIo view = io(stage, microbatch, input);
  view.training = false;
  stage.stage->forward(view);
  if (stage.info.last) {
    losses_[static_cast<std::size_t>(microbatch)] = stage.stage->loss(view);
    if (see) see(microbatch, stage.stage->logits(view));
  }
  if (stage.info.remote_next) {
    start_transfer({Kind::SEND_F, id, microbatch});
    if (stage.info.trains) {
      wait(at.send_f, WaitFor::send, {Kind::SEND_F, id, microbatch});
      outputs_.give(at.output.data);
    } else {
      reclaim_oldest(frozen_outputs_);
    }
  }
  if (stage.info.trains) stage.saved.give(at.saved);
  if (!stage.info.first) inputs_.give(at.input.data);
  at = State{};
}

}  // namespace concertina
