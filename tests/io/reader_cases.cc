#include "tests/io/reader_cases.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "io/images/image_codec.h"
#include "io/images/tar_shard.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

const std::string kFolder = CONCERTINA_SOURCE "/tests/io/readers";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos
             ? ""
             : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

/// Reads the lines of one case file.
class CaseReader {
 public:
  CaseReader(const fs::path& path, std::vector<ReaderCase>& cases)
      : format_(path.stem()), name_(path.filename()), cases_(cases) {
    std::istringstream lines(slurp(path));
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      if (const std::string_view text = trimmed(line); !text.empty() && text[0] != '#') read(text);
    }
  }

 private:
  void read(std::string_view line) {
    if (line.starts_with("case ")) {
      base_ = cases_.size();
      begin(ReaderCase{.format = format_, .is_base = true}, line.substr(5));
    } else if (line.starts_with("also ")) {
      model_ = base_;
      begin(inherited(), line.substr(5));
    } else if (line.starts_with("refuse")) {
      const std::size_t model = model_;
      begin(inherited(), cases_[model].title);
      model_ = model;
      if (line.size() > 7) replace(0, line.substr(7));
    } else if (line[0] == '>') {
      cases_.back().expected.emplace_back(line.substr(2));
    } else if (line[0] == '!') {
      add_refusal(line.substr(2));
    } else if (line[0] == '"' || line[0] == '+') {
      cases_.back().files[file_].second += ' ';
      cases_.back().files[file_].second += line.substr(line[0] == '+' ? 1 : 0);
    } else {
      add_entry(line);
    }
  }
  void begin(ReaderCase one, std::string_view title) {
    model_ = cases_.size();
    one.title = title;
    one.place = fmt::format("{}:{}", name_, line_);
    cases_.push_back(std::move(one));
  }
  ReaderCase inherited() const {
    ReaderCase one = cases_[model_];
    one.is_base = false;
    one.expected.clear();
    one.refusals.clear();
    return one;
  }
  void add_refusal(std::string_view line) {
    std::vector<std::string>& parts = cases_.back().refusals.emplace_back();
    for (std::size_t at = 0; at != std::string_view::npos;) {
      at = line.find(" | ");
      parts.emplace_back(trimmed(line.substr(0, at)));
      if (at != std::string_view::npos) line.remove_prefix(at + 3);
    }
  }
  /// Adds "key = value", or "name: expression", which replaces the expression of that name.
  void add_entry(std::string_view line) {
    ReaderCase& one = cases_.back();
    const std::size_t equal = line.find(" = "), colon = line.find(": ");
    if (equal < colon) {
      one.keys[std::string(line.substr(0, equal))] = line.substr(equal + 3);
      return;
    }
    const std::string name(line.substr(0, colon));
    const auto found = std::ranges::find(one.files, name, &CaseFile::first);
    file_ = static_cast<std::size_t>(found - one.files.begin());
    if (found == one.files.end()) one.files.emplace_back(name, "");
    replace(file_, line.substr(std::min(line.size(), colon + 2)));
  }
  /// Replaces the bytes of a file; of("NAME") gives the previous bytes of NAME.
  void replace(std::size_t file, std::string_view expression) {
    std::vector<CaseFile>& files = cases_.back().files;
    std::string bytes(expression);
    for (const auto& [name, before] : files) {
      const std::string mention = fmt::format("of(\"{}\")", name);
      if (const std::size_t at = bytes.find(mention); at != std::string::npos)
        bytes.replace(at, mention.size(), before);
    }
    files[file].second = bytes;
  }

  std::string format_, name_;
  std::vector<ReaderCase>& cases_;
  std::size_t line_ = 0, base_ = 0, model_ = 0, file_ = 0;
};

bool can_read(const std::string& format) {
  const bool images = png_codec().available() && jpeg_codec().available();
  if (format == "webdataset") return images && has_libarchive();
  return format != "image-folder" || images;
}

std::vector<std::string> paths_of(const nlohmann::json& names, const Folder& folder) {
  std::vector<std::string> paths;
  for (const std::string name : names) paths.push_back(folder.path(name));
  return paths;
}

TargetKind kind_of(const std::string& name) {
  static const std::map<std::string, TargetKind> kKinds{{"label", TargetKind::label},
                                                        {"scores", TargetKind::scores},
                                                        {"labels", TargetKind::labels},
                                                        {"tags", TargetKind::tags}};
  return kKinds.at(name);
}

/// Returns `value` with the type of the option of this name.
OptionValue own_value(const std::string& name, const nlohmann::json& value) {
  return std::visit(
      [&](const auto& default_value) {
        return OptionValue(value.get<std::decay_t<decltype(default_value)>>());
      },
      default_data_options().at(name));
}

/// Returns a tokenizer from a file of the case, from tests/golden, "bytes", or null.
std::shared_ptr<const Tokenizer> tokenizer_of_case(const std::string& name, const Folder& folder) {
  if (name.empty()) return nullptr;
  const std::string beside = folder.path(name);
  const std::string golden = CONCERTINA_SOURCE "/tests/golden/tokenizers/" + name;
  return make_tokenizer(fs::exists(beside) ? beside
                        : name == "bytes"  ? name
                                           : golden,
                        "data.tokenizer");
}

void set_key(DataOptions& options, const std::string& key, const nlohmann::json& value,
             const Folder& folder) {
  using Set = std::function<void(const nlohmann::json&)>;
  const std::map<std::string, Set> common{
      {"format", [&](const auto& v) { options.format = v; }},
      {"files", [&](const auto& v) { options.files = paths_of(v, folder); }},
      {"validation_files", [&](const auto& v) { options.validation_files = paths_of(v, folder); }},
      {"test_files", [&](const auto& v) { options.test_files = paths_of(v, folder); }},
      {"tokenizer", [&](const auto& v) { options.tokenizer = tokenizer_of_case(v, folder); }},
      {"validation", [&](const auto& v) { options.validation = v; }},
      {"test", [&](const auto& v) { options.test = v; }},
      {"most_overlap", [&](const auto& v) { options.most_overlap = v; }},
      {"context", [&](const auto& v) { options.tokens_per_sample = v; }},
      {"labelled", [&](const auto& v) { options.labelled = v; }},
      {"documents", [&](const auto& v) { options.documents = v; }},
      {"class_names",
       [&](const auto& v) { options.class_names = v.template get<std::vector<std::string>>(); }},
      {"targets", [&](const std::string& v) { options.targets = kind_of(v); }},
      {"vocabulary", [&](const auto& v) { options.vocabulary = v; }}};
  if (const auto found = common.find(key); found != common.end())
    found->second(value);
  else
    options.options[key] = own_value(key, value);
}

/// Returns byte tokens and special tokens as text; other numbers as such, with "N*COUNT" for runs.
std::string text_of_ids(const std::vector<std::int32_t>& ids, bool is_text) {
  static const char* const kMarks[] = {"[CLS]", "[SEP]", "[MASK]", "[PAD]"};
  std::string text;
  for (std::size_t i = 0, run = 0; i < ids.size(); i += run) {
    const bool is_byte = is_text && ids[i] >= 0 && ids[i] < 256;
    for (run = 1; !is_byte && i + run < ids.size() && ids[i + run] == ids[i];) ++run;
    if (!is_text)
      text += fmt::format("{}{}", i == 0 ? "" : " ", ids[i]);
    else
      text += is_byte      ? escape_bytes(std::string(1, static_cast<char>(ids[i])))
              : ids[i] < 0 ? std::string("[-]")
                           : kMarks[ids[i] - 256];
    if (run > 1) text += fmt::format("*{}", run);
  }
  return text;
}

/// Returns whether tokens are bytes, or bytes and special tokens.
bool is_of_bytes(const Dataset& dataset) {
  return dataset.vocabulary() == 256 || dataset.vocabulary() == 260;
}

std::string field_text(const Dataset& dataset, const ReadSample& sample, const std::string& name) {
  if (sample.of.contains(name))
    return text_of_ids(sample.of.at(name),
                       is_of_bytes(dataset) && (name == "tokens" || name == "targets"));
  std::string text;
  for (std::size_t i = 0, run = 0; i < sample.image.size(); i += run) {
    for (run = 1; i + run < sample.image.size() && sample.image[i + run] == sample.image[i];) ++run;
    text += i == 0 ? "" : " ";
    text += sample.image[i] == kNoScore ? "none" : fmt::format("{}", sample.image[i]);
    if (run > 1) text += fmt::format("*{}", run);
  }
  return text;
}

Split split_of(const std::string& name) {
  return static_cast<Split>(std::ranges::find(kSplitNames, name) - std::begin(kSplitNames));
}

/// Returns the text of all samples of a split, in order.
std::string whole_text(const Dataset& dataset, Split split) {
  std::vector<std::int32_t> all;
  for (std::uint64_t i = 0; i < dataset.samples(split); ++i) {
    const ReadSample sample = sample_of(dataset, {.split = split, .sample = i});
    if (all.empty()) all.push_back(sample.of.at("tokens")[0]);
    for (const std::int32_t target : sample.of.at("targets"))
      if (target != kIgnored) all.push_back(target);
  }
  return text_of_ids(all, is_of_bytes(dataset));
}

std::string field_line(const Field& field) {
  return field.name + (field.shape.empty() ? "" : fmt::format("[{}]", fmt::join(field.shape, "x")));
}

std::string fields_text(const Dataset& dataset) {
  std::vector<std::string> all;
  for (const Field& field : dataset.fields()) all.push_back(field_line(field));
  return fmt::format("{}", fmt::join(all, " "));
}

}  // namespace

std::string ReaderCase::test_name() const {
  std::string name = place;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

std::vector<ReaderCase> reader_cases() {
  std::vector<ReaderCase> cases;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(kFolder))
    if (entry.path().extension() == ".cases") paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const fs::path& path : paths)
    if (can_read(path.stem())) CaseReader(path, cases);
  return cases;
}

ReaderCase reader_case(const std::string& title) {
  for (ReaderCase& one : reader_cases())
    if (one.title == title && one.refusals.empty()) return one;
  ADD_FAILURE() << "no case '" << title << "' in " << kFolder;
  return {};
}

DataOptions options_of(const ReaderCase& one, const Folder& folder) {
  DataOptions options{.format = one.format, .validation = 0};
  if (!one.files.empty()) options.files = {folder.path(one.files[0].first)};
  for (const auto& [key, value] : one.keys)
    set_key(options, key, nlohmann::json::parse(value), folder);
  return options;
}

CaseFolder::CaseFolder(const ReaderCase& one) {
  for (const auto& [name, bytes] : one.files) (*this)(name, bytes_of(bytes));
  options = options_of(one, *this);
}

std::string answer_of(const Dataset& dataset, const std::string& question) {
  std::istringstream words(question);
  std::string what, name;
  words >> what;
  const auto of_splits = [](const auto& count) {
    return fmt::format("{} {} {}", count(Split::train), count(Split::validation),
                       count(Split::test));
  };
  if (what == "samples") return of_splits([&](Split split) { return dataset.samples(split); });
  if (what == "targets") return of_splits([&](Split split) { return dataset.targets(split); });
  if (what == "vocabulary") return fmt::format("{}", dataset.vocabulary());
  if (what == "classes")
    return nlohmann::json(std::vector(dataset.classes().begin(), dataset.classes().end())).dump();
  if (what == "fields") return fields_text(dataset);
  if (what == "summary") return dataset.summary();
  if (what == "notes") return fmt::format("{}", fmt::join(dataset.notes(0), "\n"));
  SampleAt at{.split = split_of(what)};
  words >> name;
  if (name == "text") return whole_text(dataset, at.split);
  at.sample = std::stoull(name);
  words >> name;
  if (name == "most") words >> at.most >> name;
  return field_text(dataset, sample_of(dataset, at), name);
}

}  // namespace concertina
