// The adapters of the server's model: /lora-adapters shows and sets their scales, and a request may have its
// own.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "json.h"
#include "serve.h"

namespace greta::serve {

struct Ask;

// They stay as long as the model. Their scales hold for requests that name none.
struct ServedAdapters {
  struct One {
    tools::Adapter adapter;
    std::string path;
    std::atomic<float> scale{0};
  };
  std::deque<One> all;
};

// Throws std::runtime_error with the words of the library.
std::shared_ptr<ServedAdapters> open_adapters(greta_model* model,
                                              const std::vector<tools::GivenAdapter>& given);

// The field `lora` of a request: [{"id": 0, "scale": 0.5}]. Those that it does not name have the scale 0.
void read_lora(const Fields& fields, Ask* ask);

// The adapters of a request and their scales, which it keeps until the request was added.
void choose_adapters(const Ask& ask, std::vector<const greta_adapter*>* adapters, std::vector<float>* scales);

}  // namespace greta::serve
