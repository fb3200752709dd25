// A decorator that does not pass on a call fails silently, so every decorator of the program is
// compared with the functions of the class that it wraps.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "io/datasets/masked_tokens.h"
#include "io/datasets/views.h"
#include "tests/io/reader_files.h"

namespace concertina {
namespace {

/// A dataset that records which of its functions were called.
class Recorder final : public FileDataset {
 public:
  explicit Recorder(std::shared_ptr<const Dataset> inner) : inner_(std::move(inner)) {}

  std::span<const Field> fields() const override { return called("fields"), inner_->fields(); }
  std::int64_t vocabulary() const override { return called("vocabulary"), 256; }
  std::span<const std::string> classes() const override { return called("classes"), names_; }
  const Splits* splits() const override { return called("splits"), nullptr; }
  const QuestionAnswers* questions() const override { return called("questions"), nullptr; }
  std::uint64_t samples(Split split) const override {
    return called("samples"), inner_->samples(split);
  }
  std::uint64_t samples_of_epoch(std::uint64_t seed, std::uint64_t epoch) const override {
    return called("samples_of_epoch"), inner_->samples_of_epoch(seed, epoch);
  }
  std::int64_t targets_before(Split split, std::uint64_t sample) const override {
    return called("targets_before"), inner_->targets_before(split, sample);
  }
  void write(const SampleAt& at, std::span<const View> views) const override {
    called("write"), inner_->write(at, views);
  }
  bool repeats() const override { return called("repeats"), false; }
  std::uint64_t views() const override { return called("views"), 1; }
  const Corpus& corpus() const override { return called("corpus"), inner_->corpus(); }
  void verify(const std::function<void()>&) const override { called("verify"); }
  SplitContent content(Split, const std::function<void()>&) const override {
    return called("content"), SplitContent{};
  }
  std::string summary() const override { return called("summary"), "summary"; }
  std::vector<std::string> notes(std::uint64_t) const override { return called("notes"), names_; }

  mutable std::set<std::string> calls;

 private:
  void called(const char* name) const { calls.insert(name); }
  std::shared_ptr<const Dataset> inner_;
  std::vector<std::string> names_{"a", "b"};
};

/// Returns the names of a class's virtual functions; with `defaults`, only those that are not pure.
std::set<std::string> virtuals_of(const std::string& header, const std::string& name,
                                  bool defaults = false) {
  const std::string text = slurp(CONCERTINA_SOURCE "/" + header);
  const std::size_t begin = text.find("class " + name + " "), end = text.find("\n};", begin);
  EXPECT_NE(begin, std::string::npos) << name;
  const std::string body = text.substr(begin, end - begin);
  const std::regex declared(R"(virtual [^;{~]*?(\w+)\([^;{]*?\)( const)?( noexcept)?( = 0)?[;{ ])");
  std::set<std::string> names;
  for (std::sregex_iterator at(body.begin(), body.end(), declared), none; at != none; ++at)
    if (!defaults || !(*at)[4].matched) names.insert((*at)[1]);
  return names;
}

TEST(DatasetDecorators, EveryFunctionOfADatasetIsPure) {
  EXPECT_EQ(virtuals_of("io/datasets/dataset.h", "Dataset", true), std::set<std::string>{})
      << "a decorator would compile without it: the default belongs to FileDataset";
}

/// Every decorator passes on every call, except those that it answers itself.
TEST(DatasetDecorators, EveryCallReachesTheInnerDataset) {
  const Folder folder;
  const std::shared_ptr<const Dataset> plain =
      open_dataset({.files = {folder("a.txt", ramp(5000))}, .tokens_per_sample = 16});
  struct Around final : DatasetAround {
    using DatasetAround::DatasetAround;
  };
  const std::map<std::string, std::set<std::string>> own{
      {"around", {}}, {"views", {"repeats", "views"}}, {"masked", {"repeats", "classes"}}};
  for (const auto& [name, answers] : own) {
    const auto recorder = std::make_shared<const Recorder>(plain);
    std::shared_ptr<const Dataset> made = std::make_shared<const Around>(recorder);
    if (name == "views") made = with_views(recorder, 3);
    if (name == "masked") made = masked_tokens(recorder, nullptr);
    recorder->calls.clear();
    made->fields(), made->vocabulary(), made->classes(), made->splits(), made->questions();
    made->samples(Split::train), made->samples_of_epoch(1, 2);
    made->targets_before(Split::train, 1), sample_of(*made, {});
    made->repeats(), made->views(), made->corpus(), made->verify([] {});
    made->content(Split::train, [] {});
    EXPECT_EQ(made->summary(), "summary");
    EXPECT_EQ(made->notes(1), (std::vector<std::string>{"a", "b"}));
    for (const std::string& one : virtuals_of("io/datasets/dataset.h", "Dataset"))
      EXPECT_TRUE(answers.contains(one) || recorder->calls.contains(one))
          << name << " keeps " << one << "() to itself";
  }
}

/// The other decorators of the program override every function of the class that they wrap.
TEST(Decorators, ForgetNoVirtualFunction) {
  struct Pair {
    const char *header, *interface, *decorator;
    std::set<std::string> own;  // for which the interface's default is right
  };
  for (const auto& [header, interface, decorator, own] :
       {Pair{"core/backend.h", "Backend", "core/backend_around.h", {"records_passes", "repeat"}},
        {"core/kernel_clock.h", "KernelClock", "core/profile_backend.cc", {}},
        {"models/units/unit.h", "Unit", "models/units/rows_read.cc", {"result"}},
        {"parallel/comm/communicator.h",
         "Communicator",
         "parallel/comm/staged_communicator.cc",
         {"start_all_gather"}}}) {
    const std::string text = slurp(CONCERTINA_SOURCE "/" + std::string(decorator));
    for (const std::string& name : virtuals_of(header, interface))
      EXPECT_TRUE(own.contains(name) ||
                  std::regex_search(text, std::regex("\\b" + name + R"(\([^;{]*override)")))
          << decorator << " forgets " << name << "()";
  }
}

}  // namespace
}  // namespace concertina
