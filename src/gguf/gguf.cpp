// Joins the parts of a model, and finds tensors by name.
#include "gguf/gguf.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "gguf/header.h"

namespace greta {

Gguf::Gguf() = default;
Gguf::~Gguf() = default;
Gguf::Gguf(Gguf&&) noexcept = default;
Gguf& Gguf::operator=(Gguf&&) noexcept = default;

uint32_t Gguf::version() const { return headers_[0].version; }
uint64_t Gguf::held_bytes() const {
  uint64_t bytes = 0;
  for (const GgufHeader& header : headers_) bytes += header.bytes.held_bytes();
  return bytes;
}
const std::vector<GgufValue>& Gguf::values() const { return headers_[0].values; }
const GgufValue* Gguf::find(std::string_view key) const { return headers_[0].find(key); }

Status Gguf::open(Source&& source) {
  if (source.parts() == 0 || source_.parts() != 0)
    return fail(Code::Argument, "open the source first, and open a model only once");
  source_ = std::move(source);
  GRETA_TRY(open_parts());
  GRETA_TRY(within(check_split(), "%s", name()));
  return within(index_tensors(), "%s", name());
}

Status Gguf::open_parts() {
  headers_.reserve(source_.parts());
  uint64_t tensor_count = 0;
  for (uint32_t part = 0; part < source_.parts(); ++part) {
    headers_.emplace_back();
    GRETA_TRY(within(headers_.back().parse(source_, part), "%s", source_.name(part)));
    tensor_count += headers_.back().tensors.size();
  }
  tensors_ = std::move(headers_[0].tensors);
  tensors_.reserve(tensor_count);
  for (size_t part = 1; part < headers_.size(); ++part) {
    std::vector<GgufTensor> more = std::move(headers_[part].tensors);
    tensors_.insert(tensors_.end(), more.begin(), more.end());
  }
  return {};
}

// A part that has keys of a model too has those of the same model.
static Status check_keys_of_part(const GgufHeader& part, const GgufHeader& first_part, const char* name) {
  for (const GgufValue& value : part.values) {
    const GgufValue* const first = value.key.starts_with("split.") ? nullptr : first_part.find(value.key);
    if (first && (first->type != value.type || first->bytes != value.bytes ||
                  (value.bytes && memcmp(first->data, value.data, value.bytes) != 0)))
      return fail(Code::File, "%s is a part of another model: its key %s differs from that of the first part",
                  name, Quoted(value.key).c_str());
  }
  return {};
}

// The parts themselves say which they are, since file names alone may be wrong.
Status Gguf::check_split() const {
  const uint32_t parts = source_.parts();
  uint64_t count = 1, number = 0, tensors = tensors_.size();
  bool found;
  for (uint32_t part = 0; part < parts; ++part) {
    GRETA_TRY(headers_[part].get_integer("split.count", UINT32_MAX, &count, &found));
    GRETA_TRY(headers_[part].get_integer("split.no", UINT32_MAX, &number, &found));
    if (parts == 1 && count > 1)
      return fail(Code::File,
                  "this is part %llu of a model split in %llu; the parts are found if they lie side by side "
                  "and their names end in -00001-of-%05llu.gguf and so on",
                  (unsigned long long)number + 1, (unsigned long long)count, (unsigned long long)count);
    if (parts > 1 && count == parts && !found)
      return fail(Code::File, "%s has no key split.no, expected it in part %u of %u", source_.name(part),
                  part + 1, parts);
    if (parts > 1 && (count != parts || number != part))
      return fail(Code::File, "%s says that it is part %llu of %llu, expected %u of %u", source_.name(part),
                  (unsigned long long)number + 1, (unsigned long long)count, part + 1, parts);
    if (part > 0) GRETA_TRY(check_keys_of_part(headers_[part], headers_[0], source_.name(part)));
  }
  GRETA_TRY(headers_[0].get_integer("split.tensors.count", UINT32_MAX, &tensors, &found));
  if (parts > 1 && tensors != tensors_.size())
    return fail(Code::File, "the %u parts hold %llu tensors, expected %llu (split.tensors.count)", parts,
                (unsigned long long)tensors_.size(), (unsigned long long)tensors);
  return {};
}

Status Gguf::index_tensors() {
  if (tensors_.size() > kMaxTensors)
    return fail(Code::File, "%llu tensors in all parts, expected at most %llu",
                (unsigned long long)tensors_.size(), (unsigned long long)kMaxTensors);
  tensor_order_.resize(tensors_.size());
  std::iota(tensor_order_.begin(), tensor_order_.end(), 0u);
  std::sort(tensor_order_.begin(), tensor_order_.end(), [&](uint32_t a, uint32_t b) {
    return tensors_[a].name != tensors_[b].name ? tensors_[a].name < tensors_[b].name : a < b;
  });
  for (size_t i = 1; i < tensor_order_.size(); ++i) {
    const GgufTensor& tensor = tensors_[tensor_order_[i]];
    if (tensor.name == tensors_[tensor_order_[i - 1]].name)
      return fail(Code::File, "tensor %s: there are two of this name", Quoted(tensor.name).c_str());
  }
  return {};
}

Status Gguf::require(std::string_view key) const {
  if (find(key)) return {};
  return fail(Code::File, "%s: key %s is missing", name(), Quoted(key).c_str());
}

const GgufTensor* Gguf::find_tensor(std::string_view name) const {
  const auto found = std::lower_bound(tensor_order_.begin(), tensor_order_.end(), name,
                                      [&](uint32_t i, std::string_view n) { return tensors_[i].name < n; });
  return found != tensor_order_.end() && tensors_[*found].name == name ? &tensors_[*found] : nullptr;
}

}  // namespace greta
