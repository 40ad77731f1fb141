// Requests of a service, for tests through greta.h.
#pragma once
#include <vector>

#include "support/api_objects.h"

namespace greta::test {

// Of runtimes whose answers are compared to the bit.
inline greta_runtime_options exact_options() {
  greta_runtime_options options{};
  options.exact = 1;
  options.threads = 1;
  return options;
}

// Asks for max_tokens tokens behind these, which the caller keeps.
inline greta_request_options ask(const std::vector<int32_t>& tokens, uint32_t max_tokens) {
  auto options = sized<greta_request_options>();
  options.tokens = tokens.data();
  options.token_count = tokens.size();
  options.max_tokens = max_tokens;
  options.ignore_end = 1;
  return options;
}

}  // namespace greta::test
