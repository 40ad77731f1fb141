// The tokens of a text, and the text of tokens, in buffers that are large enough.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "greta.h"

namespace greta::tools {

// What they return says whether `out` has it.
greta_status encode(const greta_tokenizer* tokenizer, std::string_view text, uint32_t flags,
                    std::vector<int32_t>* out);
greta_status decode(const greta_tokenizer* tokenizer, const int32_t* tokens, size_t count, std::string* out);

}  // namespace greta::tools
