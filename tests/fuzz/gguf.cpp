// Opens any bytes as a GGUF file, from memory and through a callback. Then it reads everything that the
// header gives access to, and reads the file as an adapter.
#include <cstring>

#include "engine/adapter/adapter_file.h"

using namespace greta;

namespace {

struct Input {
  const uint8_t* data;
  size_t size;
};

void read_all(const Gguf& gguf) {
  uint64_t sum = 0;
  for (const GgufValue& value : gguf.values()) {
    if (gguf.find(value.key) != &value) __builtin_trap();
    sum += gguf_text(value, 100).size();
    uint32_t number, layers[4];
    float real;
    std::string_view text;
    StringArray texts;
    PackedArray<float> floats;
    (void)!gguf.get_u32(value.key, &number).ok();
    (void)!gguf.get_f32(value.key, &real).ok();
    (void)!gguf.get_layers_u32(value.key, 4, layers).ok();
    if (gguf.get_string(value.key, &text).ok())
      for (const char c : text) sum += uint8_t(c);
    if (gguf.get_strings(value.key, &texts).ok())
      for (const std::string_view each : texts)
        sum += each.size() + (each.empty() ? 0 : uint8_t(each.back()));
    if (gguf.get_f32_array(value.key, &floats).ok())
      for (uint64_t i = 0; i < floats.count; ++i) sum += floats[i] > 0;
  }
  for (const GgufTensor& tensor : gguf.tensors()) {
    if (gguf.find_tensor(tensor.name) != &tensor) __builtin_trap();
    std::vector<uint8_t> data(tensor.bytes);
    if (!gguf.source().read_at(tensor.part, tensor.offset, data.data(), tensor.bytes).ok()) __builtin_trap();
    sum += data[0];
  }
  asm volatile("" : : "r"(sum));  // so that nothing read is optimised away
}

// An adapter's parts fit together, whatever the bytes.
void read_as_adapter(const uint8_t* data, size_t size) {
  Source source;
  AdapterFile file;
  if (!source.open_memory(data, size).ok() || !read_adapter(std::move(source), &file).ok()) return;
  if (file.pairs.empty() == file.directions.empty()) __builtin_trap();
  for (const LoraPair& pair : file.pairs)
    if (!pair.a || !pair.b || pair.rank == 0 || pair.b->ne[0] != pair.rank) __builtin_trap();
  for (const Direction& direction : file.directions)
    if (direction.layer == 0 || !direction.values) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input{data, size};
  const auto read = [](void* user, uint64_t offset, void* to, uint64_t bytes) {
    const Input& all = *static_cast<const Input*>(user);
    if (offset > all.size || bytes > all.size - offset) __builtin_trap();  // never asked beyond the end
    memcpy(to, all.data + offset, bytes);
    return 0;
  };
  const uint8_t nothing = 0;
  bool opened[2];
  for (const bool callback : {false, true}) {
    Source source;
    const Status status = callback ? source.open_callback(read, &input, size)
                                   : source.open_memory(size ? data : &nothing, size);
    Gguf gguf;
    opened[callback] = status.ok() && gguf.open(std::move(source)).ok();
    if (opened[callback]) read_all(gguf);
  }
  if (opened[0] != opened[1]) __builtin_trap();
  if (opened[0]) read_as_adapter(data, size);
  return 0;
}
