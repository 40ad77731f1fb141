// A GGUF file taken apart, so that a test can change a part of a good one and put it together again.
#pragma once
#include <string>
#include <vector>

#include "engine/engine.h"

namespace greta::test {

struct ModelFile {
  struct Value {
    std::string key;
    uint32_t type;
    std::string payload;
  };
  struct Tensor {
    std::string name;
    uint32_t type;  // GGUF's number
    std::vector<uint64_t> ne;
    std::string data;
  };
  std::vector<Value> values;
  std::vector<Tensor> tensors;

  Tensor& tensor(const std::string& name);  // fails the test if there is none
  void drop_value(const std::string& key);
  void drop_tensor(const std::string& name);
  void set_u32(const std::string& key, uint32_t number);
};

// The golden of this name in tests/golden/architectures/, without its tokens' logits.
ModelFile read_model(const std::string& name);
std::string write_model(const ModelFile& model);

}  // namespace greta::test
