#include "report/start.h"

#include "report/script.h"
#include "svg.h"

namespace greta::cli {

std::string page_start(const std::string& title, bool scripts) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; " +
         std::string(scripts ? "script-src 'unsafe-inline'; " : "") +
         "img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n<title>" + xml(title) + "</title><style>" +
         kReportStyle + "</style></head><body>\n<h1>" + xml(title) + "</h1>\n";
}

}  // namespace greta::cli
