// A llama of random float32 weights, small enough to reason about: as a GGUF file in memory, and as
// plain vectors for the float64 oracle.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/test_device.h"

namespace greta::test {

struct TinyShape {
  uint32_t layers = 2, width = 48, heads = 4, kv_heads = 2, ffn = 80, vocab = 67, context = 512;
  uint32_t head_width = 0;  // 0: width / heads
  uint32_t rope_width = 0;  // 0: the head's
  float rope_base = 10000.0f, rope_scale = 1.0f, epsilon = 1e-5f;
  bool tied = true, rope_factors = false;
  uint32_t seed = 1;

  uint32_t head() const { return head_width ? head_width : width / heads; }
};

struct TinyLayer {
  std::vector<float> attention_norm, query, key, value, output, ffn_norm, gate, up, down;
};

struct TinyModel {
  TinyShape shape;
  std::vector<float> embedding, output_norm, output, rope_factors;
  std::vector<TinyLayer> layers;
  std::string file;  // GGUF
};

TinyModel make_tiny(const TinyShape& shape);

// A device and those that it wraps.
struct TestDevice {
  std::unique_ptr<Device> inner, limited, device;  // device wraps limited or inner, limited wraps inner
  std::unique_ptr<DeviceKernels> kernels;          // of the device
  ~TestDevice();
};

// An opened device, model and executor; fails the running test with the error's text.
struct Engine : TestDevice {
  TestDevice second;  // if the model is split
  std::unique_ptr<Model> model;
  std::unique_ptr<Executor> executor;
  Engine() = default;
  ~Engine();
};
// Where a model of so many layers lies if it is split like this (test_split()). Empty for one device. In
// "brought" and "brought mixed" experts lie as in "experts" and "mixed", and every step brings them to their
// layers.
Placement split_placement(const std::string& split, uint32_t layers);
struct EngineOptions {
  uint32_t threads = 2;
  bool exact = true, checked = false;
  uint64_t largest_weights =
      0;  // the most bytes of a buffer of weights, which are then copied; 0: the device's own limit
  std::function<std::unique_ptr<Device>(Device&)> wrap = {};                 // around the device itself
  ExecutorOptions executor{.context = 256, .key_type = 0, .value_type = 0};  // f32 cache
  bool head = false;                 // with the layer that drafts tokens
  std::string split = test_split();  // over this device and the CPU
  std::function<std::unique_ptr<Device>(Device&)> wrap_second = {};
};
void open_engine(const std::string& file, const EngineOptions& options, Engine* out);

}  // namespace greta::test
