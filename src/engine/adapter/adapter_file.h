// Files of adapters, which change what a model computes without changing its weights, checked by themselves.
//
// A LoRA (Hu et al., arXiv 2106.09685) has general.type "adapter" and adapter.type "lora". For a matrix W of
// the model it has two of low rank, NAME.lora_a and NAME.lora_b, so that y = W x + scale * B (A x).
// A control vector has the architecture "controlvector". What it adds to the output of layer N is
// direction.N.
#pragma once
#include <vector>

#include "gguf/gguf.h"

namespace greta {

enum class AdapterKind : uint8_t { Lora = 1, Control = 2 };

constexpr uint64_t kMaxRank = 1u << 16;

// The matrices for one of the model's. In a's rows lie what x is multiplied by: a is [depth, rank, experts]
// and b [rank, n, experts] in GGUF order. For an embedding a is [rank, vocabulary].
struct LoraPair {
  std::string_view target;  // the name of the model's tensor
  const GgufTensor* a = nullptr;
  const GgufTensor* b = nullptr;
  uint32_t rank = 0;
};

struct Direction {
  uint32_t layer = 0;
  const GgufTensor* values = nullptr;  // f32 [width]
};

struct AdapterFile {
  Gguf gguf;
  AdapterKind kind = AdapterKind::Lora;
  std::string_view name;          // general.name, or ""
  std::string_view architecture;  // of the models that it is for; "" where the file does not say
  float alpha = 0;
  std::vector<LoraPair> pairs;        // by target
  std::vector<Direction> directions;  // by layer
  uint64_t identity = 0;              // a checksum of all metadata and all tensors

  uint32_t least_rank() const, most_rank() const;
  uint64_t tensor_bytes() const;
};

// Whether the file is an adapter, and no model.
bool is_adapter(const Gguf& gguf);

// Reads the header and all values. Fails with the tensor's name where something is missing, does not fit
// together or is not finite.
Status read_adapter(Source&& source, AdapterFile* out);

// The factor of a pair's products: alpha / rank, or 1 where the file has no alpha.
inline float factor_of(const AdapterFile& file, const LoraPair& pair) {
  return file.alpha != 0 ? file.alpha / float(pair.rank) : 1;
}

// Whether all values are finite. Types whose blocks have no such values count as finite.
bool all_finite(QuantType type, const uint8_t* data, uint64_t bytes);

}  // namespace greta
