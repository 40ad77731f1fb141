// greta-cli logits: feeds given tokens and writes the logits after each of them, as float32 [tokens][vocab].
#include <algorithm>
#include <charconv>
#include <memory>

#include "adapters.h"
#include "commands/commands.h"
#include "console.h"
#include "logits/npy.h"
#include "model.h"

namespace greta::cli {
namespace {

constexpr uint32_t kRowsAtOnce = 512;  // rows of logits that are held at a time

struct LogitsOptions {
  EngineOptions engine;
  std::string ids, output;
};

std::vector<int32_t> parse_ids(const std::string& text) {
  std::vector<int32_t> ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    at = std::find_if_not(at, end, [](char c) { return c == ' ' || c == ',' || c == '\n' || c == '\t'; });
    if (at == end) break;
    int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc()) throw Misused("--ids: \"" + std::string(at, end) + "\" is not a number");
    ids.push_back(id);
    at = next;
  }
  if (ids.empty()) throw Misused("--ids: at least one token is needed");
  return ids;
}

int logits(const LogitsOptions& options) {
  options.engine.verbosity.apply();
  const std::vector<int32_t> ids = parse_ids(options.ids);
  ContextOptions context = options.engine.context;
  if (context.context < 0) context.context = static_cast<int64_t>(ids.size());

  const std::string path = model_path(options.engine.model);
  const greta_executor_options wanted = wanted_executor(options.engine.context, path);
  const Runtime runtime = open_runtime(options.engine.device, path, wanted);
  const Model model =
      open_model(runtime.get(), path, !options.engine.model.copy, options.engine.device, wanted);
  const greta_model_info info = describe(model.get());
  for (int32_t id : ids) {
    if (id < 0 || static_cast<uint32_t>(id) >= info.vocab_size) {
      throw Failed(format("--ids: %d is not a token: the vocabulary has %u tokens", id, info.vocab_size));
    }
  }
  const Adapters adapters = open_adapters(model.get(), options.engine.adapters);
  const Session session = open_session(model.get(), executor_options(context, info.context, kRowsAtOnce));
  use_adapters(session.get(), adapters);
  NpyWriter out(options.output, ids.size(), info.vocab_size);
  say_later_notes();
  for (size_t done = 0; done < ids.size();) {
    const size_t count = std::min<size_t>(kRowsAtOnce, ids.size() - done);
    const float* rows = nullptr;
    check(greta_session_eval(session.get(), ids.data() + done, count, GRETA_ROWS_ALL, &rows));
    out.write(rows, count);
    done += count;
  }
  out.finish();
  return kExitOk;
}

}  // namespace

Action logits_command(CLI::App& app) {
  auto options = std::make_shared<LogitsOptions>();
  app.add_option("--ids", options->ids,
                 "feed these tokens, with spaces or commas between them; no BOS token is added")
      ->type_name("IDS")
      ->required();
  app.add_option("-o,--output", options->output, "write a float32 array [tokens][vocabulary] to this file")
      ->type_name("OUT.npy")
      ->required();
  add_options(app, options->engine);
  add_options(app, options->engine.adapters);
  app.get_option("--ctx-size")
      ->description("length of the context in tokens; 0: the model's [the number of ids]");
  return [options] { return logits(*options); };
}

}  // namespace greta::cli
