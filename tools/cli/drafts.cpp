// Who guesses the next tokens, by the options of a command.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "console.h"
#include "model.h"
#include "slips.h"

namespace greta::cli {

void add_options(CLI::App& app, DraftOptions& options) {
  app.add_option(
         "--spec,--spec-type", options.kind,
         "who guesses tokens, of which several are verified at once, which changes no text: ngram (or "
         "ngram-simple), the text so far; draft-mtp, the layer of the file that drafts tokens; "
         "draft-simple, the model of -md; none")
      ->type_name("KIND")
      ->check(one_of({"none", "ngram", "ngram-simple", "draft-mtp", "draft-simple"}));
  app.add_option("--model-draft,--spec-draft-model", options.model,
                 "a smaller model with the same tokens, which guesses them (--spec draft-simple)")
      ->type_name("FILE");
  app.add_option("--draft-max,--draft,--draft-n,--spec-draft-n-max", options.tokens,
                 "guess at most N tokens for a step; more than 7 are 7")
      ->type_name("N")
      ->check(in_range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();
}

std::string drafter_of(const DraftOptions& options) {
  const bool second = !options.model.empty();
  const std::string kind = !options.kind.empty() ? options.kind : second ? "draft-simple" : "none";
  if (kind == "draft-simple" && !second) throw Misused("--spec draft-simple takes a second model: -md FILE");
  if (kind != "draft-simple" && kind != "none" && second)
    throw Misused("-md FILE guesses tokens with --spec draft-simple, and not with --spec " + kind);
  return options.tokens == 0 ? "none" : kind;
}

greta_draft_options draft_options(const DraftOptions& options) {
  const std::string kind = drafter_of(options);
  auto draft = sized<greta_draft_options>();
  draft.depth = std::min(options.tokens, 7U);
  draft.kind = kind == "none"           ? GRETA_DRAFT_NONE
               : kind == "draft-mtp"    ? GRETA_DRAFT_HEAD
               : kind == "draft-simple" ? GRETA_DRAFT_MODEL
                                        : GRETA_DRAFT_TEXT;
  draft.executor = options.executor;
  return draft;
}

SecondModel open_second_model(greta_runtime* runtime, const std::string& path, const EngineOptions& options,
                              uint32_t tokens) {
  ContextOptions context = options.context;
  context.context = tokens;
  const greta_executor_options sizes = executor_options(context, 0, 1);
  SecondModel second;
  second.model = open_model(runtime, path, !options.model.copy, options.device, sizes);
  greta_executor* executor = nullptr;
  check(greta_executor_open(second.model.get(), &sizes, &executor));
  second.executor.reset(executor);
  return second;
}

}  // namespace greta::cli
