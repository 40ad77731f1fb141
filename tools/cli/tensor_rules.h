// The rules of --override-tensor: which tensors are on which device.
#pragma once
#include "options.h"

namespace greta::cli {

// Reads the rules, for the devices of this runtime, and keeps them in the options. Throws Misused where one
// has a wrong form, and Failed where it names a device that is not there, or no tensor of the model. An empty
// path means that the model is not known yet.
void prepare_rules(const DeviceOptions& options, const greta_runtime* runtime, const std::string& model);

// greta_placement.device_of with the options: by the first rule that finds the name.
int device_by_rules(void* options, const char* tensor);

}  // namespace greta::cli
