#include "svg.h"

#include "console.h"

namespace greta::cli {

std::string xml(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '&'   ? "&amp;"
           : c == '<' ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '"' ? "&quot;"
                      : std::string(1, c);
  return out;
}

std::string label(double x, double y, const std::string& text, const char* anchor, int size) {
  return format("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\" fill=\"%s\">", x, y, size,
                anchor, kDark) +
         xml(text) + "</text>\n";
}

std::string bar(double x, double y, double width, double height, const char* colour) {
  return format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, width,
                height, colour);
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return format(
      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", x1, y1,
      x2, y2, colour);
}

std::string picture(double width, double height, const std::string& body) {
  return format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
             "font-family=\"sans-serif\">\n"
             "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
             width, height, width, height) +
         body + "</svg>\n";
}

}  // namespace greta::cli
