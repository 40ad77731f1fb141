// How a file whose architecture nobody knows differs from the known ones that are nearest by its tensors.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "engine/model/shape.h"

namespace greta {

// Names have "*" for the layer.
struct Nearest {
  std::vector<const Arch*> archs;  // all that differ alike
  bool by_size = true;  // false: no known architecture has sizes like the file's, so names were compared
  std::set<std::string> unused_keys;  // that these do not read
  std::set<std::string> unused_tensors,
      lacking_tensors;  // that these have no use for; that the file lacks for them
};

// `name`: what the file calls its architecture.
Nearest nearest_arch(const Gguf& gguf, const std::string& name);

}  // namespace greta
