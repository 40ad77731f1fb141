#include "report/page.h"

#include <algorithm>
#include <vector>

#include "bench/drawing.h"
#include "console.h"
#include "report/script.h"
#include "report/start.h"
#include "svg.h"

namespace greta::cli {
namespace {

std::string fact_of(const Json& json, const char* key) {
  if (!json.contains(key) || json[key].is_null()) return "not known";
  return json[key].is_string() ? json[key].get<std::string>() : json[key].dump();
}

std::string table_row(const std::vector<std::string>& cells, const char* form = "td", const char* kind = "") {
  std::string out = *kind ? format("<tr class=\"%s\">", kind) : "<tr>";
  for (const std::string& cell : cells) out += format("<%s>", form) + xml(cell) + format("</%s>", form);
  return out + "</tr>\n";
}

std::string table(const std::vector<std::string>& heads, const std::string& rows) {
  return "<div class=\"wide\"><table><thead>" + table_row(heads, "th") + "</thead><tbody>\n" + rows +
         "</tbody></table></div>\n";
}

double value(const Json& json, const char* key) { return json.at(key).get<double>(); }

// The steps of a kind; null if there are none.
const Json* steps_of(const Json& profile, const char* kind) {
  if (!profile.is_object()) return nullptr;
  for (const Json& steps : profile.at("steps"))
    if (steps.at("kind") == kind) return &steps;
  return nullptr;
}

struct TimePart {
  std::string name;
  double ns;
};

// Where the time of a step goes: stages of the device, then what the host does while the device waits.
std::vector<TimePart> time_parts(const Json& steps) {
  std::vector<TimePart> parts;
  for (const Json& stage : steps.at("stages"))
    parts.push_back({stage.at("stage").get<std::string>(), value(stage, "ns")});
  const double device = value(steps, "device_ns"), wait = value(steps, "wait_ns");
  parts.push_back({"host: record", value(steps, "record_ns")});
  parts.push_back({"host: submit", value(steps, "submit_ns")});
  if (device == 0) parts.push_back({"host: wait", wait});
  double told = 0;
  for (const TimePart& part : parts) told += part.ns;
  parts.push_back({"else", std::max(0.0, value(steps, "ns") - told)});
  return parts;
}

std::string bar_of(const Json& steps) {
  constexpr const char* kColours[] = {"#3465a4", "#f57900", "#73d216", "#75507b", "#cc0000", "#c4a000",
                                      "#06989a", "#8f5902", "#ad7fa8", "#729fcf", "#888a85", "#babdb6"};
  const std::vector<TimePart> parts = time_parts(steps);
  double all = 0;
  for (const TimePart& part : parts) all += part.ns;
  std::string bar = "<div class=\"bar\">", legend = "<div class=\"legend\">";
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].ns <= 0 || all <= 0) continue;
    const char* const colour = kColours[i % std::size(kColours)];
    const double percent = 100 * parts[i].ns / all;
    bar += format("<i style=\"width:%.3f%%;background:%s\" title=\"", percent, colour) + xml(parts[i].name) +
           "\"></i>";
    legend += format("<span><b style=\"background:%s\"></b>", colour) + xml(parts[i].name) +
              format(" %.1f %%</span>", percent);
  }
  return bar + "</div>" + legend + "</div>\n";
}

// The same kernel in the other profile; null if it has none.
const Json* kernel_of(const Json* steps, const Json& stage, const Json& kernel) {
  if (!steps) return nullptr;
  for (const Json& other : steps->at("stages"))
    if (other.at("stage") == stage.at("stage"))
      for (const Json& each : other.at("kernels"))
        if (each.at("kernel") == kernel.at("kernel")) return &each;
  return nullptr;
}

double per_step(const Json& steps, double ns) { return ns / std::max(1.0, value(steps, "steps")); }

std::vector<std::string> cells_of(const std::string& name, const Json& work, const Json& steps) {
  return {name,
          work.at("launches").dump(),
          format("%.2f", per_step(steps, value(work, "ns")) * 1e-3),
          format("%.2f", value(work, "gb_s")),
          format("%.4f", value(work, "tflop_s")),
          work.at("bound").get<std::string>(),
          format("%.1f", value(work, "roof_percent"))};
}

// What drivers told of the kernels' registers, by kernel; an older profile has none.
Json machine_code_of(const Json& profile) { return profile.value("machine_code", Json::object()); }

std::string kernels_of(const Json& steps, const Json* before, const Json& machine_code) {
  std::vector<std::string> heads = {"stage and kernels", "launches", "us/step",  "GB/s",
                                    "TFLOP/s",           "bound by", "% of roof"};
  if (before) heads.emplace_back("baseline us");
  if (!machine_code.empty()) heads.emplace_back("the driver tells");
  std::string rows;
  for (const Json& stage : steps.at("stages")) {
    std::vector<std::string> cells = cells_of(stage.at("stage").get<std::string>(), stage, steps);
    if (before) cells.emplace_back("");
    if (!machine_code.empty()) cells.emplace_back("");
    rows += table_row(cells, "td", "stage");
    for (const Json& kernel : stage.at("kernels")) {
      cells = cells_of("  " + kernel.at("kernel").get<std::string>(), kernel, steps);
      const Json* const other = kernel_of(before, stage, kernel);
      if (before)
        cells.push_back(other ? format("%.2f", per_step(*before, value(*other, "ns")) * 1e-3) : "none");
      if (!machine_code.empty())
        cells.push_back(machine_code.value(kernel.at("kernel").get<std::string>(), ""));
      rows += table_row(cells);
    }
  }
  return table(heads, rows);
}

std::string counters_of(const Json& profile) {
  std::string rows, out;
  for (const Json& counter : profile.value("counters", Json::array()))
    rows += table_row({counter.at("name").get<std::string>(), format("%.2f", value(counter, "least")),
                       format("%.2f", value(counter, "median")), format("%.2f", value(counter, "most"))});
  if (!rows.empty()) out = "<h2>Counters</h2>\n" + table({"", "least", "median", "most"}, rows);
  for (const Json& missing : profile.value("missing", Json::array()))
    out += "<p>Not there: " + xml(missing.get<std::string>()) + "</p>\n";
  return out;
}

std::string machine_of(const Json& profile, const Json& baseline) {
  constexpr std::pair<const char*, const char*> kFacts[] = {{"model", "model_filename"},
                                                            {"type", "model_type"},
                                                            {"device", "device"},
                                                            {"driver", "driver"},
                                                            {"commit", "build_commit"},
                                                            {"compiler", "compiler"},
                                                            {"system", "os"},
                                                            {"processor", "cpu"},
                                                            {"governor", "cpu_governor"},
                                                            {"load", "load_average"},
                                                            {"on battery", "on_battery"},
                                                            {"times are uncertain", "disturbed"},
                                                            {"tuning table", "tuning_table"},
                                                            {"launches are", "launches"}};
  std::string rows;
  for (const auto& [name, key] : kFacts) {
    std::vector<std::string> cells = {name, fact_of(profile, key)};
    if (!baseline.is_null()) cells.push_back(fact_of(baseline, key));
    rows += table_row(cells);
  }
  std::vector<std::string> heads = {"", "this run"};
  if (!baseline.is_null()) heads.emplace_back("baseline");
  return table(heads, rows);
}

std::string speeds_of(const Json& profile, const Json& baseline) {
  std::string rows;
  for (const Json& steps : profile.at("steps")) {
    const Json* const before = steps_of(baseline, steps.at("kind").get<std::string>().c_str());
    std::vector<std::string> cells = {
        steps.at("kind").get<std::string>(), steps.at("steps").dump(), steps.at("tokens").dump(),
        format("%.3f", value(steps, "median_ns") * 1e-6),
        format("%.1f", 1e9 * value(steps, "tokens") / std::max(1.0, value(steps, "ns")))};
    if (!baseline.is_null()) {
      cells.push_back(before ? format("%.3f", value(*before, "median_ns") * 1e-6) : "none");
      cells.push_back(
          before ? format("%.3f", value(*before, "median_ns") / std::max(1.0, value(steps, "median_ns")))
                 : "none");
    }
    rows += table_row(cells);
  }
  std::vector<std::string> heads = {"steps", "number", "tokens", "median ms", "tokens/s"};
  if (!baseline.is_null()) heads.insert(heads.end(), {"baseline ms", "speed-up"});
  return table(heads, rows);
}

// JSON within a script element: nothing in it may end the element.
std::string embedded(const Json& json) {
  std::string out;
  for (const char c : json.dump()) out += c == '<' ? "\\u003c" : std::string(1, c);
  return out;
}

std::string device_part(const Json& profile, const Json& steps, const char* title, const Json* before) {
  std::string out = format("<h2>%s: where the time goes</h2>\n", title) + bar_of(steps);
  if (steps.at("stages").empty()) return out;
  out += format("<h2>%s: kernels</h2>\n", title) + kernels_of(steps, before, machine_code_of(profile));
  const Json roofs = {{"bandwidth_gb_s", profile.at("bandwidth_gb_s")},
                      {"arithmetic_tflop_s", profile.at("arithmetic_tflop_s")},
                      {"stages", steps.at("stages")}};
  return out + "<div class=\"picture\">" +
         roofline_svg(roofs, std::string(title) + ": stages under the measured roofs") + "</div>\n";
}

std::string page(const Json& profile, const Json& baseline) {
  const std::string title = fact_of(profile, "model_filename") + " on " + fact_of(profile, "device");
  std::string out = page_start(title, true);
  out += speeds_of(profile, baseline);
  for (const auto& [kind, name] :
       {std::pair("decode", "Decode"), {"prompt", "Prompt"}, {"first", "First steps"}})
    if (const Json* const steps = steps_of(profile, kind))
      out += device_part(profile, *steps, name, steps_of(baseline, kind));
  out +=
      "<h2>Timeline</h2>\n<p><button id=\"closer\">zoom in</button><button id=\"further\">zoom "
      "out</button><button id=\"step\">last step</button><button id=\"whole\">all</button> <span "
      "id=\"told\"></span></p>\n<canvas id=\"chart\"></canvas>\n";
  const size_t shown = profile.at("timeline").size(), all = profile.at("spans").get<size_t>();
  if (shown < all) out += format("<p>The first %zu of %zu spans are shown.</p>\n", shown, all);
  out += format("<p>The device's clock may stand %.1f us beside the host's.</p>\n",
                value(profile, "clock_error_ns") * 1e-3);
  out += counters_of(profile);
  out += "<h2>Machine</h2>\n" + machine_of(profile, baseline);
  Json numbers = profile;
  numbers.erase("timeline");
  out += "<script type=\"application/json\" id=\"profile\">" + embedded(numbers) + "</script>\n";
  out +=
      "<script type=\"application/json\" id=\"timeline\">" + embedded(profile.at("timeline")) + "</script>\n";
  return out + "<script>" + kReportScript + "</script>\n</body></html>\n";
}

}  // namespace

std::string report_page(const Json& profile, const Json& baseline) {
  try {
    for (const Json* each : {&profile, &baseline})
      if (!each->is_null() && each->at("kind") != "greta profile")
        throw Failed("expected what greta-cli profile -o json prints");
    return page(profile, baseline);
  } catch (const Json::exception&) {
    throw Failed("expected what greta-cli profile -o json prints");
  }
}

}  // namespace greta::cli
