// greta-cli info: header, metadata and tensors of a GGUF, and the memory plan to the byte. No weight is read.
#include <charconv>
#include <memory>

#include "commands.h"
#include "console.h"
#include "json.h"
#include "model.h"

namespace greta::cli {
namespace {

struct InfoOptions {
  EngineOptions engine;
  const CLI::Option* device = nullptr;
  bool json = false;
};

struct Metadata {
  const char* key;
  const char* type;
  std::string value;
};

// What stands in quotes, where the library put quotes around a text.
std::string unquoted(const std::string& text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return text;
  std::string out;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\' && i + 2 < text.size()) {
      ++i;
      out += text[i] == 'n' ? '\n' : text[i];
    } else {
      out += text[i];
    }
  }
  return out;
}

// Texts whole, up to a megabyte (a chat template); of arrays their beginning.
std::vector<Metadata> read_metadata(const greta_file* file) {
  std::vector<Metadata> all(greta_file_metadata_count(file));
  std::vector<char> value(1 << 20);
  for (size_t i = 0; i < all.size(); ++i) {
    Metadata& entry = all[i];
    check(greta_file_metadata(file, i, &entry.key, &entry.type, value.data(), 256));
    if (std::string_view(entry.type) == "string") {
      check(greta_file_metadata(file, i, &entry.key, &entry.type, value.data(), value.size()));
    }
    entry.value = unquoted(value.data());
  }
  return all;
}

std::vector<greta_tensor_info> read_tensors(const greta_file* file) {
  std::vector<greta_tensor_info> all(greta_file_tensor_count(file), sized<greta_tensor_info>());
  for (size_t i = 0; i < all.size(); ++i) check(greta_file_tensor(file, i, &all[i]));
  return all;
}

// <architecture>.context_length, for -c 0; 0 if the file does not say.
uint32_t context_of(const std::vector<Metadata>& metadata) {
  const auto value = [&](const std::string& key) -> std::string {
    for (const Metadata& entry : metadata) {
      if (key == entry.key) return entry.value;
    }
    return "";
  };
  const std::string text = value(value("general.architecture") + ".context_length");
  uint32_t context = 0;
  std::from_chars(text.data(), text.data() + text.size(), context);
  return context;
}

struct Plan {
  greta_memory_plan plan = sized<greta_memory_plan>();
  std::string problem;  // why there is none
};

// The plan of `greta-cli run` with the same options.
Plan make_plan(const InfoOptions& options, const greta_file* file, uint32_t model_context) {
  Plan made;
  const DeviceOptions& device = options.engine.device;
  greta_executor_options executor = executor_options(options.engine.context, model_context, 1);
  try {
    const Runtime runtime = open_runtime(device);
    if (greta_memory_plan_make(runtime.get(), file, &executor, &made.plan) != GRETA_OK) {
      made.problem = greta_error_text();
    }
  } catch (const Failed& error) {
    if (options.device->count() > 0) throw;  // a device that was asked for and is not there
    made.problem = error.what();
  }
  return made;
}

struct Line {
  const char* name;
  uint64_t greta_memory_plan::* bytes;
  const char* about;
};
constexpr Line kPlanLines[] = {
    {"weights", &greta_memory_plan::weights_bytes, ""},
    {"cache", &greta_memory_plan::cache_bytes, "keys and values"},
    {"arena", &greta_memory_plan::arena_bytes, "activations of the largest step"},
    {"tables", &greta_memory_plan::tables_bytes, ""},
    {"total", &greta_memory_plan::total_bytes, "what is allocated on the device"},
    {"free", &greta_memory_plan::free_bytes, "on the device now"},
    {"mapped", &greta_memory_plan::mapped_bytes, "weights used in place from the mapped file"},
    {"host", &greta_memory_plan::host_bytes, "vocabulary and bookkeeping, about"},
};

std::string plan_text(const Plan& made) {
  if (!made.problem.empty()) return "\nmemory plan    none: " + printable(made.problem) + "\n";
  const greta_memory_plan& plan = made.plan;
  std::string text = format("\nmemory plan    %s, context %u tokens, steps of %u: %s\n", plan.device,
                            plan.context, plan.step_tokens, plan.fits ? "fits" : "does not fit");
  for (const Line& line : kPlanLines) {
    const uint64_t bytes = plan.*line.bytes;
    text += format("  %-8s %16llu bytes %12s   %s", line.name, static_cast<unsigned long long>(bytes),
                   size_text(bytes).c_str(), line.about);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string shape_text(const greta_tensor_info& tensor) {
  std::string text;
  for (uint32_t i = 0; i < tensor.dimensions && i < 4; ++i) {
    text += format("%s%llu", i ? ", " : "[", static_cast<unsigned long long>(tensor.shape[i]));
  }
  return text + "]";
}

std::string shortened(const std::string& value) {
  constexpr size_t kMost = 96;
  std::string text = printable(value);
  if (text.size() <= kMost) return text;
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // whole characters
  return text.substr(0, end) + "...";
}

std::string as_text(const std::string& path, const greta_file* file, const std::vector<Metadata>& metadata,
                    const std::vector<greta_tensor_info>& tensors, uint32_t parts, const Plan& plan) {
  const uint64_t size = greta_file_size_bytes(file);
  std::string text = format("file           %s\n", printable(path).c_str());
  text += format("version        %u\n", greta_file_version(file));
  text += format("size           %llu bytes, %s, in %u part%s\n", static_cast<unsigned long long>(size),
                 size_text(size).c_str(), parts, parts == 1 ? "" : "s");
  text += format("\nmetadata       %zu\n", metadata.size());
  for (const Metadata& entry : metadata) {
    text += format("  %-42s %-16s %s\n", printable(entry.key).c_str(), entry.type,
                   shortened(entry.value).c_str());
  }
  text += format("\ntensors        %zu\n", tensors.size());
  for (const greta_tensor_info& tensor : tensors) {
    text += format("  %-42s %-8s %-22s %14llu bytes\n", printable(tensor.name).c_str(), tensor.type,
                   shape_text(tensor).c_str(), static_cast<unsigned long long>(tensor.size_bytes));
  }
  return text + plan_text(plan);
}

Json plan_json(const Plan& made) {
  if (!made.problem.empty()) return nullptr;
  Json json = {{"device", made.plan.device},
               {"fits", made.plan.fits != 0},
               {"context", made.plan.context},
               {"step_tokens", made.plan.step_tokens}};
  for (const Line& line : kPlanLines) json[std::string(line.name) + "_bytes"] = made.plan.*line.bytes;
  return json;
}

Json as_json(const std::string& path, const greta_file* file, const std::vector<Metadata>& metadata,
             const std::vector<greta_tensor_info>& tensors, uint32_t parts, const Plan& plan) {
  Json json = {{"path", path},
               {"version", greta_file_version(file)},
               {"size_bytes", greta_file_size_bytes(file)},
               {"parts", parts},
               {"metadata", Json::object()},
               {"tensors", Json::array()},
               {"memory_plan", plan_json(plan)}};
  if (!plan.problem.empty()) json["memory_plan_problem"] = plan.problem;
  for (const Metadata& entry : metadata) {
    json["metadata"][entry.key] = {{"type", entry.type}, {"value", entry.value}};
  }
  for (const greta_tensor_info& tensor : tensors) {
    const std::vector<uint64_t> shape(tensor.shape, tensor.shape + tensor.dimensions);
    json["tensors"].push_back({{"name", tensor.name},
                               {"type", tensor.type},
                               {"shape", shape},
                               {"size_bytes", tensor.size_bytes},
                               {"offset_bytes", tensor.offset_bytes},
                               {"part", tensor.part}});
  }
  return json;
}

int info(const InfoOptions& options) {
  options.engine.verbosity.apply();
  const std::string path = model_path(options.engine.model);
  const File file = open_file(path, !options.engine.model.copy);
  const std::vector<Metadata> metadata = read_metadata(file.get());
  const std::vector<greta_tensor_info> tensors = read_tensors(file.get());
  uint32_t parts = 1;
  for (const greta_tensor_info& tensor : tensors) parts = std::max(parts, tensor.part + 1);
  const Plan plan = make_plan(options, file.get(), context_of(metadata));
  put(options.json ? json_text(as_json(path, file.get(), metadata, tensors, parts, plan))
                   : as_text(path, file.get(), metadata, tensors, parts, plan));
  return kExitOk;
}

}  // namespace

Action info_command(CLI::App& app) {
  auto options = std::make_shared<InfoOptions>();
  app.add_flag("--json", options->json, "as JSON, with texts in full");
  add_options(app, options->engine);
  options->device = app.get_option("--device");
  app.footer("The memory plan is that of `greta-cli run` with the same options.");
  return [options] { return info(*options); };
}

}  // namespace greta::cli
