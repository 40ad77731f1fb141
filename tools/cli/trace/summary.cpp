#include "trace/summary.h"

#include <algorithm>
#include <map>
#include <set>

#include "console.h"

namespace greta::cli {
namespace {

// The spans of a step, and what of its time is whose.
struct Step {
  const TraceSpan* whole = nullptr;
  std::vector<const TraceSpan*> launches;
  uint64_t record_ns = 0, submit_ns = 0, wait_ns = 0;
  bool planned = false;
};

bool inside(const TraceSpan& inner, const TraceSpan& outer) {
  return outer.begin_ns <= inner.begin_ns && inner.end_ns <= outer.end_ns;
}

std::map<uint64_t, Step> steps_of(const std::vector<TraceSpan>& spans, Summary* summary) {
  std::map<uint64_t, Step> steps;
  for (const TraceSpan& span : spans)
    if (span.track == Track::Steps) steps[span.number].whole = &span;
  uint64_t recording = 0, device_end = 0;  // the step that is recorded; the end of the last launch
  for (const TraceSpan& span : spans) {
    if (span.track == Track::Host && span.name == "record") recording = span.number;
    const auto found = steps.find(span.number > 0 ? span.number : recording);
    if (found == steps.end()) continue;
    Step& step = found->second;
    if (span.track == Track::Device) {
      summary->out_of_place += span.begin_ns < device_end || !inside(span, *step.whole);
      device_end = span.end_ns;
      step.launches.push_back(&span);
      summary->clock_error_ns = std::max(summary->clock_error_ns, span.error_ns);
    } else if (span.track == Track::Host) {
      if (span.number > 0) summary->out_of_place += !inside(span, *step.whole);
      if (span.name == "record") step.record_ns += span.ns();
      if (span.name == "wait") step.wait_ns += span.ns();
      if (span.name == "submit") step.submit_ns += span.ns(), step.record_ns -= span.ns();
      if (span.name == "plan") step.planned = true;
    }
  }
  return steps;
}

void add_work(BenchProfile* work, const TraceSpan& launch) {
  const auto same = [&](const StageWork& w) { return w.stage == launch.stage && w.kernel == launch.name; };
  auto found = std::find_if(work->works.begin(), work->works.end(), same);
  if (found == work->works.end()) found = work->works.insert(found, {launch.stage, launch.name, 0, 0, 0, 0});
  found->launches += launch.launches;
  found->ns += launch.ns();
  found->bytes += launch.bytes;
  found->flops += launch.flops;
}

std::string milliseconds(uint64_t ns) { return format("%.3f", static_cast<double>(ns) * 1e-6); }

double percent(uint64_t part, uint64_t whole) {
  return 100 * static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(whole, 1));
}

}  // namespace

Summary sum_up(const std::vector<TraceSpan>& spans, uint32_t streams) {
  Summary summary;
  const std::map<uint64_t, Step> steps = steps_of(spans, &summary);
  std::map<std::string, std::vector<uint64_t>> times;
  for (const auto& [number, step] : steps) {
    const char* kind = step.planned ? "first" : step.whole->tokens > streams ? "prompt" : "decode";
    const auto same = [&](const StepSum& sum) { return sum.kind == kind; };
    auto sum = std::find_if(summary.steps.begin(), summary.steps.end(), same);
    if (sum == summary.steps.end()) sum = summary.steps.insert(sum, StepSum{kind});
    ++sum->steps;
    sum->tokens += step.whole->tokens;
    sum->ns += step.whole->ns();
    sum->record_ns += step.record_ns;
    sum->submit_ns += step.submit_ns;
    sum->wait_ns += step.wait_ns;
    sum->work.tokens = step.whole->tokens;
    times[kind].push_back(step.whole->ns());
    for (const TraceSpan* launch : step.launches) {
      sum->device_ns += launch->ns();
      add_work(&sum->work, *launch);
    }
  }
  for (StepSum& sum : summary.steps) {
    std::vector<uint64_t>& list = times[sum.kind];
    std::sort(list.begin(), list.end());
    sum.median_ns = list[list.size() / 2];
  }
  for (const TraceSpan& span : spans) {
    if (span.track == Track::Device || span.track == Track::Steps) continue;
    const std::string track = track_name(span.track);
    const auto same = [&](const HostSum& sum) { return sum.track == track && sum.name == span.name; };
    auto sum = std::find_if(summary.host.begin(), summary.host.end(), same);
    if (sum == summary.host.end()) sum = summary.host.insert(sum, {track, span.name});
    ++sum->count;
    sum->ns += span.ns();
  }
  std::sort(summary.host.begin(), summary.host.end(), [](const HostSum& a, const HostSum& b) {
    return a.track != b.track ? a.track > b.track : a.ns != b.ns ? a.ns > b.ns : a.name < b.name;
  });
  return summary;
}

Json summary_json(const Summary& summary, const Roofs& roofs) {
  Json json = {{"clock_error_ns", summary.clock_error_ns},
               {"spans_out_of_place", summary.out_of_place},
               {"steps", Json::array()},
               {"host", Json::array()}};
  for (const StepSum& sum : summary.steps)
    json["steps"].push_back({{"kind", sum.kind},
                             {"steps", sum.steps},
                             {"tokens", sum.tokens},
                             {"ns", sum.ns},
                             {"median_ns", sum.median_ns},
                             {"device_ns", sum.device_ns},
                             {"record_ns", sum.record_ns},
                             {"submit_ns", sum.submit_ns},
                             {"wait_ns", sum.wait_ns},
                             {"stages", stages_json(sum.work, roofs)}});
  for (const HostSum& sum : summary.host)
    json["host"].push_back({{"track", sum.track}, {"name", sum.name}, {"count", sum.count}, {"ns", sum.ns}});
  return json;
}

namespace {

struct Values {
  double least, median, most;
};

Values values_of(const TraceCounter& counter) {
  std::vector<double> sorted;
  for (const TraceCounter::Value& each : counter.values) sorted.push_back(each.value);
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return {};
  return {sorted.front(), sorted[sorted.size() / 2], sorted.back()};
}

}  // namespace

Json counters_json(const std::vector<TraceCounter>& counters) {
  Json list = Json::array();
  for (const TraceCounter& counter : counters) {
    const Values values = values_of(counter);
    list.push_back({{"name", counter.name},
                    {"values", counter.values.size()},
                    {"least", values.least},
                    {"median", values.median},
                    {"most", values.most}});
  }
  return list;
}

std::string counters_text(const std::vector<TraceCounter>& counters) {
  std::string text =
      "\n| counter                      |      least |     median |       most |\n"
      "| ---------------------------- | ---------: | ---------: | ---------: |\n";
  for (const TraceCounter& counter : counters) {
    const Values values = values_of(counter);
    text += format("| %-28s | %10.2f | %10.2f | %10.2f |\n", counter.name.c_str(), values.least,
                   values.median, values.most);
  }
  return text;
}

std::string summary_text(const Summary& summary, const Roofs& roofs) {
  std::string text =
      "| steps   |    n | tokens |       ms | median ms | % device | % record | % submit | % wait |\n"
      "| ------- | ---: | -----: | -------: | --------: | -------: | -------: | -------: | -----: |\n";
  for (const StepSum& sum : summary.steps)
    text += format("| %-7s | %4llu | %6llu | %8s | %9s | %8.1f | %8.1f | %8.1f | %6.1f |\n", sum.kind.c_str(),
                   static_cast<unsigned long long>(sum.steps), static_cast<unsigned long long>(sum.tokens),
                   milliseconds(sum.ns).c_str(), milliseconds(sum.median_ns).c_str(),
                   percent(sum.device_ns, sum.ns), percent(sum.record_ns, sum.ns),
                   percent(sum.submit_ns, sum.ns), percent(sum.wait_ns, sum.ns));
  text +=
      "\n| on the host                | times |       ms |\n"
      "| -------------------------- | ----: | -------: |\n";
  for (const HostSum& sum : summary.host)
    text += format("| %-26s | %5llu | %8s |\n", (sum.track + ": " + sum.name).c_str(),
                   static_cast<unsigned long long>(sum.count), milliseconds(sum.ns).c_str());
  for (const StepSum& sum : summary.steps) {
    if (sum.kind == "first" || sum.work.works.empty()) continue;
    text += "\n" + std::string(sum.kind == "decode" ? "Decode" : "Prompt") +
            " on the device, all steps:" + stages_text(sum.work, roofs, 0);
  }
  return text;
}

}  // namespace greta::cli
