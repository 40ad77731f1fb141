// greta-cli template: prints a chat template, or what it makes of a context. No model has to run.
#include <ctime>
#include <memory>

#include "commands/commands.h"
#include "console.h"
#include "model.h"

namespace greta::cli {
namespace {

struct TemplateOptions {
  ModelOptions model;
  VerbosityOptions verbosity;
  std::string file, context;
};

// Seconds since 1970 on a clock that shows local time, for templates that write the date.
int64_t local_seconds() {
  const time_t now = time(nullptr);
  tm local = {};
  localtime_r(&now, &local);
  return int64_t(now) + local.tm_gmtoff;
}

// Calls write(text, capacity, &bytes) for the size, then for the text. A failure names the file at fault,
// where the library says "the template" or "the context".
template <class Write>
std::string rendering(const std::string& template_name, const std::string& context_name, Write&& write) {
  std::string text;
  size_t bytes = 0;
  for (int pass = 0; pass < 2; ++pass) {
    if (write(text.data(), text.size(), &bytes) != GRETA_OK) {
      std::string error = greta_error_text();
      for (const auto& [what, name] : {std::pair("the context: ", context_name),
                                       {"the template: ", template_name},
                                       {"the chat template: ", template_name}})
        if (error.starts_with(what)) error.replace(0, std::string_view(what).size(), name + ": ");
      throw Failed(error);
    }
    text.resize(bytes);
  }
  return text;
}

// To a pipe byte for byte; on a terminal what comes next begins a line.
void put_text(const std::string& text) {
  put(text);
  if (stdout_is_terminal() && !text.ends_with('\n')) put("\n");
}

int print_template(const TemplateOptions& options) {
  options.verbosity.apply();
  const bool with_context = !options.context.empty();
  const bool from_stdin = options.context == "-";
  const std::string context_name = from_stdin ? "standard input" : options.context;
  std::string context;
  if (with_context) context = read_file(from_stdin ? "/dev/stdin" : options.context);
  const int64_t now_s = local_seconds();

  if (!options.file.empty()) {
    const std::string text = read_file(options.file);
    if (!with_context) {
      put_text(text);
      return kExitOk;
    }
    put_text(rendering(options.file, context_name, [&](char* to, size_t capacity, size_t* bytes) {
      return greta_template_render(text.data(), text.size(), context.data(), context.size(), now_s, to,
                                   capacity, bytes);
    }));
    return kExitOk;
  }
  const std::string path = model_path(options.model);
  const File file = open_file(path);
  const Tokenizer tokenizer = open_tokenizer(file.get());
  const std::string text = greta_tokenizer_template(tokenizer.get());
  if (text.empty()) say(path + ": there is no chat template that works, so a plain format stands in");
  if (!with_context) {
    put_text(text);
    return kExitOk;
  }
  put_text(rendering(path, context_name, [&](char* to, size_t capacity, size_t* bytes) {
    return greta_tokenizer_render(tokenizer.get(), context.data(), context.size(), now_s, to, capacity,
                                  bytes);
  }));
  return kExitOk;
}

}  // namespace

Action template_command(CLI::App& app) {
  auto options = std::make_shared<TemplateOptions>();
  auto* file = app.add_option("--file", options->file, "take the template from this file")->type_name("FILE");
  add_options(app, options->model);
  app.get_option("--model")->excludes(file);
  app.add_option("--context", options->context,
                 "render it with this JSON file: messages, tools, add_generation_prompt, ...; - is stdin")
      ->type_name("FILE");
  add_options(app, options->verbosity);
  app.footer(
      "Prints what the template makes of the context, or the template itself without --context.\n"
      "With -m, bos_token, eos_token and the like are the model's where the context has none.");
  return [options] { return print_template(*options); };
}

}  // namespace greta::cli
