#include "core/cpu/isa.h"

#include <cpuid.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>

#include "core/error.h"

namespace concertina::cpu {

extern const LoopTable loops_baseline, loops_avx2, loops_avx512;
extern const PanelAttention<Bf16> pair_attention;
extern const PanelProducts panel_products;

namespace {

using dnnl::cpu_isa;

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

/// Whether AMX can be used; requests permission for the tile registers, which Linux requires.
bool has_amx() {
  constexpr unsigned kBits = 1U << 22 | 1U << 24 | 1U << 25;  // AMX-BF16, AMX-TILE, AMX-INT8
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // arch_prctl(2)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kBits) == kBits &&
         ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

struct Kind {
  Isa isa;
  cpu_isa onednn;      // the most that oneDNN may use
  const char* limits;  // values of DNNL_MAX_CPU_ISA that correspond to it
  bool (*has)();
};

const std::array<Kind, 6>& kinds() {
  static const std::array<Kind, 6> all{{
      {{"baseline", &loops_baseline}, cpu_isa::sse41, " SSE41 ", [] { return true; }},
      {{"avx", &loops_baseline},
       cpu_isa::avx,
       " AVX ",
       [] { return __builtin_cpu_supports("avx") != 0; }},
      {{"avx2", &loops_avx2, false, nullptr, &panel_products},
       cpu_isa::avx2,
       " AVX2 AVX2_VNNI AVX512_MIC AVX512_MIC_4OPS ",
       [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }},
      {{"avx512", &loops_avx512, true},
       cpu_isa::avx512_core,
       " AVX512_CORE AVX512_CORE_VNNI ",
       has_avx512},
      {{"avx512_bf16", &loops_avx512, true, &pair_attention},
       cpu_isa::avx512_core_bf16,
       " AVX512_CORE_BF16 ",
       [] { return __builtin_cpu_supports("avx512bf16") != 0; }},
      {{"amx_bf16", &loops_avx512, true, &pair_attention}, cpu_isa::avx512_core_amx, " ", has_amx},
  }};
  return all;
}

/// Returns the number of kinds that oneDNN's environment variable allows.
std::size_t allowed_kinds() {
  const char* limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (limit == nullptr) limit = std::getenv("DNNL_MAX_CPU_ISA");
  if (limit == nullptr) return kinds().size();
  std::string word = fmt::format(" {} ", limit);
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (std::size_t i = 0; i < kinds().size(); ++i)
    if (std::string_view(kinds()[i].limits).find(word) != std::string_view::npos) return i + 1;
  return kinds().size();
}

}  // namespace

std::vector<std::string_view> isa_names() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kinds()) names.push_back(kind.isa.name);
  return names;
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const Kind& kind : kinds()) {
    if (isas.size() == allowed_kinds() || !kind.has()) break;
    isas.push_back(kind.isa);
  }
  return isas;
}

Isa choose_isa(std::string_view name) {
  const std::vector<Isa> isas = available_isas();
  if (name.empty()) return isas.back();
  std::vector<std::string_view> names;
  for (const Isa& isa : isas) {
    if (isa.name == name) return isa;
    names.push_back(isa.name);
  }
  throw_input(fmt::format("instruction set '{}' is not available", name), "CPU backend",
              fmt::format("one of: {}", fmt::join(names, ", ")));
}

void bind_onednn(std::string_view name) {
  const auto kind = std::find_if(kinds().begin(), kinds().end(),
                                 [&](const Kind& one) { return one.isa.name == name; });
  CONCERTINA_CHECK(kind != kinds().end(), "unknown instruction set '{}'", name);
  if (dnnl::set_max_cpu_isa(kind->onednn) == dnnl::status::success) return;
  // oneDNN was used before, or lacks this feature: the limit must already be in effect.
  const auto most = static_cast<unsigned>(kind->onednn);
  const auto now = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  if ((now & ~most) != 0)
    throw_failure(fmt::format("oneDNN cannot be limited to {}", name), "CPU backend",
                  "numerics.isa = \"auto\" on identical processors, or a oneDNN built with "
                  "ONEDNN_ENABLE_MAX_CPU_ISA");
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace concertina::cpu
