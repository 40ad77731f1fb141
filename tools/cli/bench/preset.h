// Sets of tests under a name, so that results of several people are those of the same tests.
#pragma once
#include <CLI/App.hpp>
#include <string>

namespace greta::cli {

struct PresetTargets {
  std::string &prompt, &generate, &depth;
  uint32_t& repetitions;
};

// Sets what the command line leaves open. "" sets nothing.
void use_preset(const CLI::App& app, const std::string& name, const PresetTargets& targets);

}  // namespace greta::cli
