// How the sizes of a model are read from its metadata.
#pragma once
#include <algorithm>
#include <string>

#include "engine/model/shape.h"

namespace greta {

// Reads keys with the prefix "<arch>.", notes which were looked for, and keeps the first failure.
struct ShapeReader {
  const Gguf& gguf;
  const Arch& arch;
  std::string prefix;
  KeysRead& keys;
  Status status{};

  std::string note(const char* key) { return *keys.insert(prefix + key).first; }
  bool has(const char* key) { return gguf.find(note(key)) != nullptr; }

  void u32(const char* key, uint32_t low, uint32_t high, uint32_t* value, bool required = false) {
    const std::string name = note(key);
    if (!status.ok()) return;
    if (required && !(status = gguf.require(name)).ok()) return;
    if (!gguf.find(name) || !(status = gguf.get_u32(name, value)).ok()) return;
    if (*value < low || *value > high)
      status =
          fail(Code::File, "%s: %s is %u, expected %u to %u", gguf.name(), name.c_str(), *value, low, high);
  }
  void f32(const char* key, float low, float high, float* value, bool required = false) {
    const std::string name = note(key);
    if (!status.ok()) return;
    if (required && !(status = gguf.require(name)).ok()) return;
    if (!gguf.find(name) || !(status = gguf.get_f32(name, value)).ok()) return;
    if (!(*value >= low && *value <= high))
      status = fail(Code::File, "%s: %s is %g, expected %g to %g", gguf.name(), name.c_str(), double(*value),
                    double(low), double(high));
  }
  void flag(const char* key, bool* value) {
    const std::string name = note(key);
    if (status.ok()) status = gguf.get_bool(name, value);
  }
  void text(const char* key, std::string_view* value) {
    const std::string name = note(key);
    if (status.ok()) status = gguf.get_string(name, value);
  }
  // Reads one value for each layer of `s`, from an array for all layers of the file or a number.
  void in_layers(const char* key, const Shape& s, std::vector<uint32_t>* values) {
    const std::string name = note(key);
    values->resize(s.layers + s.draft_layers);
    if (status.ok()) status = gguf.get_layers_u32(name, uint32_t(values->size()), values->data());
    values->resize(s.layers);
  }
  // Reads a size of each layer of `s`. Without the key *values stay as they are. A layer with 0 lacks what
  // the size is of, which not all architectures allow.
  void sizes(const char* key, const Shape& s, uint32_t high, std::vector<uint32_t>* values, bool required) {
    const std::string name = note(key);
    if (!status.ok()) return;
    if (required && !(status = gguf.require(name)).ok()) return;
    const GgufValue* value = gguf.find(name);
    if (!value) return;
    in_layers(key, s, values);
    if (!status.ok()) return;
    const uint32_t low = arch.partial_layers ? 0 : 1;
    uint32_t largest = 0;
    for (uint32_t l = 0; l < s.layers; ++l) {
      const uint32_t size = (*values)[l];
      largest = std::max(largest, size);
      if (size >= low && size <= high) continue;
      status = fail(Code::Unsupported, "%s: %s is %u in layer %u, expected %u to %u", gguf.name(),
                    name.c_str(), size, l, low, high);
      return;
    }
    if (value->type == ValueType::Array && !largest)
      status = fail(Code::File, "%s: %s is 0 in all layers", gguf.name(), name.c_str());
  }
  // Checks that a key for layers with a window says the same as `other`: they have no sizes of their own.
  void same_as(const char* key, const char* other, double value) {
    float given = float(value);
    const std::string name = note(key);
    if (status.ok()) status = gguf.get_f32(name, &given);
    if (status.ok() && given != float(value))
      status = fail(Code::Unsupported, "%s: %s is %g and %s%s %g, expected the same", gguf.name(),
                    name.c_str(), double(given), prefix.c_str(), other, value);
  }
};

// Sets the sizes of heads in layers with a window, after it is known which those are (Arch::window_sizes).
Status read_window_sizes(ShapeReader& r, Shape* s);
// Sets which layers use the cache of an earlier one, and which take their keys for values.
Status read_shared_caches(ShapeReader& r, Shape* s);
// The first layer with attention whose `window` is not 0, or is, else the first one with attention.
const LayerShape& first_layer(const Shape& s, bool windowed);
// Checks the rotated part of a head of `width` values.
Status check_rotated(const ShapeReader& r, const char* key, const char* width_key, uint32_t turned,
                     uint32_t width);

// Checks that the sections of a head's rotated part, by dimensions of a position, fit into it.
Status check_sections(ShapeReader& r, uint32_t turned);

// Reads how many positions have embeddings, after read_rope.
Status read_positions(ShapeReader& r, Shape* s);
// Gives heads the marks by which scores fall with the distance (Arch::slopes) or positions see chunks
// (Arch::chunks), after read_rope and the scale of scores.
Status read_slopes(ShapeReader& r, Shape* s);
Status read_chunks(ShapeReader& r, Shape* s);
// Checks which layers have experts (Arch::scale_inputs).
Status check_interleaved(ShapeReader& r, const Shape& s);
// Sets which layers normalise heads without a gain, after the experts are known (Arch::norm_heads).
void read_head_norms(const Arch& arch, Shape* s);
// Reads the constants of the activation of layers without a gate (Factor::Xielu).
Status read_xielu(ShapeReader& r, Shape* s);
// Sets in which layers a head has one gate.
Status read_attention_gates(ShapeReader& r, Shape* s);

// Sets which layers keep a state in place of keys and values, after the counts of heads are known.
Status read_recurrent_layers(ShapeReader& r, Shape* s);
// Reads the sizes of those layers.
Status read_recurrence(ShapeReader& r, Shape* s);

}  // namespace greta
