// A service through greta.h, and its requests read to their ends.
#pragma once
#include <string>

#include "support/api_requests.h"

namespace greta::test {

// A service of the tiny model, with a thread of its own unless `options` says otherwise.
struct Served {
  Objects o{TinyShape{}, exact_options()};
  greta_service* service = nullptr;

  explicit Served(greta_service_options options = own_thread()) {
    REQUIRE(o.load() == GRETA_OK);
    auto sizes = sized<greta_executor_options>();
    sizes.context = 256, sizes.sequences = 8, sizes.cache_tokens = 2048;
    if (!options.executor) options.executor = &sizes;
    REQUIRE(greta_service_open(o.model, &options, &service) == GRETA_OK);
  }
  ~Served() { greta_service_close(service); }
  static greta_service_options own_thread() {
    auto options = sized<greta_service_options>();
    options.own_thread = 1;
    return options;
  }
};

struct Read {
  std::vector<int32_t> tokens;
  std::string text, reasoning;
  greta_status status = GRETA_OK;
  greta_request_result result = sized<greta_request_result>();
};

// Reads a request to its end and closes it.
inline Read read_all(greta_request* request) {
  Read read;
  auto event = sized<greta_request_event>();
  do {
    if (greta_request_next(request, UINT64_MAX, &event) != GRETA_OK) break;
    if (event.token >= 0) read.tokens.push_back(event.token);
    if (event.kind == GRETA_EVENT_TEXT) read.text.append(event.text, event.bytes);
    if (event.kind == GRETA_EVENT_REASONING) read.reasoning.append(event.text, event.bytes);
  } while (event.kind != GRETA_EVENT_END);
  read.status = greta_request_finish(request, &read.result);
  greta_request_close(request);
  return read;
}

inline greta_request* add(greta_service* service, const greta_request_options& options) {
  greta_request* request = nullptr;
  const greta_status status = greta_service_add(service, &options, &request);
  INFO(greta_error_text());
  REQUIRE(status == GRETA_OK);
  return request;
}

}  // namespace greta::test
