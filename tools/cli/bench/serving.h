// Measures a service: several streams of tokens at once, and streams that go on while prompts arrive.
#pragma once
#include "bench/report.h"
#include "model.h"

namespace greta::cli {

struct ServeTest {
  uint32_t streams = 1, prompt = 0, generate = 0;
  bool mix = false;          // prompts of `prompt` tokens arrive while the streams go on
  uint32_t repetitions = 1;  // of the test, or prompts that arrive
  uint32_t step_ms = 0;      // 0: the library's
};

std::string test_name(const ServeTest& test);  // "pp512+tg128 x8", "pp16000 beside x8"

// Runs the test. Throws Failed.
ServeNumbers measure(greta_model* model, const greta_model_info& info, const ContextOptions& context,
                     const ServeTest& test);

}  // namespace greta::cli
