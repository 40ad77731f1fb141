// Adapters beside a model: LoRAs and control vectors, under the names that users of llama.cpp know.
#pragma once
#include <optional>

#include "common/adapters.h"
#include "json.h"
#include "model.h"

namespace greta::cli {

// A file that was asked for, as its kind.
struct GivenAdapter : tools::GivenAdapter {
  bool vector = false;
};

void add_options(CLI::App& app, AdapterOptions& options);
std::vector<GivenAdapter> given_adapters(const AdapterOptions& options);
Adapters open_adapters(greta_model* model, const AdapterOptions& options);
void use_adapters(greta_session* session, const Adapters& adapters);

// What a file is by itself, if it is an adapter and no model.
struct AdapterFile {
  greta_adapter_info info = sized<greta_adapter_info>();
  std::string problem;  // why it is refused; "" if it is sound
};
std::optional<AdapterFile> read_adapter(const greta_file* file);
std::string as_text(const AdapterFile& file);
Json as_json(const AdapterFile& file);

}  // namespace greta::cli
