// greta-cli profile: runs a prompt and an answer as they really run, and says where the time goes.
#include <algorithm>
#include <map>
#include <memory>

#include "bench/build_commit.h"
#include "bench/save.h"
#include "commands/commands.h"
#include "console.h"
#include "json.h"
#include "model.h"
#include "output_file.h"
#include "plan/step_plan.h"
#include "slips.h"
#include "trace/summary.h"
#include "trace/workload.h"

namespace greta::cli {
namespace {

struct ProfileOptions {
  EngineOptions engine;
  TextOptions text;
  uint32_t predict = 64, streams = 1, requests = 0;
  bool chat = false, host_only = false;
  std::string trace, output = "md";
};

// What was run, beside its spans.
struct Profiled {
  greta_model_info model;
  greta_device_info device;
  Roofs roofs;
  Written written;
  std::string name;
  Trace trace;
  std::string disturbed;  // what makes times uncertain
  Json machine;
  std::vector<std::string> missing;                 // what could not be read, and why
  std::map<std::string, std::string> machine_code;  // of kernels, where the driver tells of it
};

constexpr char kPrompt[] = "Once upon a time";

std::string as_message(const greta_tokenizer* tokenizer, const std::string& text) {
  greta_message message = {};
  message.role = "user";
  message.content = text.c_str();
  std::string prompt;
  size_t bytes = 0;
  for (int pass = 0; pass < 2; ++pass) {
    check(greta_tokenizer_chat(tokenizer, &message, 1, 1, prompt.data(), prompt.size(), &bytes));
    prompt.resize(bytes);
  }
  return prompt;
}

std::vector<int32_t> tokens_of(const ProfileOptions& options, const greta_tokenizer* tokenizer,
                               Recorder& recorder) {
  std::string text = read_text(options.text, true).value_or(kPrompt);
  if (options.chat) {
    const ProgramSpan span(recorder, "template");
    text = as_message(tokenizer, text);
  }
  const ProgramSpan span(recorder, "tokenise");
  auto tokens = encode(tokenizer, text, GRETA_ENCODE_BOS | GRETA_ENCODE_SPECIAL);
  if (tokens.empty()) throw Failed("the prompt is empty, and this model has no token that begins a text");
  return tokens;
}

// Tokens in a second, as each step has ended.
TraceCounter speed_of(const std::vector<TraceSpan>& spans) {
  TraceCounter counter{"tokens/s", {}};
  for (const TraceSpan& span : spans)
    if (span.track == Track::Steps)
      counter.values.push_back(
          {span.end_ns, 1e9 * span.tokens / static_cast<double>(std::max<uint64_t>(span.ns(), 1))});
  return counter;
}

// Tokens that the steps have fed so far, which the cache holds.
TraceCounter cached_of(const std::vector<TraceSpan>& spans) {
  TraceCounter counter{"tokens in the cache", {}};
  double tokens = 0;
  for (const TraceSpan& span : spans)
    if (span.track == Track::Steps) counter.values.push_back({span.end_ns, tokens += span.tokens});
  return counter;
}

// Registers of the kernels of a decode step and of the largest step of the prompt.
void read_machine_code(const ProfileOptions& options, greta_runtime* runtime, const std::string& path,
                       const greta_executor_options& executor, Profiled* out) {
  const File file = open_file(path, !options.engine.model.copy);
  auto plan = sized<greta_memory_plan>();
  check(greta_memory_plan_make(runtime, file.get(), &executor, &plan));
  const auto prompt = static_cast<uint32_t>(std::min<size_t>(plan.step_tokens, out->written.prompt_tokens));
  for (const uint32_t tokens : {1u, std::max(prompt, 1u)})
    for (const PlanLine& line :
         read_step_plan(runtime, file.get(), options.engine.device, executor, tokens, 0, true).lines)
      if (!line.machine_code.empty()) out->machine_code[line.kernel] = line.machine_code;
  const uint64_t from = out->trace.spans.empty() ? 0 : out->trace.spans.front().begin_ns;
  for (const auto& [name, bytes] : {std::pair("working memory, MiB", plan.arena_bytes + plan.tables_bytes),
                                    {"cache, MiB", plan.cache_bytes}})
    out->trace.counters.push_back({name, {{from, static_cast<double>(bytes) / (1 << 20)}}});
}

Profiled run_profiled(ProfileOptions options) {
  Sampler sampler;
  Recorder recorder;
  options.engine.device.on_span = Recorder::on_span;
  options.engine.device.span_user = &recorder;
  options.engine.device.span_launches = !options.host_only;
  const std::string path = model_path(options.engine.model);
  Profiled profiled;
  profiled.disturbed = disturbance();
  Runtime runtime;
  {
    const ProgramSpan span(recorder, "open device");
    runtime = open_runtime(options.engine.device, path);
  }
  profiled.device = describe(runtime.get());
  profiled.machine = machine_now(runtime.get());
  sampler.watch(profiled.device.pci);
  Model model;
  {
    const ProgramSpan span(recorder, "open model");
    greta_executor_options executor = executor_options(options.engine.context, 0, 1);
    executor.sequences = options.streams;
    model = open_model(runtime.get(), path, !options.engine.model.copy, options.engine.device, executor);
  }
  profiled.model = describe(model.get());
  profiled.name = path.substr(path.find_last_of('/') + 1);
  const auto tokens = tokens_of(options, greta_model_tokenizer(model.get()), recorder);
  say_later_notes();
  const Workload work = {options.engine.context, tokens, options.predict, options.streams, options.requests};
  {
    const ProgramSpan span(recorder, "generate");
    profiled.written = run_workload(work, model.get(), sampler);
  }
  profiled.trace.counters = sampler.take(&profiled.missing);
  profiled.trace.spans = recorder.take();
  if (!options.requests) profiled.trace.counters.push_back(cached_of(profiled.trace.spans));
  profiled.trace.counters.push_back(speed_of(profiled.trace.spans));
  read_machine_code(options, runtime.get(), path, executor_of(work, profiled.model.context), &profiled);
  profiled.trace.program = "greta-cli profile: " + profiled.name + " on " + profiled.device.id;
  check(greta_runtime_measure_bandwidth(runtime.get(), &profiled.roofs.bandwidth));
  check(greta_runtime_measure_arithmetic(runtime.get(), &profiled.roofs.arithmetic));
  return profiled;
}

Json timeline_json(const std::vector<TraceSpan>& spans) {
  constexpr size_t kMost = 12000;  // what a report shows
  Json list = Json::array();
  const uint64_t first = spans.empty() ? 0 : spans[0].begin_ns;
  for (size_t i = 0; i < std::min(spans.size(), kMost); ++i) {
    const TraceSpan& span = spans[i];
    list.push_back({line_name(span.track, span.line), span.stage.empty() ? span.name : span.stage,
                    span.begin_ns - first, span.ns(), span.stage.empty() ? "" : span.name});
  }
  return list;
}

Json to_json(const Profiled& profiled, const Summary& summary, const ProfileOptions& options) {
  Json json = {{"kind", "greta profile"},
               {"build_commit", std::string(kBuildCommit)},
               {"model_filename", printable(profiled.name)},
               {"model_type", std::string(profiled.model.architecture) + " " + profiled.model.type},
               {"model_size", profiled.model.weights_bytes},
               {"model_n_params", profiled.model.parameters},
               {"device", printable(profiled.device.name)},
               {"device_id", std::string(profiled.device.id)},
               {"driver", printable(profiled.device.driver)},
               {"streams", options.streams},
               {"requests", options.requests},
               {"n_prompt", profiled.written.prompt_tokens},
               {"n_gen", profiled.written.generated_tokens},
               {"prompt_ns", profiled.written.prompt_ns},
               {"generate_ns", profiled.written.generate_ns},
               {"launches", options.host_only ? "replayed" : "one by one"},
               {"bandwidth_gb_s", static_cast<double>(profiled.roofs.bandwidth) * 1e-9},
               {"arithmetic_tflop_s", static_cast<double>(profiled.roofs.arithmetic) * 1e-12},
               {"spans", profiled.trace.spans.size()},
               {"counters", counters_json(profiled.trace.counters)},
               {"missing", profiled.missing},
               {"machine_code", profiled.machine_code}};
  json.update(profiled.machine);
  json["disturbed"] = profiled.disturbed.empty() ? Json(nullptr) : Json(profiled.disturbed);
  json.update(summary_json(summary, profiled.roofs));
  json["timeline"] = timeline_json(profiled.trace.spans);
  return json;
}

std::string to_text(const Profiled& profiled, const Summary& summary, const ProfileOptions& options) {
  const auto rate = [](double tokens, uint64_t ns) {
    return 1e9 * tokens / static_cast<double>(std::max<uint64_t>(ns, 1));
  };
  std::string text =
      format("%s on %s, %u stream%s: %zu tokens read at %.1f t/s, %llu written at %.1f t/s\n\n",
             printable(profiled.name).c_str(), printable(profiled.device.name).c_str(), options.streams,
             options.streams == 1 ? "" : "s", profiled.written.prompt_tokens,
             rate(static_cast<double>(profiled.written.prompt_tokens), profiled.written.prompt_ns),
             static_cast<unsigned long long>(profiled.written.generated_tokens),
             rate(static_cast<double>(profiled.written.generated_tokens), profiled.written.generate_ns));
  text += summary_text(summary, profiled.roofs);
  text += counters_text(profiled.trace.counters);
  for (const std::string& missing : profiled.missing) text += "Not there: " + printable(missing) + "\n";
  if (!profiled.machine_code.empty()) text += "\n";
  for (const auto& [kernel, code] : profiled.machine_code) text += printable(kernel + ": " + code) + "\n";
  if (!options.host_only)
    text += format("\nThe device's clock may stand %.1f us beside the host's.\n",
                   static_cast<double>(summary.clock_error_ns) * 1e-3);
  if (summary.out_of_place > 0)
    text += format("%llu spans do not lie in their step: a clock has jumped.\n",
                   static_cast<unsigned long long>(summary.out_of_place));
  return text;
}

void write_trace(const std::string& path, const Trace& trace) {
  write_whole(path, path.ends_with(".json") ? chrome_json(trace) : perfetto_trace(trace));
  note("the timeline is in " + path);
}

int profile_run(const ProfileOptions& options) {
  options.engine.verbosity.apply();
  const Profiled profiled = run_profiled(options);
  const Summary summary = sum_up(profiled.trace.spans, options.streams);
  if (!options.trace.empty()) write_trace(options.trace, profiled.trace);
  put(options.output == "json" ? json_text(to_json(profiled, summary, options))
                               : to_text(profiled, summary, options));
  if (!profiled.disturbed.empty()) note("times are uncertain: " + profiled.disturbed);
  return kExitOk;
}

}  // namespace

Action profile_command(CLI::App& app) {
  auto options = std::make_shared<ProfileOptions>();
  add_options(app, options->text);
  app.add_option("-n,--predict", options->predict, "write N tokens, also behind an end of the text")
      ->type_name("N")
      ->check(in_range(int64_t{1}, 100000))
      ->capture_default_str();
  app.add_option("--parallel", options->streams, "write N texts at once")
      ->type_name("N")
      ->check(in_range(int64_t{1}, 256))
      ->capture_default_str();
  app.add_flag("--as-message", options->chat, "put the prompt into the model's chat template");
  app.add_option("--requests", options->requests,
                 "have a service answer N requests with the same prompt, --parallel of them at once")
      ->type_name("N")
      ->check(in_range(int64_t{1}, 1024));
  app.add_option("--trace", options->trace,
                 "write the timeline to FILE: Chrome's form if its name ends in .json, else Perfetto's")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_flag("--host-only", options->host_only,
               "leave the device alone: captured plans are replayed, and no launch is timed");
  app.add_option("-o,--output", options->output, "form of the output; report makes a page of json")
      ->type_name("FORM")
      ->check(one_of({"md", "json"}))
      ->capture_default_str();
  add_options(app, options->engine);
  app.footer(
      "No barrier is added, and tokens are the same as ever. Launches between two barriers may overlap and "
      "are one span.\nThe trace opens in ui.perfetto.dev, chrome://tracing and speedscope.");
  return [options] { return profile_run(*options); };
}

}  // namespace greta::cli
