// greta-cli report: makes a page of a profile.
#include <memory>

#include "commands/commands.h"
#include "console.h"
#include "json.h"
#include "options.h"
#include "output_file.h"
#include "report/page.h"
#include "slips.h"

namespace greta::cli {
namespace {

struct ReportOptions {
  VerbosityOptions verbosity;
  std::string profile, baseline, output;
};

constexpr size_t kMostReportBytes = 2 << 20;

Json read_profile(const std::string& path) {
  Json json = Json::parse(read_file(path), nullptr, false);
  if (!json.is_object()) throw Failed(path + ": expected what greta-cli profile -o json prints");
  return json;
}

int write_report(const ReportOptions& options) {
  options.verbosity.apply();
  Json profile = read_profile(options.profile);
  const Json baseline = options.baseline.empty() ? Json(nullptr) : read_profile(options.baseline);
  std::string page = report_page(profile, baseline);
  while (page.size() > kMostReportBytes && profile["timeline"].size() > 1) {  // the page stays small
    Json& timeline = profile["timeline"];
    timeline.erase(timeline.begin() + static_cast<Json::difference_type>(timeline.size() / 2),
                   timeline.end());
    page = report_page(profile, baseline);
  }
  if (options.output.empty()) {
    put(page);
    return kExitOk;
  }
  write_whole(options.output, page);
  note("the report is in " + options.output);
  return kExitOk;
}

}  // namespace

Action report_command(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option("profile", options->profile, "what greta-cli profile -o json has printed")
      ->type_name("FILE")
      ->required()
      ->check(not_empty());
  app.add_option("--baseline", options->baseline, "show another profile beside it")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_option("-o,--output", options->output, "write the page to this file and not to stdout")
      ->type_name("FILE")
      ->check(not_empty());
  add_options(app, options->verbosity);
  app.footer("The page is one HTML file of at most 2 MiB, which asks for nothing from elsewhere.");
  return [options] { return write_report(*options); };
}

}  // namespace greta::cli
