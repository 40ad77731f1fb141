// A model on two devices whose experts are brought from the second one to the first one for long steps.
#pragma once
#include "support/two_devices.h"

namespace greta::test {

// A session over a model whose experts are all on the second device.
struct Brought {
  Submissions first, second;
  Engine engine;
  std::unique_ptr<Session> session;

  explicit Brought(const std::string& file, const char* split = "brought", uint32_t step_tokens = 16,
                   uint32_t pass_pieces = 1, uint64_t step_pairs = 0) {
    EngineOptions options;
    options.split = split;
    options.executor.step_tokens = step_tokens;
    options.executor.pass_pieces = pass_pieces;
    options.executor.step_pairs = step_pairs;
    const auto faulty = [](Submissions& submissions) {
      return [&submissions](Device& device) -> std::unique_ptr<Device> {
        return std::make_unique<FaultyDevice>(device, false, submissions);
      };
    };
    options.wrap = faulty(first);
    if (*split) options.wrap_second = faulty(second);
    open_engine(file, options, &engine);
    REQUIRE(Session::open(shared(engine), &session).ok());
  }
  std::vector<float> logits_after(std::span<const int32_t> tokens) {
    const float* logits = nullptr;
    const Status status = session->eval(tokens, OutputRows::Last, &logits);
    INFO(error_text());
    REQUIRE(status.ok());
    return {logits, logits + engine.model->shape.vocab};
  }
};

}  // namespace greta::test
