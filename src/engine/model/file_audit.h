// What a file holds that the model made from it does not use: each tensor and each key is used, known to be
// needless, or refused, so that nothing is computed wrong in silence.
#pragma once
#include <span>

#include "engine/model/weights.h"

namespace greta {

struct UnusedPart {
  enum class Verdict : uint8_t {
    Needless,  // known: the model is the same without it
    Unknown,   // a key that this library does not know
    Refused,   // it changes what is computed, or may do so
  } verdict;
  bool tensor;            // or a key
  std::string_view name;  // lives as long as the file
  const char* reason;
};

// In the order of the file: keys, then tensors. `keys_read`: those that read_shape looked for.
std::vector<UnusedPart> unused_parts(const Gguf& gguf, const Arch& arch, const Shape& shape,
                                     const KeysRead& keys_read);

// The same for a file as it is, before a model is made from it.
Status audit_file(const Gguf& gguf, std::vector<UnusedPart>* out);

// A tensor that a layer may do without is in all layers of its kind, or in none: else some of them are lost.
Status refuse_gaps(const Gguf& gguf, const Arch& arch, const Shape& shape);

// Unsupported, naming the first part that is refused.
Status refuse_unused(const Gguf& gguf, const Arch& arch, std::span<const UnusedPart> parts);

}  // namespace greta
