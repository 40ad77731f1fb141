// greta-cli verify: reads all of a GGUF file and says what is wrong or odd in it. No model runs.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <memory>

#include "commands/commands.h"
#include "console.h"
#include "json.h"
#include "model.h"

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
  const char* kind;  // "file", "key", "tensor" or "vocabulary"
  std::string name;  // "" where the kind says all
  std::string text;
};

struct Report {
  std::string path;
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

void check_vocabulary(const greta_file* file, Report* report) {
  const auto add = [](void* to, greta_log_level level, const char* text) {
    if (level >= GRETA_LOG_WARNING) static_cast<Report*>(to)->add(Severity::kOdd, "vocabulary", "", text);
  };
  greta_tokenizer* tokenizer = nullptr;
  if (greta_tokenizer_open(file, add, report, &tokenizer) != GRETA_OK)
    report->add(Severity::kRefused, "vocabulary", "", greta_error_text());
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

std::vector<greta_tensor_info> read_tensors(const greta_file* file) {
  std::vector<greta_tensor_info> all(greta_file_tensor_count(file), sized<greta_tensor_info>());
  for (size_t i = 0; i < all.size(); ++i) check(greta_file_tensor(file, i, &all[i]));
  return all;
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
  if (found.zero_blocks * 2 > found.blocks)
    report->add(Severity::kOdd, "tensor", tensor.name,
                format("%llu of %llu %s are zeros", static_cast<Number>(found.zero_blocks),
                       static_cast<Number>(found.blocks), what));
}

Report verify_file(const std::string& path) {
  Report report;
  report.path = path;
  if (!std::ifstream(path, std::ios::binary)) throw Failed(path + ": it cannot be opened");
  auto source = sized<greta_source>();
  source.path = path.c_str();
  greta_file* opened = nullptr;
  if (greta_file_open(&source, &opened) != GRETA_OK) {
    report.add(Severity::kRefused, "file", "", greta_error_text());
    return report;
  }
  const File file(opened);
  check_parts(file.get(), &report);
  check_vocabulary(file.get(), &report);
  check_keys(file.get(), &report);
  const std::vector<greta_tensor_info> tensors = read_tensors(file.get());
  check_places(file.get(), tensors, &report);
  Progress progress("verifying");
  for (uint64_t i = 0; i < tensors.size(); ++i) {
    if (interrupted()) throw Interrupted();
    progress.show_fraction(report.bytes, greta_file_size_bytes(file.get()));
    check_weights(file.get(), i, tensors[i], &report);
    ++report.tensors;
    report.bytes += tensors[i].size_bytes;
  }
  return report;
}

std::string as_text(const Report& report) {
  std::string text = format("%s: %llu keys, %llu tensors, %s of weights\n", printable(report.path).c_str(),
                            static_cast<unsigned long long>(report.keys),
                            static_cast<unsigned long long>(report.tensors), size_text(report.bytes).c_str());
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
      "Reads every weight. What is refused keeps the model from being opened, what is wrong makes it "
      "compute\n"
      "nonsense, and what is odd does neither. The exit code is 1 if something is refused or wrong.");
  return [options] { return verify(*options); };
}

}  // namespace greta::cli
