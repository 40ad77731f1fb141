#include "commands/info_parts.h"

#include <algorithm>

#include "console.h"

namespace greta::cli {
namespace {

// The first row of which the name has the text.
struct Part {
  const char *text, *name;
};
constexpr Part kParts[] = {
    {"token_embd", "embedding"}, {"_exps", "experts"}, {"_shexp", "shared experts"},
    {"ffn_gate_inp", "experts"}, {"_norm", "norms"},   {"attn", "attention"},
    {"ffn", "feed-forward"},     {"output", "output"},
};
constexpr char kOther[] = "other";

const char* part_of(const std::string& name) {
  for (const Part& part : kParts) {
    if (name.find(part.text) != name.npos) return part.name;
  }
  return kOther;
}

void add(std::vector<Share>* shares, const std::string& name, uint64_t bytes) {
  auto found =
      std::find_if(shares->begin(), shares->end(), [&](const Share& each) { return each.name == name; });
  if (found == shares->end()) found = shares->insert(found, {name, 0});
  found->bytes += bytes;
}

std::vector<Share> largest_first(std::vector<Share> shares) {
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
  });
  return shares;
}

}  // namespace

std::vector<Share> bytes_by_type(const std::vector<greta_tensor_info>& tensors) {
  std::vector<Share> shares;
  for (const greta_tensor_info& tensor : tensors) add(&shares, tensor.type, tensor.size_bytes);
  return largest_first(std::move(shares));
}

std::vector<Share> bytes_by_part(const std::vector<greta_tensor_info>& tensors) {
  std::vector<Share> shares;
  for (const greta_tensor_info& tensor : tensors) add(&shares, part_of(tensor.name), tensor.size_bytes);
  return largest_first(std::move(shares));
}

std::string shares_text(const char* title, const std::vector<Share>& shares) {
  constexpr double kBar = 40;  // characters
  if (shares.empty()) return "";
  uint64_t total = 0;
  for (const Share& share : shares) total += share.bytes;
  std::string text = format("\n%s\n", title);
  for (const Share& share : shares) {
    const double part = static_cast<double>(share.bytes) / static_cast<double>(std::max<uint64_t>(total, 1));
    const double of_largest =
        static_cast<double>(share.bytes) / static_cast<double>(std::max<uint64_t>(shares[0].bytes, 1));
    const std::string drawn(static_cast<size_t>(kBar * of_largest + 0.5), '#');
    text += format("  %-14s %-40s %12s %5.1f %%\n", share.name.c_str(), drawn.c_str(),
                   size_text(share.bytes).c_str(), 100 * part);
  }
  return text;
}

Json shares_json(const std::vector<Share>& shares) {
  Json json = Json::object();
  for (const Share& share : shares) json[share.name] = share.bytes;
  return json;
}

}  // namespace greta::cli
