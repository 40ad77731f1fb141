// greta-cli profile: runs a prompt and an answer as they really run, and says where the time goes.
#include <algorithm>
#include <memory>

#include "bench/build_commit.h"
#include "bench/save.h"
#include "commands/commands.h"
#include "console.h"
#include "json.h"
#include "model.h"
#include "output_file.h"
#include "slips.h"
#include "trace/summary.h"

namespace greta::cli {
namespace {

struct ProfileOptions {
  EngineOptions engine;
  TextOptions text;
  uint32_t predict = 64, streams = 1;
  bool chat = false, host_only = false;
  std::string trace, output = "md";
};

// What was run, beside its spans.
struct Profiled {
  greta_model_info model;
  greta_device_info device;
  Roofs roofs;
  size_t prompt_tokens = 0;
  uint64_t generated_tokens = 0, prompt_ns = 0, generate_ns = 0;
  std::string name;
  Trace trace;
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

struct CloseExecutor {
  void operator()(greta_executor* p) const { greta_executor_close(p); }
};

int count_token(void* user, int32_t token, const char*, size_t) {
  if (token >= 0) ++*static_cast<uint64_t*>(user);
  return interrupted() ? 1 : 0;
}

// Writes all streams at once, each after the same prompt.
void write_streams(const ProfileOptions& options, greta_model* model, const std::vector<int32_t>& tokens,
                   Profiled* out) {
  const uint32_t model_context = describe(model).context;
  greta_executor_options wanted = executor_options(options.engine.context, model_context, 1);
  wanted.sequences = options.streams;
  if (options.streams > 1 && wanted.cache_tokens == 0)
    wanted.cache_tokens =
        options.streams * static_cast<uint32_t>((tokens.size() + options.predict) / 64 + 1) * 64;
  greta_executor* opened = nullptr;
  check(greta_executor_open(model, &wanted, &opened));
  const std::unique_ptr<greta_executor, CloseExecutor> executor(opened);
  auto write = sized<greta_generate_options>();
  write.max_tokens = options.predict;
  write.ignore_end = 1;
  write.on_token = count_token;
  write.user = &out->generated_tokens;
  std::vector<Session> sessions;
  std::vector<greta_generate_result> results(options.streams, sized<greta_generate_result>());
  std::vector<greta_generate_item> items(options.streams);
  auto session_options = sized<greta_session_options>();
  session_options.executor = executor.get();
  for (uint32_t i = 0; i < options.streams; ++i) {
    greta_session* session = nullptr;
    check(greta_session_open(model, &session_options, &session));
    sessions.emplace_back(session);
    items[i].session = session;
    items[i].tokens = tokens.data();
    items[i].count = tokens.size();
    items[i].options = &write;
    items[i].result = &results[i];
  }
  set_active_session(sessions[0].get());
  check(greta_batch_generate(items.data(), items.size()));
  for (const greta_generate_item& item : items)
    if (item.status != GRETA_OK) throw Failed(item.error);
  out->prompt_tokens = tokens.size() * options.streams;
  for (const greta_generate_result& result : results) {
    out->prompt_ns = std::max(out->prompt_ns, result.prompt_ns);
    out->generate_ns = std::max(out->generate_ns, result.generate_ns);
  }
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

Profiled run_profiled(ProfileOptions options) {
  Recorder recorder;
  options.engine.device.on_span = Recorder::on_span;
  options.engine.device.span_user = &recorder;
  options.engine.device.span_launches = !options.host_only;
  const std::string path = model_path(options.engine.model);
  Profiled profiled;
  Runtime runtime;
  {
    const ProgramSpan span(recorder, "open device");
    runtime = open_runtime(options.engine.device, path);
  }
  profiled.device = describe(runtime.get());
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
  {
    const ProgramSpan span(recorder, "generate");
    write_streams(options, model.get(), tokens, &profiled);
  }
  profiled.trace.spans = recorder.take();
  profiled.trace.counters.push_back(speed_of(profiled.trace.spans));
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
    list.push_back({track_name(span.track), span.stage.empty() ? span.name : span.stage,
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
               {"n_prompt", profiled.prompt_tokens},
               {"n_gen", profiled.generated_tokens},
               {"prompt_ns", profiled.prompt_ns},
               {"generate_ns", profiled.generate_ns},
               {"launches", options.host_only ? "replayed" : "one by one"},
               {"bandwidth_gb_s", static_cast<double>(profiled.roofs.bandwidth) * 1e-9},
               {"arithmetic_tflop_s", static_cast<double>(profiled.roofs.arithmetic) * 1e-12},
               {"spans", profiled.trace.spans.size()}};
  json.update(machine_now());
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
             options.streams == 1 ? "" : "s", profiled.prompt_tokens,
             rate(static_cast<double>(profiled.prompt_tokens), profiled.prompt_ns),
             static_cast<unsigned long long>(profiled.generated_tokens),
             rate(static_cast<double>(profiled.generated_tokens), profiled.generate_ns));
  text += summary_text(summary, profiled.roofs);
  if (!options.host_only)
    text += format("\nThe device's clock may stand %.1f us beside the host's.\n",
                   static_cast<double>(summary.clock_error_ns) * 1e-3);
  if (summary.out_of_place > 0)
    text += format("%llu spans do not lie in their step: a clock has jumped.\n",
                   static_cast<unsigned long long>(summary.out_of_place));
  return text;
}

void write_trace(const std::string& path, const Trace& trace) {
  const std::string bytes = path.ends_with(".json") ? chrome_json(trace) : perfetto_trace(trace);
  OutputFile file(path + ".part");
  file.write(bytes.data(), bytes.size());
  file.finish_as(path);
  note("the timeline is in " + path);
}

int profile_run(const ProfileOptions& options) {
  options.engine.verbosity.apply();
  const Profiled profiled = run_profiled(options);
  const Summary summary = sum_up(profiled.trace.spans, options.streams);
  if (!options.trace.empty()) write_trace(options.trace, profiled.trace);
  put(options.output == "json" ? json_text(to_json(profiled, summary, options))
                               : to_text(profiled, summary, options));
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
