// The model that comes with the program.
#pragma once
#include <string>

namespace greta::cli {

inline constexpr char kBundledModel[] = "tales-llama-7m-q4_k_m.gguf";

// Gives the path of the bundled model, "" if it is not there.
std::string bundled_model_path();

}  // namespace greta::cli
