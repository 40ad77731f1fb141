// The architectures of this build, and what to say of a file that has another one.
#include <algorithm>
#include <set>
#include <string>

#include "engine/model/file_audit.h"

namespace greta {

#define ARCH(name) extern const Arch arch_##name;
#include "arch_list.inc"
#undef ARCH

static const Arch* const kArchs[] = {
#define ARCH(name) &arch_##name,
#include "arch_list.inc"
#undef ARCH
};

Status find_arch(std::string_view name, const Arch** out) {
  std::string known;
  for (const Arch* arch : kArchs) {
    if (name == arch->name) return *out = arch, Status{};
    known += known.empty() ? "" : ", ";
    known += arch->name;
  }
  return fail(Code::Unsupported, "architecture \"%.*s\" is not one of those this build runs: %s",
              int(name.size()), name.data(), known.c_str());
}

namespace {

using Names = std::set<std::string>;

// How a file would be read as one of a known architecture.
struct Likeness {
  const Arch* arch = nullptr;
  Names unused_tensors, lacking_tensors, unused_keys;  // names of layers have "*" for the layer
  size_t differences() const { return unused_tensors.size() + lacking_tensors.size() + unused_keys.size(); }
  bool differs_like(const Likeness& other) const {
    return unused_tensors == other.unused_tensors && lacking_tensors == other.lacking_tensors &&
           unused_keys == other.unused_keys;
  }
};

// A tensor's name with "*" for the layer.
std::string any_layer(const std::string& name) {
  const size_t end = name.starts_with("blk.") ? name.find('.', 4) : name.npos;
  return end == name.npos ? name : "blk.*" + name.substr(end);
}

// Reads a file, whose architecture is called `name`, as one of `known`. False: its sizes do not allow it.
bool compare(const Gguf& gguf, const Arch& known, const std::string& name, Likeness* out) {
  Arch like = known;
  like.name = name.c_str();
  Shape shape;
  KeysRead keys;
  if (!read_shape(gguf, like, &shape, &keys).ok()) return false;
  out->arch = &known;
  Weights weights;
  for (const NamedTensor& each : model_tensors(gguf, like, shape, &weights))
    if (!each.wanted.name.optional && !gguf.find_tensor(each.name))
      out->lacking_tensors.insert(any_layer(each.name));
  for (const UnusedPart& part : unused_parts(gguf, like, shape, keys)) {
    if (part.verdict == UnusedPart::Verdict::Needless) continue;
    const std::string part_name(part.name);
    part.tensor ? out->unused_tensors.insert(any_layer(part_name)) : out->unused_keys.insert(part_name);
  }
  return true;
}

// The first few of the names.
std::string some_of(const Names& names) {
  constexpr size_t kMost = 3;
  std::string text;
  size_t count = 0;
  for (const std::string& name : names) {
    if (count++ == kMost) return text + ", ...";
    text += std::string(text.empty() ? "" : ", ") + Quoted(name).c_str();
  }
  return text;
}

void add_part(const char* what, const Names& names, std::string* text) {
  if (!names.empty()) *text += what + std::to_string(names.size()) + ": " + some_of(names) + ";";
}

// Says which known architectures are nearest by their tensors, and how they differ.
std::string nearest(const Gguf& gguf, const std::string& name) {
  std::vector<Likeness> best;  // all of the same differences
  for (const Arch* arch : kArchs) {
    Likeness likeness;
    if (!compare(gguf, *arch, name, &likeness)) continue;
    if (!best.empty() && likeness.differences() > best[0].differences()) continue;
    if (!best.empty() && !likeness.differs_like(best[0])) best.clear();
    best.push_back(std::move(likeness));
  }
  if (best.empty()) return "no known architecture has sizes like its own";
  Names names;
  for (const Likeness& each : best) names.insert(each.arch->name);
  const std::string text = "nearest by its tensors: " + some_of(names);
  std::string parts;
  add_part(" tensors that it has no use for, ", best[0].unused_tensors, &parts);
  add_part(" tensors that it would lack, ", best[0].lacking_tensors, &parts);
  add_part(" keys that it does not read, ", best[0].unused_keys, &parts);
  if (parts.empty()) return text + ", with the same tensors and keys";
  parts.pop_back();
  return text + ";" + parts;
}

}  // namespace

Status file_arch(const Gguf& gguf, const Arch** out) {
  std::string_view name;
  GRETA_TRY(gguf.require("general.architecture"));
  GRETA_TRY(gguf.get_string("general.architecture", &name));
  const Status status = find_arch(name, out);
  if (status.ok()) return {};
  const std::string known = error_text(), near = nearest(gguf, std::string(name));
  return fail(Code::Unsupported, "%s: %s; %s", gguf.name(), known.c_str(), near.c_str());
}

}  // namespace greta
