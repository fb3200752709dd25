// data.format = "squad": SQuAD 1.1 (Rajpurkar et al., 2016), split into samples as in BERT's
// script: [CLS] question [SEP] text [SEP], with a window of the text every data.stride tokens. In a
// window without the whole answer, the target is [CLS].
//
// A text is split at white space and around ASCII punctuation into pieces that are tokenized
// separately (with a leading space if the text has one), so that a span of tokens is a span of
// text.

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "io/datasets/content_hash.h"
#include "io/datasets/sentences.h"
#include "io/datasets/split_files.h"
#include "io/labelled/questions.h"
#include "io/strict_json.h"
#include "io/tables/table.h"

namespace concertina::dataset_makers {
namespace {

using SquadJson = nlohmann::json;

constexpr std::size_t kQuestionTokens = 64;  // at most, as in BERT's script

/// `place` is the position in a file: "train.json: data[0].paragraphs[3]".
[[noreturn]] void refuse_squad(const std::string& what, const std::string& path,
                               const std::string& place) {
  throw_input(what, fmt::format("{}: {}", path, place), "use the SQuAD 1.1 layout");
}

struct SquadPassage {
  std::string text;
  std::vector<std::int32_t> tokens, piece;           // piece of each token
  std::vector<std::array<std::uint32_t, 2>> pieces;  // bytes [begin, end) of the text
};

struct SquadQuestion {
  std::size_t passage = 0;
  std::vector<std::int32_t> tokens;
  std::vector<std::string> answers;
  std::int32_t first = 0, last = 0;  // token range of the first answer in the passage
  std::uint64_t exact = 0;           // hash of the passage, the question and its answers
};

struct SquadWindow {
  std::size_t question = 0;
  std::int32_t begin = 0, size = 0;  // tokens of the passage
  std::uint64_t place = 0;           // index of the question in its split
};

/// Access to an object's members by name and type.
class SquadMembers {
 public:
  explicit SquadMembers(const std::string& path) : path_(path) {}

  const SquadJson& member(const SquadJson& object, const char* name, SquadJson::value_t type,
                          const std::string& place) const {
    if (!object.is_object()) refuse_squad("expected an object", path_, place);
    const auto found = object.find(name);
    if (found == object.end()) refuse_squad(fmt::format("'{}' is missing", name), path_, place);
    const bool whole = type == SquadJson::value_t::number_unsigned;
    if (whole ? !found->is_number_unsigned() : found->type() != type)
      refuse_squad(fmt::format("'{}' is {}, expected {}", name,
                               found->is_number() ? found->dump() : found->type_name(),
                               whole ? "a non-negative integer" : SquadJson(type).type_name()),
                   path_, place);
    return *found;
  }
  const SquadJson& list(const SquadJson& object, const char* name, const std::string& place) const {
    return member(object, name, SquadJson::value_t::array, place);
  }
  const std::string& text(const SquadJson& object, const char* name,
                          const std::string& place) const {
    return member(object, name, SquadJson::value_t::string, place).get_ref<const std::string&>();
  }

 private:
  const std::string& path_;
};

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_mark_of_text(char c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
         (c >= 123 && c <= 126);
}

/// Returns the byte offsets of the code points of a UTF-8 text, followed by its size.
std::vector<std::uint32_t> code_points(const std::string& text) {
  std::vector<std::uint32_t> starts;
  for (std::uint32_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) starts.push_back(i);
  starts.push_back(static_cast<std::uint32_t>(text.size()));
  return starts;
}

class SquadDataset final : public FileDataset, public QuestionAnswers {
 public:
  explicit SquadDataset(const DataOptions& options);

  std::span<const Field> fields() const override { return fields_; }
  std::int64_t vocabulary() const override { return encoder_.vocabulary(); }
  std::uint64_t samples(Split split) const override { return windows_.size(split); }
  std::int64_t targets_before(Split /*split*/, std::uint64_t sample) const override {
    return static_cast<std::int64_t>(sample);
  }
  bool repeats() const override { return true; }
  const Corpus& corpus() const override { return *files_.corpus; }
  std::string summary() const override {
    return split_summary(corpus(), windows_,
                         fmt::format("windows of {} questions", questions_.size()));
  }
  const Splits* splits() const override { return &asked_; }
  const QuestionAnswers* questions() const override { return this; }
  void verify(const std::function<void()>&) const override {}  // everything is read on opening
  void write(const SampleAt& at, std::span<const View> views) const override;

  std::uint64_t questions(Split split) const override { return asked_.size(split); }
  std::uint64_t question(Split split, std::uint64_t sample) const override {
    return window(split, sample).place;
  }
  std::span<const std::string> answers(Split split, std::uint64_t question) const override {
    return questions_[asked_.item(split, question)].answers;
  }
  std::string text(Split split, std::uint64_t sample, std::int32_t start,
                   std::int32_t end) const override;

 private:
  void read_json(const std::string& path);
  void read_passage(const SquadMembers& members, const SquadJson& json, const std::string& path,
                    const std::string& place);
  void read_question(const SquadMembers& members, const SquadJson& json, const std::string& path,
                     const std::string& place, const std::vector<std::uint32_t>& starts);
  void encode_passage(SquadPassage& passage) const;
  void place_answer(SquadQuestion& question, std::uint32_t begin, std::uint32_t end) const;
  Splits split_questions(const DataOptions& options,
                         const std::array<std::uint64_t, 3>& counts) const;
  void cut_windows(std::size_t question, std::uint64_t place);
  const SquadWindow& window(Split split, std::uint64_t sample) const {
    return cut_[windows_.item(split, sample)];
  }
  bool is_best_window(std::size_t index, std::int32_t token) const;
  /// Returns how many tokens of a sample precede the text.
  std::int32_t tokens_before(const SquadQuestion& question) const {
    return static_cast<std::int32_t>(std::ssize(question.tokens) + encoder_.marks_before(true));
  }

  SplitFiles files_;
  SentenceEncoder encoder_;
  std::int64_t room_, stride_;
  std::vector<SquadPassage> passages_;
  std::vector<SquadQuestion> questions_;
  std::vector<SquadWindow> cut_;  // windows of the questions of each split, in order
  Splits asked_, windows_;        // of questions, of windows
  std::vector<Field> fields_;
};

SquadDataset::SquadDataset(const DataOptions& options)
    : files_(split_files(options)),
      encoder_(options.tokenizer),
      room_(options.tokens_per_sample),
      stride_(options.own<std::int64_t>("stride")),
      fields_{tokens_field(room_), types_field(room_), lengths_field(), start_field(),
              end_field()} {
  asked_ =
      split_questions(options, files_.read([this](const std::string& path) { read_json(path); },
                                           [this] { return questions_.size(); }));
  for (std::size_t split = 0; split < 3; ++split) {
    const std::size_t before = cut_.size();
    for (std::uint64_t i = 0; i < asked_.sizes[split]; ++i)
      cut_windows(asked_.item(static_cast<Split>(split), i), i);
    windows_.sizes[split] = cut_.size() - before;
  }
}

/// Questions about the same text are in the same split.
Splits SquadDataset::split_questions(const DataOptions& options,
                                     const std::array<std::uint64_t, 3>& counts) const {
  std::vector<std::uint64_t> contents;
  for (const SquadPassage& passage : passages_) contents.push_back(folded_hash(passage.text));
  std::vector<ItemKey> keys;
  for (const SquadQuestion& question : questions_)
    keys.push_back({contents[question.passage], 0, question.exact});
  return split_items(
      options, counts,
      {.keys = keys,
       .words = {.item = "question", .overlaps = "on a text that is also in the training data"}});
}

void SquadDataset::read_json(const std::string& path) {
  const SquadMembers members(path);
  const SquadJson json = parse_strict_object(read_text_file(path), path);
  const SquadJson& articles = members.list(json, "data", "the JSON");
  for (std::size_t a = 0; a < articles.size(); ++a) {
    const std::string place = fmt::format("data[{}]", a);
    const SquadJson& paragraphs = members.list(articles[a], "paragraphs", place);
    for (std::size_t p = 0; p < paragraphs.size(); ++p)
      read_passage(members, paragraphs[p], path, fmt::format("{}.paragraphs[{}]", place, p));
  }
}

void SquadDataset::read_passage(const SquadMembers& members, const SquadJson& json,
                                const std::string& path, const std::string& place) {
  SquadPassage passage;
  passage.text = members.text(json, "context", place);
  const SquadJson& asked = members.list(json, "qas", place);
  encode_passage(passage);
  if (passage.tokens.empty()) refuse_squad("the context has no words", path, place);
  const std::vector<std::uint32_t> starts = code_points(passage.text);
  passages_.push_back(std::move(passage));
  for (std::size_t q = 0; q < asked.size(); ++q)
    read_question(members, asked[q], path, fmt::format("{}.qas[{}]", place, q), starts);
}

void SquadDataset::read_question(const SquadMembers& members, const SquadJson& json,
                                 const std::string& path, const std::string& place,
                                 const std::vector<std::uint32_t>& starts) {
  SquadQuestion question;
  question.passage = passages_.size() - 1;
  const std::string& asked = members.text(json, "question", place);
  encoder_.encode(asked, question.tokens);
  if (question.tokens.size() > kQuestionTokens) question.tokens.resize(kQuestionTokens);
  const auto marks = static_cast<std::size_t>(encoder_.marks(true));
  if (std::cmp_greater(question.tokens.size() + marks + 1, room_))
    throw_input(fmt::format("{} tokens per sample are too few for a text and a {}-token question",
                            room_, question.tokens.size()),
                "model.context",
                fmt::format("use at least {} tokens", kQuestionTokens + marks + 1));
  const SquadJson& answers = members.list(json, "answers", place);
  if (answers.empty())
    refuse_squad("a question has no answer (allowed in SQuAD 2.0, but not in 1.1)", path, place);
  const std::string& context = passages_.back().text;
  question.exact = content_hash(fmt::format("{}\n{}\n{}", context, asked, answers.dump()));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string at = fmt::format("{}.answers[{}]", place, i);
    const std::string& text = members.text(answers[i], "text", at);
    const auto offset =
        members.member(answers[i], "answer_start", SquadJson::value_t::number_unsigned, at)
            .get<std::uint64_t>();
    if (offset >= starts.size() - 1 || context.compare(starts[offset], text.size(), text) != 0 ||
        std::ranges::all_of(text, is_space))
      refuse_squad(fmt::format("the context does not contain the answer '{}' at answer_start = {} "
                               "(counted in code points)",
                               text.substr(0, 60), offset),
                   path, at);
    if (i == 0)
      place_answer(question, starts[offset],
                   static_cast<std::uint32_t>(starts[offset] + text.size()));
    question.answers.push_back(text);
  }
  questions_.push_back(std::move(question));
}

void SquadDataset::encode_passage(SquadPassage& passage) const {
  const std::string& text = passage.text;
  for (std::uint32_t begin = 0; begin < text.size();) {
    if (is_space(text[begin])) {
      ++begin;
      continue;
    }
    std::uint32_t end = begin + 1;
    if (!is_mark_of_text(text[begin]))
      while (end < text.size() && !is_space(text[end]) && !is_mark_of_text(text[end])) ++end;
    const bool gap = begin > 0 && is_space(text[begin - 1]);
    std::string piece(gap ? 1 : 0, ' ');
    piece.append(text, begin, end - begin);
    encoder_.encode(piece, passage.tokens);
    passage.piece.resize(passage.tokens.size(), static_cast<std::int32_t>(passage.pieces.size()));
    passage.pieces.push_back({begin, end});
    begin = end;
  }
}

/// Sets the question's token range to the pieces that overlap bytes [begin, end), or to only the
/// answer's own tokens if these are found there.
void SquadDataset::place_answer(SquadQuestion& question, std::uint32_t begin,
                                std::uint32_t end) const {
  const SquadPassage& passage = passages_[question.passage];
  const auto touched = [&](std::int32_t piece) {
    const auto& bytes = passage.pieces[static_cast<std::size_t>(piece)];
    return bytes[0] < end && bytes[1] > begin;
  };
  const auto first = std::ranges::find_if(passage.piece, touched);
  const auto last = std::find_if_not(first, passage.piece.end(), touched);
  question.first = static_cast<std::int32_t>(first - passage.piece.begin());
  question.last = static_cast<std::int32_t>(last - passage.piece.begin()) - 1;
  std::vector<std::int32_t> alone;
  encoder_.encode(std::string_view(passage.text).substr(begin, end - begin), alone);
  const auto from = passage.tokens.begin() + question.first;
  const auto to = passage.tokens.begin() + question.last + 1;
  const auto found = alone.empty() ? to : std::search(from, to, alone.begin(), alone.end());
  if (found == to) return;
  question.first = static_cast<std::int32_t>(found - passage.tokens.begin());
  question.last = question.first + static_cast<std::int32_t>(alone.size()) - 1;
}

void SquadDataset::cut_windows(std::size_t question, std::uint64_t place) {
  const SquadQuestion& asked = questions_[question];
  const auto all = static_cast<std::int64_t>(passages_[asked.passage].tokens.size());
  const std::int64_t most =
      room_ - encoder_.marks(true) - static_cast<std::int64_t>(asked.tokens.size());
  for (std::int64_t begin = 0;;) {
    const std::int64_t size = std::min(most, all - begin);
    cut_.push_back(
        {question, static_cast<std::int32_t>(begin), static_cast<std::int32_t>(size), place});
    if (begin + size == all) return;
    begin += std::min(size, stride_);
  }
}

void SquadDataset::write(const SampleAt& at, std::span<const View> views) const {
  const SquadWindow& window = this->window(at.split, at.sample);
  const SquadQuestion& question = questions_[window.question];
  const auto text =
      std::span(passages_[question.passage].tokens)
          .subspan(static_cast<std::size_t>(window.begin), static_cast<std::size_t>(window.size));
  write_sentences(encoder_, question.tokens, text, /*pair=*/true, room_, views[0], views[1],
                  views[2]);
  const bool whole = question.first >= window.begin && question.last < window.begin + window.size;
  const std::int32_t before = tokens_before(question) - window.begin;
  if (!views[3].empty()) *views[3].i32() = whole ? question.first + before : 0;
  if (!views[4].empty()) *views[4].i32() = whole ? question.last + before : 0;
}

/// Whether no other window of the question has more context around a token of its passage.
bool SquadDataset::is_best_window(std::size_t index, std::int32_t token) const {
  const auto score = [&](const SquadWindow& one) {
    const std::int32_t left = token - one.begin, right = one.begin + one.size - 1 - token;
    return left < 0 || right < 0 ? -1.0 : std::min(left, right) + 0.01 * one.size;
  };
  const double own = score(cut_[index]);
  const std::size_t question = cut_[index].question;
  for (std::size_t i = index; i > 0 && cut_[i - 1].question == question; --i)
    if (score(cut_[i - 1]) >= own) return false;  // the first of equals wins, as in BERT's script
  for (std::size_t i = index + 1; i < cut_.size() && cut_[i].question == question; ++i)
    if (score(cut_[i]) > own) return false;
  return true;
}

std::string SquadDataset::text(Split split, std::uint64_t sample, std::int32_t start,
                               std::int32_t end) const {
  const std::size_t index = windows_.item(split, sample);
  const SquadWindow& window = cut_[index];
  const SquadQuestion& question = questions_[window.question];
  const SquadPassage& passage = passages_[question.passage];
  const std::int32_t before = tokens_before(question);
  if (start < before || end < start || end >= before + window.size) return "";
  const std::int32_t first = start - before + window.begin, last = end - before + window.begin;
  if (!is_best_window(index, first)) return "";
  const auto piece = [&](std::int32_t token) {
    return passage.pieces[static_cast<std::size_t>(passage.piece[static_cast<std::size_t>(token)])];
  };
  return passage.text.substr(piece(first)[0], piece(last)[1] - piece(first)[0]);
}

std::unique_ptr<Dataset> make_squad(const DataOptions& options) {
  return std::make_unique<SquadDataset>(options);
}

}  // namespace

DatasetFormat squad() {
  return {.make = make_squad,
          .keys = {"data.test"},
          .options = joined({split_options(),
                             {{"stride", std::int64_t{128},
                               "number of tokens between the starts of windows of a text that is "
                               "longer than a sample",
                               1, 1 << 20}}})};
}

}  // namespace concertina::dataset_makers
