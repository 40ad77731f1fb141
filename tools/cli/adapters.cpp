#include "adapters.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>
#include <cmath>

#include "console.h"
#include "slips.h"

namespace greta::cli {
namespace {

// Cuts FILE:SCALE at its last colon. The text of an error if there is no number behind it.
std::string cut_scale(const std::string& value, std::string* path, float* scale) {
  const size_t colon = value.rfind(':');
  const char* const end = value.data() + value.size();
  const char* const number = colon == value.npos ? end : value.data() + colon + 1;
  const auto [read, error] = std::from_chars(number, end, *scale);
  if (colon == 0 || number == end || error != std::errc() || read != end || !std::isfinite(*scale))
    return "takes FILE:SCALE, such as style.gguf:0.5, not \"" + value + "\"";
  *path = value.substr(0, colon);
  return "";
}

std::string check_scaled(std::string& value) {
  std::string path;
  float scale = 0;
  return cut_scale(value, &path, &scale);
}

void add_files(CLI::App& app, const char* name, std::vector<std::string>& files, const char* about) {
  app.add_option(name, files, about)->type_name("FILE,..")->delimiter(',')->check(not_empty());
}

void add_scaled(CLI::App& app, const char* name, std::vector<std::string>& files, const char* about) {
  app.add_option(name, files, about)
      ->type_name("FILE:SCALE,..")
      ->delimiter(',')
      ->check(CLI::Validator(check_scaled, ""));
}

}  // namespace

void add_options(CLI::App& app, AdapterOptions& options) {
  add_files(app, "--lora", options.loras, "apply these LoRA adapters beside the weights");
  add_scaled(app, "--lora-scaled", options.scaled_loras, "the same, each with a scale");
  add_files(app, "--control-vector", options.vectors, "add these control vectors to the outputs of layers");
  add_scaled(app, "--control-vector-scaled", options.scaled_vectors, "the same, each with a scale");
  app.add_option("--control-vector-layer-range", options.layers,
                 "layers that control vectors act on, the first and the last")
      ->type_name("FIRST LAST")
      ->expected(2);
}

std::vector<GivenAdapter> given_adapters(const AdapterOptions& options) {
  std::vector<GivenAdapter> all;
  const auto add = [&](const std::vector<std::string>& files, bool scaled, bool vector) {
    for (const std::string& file : files) {
      GivenAdapter given;
      given.path = file;
      given.vector = vector;
      if (scaled) cut_scale(file, &given.path, &given.scale);
      if (vector && options.layers.size() == 2) {
        given.first_layer = options.layers[0];
        given.last_layer = options.layers[1];
      }
      all.push_back(given);
    }
  };
  add(options.loras, false, false);
  add(options.scaled_loras, true, false);
  add(options.vectors, false, true);
  add(options.scaled_vectors, true, true);
  return all;
}

Adapters open_adapters(greta_model* model, const AdapterOptions& options) {
  Adapters adapters;
  for (const GivenAdapter& given : given_adapters(options)) {
    Adapter& adapter = adapters.open.emplace_back(tools::open_adapter(model, given));
    if (!adapter) throw Failed(greta_error_text());
    adapters.scales.push_back(given.scale);
    auto info = sized<greta_adapter_info>();
    check(greta_adapter_describe(adapter.get(), &info));
    if (given.vector != (info.kind == GRETA_ADAPTER_CONTROL))
      throw Failed(given.path + (given.vector ? ": this is a LoRA: give it with --lora"
                                              : ": this is a control vector: give it with --control-vector"));
  }
  return adapters;
}

void use_adapters(greta_session* session, const Adapters& adapters) {
  if (adapters.open.empty()) return;
  std::vector<const greta_adapter*> all;
  for (const auto& adapter : adapters.open) all.push_back(adapter.get());
  check(greta_session_set_adapters(session, all.data(), adapters.scales.data(), all.size()));
}

std::optional<AdapterFile> read_adapter(const greta_file* file) {
  bool is_adapter = false;
  for (uint64_t i = 0; i < greta_file_metadata_count(file) && !is_adapter; ++i) {
    const char* key = nullptr;
    char value[64];
    check(greta_file_metadata(file, i, &key, nullptr, value, sizeof value));
    const std::string_view name = key, text = value;
    is_adapter = (name == "general.type" && text == "\"adapter\"") ||
                 (name == "general.architecture" && text == "\"controlvector\"");
  }
  if (!is_adapter) return std::nullopt;
  AdapterFile read;
  if (greta_file_adapter(file, &read.info) != GRETA_OK) read.problem = greta_error_text();
  return read;
}

std::string as_text(const AdapterFile& file) {
  const greta_adapter_info& info = file.info;
  if (!file.problem.empty()) return "\nadapter        refused: " + printable(file.problem) + "\n";
  const std::string whose = *info.architecture ? printable(info.architecture) : "any model of its width";
  if (info.kind == GRETA_ADAPTER_CONTROL)
    return format("\nadapter        a control vector for %s, with directions for %u layers\n", whose.c_str(),
                  info.directions);
  const std::string ranks = info.least_rank == info.most_rank
                                ? format("rank %u", info.most_rank)
                                : format("ranks %u to %u", info.least_rank, info.most_rank);
  return format("\nadapter        a LoRA for %s, %s, alpha %g, of %u matrices, %s\n", whose.c_str(),
                ranks.c_str(), double(info.alpha), info.matrices, size_text(info.tensor_bytes).c_str());
}

Json as_json(const AdapterFile& file) {
  const greta_adapter_info& info = file.info;
  if (!file.problem.empty()) return {{"problem", file.problem}};
  return {{"kind", info.kind == GRETA_ADAPTER_CONTROL ? "control" : "lora"},
          {"architecture", info.architecture},
          {"matrices", info.matrices},
          {"directions", info.directions},
          {"least_rank", info.least_rank},
          {"most_rank", info.most_rank},
          {"alpha", info.alpha},
          {"tensor_bytes", info.tensor_bytes}};
}

}  // namespace greta::cli
