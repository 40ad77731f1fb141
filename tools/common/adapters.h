// Adapters that were asked for by their files.
#pragma once
#include <string>

#include "common/handles.h"

namespace greta::tools {

// A LoRA or a control vector beside a model.
struct GivenAdapter {
  std::string path;
  float scale = 1;                           // where nothing else says one
  uint32_t first_layer = 0, last_layer = 0;  // of a control vector; 0: as greta_adapter_options says
};

Adapter open_adapter(greta_model* model, const GivenAdapter& given);  // null: greta_error_text() says why

}  // namespace greta::tools
