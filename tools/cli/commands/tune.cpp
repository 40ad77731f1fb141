// greta-cli tune: finds the fastest kernels on this very device, and keeps them in a table that other
// commands use.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "bench/save.h"
#include "commands/commands.h"
#include "console.h"
#include "json.h"
#include "model.h"
#include "output_file.h"
#include "report/tuning_page.h"
#include "slips.h"

namespace greta::cli {
namespace {

struct TuneOptions {
  VerbosityOptions verbosity;
  DeviceOptions device;
  std::vector<std::string> models;
  std::string shapes, tokens, budget, exported, imported, replayed, report;
  bool again = false, list = false, json = false;
};

// "60s", "5m", "1h"; a number alone is seconds.
uint64_t nanoseconds_of(const std::string& text) {
  if (text.empty()) return 0;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const double seconds = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (end == text.c_str() || seconds == 0 || !(number > 0) || number * seconds > 1e6)
    throw Misused("--budget takes a time such as 60s, 5m or 1h, not \"" + text + "\"");
  return static_cast<uint64_t>(number * seconds * 1e9);
}

std::string table_path(const greta_runtime* runtime) {
  size_t bytes = 0;
  check(greta_runtime_tuning_path(runtime, nullptr, 0, &bytes));
  std::string path(bytes + 1, '\0');
  check(greta_runtime_tuning_path(runtime, path.data(), path.size(), &bytes));
  path.resize(bytes);
  return path;
}

// ---- what is in a table ----

struct Listed {
  bool all = false;  // also what was not chosen
  std::string text, entry;
  Json json = Json::array();
  greta_tuning_candidate usual = {};
};

uint64_t median_of(const greta_tuning_candidate& from) {
  std::vector<uint64_t> ns(from.ns, from.ns + from.sample_count);
  if (ns.empty()) return 0;
  std::sort(ns.begin(), ns.end());
  return ns[ns.size() / 2];
}

std::string name_of(const greta_tuning_candidate& from) {
  std::string name = from.kernel;
  if (from.tile_tokens) name += format(" %ux%u", from.tile, from.tile_tokens);
  return from.splits > 1 ? name + format(" in %u", from.splits) : name;
}

void add_line(Listed& listed, const greta_tuning_candidate& from) {
  if (listed.entry != from.entry) {
    listed.entry = from.entry;
    listed.text += printable(from.entry) + "\n";
  }
  if (!listed.all && !from.chosen) return;
  listed.text += format("  %c %-48s", from.chosen ? '*' : ' ', printable(name_of(from)).c_str());
  if (const uint64_t ns = median_of(from)) listed.text += format(" %10.2f us", static_cast<double>(ns) / 1e3);
  if (from.rounds && from.index)
    listed.text += format("  %.3f [%.3f, %.3f] of the default's", from.ratio, from.low, from.high);
  if (from.index == 0) listed.text += "  default";
  if (std::string(from.verdict) != "right") listed.text += format("  %s", from.verdict);
  if (*from.error && listed.all) listed.text += format("  NMSE %s", printable(from.error).c_str());
  listed.text += "\n";
}

int list_candidate(void* user, const greta_tuning_candidate* from) {
  Listed& listed = *static_cast<Listed*>(user);
  add_line(listed, *from);
  listed.json.push_back({{"entry", from->entry},
                         {"kernel", from->kernel},
                         {"target", from->target},
                         {"tile", from->tile},
                         {"tile_tokens", from->tile_tokens},
                         {"splits", from->splits},
                         {"default", from->index == 0},
                         {"chosen", from->chosen != 0},
                         {"verdict", from->verdict},
                         {"nmse", from->error},
                         {"ns", std::vector<uint64_t>(from->ns, from->ns + from->sample_count)},
                         {"ratio", from->ratio},
                         {"low", from->low},
                         {"high", from->high},
                         {"bytes", from->bytes},
                         {"flops", from->flops}});
  return 0;
}

Listed read_table(const std::string& text, const TuneOptions& options) {
  Listed listed;
  listed.all = options.verbosity.verbose;
  check(greta_tuning_read(text.data(), text.size(), list_candidate, &listed));
  return listed;
}

void list_table(const std::string& text, const TuneOptions& options) {
  const Listed listed = read_table(text, options);
  put(options.json ? json_text(listed.json) : listed.text);
}

int append(void* user, const void* bytes, size_t count) {
  static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), count);
  return 0;
}

std::string read_device_table(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0)
    throw Failed("there is no table of this device yet (" + path + "): greta-cli tune -m FILE makes one");
  return read_file(path);
}

// Chooses again from the samples of a file. No device is asked.
int replay(const TuneOptions& options) {
  const std::string text = read_file(options.replayed);
  std::string again;
  check(greta_tuning_replay(text.data(), text.size(), append, &again));
  if (!options.exported.empty()) write_whole(options.exported, again);
  if (!options.report.empty())
    write_whole(options.report,
                tuning_page("tuning: " + options.replayed, read_table(again, options).json, {}));
  note(again == text ? "the choices are those of the file" : "the choices are not those of the file");
  if (options.list || options.json || (options.exported.empty() && options.report.empty()))
    list_table(again, options);
  return again == text ? kExitOk : kExitFailed;
}

// The page of the device's table, with the roofs as they are now.
void write_report(greta_runtime* runtime, const std::string& text, const TuneOptions& options) {
  const greta_device_info info = describe(runtime);
  Roofs roofs;
  check(greta_runtime_measure_bandwidth(runtime, &roofs.bandwidth));
  check(greta_runtime_measure_arithmetic(runtime, &roofs.arithmetic));
  const std::string title = format("tuning: %s, %s", info.name, info.driver);
  write_whole(options.report, tuning_page(title, read_table(text, options).json, roofs));
}

// ---- tuning ----

struct Tuning {
  Progress progress{"tune"};
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

int show_progress(void* user, const greta_tune_progress* now) {
  static_cast<Tuning*>(user)->progress.show(format("%u/%u %s: %s", now->done, now->entries,
                                                   printable(now->entry).c_str(),
                                                   printable(now->kernel).c_str()));
  return interrupted() ? 1 : 0;
}

std::string summary(const greta_tune_result& r, double seconds) {
  std::string text = format("%u entries, %u of them new; %u do not run their default; %u left; %.0f s",
                            r.entries, r.made, r.changed, r.left, seconds);
  if (r.wrong + r.refused + r.slow + r.hung)
    text += format("; %u kernels were wrong, %u refused, %u too slow to go on, %u hung", r.wrong, r.refused,
                   r.slow, r.hung);
  return text;
}

int tune_device(greta_runtime* runtime, const TuneOptions& options) {
  std::vector<File> files;
  std::vector<const greta_file*> handles;
  for (const std::string& path : options.models) {
    files.push_back(open_file(path));
    handles.push_back(files.back().get());
  }
  const std::string shapes = options.shapes.empty() ? "" : read_file(options.shapes);
  std::vector<uint32_t> tokens;
  if (!options.tokens.empty()) tokens = parse_list("--tokens", options.tokens, 1);
  const std::string disturbed = disturbance();
  Tuning tuning;
  auto tune = sized<greta_tune_options>();
  tune.files = handles.data();
  tune.file_count = static_cast<uint32_t>(handles.size());
  tune.shapes = shapes.c_str();
  tune.tokens = tokens.data();
  tune.token_count = static_cast<uint32_t>(tokens.size());
  tune.budget_ns = nanoseconds_of(options.budget);
  tune.again = options.again ? 1 : 0;
  tune.on_progress = show_progress;
  tune.user = &tuning;
  auto result = sized<greta_tune_result>();
  const greta_status status = greta_runtime_tune(runtime, &tune, &result);
  tuning.progress.clear();
  if (!interrupted() || status != GRETA_ERROR_CANCELLED) check(status);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - tuning.start;
  note((interrupted() ? "stopped: " : "") + summary(result, seconds.count()));
  if (!disturbed.empty()) note("times are uncertain: " + disturbed);
  return interrupted() ? kExitInterrupted : kExitOk;
}

int tune(const TuneOptions& options) {
  options.verbosity.apply();
  if (!options.replayed.empty()) return replay(options);
  const bool tunes = !options.models.empty() || !options.shapes.empty();
  if (!tunes && options.imported.empty() && options.exported.empty() && !options.list &&
      options.report.empty())
    throw Misused(
        "tune needs -m FILE.gguf or --shapes FILE, or --list, --export, --import, --replay or --report");
  (void)nanoseconds_of(options.budget);
  const Runtime runtime = open_runtime(options.device);
  say_later_notes();
  const std::string path = table_path(runtime.get());
  if (!options.imported.empty()) {
    const std::string text = read_file(options.imported);
    check(greta_runtime_tuning_import(runtime.get(), text.data(), text.size()));
    note("the table is in " + path);
  }
  const int code = tunes ? tune_device(runtime.get(), options) : kExitOk;
  if (options.list || options.json) list_table(read_device_table(path), options);
  if (!options.exported.empty()) write_whole(options.exported, read_device_table(path));
  if (!options.report.empty()) write_report(runtime.get(), read_device_table(path), options);
  return code;
}

}  // namespace

Action tune_command(CLI::App& app) {
  auto options = std::make_shared<TuneOptions>();
  app.add_option("-m,--model", options->models, "tune the launches of this model; may be repeated")
      ->type_name("FILE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option(
         "--shapes", options->shapes,
         "tune the products in this file, one a line: \"q4_k 14336x4096\", or \"q4_k 14336x4096 gate\"")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_option("--tokens", options->tokens,
                 "tune steps of so many tokens (default: 1, 512, 8, 4, 2, 16, 32, 64)")
      ->type_name("LIST")
      ->check(not_empty());
  app.add_option("--budget", options->budget,
                 "begin nothing after this time, such as 60s, 5m or 1h; a later run goes on")
      ->type_name("TIME")
      ->check(not_empty());
  app.add_flag("--again", options->again, "also tune what the table has already");
  app.add_flag("--list", options->list, "print what was chosen, and with -v every candidate");
  app.add_flag("--json", options->json, "print the table as JSON");
  app.add_option("--export", options->exported, "write the table to this file")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_option("--import", options->imported, "use the table in this file, which must be of this device")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_option("--report", options->report, "write a page about the table to this file")
      ->type_name("FILE.html")
      ->check(not_empty());
  app.add_option("--replay", options->replayed,
                 "choose again from the timings in this file; no device is asked")
      ->type_name("FILE")
      ->check(not_empty());
  add_options(app, options->device);
  add_options(app, options->verbosity);
  app.footer(
      "All commands use the table of their device; --no-tuning leaves it out. It is a file in the cache "
      "folder, and may be deleted.\nCtrl-C keeps what is known. docs/tuning.md says how candidates are "
      "compared.");
  return [options] { return tune(*options); };
}

}  // namespace greta::cli
