#include "bench/preset.h"

namespace greta::cli {
namespace {

struct Preset {
  const char *name, *prompt, *generate, *depth;
  uint32_t repetitions;
};
// smoke: that it works. standard: llama-bench's tests. perf: also deep in a context. verify: as many runs as
// a comparison needs to be sure.
constexpr Preset kPresets[] = {
    {"smoke", "32", "8", "0", 2},
    {"standard", "512", "128", "0", 5},
    {"perf", "512", "128", "0,4096", 10},
    {"verify", "512", "128", "0", 12},
};

}  // namespace

void use_preset(const CLI::App& app, const std::string& name, const PresetTargets& targets) {
  const auto open = [&](const char* option) { return app.get_option(option)->count() == 0; };
  for (const Preset& preset : kPresets) {
    if (name != preset.name) continue;
    if (open("--n-prompt")) targets.prompt = preset.prompt;
    if (open("--n-gen")) targets.generate = preset.generate;
    if (open("--n-depth")) targets.depth = preset.depth;
    if (open("--repetitions")) targets.repetitions = preset.repetitions;
  }
}

}  // namespace greta::cli
