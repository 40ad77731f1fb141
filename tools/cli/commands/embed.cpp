// greta-cli embed: prints a vector for each text, as llama-embedding does.
#include <memory>

#include "adapters.h"
#include "commands/commands.h"
#include "console.h"
#include "json.h"
#include "model.h"

namespace greta::cli {
namespace {

struct EmbedOptions {
  EngineOptions engine;
  TextOptions text;
  std::string pooling, form, separator = "\n";
  int64_t normalize = 2;
};

greta_pooling pooling_of(const std::string& name) {
  if (name == "mean") return GRETA_POOLING_MEAN;
  if (name == "cls") return GRETA_POOLING_FIRST;
  return name == "last" ? GRETA_POOLING_LAST : GRETA_POOLING_DEFAULT;
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = separator.empty() ? text.npos : text.find(separator, at);
    parts.push_back(text.substr(at, end == text.npos ? end : end - at));
    if (end == text.npos) break;
    at = end + separator.size();
  }
  return parts;
}

std::string text_of(const std::vector<std::vector<float>>& vectors, const std::string& form) {
  Json all = Json::array();
  std::string lines;
  for (size_t i = 0; i < vectors.size(); ++i) {
    if (form == "array") all.push_back(vectors[i]);
    if (form == "json") all.push_back({{"object", "embedding"}, {"index", i}, {"embedding", vectors[i]}});
    lines += format("embedding %zu:", i);
    for (const float value : vectors[i]) lines += format(" %9.6f", static_cast<double>(value));
    lines += '\n';
  }
  if (form == "array") return json_text(all, -1);
  return form == "json" ? json_text({{"object", "list"}, {"data", all}}) : lines;
}

int embed(const EmbedOptions& options) {
  const std::optional<std::string> text = read_text(options.text, true);
  if (!text) throw Misused("there is no text: give -p TEXT or -f FILE, or pipe a text in");
  if (options.normalize != 2 && options.normalize != -1)
    throw Misused("--embd-normalize is 2 (a length of 1) or -1 (as it is)");
  const Engine engine = open_engine(options.engine);
  auto how = sized<greta_embed_options>();
  how.pooling = pooling_of(options.pooling);
  how.raw = options.normalize == -1;
  std::vector<std::vector<float>> vectors;
  for (const std::string& part : split(*text, options.separator)) {
    const std::vector<int32_t> tokens =
        encode(engine.tokenizer(), part, GRETA_ENCODE_BOS | uint32_t{GRETA_ENCODE_SPECIAL});
    const float* vector = nullptr;
    check(greta_session_truncate(engine.session.get(), 0));
    check(greta_session_embed(engine.session.get(), tokens.data(), tokens.size(), &how, &vector));
    vectors.emplace_back(vector, vector + engine.info.width);
  }
  say_later_notes();
  put(text_of(vectors, options.form));
  return kExitOk;
}

}  // namespace

Action embed_command(CLI::App& app) {
  auto options = std::make_shared<EmbedOptions>();
  add_options(app, options->text);
  app.add_option("--pooling", options->pooling,
                 "what the vector is made of: mean (all tokens), cls (the first), last [what the file says]")
      ->type_name("NAME")
      ->check(CLI::IsMember({"mean", "cls", "last"}));
  app.add_option("--embd-normalize", options->normalize, "2: vectors of length 1; -1: vectors as they are")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--embd-output-format", options->form, "array or json, in place of a line for each text")
      ->type_name("FORM")
      ->check(CLI::IsMember({"array", "json"}));
  app.add_option("--embd-separator", options->separator, "what stands between texts [a line end]")
      ->type_name("TEXT");
  add_options(app, options->engine);
  add_options(app, options->engine.adapters);
  return [options] { return embed(*options); };
}

}  // namespace greta::cli
