// The layouts of matrix instructions, said as AMD's matrix instruction calculator prints them: which value
// each element of each register of a lane is. Neither the emulator nor the table of the kernels is asked.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "tests/mock_hip/matrix_builtins.h"

using namespace mock_hip;

// Of an element of a register of two values: its column of A. Of a register with a result: its row of D.
struct Printed {
  unsigned (*column)(unsigned lane, unsigned word, unsigned element);
  unsigned (*row)(unsigned lane, unsigned word);
};
static const Printed kPrintedMfma = {
    [](unsigned lane, unsigned word, unsigned element) { return 4 * (lane / 16) + 2 * word + element; },
    [](unsigned lane, unsigned word) { return 4 * (lane / 16) + word; }};
static const Printed kPrintedGfx950 = {
    [](unsigned lane, unsigned word, unsigned element) { return 8 * (lane / 16) + 2 * word + element; },
    [](unsigned lane, unsigned word) { return 4 * (lane / 16) + word; }};
static const Printed kPrintedGfx11 = {
    [](unsigned, unsigned word, unsigned element) { return 2 * word + element; },
    [](unsigned lane, unsigned word) { return 2 * word + lane / 16; }};
static const Printed kPrintedGfx12 = {[](unsigned lane, unsigned word, unsigned element) {
                                        return 8 * (word / 2) + 4 * (lane / 16) + 2 * (word % 2) + element;
                                      },
                                      [](unsigned lane, unsigned word) { return 8 * (lane / 16) + word; }};

// A has a single 1, in row `row` and column `column`. All values of B differ.
template <const MatrixLayout& layout>
struct Product {
  const Printed& printed;
  unsigned row, column;
  unsigned lanes = layout.lanes, spoilt = ~0u;  // a lane with another value of A
  float d[16][16] = {};
};

static float value_of_b(unsigned row, unsigned column) { return float(100 * row + column + 1); }

template <const MatrixLayout& layout>
void multiply_one(void* argument) {
  auto& product = *static_cast<Product<layout>*>(argument);
  const unsigned lane = thread_in_group();
  if (lane >= product.lanes) return;
  std::array<float, layout.values> a, b;
  std::array<float, layout.results> sums = {};
  for (unsigned i = 0; i < layout.values; ++i) {
    const unsigned column = product.printed.column(lane, i / 2, i % 2);
    a[i] = lane % 16 == product.row && column == product.column;
    b[i] = value_of_b(column, lane % 16);
  }
  if (lane == product.spoilt) a[0] = 7;
  sums = multiply_matrices<float, layout>(a, b, sums);
  for (unsigned i = 0; i < layout.results; ++i) product.d[product.printed.row(lane, i)][lane % 16] += sums[i];
}

template <const MatrixLayout& layout>
std::string run(Product<layout>& product) {
  const char* fault = run_grid({{1, 1, 1}, layout.lanes, layout.lanes, 3}, multiply_one<layout>, &product);
  return fault ? fault : "";
}

template <const MatrixLayout& layout>
void check_layout(const Printed& printed) {
  // A product cannot tell in which order a lane has its columns, since A and B have the same.
  for (unsigned lane = 0; lane < layout.lanes; ++lane)
    for (unsigned i = 0; i < layout.values; ++i)
      CHECK(layout.column_of(lane, i) == printed.column(lane, i / 2, i % 2));
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 16; ++column) {
      Product<layout> product = {printed, row, column};
      REQUIRE(run(product) == "");
      unsigned wrong = 0;
      for (unsigned i = 0; i < 16; ++i)
        for (unsigned j = 0; j < 16; ++j) wrong += product.d[i][j] != (i == row ? value_of_b(column, j) : 0);
      CHECK(wrong == 0);
    }
}

TEST_CASE("a single 1 goes through each place of a matrix instruction's layout", "[spike]") {
  check_layout<kMfma16x16x16>(kPrintedMfma);
  check_layout<kMfma16x16x32>(kPrintedGfx950);
  check_layout<kWmmaGfx11>(kPrintedGfx11);
  check_layout<kWmmaGfx12>(kPrintedGfx12);
}

TEST_CASE("a matrix instruction wants all lanes, and equal ones where a layout repeats", "[spike]") {
  Product<kMfma16x16x16> few = {kPrintedMfma, 0, 0, 63};
  CHECK(run(few) == "lanes are absent where a wave multiplies matrices");
  Product<kWmmaGfx11> differs = {kPrintedGfx11, 0, 0, 32, 21};
  CHECK(run(differs) == "lanes that a matrix instruction wants to be equal differ");
  Product<kWmmaGfx12> other = {kPrintedGfx12, 0, 0, 32, 21};
  CHECK(run(other) == "");
}
