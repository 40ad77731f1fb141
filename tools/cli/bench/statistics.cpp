#include "bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace greta::cli {
namespace {

constexpr size_t kMostForExact = 8;  // values of the smaller set, as scipy has it
constexpr size_t kMostPairs = 2500;  // up to here the interval takes the exact distribution

// The number of orders of n and m values that have each U from 0 to n * m, as shares of all orders: those of
// n + 1 values are built from those of n, as coefficients of a Gaussian binomial.
std::vector<double> distribution(size_t n, size_t m) {
  std::vector<double> shares(n * m + 1, 0);
  shares[0] = 1;
  for (size_t i = 1; i <= n; ++i) {  // times (1 - x^(m + i)) / (1 - x^i)
    for (size_t u = n * m; u >= m + i; --u) shares[u] -= shares[u - m - i];
    for (size_t u = i; u <= n * m; ++u) shares[u] += shares[u - i];
  }
  double sum = 0;
  for (double share : shares) sum += share;
  for (double& share : shares) share /= sum;
  return shares;
}

struct Ranks {
  double sum_of_a = 0;  // ties have the mean of their ranks
  double tied = 0;      // the sum of t^3 - t over groups of t equal values
};

Ranks rank(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<std::pair<double, bool>> all;
  for (double value : a) all.emplace_back(value, true);
  for (double value : b) all.emplace_back(value, false);
  std::sort(all.begin(), all.end());
  Ranks ranks;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    for (end = begin; end < all.size() && all[end].first == all[begin].first;) ++end;
    const double count = static_cast<double>(end - begin);
    const double mean = static_cast<double>(begin + end + 1) / 2;
    for (size_t i = begin; i < end; ++i) ranks.sum_of_a += all[i].second ? mean : 0;
    ranks.tied += count * count * count - count;
  }
  return ranks;
}

double chance(double u, double n, double m, double tied) {
  if (std::min(n, m) <= static_cast<double>(kMostForExact) && tied == 0) {
    const std::vector<double> shares = distribution(static_cast<size_t>(n), static_cast<size_t>(m));
    const size_t most = static_cast<size_t>(std::min(u, n * m - u));
    double sum = 0;
    for (size_t i = 0; i <= most; ++i) sum += shares[i];
    return std::min(1.0, 2 * sum);
  }
  const double all = n + m;
  const double deviation = std::sqrt(n * m / 12 * (all + 1 - tied / (all * (all - 1))));
  const double distance = std::max(u, n * m - u) - n * m / 2 - 0.5;
  return std::min(1.0, std::erfc(distance / deviation / std::sqrt(2.0)));
}

// How many of the ordered ratios lie outside of the interval on each side: as many as a U may be that has a
// chance of 2.5 % at most, and the interval begins with the one before.
size_t ratios_outside(size_t n, size_t m) {
  if (n * m <= kMostPairs) {
    const std::vector<double> shares = distribution(n, m);
    double sum = 0;
    size_t count = 0;
    while (count < n * m / 2 && (sum += shares[count]) <= 0.025) ++count;
    return std::max<size_t>(count, 1) - 1;
  }
  const double pairs = static_cast<double>(n * m), all = static_cast<double>(n + m);
  const double count = std::floor(pairs / 2 - 1.959963984540054 * std::sqrt(pairs * (all + 1) / 12));
  return static_cast<size_t>(std::max(count, 1.0)) - 1;
}

double median_of_sorted(const std::vector<double>& values) {
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

Difference difference(const std::vector<double>& a, const std::vector<double>& b) {
  const double n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  const Ranks ranks = rank(a, b);
  std::vector<double> ratios;
  for (double of_a : a)
    for (double of_b : b) ratios.push_back(of_b / of_a);
  std::sort(ratios.begin(), ratios.end());
  const size_t outside = ratios_outside(a.size(), b.size());
  const double u = ranks.sum_of_a - n * (n + 1) / 2;
  const double all_tied = (n + m) * (n + m) * (n + m) - (n + m);
  const double p = ranks.tied == all_tied ? 1 : chance(u, n, m, ranks.tied);
  return {u, p, median_of_sorted(ratios), ratios[outside], ratios[ratios.size() - 1 - outside]};
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace greta::cli
