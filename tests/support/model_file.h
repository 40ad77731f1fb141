// A GGUF file taken apart, so that a test can change a part of a good one, put it together again, and load
// and run it.
#pragma once
#include <cstring>
#include <functional>
#include <memory>
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

  // Both fail the test if there is no such part.
  Tensor& tensor(const std::string& name);
  const Value& value(const std::string& key) const;
  Value& value(const std::string& key) { return const_cast<Value&>(std::as_const(*this).value(key)); }

  void drop_value(const std::string& key);
  void drop_tensor(const std::string& name);
  void set_u32(const std::string& key, uint32_t number);

  std::string text(const std::string& key) const;
  // The numbers of an array, or the single one.
  template <class T>
  std::vector<T> numbers(const std::string& key) const {
    const Value& found = value(key);
    const size_t head = ValueType(found.type) == ValueType::Array ? sizeof(uint32_t) + sizeof(uint64_t) : 0;
    std::vector<T> all((found.payload.size() - head) / sizeof(T));
    memcpy(all.data(), found.payload.data() + head, all.size() * sizeof(T));
    return all;
  }
};

// The names of the files in tests/golden/architectures/, without the ending, in order.
std::vector<std::string> golden_names();
// Reads the golden of this name there.
ModelFile read_model(const std::string& name);
std::string write_model(const ModelFile& model);

// ---- changes ----------------------------------------------------------------------------------

using Edit = std::function<void(ModelFile&)>;

Edit set_u32(const std::string& key, uint32_t number);
Edit set_layers(const std::string& key, const std::vector<uint32_t>& numbers);  // one for each layer
Edit set_f32(const std::string& key, float number);
Edit set_text(const std::string& key, const char* text);
Edit drop(const std::string& key);
Edit without(const char* tensor);
Edit poke(const char* tensor, float number);  // the first number of an f32 tensor
Edit retype(const char* tensor, uint32_t type);

// ---- loading ----------------------------------------------------------------------------------

struct LoadedModel {
  std::string file;  // the bytes that the model refers to
  Model model;
  std::shared_ptr<Executor> executor;

  std::vector<float> logits(std::span<const int32_t> tokens,
                            const std::vector<size_t>& pieces);  // [tokens][vocab]
  std::vector<float> last_logits(std::span<const int32_t> tokens);
};

// Loads models on the CPU with plain kernels.
class ModelLoader {
 public:
  ModelLoader();
  // Does all that opening a session of the model does.
  Status load(const ModelFile& file, uint32_t context = 64, std::unique_ptr<LoadedModel>* out = nullptr);
  // Fails unless the file is refused with these words in the error text.
  void check_refused(const ModelFile& file, const std::string& named);

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceKernels> kernels_;
};

}  // namespace greta::test
