// The plan of a step as a picture: a bar for each line, as long as the time that it takes at least.
#include <algorithm>

#include "console.h"
#include "plan/step_plan.h"
#include "svg.h"

namespace greta::cli {

std::string step_plan_svg(const StepPlan& plan, const std::string& title) {
  constexpr double kPlanWidth = 1080, kNames = 420, kNumbers = 300, kStep = 24, kTop = 96;
  const double all = least_seconds(plan), room = kPlanWidth - kNames - kNumbers - 20;
  double most = 0;
  for (const PlanLine& line : plan.lines) most = std::max(most, least_seconds(plan, line));
  std::string body = label(20, 30, title, "start", 17);
  body += label(20, 52,
                format("A step of %u token%s behind %u: %u launches, %u barriers", plan.tokens,
                       plan.tokens == 1 ? "" : "s", plan.depth, plan.launches, plan.barriers));
  body += label(20, 72,
                format("At least %.1f us by the measured roofs: %.1f GB/s and %.3f TFLOP/s", all * 1e6,
                       static_cast<double>(plan.roofs.bandwidth) * 1e-9,
                       static_cast<double>(plan.roofs.arithmetic) * 1e-12));
  body += bar(kPlanWidth - 250, 22, 12, 12, kBlue) +
          label(kPlanWidth - 232, 33, "bound by reading", "start", 12) +
          bar(kPlanWidth - 250, 42, 12, 12, kOrange) +
          label(kPlanWidth - 232, 53, "bound by arithmetic", "start", 12);
  double y = kTop;
  std::string stage;
  for (const PlanLine& each : plan.lines) {
    const double seconds = least_seconds(plan, each);
    const bool arithmetic = bound_of(plan.roofs, each.bytes, each.flops, 1).arithmetic;
    if (each.stage != stage) body += label(20, y + 14, each.stage, "start", 13);
    stage = each.stage;
    body += label(150, y + 14, format("%u x %s", each.launches, each.kernel.c_str()), "start", 12);
    body += bar(kNames, y, most > 0 ? room * seconds / most : 0, kStep - 7, arithmetic ? kOrange : kBlue);
    body += label(kNames + room + 12, y + 14,
                  format("%.1f us, %.1f %%, %s, %.4g MFLOP", seconds * 1e6, all > 0 ? 100 * seconds / all : 0,
                         size_text(each.bytes).c_str(), static_cast<double>(each.flops) * 1e-6),
                  "start", 12);
    y += kStep;
  }
  return picture(kPlanWidth, y + 20, body);
}

}  // namespace greta::cli
