// Tables of what was measured: their text, the choice that follows from samples, and rows that are chosen by
// them.
#include "tune/table.h"

#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "tune/tune.h"

using namespace greta;

namespace {

using Samples = std::vector<uint64_t>;

Measured measured(const char* kernel, Samples ns, KernelVerdict verdict = KernelVerdict::Right) {
  return {{kernel, "", 16, 0, 1}, verdict, "1.5e-09", std::move(ns)};
}

// `count` samples about `ns`, each a little different.
Samples about(uint64_t ns, size_t count = 13) {
  Samples samples;
  for (size_t i = 0; i < count; ++i) samples.push_back(ns + ns / 500 * (i * 7 % 5));
  return samples;
}

size_t choice_of(std::vector<Measured> candidates) {
  return choose_candidate({"a", 0, 0, std::move(candidates)});
}

TuningTable small_table() {
  TuningTable table;
  table.of = {"cpu", "A \"quoted\" device\n", "cpu:avx2", "none", 2, "0123456789abcdef"};
  table.put(
      {"matmul q4_k gguf 64x256 rows 1",
       100,
       200,
       {measured("a", about(100)), measured("b", about(50)), measured("c", {}, KernelVerdict::Refused)}});
  table.put({"matmul q4_k gguf 64x256 rows 8", 1, 2, {measured("a", {1, 2, 3})}});
  return table;
}

Status read(std::string_view text) {
  TuningTable table;
  return TuningTable::read(text, &table);
}

// Makes the checksum right again, as one who means harm would.
std::string summed(std::string text) {
  text.resize(text.rfind("{\"checksum\""));
  char sum[64];
  format_text(sum, sizeof sum, "{\"checksum\":\"%016llx\"}\n",
              (unsigned long long)checksum(text.data(), text.size()));
  return text + sum;
}

}  // namespace

TEST_CASE("tuning table: what is written is read back", "[tune]") {
  const TuningTable table = small_table();
  TuningTable again;
  REQUIRE(TuningTable::read(table.text(), &again).ok());
  CHECK(again.of == table.of);
  CHECK(again.entries() == table.entries());
  CHECK(again.text() == table.text());
}

TEST_CASE("tuning table: a text with any other byte, or without its end, is refused in words", "[tune]") {
  const std::string text = small_table().text();
  for (size_t i = 0; i < text.size(); ++i) {
    INFO("byte " << i);
    std::string damaged = text;
    damaged[i] ^= 1;
    REQUIRE(read(damaged).code == Code::File);
    REQUIRE(error_text()[0]);
    REQUIRE(read(std::string_view(text).substr(0, i)).code == Code::File);
  }
  CHECK(read(text + "{}\n").code == Code::File);
  CHECK(read(std::string("\0\0\0", 3)).code == Code::File);
}

TEST_CASE("tuning table: a text that is made up is refused where it does not hold together", "[tune]") {
  const std::string text = small_table().text();
  const auto with = [&](const char* from, const char* to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    return summed(changed.replace(at, strlen(from), to));
  };
  REQUIRE(read(summed(text)).ok());
  CHECK(read(with("\"greta_tuning\":1", "\"greta_tuning\":2")).code == Code::File);
  CHECK(std::string(error_text()).find("format 2") != std::string::npos);
  CHECK(read(with("\"candidates\":3", "\"candidates\":4000000000")).code == Code::File);
  CHECK(read(with("\"candidates\":3", "\"candidates\":2")).code == Code::File);
  CHECK(read(with("\"candidates\":3", "\"candidates\":0")).code == Code::File);
  CHECK(read(with("\"verdict\":\"refused\"", "\"verdict\":\"perfect\"")).code == Code::File);
  CHECK(read(with("\"tile\":16", "\"tile\":99999999999")).code == Code::File);
  CHECK(read(with("\"tile\":16", "\"tile\":-1")).code == Code::File);
  CHECK(read(with("rows 8", "rows 1")).code == Code::File);  // the same entry twice
  CHECK(read(with("\"ns\":[100", "\"ns\":[[100")).code == Code::File);
}

TEST_CASE("tuning table: the default stays unless the whole interval of the ratio lies 1 % below it",
          "[tune]") {
  CHECK(choice_of({measured("a", about(1000)), measured("b", about(900))}) == 1);
  CHECK(choice_of({measured("a", about(1000)), measured("b", about(995))}) == 0);
  CHECK(choice_of({measured("a", about(1000)), measured("b", about(1100))}) == 0);
  // The median is 10 % lower, but too many rounds say otherwise.
  Samples unsure = about(900);
  for (size_t i = 0; i < 4; ++i) unsure[i * 3] = 1200;
  CHECK(choice_of({measured("a", about(1000)), measured("b", unsure)}) == 0);
  for (size_t i = 0; i < 2; ++i) unsure[i * 3] = 900;
  CHECK(choice_of({measured("a", about(1000)), measured("b", unsure)}) == 1);
  CHECK(choice_of({measured("a", about(1000)), measured("b", about(500, kFewestRounds - 1))}) == 0);
  CHECK(choice_of({measured("a", about(1000)), measured("b", about(500, kFewestRounds))}) == 1);
}

TEST_CASE("tuning table: what is wrong, refused, slow or hung is never chosen", "[tune]") {
  for (const KernelVerdict verdict :
       {KernelVerdict::Wrong, KernelVerdict::Refused, KernelVerdict::Slow, KernelVerdict::Hung})
    CHECK(choice_of({measured("a", about(1000)), measured("b", about(100), verdict),
                     measured("c", about(800))}) == 2);
}

TEST_CASE("tuning table: a default that is not right gives way to the fastest that is", "[tune]") {
  CHECK(choice_of({measured("a", {}, KernelVerdict::Wrong), measured("b", about(3000)),
                   measured("c", about(2000))}) == 2);
  CHECK(choice_of({measured("a", {}, KernelVerdict::Hung), measured("b", about(9), KernelVerdict::Wrong)}) ==
        0);
}

TEST_CASE("tuning table: of candidates within 1 % the first is chosen, so that two tunes agree", "[tune]") {
  CHECK(choice_of({measured("a", about(1000)), measured("b", about(804)), measured("c", about(800))}) == 1);
  CHECK(choice_of({measured("a", about(1000)), measured("b", about(850)), measured("c", about(800))}) == 2);
}

TEST_CASE("tuning table: a row that it names is taken where it covers the calls", "[tune]") {
  const Call call = CallMaker{}.matmul({QuantType::q4_k, Layout::Gguf, 64, 512}, {}, {});
  DeviceInfo info;
  strcpy(info.backend, "cpu");
  info.shared_bytes = 1 << 20;
  RowFilter filter{&info, false};
  const KernelRow* rows[64];
  info.features = ~0u;
  const uint32_t able = find_rows({&call, 1}, 1, filter, rows);
  REQUIRE(able >= 2);
  const KernelRow* const usual = best_row({&call, 1}, 1, filter);
  const KernelRow* other = nullptr;
  for (uint32_t i = 0; i < able; ++i)
    if (rows[i] != usual) other = rows[i];
  TuningTable table;
  const auto say = [&](const KernelRow& row) {
    table.put({entry_key({&call, 1}, 1), 0, 0, {{candidate_of(row, 1), KernelVerdict::Right, "", {}}}});
  };
  filter.tuned = &table;
  CHECK(best_row({&call, 1}, 1, filter) == usual);  // it is empty
  say(*other);
  CHECK(best_row({&call, 1}, 1, filter) == other);
  CHECK(best_row({&call, 1}, 2, filter) != nullptr);  // of another bucket it says nothing

  SECTION("a row that is gone is skipped") {
    KernelRow gone = *other;
    gone.name = "matmul_of_another_year";
    say(gone);
    CHECK(best_row({&call, 1}, 1, filter) == usual);
  }
  SECTION("so is one that the device cannot run") {
    info.features = 0;
    const KernelRow* const plain = best_row({&call, 1}, 1, filter);
    say(*usual);
    CHECK(best_row({&call, 1}, 1, filter) == plain);
  }
  SECTION("so is one that the driver refused") {
    RefusedKernels refused;
    refused.add(*other);
    filter.refused = &refused;
    CHECK(best_row({&call, 1}, 1, filter) == usual);
  }
  SECTION("exact plans do not ask it") {
    filter.exact = true;
    say(*usual);
    REQUIRE(usual->rank > 0);
    CHECK(best_row({&call, 1}, 1, filter)->rank == 0);
  }
}

TEST_CASE("tuning table: tables of other devices, drivers and kernels have other names", "[tune]") {
  const TableOf of{"vulkan", "a card", "", "1.0", 60, "00"};
  TableOf other = of;
  CHECK(table_name(other) == table_name(of));
  other.driver = "1.1";
  CHECK(table_name(other) != table_name(of));
  CHECK(table_name(other).starts_with(table_name_of_device(of)));
  other = of;
  other.kernels = "01";
  CHECK(table_name(other) != table_name(of));
  other = of;
  other.device = "another card";
  CHECK(table_name_of_device(other) != table_name_of_device(of));
}
