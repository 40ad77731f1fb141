// The functions of greta.h that tune a device.
#include <algorithm>

#include "api/handles.h"
#include "selftest/selftest.h"

using namespace greta;

// Tokens of the steps that are tuned, the most usual ones first.
static constexpr uint32_t kTokens[] = {1, 512, 8, 4, 2, 16, 32, 64};

static Status need_folder(const greta_runtime* runtime) {
  GRETA_TRY(need_device(runtime));
  return runtime->tuning_folder.empty() ? fail(Code::Argument, "the runtime has no tuning_folder") : Status{};
}

static Status read_tokens(const greta_tune_options& o, std::vector<uint32_t>* out) {
  out->assign(std::begin(kTokens), std::end(kTokens));
  if (!o.token_count) return {};
  GRETA_TRY(need(o.tokens, "tokens"));
  out->assign(o.tokens, o.tokens + o.token_count);
  for (const uint32_t tokens : *out)
    if (tokens == 0 || tokens > kMaxStepTokens)
      return fail(Code::Argument, "a step of %u tokens, expected 1 to %u", tokens, uint32_t(kMaxStepTokens));
  return {};
}

// Adds the launches of a model on the first device. Those of an entry that is there already make it heavier.
static Status add_launches(greta_runtime& runtime, const greta_file& file, const ExecutorOptions& given,
                           std::span<const uint32_t> tokens, std::vector<selftest::Tunable>* out) {
  Source source;
  GRETA_TRY(file.source.open(&source));
  Model model;
  GRETA_TRY(describe_placed(runtime, std::move(source), nullptr, given, Log{}, &model));
  const std::vector<uint64_t> free = beside_weights(model, runtime.free_bytes(model));
  uint32_t first = 0;
  while (first < model.devices.size() && model.devices[first].number != 0) ++first;
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    std::vector<LoneLaunch> launches;
    GRETA_TRY(lone_launches(model, given, free, tokens[i], first, &launches));
    for (LoneLaunch& launch : launches) {
      if (!multiplies(lead_call(launch.calls).op)) continue;
      const uint64_t weight = uint64_t(tokens.size() - i) << 32;  // tokens that are named first come first
      const std::string key = entry_key(launch.calls, launch.bucket);
      const auto same = std::ranges::find_if(
          *out, [&](const selftest::Tunable& other) { return entry_key(other.calls, other.bucket) == key; });
      const uint64_t kilobytes = lead_of(launch.calls).cost(launch.calls, launch.bucket, 0).bytes >> 10;
      if (same == out->end())
        out->push_back({std::move(launch.calls), launch.bucket, weight + kilobytes});
      else
        same->weight += kilobytes;
    }
  }
  return {};
}

static greta_tune_result to_c(const selftest::TuneTally& from) {
  greta_tune_result result = {};
  result.struct_size = sizeof result;
  result.entries = from.entries;
  result.made = from.made;
  result.there = from.there;
  result.changed = from.changed;
  result.left = from.left;
  result.right = from.right;
  result.wrong = from.wrong;
  result.refused = from.refused;
  result.slow = from.slow;
  result.hung = from.hung;
  return result;
}

// Connects the tuning with the table's file and the caller.
static selftest::TuneWork work_of(const greta_tune_options& o, TableFile& file, const TuningTable& table) {
  selftest::TuneWork work;
  work.budget_ns = o.budget_ns;
  work.hung = [&](const std::string& entry, const KernelChoice& choice) {
    return file.ended_in(entry, choice);
  };
  work.trying = [&](const std::string& entry, const KernelChoice* choice) {
    return file.note(entry, choice);
  };
  work.save = [&] { return file.write(table); };
  work.go_on = [&](const selftest::TuneProgress& now) {
    greta_tune_progress progress = {};
    progress.struct_size = sizeof progress;
    progress.done = now.done;
    progress.entries = now.entries;
    progress.entry = now.entry;
    progress.kernel = now.kernel;
    return !o.on_progress || call_back("on_progress", [&] { return o.on_progress(o.user, &progress); }) == 0;
  };
  return work;
}

greta_status greta_runtime_tune(greta_runtime* runtime, const greta_tune_options* given,
                                greta_tune_result* out_result) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_folder(runtime));
    if (out_result) GRETA_TRY(check_result(out_result));
    greta_tune_options o;
    GRETA_TRY(read_options(given, &o));
    std::vector<uint32_t> tokens;
    GRETA_TRY(read_tokens(o, &tokens));
    if (o.file_count) GRETA_TRY(need(o.files, "files"));
    ExecutorOptions executor;
    GRETA_TRY(read_executor_options(o.executor, &executor));
    RuntimeDevice& device = runtime->first();
    GRETA_TRY(device.kernels->try_matrices(runtime->log));
    std::vector<selftest::Tunable> launches;
    if (o.shapes) GRETA_TRY(selftest::read_shapes(*device.device, o.shapes, tokens, &launches));
    for (uint32_t i = 0; i < o.file_count; ++i) {
      GRETA_TRY(need(o.files[i], "a file"));
      GRETA_TRY(add_launches(*runtime, *o.files[i], executor, tokens, &launches));
    }
    TableFile file(runtime->tuning_folder, table_of(device.device->info()));
    GRETA_TRY(file.lock());
    TuningTable table;
    std::string why;
    file.read(&table, &why);
    if (!why.empty()) runtime->log(LogLevel::Warning, "%s", why.c_str());
    selftest::TuneWork work = work_of(o, file, table);
    GRETA_TRY(read_flag(o.again, "again", &work.again));
    selftest::TuneTally tally;
    const Status status =
        selftest::tune(*device.device, &device.kernels->refused(), std::move(launches), work, &table, &tally);
    if (out_result && (status.ok() || status.code == Code::Cancelled))
      GRETA_TRY(write_result(to_c(tally), out_result));
    return status;
  });
}

greta_status greta_runtime_tuning_path(const greta_runtime* runtime, char* text, size_t capacity,
                                       size_t* out_bytes) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_folder(runtime));
    const TableFile file(runtime->tuning_folder, table_of(runtime->first().device->info()));
    return give_text(file.path(), text, capacity, out_bytes);
  });
}

static double median(std::vector<uint64_t> ns) {
  if (ns.empty()) return 0;
  std::ranges::sort(ns);
  return double(ns[(ns.size() - 1) / 2] + ns[ns.size() / 2]) / 2;
}

greta_status greta_runtime_try_kernel(greta_runtime* runtime, const greta_kernel_options* given,
                                      greta_kernel_result* out_result) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(runtime));
    GRETA_TRY(check_result(out_result));
    greta_kernel_options o;
    GRETA_TRY(read_options(given, &o));
    GRETA_TRY(need(o.name, "name"));
    if (!o.code != !o.code_bytes) return fail(Code::Argument, "code and code_bytes do not belong together");
    if (o.n && (o.depth == 0 || o.tokens == 0 || o.tokens > kMaxStepTokens))
      return fail(Code::Argument, "a product of %u x %u with %u rows, of which at most %u are taken", o.n,
                  o.depth, o.tokens, uint32_t(kMaxStepTokens));
    selftest::KernelTried tried;
    GRETA_TRY(selftest::try_kernel(
        *runtime->first().device,
        {o.name, {static_cast<const uint8_t*>(o.code), o.code_bytes}, o.n, o.depth, o.tokens}, &tried));
    greta_kernel_result result = {};
    result.struct_size = sizeof result;
    result.passed = tried.failure.empty();
    result.kernels = tried.kernels;
    result.launches = tried.launches;
    result.rounds = uint32_t(tried.built_ns.size());
    format_text(result.failure, sizeof result.failure, "%s",
                tried.failure.empty() ? tried.untimed.c_str() : tried.failure.c_str());
    format_text(result.machine_code, sizeof result.machine_code, "%s", tried.machine_code.c_str());
    result.ns = median(tried.built_ns);
    result.given_ns = median(tried.given_ns);
    if (Ratio ratio; ratio_of(tried.given_ns, tried.built_ns, &ratio))
      result.ratio = ratio.median, result.low = ratio.low, result.high = ratio.high;
    result.error = tried.error;
    result.bytes = tried.bytes;
    result.flops = tried.flops;
    return write_result(result, out_result);
  });
}

static Status read_table(const char* text, size_t bytes, TuningTable* out) {
  GRETA_TRY(need(text, "text"));
  return TuningTable::read({text, bytes}, out);
}

greta_status greta_runtime_tuning_import(greta_runtime* runtime, const char* text, size_t bytes) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_folder(runtime));
    TuningTable table;
    GRETA_TRY(read_table(text, bytes, &table));
    const TableOf here = table_of(runtime->first().device->info());
    if (table.of != here) {
      const bool device = table_name_of_device(table.of) == table_name_of_device(here);
      return fail(Code::Unsupported, "the table is of %s, driver %s%s", table.of.device.c_str(),
                  table.of.driver.c_str(),
                  !device                          ? "; this is another device"
                  : table.of.driver != here.driver ? "; this device has another driver"
                                                   : ", but of other kernels than those of this version");
    }
    TableFile file(runtime->tuning_folder, here);
    GRETA_TRY(file.lock());
    return file.write(table);
  });
}

static bool tell_entry(const TunedEntry& entry, int (*on_candidate)(void*, const greta_tuning_candidate*),
                       void* user) {
  const size_t chosen = choose_candidate(entry);
  for (size_t i = 0; i < entry.candidates.size(); ++i) {
    const Measured& from = entry.candidates[i];
    greta_tuning_candidate to = {};
    to.struct_size = sizeof to;
    to.index = uint32_t(i);
    to.chosen = i == chosen;
    to.tile = from.candidate.tile;
    to.tile_tokens = from.candidate.tile_tokens;
    to.splits = from.candidate.splits;
    to.entry = entry.key.c_str();
    to.kernel = from.candidate.kernel.c_str();
    to.target = from.candidate.target.c_str();
    to.verdict = verdict_name(from.verdict);
    to.error = from.error.c_str();
    to.ns = from.ns.data();
    to.sample_count = uint32_t(from.ns.size());
    Ratio ratio;
    if (ratio_of(from.ns, entry.candidates[0].ns, &ratio)) {
      to.rounds = uint32_t(std::min(from.ns.size(), entry.candidates[0].ns.size()));
      to.ratio = ratio.median;
      to.low = ratio.low;
      to.high = ratio.high;
    }
    to.bytes = entry.bytes;
    to.flops = entry.flops;
    if (call_back("on_candidate", [&] { return on_candidate(user, &to); })) return false;
  }
  return true;
}

greta_status greta_tuning_read(const char* text, size_t bytes,
                               int (*on_candidate)(void* user, const greta_tuning_candidate* from),
                               void* user) {
  return fenced([&]() -> Status {
    if (!on_candidate) return fail(Code::Argument, "on_candidate is NULL");
    TuningTable table;
    GRETA_TRY(read_table(text, bytes, &table));
    for (const TunedEntry& entry : table.entries())
      if (!tell_entry(entry, on_candidate, user))
        return fail(Code::Cancelled, "the callback stopped at %s", entry.key.c_str());
    return {};
  });
}

greta_status greta_tuning_replay(const char* text, size_t bytes, greta_write_callback write, void* user) {
  return fenced([&]() -> Status {
    if (!write) return fail(Code::Argument, "write is NULL");
    TuningTable table;
    GRETA_TRY(read_table(text, bytes, &table));
    const std::string again = table.text();
    CWriter writer{write, user};
    return CWriter::write(&writer, again.data(), again.size())
               ? fail(Code::Cancelled, "the callback stopped the writing")
               : Status{};
  });
}
