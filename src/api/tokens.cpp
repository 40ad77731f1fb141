// The functions of greta.h for single tokens.
#include "api/handles.h"

using namespace greta;

static_assert(int(TokenKind::Normal) == GRETA_TOKEN_NORMAL && int(TokenKind::Byte) == GRETA_TOKEN_BYTE);

greta_status greta_tokenizer_token(const greta_tokenizer* tokenizer, int32_t token, char* text,
                                   size_t capacity, size_t* out_bytes, greta_token_kind* out_kind) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(tokenizer, "tokenizer"));
    const Tokenizer& of = *tokenizer->tokenizer;
    if (token < 0 || uint32_t(token) >= of.size())
      return fail(Code::Argument, "the token is %d, expected 0 to %u", token, of.size() - 1);
    GRETA_TRY(give_text(of.piece(token, true), text, capacity, out_bytes));
    if (out_kind) *out_kind = greta_token_kind(of.vocab().kind(uint32_t(token)));
    return {};
  });
}

namespace {

// Under which keys a file names its tokens of this kind, and what their texts are in files that name none.
struct FillToken {
  const char* keys[2];
  const char* texts[6];
};
constexpr FillToken kFillTokens[] = {
    {{"fim_pre", "prefix"},
     {"<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<｜fim▁begin｜>", "▁<PRE>", "<PRE>"}},
    {{"fim_suf", "suffix"},
     {"<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<｜fim▁hole｜>", "▁<SUF>", "<SUF>"}},
    {{"fim_mid", "middle"},
     {"<|fim_middle|>", "<fim_middle>", "<fim-middle>", "<｜fim▁end｜>", "▁<MID>", "<MID>"}},
    {{"fim_pad"}, {"<|fim_pad|>", "<fim_pad>", "<fim-pad>"}},
    {{"fim_rep"}, {"<|fim_repo|>", "<|repo_name|>", "<fim_repo>", "<reponame>", "<repo_name>"}},
    {{"fim_sep"}, {"<|file_sep|>", "<file_sep>"}},
};
static_assert(std::size(kFillTokens) == GRETA_FILL_FILE + 1);

int32_t find_fill_token(const greta_tokenizer& of, const FillToken& wanted) {
  for (const char* key : wanted.keys) {
    uint32_t id = 0;
    const std::string name = key ? std::string("tokenizer.ggml.") + key + "_token_id" : std::string();
    if (key && of.gguf->find(name) && of.gguf->get_u32(name, &id).ok() && id < of.tokenizer->size())
      return int32_t(id);
  }
  for (const char* text : wanted.texts) {
    const int32_t id = text ? of.tokenizer->find(text) : kNoToken;
    if (id != kNoToken) return id;
  }
  return kNoToken;
}

}  // namespace

int32_t greta_tokenizer_fill_token(const greta_tokenizer* tokenizer, greta_fill_token which) {
  const int number = enum_number(which);
  if (!tokenizer || number < 0 || size_t(number) >= std::size(kFillTokens)) return -1;
  int32_t token = kNoToken;
  (void)fenced([&]() -> Status {
    token = find_fill_token(*tokenizer, kFillTokens[number]);
    return {};
  });
  return token;
}
