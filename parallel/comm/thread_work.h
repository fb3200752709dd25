// A transfer between threads: the ends of messages that one rank has posted for it.
// Invariants: the buffers are only touched while an end is queued in its channel, so a recycled
// Work has let go of them; reuse does not allocate.
#pragma once

#include <memory>
#include <string>

#include "parallel/comm/communicator.h"
#include "parallel/comm/thread_channel.h"
#include "parallel/comm/work_pool.h"

namespace concertina {

class ThreadWork final : public Work::State {
 public:
  /// Has room for `most` ends.
  ThreadWork(WorkPool<ThreadWork>& pool, ThreadGroup& group, int rank, std::size_t most)
      : pool_(pool), group_(group), rank_(rank), most_(most), ends_(new End[most]) {}

  /// Begins an operation of at most `ends` ends.
  void begin(const char* operation, std::size_t ends);
  void send(Channel& channel, ConstBytes data, int to);
  void receive(Channel& channel, Bytes data, int from);

  /// Throws if sizes differ, a rank has failed, or the peer has returned without the other end.
  bool test() override;
  void recycle() override;
  int waits_for() const override {
    return done_ < count_ ? group_.members[static_cast<std::size_t>(ends_[done_].peer)] : -1;
  }

 private:
  struct End {
    ChannelTransfer transfer;
    Channel* channel = nullptr;
    int peer = 0;
    const char* direction = "";
  };

  ChannelTransfer& add(Channel& channel, Bytes data, int peer, const char* direction);
  bool finished(End& end) const;
  [[noreturn]] void fail(const End& end, std::string why) const;

  WorkPool<ThreadWork>& pool_;
  ThreadGroup& group_;
  int rank_;
  std::size_t most_;
  std::unique_ptr<End[]> ends_;
  const char* operation_ = "";
  int count_ = 0, done_ = 0;  // ends posted; of these, in order, known to be done
};

}  // namespace concertina
