#include "common/tokens.h"

namespace greta::tools {

// `read` fills a buffer and says how much there is: a second call has room for all of it.
template <class Buffer, class Read>
static greta_status read_all(Buffer* out, size_t guess, const Read& read) {
  size_t count = guess;
  greta_status status = GRETA_OK;
  do {
    out->resize(count);
    status = read(&count);
  } while (status == GRETA_OK && count > out->size());
  out->resize(status == GRETA_OK ? count : 0);
  return status;
}

greta_status encode(const greta_tokenizer* tokenizer, std::string_view text, uint32_t flags,
                    std::vector<int32_t>* out) {
  return read_all(out, text.size() + 2, [&](size_t* count) {  // few texts have more tokens than bytes
    return greta_tokenizer_encode(tokenizer, text.data(), text.size(), flags, out->data(), out->size(),
                                  count);
  });
}

greta_status decode(const greta_tokenizer* tokenizer, const int32_t* tokens, size_t count, std::string* out) {
  return read_all(out, count * 16 + 16, [&](size_t* bytes) {
    return greta_tokenizer_decode(tokenizer, tokens, count, out->data(), out->size(), bytes);
  });
}

}  // namespace greta::tools
