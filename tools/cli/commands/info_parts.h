// Where the bytes of a file are: by the type of its tensors, and by the part of the model.
#pragma once
#include <string>
#include <vector>

#include "greta.h"
#include "json.h"

namespace greta::cli {

struct Share {
  std::string name;
  uint64_t bytes = 0;
};

// In order of bytes, the most first.
std::vector<Share> bytes_by_type(const std::vector<greta_tensor_info>& tensors);
std::vector<Share> bytes_by_part(const std::vector<greta_tensor_info>& tensors);

std::string shares_text(const char* title, const std::vector<Share>& shares);  // a bar for each
Json shares_json(const std::vector<Share>& shares);

}  // namespace greta::cli
