#include "parallel/comm/nccl_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "core/error.h"
#include "core/log.h"
#include "parallel/comm/nccl_lane.h"

namespace concertina {
namespace {

ncclConfig_t configuration() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

}  // namespace

NcclJob::NcclJob(Communicator& control, cuda::DeviceMemory& memory)
    : control_(control.split(0, control.rank())), memory_(memory) {
  const int size = control_->size();
  closes_ = size > 1;
  if (closes_) canary_ = control_->irecv(Bytes(&token_, 1), (rank() + 1) % size);
}

NcclJob::~NcclJob() {
  if (!closes_ || std::uncaught_exceptions() > 0) return;
  try {
    const int size = control_->size();
    const std::byte token{};
    control_->isend(ConstBytes(&token, 1), (rank() + size - 1) % size).wait();
    canary_.wait();
  } catch (const std::exception& error) {
    log::error("error while closing NCCL: {}", error.what());
  }
}

void NcclJob::check_ranks() {
  try {
    canary_.test();
  } catch (...) {
    closes_ = false;
    throw;
  }
}

void NcclJob::activate(NcclLane& lane) {
  if (std::find(active_.begin(), active_.end(), &lane) == active_.end()) active_.push_back(&lane);
  progress();
}

void NcclJob::progress() {
  std::erase_if(active_, [](NcclLane* lane) { return lane->advance(); });
}

void NcclJob::abort() {
  for (NcclHandle* handle : handles_) handle->abort();
}

NcclHandle::NcclHandle(NcclJob& job, ncclComm_t comm) : job_(job), comm_(comm) {
  job_.add(*this);
}

NcclHandle::NcclHandle(NcclJob& job, Communicator& control) : NcclHandle(job, nullptr) {
  ncclUniqueId id{};
  if (control.rank() == 0) check(nccl().get_unique_id(&id), "ncclGetUniqueId");
  control.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0).wait();
  ncclConfig_t config = configuration();
  check(nccl().comm_init(&comm_, control.size(), id, control.rank(), &config),
        "ncclCommInitRankConfig");
  settle("ncclCommInitRankConfig");
}

std::unique_ptr<NcclHandle> NcclHandle::split(NcclHandle& parent, int color, int key,
                                              int most_blocks) {
  ncclComm_t comm = nullptr;
  ncclConfig_t config = configuration();
  if (most_blocks > 0) config.maxCTAs = most_blocks;
  parent.check(
      nccl().comm_split(parent.comm_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &comm, &config),
      "ncclCommSplit");
  parent.settle("ncclCommSplit");
  if (color < 0) return nullptr;
  std::unique_ptr<NcclHandle> part(new NcclHandle(parent.job_, comm));
  part->settle("ncclCommSplit");
  return part;
}

NcclHandle::~NcclHandle() {
  job_.remove(*this);
  if (comm_ == nullptr) return;
  if (std::uncaught_exceptions() > 0)
    abort();
  else if (const ncclResult_t result = nccl().comm_destroy(comm_); result != ncclSuccess)
    log::error("ncclCommDestroy failed: {}", nccl().error_string(result));
}

void NcclHandle::abort() noexcept {
  if (comm_ != nullptr) (void)nccl().comm_abort(std::exchange(comm_, nullptr));
}

void NcclHandle::settle(const char* call) {
  job_.wait_for([&] { return settled([&] { return call; }); });
}

void NcclHandle::fail(ncclResult_t result, const std::string& what) const {
  job_.check_ranks();  // a failed rank is the more likely cause
  const char* last = nccl().last_error(comm_);
  throw_failure(
      fmt::format("NCCL failed: {}{}{}", nccl().error_string(result),
                  last == nullptr || *last == '\0' ? "" : ": ", last == nullptr ? "" : last),
      fmt::format("rank {}, {}", job_.rank(), what),
      "NCCL_DEBUG=WARN for details, or parallel.transport = \"host\" to avoid NCCL");
}

}  // namespace concertina
