// greta-cli verify: reads all of a GGUF file and says what is wrong or odd in it. No model runs.
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <memory>

#include "adapters.h"
#include "commands/commands.h"
#include "console.h"
#include "json.h"
#include "model.h"
#include "sha256.h"

namespace greta::cli {
namespace {

struct VerifyOptions {
  ModelOptions model;
  VerbosityOptions verbosity;
  bool json = false;
};

enum class Severity { kRefused, kWrong, kOdd };
constexpr const char* kSeverities[] = {"refused", "wrong", "odd"};

struct Finding {
  Severity severity;
  const char* kind;  // "file", "key", "tensor", "vocabulary" or "template"
  std::string name;  // "" where the kind says all
  std::string text;
};

struct HashedFile {
  std::string path;
  uint64_t bytes;
  std::string sha256;
};

struct Report {
  std::string path;
  std::vector<HashedFile> files;              // the parts of a split set, or the one file
  uint64_t keys = 0, tensors = 0, bytes = 0;  // bytes of weights that were read
  std::vector<Finding> findings;
  void add(Severity severity, const char* kind, std::string name, std::string text) {
    findings.push_back({severity, kind, std::move(name), std::move(text)});
  }
  bool has(Severity severity) const {
    return std::any_of(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.severity == severity; });
  }
  bool is_sound() const { return !has(Severity::kRefused) && !has(Severity::kWrong); }
};

// What greta_model_open would refuse or warn of.
void check_parts(const greta_file* file, Report* report) {
  const auto add = [](void* to, const greta_unused* part) {
    if (part->verdict == GRETA_UNUSED_NEEDLESS) return 0;
    const bool refused = part->verdict == GRETA_UNUSED_REFUSED;
    static_cast<Report*>(to)->add(refused ? Severity::kRefused : Severity::kOdd,
                                  part->is_tensor ? "tensor" : "key", part->name, part->reason);
    return 0;
  };
  if (greta_file_audit(file, add, report) != GRETA_OK)
    report->add(Severity::kRefused, "file", "", greta_error_text());
}

// Opens the model as far as its shapes, tables and steps go: all but its weights. The CPU's device needs no
// hardware, and nothing is allocated on it.
void check_model(const greta_file* file, Report* report) {
  if (report->has(Severity::kRefused)) return;  // for a reason that was told
  auto options = sized<greta_runtime_options>();
  options.device = "cpu";
  options.threads = 1;
  greta_runtime* opened = nullptr;
  check(greta_runtime_open(&options, &opened));
  const Runtime runtime(opened);
  auto plan = sized<greta_memory_plan>();
  if (greta_memory_plan_make(runtime.get(), file, nullptr, &plan) != GRETA_OK)
    report->add(Severity::kRefused, "file", "", greta_error_text());
}

// Renders a conversation of three messages, as any chat has them.
void check_template(const greta_tokenizer* tokenizer, Report* report) {
  constexpr std::string_view kConversation =
      R"({"messages": [{"role": "user", "content": "Hello."},)"
      R"( {"role": "assistant", "content": "Hello! How can I help?"},)"
      R"( {"role": "user", "content": "What is 2 + 2?"}], "add_generation_prompt": true})";
  size_t bytes = 0;
  if (!*greta_tokenizer_template(tokenizer)) return;
  if (greta_tokenizer_render(tokenizer, kConversation.data(), kConversation.size(), 0, nullptr, 0, &bytes) !=
      GRETA_OK)
    report->add(Severity::kWrong, "template", "", greta_error_text());
}

void check_vocabulary(const greta_file* file, Report* report) {
  const auto add = [](void* to, greta_log_level level, const char* text) {
    if (level >= GRETA_LOG_WARNING) static_cast<Report*>(to)->add(Severity::kOdd, "vocabulary", "", text);
  };
  greta_tokenizer* tokenizer = nullptr;
  if (greta_tokenizer_open(file, add, report, &tokenizer) != GRETA_OK)
    report->add(Severity::kRefused, "vocabulary", "", greta_error_text());
  else
    check_template(tokenizer, report);
  greta_tokenizer_close(tokenizer);
}

// The format asks for words of a-z, 0-9 and _ with points between them.
bool is_usual(std::string_view key) {
  if (key.find('.') == key.npos) return false;
  return std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '_' || c == '.' || c == '-';
  });
}

// The unsigned number of a key, or `otherwise`.
uint64_t number_of(const greta_file* file, std::string_view name, uint64_t otherwise) {
  for (uint64_t i = 0; i < greta_file_metadata_count(file); ++i) {
    const char *key = nullptr, *type = nullptr;
    char value[32];
    check(greta_file_metadata(file, i, &key, &type, value, sizeof value));
    if (name == key) return std::strtoull(value, nullptr, 10);
  }
  return otherwise;
}

void check_keys(const greta_file* file, Report* report) {
  report->keys = greta_file_metadata_count(file);
  for (uint64_t i = 0; i < report->keys; ++i) {
    const char* key = nullptr;
    check(greta_file_metadata(file, i, &key, nullptr, nullptr, 0));
    if (!is_usual(key)) report->add(Severity::kOdd, "key", key, "the name is not as the format has them");
  }
}

// Bytes that belong to no tensor. Fewer than the alignment are padding.
void check_places(const greta_file* file, std::vector<greta_tensor_info> tensors, Report* report) {
  std::sort(tensors.begin(), tensors.end(), [](const greta_tensor_info& a, const greta_tensor_info& b) {
    return a.part != b.part ? a.part < b.part : a.offset_bytes < b.offset_bytes;
  });
  const uint64_t alignment = number_of(file, "general.alignment", 32);
  const auto unused = [&](uint64_t bytes, const greta_tensor_info& before) {
    if (bytes >= alignment)
      report->add(Severity::kOdd, "tensor", before.name,
                  format("%llu bytes behind it belong to nothing", static_cast<unsigned long long>(bytes)));
  };
  for (size_t i = 0; i + 1 < tensors.size(); ++i) {
    const uint64_t end = tensors[i].offset_bytes + tensors[i].size_bytes;
    if (tensors[i].part == tensors[i + 1].part) unused(tensors[i + 1].offset_bytes - end, tensors[i]);
  }
  if (tensors.empty() || tensors.back().part != 0) return;  // sizes of parts are not known
  const greta_tensor_info& last = tensors.back();
  unused(greta_file_size_bytes(file) -
             std::min(greta_file_size_bytes(file), last.offset_bytes + last.size_bytes),
         last);
}

// Weights of trained models are far below. Only factors of rotations may stand for infinity.
constexpr double kLargestWeight = 1e6;
// A page cache or a download loses at least as much.
constexpr uint64_t kHoleBytes = 64 << 10;

bool contains(const char* name, const char* part) { return strstr(name, part) != nullptr; }

// How bad it is that a tensor has these zeros, if at all. Tables of tokens have zeros for tokens that never
// came in training, and so have biases.
const Severity* severity_of_zeros(const greta_tensor_info& tensor, const greta_weights_check& found) {
  static constexpr Severity kWrong = Severity::kWrong, kOdd = Severity::kOdd;
  if (!found.zero_blocks) return nullptr;
  const bool mostly = found.zero_blocks * 2 > found.blocks;
  const uint64_t block_bytes = tensor.size_bytes / found.blocks;
  const bool hole = mostly || found.zero_run_blocks * block_bytes >= kHoleBytes;
  const bool table = contains(tensor.name, "embd.weight") || !strcmp(tensor.name, "output.weight") ||
                     contains(tensor.name, ".lora_b");  // which begins with zeros
  const bool gain = contains(tensor.name, "norm.weight");
  if (tensor.dimensions > 1 && !table && hole) return &kWrong;
  if (gain && mostly) return &kWrong;
  return hole ? &kOdd : nullptr;
}

void check_weights(const greta_file* file, uint64_t index, const greta_tensor_info& tensor, Report* report) {
  using Number = unsigned long long;
  auto found = sized<greta_weights_check>();
  if (greta_file_check_weights(file, index, &found) != GRETA_OK) {
    report->add(Severity::kWrong, "tensor", tensor.name, greta_error_text());
    return;
  }
  const char* const what = found.block_weights == 1 ? "weights" : "blocks";
  if (found.bad_blocks)
    report->add(Severity::kWrong, "tensor", tensor.name,
                format("%llu of %llu %s are NaN or infinite, the first is number %llu",
                       static_cast<Number>(found.bad_blocks), static_cast<Number>(found.blocks), what,
                       static_cast<Number>(found.first_bad_block)));
  if (found.largest > kLargestWeight && !contains(tensor.name, "rope_f"))
    report->add(Severity::kWrong, "tensor", tensor.name,
                format("its largest weight is %.3g, far above those of trained models", found.largest));
  if (const Severity* severity = severity_of_zeros(tensor, found))
    report->add(
        *severity, "tensor", tensor.name,
        format("%llu of %llu %s are zeros, %llu of them in a row", static_cast<Number>(found.zero_blocks),
               static_cast<Number>(found.blocks), what, static_cast<Number>(found.zero_run_blocks)));
}

// Fails unless it is a file that can be read: a pipe would be waited for.
uint64_t regular_file_bytes(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) throw Failed(path + ": it cannot be opened: " + strerror(errno));
  if (!S_ISREG(info.st_mode)) throw Failed(path + ": it is no regular file");
  return uint64_t(info.st_size);
}

// What has been read of all that is to be read: each file once to hash it and once for its weights.
struct Reading {
  Progress progress{"verifying"};
  uint64_t done = 0, total = 0;
  void add(uint64_t bytes) {
    if (interrupted()) throw Interrupted();
    done += bytes;
    progress.show_fraction(done, total);
  }
};

std::string hash_file(const std::string& path, Reading* reading) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failed(path + ": it cannot be opened: " + strerror(errno));
  std::vector<char> piece(1 << 20);
  Sha256 hash;
  while (file) {
    file.read(piece.data(), std::streamsize(piece.size()));
    hash.add(piece.data(), size_t(file.gcount()));
    reading->add(uint64_t(file.gcount()));
  }
  if (file.bad()) throw Failed(path + ": it cannot be read: " + strerror(errno));
  return hash.finish();
}

void hash_files(Report* report, Reading* reading) {
  for (const std::string& path : files_of(report->path))
    if (struct stat info; path == report->path || stat(path.c_str(), &info) == 0)  // else the set is refused
      report->files.push_back({path, regular_file_bytes(path), ""});
  for (const HashedFile& file : report->files) reading->total += 2 * file.bytes;
  for (HashedFile& file : report->files) file.sha256 = hash_file(file.path, reading);
}

Report verify_file(const std::string& path) {
  Report report;
  report.path = path;
  Reading reading;
  hash_files(&report, &reading);
  auto source = sized<greta_source>();
  source.path = path.c_str();
  greta_file* opened = nullptr;
  if (greta_file_open(&source, &opened) != GRETA_OK) {
    report.add(Severity::kRefused, "file", "", greta_error_text());
    return report;
  }
  const File file(opened);
  if (const std::optional<AdapterFile> adapter = read_adapter(file.get())) {
    if (!adapter->problem.empty()) report.add(Severity::kRefused, "file", "", adapter->problem);
  } else {
    check_parts(file.get(), &report);
    check_vocabulary(file.get(), &report);
    check_model(file.get(), &report);
  }
  check_keys(file.get(), &report);
  const std::vector<greta_tensor_info> tensors = read_tensors(file.get());
  check_places(file.get(), tensors, &report);
  for (uint64_t i = 0; i < tensors.size(); ++i) {
    check_weights(file.get(), i, tensors[i], &report);
    reading.add(tensors[i].size_bytes);
    ++report.tensors;
    report.bytes += tensors[i].size_bytes;
  }
  return report;
}

std::string as_text(const Report& report) {
  std::string text = format("%s: %llu keys, %llu tensors, %s of weights\n", printable(report.path).c_str(),
                            static_cast<unsigned long long>(report.keys),
                            static_cast<unsigned long long>(report.tensors), size_text(report.bytes).c_str());
  for (const HashedFile& file : report.files)
    text += "  sha256   " + file.sha256 + " " + printable(file.path) + "\n";
  for (const Finding& finding : report.findings) {
    text += format("  %-8s %s", kSeverities[int(finding.severity)], finding.kind);
    if (!finding.name.empty()) text += " " + printable(finding.name);
    text += ": " + printable(finding.text) + "\n";
  }
  return text + (report.is_sound()              ? "the file is sound\n"
                 : report.has(Severity::kWrong) ? "the file is broken\n"
                                                : "the file is refused\n");
}

Json as_json(const Report& report) {
  Json json = {{"path", report.path},       {"sound", report.is_sound()}, {"keys", report.keys},
               {"tensors", report.tensors}, {"bytes", report.bytes},      {"findings", Json::array()}};
  for (const HashedFile& file : report.files)
    json["files"].push_back({{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  for (const Finding& finding : report.findings) {
    json["findings"].push_back({{"severity", kSeverities[int(finding.severity)]},
                                {"kind", finding.kind},
                                {"name", finding.name},
                                {"text", finding.text}});
  }
  return json;
}

int verify(const VerifyOptions& options) {
  options.verbosity.apply();
  const Report report = verify_file(model_path(options.model));
  put(options.json ? json_text(as_json(report)) : as_text(report));
  return report.is_sound() ? kExitOk : kExitFailed;
}

}  // namespace

Action verify_command(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  app.add_flag("--json", options->json, "print JSON");
  add_options(app, options->model);
  add_options(app, options->verbosity);
  app.footer(
      "Reads every weight, plans the model and renders its template. What is refused keeps the model from\n"
      "being opened, what is wrong makes it compute nonsense, and what is odd does neither. The exit code "
      "is\n"
      "1 if something is refused or wrong. SHA-256 sums are for comparison with those of a hub.");
  return [options] { return verify(*options); };
}

}  // namespace greta::cli
