// greta-cli info: shows header, metadata and tensors of a GGUF file, and its memory plan. No weight is read.
#include <algorithm>
#include <memory>

#include "adapters.h"
#include "commands/commands.h"
#include "commands/info_parts.h"
#include "console.h"
#include "json.h"
#include "model.h"
#include "plan/step_plan.h"
#include "slips.h"

namespace greta::cli {
namespace {

struct InfoOptions {
  EngineOptions engine;
  DraftOptions draft;
  const CLI::Option* device = nullptr;
  bool json = false;
  bool plan = false;  // of a step
  uint32_t tokens = 1, depth = 0;
  bool registers = false;
  std::string output;  // "": text, or what --json says
};

struct Metadata {
  const char* key;
  const char* type;
  std::string value;
};

// Takes away the quotes and escapes that the library puts into a text.
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

// Reads strings up to 1 MiB (a chat template is long), and the beginning of arrays.
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

struct Unused {
  greta_unused_verdict verdict;
  bool is_tensor;
  std::string name, reason;
};

struct Audit {
  bool known = true;          // an architecture that runs, and sizes that can be read
  std::vector<Unused> parts;  // of an unknown architecture: how the nearest one differs
};

// The memory plan says why a file cannot be run, and which architecture is nearest.
Audit read_audit(const greta_file* file) {
  Audit audit;
  const auto add = [](void* to, const greta_unused* part) {
    static_cast<std::vector<Unused>*>(to)->push_back(
        {part->verdict, part->is_tensor != 0, part->name, part->reason});
    return 0;
  };
  audit.known = greta_file_audit(file, add, &audit.parts) == GRETA_OK;
  return audit;
}

const char* verdict_text(greta_unused_verdict verdict) {
  return verdict == GRETA_UNUSED_REFUSED   ? "refused"
         : verdict == GRETA_UNUSED_UNKNOWN ? "unknown"
                                           : "needless";
}

std::string audit_text(const Audit& audit) {
  if (!audit.known && audit.parts.empty()) return "";
  std::string text = format("\n%-14s %zu\n", audit.known ? "not used" : "differs", audit.parts.size());
  for (const Unused& part : audit.parts) {
    text += format("  %-42s %-8s %-8s %s\n", printable(part.name).c_str(), part.is_tensor ? "tensor" : "key",
                   verdict_text(part.verdict), part.reason.c_str());
  }
  return text;
}

struct Plan {
  greta_memory_plan plan = sized<greta_memory_plan>();
  std::string problem;                     // why there is no plan; "" if there is one
  std::vector<greta_device_plan> devices;  // with their parts of it, if there are several
  std::vector<std::string> layers;         // lines that say where each piece is
  std::string reason;                      // why
};

// Adds where pieces are that have bytes on this device.
void add_piece_lines(const greta_device_plan& plan, std::vector<std::string>* lines) {
  const uint32_t pieces = plan.layers + 2;
  lines->resize(pieces);
  for (uint32_t piece = 0; piece < pieces; ++piece) {
    const bool layer = piece > 0 && piece <= plan.layers;
    const uint64_t experts = layer ? plan.expert_bytes[piece - 1] : 0;
    std::string& line = (*lines)[piece];
    if (plan.piece_bytes[piece])
      line += format("  %s %s", plan.id, size_text(plan.piece_bytes[piece]).c_str());
    if (experts) line += format("  experts %s %s", plan.id, size_text(experts).c_str());
  }
}

int add_device_plan(void* user, const greta_device_plan* plan) {
  auto* made = static_cast<Plan*>(user);
  made->devices.push_back(*plan);
  add_piece_lines(*plan, &made->layers);
  return 0;
}

// Why pieces are where they are.
std::string placement_reason(const DeviceOptions& device, const Plan& made) {
  std::string flags;
  if (device.gpu_layers != "auto") flags += " -ngl " + device.gpu_layers;
  if (!device.shares.empty()) flags += " -ts";
  if (device.host_experts) flags += " -cmoe";
  if (device.host_expert_layers) flags += format(" -ncmoe %u", device.host_expert_layers);
  for (const std::string& rule : device.overrides) flags += " -ot " + rule;
  if (!flags.empty()) return "as" + flags + " say";
  if (made.devices.size() == 1) return "it fits there whole";
  const greta_device_plan& first = made.devices.front();
  return format("by memory: %s of %s free on %s are taken, and the next part of the model would not fit",
                size_text(first.total_bytes).c_str(), size_text(first.free_bytes).c_str(), first.id);
}

// Makes the sums of the devices' plans.
void add_up(Plan* made) {
  greta_memory_plan& sum = made->plan;
  sum.weights_bytes = sum.mapped_bytes = sum.cache_bytes = sum.arena_bytes = sum.tables_bytes = 0;
  sum.total_bytes = sum.free_bytes = 0;
  sum.fits = 1;
  for (const greta_device_plan& each : made->devices) {
    sum.weights_bytes += each.weights_bytes, sum.mapped_bytes += each.mapped_bytes;
    sum.cache_bytes += each.cache_bytes, sum.arena_bytes += each.arena_bytes;
    sum.tables_bytes += each.tables_bytes, sum.total_bytes += each.total_bytes;
    sum.free_bytes += each.free_bytes;
    sum.fits &= each.fits;
    sum.context = each.context;
  }
}

// The executor of `greta-cli run` with the same options. A second model has a plan of its own.
greta_executor_options executor_of(const InfoOptions& options, uint32_t model_context) {
  greta_executor_options executor = executor_options(options.engine.context, model_context, 1);
  const std::string guesses = drafter_of(options.draft);
  if (guesses == "draft-simple")
    throw Misused("info tells of one model: that of -md FILE has the plan of greta-cli info -m FILE");
  executor.draft_head = guesses == "draft-mtp" ? 1 : 0;
  return executor;
}

// Makes the plan of `greta-cli run` with the same options.
Plan make_plan(const InfoOptions& options, const std::string& path, const greta_file* file,
               uint32_t model_context) {
  Plan made;
  const DeviceOptions& device = options.engine.device;
  const greta_executor_options executor = executor_of(options, model_context);
  try {
    const Runtime runtime = open_runtime(device, path, executor);
    const greta_placement placement = placement_of(device);
    const bool several = greta_runtime_device_count(runtime.get()) > 1;
    if (greta_memory_plan_make(runtime.get(), file, &executor, &made.plan) != GRETA_OK ||
        (several && greta_placement_plan(runtime.get(), file, &executor, &placement, add_device_plan,
                                         &made) != GRETA_OK)) {
      made.problem = greta_error_text();
    } else if (several) {
      add_up(&made);
      made.reason = placement_reason(device, made);
    }
  } catch (const Failed& error) {
    if (options.device->count() > 0) throw;  // the device was asked for by name
    made.problem = error.what();
  }
  return made;
}

struct Line {
  const char* name;
  uint64_t greta_memory_plan::* bytes;
  const char* about;
  bool left_out_if_0 = false;
};
constexpr Line kPlanLines[] = {
    {"weights", &greta_memory_plan::weights_bytes, ""},
    {"cache", &greta_memory_plan::cache_bytes, "keys and values, and states"},
    {"states", &greta_memory_plan::states_bytes, "of the cache, for layers that keep one", true},
    {"checkpoints", &greta_memory_plan::checkpoints_bytes, "of the states, to go back to", true},
    {"arena", &greta_memory_plan::arena_bytes, "activations of the largest step"},
    {"tables", &greta_memory_plan::tables_bytes, ""},
    {"draft head", &greta_memory_plan::draft_head_bytes, "of weights, cache and tables", true},
    {"total", &greta_memory_plan::total_bytes, "what is allocated on the device"},
    {"free", &greta_memory_plan::free_bytes, "on the device now"},
    {"mapped", &greta_memory_plan::mapped_bytes, "weights used in place from the mapped file"},
    {"host", &greta_memory_plan::host_bytes, "vocabulary, bookkeeping, embeddings for each layer, about"},
};

// Mapped weights take no memory of their own, but they are slow where they cannot all stay in it.
bool mapped_fits(const greta_memory_plan& plan) {
  return plan.mapped_bytes == 0 || plan.total_bytes + plan.mapped_bytes <= plan.free_bytes;
}

const char* fit_text(const greta_memory_plan& plan) {
  if (!plan.fits) return "does not fit";
  return mapped_fits(plan) ? "fits"
                           : "fits, but the weights are read from the disk again and again: they take more "
                             "memory than is free";
}

struct DeviceLine {
  const char* name;
  uint64_t greta_device_plan::* bytes;
};
constexpr DeviceLine kDeviceLines[] = {
    {"weights", &greta_device_plan::weights_bytes}, {"cache", &greta_device_plan::cache_bytes},
    {"arena", &greta_device_plan::arena_bytes},     {"tables", &greta_device_plan::tables_bytes},
    {"total", &greta_device_plan::total_bytes},     {"free", &greta_device_plan::free_bytes},
    {"mapped", &greta_device_plan::mapped_bytes},
};

std::string devices_text(const Plan& made) {
  std::string text = format("\nmemory plan    %zu device%s, context %u tokens, steps of %u: %s\n",
                            made.devices.size(), made.devices.size() == 1 ? "" : "s", made.plan.context,
                            made.plan.step_tokens, made.plan.fits ? "fits" : "does not fit");
  for (const greta_device_plan& plan : made.devices) {
    text += format("  %s: %s%s\n", plan.id, plan.pieces, plan.fits ? "" : " (does not fit)");
    for (const DeviceLine& line : kDeviceLines) {
      const uint64_t bytes = plan.*line.bytes;
      text += format("    %-8s %16llu bytes %12s\n", line.name, static_cast<unsigned long long>(bytes),
                     size_text(bytes).c_str());
    }
  }
  if (verbosity() != Verbosity::kVerbose) return text;
  text += format("  placement: %s\n", made.reason.c_str());
  for (size_t piece = 0; piece < made.layers.size(); ++piece) {
    const bool last = piece + 1 == made.layers.size();
    const std::string name = piece == 0 ? "embedding" : last ? "output" : format("layer %zu", piece - 1);
    text += format("    %-10s%s\n", name.c_str(), made.layers[piece].c_str());
  }
  return text;
}

std::string plan_text(const Plan& made) {
  if (!made.problem.empty()) return "\nmemory plan    none: " + printable(made.problem) + "\n";
  const greta_memory_plan& plan = made.plan;
  if (!made.devices.empty()) return devices_text(made);
  std::string text = format("\nmemory plan    %s, context %u tokens, steps of %u: %s\n", plan.device,
                            plan.context, plan.step_tokens, fit_text(plan));
  for (const Line& line : kPlanLines) {
    const uint64_t bytes = plan.*line.bytes;
    if (!bytes && line.left_out_if_0) continue;
    text += format("  %-11s %16llu bytes %12s   %s", line.name, static_cast<unsigned long long>(bytes),
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
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // cuts between characters
  return text.substr(0, end) + "...";
}

struct Contents {
  std::string path;
  uint32_t version, parts;
  uint64_t size_bytes;
  std::vector<Metadata> metadata;
  std::vector<greta_tensor_info> tensors;
  Audit audit;
  Plan plan;
  std::optional<AdapterFile> adapter;  // then there is no plan
};

Contents read_contents(const std::string& path, const greta_file* file, const InfoOptions& options) {
  Contents contents;
  contents.path = path;
  contents.version = greta_file_version(file);
  contents.size_bytes = greta_file_size_bytes(file);
  contents.metadata = read_metadata(file);
  contents.tensors = read_tensors(file);
  contents.audit = read_audit(file);
  contents.parts = 1;
  for (const greta_tensor_info& tensor : contents.tensors)
    contents.parts = std::max(contents.parts, tensor.part + 1);
  contents.adapter = read_adapter(file);
  if (contents.adapter)
    contents.plan.problem = "an adapter runs beside a model (--lora, --control-vector)";
  else
    contents.plan = make_plan(options, path, file, trained_context(file));
  return contents;
}

std::string as_text(const Contents& contents) {
  const auto& [path, version, parts, size, metadata, tensors, audit, plan, adapter] = contents;
  std::string text = format("file           %s\n", printable(path).c_str());
  text += format("version        %u\n", version);
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
  text += shares_text("bytes by type", bytes_by_type(tensors));
  text += shares_text("bytes by part", bytes_by_part(tensors));
  if (verbosity() == Verbosity::kVerbose) text += audit_text(audit);
  return text + (adapter ? as_text(*adapter) : plan_text(plan));
}

// "draft head" -> "draft_head_bytes"
std::string key_of(std::string name) {
  std::ranges::replace(name, ' ', '_');
  return name + "_bytes";
}

Json plan_json(const Plan& made) {
  if (!made.problem.empty()) return nullptr;
  Json json = {{"device", made.plan.device},
               {"fits", made.plan.fits != 0},
               {"mapped_fits", mapped_fits(made.plan)},
               {"context", made.plan.context},
               {"step_tokens", made.plan.step_tokens}};
  for (const Line& line : kPlanLines) json[key_of(line.name)] = made.plan.*line.bytes;
  for (const greta_device_plan& plan : made.devices) {
    Json device = {{"device", plan.id}, {"pieces", plan.pieces}, {"fits", plan.fits != 0}};
    for (const DeviceLine& line : kDeviceLines) device[std::string(line.name) + "_bytes"] = plan.*line.bytes;
    json["devices"].push_back(device);
  }
  return json;
}

Json as_json(const Contents& contents) {
  const auto& [path, version, parts, size, metadata, tensors, audit, plan, adapter] = contents;
  Json json = {{"path", path},
               {"version", version},
               {"size_bytes", size},
               {"parts", parts},
               {"metadata", Json::object()},
               {"tensors", Json::array()},
               {"bytes_by_type", shares_json(bytes_by_type(tensors))},
               {"bytes_by_part", shares_json(bytes_by_part(tensors))},
               {"unused", Json::array()},
               {"memory_plan", plan_json(plan)}};
  if (!plan.problem.empty()) json["memory_plan_problem"] = plan.problem;
  if (adapter) json["adapter"] = as_json(*adapter);
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
  for (const Unused& part : audit.parts) {
    json["unused"].push_back({{"kind", part.is_tensor ? "tensor" : "key"},
                              {"name", part.name},
                              {"verdict", verdict_text(part.verdict)},
                              {"reason", part.reason}});
  }
  return json;
}

// Prints the plan of a step.
int explain(const InfoOptions& options, const std::string& path, const greta_file* file) {
  const greta_executor_options executor = executor_of(options, trained_context(file));
  const Runtime runtime = open_runtime(options.engine.device, path, executor);
  StepPlan plan = read_step_plan(runtime.get(), file, options.engine.device, executor, options.tokens,
                                 options.depth, options.registers);
  measure_roofs(runtime.get(), &plan);
  if (options.output == "svg") {
    const greta_device_info device = describe(runtime.get());
    const std::string name = path.substr(path.find_last_of('/') + 1);
    put(step_plan_svg(plan, printable(name) + " on " + printable(device.name)));
  } else if (options.output == "json") {
    put(json_text(step_plan_json(plan)));
  } else {
    put(step_plan_text(plan, verbosity() == Verbosity::kVerbose));
  }
  return kExitOk;
}

int info(InfoOptions options) {
  options.engine.verbosity.apply();
  if (options.output.empty()) options.output = options.json ? "json" : "text";
  if (!options.plan && options.output == "svg")
    throw Misused("-o svg draws the plan of a step: add --plan (see greta-cli info -h)");
  options.json = options.output == "json";
  const std::string path = model_path(options.engine.model);
  const File file = open_file(path, !options.engine.model.copy);
  if (options.plan) return explain(options, path, file.get());
  const Contents contents = read_contents(path, file.get(), options);
  put(options.json ? json_text(as_json(contents)) : as_text(contents));
  return kExitOk;
}

}  // namespace

Action info_command(CLI::App& app) {
  auto options = std::make_shared<InfoOptions>();
  app.add_flag("--json", options->json, "print JSON, with texts in full");
  app.add_flag("--plan", options->plan,
               "print the plan of a step instead: its launches and what they cost at least; -v: also why "
               "no kernel of a higher rank");
  app.add_option("--tokens", options->tokens, "with --plan: tokens of the step; 1: a step of generation")
      ->type_name("N")
      ->check(in_range(int64_t{1}, 512))
      ->capture_default_str();
  app.add_option("--depth", options->depth, "with --plan: tokens that are in the context before")
      ->type_name("N")
      ->check(in_range(int64_t{0}, INT32_MAX))
      ->capture_default_str();
  app.add_flag("--registers", options->registers,
               "with --plan: also ask the driver for the registers of kernels, for which it compiles them");
  app.add_option("-o,--output", options->output, "form of the output; svg, with --plan: a picture")
      ->type_name("FORM")
      ->check(one_of({"text", "json", "svg"}));
  add_options(app, options->engine);
  add_options(app, options->draft);
  options->device = app.get_option("--device");
  app.footer(
      "The memory plan is that of `greta-cli run` with the same options. -v also lists the parts of the file "
      "that a\n"
      "model would not use, and why, and on which of several devices each layer is.");
  return [options] { return info(*options); };
}

}  // namespace greta::cli
