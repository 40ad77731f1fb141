// greta-cli tokenize: prints the ids of a text, or a line for each token. It needs a vocabulary and no
// weights.
#include <memory>

#include "commands/commands.h"
#include "console.h"
#include "model.h"

namespace greta::cli {
namespace {

struct TokenizeOptions {
  ModelOptions model;
  TextOptions text;
  VerbosityOptions verbosity;
  bool ids = false, no_bos = false, no_parse_special = false;
};

int tokenize(const TokenizeOptions& options) {
  options.verbosity.apply();
  const std::optional<std::string> text = read_text(options.text, false);
  if (!text) throw Misused("there is no text to tokenize: give -p TEXT or -f FILE, or pipe a text in");
  const File file = open_file(model_path(options.model));
  const Tokenizer tokenizer = open_tokenizer(file.get());
  const uint32_t flags = (options.no_bos ? 0u : uint32_t{GRETA_ENCODE_BOS}) |
                         (options.no_parse_special ? 0u : uint32_t{GRETA_ENCODE_SPECIAL});
  const std::vector<int32_t> tokens = encode(tokenizer.get(), *text, flags);
  std::string out;
  for (const int32_t& token : tokens) {
    if (options.ids) {
      out += format(&token == tokens.data() ? "%d" : " %d", token);
    } else {
      out += format("%6d  \"%s\"\n", token, printable(decode(tokenizer.get(), &token, 1)).c_str());
    }
  }
  if (options.ids) out += '\n';
  put(out);
  return kExitOk;
}

}  // namespace

Action tokenize_command(CLI::App& app) {
  auto options = std::make_shared<TokenizeOptions>();
  add_options(app, options->model);
  add_options(app, options->text);
  app.add_flag("--ids", options->ids, "print only the ids, on one line");
  app.add_flag("--no-bos", options->no_bos, "do not begin with the BOS token");
  app.add_flag("--no-parse-special", options->no_parse_special,
               "read control tokens that are written out as plain text");
  add_options(app, options->verbosity);
  return [options] { return tokenize(*options); };
}

}  // namespace greta::cli
