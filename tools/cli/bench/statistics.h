// Whether two sets of measurements differ, and by how much, without assumptions on how they are spread.
#pragma once
#include <vector>

namespace greta::cli {

struct Difference {
  double u, p;   // Mann-Whitney's U of the first set, and the chance of one as extreme, two-sided
  double ratio;  // the median of b / a over all pairs
  double ratio_low, ratio_high;  // its interval, which holds the true ratio in 95 of 100 cases
};

// Both sets have at least one value, and all values are positive.
//
// U and p are what scipy.stats.mannwhitneyu gives: p is exact where one set has at most 8 values and no two
// values are equal, else that of the normal distribution, corrected for ties and for continuity. The interval
// is the one of Hodges and Lehmann: those pairs that a test by U would not refuse at 5 %.
Difference difference(const std::vector<double>& a, const std::vector<double>& b);

double geometric_mean(const std::vector<double>& values);  // at least one, all of them positive

}  // namespace greta::cli
