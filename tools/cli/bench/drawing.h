// Results of bench as pictures, drawn from the JSON that bench prints.
#pragma once
#include <string>

#include "json.h"

namespace greta::cli {

// An SVG with a bar for each row, as long as its share of the roof that bounds it: for tokens that are
// generated, reading the weights at the measured bandwidth; for prompts, two operations for each parameter at
// the measured rate of arithmetic. Rows of a profile get its roofline below: a point for each stage, by
// operations for each byte and operations per second, under both roofs.
// Throws Failed if `rows` is not what bench -o json prints.
std::string bench_svg(const Json& rows);

// The roofline alone, of an object with bandwidth_gb_s, arithmetic_tflop_s and stages.
std::string roofline_svg(const Json& row, const std::string& title);

}  // namespace greta::cli
