// Texts with a gap: the prompt of a model that fills it, for editors.
#include <algorithm>

#include "endpoints.h"

namespace greta::serve {
namespace {

constexpr size_t kMostFiles = 1024;

int32_t mark(const greta_tokenizer* tokenizer, greta_fill_token which) {
  return greta_tokenizer_fill_token(tokenizer, which);
}

void append(std::vector<int32_t>* to, const std::vector<int32_t>& tokens) {
  to->insert(to->end(), tokens.begin(), tokens.end());
}

// Other files before the text, as models with tokens for a repository and its files were trained.
std::vector<int32_t> files_before(const Fields& fields, const greta_tokenizer* tokenizer) {
  const int32_t repository = mark(tokenizer, GRETA_FILL_REPOSITORY), file = mark(tokenizer, GRETA_FILL_FILE);
  const Json* files = fields.list("input_extra");
  if (files && files->size() > kMostFiles) fields.wrong("input_extra", "at most 1024 files", *files);
  std::vector<int32_t> tokens;
  const auto begin_file = [&](const std::string& name) {
    if (file < 0) return;
    tokens.push_back(file);
    append(&tokens, encode(tokenizer, name + "\n", 0));
  };
  if (files && !files->empty() && repository >= 0 && file >= 0) {
    tokens.push_back(repository);
    append(&tokens, encode(tokenizer, "repository\n", 0));
  }
  for (size_t i = 0; files && i < files->size(); ++i) {
    const std::string path = fields.path("input_extra") + "[" + std::to_string(i) + "]";
    if (!(*files)[i].is_object()) throw Refused(400, path + " must be an object", path);
    const Fields each((*files)[i], path + ".");
    const std::string *name = each.text("filename"), *text = each.text("text");
    if (!text) throw Refused(400, path + ".text is missing", path + ".text");
    begin_file(name ? *name : "file");
    append(&tokens, encode(tokenizer, *text + "\n\n", 0));
  }
  if (!tokens.empty()) begin_file("this file");
  return tokens;
}

}  // namespace

bool can_fill(const greta_tokenizer* tokenizer) {
  return mark(tokenizer, GRETA_FILL_PREFIX) >= 0 && mark(tokenizer, GRETA_FILL_SUFFIX) >= 0 &&
         mark(tokenizer, GRETA_FILL_MIDDLE) >= 0;
}

std::vector<int32_t> fill_prompt(const Model& model, const Gap& gap, uint32_t answer) {
  const greta_tokenizer* tokenizer = model.tokenizer;
  if (!can_fill(tokenizer)) throw Refused(501, "the model has no tokens that mark a gap in a text", "suffix");
  std::vector<int32_t> prompt = encode(tokenizer, "", GRETA_ENCODE_BOS);
  if (!prompt.empty()) prompt.resize(1);  // without the one that some models want behind a text
  // What is nearest to the gap stays where a whole file does not fit: three quarters before it.
  const size_t begun = gap.begun.size() + 4 + prompt.size() + answer;
  const size_t room = model.context > begun ? model.context - begun : 0;
  const size_t behind =
      std::min(gap.suffix.size(), std::max(room / 4, room - std::min(room, gap.prefix.size())));
  const size_t before = std::min(gap.prefix.size(), room - behind);
  const size_t more = std::min(gap.before.size(), room - behind - before);
  prompt.insert(prompt.end(), gap.before.end() - static_cast<ptrdiff_t>(more), gap.before.end());
  prompt.push_back(mark(tokenizer, GRETA_FILL_PREFIX));
  prompt.insert(prompt.end(), gap.prefix.end() - static_cast<ptrdiff_t>(before), gap.prefix.end());
  prompt.push_back(mark(tokenizer, GRETA_FILL_SUFFIX));
  prompt.insert(prompt.end(), gap.suffix.begin(), gap.suffix.begin() + static_cast<ptrdiff_t>(behind));
  prompt.push_back(mark(tokenizer, GRETA_FILL_MIDDLE));
  append(&prompt, gap.begun);
  return prompt;
}

void infill(Context& context) {
  const Model& model = context.model();
  const Json& body = context.body();
  const Fields fields(body);
  const greta_tokenizer* tokenizer = model.tokenizer;
  const std::string *prefix = fields.text("input_prefix"), *suffix = fields.text("input_suffix");
  if (!prefix) throw Refused(400, "input_prefix is missing", "input_prefix");
  if (!suffix) throw Refused(400, "input_suffix is missing", "input_suffix");
  const std::string* begun = fields.text("prompt");
  Gap gap;
  gap.prefix = encode(tokenizer, *prefix, 0);
  gap.suffix = encode(tokenizer, *suffix, 0);
  if (begun) gap.begun = encode(tokenizer, *begun, 0);
  gap.before = files_before(fields, tokenizer);
  start_native(context, fields, [&](const Ask& ask) {
    return fill_prompt(model, gap, ask.max_tokens > 0 ? static_cast<uint32_t>(ask.max_tokens) : 256);
  });
}

}  // namespace greta::serve
