// The architectures of this build, and what to say of a file that has another one.
#include <algorithm>
#include <set>
#include <string>

#include "engine/model/file_audit.h"
#include "engine/model/nearest_arch.h"

namespace greta {

#define ARCH(name) extern const Arch arch_##name;
#include "arch_list.inc"
#undef ARCH

static const Arch* const kArchs[] = {
#define ARCH(name) &arch_##name,
#include "arch_list.inc"
#undef ARCH
};

static std::string known_names() {
  std::string known;
  for (const Arch* arch : kArchs) known += std::string(known.empty() ? "" : ", ") + arch->name;
  return known;
}

Status find_arch(std::string_view name, const Arch** out) {
  for (const Arch* arch : kArchs)
    if (name == arch->name) return *out = arch, Status{};
  return fail(Code::Unsupported, "architecture \"%.*s\" is not one of those this build runs: %s",
              int(name.size()), name.data(), known_names().c_str());
}

namespace {

using Names = std::set<std::string>;

size_t differences(const Nearest& likeness) {
  return likeness.unused_tensors.size() + likeness.lacking_tensors.size() + likeness.unused_keys.size();
}
bool differ_alike(const Nearest& a, const Nearest& b) {
  return a.unused_tensors == b.unused_tensors && a.lacking_tensors == b.lacking_tensors &&
         a.unused_keys == b.unused_keys;
}

// A tensor's name with "*" for the layer, and for every other part that is a number.
std::string any_layer(const std::string& name) {
  std::string out;
  for (size_t begin = 0, end = 0; begin <= name.size(); begin = end + 1) {
    end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool number = part.find_first_not_of("0123456789") == part.npos && !part.empty();
    out += (begin ? "." : "") + (number || part == "%u" ? "*" : part);
  }
  return out;
}

// Reads a file, whose architecture is called `name`, as one of `known`. False: its sizes do not allow it.
bool compare(const Gguf& gguf, const Arch& known, const std::string& name, Nearest* out) {
  Arch like = known;
  like.name = name.c_str();
  Shape shape;
  KeysRead keys;
  if (!read_shape(gguf, like, &shape, &keys).ok()) return false;
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

// Compares the names of tensors alone, where no architecture has sizes like the file's. What is lacking
// counts here also where a size would say that there is no such part, and is the same for all that have it.
void compare_names(const Names& there, const Arch& known, Nearest* out) {
  static_assert(sizeof(TensorNames) % sizeof(TensorName) == 0);  // it has names alone
  const TensorNames& tensors = known.tensors;
  const auto* names = reinterpret_cast<const TensorName*>(&tensors);
  Names all;
  for (size_t i = 0; i < sizeof(TensorNames) / sizeof(TensorName); ++i) {
    const bool latent = &names[i] >= &tensors.query_down && &names[i] <= &tensors.key_value_up;
    if (!names[i].text || (latent && !known.latent)) continue;
    const std::string name = any_layer(names[i].text);
    all.insert(name);
    if (!names[i].optional && !there.contains(name)) out->lacking_tensors.insert(name);
  }
  for (const std::string& name : there)
    if (!all.contains(name)) out->unused_tensors.insert(name);
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
std::string nearest_text(const Nearest& nearest) {
  Names names;
  for (const Arch* arch : nearest.archs) names.insert(arch->name);
  const std::string text =
      (nearest.by_size ? "nearest by its tensors: "
                       : "no known architecture has sizes like its own; nearest by the names of "
                         "its tensors: ") +
      some_of(names);
  std::string parts;
  add_part(" tensors that it has no use for, ", nearest.unused_tensors, &parts);
  add_part(" tensors that it would lack, ", nearest.lacking_tensors, &parts);
  add_part(" keys that it does not read, ", nearest.unused_keys, &parts);
  if (parts.empty()) return text + (nearest.by_size ? ", with the same tensors and keys" : "");
  parts.pop_back();
  return text + ";" + parts;
}

}  // namespace

Nearest nearest_arch(const Gguf& gguf, const std::string& name) {
  Nearest best;  // all of the same differences
  Names there;
  for (const GgufTensor& tensor : gguf.tensors()) there.insert(any_layer(std::string(tensor.name)));
  for (const bool by_size : {true, false}) {
    for (const Arch* arch : kArchs) {
      Nearest likeness;
      likeness.by_size = by_size;
      if (by_size && !compare(gguf, *arch, name, &likeness)) continue;
      if (!by_size) compare_names(there, *arch, &likeness);
      if (!best.archs.empty() && differences(likeness) > differences(best)) continue;
      if (!best.archs.empty() && differ_alike(likeness, best)) likeness.archs = std::move(best.archs);
      likeness.archs.push_back(arch);
      best = std::move(likeness);
    }
    if (!best.archs.empty()) break;
  }
  if (!best.by_size) best.lacking_tensors.clear();
  return best;
}

Status file_arch(const Gguf& gguf, const Arch** out) {
  std::string_view name;
  GRETA_TRY(gguf.require("general.architecture"));
  GRETA_TRY(gguf.get_string("general.architecture", &name));
  if (find_arch(name, out).ok()) return {};
  const std::string near = nearest_text(nearest_arch(gguf, std::string(name)));
  // The list comes last, since it is what may be cut.
  return fail(Code::Unsupported, "%s: architecture %s is not one of those this build runs; %s; it runs %s",
              gguf.name(), Quoted(name).c_str(), near.c_str(), known_names().c_str());
}

}  // namespace greta
