// The options of greta-cli serve, and the models of its presets.
#pragma once
#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "options.h"
#include "serve/serve.h"

namespace greta::cli {

struct ServeOptions {
  EngineOptions engine;
  SamplingOptions sampling;
  serve::Options serve;
  std::string models, presets, key_file, template_file, reasoning = "auto", reasoning_format = "auto",
                                                        pooling;
  std::vector<std::string> keys, origins;
  int64_t parallel = 4, cache_ram_mib = 0, reasoning_budget = -1, predict = -1, cache_tokens = 0, sleep = -1;
  bool shift = false, log_jsonl = false;
};

// Declares what each of several models may have of its own.
void add_for_model(CLI::App& app, ServeOptions& options);
// Works out what add_for_model() has declared. The placement keeps pointers to the options.
void settle_for_model(const ServeOptions& options, serve::Options* serve);
serve::Engine engine_of(const ServeOptions& options);

// "a;b" -> {"a", "b"}, without what is empty
std::vector<std::string> parts_of(const std::vector<std::string>& texts, char separator);

// The models of an INI file of llama-server's --models-preset: a section is a model, or [*] for all of them,
// and its keys are options of serve without their dashes. What `app`, the command, was given counts more. A
// section with the name of one of `models` changes that. Throws Failed or Misused.
void add_presets(const std::string& path, const CLI::App& app, const ServeOptions& options,
                 std::vector<serve::Offer>* models);

}  // namespace greta::cli
