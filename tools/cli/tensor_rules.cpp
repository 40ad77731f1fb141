#include "tensor_rules.h"

#include <strings.h>

#include <algorithm>
#include <regex>

#include "console.h"
#include "model.h"

namespace greta::cli {

struct TensorRule {
  std::regex names;
  int device;
  bool finds(const char* tensor) const { return std::regex_search(tensor, names); }
};

struct TensorRules {
  std::vector<TensorRule> all;
};

namespace {

// Names of devices may be written in any case: "CPU".
int index_of(const std::string& device, const greta_runtime* runtime) {
  const uint32_t count = greta_runtime_device_count(runtime);
  for (uint32_t d = 0; d < count; ++d) {
    auto info = sized<greta_device_info>();
    check(greta_runtime_device(runtime, d, &info));
    if (strcasecmp(info.id, device.c_str()) == 0) return static_cast<int>(d);
  }
  return -1;
}

TensorRule read_rule(const std::string& text, const greta_runtime* runtime) {
  const size_t cut = text.find('=');
  if (cut == 0 || cut == std::string::npos || cut + 1 == text.size())
    throw Misused("--override-tensor takes REGEX=DEVICE, not \"" + text + "\"");
  TensorRule rule;
  try {
    rule.names = std::regex(text.substr(0, cut));
  } catch (const std::regex_error& error) {
    throw Misused("--override-tensor " + text + " has no regular expression: " + error.what());
  }
  rule.device = index_of(text.substr(cut + 1), runtime);
  if (rule.device < 0)
    throw Failed("--override-tensor " + text + ": this device is not among those that are open");
  return rule;
}

}  // namespace

void prepare_rules(const DeviceOptions& options, const greta_runtime* runtime, const std::string& model) {
  if (options.overrides.empty()) return;
  auto rules = std::make_shared<TensorRules>();
  for (const std::string& text : options.overrides) rules->all.push_back(read_rule(text, runtime));
  options.rules = rules;
  if (model.empty()) return;
  const File file = open_file(model);
  const std::vector<greta_tensor_info> tensors = read_tensors(file.get());
  for (size_t i = 0; i < rules->all.size(); ++i)
    if (std::none_of(tensors.begin(), tensors.end(),
                     [&](const greta_tensor_info& tensor) { return rules->all[i].finds(tensor.name); }))
      throw Failed("--override-tensor " + options.overrides[i] + " names no tensor of the model");
}

int device_by_rules(void* options, const char* tensor) {
  constexpr int kUnread = -2;  // is refused by the library
  const auto& rules = static_cast<const DeviceOptions*>(options)->rules;
  if (!rules) return kUnread;
  for (const TensorRule& rule : rules->all)
    if (rule.finds(tensor)) return rule.device;
  return -1;
}

}  // namespace greta::cli
