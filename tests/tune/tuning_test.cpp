// Launches of a plan that are run alone, and what a tune makes of them.
#include "selftest/tuning.h"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>

#include "selftest/kernel_try.h"
#include "selftest/trial.h"
#include "support/test_device.h"
#include "tune/built_in_tables.h"

using namespace greta;
using namespace greta::selftest;

namespace {

std::unique_ptr<Device> open_tested() {
  DeviceOptions options;
  options.driver_library = test::test_library();
  Device* device = nullptr;
  REQUIRE(open_device(test::test_device(), options, &device).ok());
  return std::unique_ptr<Device>(device);
}

std::vector<Tunable> shapes(const Device& device, const char* text, std::vector<uint32_t> tokens) {
  std::vector<Tunable> launches;
  REQUIRE(read_shapes(device, text, tokens, &launches).ok());
  return launches;
}

constexpr char kShapes[] = "# a comment\nq4_k 96x512\n\nq8_0 64x256 gate\nf16 32x96\n";

void writes_nothing(const void*, uint32_t, uint32_t, Scratch*) {}

}  // namespace

TEST_CASE("trial: every row that covers a product gives what the plain kernels give", "[tune]") {
  const auto device = open_tested();
  Trial trial(*device);
  REQUIRE(trial.open().ok());
  uint32_t proven = 0;
  for (const Tunable& launch : shapes(*device, kShapes, {1, 8, 32})) {
    REQUIRE(can_try(launch.calls));
    REQUIRE(trial.make(launch.calls, launch.bucket, false).ok());
    std::vector<const KernelRow*> rows(kernel_table().size());
    rows.resize(find_rows(launch.calls, launch.bucket, trial.harness().filter(), rows));
    for (const KernelRow* row : rows) {
      Attempt attempt;
      double error = 1;
      INFO(entry_key(launch.calls, launch.bucket) << ": " << row->name);
      const Status status = trial.prepare(*row, 1, &attempt);
      if (status.code == Code::Unsupported) continue;
      REQUIRE(status.ok());
      REQUIRE(trial.prove(attempt, &error).ok());
      CHECK(error <= kMostTrialError);
      uint64_t ns = 0;
      REQUIRE(trial.time(attempt, &ns).ok());
      CHECK(ns > 0);
      ++proven;
    }
  }
  CHECK(proven >= 9);
}

TEST_CASE("trial: a kernel that computes nothing is seen", "[tune]") {
  const auto device = open_tested();
  if (!device->info().host_functions) SKIP("its kernels are no functions");
  Trial trial(*device);
  REQUIRE(trial.open().ok());
  const Tunable launch = shapes(*device, "q4_k 96x512", {4})[0];
  REQUIRE(trial.make(launch.calls, launch.bucket, false).ok());
  KernelRow row = *best_row(launch.calls, launch.bucket, trial.harness().filter());
  row.code.name = "matmul_that_writes_nothing";
  row.code.function = writes_nothing;
  Attempt attempt;
  double error = 0;
  REQUIRE(trial.prepare(row, 1, &attempt).ok());
  REQUIRE(trial.prove(attempt, &error).ok());
  CHECK(error > 0.1);
}

TEST_CASE("tune: a made-up table that names a slow row is mended by a tune", "[tune]") {
  const auto device = open_tested();
  const std::vector<Tunable> launches = shapes(*device, "q4_k 512x1024", {32});
  const RowFilter filter{&device->info(), false};
  const KernelRow* const usual = best_row(launches[0].calls, 32, filter);
  const KernelRow* const plain = best_row(launches[0].calls, 32, {&device->info(), true});
  REQUIRE(usual);
  REQUIRE(plain);
  if (usual == plain) SKIP("this device has plain kernels alone");
  const std::string key = entry_key(launches[0].calls, 32);
  TuningTable table;
  const std::vector<uint64_t> slow(13, 1000), fast(13, 10);
  table.put({key,
             0,
             0,
             {{candidate_of(*usual, 1), KernelVerdict::Right, "", slow},
              {candidate_of(*plain, 1), KernelVerdict::Right, "", fast}}});
  RowFilter tuned = filter;
  tuned.tuned = &table;
  REQUIRE(best_row(launches[0].calls, 32, tuned) == plain);
  TuneTally tally;
  TuneWork work;
  REQUIRE(tune(*device, nullptr, launches, work, &table, &tally).ok());
  CHECK(tally.there == 1);  // what is there is believed until it is asked for again
  CHECK(best_row(launches[0].calls, 32, tuned) == plain);
  work.again = true;
  REQUIRE(tune(*device, nullptr, launches, work, &table, &tally).ok());
  CHECK(best_row(launches[0].calls, 32, tuned) != plain);
  CHECK(table.entry(key)->candidates[0].candidate ==
        candidate_of(*usual, choose_splits(launches[0].calls, *usual, 32, filter)));
}

TEST_CASE("tune: it stops when it is told to, keeps what it knows and goes on later", "[tune]") {
  const auto device = open_tested();
  const std::vector<Tunable> launches = shapes(*device, "q4_k 96x512\nq4_0 64x256\n", {1, 4});
  TuningTable table;
  TuneTally tally;
  TuneWork work;
  uint32_t saved = 0;
  work.save = [&]() -> Status { return ++saved, Status{}; };
  work.go_on = [&](const TuneProgress& now) { return now.done < 2; };
  CHECK(tune(*device, nullptr, launches, work, &table, &tally).code == Code::Cancelled);
  const size_t known = table.entries().size();
  CHECK(known <= 2);
  CHECK(saved == known);
  work.go_on = {};
  REQUIRE(tune(*device, nullptr, launches, work, &table, &tally).ok());
  CHECK(tally.there == known);
  CHECK(table.entries().size() >= known);
  for (const TunedEntry& entry : table.entries()) CHECK(entry.candidates[0].verdict == KernelVerdict::Right);
  TuningTable none;
  work.budget_ns = 1;
  REQUIRE(tune(*device, nullptr, launches, work, &none, &tally).ok());
  CHECK(none.empty());
  CHECK(tally.left == 4);
}

TEST_CASE("tune: what ended a program before is listed and not run again", "[tune]") {
  const auto device = open_tested();
  const std::vector<Tunable> launches = shapes(*device, "q4_k 96x512", {1});
  const KernelRow* const usual = best_row(launches[0].calls, 1, {&device->info(), false});
  TuningTable table;
  TuneTally tally;
  TuneWork work;
  uint32_t tried = 0;
  work.hung = [&](const std::string&, const KernelChoice& choice) { return !names_row(choice, *usual); };
  work.trying = [&](const std::string&, const KernelChoice* choice) -> Status {
    if (choice) CHECK(names_row(*choice, *usual));
    return ++tried, Status{};
  };
  REQUIRE(tune(*device, nullptr, launches, work, &table, &tally).ok());
  if (table.empty()) SKIP("one row alone covers this");
  CHECK(tried > 0);
  CHECK(tally.hung > 0);
  CHECK(tally.changed == 0);
}

TEST_CASE("tune: shapes that are none are refused in words", "[tune]") {
  const auto device = open_tested();
  std::vector<Tunable> launches;
  const uint32_t one[] = {1};
  for (const char* text : {"q4_k", "q4_k 96", "q9_z 96x512", "q4_k 96x500", "q4_k 0x512", "q4_k 96x512 door",
                           "q4_k 96x512 gate more", "q4_k 99999999x512"}) {
    INFO(text);
    CHECK(read_shapes(*device, text, one, &launches).code == Code::Argument);
    CHECK(std::string(error_text()).find("no shape") != std::string::npos);
  }
  CHECK(launches.empty());
}

TEST_CASE("tuning files: another driver's and damaged tables are ignored with a line", "[tune]") {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("greta_tables_" + std::to_string(getpid()))).string();
  std::filesystem::remove_all(folder);
  const TableOf here{"cpu", "a processor", "cpu:avx2", "1.0", 2, "00"};
  TableOf older = here;
  older.driver = "0.9";
  TuningTable table, read;
  std::string why;
  table.of = older;
  table.put({"a rows 1", 0, 0, {{{"k", "", 1, 0, 1}, KernelVerdict::Right, "", {1}}}});
  TableFile(folder, here).read(&read, &why);
  CHECK(read.empty());
  CHECK(why.empty());  // there is nothing to say of a folder that is not there
  REQUIRE(TableFile(folder, older).write(table).ok());
  TableFile(folder, here).read(&read, &why);
  CHECK(read.empty());
  CHECK(why.find("another driver") != std::string::npos);
  const TableFile file(folder, here);
  table.of = here;
  REQUIRE(file.write(table).ok());
  file.read(&read, &why);
  CHECK(why.empty());
  CHECK(read.entries() == table.entries());
  // A file of this name that is of another device, and one that is damaged.
  table.of.units = 3;
  REQUIRE(file.write(table).ok());
  file.read(&read, &why);
  CHECK(read.empty());
  CHECK(why.find("another device") != std::string::npos);
  std::ofstream(file.path(), std::ios::app) << "more";
  file.read(&read, &why);
  CHECK(read.empty());
  CHECK(why.find("damaged") != std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST_CASE("tuning files: a table that was compiled in is that of its device alone", "[tune]") {
  const TableOf here{"cpu", "a processor", "cpu:avx2", "1.0", 2, "00"};
  TableOf other = here;
  other.kernels = "01";
  TuningTable table, read;
  table.put({"a rows 1", 0, 0, {{{"k", "", 1, 0, 1}, KernelVerdict::Right, "", {1}}}});
  table.of = other;
  const std::string of_other = table.text();
  table.of = here;
  const std::string text = table.text();
  const std::string_view texts[] = {"", of_other, std::string_view(text).substr(1), text};
  REQUIRE(find_table(texts, here, &read));
  CHECK(read.entries() == table.entries());
  CHECK_FALSE(find_table({texts, 3}, here, &read));
  CHECK(read.empty());
  CHECK(built_in_tables().empty());  // of the builds that are tested
}

TEST_CASE("tuning files: one tune at a time, and what it left undone is remembered", "[tune]") {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("greta_notes_" + std::to_string(getpid()))).string();
  std::filesystem::remove_all(folder);
  const TableOf of{"cpu", "a processor", "", "", 2, "00"};
  const KernelChoice healthy{"a", "", 1, 0, 1}, ends{"b", "", 1, 0, 2};
  {
    TableFile file(folder, of), other(folder, of);
    REQUIRE(file.lock().ok());
    CHECK(other.lock().code == Code::File);
    CHECK(std::string(error_text()).find("another tune") != std::string::npos);
    REQUIRE(file.note("entry", &healthy).ok());
    REQUIRE(file.note("entry", nullptr).ok());
    REQUIRE(file.note("entry", &ends).ok());
  }  // the program ends here
  for (int again = 0; again < 2; ++again) {
    TableFile file(folder, of);
    REQUIRE(file.lock().ok());
    CHECK(file.ended_in("entry", ends));
    CHECK_FALSE(file.ended_in("entry", healthy));
    CHECK_FALSE(file.ended_in("another entry", ends));
    REQUIRE(file.note("entry", &healthy).ok());
    REQUIRE(file.note("entry", nullptr).ok());
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("kernel: code is packed so that it comes out as it was", "[tune]") {
  std::vector<uint8_t> code;
  for (const size_t bytes : {1, 2, 3, 4, 5, 255, 4096, 70001}) {
    while (code.size() < bytes) code.push_back(uint8_t(code.size() * 131 >> 3 ^ code.size()));
    std::vector<uint8_t> again;
    REQUIRE(unpack(packed_plainly(code), &again).ok());
    CHECK(again == code);
  }
}

TEST_CASE("kernel: one that is there is checked and timed, and others are refused in words", "[tune]") {
  const auto device = open_tested();
  const Tunable launch = shapes(*device, "q4_k 96x512", {4})[0];
  const KernelRow* const row = best_row(launch.calls, 4, {&device->info(), false});
  REQUIRE(row);
  KernelTried tried;
  REQUIRE(try_kernel(*device, {row->name, {}, 96, 512, 4}, &tried).ok());
  CHECK(tried.failure.empty());
  CHECK(tried.kernels >= 1);
  CHECK(tried.launches >= tried.kernels);
  CHECK(tried.untimed.empty());
  CHECK(tried.built_ns.size() >= kFewestRounds);
  CHECK(tried.error <= kMostTrialError);
  CHECK(tried.bytes > 0);
  REQUIRE(try_kernel(*device, {row->name, {}, 0, 0, 0}, &tried).ok());
  CHECK(tried.built_ns.empty());
  REQUIRE(try_kernel(*device, {row->name, {}, 97, 500, 4}, &tried).ok());  // no block of q4_k
  CHECK_FALSE(tried.untimed.empty());
  CHECK(try_kernel(*device, {"matmul_of_another_year", {}, 96, 512, 4}, &tried).code == Code::Argument);
  const std::vector<uint8_t> code(64, 7);
  if (device->info().host_functions)
    CHECK(try_kernel(*device, {row->name, code, 96, 512, 4}, &tried).code == Code::Unsupported);
}
