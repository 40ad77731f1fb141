#include "report/tuning_page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "console.h"
#include "report/start.h"
#include "svg.h"

namespace greta::cli {
namespace {

// The candidates of an entry.
using Entry = std::vector<const Json*>;

std::vector<uint64_t> samples_of(const Json& candidate) {
  auto ns = candidate.at("ns").get<std::vector<uint64_t>>();
  std::sort(ns.begin(), ns.end());
  return ns;
}

double median_ns(const Json& candidate) {
  const std::vector<uint64_t> ns = samples_of(candidate);
  return ns.empty() ? 0 : static_cast<double>(ns[ns.size() / 2]);
}

std::string way_of(const Json& candidate) {
  std::string name = candidate.at("kernel").get<std::string>();
  const auto tokens = candidate.at("tile_tokens").get<uint32_t>();
  if (tokens) name += format(" %ux%u", candidate.at("tile").get<uint32_t>(), tokens);
  const auto splits = candidate.at("splits").get<uint32_t>();
  return splits > 1 ? name + format(" in %u", splits) : name;
}

// The share of the roof that binds it: what the launch takes at least, over what it took.
std::string roof_of(const Json& candidate, const Roofs& roofs) {
  const auto ns = static_cast<uint64_t>(median_ns(candidate));
  if (ns == 0 || roofs.bandwidth == 0 || roofs.arithmetic == 0) return "";
  const Bound bound =
      bound_of(roofs, candidate.at("bytes").get<uint64_t>(), candidate.at("flops").get<uint64_t>(), ns);
  return format("%.1f %%", bound.percent);
}

// The samples as dots over the ratio to the default's median, from a half to twice it.
std::string dots_of(const Json& candidate, double usual) {
  constexpr double kWidth = 180, kHeight = 16;
  std::string out = format("<svg width=\"%g\" height=\"%g\" role=\"img\">", kWidth, kHeight);
  out += cli::line(kWidth / 2, 0, kWidth / 2, kHeight, "#888a85");
  const char* const colour = candidate.at("chosen").get<bool>() ? kOrange : kBlue;
  for (const uint64_t ns : samples_of(candidate)) {
    if (usual == 0) break;
    const double at = std::clamp(std::log2(static_cast<double>(ns) / usual), -1.0, 1.0);
    out += format("<circle cx=\"%.1f\" cy=\"%g\" r=\"2.5\" fill=\"%s\" fill-opacity=\"0.6\"/>",
                  (at + 1) / 2 * (kWidth - 6) + 3, kHeight / 2, colour);
  }
  return out + "</svg>";
}

std::string table_cell(const std::string& text) { return "<td>" + xml(text) + "</td>"; }

std::string candidate_row(const Json& candidate, double usual, const Roofs& roofs) {
  const std::vector<uint64_t> ns = samples_of(candidate);
  const auto us = [](uint64_t value) { return format("%.2f", static_cast<double>(value) / 1e3); };
  const bool chosen = candidate.at("chosen").get<bool>(), usually = candidate.at("default").get<bool>();
  const bool rated = candidate.at("high").get<double>() > 0 && !usually;
  std::string out = chosen ? "<tr class=\"stage\">" : "<tr>";
  out += table_cell(way_of(candidate) + (usually ? ", the default" : "") + (chosen ? ", chosen" : ""));
  out += table_cell(ns.empty() ? "" : us(ns[ns.size() / 2]));
  out += table_cell(ns.empty() ? "" : us(ns.front()) + " to " + us(ns.back()));
  out += table_cell(rated ? format("%.3f [%.3f, %.3f]", candidate.at("ratio").get<double>(),
                                   candidate.at("low").get<double>(), candidate.at("high").get<double>())
                          : "");
  out += table_cell(roof_of(candidate, roofs)) + table_cell(candidate.at("verdict").get<std::string>());
  return out + table_cell(candidate.at("nmse").get<std::string>()) + "<td>" + dots_of(candidate, usual) +
         "</td></tr>\n";
}

// Of a kernel with several tiles and splits: the medians as a map, the faster the deeper the colour.
std::string map_of(const Entry& entry) {
  std::map<std::string, std::map<uint32_t, double>> tiles;
  std::set<uint32_t> splits;
  double best = 0;
  for (const Json* each : entry) {
    const double ns = median_ns(*each);
    if (ns == 0 || each->at("tile_tokens").get<uint32_t>() == 0) continue;
    Json whole = *each;
    whole["splits"] = 1;
    const auto count = each->at("splits").get<uint32_t>();
    tiles[way_of(whole)][count] = ns;
    splits.insert(count);
    best = best == 0 ? ns : std::min(best, ns);
  }
  if (splits.size() < 2) return "";
  std::string out = "<div class=\"wide\"><table><thead><tr><th>us, by groups that share a tile</th>";
  for (const uint32_t count : splits) out += format("<th>%u</th>", count);
  out += "</tr></thead><tbody>\n";
  for (const auto& [tile, medians] : tiles) {
    out += "<tr>" + table_cell(tile);
    for (const uint32_t count : splits) {
      const auto at = medians.find(count);
      if (at == medians.end()) {
        out += "<td></td>";
        continue;
      }
      out += format("<td style=\"background:rgba(52,101,164,%.2f)\">%.2f</td>", 0.7 * best / at->second,
                    at->second / 1e3);
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string entry_part(const std::string& key, const Entry& entry, const Roofs& roofs) {
  std::string out = "<h2>" + xml(key) + "</h2>\n<div class=\"wide\"><table><thead><tr>";
  for (const char* head : {"kernel", "median us", "spread us", "of the default's, 95 %", "of the roof",
                           "verdict", "NMSE", "samples: half, as long, twice"})
    out += std::string("<th>") + head + "</th>";
  out += "</tr></thead><tbody>\n";
  const double usual = median_ns(*entry[0]);
  for (const Json* candidate : entry) out += candidate_row(*candidate, usual, roofs);
  return out + "</tbody></table></div>\n" + map_of(entry);
}

// JSON within a script element: nothing in it may end the element.
std::string within_script(const Json& json) {
  std::string out;
  for (const char c : tools::json_text(json, -1))
    out += c == '<' ? "\\u003c" : std::string(1, c);
  return out;
}

}  // namespace

std::string tuning_page(const std::string& title, const Json& candidates, const Roofs& roofs) {
  std::string out = page_start(title);
  std::vector<std::pair<std::string, Entry>> entries;  // candidates of an entry follow each other
  size_t changed = 0;
  for (const Json& each : candidates) {
    const std::string key = each.at("entry").get<std::string>();
    if (entries.empty() || entries.back().first != key) entries.push_back({key, {}});
    entries.back().second.push_back(&each);
    changed += each.at("chosen").get<bool>() && !each.at("default").get<bool>();
  }
  out += format("<p>%zu entries, of which %zu do not run their default.", entries.size(), changed);
  if (roofs.bandwidth > 0)
    out += format(" The roofs are %.1f GB/s and %.3f TFLOP/s, as measured.",
                  static_cast<double>(roofs.bandwidth) * 1e-9, static_cast<double>(roofs.arithmetic) * 1e-12);
  out += "</p>\n";
  for (const auto& [key, entry] : entries) out += entry_part(key, entry, roofs);
  return out + "<script type=\"application/json\" id=\"table\">" + within_script(candidates) +
         "</script>\n</body></html>\n";
}

}  // namespace greta::cli
