// The command /set: it takes the sampling options of the command line, one at a time, with the same checks.
#include <CLI/Config.hpp>
#include <algorithm>

#include "chat/talk.h"
#include "console.h"
#include "slips.h"

namespace greta::cli {
namespace {

struct OtherName {
  const char *name, *option;
};
constexpr OtherName kOtherNames[] = {{"temperature", "temp"},
                                     {"max-tokens", "predict"},
                                     {"n", "predict"},
                                     {"n-predict", "predict"},
                                     {"typical-p", "typical"}};

// "top_k" -> "--top-k"
std::string option_name(std::string name) {
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  std::replace(name.begin(), name.end(), '_', '-');
  for (const OtherName& other : kOtherNames) {
    if (name == other.name) name = other.option;
  }
  return "--" + name;
}

void declare(CLI::App& app, SamplingOptions& sampling, int64_t& predict) {
  app.set_help_flag();
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_options(app, sampling);
  app.add_option("--predict", predict)->check(in_range(int64_t{-1}, INT32_MAX))->capture_default_str();
}

}  // namespace

void Talk::set_sampling_option(const std::string& name, const std::string& value) {
  SamplingOptions sampling = options_.sampling;
  int64_t predict = options_.predict;
  CLI::App app;
  declare(app, sampling, predict);
  const std::string option = option_name(name);
  if (!app.get_option_no_throw(option)) {
    throw Failed("there is no setting " + name + "; /set alone lists them");
  }
  try {
    app.parse(std::vector<std::string>{option + "=" + value});
  } catch (const CLI::ParseError& error) {
    throw Failed(error.what());
  }
  options_.sampling = sampling;
  options_.predict = predict;
  set_sampling(engine_.session.get(), sampling);
}

std::string Talk::sampling_text() const {
  SamplingOptions sampling = options_.sampling;
  int64_t predict = options_.predict;
  CLI::App app;
  declare(app, sampling, predict);
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    text += format("  %-24s %s\n", option->get_lnames()[0].c_str(), option->get_default_str().c_str());
  }
  return text;
}

}  // namespace greta::cli
