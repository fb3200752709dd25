// Files in places where other users can write, or in another user's run: a file is read only if
// this user, or this run, wrote it; others are skipped with one warning that names them.
// Invariant: nothing hangs, and no number in a file determines how much memory is allocated.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <map>

#include "core/clock.h"
#include "core/log.h"
#include "io/checkpoint/part_hash.h"
#include "io/checkpoint/run_directory.h"
#include "io/checkpoint/snapshot_file.h"
#include "io/file_lock.h"
#include "io/log_lines.h"
#include "io/metrics.h"
#include "io/text_memory.h"
#include "tests/io/io_test.h"
#include "tests/io/refused_call.h"
#include "tests/own_figures.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kOther = 1502, kVictim = 1501;
constexpr const char* kKey = "6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b";

const bool kRoot = ::geteuid() == 0;

/// What may be at a path instead of the right file, whose content is `good`.
struct Kind {
  const char* name;
  std::function<void(const std::string& path, const std::string& good, Random& random)> make;
  bool needs_root = false;
  bool in_own_place = false;  // wrong only if others can write there
};

/// Returns what was logged: to stdout, since the test has not set up its log.
std::string captured() {
  log::flush();
  return testing::internal::GetCapturedStdout();
}

/// Returns the target of a link that replaces a file.
std::string target() {
  return fmt::format("/dev/shm/trust-target-{}", ::getpid());
}

/// Writes 1 TB of zeros (sparse), and `end`.
void make_huge(const std::string& path, const std::string& end) {
  spill(path, "");
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 40), 0);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(off_t{1} << 40) << end;
}

std::string repeated(const std::string& text) {
  std::string all;
  for (int i = 0; i < 200'000; ++i) all += text;
  return all;
}

void make_socket(const std::string& path) {
  const int s = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(s, reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << path;
  ::close(s);
}

std::vector<Kind> kinds() {
  std::vector<Kind> all{
      {"pipe", [](auto& path, auto&, auto&) { ::mkfifo(path.c_str(), 0600); }},
      {"pipe that all may write to",
       [](auto& path, auto&, auto&) { ::mkfifo(path.c_str(), 0666), ::chmod(path.c_str(), 0666); }},
      {"directory", [](auto& path, auto&, auto&) { fs::create_directory(path); }},
      {"socket", [](auto& path, auto&, auto&) { make_socket(path); }},
      {"link to /dev/zero",
       [](auto& path, auto&, auto&) { fs::create_symlink("/dev/zero", path); }},
      {"link to a pipe",
       [](auto& path, auto&, auto&) {
         ::mkfifo(target().c_str(), 0600), fs::create_symlink(target(), path);
       }},
      {"link to the right file",
       [](auto& path, auto& good, auto&) {
         spill(target(), good), fs::create_symlink(target(), path);
       }},
      {"link to itself", [](auto& path, auto&, auto&) { fs::create_symlink(path, path); }},
      {"device",
       [](auto& path, auto&, auto&) { ::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 5)); },
       true},
      {"1 TB of nothing", [](auto& path, auto&, auto&) { make_huge(path, ""); }},
      {"1 TB with the right end", [](auto& path, auto& good, auto&) { make_huge(path, good); }},
      {"deep lists", [](auto& path, auto&, auto&) { spill(path, repeated("[") + repeated("]")); }},
      {"deep objects", [](auto& path, auto&, auto&) {
         spill(path, repeated(R"({"a":)") + "1" + repeated("}") + "\n");
       }}};
  const auto add = [&](const char* name, uid_t owner, mode_t mode, const auto& change) {
    const auto make = [=](const std::string& path, const std::string& good, Random& random) {
      spill(path, change(good, random));
      ASSERT_EQ(owner == 0 ? 0 : ::lchown(path.c_str(), owner, owner), 0);
      ::chmod(path.c_str(), mode);
    };
    all.push_back({name, make, owner != 0, true});
  };
  const auto same = [](const std::string& good, Random&) { return good; };
  add("of another user", kOther, 0600, same);
  add("of another user, for all to write", kOther, 0666, same);
  add("for all to write", 0, 0666, same);
  add("for the group to write", 0, 0620, same);
  add("noise", 0, 0600, [](std::string noise, Random& random) {
    for (char& c : noise) c = static_cast<char>(random());
    return noise;
  });
  add("cut short", 0, 0600, [](const std::string& good, Random& random) {
    return good.substr(0, random() % good.size());
  });
  add("longer", 0, 0600, [](const std::string& good, Random& random) {
    return good + std::string(1 + random() % 5000, 'x');
  });
  return all;
}

/// A place that is read, and whether its content was accepted.
struct Read {
  const char* name;
  std::function<std::string(const std::string& path)> make;  // the right file; returns its content
  std::function<bool(const std::string& path)> believed;
  bool shared = true;      // others can write there
  bool checks_all = true;  // a hash covers each byte
};

SnapshotRun run_at(const std::string& path) {
  return {.prefix = path.substr(0, path.find('.')), .key = kKey, .directory = "/runs/a"};
}

void write_snapshot(const SnapshotRun& run, std::int64_t step, float value) {
  SnapshotFile file(run, 0);
  const std::vector<float> values(100, value);
  file.copy({.launch = 1, .rank = 0, .world = 1, .step = step}, {{"step", step}},
            std::vector<TensorPiece>{{"a", {100}, 0, 100, {{"weight", values.data()}}}});
  file.seal();
}

std::vector<Read> places() {
  return {
      {"snapshot",
       [](const std::string& path) {
         write_snapshot(run_at(path), 7, 1);
         return slurp(path);
       },
       [](const std::string& path) { return newest_snapshot_part(run_at(path)) != 0; }},
      {"run.key",
       [](const std::string& path) {
         fs::create_directory(fs::path(path).parent_path());
         spill(path, std::string(kKey) + "\n");
         ::chmod(path.c_str(), 0600);
         return slurp(path);
       },
       [](const std::string& path) { return !read_run_key(fs::path(path).parent_path()).empty(); },
       true, false},
      {"log", [](const std::string&) { return std::string("{\"step\":1}\n"); },
       [](const std::string& path) {
         std::uint64_t from = 0;
         bool any = false;
         each_log_object(path, from, [&](const nlohmann::json&, bool) { any = true; });
         return any;
       },
       false},
      {"result", [](const std::string&) { return std::string("{\"steps\":1}\n"); },
       [](const std::string& path) { return !read_log_json(path).is_null(); }, false}};
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

TEST(Trust, NothingIsBelievedThatThisUserDidNotWrite) {
  int tried = 0;
  Random random(1);
  const double start = now();
  const double before = peak_bytes();
  for (const Read& place : places())
    for (const Kind& kind : kinds())
      for (int turn = 0; turn < 3; ++turn) {
        if (kind.needs_root && !kRoot) continue;
        if (kind.in_own_place && !place.shared) continue;
        // Only hashes detect this; any 64 digits are a key.
        if (!place.checks_all && contains("longer cut short", kind.name)) continue;
        SCOPED_TRACE(fmt::format("{}: {}, {}", place.name, kind.name, turn));
        const std::string name = fmt::format("/dev/shm/concertina-trust{}x{}", ::getpid(), tried);
        const std::string path =
            name + (place.name == std::string("run.key") ? "/run.key" : ".0.0");
        const std::string good = place.make(path);
        std::error_code ignored;
        fs::remove(path, ignored);
        kind.make(path, good, random);
        testing::internal::CaptureStdout();
        EXPECT_FALSE(place.believed(path));
        EXPECT_FALSE(place.believed(path));
        const std::string said = captured();
        EXPECT_EQ(count_of(said, path + ": "), 1U) << said;
        fs::remove_all(path, ignored);
        fs::remove_all(target(), ignored);
        fs::remove_all(name, ignored);
        ++tried;
      }
  EXPECT_GE(tried, kRoot ? 180 : 130);
  EXPECT_LT(now() - start, 60);
  EXPECT_LT(peak_bytes() - before, 300e6);
}

/// Returns a snapshot file with another `key`, as an attacker who lacks the key could write it.
std::string forged(const SnapshotRun& run, const std::string& key) {
  SnapshotRun own = run;
  own.key = key;
  write_snapshot(own, 9, 666);
  return slurp(snapshot_path(run.prefix, 0, 0));
}

TEST(Trust, ASnapshotOfTheSameUserWithoutTheKeyIsSkipped) {
  const SnapshotRun run = run_at(fmt::format("/dev/shm/concertina-trustkey{}.", ::getpid()));
  for (const std::string& key : {std::string(), std::string(64, '0'), std::string(kKey) + "0"}) {
    const std::string file = forged(run, key);
    remove_snapshots(run.prefix);
    write_snapshot(run, 7, 1);
    const std::string other = snapshot_path(run.prefix, 0, 1);
    spill(other, file);
    ::chmod(other.c_str(), 0600);
    EXPECT_EQ(newest_snapshot_part(run), 7);
    // Without a key, nothing is accepted, not even what was made with an empty one.
    EXPECT_EQ(newest_snapshot_part({run.prefix, "", run.directory}), 0);
    remove_snapshots(run.prefix);
  }
}

TEST(Trust, AChangedDescriptionIsSkipped) {
  const SnapshotRun run = run_at(fmt::format("/dev/shm/concertina-trustbit{}.", ::getpid()));
  write_snapshot(run, 7, 1);
  const std::string path = snapshot_path(run.prefix, 0, 0), good = slurp(path);
  const std::size_t text = good.find("{\"directory\"");
  ASSERT_NE(text, good.npos);
  Random random(2);
  for (int turn = 0; turn < 200; ++turn) {
    std::string bad = good;
    bad[text + random() % (bad.size() - text)] ^= static_cast<char>(1 << random() % 8);
    spill(path, bad);
    ::chmod(path.c_str(), 0600);
    EXPECT_EQ(newest_snapshot_part(run), 0) << turn;
  }
  remove_snapshots(run.prefix);
}

// Another user owns the names that snapshots would have: his files are not read, removed or
// accepted.
TEST(Trust, NamesThatAnotherUserHasAreLeftToHim) {
  if (!kRoot) GTEST_SKIP() << "needs another user";
  const SnapshotRun run = run_at(fmt::format("/dev/shm/concertina-trustname{}.", ::getpid()));
  const std::string file = forged(run, kKey);
  remove_snapshots(run.prefix);
  for (const std::size_t generation : {0, 1}) {
    const std::string path = snapshot_path(run.prefix, 0, generation);
    spill(path, file);
    ASSERT_EQ(::chown(path.c_str(), kOther, kOther), 0);
  }
  const int code = in_child([&] {
    if (::setresgid(kVictim, kVictim, kVictim) != 0 || ::setresuid(kVictim, kVictim, kVictim) != 0)
      return 1;
    testing::internal::CaptureStdout();
    for (std::int64_t step = 1; step < 7; ++step) write_snapshot(run, step, 1);
    if (newest_snapshot_part(run) != 0) return 2;
    remove_snapshots(run.prefix);
    const std::string said = captured();
    for (const std::size_t generation : {0, 1})
      if (count_of(said, snapshot_path(run.prefix, 0, generation) + ": ") != 1) return 3;
    return 0;
  });
  EXPECT_EQ(code, 0);
  for (const std::size_t generation : {0, 1})
    EXPECT_EQ(slurp(snapshot_path(run.prefix, 0, generation)), file);
  remove_snapshots(run.prefix);
}

TEST(Trust, AKeyIsForItsOwnerAndMadeWhereThereIsNone) {
  const TemporaryDirectory root;
  const std::string path = root.path() + "/a/run.key";
  fs::create_directory(root.path() + "/a");  // kept, although no run starts in it
  { RunDirectory run(root.path(), "a"); }
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  const std::string key = slurp(path);
  EXPECT_EQ(key.size(), 65U);
  { RunDirectory run(root.path(), "a"); }
  EXPECT_EQ(slurp(path), key) << "it is kept";
  ::chmod(path.c_str(), 0644);  // others may have read it
  { RunDirectory run(root.path(), "a"); }
  EXPECT_NE(slurp(path), key);
  fs::remove(path);  // like a run of an older version
  { RunDirectory run(root.path(), "a"); }
  EXPECT_EQ(read_run_key(root.path() + "/a").size(), 64U);
}

TEST(Trust, ALockIsARegularFile) {
  const TemporaryDirectory root;
  Random random(3);
  for (const Kind& kind : kinds()) {
    if (kind.in_own_place || kind.needs_root || contains(kind.name, "TB") ||
        contains(kind.name, "deep"))
      continue;
    SCOPED_TRACE(kind.name);
    const std::string path = root.path() + "/" + std::to_string(random()) + ".lock";
    kind.make(path, "the right file", random);
    EXPECT_ERROR(FileLock(path, "this run", "wait"), path);
    if (fs::is_regular_file(target())) {
      EXPECT_EQ(slurp(target()), "the right file") << "the target of a link is not written to";
    }
    fs::remove(target());
  }
}

// A run's reads in its directory have a limit, so a file's claimed size is never allocated.
TEST(Trust, AnEndlessFileInARunDirectoryTakesNoMemory) {
  const TemporaryDirectory root;
  const std::string file = root.path() + "/file", text = root.path() + "/text";
  spill(text, "as it was");
  const double before = peak_bytes();
  for (const int bits : {33, 36, 40}) {
    spill(file, "");
    ASSERT_EQ(::truncate(file.c_str(), off_t{1} << bits), 0);
    EXPECT_EQ(remembered_sha256(Corpus({text}, ""), file, {}, false), sha256_hex("as it was"));
    EXPECT_ERROR(JsonLines(file, 1), file);
  }
  EXPECT_LT(peak_bytes() - before, 100e6);
}

TEST(Trust, LeftSnapshotsSayOfWhichDirectoryTheyAre) {
  const std::string id = fmt::format("{:032x}", ::getpid());
  const SnapshotRun run = run_at("/dev/shm/concertina-" + id + ".");
  write_snapshot(run, 7, 1);
  const SnapshotSet set = own_snapshot_sets().at(run.prefix);
  EXPECT_EQ(set.directory, "/runs/a");
  EXPECT_EQ(set.bytes, fs::file_size(snapshot_path(run.prefix, 0, 0)));
  remove_snapshots(run.prefix);
}

}  // namespace
}  // namespace concertina
