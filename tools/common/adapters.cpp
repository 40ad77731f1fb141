#include "common/adapters.h"

namespace greta::tools {

Adapter open_adapter(greta_model* model, const GivenAdapter& given) {
  auto source = sized<greta_source>();
  source.path = given.path.c_str();
  auto options = sized<greta_adapter_options>();
  options.first_layer = given.first_layer;
  options.last_layer = given.last_layer;
  greta_adapter* opened = nullptr;
  return Adapter(greta_adapter_open(model, &source, &options, &opened) == GRETA_OK ? opened : nullptr);
}

}  // namespace greta::tools
