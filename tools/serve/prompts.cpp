// Prompts of completions and embeddings: a text, tokens, or lists of either.
#include "endpoints.h"

namespace greta::serve {
namespace {

int32_t token_of(const Fields& fields, const char* name, const greta_tokenizer* tokenizer,
                 const Json& value) {
  const int64_t size = greta_tokenizer_size(tokenizer);
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() < static_cast<uint64_t>(size));
  const int64_t token = fits ? value.get<int64_t>() : -1;
  if (token < 0 || token >= size)
    fields.wrong(name, "of tokens from 0 to " + std::to_string(size - 1), value);
  return static_cast<int32_t>(token);
}

bool is_tokens(const Json& value) { return value.is_array() && !value.empty() && value.front().is_number(); }

}  // namespace

std::vector<int32_t> tokens_of(const Fields& fields, const char* name, const greta_tokenizer* tokenizer) {
  const Json* list = fields.list(name);
  if (!list) throw Refused(400, fields.path(name) + " is missing", fields.path(name));
  std::vector<int32_t> tokens;
  for (const Json& each : *list) tokens.push_back(token_of(fields, name, tokenizer, each));
  return tokens;
}

std::vector<std::vector<int32_t>> prompts_of(const Fields& fields, const char* name,
                                             const greta_tokenizer* tokenizer, size_t most, uint32_t flags) {
  const Json* given = fields.find(name);
  if (!given) throw Refused(400, fields.path(name) + " is missing", fields.path(name));
  const std::string what = "a text, tokens, or a list of at most " + std::to_string(most) + " of them";
  std::vector<std::vector<int32_t>> prompts;
  const auto add = [&](const Json& each) {
    if (each.is_string()) {
      prompts.push_back(encode(tokenizer, each.get_ref<const std::string&>(), flags));
    } else if (is_tokens(each)) {
      prompts.emplace_back();
      for (const Json& token : each) prompts.back().push_back(token_of(fields, name, tokenizer, token));
    } else {
      fields.wrong(name, what, each);
    }
    if (prompts.back().empty() && flags != 0) fields.wrong(name, "at least one token", each);
  };
  if (!given->is_array() || is_tokens(*given)) {
    add(*given);
    return prompts;
  }
  if (given->empty() || given->size() > most) fields.wrong(name, what, *given);
  for (const Json& each : *given) add(each);
  return prompts;
}

}  // namespace greta::serve
