#include "bench/drawing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "console.h"
#include "svg.h"

namespace greta::cli {
namespace {

constexpr double kWidth = 920, kLeft = 170, kRight = 300, kBar = 22, kRow = 34, kChart = 360;

std::string name_of(const Json& row) {
  const uint32_t prompt = row.at("n_prompt"), generate = row.at("n_gen"), depth = row.at("n_depth");
  std::string name = prompt > 0 ? format("pp%u", prompt) : "";
  if (generate > 0) name += format("%stg%u", prompt > 0 ? "+" : "", generate);
  return depth > 0 ? name + format(" @ d%u", depth) : name;
}

double number(const Json& row, const char* key) {
  return row.contains(key) && row[key].is_number() ? row[key].get<double>() : 0;
}

// The share of the roof that bounds the row, 0 where it is not known.
double share_of_roof(const Json& row) {
  if (number(row, "n_prompt") == 0) return number(row, "bandwidth_percent") / 100;
  const double roof = 1e12 * number(row, "arithmetic_tflop_s");
  if (number(row, "n_gen") > 0 || roof == 0) return 0;
  return number(row, "avg_ts") * 2 * number(row, "model_n_params") / roof;
}

std::string bars(const Json& rows, double top) {
  const double most = kWidth - kLeft - kRight;
  std::string out =
      line(kLeft + most, top - 6, kLeft + most, top + kRow * static_cast<double>(rows.size()), kOrange);
  out += label(kLeft + most, top - 12, "the roof", "middle", 12);
  double y = top;
  for (const Json& row : rows) {
    const double share = share_of_roof(row);
    const char* const roof = number(row, "n_prompt") > 0 ? "arithmetic" : "bandwidth";
    out += label(kLeft - 10, y + 16, name_of(row), "end");
    out += bar(kLeft, y, most, kBar, kPale) + bar(kLeft, y, most * std::min(share, 1.0), kBar, kBlue);
    std::string text = format("%.1f t/s", number(row, "avg_ts"));
    if (share > 0) text += format(", %.0f %% of the %s", 100 * share, roof);
    out += label(kLeft + most + 12, y + 16, text);
    y += kRow;
  }
  return out;
}

// A scale of powers of ten from `least` to `most`, on `length` points from `start` on.
struct Scale {
  double least, most, start, length;
  double at(double value) const {
    return start + length * (std::log10(value) - std::log10(least)) / (std::log10(most) - std::log10(least));
  }
};

Scale scale_of(const std::vector<double>& values, double start, double length) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {std::pow(10, std::floor(std::log10(*least))), std::pow(10, std::ceil(std::log10(*most) + 0.01)),
          start, length};
}

std::string axes(const Scale& x, const Scale& y) {
  std::string out = label(x.start + x.length / 2, y.start + 38, "operations for each byte", "middle", 12);
  out += label(x.start, y.start + y.length - 12, "operations per second", "middle", 12);
  for (double value = x.least; value <= x.most * 1.01; value *= 10) {
    out += line(x.at(value), y.start, x.at(value), y.start + y.length, kPale);
    out += label(x.at(value), y.start + 18, format("%g", value), "middle", 11);
  }
  for (double value = y.least; value <= y.most * 1.01; value *= 10) {
    out += line(x.start, y.at(value), x.start + x.length, y.at(value), kPale);
    out += label(x.start - 8, y.at(value) + 4, format("%g", value), "end", 11);
  }
  return out;
}

struct Point {
  double x, y;
  std::string name;
};

// A box that a dot or a label takes.
struct Taken {
  double left, top, right, bottom;
  bool meets(const Taken& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// Each label stands beside its dot, or as near above or below as no other dot or label lies.
std::string named_points(std::vector<Point> points, const Scale& x, const Scale& y) {
  constexpr double kDot = 4, kLetter = 6, kAbove = 9, kBelow = 3;  // of the font
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.y > b.y; });
  std::string out;
  std::vector<Taken> taken;
  for (const Point& point : points) {
    const double left = x.at(point.x), top = y.at(point.y);
    out += format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" fill=\"%s\"/>\n", left, top, kDot, kBlue);
    taken.push_back({left - kDot, top - kDot, left + kDot, top + kDot});
  }
  for (const Point& point : points) {
    const double left = x.at(point.x) + 8, right = left + kLetter * static_cast<double>(point.name.size());
    double base = 0;
    Taken box{};
    for (int step = 0; step < 40; ++step) {  // beside the dot, then below, above, further below, ...
      base = y.at(point.y) + 4 + (step % 2 ? 6.5 : -6.5) * ((step + 1) / 2);
      box = {left, base - kAbove, right, base + kBelow};
      const auto meets = [&](const Taken& other) { return other.meets(box); };
      if (std::none_of(taken.begin(), taken.end(), meets)) break;
    }
    taken.push_back(box);
    out += label(left, base, point.name, "start", 11);
  }
  return out;
}

// The stages of a row, under what the device was measured to read and to compute.
std::string roofline(const Json& row, const std::string& title, double top) {
  const double bandwidth = 1e9 * number(row, "bandwidth_gb_s"),
               arithmetic = 1e12 * number(row, "arithmetic_tflop_s");
  std::vector<Point> points;
  for (const Json& stage : row.at("stages")) {
    const double bytes = number(stage, "bytes"), flops = number(stage, "flops"), ns = number(stage, "ns");
    if (bytes > 0 && flops > 0 && ns > 0)
      points.push_back(
          {flops / bytes, 1e9 * flops / ns,
           stage.at("stage").get<std::string>() + format(", %.0f %%", number(stage, "roof_percent"))});
  }
  std::string out = label(20, top, title, "start", 15);
  if (points.empty() || bandwidth == 0 || arithmetic == 0) return out;
  const double ridge = arithmetic / bandwidth;
  std::vector<double> across = {ridge / 3, ridge * 3}, up = {arithmetic};
  for (const Point& point : points) {
    across.push_back(point.x);
    up.push_back(point.y);
  }
  const Scale x = scale_of(across, 90, kWidth - 130), y = scale_of(up, top + kChart - 60, -(kChart - 110));
  out += axes(x, y);
  const double begin = std::max(x.least, y.least / bandwidth);
  out += line(x.at(begin), y.at(begin * bandwidth), x.at(ridge), y.at(arithmetic), kOrange);
  out += line(x.at(ridge), y.at(arithmetic), x.at(x.most), y.at(arithmetic), kOrange);
  out += label(x.at(x.most), y.at(arithmetic) - 6, format("%.3g TFLOP/s", arithmetic * 1e-12), "end", 12);
  out += label(x.at(ridge) - 16, y.at(arithmetic) + 4, format("%.4g GB/s", bandwidth * 1e-9), "end", 12);
  return out + named_points(points, x, y);
}

std::string drawing(const Json& rows) {
  if (!rows.is_array() || rows.empty()) throw Failed("expected the rows that bench -o json prints");
  const Json& first = rows[0];
  const double below = 96 + kRow * static_cast<double>(rows.size());
  double height = below;
  std::string body = label(
      20, 30, first.at("model_type").get<std::string>() + " on " + first.at("device").get<std::string>(),
      "start", 17);
  body += label(
      20, 50,
      format("%s, cache %s/%s, %s", first.at("backends").get<std::string>().c_str(),
             first.at("type_k").get<std::string>().c_str(), first.at("type_v").get<std::string>().c_str(),
             first.at("test_time").get<std::string>().c_str()),
      "start", 12);
  body += bars(rows, 90);
  for (const Json& row : rows) {
    if (!row.contains("stages")) continue;
    body +=
        roofline(row, format("One step of %s, by stage, with the share of its roof", name_of(row).c_str()),
                 height + 20);
    height += kChart + 20;
  }
  return picture(kWidth, height, body);
}

}  // namespace

std::string roofline_svg(const Json& row, const std::string& title) {
  return picture(kWidth, kChart + 10, roofline(row, title, 20));
}

std::string bench_svg(const Json& rows) {
  try {
    return drawing(rows);
  } catch (const Json::exception&) {
    throw Failed("expected the rows that bench -o json prints");
  }
}

}  // namespace greta::cli
