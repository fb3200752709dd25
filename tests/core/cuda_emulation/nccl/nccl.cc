// NCCL's functions for ranks that are threads, with non-blocking communicators only. As in NCCL, a
// call takes a while, and the communicator accepts no other call until then; the first message
// between two ranks is in progress until both have called; a group completes as a whole. NCCL does
// not compare sizes, but here a difference ends the test.
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <new>

#include "device.h"
#include "gpu.h"
#include "parallel/comm/nccl_library.h"
#include "parallel/comm/tensor_communicator.h"

namespace concertina::emulation {

struct Part {  // one end of a message
  ncclComm* comm;
  std::byte* data;
  std::size_t bytes;
  int peer;
  bool sends, done;
};

/// Messages from one rank to another in a communicator.
struct Channel {
  Fifo<Part*> sends, receives;  // with running kernels
  bool send_called = false, receive_called = false;
};

/// A communicator as seen by all its ranks.
struct Clique {
  struct Split {
    int joined = 0;
    std::map<int, std::pair<int, int>> wishes;  // rank -> color, key
    std::map<int, std::shared_ptr<Clique>> parts;
  };
  int size = 0, joined = 0, finalized = 0;
  bool broken = false;
  std::map<std::pair<int, int>, Channel> channels;
  std::array<Split, 256> splits;
  std::vector<int> devices;
};

struct Group final : Task {
  static constexpr int kMost = 96;
  std::array<Part, kMost> parts;
  int count = 0;
  bool over = false;
  void start() override;
  bool done() override;
};

}  // namespace concertina::emulation

using namespace concertina::emulation;

struct ncclComm {
  enum class Call { none, init, split, group, finalize } call = Call::none;
  std::shared_ptr<Clique> clique;
  int rank = 0, color = 0, key = 0, splits = 0, polls = 0;
  ncclComm* child = nullptr;  // of the split in progress
  ncclComm* parent = nullptr;
  Group* group = nullptr;
  cudaStream_t stream = nullptr;
  List<Group*> issued;  // in the stream or done
  bool finalized = false;
};

namespace concertina::emulation {

static Channel& channel(const Part& part) {
  const int me = part.comm->rank;
  return part.comm->clique
      ->channels[part.sends ? std::pair(me, part.peer) : std::pair(part.peer, me)];
}

void Group::start() {
  for (Part& part : std::span(parts).first(count))
    (part.sends ? channel(part).sends : channel(part).receives).push_back(&part);
}

bool Group::done() {
  bool all = true;
  for (Part& part : std::span(parts).first(count)) {
    Channel& way = channel(part);
    while (!way.sends.empty() && !way.receives.empty()) {
      Part &from = *way.sends.front(), &to = *way.receives.front();
      if (from.bytes != to.bytes) fail("sizes differ");
      std::memcpy(to.data, from.data, to.bytes);
      from.done = to.done = true;
      way.sends.pop_front();
      way.receives.pop_front();
    }
    all = all && part.done;
  }
  return over = all;
}

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;
std::map<std::uint64_t, std::shared_ptr<Clique>> cliques;
List<Group*> idle_groups;
thread_local ncclComm* group_comm = nullptr;
thread_local int depth = 0;

void begin(ncclComm* comm, ncclComm::Call call) {
  if (comm->call != ncclComm::Call::none) fail("a call while another one is in progress");
  comm->call = call;
  comm->polls = static_cast<int>(random_number() % 4);
}

/// Returns whether both ends of each message have been called, now or earlier.
bool connected(const Group& group) {
  for (const Part& part : std::span(group.parts).first(group.count))
    if (!channel(part).send_called || !channel(part).receive_called) return false;
  return true;
}

/// All ranks have joined: creates the parts, ordered by key and rank.
void finish_split(Clique::Split& split) {
  for (const auto& [rank, wish] : split.wishes) {
    if (wish.first < 0) continue;
    std::shared_ptr<Clique>& part = split.parts[wish.first];
    if (part == nullptr) part = std::make_shared<Clique>();
    ++part->size;
  }
}

int rank_in_part(const Clique::Split& split, const ncclComm& comm) {
  int rank = 0;
  for (const auto& [other, wish] : split.wishes)
    if (wish.first == comm.color && std::pair(wish.second, other) < std::pair(comm.key, comm.rank))
      ++rank;
  return rank;
}

bool over(ncclComm& comm) {
  Clique& clique = *comm.clique;
  switch (comm.call) {
    case ncclComm::Call::init:
      return clique.joined == clique.size;
    case ncclComm::Call::finalize:
      return clique.finalized == clique.size;
    case ncclComm::Call::split: {
      Clique::Split& split = clique.splits[static_cast<std::size_t>(comm.splits)];
      if (split.joined < clique.size) return false;
      if (split.parts.empty()) finish_split(split);
      if (comm.child != nullptr) {
        comm.child->clique = split.parts.at(comm.color);
        comm.child->rank = rank_in_part(split, comm);
        comm.child = nullptr;
      }
      ++comm.splits;
      return true;
    }
    case ncclComm::Call::group:
      if (!connected(*comm.group)) return false;
      enqueue(comm.stream, {Operation::Kind::task, nullptr, nullptr, 0, nullptr, 0, comm.group});
      comm.issued.push_back(comm.group);
      comm.group = nullptr;
      return true;
    default:
      return true;
  }
}

bool links_broken = false;

ncclResult_t comm_state(ncclComm* comm, ncclResult_t* state) {
  const Lock lock(device_lock());
  advance();
  *state = ncclSuccess;
  if (comm->clique == nullptr) return *state = ncclInProgress, ncclSuccess;  // parent not ready
  if (comm->clique->broken || links_broken) return *state = ncclRemoteError, ncclSuccess;
  if (comm->call != ncclComm::Call::none) {
    if (--comm->polls < 0 && over(*comm))
      comm->call = ncclComm::Call::none;
    else
      *state = ncclInProgress;
  }
  return ncclSuccess;
}

ncclResult_t get_unique_id(ncclUniqueId* id) {
  const Lock lock(device_lock());
  static std::uint64_t next = 0;
  ++next;
  std::memcpy(id, &next, sizeof next);
  cliques[next] = std::make_shared<Clique>();
  return ncclSuccess;
}

ncclResult_t comm_init(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                       ncclConfig_t* config) {
  const Lock lock(device_lock());
  if (config->blocking != 0) fail("a blocking communicator");
  std::uint64_t number = 0;
  std::memcpy(&number, &id, sizeof number);
  *comm = new ncclComm;
  (*comm)->clique = cliques.at(number);
  (*comm)->rank = rank;
  Clique& clique = *(*comm)->clique;
  clique.size = size;
  ++clique.joined;
  int device = 0;
  cudaGetDevice(&device);
  for (const int other : clique.devices)
    if (other == device) return ncclInvalidUsage;  // "Duplicate GPU detected"
  clique.devices.push_back(device);
  begin(*comm, ncclComm::Call::init);
  return ncclInProgress;
}

ncclResult_t comm_split(ncclComm_t comm, int color, int key, ncclComm_t* part,
                        ncclConfig_t* config) {
  const Lock lock(device_lock());
  if (config->blocking != 0) fail("a blocking communicator");
  begin(comm, ncclComm::Call::split);
  Clique::Split& split = comm->clique->splits.at(static_cast<std::size_t>(comm->splits));
  ++split.joined;
  split.wishes[comm->rank] = {color, key};
  comm->color = color;
  comm->key = key;
  *part = color < 0 ? nullptr : new ncclComm;
  comm->child = *part;
  return ncclInProgress;
}

ncclResult_t group_start() {
  if (++depth != 1) fail("a group in a group");
  group_comm = nullptr;
  return ncclSuccess;
}

Group* take_group(ncclComm& comm) {
  std::erase_if(comm.issued, [](Group* group) {
    if (group->over) idle_groups.push_back(group);
    return group->over;
  });
  if (idle_groups.empty()) idle_groups.push_back(new (std::malloc(sizeof(Group))) Group);
  Group* group = idle_groups.back();
  idle_groups.pop_back();
  group->count = 0;
  group->over = false;
  return group;
}

void add_part(ncclComm* comm, cudaStream_t stream, const Part& part) {
  if (depth != 1) fail("a message outside of a group");
  if (part.peer < 0 || part.peer >= comm->clique->size) fail("a peer that is not there");
  if (group_comm == nullptr) {
    begin(group_comm = comm, ncclComm::Call::group);
    comm->group = take_group(*comm);
    comm->stream = stream;
  }
  if (group_comm != comm || comm->stream != stream) fail("two communicators in a group");
  if (comm->group->count == Group::kMost) fail("too many messages in a group");
  comm->group->parts[static_cast<std::size_t>(comm->group->count++)] = part;
  Channel& way = channel(part);
  (part.sends ? way.send_called : way.receive_called) = true;
}

ncclResult_t group_end() {
  --depth;
  return group_comm == nullptr ? ncclSuccess : ncclInProgress;
}

ncclResult_t send(const void* data, std::size_t bytes, ncclDataType_t type, int peer,
                  ncclComm_t comm, cudaStream_t stream) {
  const Lock lock(device_lock());
  if (type != ncclInt8) fail("messages are bytes");
  add_part(comm, stream,
           {comm, static_cast<std::byte*>(const_cast<void*>(data)), bytes, peer, true, false});
  return ncclSuccess;
}

ncclResult_t receive(void* data, std::size_t bytes, ncclDataType_t type, int peer, ncclComm_t comm,
                     cudaStream_t stream) {
  const Lock lock(device_lock());
  if (type != ncclInt8) fail("messages are bytes");
  add_part(comm, stream, {comm, static_cast<std::byte*>(data), bytes, peer, false, false});
  return ncclSuccess;
}

ncclResult_t broadcast(const void* from, void* to, std::size_t bytes, ncclDataType_t type, int root,
                       ncclComm_t comm, cudaStream_t stream) {
  if (from != to) fail("a broadcast that is not in place");
  if (comm->rank != root) return receive(to, bytes, type, root, comm, stream);
  for (int r = 0; r < comm->clique->size; ++r)
    if (r != root) send(from, bytes, type, r, comm, stream);
  return ncclSuccess;
}

ncclResult_t comm_finalize(ncclComm_t comm) {
  const Lock lock(device_lock());
  begin(comm, ncclComm::Call::finalize);
  ++comm->clique->finalized;
  comm->finalized = true;
  return ncclInProgress;
}

void recycle(ncclComm_t comm) {
  for (Group* group : comm->issued) idle_groups.push_back(group);
  delete comm;
}

ncclResult_t comm_destroy(ncclComm_t comm) {
  const Lock lock(device_lock());
  if (!comm->finalized || comm->call != ncclComm::Call::none) fail("destroyed before finalized");
  recycle(comm);
  return ncclSuccess;
}

/// Ends its kernels; the other ranks notice.
ncclResult_t comm_abort(ncclComm_t comm) {
  const Lock lock(device_lock());
  if (comm->clique != nullptr) {
    comm->clique->broken = true;
    for (auto& [ways, way] : comm->clique->channels)
      for (Fifo<Part*>* ends : {&way.sends, &way.receives})
        std::erase_if(*ends, [&](const Part* part) { return part->comm == comm; });
  }
  for (const Group* group : comm->issued) withdraw(*group);
  recycle(comm);
  return ncclSuccess;
}

const char* error_string(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "emulated error";
}
const char* last_error(ncclComm_t) {
  return "";
}
ncclResult_t get_version(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

}  // namespace

void break_links(bool broken) {
  const Lock lock(device_lock());
  links_broken = broken;
}

}  // namespace concertina::emulation

namespace concertina {

std::string nccl_problem() {
  return {};
}

std::string nccl_status() {
  return "emulated";
}

const Nccl& nccl() {
  namespace e = emulation;
  static const Nccl functions{e::get_version,   e::get_unique_id, e::comm_init,   e::comm_split,
                              e::comm_finalize, e::comm_destroy,  e::comm_abort,  e::comm_state,
                              e::error_string,  e::last_error,    e::group_start, e::group_end,
                              e::send,          e::receive,       e::broadcast};
  return functions;
}

}  // namespace concertina
