// greta-cli bench: measures how fast prompts are read and tokens are generated, with llama-bench's columns
// and keys, and how much of the measured memory bandwidth or arithmetic is used.
#include <algorithm>
#include <chrono>
#include <memory>

#include "bench/against.h"
#include "bench/compare.h"
#include "bench/drafting.h"
#include "bench/drawing.h"
#include "bench/history.h"
#include "bench/preset.h"
#include "bench/report.h"
#include "bench/save.h"
#include "bench/serving.h"
#include "bench/tokens.h"
#include "bench/warm_up.h"
#include "commands/commands.h"
#include "console.h"
#include "model.h"
#include "slips.h"

namespace greta::cli {
namespace {

struct BenchOptions {
  bool profile = false;
  VerbosityOptions verbosity;
  ModelOptions model;
  DeviceOptions device;
  ContextOptions context;
  std::string prompt = "512", generate = "128", pair, depth = "0", threads = "0";
  std::string key_types = "f16", value_types = "f16", batch = "0";
  std::string output = "md", output_err = "none", draw, save;
  std::string streams;  // "": no service is measured
  bool mix = false;
  uint32_t step_ms = 0;
  DraftBenchOptions drafts;
  uint32_t repetitions = 5;
  std::vector<std::string> words;  // "compare A B", "history DIR"
  std::string preset, against, report;
  CompareOptions compare;
};

struct Test {
  uint32_t prompt, generate, depth;  // of the first two one is 0, but with -pg
};

// "512,128,1024,64" -> {512, 128}, {1024, 64}
std::vector<std::pair<uint32_t, uint32_t>> make_pairs(const std::string& text) {
  if (text.empty()) return {};
  const std::vector<uint32_t> numbers = parse_list("-pg", text, 1);
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (size_t i = 0; i + 1 < numbers.size(); i += 2) pairs.emplace_back(numbers[i], numbers[i + 1]);
  if (numbers.size() % 2 != 0)
    throw Misused("-pg takes the length of a prompt and a number of tokens, such as 512,128, not \"" + text +
                  "\" (see greta-cli bench -h)");
  return pairs;
}

std::vector<Test> make_tests(const BenchOptions& options) {
  std::vector<Test> tests;
  const auto prompts = parse_list("-p", options.prompt, 0);
  const auto lengths = parse_list("-n", options.generate, 0);
  const auto pairs = make_pairs(options.pair);
  for (uint32_t depth : parse_list("-d", options.depth, 0)) {
    for (uint32_t prompt : prompts) {
      if (prompt > 0) tests.push_back({prompt, 0, depth});
    }
    for (uint32_t length : lengths) {
      if (length > 0) tests.push_back({0, length, depth});
    }
    for (const auto& [prompt, length] : pairs) tests.push_back({prompt, length, depth});
  }
  if (tests.empty())
    throw Misused("there is nothing to measure, since -p and -n are both 0 (see greta-cli bench -h)");
  return tests;
}

std::vector<ServeTest> make_serve_tests(const BenchOptions& options) {
  std::vector<ServeTest> tests;
  if (options.streams.empty() && (options.mix || options.step_ms > 0))
    throw Misused("--mix and --step-ms go with -np (see greta-cli bench -h)");
  if (options.streams.empty()) return tests;
  if (options.profile || !options.pair.empty() || options.depth != "0")
    throw Misused("-np goes with -p and -n, and not with --profile, -pg and -d (see greta-cli bench -h)");
  for (uint32_t streams : parse_list("-np", options.streams, 1))
    for (uint32_t prompt : parse_list("-p", options.prompt, options.mix ? 1 : 0))
      for (uint32_t length : parse_list("-n", options.generate, 2))
        tests.push_back({streams, prompt, length, options.mix, options.repetitions, options.step_ms});
  return tests;
}

std::vector<DraftTest> make_draft_tests(const BenchOptions& options) {
  if (options.drafts.any() && (options.profile || !options.pair.empty() || !options.streams.empty()))
    throw Misused(
        "--draft goes with -n and -d, and not with --profile, -pg and -np (see greta-cli bench -h)");
  return make_draft_tests(options.drafts, options.generate, options.depth);
}

void feed(greta_session* session, const std::vector<int32_t>& tokens) {
  const float* row = nullptr;
  check(greta_session_eval(session, tokens.data(), tokens.size(), GRETA_ROWS_LAST, &row));
}

// Runs `count` steps of one token each: the first token is given, the others are drawn.
void generate(greta_session* session, int32_t first, uint32_t count) {
  auto options = sized<greta_generate_options>();
  options.max_tokens = count;
  options.ignore_end = 1;
  auto result = sized<greta_generate_result>();
  check(greta_session_generate(session, &first, 1, &options, &result));
  if (result.generated_tokens != count) throw Failed("the context is too small for this test");
}

// Sets row->samples_ns.
void measure(greta_model* model, const BenchOptions& options, const Test& test, Progress& progress,
             BenchRow* row) {
  const greta_model_info& info = row->model;
  ContextOptions context = options.context;
  context.context = int64_t{test.depth} + test.prompt + test.generate;
  const Session session = open_session(model, executor_options(context, info.context, 1));
  progress.clear();
  say_later_notes();
  const std::vector<int32_t> past = some_tokens(info.vocab_size, test.depth);
  const std::vector<int32_t> prompt = some_tokens(info.vocab_size, std::max(test.prompt, 1u));
  if (test.depth > 0) feed(session.get(), past);

  const std::string name = test_name(test.prompt, test.generate, test.depth);
  const auto run = [&](const std::string& which) {
    progress.show(name + ", " + which);
    check(greta_session_truncate(session.get(), test.depth));
    const auto start = std::chrono::steady_clock::now();
    if (test.prompt > 0) feed(session.get(), prompt);
    if (test.generate > 0) generate(session.get(), prompt[0], test.generate);
    const auto time = std::chrono::steady_clock::now() - start;
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  };
  WarmUp warm_up;
  while (warm_up.goes_on()) warm_up.add(run("warming up"));
  progress.clear();
  warm_up.tell(name, row);
  row->samples_ns.clear();
  for (uint32_t r = 1; r <= options.repetitions; ++r)
    row->samples_ns.push_back(run(format("%u of %u", r, options.repetitions)));
}

// An error names the flags of the test that failed.
std::string flags_text(const Test& test) {
  std::string text;
  if (test.prompt > 0 && test.generate > 0) {
    text = format("-pg %u,%u", test.prompt, test.generate);
  } else {
    text = test.prompt > 0 ? format("-p %u", test.prompt) : format("-n %u", test.generate);
  }
  return test.depth > 0 ? text + format(" -d %u", test.depth) : text;
}

void add_stage(void* user, const greta_profile_stage* stage) {
  static_cast<std::vector<StageWork>*>(user)->push_back(
      {stage->stage, stage->kernel, stage->launches, stage->ns, stage->bytes, stage->flops});
}

// Times the kernels of one step of the test, or of as much of its prompt as one step takes, when it runs for
// the second time.
BenchProfile profile(greta_runtime* runtime, greta_model* model, const BenchRow& row,
                     const BenchOptions& options, const Test& test) {
  ContextOptions context = options.context;
  context.context = int64_t{test.depth} + std::max(test.prompt, 1u);
  const greta_executor_options executor = executor_options(context, row.model.context, 1);
  auto plan = sized<greta_memory_plan>();
  check(greta_memory_plan_make(runtime, open_file(row.path, !options.model.copy).get(), &executor, &plan));
  const Session session = open_session(model, executor);
  say_later_notes();
  if (test.depth > 0) feed(session.get(), some_tokens(row.model.vocab_size, test.depth));
  BenchProfile result;
  result.tokens = std::min(std::max(test.prompt, 1u), plan.step_tokens);
  const std::vector<int32_t> tokens = some_tokens(row.model.vocab_size, result.tokens);
  for (int run = 0; run < 2; ++run) {
    result.works.clear();
    check(greta_session_truncate(session.get(), test.depth));
    check(greta_session_profile(session.get(), tokens.data(), tokens.size(), add_stage, &result.works));
  }
  return result;
}

void run_test(greta_runtime* runtime, greta_model* model, const BenchOptions& options, const Test& test,
              Progress& progress, BenchRow* row) {
  row->prompt = test.prompt;
  row->generate = test.generate;
  row->depth = test.depth;
  row->time = time_text();
  measure(model, options, test, progress, row);
  row->profile = {};
  if (options.profile && (test.prompt == 0 || test.generate == 0))  // steps of both kinds are not one
    row->profile = profile(runtime, model, *row, options, test);
}

// "f16,q8_0" -> {"f16", "q8_0"}
std::vector<std::string> parse_types(const char* option, const std::string& text) {
  std::vector<std::string> types;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find_first_of(",\n", at), text.size());
    types.push_back(text.substr(at, end - at));
    const std::string& type = types.back();
    if (type != "f32" && type != "f16" && type != "q8_0")
      throw Misused(
          format("%s takes f32, f16 or q8_0, with commas between them, not \"%s\" (see greta-cli bench -h)",
                 option, type.c_str()));
    at = end + 1;
  }
  return types;
}

// Every combination of the types of the cache and of the size of a step.
std::vector<ContextOptions> make_contexts(const BenchOptions& options) {
  std::vector<ContextOptions> contexts;
  for (const std::string& key : parse_types("-ctk", options.key_types))
    for (const std::string& value : parse_types("-ctv", options.value_types))
      for (const uint32_t tokens : parse_list("-b", options.batch, 0)) {
        ContextOptions context;
        context.key_type = key;
        context.value_type = value;
        context.step_tokens =
            std::min(tokens, 512u);  // llama-bench's 2048 stands for as many as there can be
        contexts.push_back(context);
      }
  return contexts;
}

void run_tests(greta_runtime* runtime, greta_model* model, const BenchOptions& options,
               const std::vector<Test>& tests, BenchRow* row, Progress& progress, BenchReports& reports) {
  for (const Test& test : tests) {
    try {
      run_test(runtime, model, options, test, progress, row);
    } catch (const Failed& error) {
      throw Failed(flags_text(test) + ": " + error.what());
    }
    progress.clear();
    reports.add(*row);
  }
}

void run_tests(greta_model* model, const BenchOptions& options, const std::vector<ServeTest>& tests,
               BenchRow* row, Progress& progress, BenchReports& reports) {
  for (const ServeTest& test : tests) {
    const std::string name = test_name(test);
    progress.show(name);
    row->prompt = test.prompt;
    row->generate = test.generate;
    row->depth = 0;
    row->time = time_text();
    ServeNumbers numbers;
    try {
      numbers = measure(model, row->model, options.context, test);
    } catch (const Failed& error) {
      throw Failed(name + ": " + error.what());
    }
    progress.clear();
    reports.add(*row, numbers, test.streams, name);
  }
}

// Opens the model anew with the layer that drafts tokens if the tests need it: without them its memory is
// free and steps run ahead.
void run_tests(greta_runtime* runtime, Model model, const BenchOptions& options,
               const std::vector<ContextOptions>& contexts, const std::vector<DraftTest>& tests,
               BenchRow* row, BenchReports& reports) {
  std::vector<DraftedText> plain;
  for (const ContextOptions& context : contexts)
    for (const DraftTest& test : tests)
      plain.push_back(write_plain(model.get(), row->model, context, test, options.repetitions));
  EngineOptions engine;
  engine.model = options.model;
  engine.device = options.device;
  if (tests[0].kind == "draft-mtp") {
    model.reset();
    model = open_model(runtime, row->path, !options.model.copy, options.device,
                       wanted_executor(options.context, row->path), true);
  }
  size_t at = 0;
  for (const ContextOptions& context : contexts)
    for (const DraftTest& test : tests) {
      row->key_type = context.key_type;
      row->value_type = context.value_type;
      row->batch = context.step_tokens;
      row->prompt = 0;
      row->generate = test.generate;
      row->depth = test.depth;
      row->time = time_text();
      engine.context = context;
      SecondModel second;
      if (const std::string& path = options.drafts.second; !path.empty())
        second = open_second_model(runtime, path, engine, test.depth + 1 + test.generate);
      const DraftNumbers numbers =
          measure(model.get(), context, test, options.repetitions, second.executor.get(), plain[at++], row);
      reports.add(*row, numbers, test_name(test));
    }
}

int history(const BenchOptions& options) {
  if (options.words.size() != 2)
    throw Misused("bench history takes a folder of saved results (see greta-cli bench -h)");
  if (options.output != "md" && options.output != "json" && options.output != "svg")
    throw Misused("bench history prints md, json or svg, not " + options.output +
                  " (see greta-cli bench -h)");
  bench_history(options.words[1], options.compare.threshold, options.output, options.report);
  return kExitOk;
}

int compare(const BenchOptions& options) {
  CompareOptions compare = options.compare;
  if (options.words[0] == "history") return history(options);
  if (options.words[0] != "compare")
    throw Misused("bench does not know \"" + options.words[0] + "\" (see greta-cli bench -h)");
  if (options.words.size() != 3)
    throw Misused("bench compare takes two files of results (see greta-cli bench -h)");
  if (options.output != "md" && options.output != "json")
    throw Misused("bench compare prints md or json, not " + options.output + " (see greta-cli bench -h)");
  compare.a = options.words[1];
  compare.b = options.words[2];
  compare.output = options.output;
  return compare_benches(compare);
}

// Gives both programs what they both know, and greta-cli what it alone knows.
int against(const BenchOptions& options) {
  if (options.profile || !options.streams.empty() || !options.save.empty())
    throw Misused("--against goes with -p, -n, -pg, -d, -r and -t alone (see greta-cli bench -h)");
  if (options.output != "md" && options.output != "json")
    throw Misused("--against prints md or json, not " + options.output + " (see greta-cli bench -h)");
  AgainstOptions pair{
      options.against, {"-m", model_path(options.model)}, {"--device", options.device.device}};
  const auto add = [&](const char* flag, const std::string& value) {
    pair.words.insert(pair.words.end(), {flag, value});
  };
  add("-p", options.prompt), add("-n", options.generate), add("-d", options.depth);
  add("-r", std::to_string(options.repetitions));
  add("-ctk", options.key_types), add("-ctv", options.value_types);
  if (!options.pair.empty()) add("-pg", options.pair);
  if (options.threads != "0") add("-t", options.threads);
  CompareOptions compare = options.compare;
  compare.output = options.output;
  return bench_against(pair, compare);
}

int bench(BenchOptions options) {
  options.verbosity.apply();
  if (!options.words.empty()) return compare(options);
  if (!options.against.empty()) return against(options);
  if (!options.draw.empty()) {
    put(bench_svg(Json::parse(read_file(options.draw), nullptr, false)));
    return kExitOk;
  }
  for (const std::string& form : {options.output, options.output_err}) {
    if (options.profile && (form == "csv" || form == "sql"))
      throw Misused("--profile does not fit into the lines of -o " + form + ": use -o json, jsonl or md");
  }
  const std::vector<ContextOptions> contexts = make_contexts(options);
  const std::vector<ServeTest> serve_tests = make_serve_tests(options);
  const std::vector<DraftTest> draft_tests = make_draft_tests(options);
  const bool plain = serve_tests.empty() && draft_tests.empty();
  const std::vector<Test> tests = plain ? make_tests(options) : std::vector<Test>();
  const std::vector<uint32_t> threads = parse_list("-t", options.threads, 0);
  const std::string path = model_path(options.model);
  BenchReports reports{BenchReport(options.output), BenchReport(options.output_err)};
  Progress progress("bench");
  std::string device_name;
  const std::string disturbed = disturbance();
  for (uint32_t thread_count : threads) {
    DeviceOptions device = options.device;
    device.threads = thread_count;
    const greta_executor_options wanted = wanted_executor(options.context, path);
    const Runtime runtime = open_runtime(device, path, wanted);
    Model model = open_model(runtime.get(), path, !options.model.copy, device, wanted);
    BenchRow row = row_of(runtime.get(), model.get(), !options.save.empty());
    row.path = path;
    row.preset = options.preset;
    row.disturbed = disturbed;
    device_name = row.device.name;
    row.threads = thread_count > 0 ? thread_count : row.device.unit_count;
    progress.show("memory bandwidth");
    check(greta_runtime_measure_bandwidth(runtime.get(), &row.roofs.bandwidth));
    if (options.profile || options.output == "svg") {
      progress.show("arithmetic");
      check(greta_runtime_measure_arithmetic(runtime.get(), &row.roofs.arithmetic));
    }
    for (const ContextOptions& context : contexts) {
      options.context = context;
      row.key_type = context.key_type;
      row.value_type = context.value_type;
      row.batch = context.step_tokens;
      run_tests(runtime.get(), model.get(), options, tests, &row, progress, reports);
      run_tests(model.get(), options, serve_tests, &row, progress, reports);
    }
    progress.clear();
    if (!draft_tests.empty())
      run_tests(runtime.get(), std::move(model), options, contexts, draft_tests, &row, reports);
  }
  put(reports.out.finish());
  write_error(reports.err.finish());
  if (!disturbed.empty()) note("times are uncertain: " + disturbed);
  if (!options.save.empty())
    note("saved as " + save_benches(options.save, device_name, reports.json.finish(), reports.csv_text));
  return kExitOk;
}

void add_comparison(CLI::App& app, BenchOptions* options) {
  app.add_option("--preset", options->preset,
                 "measure what is usual: smoke (seconds), standard, perf, verify; flags beside it count")
      ->type_name("NAME")
      ->check(one_of({"smoke", "standard", "perf", "verify"}));
  app.add_option("--against", options->against,
                 "run this program and another greta-cli or llama-bench in turn, and compare them")
      ->type_name("PROGRAM")
      ->check(not_empty());
  app.add_option("words", options->words)
      ->expected(0, 3)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--threshold", options->compare.threshold,
                 "with compare: the loss in percent above which the exit code is 3")
      ->type_name("PERCENT")
      ->check(in_range(0.0, 100.0))
      ->capture_default_str();
  app.add_option("--report", options->report, "with history: also write a page to this file")
      ->type_name("FILE.html")
      ->check(not_empty());
  app.add_flag("--force", options->compare.force, "with compare: also another model or device");
  app.footer(
      "greta-cli bench compare A B says of two files of results (-o json, --save) whether B is faster.\n"
      "greta-cli bench history DIR says how the results that --save keeps there changed.");
}

}  // namespace

Action bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  add_options(app, options->model);
  const auto list = [&](const char* name, std::string& value, const char* about) {
    app.add_option(name, value, about)
        ->type_name("X[,X]")
        ->capture_default_str()
        ->multi_option_policy(CLI::MultiOptionPolicy::Join);
  };
  list("-p,--n-prompt", options->prompt, "lengths of the prompts to read; 0: none");
  list("-n,--n-gen", options->generate, "numbers of tokens to generate; 0: none");
  list("--prompt-and-gen", options->pair,
       "lengths of a prompt and of the text after it, measured together: 512,128");
  list("-d,--n-depth", options->depth, "numbers of tokens that are in the context before");
  list("--parallel", options->streams,
       "measure a service with so many streams at once, each with a prompt of -p and a text of -n tokens");
  app.add_flag("--mix", options->mix,
               "with -np: prompts of -p tokens arrive, one after the other, while the streams go on");
  app.add_option("--step-ms", options->step_ms, "with -np: what a step should take while texts are generated")
      ->type_name("N")
      ->check(in_range(int64_t{1}, 60000));
  add_options(app, options->drafts);
  list("-t,--threads", options->threads, "threads of the CPU device; 0: one for each processor");
  app.add_option("-r,--repetitions", options->repetitions, "measure each test N times")
      ->type_name("N")
      ->check(in_range(int64_t{1}, 1000))
      ->capture_default_str();
  app.add_flag("--profile", options->profile,
               "also time the stages of one step, with rates and percent of the measured roof");
  list("--cache-type-k", options->key_types, "types of the cached keys: f32, f16, q8_0");
  list("--cache-type-v", options->value_types, "types of the cached values");
  list("-b,--batch-size", options->batch, "the most tokens of a step, up to 512; 0: chosen by speed");
  app.add_option("-o,--output", options->output, "form of the output")
      ->type_name("FORM")
      ->check(one_of({"md", "csv", "json", "jsonl", "sql", "svg"}))
      ->capture_default_str();
  app.add_option("--output-err", options->output_err, "print the results on stderr, too, in this form")
      ->type_name("FORM")
      ->check(one_of({"none", "md", "csv", "json", "jsonl", "sql"}))
      ->capture_default_str();
  app.add_option("--draw", options->draw, "measure nothing: draw the results that -o json wrote to this file")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_option("--save", options->save,
                 "also keep the results in this folder, as JSON and CSV, with what the machine was like")
      ->type_name("DIR")
      ->check(not_empty());
  app.add_flag_callback("--json", [options] { options->output = "json"; }, "the same as -o json");
  add_comparison(app, options.get());
  add_device(app, options->device);
  add_placement(app, options->device);
  add_mapping(app, options->model);
  add_options(app, options->verbosity);
  return [options, &app] {
    use_preset(app, options->preset,
               {options->prompt, options->generate, options->depth, options->repetitions});
    return bench(*options);
  };
}

}  // namespace greta::cli
