// A tiny model behind the handles of greta.h.
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <utility>

#include "greta.h"
#include "support/test_device.h"
#include "support/tiny_model.h"

namespace greta::test {

template <class Struct>
Struct sized() {
  Struct value{};
  value.struct_size = sizeof value;
  return value;
}

struct Objects {
  TinyModel tiny;
  greta_source source{};
  greta_runtime* runtime = nullptr;
  greta_file* file = nullptr;
  greta_model* model = nullptr;
  greta_session* session = nullptr;

  explicit Objects(const TinyShape& shape = {}, const greta_runtime_options& options = {})
      : tiny(make_tiny(shape)) {
    open(options);
  }
  explicit Objects(TinyModel made, const greta_runtime_options& options = {}) : tiny(std::move(made)) {
    open(options);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  void open(greta_runtime_options options) {
    options.struct_size = sizeof options;
    // Only the CPU uses the caller's allocator.
    if (!options.device) options.device = options.allocate ? "cpu" : test_device();
    source.struct_size = sizeof source;
    source.memory = tiny.file.data();
    source.memory_bytes = tiny.file.size();
    REQUIRE(greta_runtime_open(&options, &runtime) == GRETA_OK);
    REQUIRE(greta_file_open(&source, &file) == GRETA_OK);
  }
  greta_status load() {
    auto options = sized<greta_model_options>();
    options.source = &source;
    const greta_status status = greta_model_open(runtime, &options, &model);
    return status ? status : greta_session_open(model, nullptr, &session);
  }
  ~Objects() { close(); }
  void close() {
    greta_session_close(std::exchange(session, nullptr));
    greta_model_close(std::exchange(model, nullptr));
    greta_file_close(std::exchange(file, nullptr));
    greta_runtime_close(std::exchange(runtime, nullptr));
  }
};

}  // namespace greta::test
