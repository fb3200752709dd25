#include "experiments/machine/program.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/version.h"
#include "io/file.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

/// The program's file, as found by the first call; it may be replaced while a supervisor runs.
const fs::path& own_file() {
  static const fs::path file = fs::read_symlink("/proc/self/exe");
  return file;
}

/// See own_program().
std::string find_start() {
  const fs::path& file = own_file();
  // The script of a bundle starts the bundle's loader and passes its own path as the program name.
  if (file.filename().string().starts_with("ld-linux"))
    return fs::absolute(program_invocation_name);
  const fs::path script = file.parent_path() / "../../bin" / file.filename();
  const bool packaged = file.parent_path().filename() == file.filename();  // lib/concertina/
  return packaged && exists_at(script) ? fs::canonical(script).string() : file.string();
}

/// The build-id in the notes at [begin, end), in hexadecimal; empty if there is none.
std::string build_id_in(const char* begin, const char* end) {
  const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  while (begin + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) note;
    std::memcpy(&note, begin, sizeof note);
    const char* name = begin + sizeof note;
    const char* content = name + padded(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      std::string text;
      for (std::size_t i = 0; i < note.n_descsz; ++i)
        text += fmt::format("{:02x}", static_cast<unsigned char>(content[i]));
      return text;
    }
    begin = content + padded(note.n_descsz);
  }
  return {};
}

/// Callback of dl_iterate_phdr, whose first object is the program itself.
int find_build_id(dl_phdr_info* object, std::size_t, void* result) {
  auto& text = *static_cast<std::string*>(result);
  for (int i = 0; i < object->dlpi_phnum && text.empty(); ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the linker gives addresses as integers
    const auto* begin = reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr);
    text = build_id_in(begin, begin + part.p_memsz);
  }
  return 1;
}

}  // namespace

std::string program_build() {
  std::string text;
  ::dl_iterate_phdr(find_build_id, &text);
  return text.empty() ? "unknown" : "build " + text;
}

std::string program_identity() {
  return fmt::format("{}, {}", version_line(), program_build());
}

std::string own_program() {
  static const std::string start = find_start();
  return start;
}

std::string executable_of(const std::string& program) {
  return program == own_program() ? own_file().string() : program;
}

fs::path shipped_folder(const std::string& name) {
  const fs::path bin = fs::path(own_program()).parent_path();
  for (const fs::path& folder :
       {bin / "../share/concertina" / name, bin / "../../experiments" / name,
        bin / "../../../experiments" / name, fs::path(CONCERTINA_EXPERIMENTS) / name})
    if (is_folder(folder)) return folder.lexically_normal();
  return {};
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\0', begin), all.size());
    words.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string shell_word(const std::string& word) {
  static const std::string kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=@:+,%-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace concertina
