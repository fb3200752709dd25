#include "experiments/commands/command_completion.h"

#include "experiments/commands/completion.h"

namespace concertina {
namespace {

struct CompletionOptions {
  std::string shell;
  std::vector<std::string> words;
};

}  // namespace

Runner add_completion(CLI::App& app) {
  auto options = std::make_shared<CompletionOptions>();
  app.add_option("shell", options->shell,
                 "print its script: source <(concertina completion bash). words: what could "
                 "come next, for these scripts")
      ->type_name("bash|zsh|words")
      ->check(CLI::IsMember({"bash", "zsh", "words"}).description(""))
      ->required();
  app.add_option("line", options->words, "after `words --`: the command line so far")
      ->type_name("WORD");
  return [options, program = app.get_parent()](MpiEnvironment&) {
    std::string text;
    if (options->shell == "words")
      for (const std::string& word : complete(*program, options->words)) text += word + "\n";
    else
      text = completion_script(options->shell);
    print_once(text);
    return 0;
  };
}

}  // namespace concertina
