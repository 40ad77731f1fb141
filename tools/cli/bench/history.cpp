#include "bench/history.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "bench/compare.h"
#include "bench/statistics.h"
#include "console.h"
#include "output_file.h"
#include "report/start.h"
#include "svg.h"

namespace greta::cli {
namespace {

// A file's results of one test.
struct SavedRow {
  std::string time, commit;
  std::vector<double> samples;
  double median = 0;
  double change = 0;  // percent, where the speed changed: beside all since the change before
  bool few = false;   // too few runs to tell
};

struct Course {
  std::string name;
  std::vector<SavedRow> records;  // by time
};

std::vector<Results> read_folder(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  if (error) throw Failed(folder + ": " + error.message());
  std::vector<Results> all;
  for (const std::string& path : paths) {
    try {
      all.push_back(read_results(path, false));
    } catch (const Failed& failure) {
      note(std::string("left out: ") + failure.what());
    }
  }
  if (all.empty()) throw Failed(folder + ": no file that bench --save has written");
  std::sort(all.begin(), all.end(), [](const Results& a, const Results& b) {
    return a.time != b.time ? a.time < b.time : a.path < b.path;
  });
  return all;
}

// Compares each record with all that came since the last change.
void find_changes(Course* course, double threshold) {
  std::vector<double> since;
  size_t records = 0;
  for (SavedRow& record : course->records) {
    record.few = record.samples.size() < kFewestRuns;
    if (records > 0 && !record.few && since.size() >= kFewestRuns) {
      const Difference found = difference(since, record.samples);
      const double change = 100 * (found.ratio - 1);
      if (found.p < kSure && std::abs(change) > threshold) {
        record.change = change;
        since.clear();
      }
    }
    since.insert(since.end(), record.samples.begin(), record.samples.end());
    ++records;
  }
}

std::vector<Course> courses_of(const std::vector<Results>& all, double threshold) {
  std::map<std::string, Course> by_name;
  std::vector<std::string> order;
  for (const Results& results : all)
    for (const Measured& test : results.tests) {
      std::string key = shown_name(test.name, results.tests);
      for (const auto& [what, value] : results.same) key += "\n" + value;
      if (by_name.find(key) == by_name.end()) order.push_back(key);
      Course& course = by_name[key];
      const auto device = results.same.find("device");
      course.name = shown_name(test.name, results.tests) +
                    (device == results.same.end() ? "" : " on " + device->second);
      course.records.push_back(
          {results.time, results.commit, test.samples, median_of(test.samples), 0, false});
    }
  std::vector<Course> courses;
  for (const std::string& key : order) {
    courses.push_back(by_name[key]);
    find_changes(&courses.back(), threshold);
  }
  return courses;
}

std::string change_text(const SavedRow& record) {
  if (record.change != 0) return format("%+.1f %%", record.change);
  return record.few ? "too few runs" : "";
}

std::string history_text(const std::vector<Course>& courses) {
  std::string text;
  for (const Course& course : courses) {
    text += printable(course.name) + "\n";
    for (const SavedRow& record : course.records)
      text += format("  %-20s %-12s %10.2f t/s  %4zu runs  %s\n", record.time.c_str(),
                     printable(record.commit).c_str(), record.median, record.samples.size(),
                     change_text(record).c_str());
  }
  return text;
}

Json history_json(const std::vector<Course>& courses) {
  Json list = Json::array();
  for (const Course& course : courses) {
    Json one = {{"test", course.name}, {"records", Json::array()}};
    for (const SavedRow& record : course.records)
      one["records"].push_back(
          {{"time", record.time},
           {"commit", record.commit},
           {"runs", record.samples.size()},
           {"median_ts", record.median},
           {"change_percent", record.change == 0 ? Json(nullptr) : Json(record.change)}});
    list.push_back(one);
  }
  return list;
}

// A line for each test, from 0 to its highest speed, with a mark where it changed.
std::string history_svg(const std::vector<Course>& courses) {
  constexpr double kWide = 920, kFrom = 20, kHigh = 90, kEach = 130;
  std::string body;
  double top = 20;
  for (const Course& course : courses) {
    double most = 1e-9;
    for (const SavedRow& record : course.records) most = std::max(most, record.median);
    const double step =
        (kWide - 2 * kFrom - 120) / static_cast<double>(std::max<size_t>(course.records.size() - 1, 1));
    body += label(kFrom, top, course.name, "start", 13);
    double x = kFrom, y = 0;
    for (size_t i = 0; i < course.records.size(); ++i) {
      const SavedRow& record = course.records[i];
      const double here = top + 12 + kHigh * (1 - record.median / most),
                   at = kFrom + step * static_cast<double>(i);
      if (i > 0) body += line(x, y, at, here, kBlue);
      const bool changed = record.change != 0;
      body += format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"/>\n", at, here, changed ? 5 : 3,
                     changed ? kOrange : kBlue);
      if (changed) body += label(at, here - 8, record.commit + " " + change_text(record), "middle", 11);
      x = at, y = here;
    }
    body += label(x + 10, y + 4, format("%.1f t/s", course.records.back().median), "start", 12);
    top += kEach;
  }
  return picture(kWide, top, body);
}

// The lines, then each record of each test.
std::string history_page(const std::string& folder, const std::vector<Course>& courses) {
  std::string body = "<div class=\"picture\">" + history_svg(courses) + "</div>\n";
  for (const Course& course : courses) {
    body += "<h2>" + xml(course.name) + "</h2>\n<div class=\"wide\"><table><thead><tr>";
    for (const char* head : {"time", "commit", "median t/s", "runs", "change"})
      body += std::string("<th>") + head + "</th>";
    body += "</tr></thead><tbody>\n";
    for (const SavedRow& record : course.records) {
      body += record.change != 0 ? "<tr class=\"stage\">" : "<tr>";
      for (const std::string& cell : {record.time, record.commit, format("%.2f", record.median),
                                      std::to_string(record.samples.size()), change_text(record)})
        body += "<td>" + xml(cell) + "</td>";
      body += "</tr>\n";
    }
    body += "</tbody></table></div>\n";
  }
  return page_start("bench history: " + folder) + body + "</body></html>\n";
}

}  // namespace

void bench_history(const std::string& folder, double threshold, const std::string& output,
                   const std::string& report) {
  const std::vector<Course> courses = courses_of(read_folder(folder), threshold);
  if (!report.empty()) write_whole(report, history_page(folder, courses));
  put(output == "json"  ? json_text(history_json(courses))
      : output == "svg" ? history_svg(courses)
                        : history_text(courses));
}

}  // namespace greta::cli
