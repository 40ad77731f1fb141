// greta-cli run: the model continues a text.
#include <CLI/Config.hpp>
#include <memory>

#include "adapters.h"
#include "commands/commands.h"
#include "console.h"
#include "model.h"
#include "plan/step_plan.h"
#include "prompt_cache.h"
#include "slips.h"

namespace greta::cli {
namespace {

struct RunOptions {
  EngineOptions engine;
  TextOptions text;
  SamplingOptions sampling;
  PromptCacheOptions cache;
  ShiftOptions shift;
  int64_t predict = -1;
  bool ignore_end = false, no_display_prompt = false;
};

// How many tokens a shift never forgets. llama.cpp, too, always keeps the one that begins a text.
uint32_t kept_tokens(const ShiftOptions& options, const greta_tokenizer* tokenizer, size_t prompt_tokens) {
  if (options.keep < 0) return static_cast<uint32_t>(prompt_tokens);
  return static_cast<uint32_t>(options.keep) + (adds_bos(tokenizer) ? 1 : 0);
}

int write_token(void*, int32_t, const char* text, size_t bytes) {
  return write_words({text, bytes}) && !interrupted() ? 0 : 1;
}

int show_prompt_progress(void* user, uint32_t done, uint32_t total) {
  if (done < total) {
    static_cast<Progress*>(user)->show_fraction(done, total);
  } else {
    static_cast<Progress*>(user)->clear();
  }
  return interrupted() ? 1 : 0;
}

void report(const greta_generate_result& result, uint32_t context, bool shift) {
  const auto speed = [](uint32_t tokens, uint64_t ns) {
    return ns == 0 ? 0.0 : 1e9 * tokens / static_cast<double>(ns);
  };
  if (result.forgotten_tokens > 0)
    note(format("the context of %u tokens was full: %u tokens were forgotten (-c sets another length)",
                context, result.forgotten_tokens));
  if (result.reason == GRETA_STOP_CONTEXT)
    note(format("the context of %u tokens is full: -c sets another length%s", context,
                shift ? "" : ", and --context-shift forgets its older half and goes on"));
  detail(format("prompt %u tokens, %.2f t/s; generated %u tokens, %.2f t/s", result.prompt_tokens,
                speed(result.prompt_tokens, result.prompt_ns), result.generated_tokens,
                speed(result.generated_tokens, result.generate_ns)));
  if (result.drafted_tokens > 0)
    detail(format("%u of %u guessed tokens were right; %.2f tokens for each step", result.accepted_tokens,
                  result.drafted_tokens,
                  static_cast<double>(result.generated_tokens) / std::max(result.draw_steps, 1U)));
  if (result.draft_stopped > 0) note("memory lacked for guessed tokens: the text went on without");
}

// Tells the plan of a step that writes a token behind the prompt.
void tell_plan(const EngineOptions& options, const Engine& engine, size_t prompt_tokens) {
  const File file = open_file(model_path(options.model, false), !options.model.copy);
  const greta_executor_options executor = executor_options(options.context, engine.info.context, 1);
  StepPlan plan = read_step_plan(engine.runtime.get(), file.get(), options.device, executor, 1,
                                 static_cast<uint32_t>(prompt_tokens));
  measure_roofs(engine.runtime.get(), &plan);
  write_error(step_plan_text(plan, true));
}

int run(const RunOptions& options) {
  options.engine.verbosity.apply();
  const std::optional<std::string> prompt = read_text(options.text, true);
  if (!prompt) throw Misused("there is no text to continue: give -p TEXT or -f FILE, or pipe a text in");
  SamplingOptions sampling = options.sampling;
  const Engine engine = open_engine(options.engine, true, &sampling);
  greta_session* const session = engine.session.get();
  use_model_sampling(engine.model.get(), &sampling);
  set_sampling(session, sampling);
  const auto tokens = encode(engine.tokenizer(), *prompt, GRETA_ENCODE_BOS | GRETA_ENCODE_SPECIAL);
  if (tokens.empty()) throw Failed("the prompt is empty, and this model has no token that begins a text");
  PromptCache cache(options.cache, session);
  if (verbosity() == Verbosity::kVerbose) tell_plan(options.engine, engine, tokens.size());
  // Before the prompt is written, since a Ctrl-C that this notices would leave its line open.
  const uint32_t kept = kept_tokens(options.shift, engine.tokenizer(), tokens.size());
  say_later_notes();
  const size_t held = cache.keep_common(tokens);

  if (!options.no_display_prompt) write_words(*prompt);
  check_output();
  auto result = sized<greta_generate_result>();
  greta_status status = GRETA_OK;
  if (options.predict == 0) {
    status =
        greta_session_eval(session, tokens.data() + held, tokens.size() - held, GRETA_ROWS_NONE, nullptr);
  } else {
    Progress progress("prompt");
    auto generate = sized<greta_generate_options>();
    generate.max_tokens = options.predict < 0 ? 0 : static_cast<uint32_t>(options.predict);
    generate.ignore_end = options.ignore_end ? 1 : 0;
    generate.on_token = write_token;
    generate.on_prompt = show_prompt_progress;
    generate.user = &progress;
    std::vector<std::string> texts;
    std::vector<const char*> stops;
    for (const std::string& stop : sampling.stops) texts.push_back(unescape(stop));
    for (const std::string& text : texts) stops.push_back(text.c_str());
    generate.stop_strings = stops.data();
    generate.stop_count = stops.size();
    generate.shift = options.shift.shift ? 1 : 0;
    generate.keep_tokens = kept;
    status = greta_session_generate(session, tokens.data() + held, tokens.size() - held, &generate, &result);
  }
  if (status == GRETA_OK) {  // This is so after Ctrl-C, too, and when nobody reads stdout any longer.
    write_words("\n");
    cache.save(options.cache.all ? UINT32_MAX : static_cast<uint32_t>(tokens.size()));
  }
  end_words();
  check_output();
  check(status);
  report(result, greta_session_context(session), options.shift.shift);
  return kExitOk;
}

}  // namespace

Action run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  add_options(app, options->text);
  app.add_option("-n,--predict", options->predict, "generate at most N tokens; -1: go on to the end")
      ->type_name("N")
      ->check(in_range(int64_t{-1}, INT32_MAX))
      ->capture_default_str();
  app.add_flag("--ignore-eos", options->ignore_end, "go on after the model has ended its text");
  add_shift(app, options->shift, "forget the older half of a full context, and go on",
            "end the text where the context is full, which is the default");
  app.add_option("--keep", options->shift.keep,
                 "with --context-shift: never forget the first N tokens of the prompt; -1: all of it")
      ->type_name("N")
      ->check(in_range(int64_t{-1}, INT32_MAX))
      ->capture_default_str();
  app.add_flag("--no-display-prompt", options->no_display_prompt,
               "write only the generated text to stdout, without the prompt");
  add_options(app, options->cache);
  app.add_flag("--prompt-cache-all", options->cache.all, "keep the generated text in the file, too");
  add_options(app, options->sampling);
  add_options(app, options->engine);
  add_options(app, options->engine.adapters);
  app.footer("Ctrl-C stops the text. A second Ctrl-C ends the program.");
  return [options] { return run(*options); };
}

}  // namespace greta::cli
