// Shapes of an SVG picture as text.
#pragma once
#include <string>

namespace greta::cli {

inline constexpr char kBlue[] = "#3465a4", kOrange[] = "#f57900", kDark[] = "#2e3436", kPale[] = "#eeeeec";

std::string xml(const std::string& text);  // with & < > " as their entities
std::string label(double x, double y, const std::string& text, const char* anchor = "start", int size = 13);
std::string bar(double x, double y, double width, double height, const char* colour);
std::string line(double x1, double y1, double x2, double y2, const char* colour);
std::string picture(double width, double height, const std::string& body);  // on white

}  // namespace greta::cli
