#include "engine/adapter/adapter_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace greta {

namespace {

using Number = unsigned long long;  // for %llu

constexpr std::string_view kA = ".lora_a", kB = ".lora_b", kDirection = "direction.";
constexpr std::string_view kEmbedding = "token_embd.weight";

std::string text(std::string_view view) { return std::string(view); }

Status wrong(const AdapterFile& file, const GgufTensor& tensor, const char* what) {
  return fail(Code::File, "%s: %s: %s", file.gguf.name(), text(tensor.name).c_str(), what);
}

// Puts the two matrices of each pair together.
Status find_pairs(AdapterFile* file) {
  std::map<std::string_view, LoraPair> pairs;
  for (const GgufTensor& tensor : file->gguf.tensors()) {
    const bool a = tensor.name.ends_with(kA), b = tensor.name.ends_with(kB);
    if (!a && !b)
      return wrong(*file, tensor,
                   "a LoRA has matrices whose names end with .lora_a and .lora_b, and no others");
    const std::string_view target = tensor.name.substr(0, tensor.name.size() - kA.size());
    LoraPair& pair = pairs[target];
    pair.target = target;
    (a ? pair.a : pair.b) = &tensor;
  }
  for (const auto& [target, pair] : pairs) {
    if (!pair.a || !pair.b)
      return fail(Code::File, "%s: %s%s has no partner %s%s", file->gguf.name(), text(target).c_str(),
                  (pair.a ? kA : kB).data(), text(target).c_str(), (pair.a ? kB : kA).data());
    file->pairs.push_back(pair);
  }
  if (pairs.empty()) return fail(Code::File, "%s: a LoRA without matrices", file->gguf.name());
  return {};
}

Status check_pair(const AdapterFile& file, LoraPair* pair) {
  const GgufTensor &a = *pair->a, &b = *pair->b;
  const uint64_t of_a = pair->target == kEmbedding ? a.ne[0] : a.ne[1], of_b = b.ne[0];
  if (of_a != of_b)
    return fail(Code::File, "%s: %s has rank %llu, and %s has rank %llu", file.gguf.name(),
                text(a.name).c_str(), Number(of_a), text(b.name).c_str(), Number(of_b));
  if (of_a == 0 || of_a > kMaxRank)
    return fail(Code::File, "%s: %s has rank %llu, expected 1 to %llu", file.gguf.name(),
                text(a.name).c_str(), Number(of_a), Number(kMaxRank));
  if (a.ne[2] != b.ne[2] || a.ne[3] != 1 || b.ne[3] != 1)
    return fail(Code::File, "%s: %s has %llu matrices, and %s has %llu", file.gguf.name(),
                text(a.name).c_str(), Number(a.ne[2] * a.ne[3]), text(b.name).c_str(),
                Number(b.ne[2] * b.ne[3]));
  pair->rank = uint32_t(of_a);
  return {};
}

Status read_lora(AdapterFile* file) {
  const Gguf& gguf = file->gguf;
  std::string_view type;
  GRETA_TRY(gguf.require("adapter.type"));
  GRETA_TRY(gguf.get_string("adapter.type", &type));
  if (type != "lora")
    return fail(Code::Unsupported, "%s: adapter.type is \"%.*s\", expected \"lora\"", gguf.name(),
                int(std::min<size_t>(type.size(), 64)), type.data());
  GRETA_TRY(gguf.require("general.architecture"));
  GRETA_TRY(gguf.get_string("general.architecture", &file->architecture));
  GRETA_TRY(gguf.get_f32("adapter.lora.alpha", &file->alpha));
  if (gguf.find("adapter.alora.invocation_tokens"))
    return fail(Code::Unsupported,
                "%s: it acts only behind certain tokens (adapter.alora.invocation_tokens), which is not "
                "supported",
                gguf.name());
  GRETA_TRY(find_pairs(file));
  for (LoraPair& pair : file->pairs) GRETA_TRY(check_pair(*file, &pair));
  return {};
}

// The number behind "direction.", without signs, zeros before it or anything else.
bool layer_of(std::string_view name, uint32_t* out) {
  if (!name.starts_with(kDirection)) return false;
  name.remove_prefix(kDirection.size());
  if (name.empty() || name.size() > 6 || name[0] == '0') return false;
  *out = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return false;
    *out = *out * 10 + uint32_t(c - '0');
  }
  return true;
}

Status read_directions(AdapterFile* file) {
  GRETA_TRY(file->gguf.get_string("controlvector.model_hint", &file->architecture));
  for (const GgufTensor& tensor : file->gguf.tensors()) {
    Direction direction;
    if (!layer_of(tensor.name, &direction.layer))
      return wrong(*file, tensor,
                   "a control vector has direction.N for layers from 1 on, and no other tensors");
    if (tensor.type != QuantType::f32 || tensor.bytes != tensor.ne[0] * sizeof(float))
      return wrong(*file, tensor, "expected one row of f32");
    direction.values = &tensor;
    file->directions.push_back(direction);
  }
  if (file->directions.empty())
    return fail(Code::File, "%s: a control vector without directions", file->gguf.name());
  std::ranges::sort(file->directions, {}, &Direction::layer);
  return {};
}

// Reads all values once, for the checksum and to see that they are finite.
Status read_values(AdapterFile* file) {
  const Gguf& gguf = file->gguf;
  Checksum sum;
  for (const GgufValue& value : gguf.values()) {
    sum.add(value.key.data(), value.key.size());
    sum.add(value.data, value.bytes);
  }
  std::vector<uint8_t> piece;
  for (const GgufTensor& tensor : gguf.tensors()) {
    sum.add(tensor.name.data(), tensor.name.size());
    sum.add(&tensor.type, sizeof tensor.type);
    sum.add(tensor.ne, sizeof tensor.ne);
    constexpr uint64_t kMost = 1 << 20;  // a multiple of the size of a number
    for (uint64_t at = 0; at < tensor.bytes; at += piece.size()) {
      piece.resize(std::min(kMost, tensor.bytes - at));
      GRETA_TRY(gguf.source().read_at(tensor.part, tensor.offset + at, piece.data(), piece.size()));
      sum.add(piece.data(), piece.size());
      if (!all_finite(tensor.type, piece.data(), piece.size()))
        return wrong(*file, tensor, "it holds a number that is not finite");
    }
  }
  file->identity = sum.value();
  return {};
}

template <class Bits>
bool none_has(const uint8_t* data, uint64_t bytes, Bits exponent) {
  for (uint64_t at = 0; at + sizeof(Bits) <= bytes; at += sizeof(Bits)) {
    Bits bits;
    memcpy(&bits, data + at, sizeof bits);
    if ((bits & exponent) == exponent) return false;
  }
  return true;
}

}  // namespace

bool all_finite(QuantType type, const uint8_t* data, uint64_t bytes) {
  switch (type) {
    case QuantType::f32:
      return none_has<uint32_t>(data, bytes, 0x7f800000u);
    case QuantType::f16:
      return none_has<uint16_t>(data, bytes, 0x7c00);
    case QuantType::bf16:
      return none_has<uint16_t>(data, bytes, 0x7f80);
    default:
      return true;
  }
}

bool is_adapter(const Gguf& gguf) {
  const auto is = [&](const char* key, std::string_view expected) {
    const GgufValue* value = gguf.find(key);
    return value && value->type == ValueType::String &&
           std::string_view(reinterpret_cast<const char*>(value->data), value->bytes) == expected;
  };
  return is("general.type", "adapter") || is("general.architecture", "controlvector");
}

uint32_t AdapterFile::least_rank() const {
  return pairs.empty() ? 0 : std::ranges::min_element(pairs, {}, &LoraPair::rank)->rank;
}

uint32_t AdapterFile::most_rank() const {
  return pairs.empty() ? 0 : std::ranges::max_element(pairs, {}, &LoraPair::rank)->rank;
}

uint64_t AdapterFile::tensor_bytes() const {
  uint64_t bytes = 0;
  for (const GgufTensor& tensor : gguf.tensors()) bytes += tensor.bytes;
  return bytes;
}

Status read_adapter(Source&& source, AdapterFile* out) {
  GRETA_TRY(out->gguf.open(std::move(source)));
  const Gguf& gguf = out->gguf;
  if (!is_adapter(gguf))
    return fail(Code::File,
                "%s: no adapter: general.type is not \"adapter\", and general.architecture is not "
                "\"controlvector\"",
                gguf.name());
  std::string_view architecture;
  GRETA_TRY(gguf.get_string("general.architecture", &architecture));
  GRETA_TRY(gguf.get_string("general.name", &out->name));
  out->kind = architecture == "controlvector" ? AdapterKind::Control : AdapterKind::Lora;
  GRETA_TRY(out->kind == AdapterKind::Control ? read_directions(out) : read_lora(out));
  return read_values(out);
}

}  // namespace greta
