// After a power cut, a file system has all synced data, and any part of the rest. This test records
// the calls that write, sync, rename and delete, and checks their order.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <set>

#include "io/file.h"
#include "tests/io/checkpoint_fixture.h"

namespace concertina {
namespace {

/// Paths as last accessed, with the "dirty" files and directories that are not synced.
class Recorder {
 public:
  bool on = false;
  std::vector<std::string> faults;
  int renames = 0, syncs = 0, deletions = 0;
  int interrupts = 0;  // number of fsyncs that fail with EINTR

  void touched(const std::string& path) { dirty_.insert(path); }
  void synced(const std::string& path) {
    ++syncs;
    dirty_.erase(path);
  }
  /// The moved tree must be on disk before the name that makes it a commit.
  void renamed(const std::string& from, const std::string& to) {
    ++renames;
    if (to.find(".removed") == std::string::npos)
      for (const std::string& path : dirty_)
        if (path == from || path.starts_with(from + "/"))
          faults.push_back("renamed before a sync of " + path);
    dirty_.insert(parent(from));
    dirty_.insert(parent(to));
    pending_[parent(to)] = to;
  }
  /// Nothing may be deleted that a power cut could restore as an incomplete commit.
  void deleted(const std::string& path) {
    ++deletions;
    const std::string directory = parent(path);
    const std::string name = directory.substr(directory.find_last_of('/') + 1);
    if (name.starts_with("step-") && name.find('.') == std::string::npos)
      faults.push_back("deleted inside the commit " + path);
    if (dirty_.contains(parent(directory)) && pending_.contains(parent(directory)))
      faults.push_back("deleted " + path + " before a sync of the rename to " +
                       pending_[parent(directory)]);
    dirty_.erase(path);
  }
  bool dirty(const std::string& path) const { return dirty_.contains(path); }

  static std::string parent(const std::string& path) {
    return path.substr(0, path.find_last_of('/'));
  }

 private:
  std::set<std::string> dirty_;
  std::map<std::string, std::string> pending_;
};

Recorder recorder;

std::string path_of(int descriptor) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  return length < 0 ? "" : std::string(path, static_cast<std::size_t>(length));
}

std::string path_of(int directory, const char* name) {
  return *name == '/' || directory == AT_FDCWD ? name : path_of(directory) + "/" + name;
}

int count(long result) {
  return static_cast<int>(result);
}

}  // namespace
}  // namespace concertina

// These definitions in the program override the C library's.
extern "C" {

int open(const char* path, int flags, ...) {
  using namespace concertina;
  std::va_list rest;
  va_start(rest, flags);
  const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(rest, unsigned) : 0;
  va_end(rest);
  if (recorder.on && (flags & O_CREAT) != 0) recorder.touched(Recorder::parent(path));
  return count(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t write(int descriptor, const void* data, std::size_t bytes) {
  using namespace concertina;
  if (recorder.on) recorder.touched(path_of(descriptor));
  return ::syscall(SYS_write, descriptor, data, bytes);
}

ssize_t pwrite(int descriptor, const void* data, std::size_t bytes, off_t offset) {
  using namespace concertina;
  if (recorder.on) recorder.touched(path_of(descriptor));
  return ::syscall(SYS_pwrite64, descriptor, data, bytes, offset);
}

int fsync(int descriptor) {
  using namespace concertina;
  if (recorder.interrupts > 0) {
    --recorder.interrupts;
    errno = EINTR;
    return -1;
  }
  if (recorder.on) recorder.synced(path_of(descriptor));
  return count(::syscall(SYS_fsync, descriptor));
}

int rename(const char* from, const char* to) noexcept {
  using namespace concertina;
  if (recorder.on) recorder.renamed(from, to);
  return count(::syscall(SYS_rename, from, to));
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to,
              unsigned flags) noexcept {
  using namespace concertina;
  if (recorder.on) recorder.renamed(from, to);
  return count(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}

int unlinkat(int directory, const char* name, int flags) noexcept {
  using namespace concertina;
  const std::string path = path_of(directory, name);
  const int result = count(::syscall(SYS_unlinkat, directory, name, flags));
  if (recorder.on && result == 0 && (flags & AT_REMOVEDIR) == 0) recorder.deleted(path);
  return result;
}

int unlink(const char* path) noexcept {
  return unlinkat(AT_FDCWD, path, 0);
}
}

namespace concertina {
namespace {

class Durability : public CheckpointTest {
 protected:
  Durability() {
    recorder = {};
    recorder.on = true;
  }
  ~Durability() override { recorder.on = false; }

  static std::string faults() {
    std::string text;
    for (const std::string& fault : recorder.faults) text += fault + "\n";
    return text;
  }
};

TEST_F(Durability, ACommitIsOnDiskBeforeItHasItsName) {
  save_model(1);
  EXPECT_EQ(faults(), "");
  EXPECT_EQ(recorder.renames, 1);
  EXPECT_GE(recorder.syncs, 3 + 2 + 2) << "shards, manifest and its hash, both directories";
  EXPECT_FALSE(recorder.dirty(checkpoints())) << "the name itself may be lost";
}

// On network file systems, a signal can interrupt any call.
TEST_F(Durability, AnInterruptedSyncIsTriedAgain) {
  recorder.interrupts = 5;
  save_model(1);
  EXPECT_EQ(recorder.interrupts, 0);
  EXPECT_EQ(faults(), "");
  EXPECT_FALSE(recorder.dirty(checkpoints()));
}

TEST_F(Durability, SavingAStepAgainKeepsTheOldOneUntilTheNewOneIsSafe) {
  save_model(1);
  save_model(1);
  EXPECT_EQ(faults(), "");
  EXPECT_GT(recorder.deletions, 3);
  EXPECT_EQ(difference(checkpoints() + "/step-00000001", model_), "");
}

TEST_F(Durability, PruneNeverLeavesACommitWithHoles) {
  for (std::int64_t step = 1; step <= 4; ++step) save_model(step);
  prune(checkpoints(), 2);
  EXPECT_EQ(faults(), "");
  EXPECT_GT(recorder.deletions, 6);
  EXPECT_EQ(list_commits(checkpoints()).size(), 2U);
}

TEST_F(Durability, AReplacedFileIsSyncedBeforeAndAfter) {
  atomic_replace(path("config.toml"), "a = 1\n");
  EXPECT_EQ(faults(), "");
  EXPECT_EQ(recorder.renames, 1);
  EXPECT_FALSE(recorder.dirty(path("config.toml.tmp")));
  EXPECT_FALSE(recorder.dirty(root_.path()));
}

}  // namespace
}  // namespace concertina
