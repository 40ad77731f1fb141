#include <atomic>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <thread>

#include "support/device_kernels.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("events time what lies between them", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  OwnedEvent before(*device), between(*device), after(*device);
  Words a(*device, 100000);
  uint64_t first = 0, second = 0, both = 0;
  CHECK(device->elapsed_ns(before.event, after.event, &both).code == Code::Argument);
  CHECK(device->elapsed_ns(Event{}, after.event, &both).code == Code::Argument);
  for (uint32_t round = 0; round < 4; ++round) {
    const auto signal = [&](Event& event) {
      REQUIRE((round < 2 ? stream->signal(event) : stream->stamp(event)).ok());
    };
    signal(before.event);
    REQUIRE(kernels.write_index(*stream, a.all(), 1).ok());
    signal(between.event);
    REQUIRE(stream->barrier().ok());
    REQUIRE(kernels.write_index(*stream, a.all(), 2).ok());
    signal(after.event);
    REQUIRE(stream->wait().ok());
    REQUIRE(device->elapsed_ns(before.event, between.event, &first).ok());
    REQUIRE(device->elapsed_ns(between.event, after.event, &second).ok());
    REQUIRE(device->elapsed_ns(before.event, after.event, &both).ok());
    // HIP tells milliseconds with 24 bits.
    CHECK(std::max(first + second, both) - std::min(first + second, both) <= both >> 22);
    if (which.computes) CHECK(first > 0);
  }
}

TEST_CASE("an event lies where the host's clock was, if the device's is related to that", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const auto stream = new_stream(*device);
  OwnedEvent event(*device);
  uint64_t at = 0, error = 0;
  CHECK_FALSE(device->host_ns(event.event, &at, &error).ok());  // it was not signalled
  for (uint32_t round = 0; round < 3; ++round) {
    const uint64_t before = now_ns();
    REQUIRE(stream->stamp(event.event).ok());
    REQUIRE(stream->wait().ok());
    const Status told = device->host_ns(event.event, &at, &error);
    const uint64_t after = now_ns();
    if (told.code == Code::Unsupported) return;
    REQUIRE(told.ok());
    CHECK(at + error >= before);
    CHECK(at <= after + error);
    CHECK(error < 1'000'000'000);
  }
}

TEST_CASE("what is abandoned leaves an event that can be stamped again", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const auto stream = new_stream(*device);
  OwnedEvent first(*device), last(*device);
  REQUIRE(stream->stamp(first.event).ok());
  stream->abandon();
  REQUIRE(stream->stamp(first.event).ok());
  REQUIRE(stream->stamp(last.event).ok());
  REQUIRE(stream->wait(last.event).ok());
  uint64_t ns = 0;
  CHECK(device->elapsed_ns(first.event, last.event, &ns).ok());
}

TEST_CASE("an event that was never signalled holds nobody up", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const auto stream = new_stream(*device);
  OwnedEvent event(*device);
  REQUIRE(stream->wait_for(event.event).ok());
  REQUIRE(stream->wait().ok());
  CHECK(stream->wait_for(Event{}).code == Code::Argument);
  Event none;
  CHECK(stream->signal(none).code == Code::Argument);
}

TEST_CASE("the host waits for an event and leaves the work behind it in flight", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  OwnedEvent done[2] = {OwnedEvent(*device), OwnedEvent(*device)}, never(*device);
  Words a(*device, 3000);
  Words host[2] = {Words(*device, 3000, Memory::Readback), Words(*device, 3000, Memory::Readback)};
  CHECK(stream->wait(Event{}).code == Code::Argument);
  REQUIRE(stream->wait(never.event).ok());
  uint32_t wrong = 0;
  const auto check = [&](uint32_t step) {
    REQUIRE(stream->wait(done[step % 2].event).ok());
    const auto* words = static_cast<const uint32_t*>(host[step % 2].memory.buffer().mapped);
    for (uint32_t i = 0; i < 3000; ++i) wrong += which.computes && words[i] != i * step + 7;
  };
  for (uint32_t step = 0; step < 20; ++step) {  // two steps are in flight
    REQUIRE(stream->barrier().ok());
    REQUIRE(kernels.write_index(*stream, a.all(), step, 7).ok());
    REQUIRE(stream->barrier().ok());
    REQUIRE(stream->copy(host[step % 2].all(), a.all()).ok());
    REQUIRE(stream->signal(done[step % 2].event).ok());
    REQUIRE(stream->submit().ok());
    if (step) check(step - 1);
  }
  check(19);
  CHECK(wrong == 0);
  REQUIRE(stream->begin_capture().ok());
  CHECK(stream->wait(done[0].event).code == Code::Argument);
  OwnedGraph owned{*device, {}};
  REQUIRE(stream->end_capture(&owned.graph).ok());
}

TEST_CASE("a stream waits for another on the same thread", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  const auto upload = new_stream(*device), compute = new_stream(*device);
  OwnedEvent ready(*device);
  Words a(*device, 500), b(*device, 500);
  for (uint32_t round = 1; round <= 5; ++round) {
    REQUIRE(upload->barrier().ok());
    REQUIRE(upload->fill(a.all(), round).ok());
    REQUIRE(upload->signal(ready.event).ok());
    REQUIRE(upload->submit().ok());
    REQUIRE(compute->wait_for(ready.event).ok());
    REQUIRE(compute->barrier().ok());
    REQUIRE(kernels.add_words(*compute, a.all(), a.all(), b.all()).ok());
    REQUIRE(compute->wait().ok());  // nobody waits for `upload`
    if (which.computes) CHECK(read_words(*device, b.all())[499] == 2 * round);
  }
}

TEST_CASE("streams of two threads hand work to each other", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  constexpr uint32_t kRounds = 20;
  Words a(*device, 100), b(*device, 100);
  OwnedEvent made(*device);
  std::atomic<uint32_t> recorded{0}, taken{0}, wrong{0};
  std::thread maker([&] {
    Stream* raw = nullptr;
    if (!device->create_stream(&raw).ok()) return void(++wrong);
    const std::unique_ptr<Stream> stream(raw);
    for (uint32_t round = 1; round <= kRounds; ++round) {
      wrong += !(stream->barrier().ok() && stream->fill(a.all(), round).ok());
      wrong += !stream->signal(made.event).ok();
      recorded = round;  // it is not submitted yet, so the other thread must wait
      std::this_thread::yield();
      wrong += !stream->wait().ok();
      while (taken < round) std::this_thread::yield();
    }
  });
  const auto stream = new_stream(*device);
  for (uint32_t round = 1; round <= kRounds; ++round) {
    while (recorded < round) std::this_thread::yield();
    wrong += !(stream->wait_for(made.event).ok() && stream->barrier().ok() &&
               kernels.add_words(*stream, a.all(), a.all(), b.all()).ok() && stream->wait().ok());
    if (which.computes) wrong += read_words(*device, b.all())[50] != 2 * round;
    taken = round;
  }
  maker.join();
  CHECK(wrong == 0);
}

TEST_CASE("work behind a gate waits for the host, and sees what it wrote", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const auto stream = new_stream(*device);
  if (!device->info().waits_for_host) {
    CHECK(stream->wait_for_host(1).code == Code::Unsupported);
    CHECK(stream->let_go(1).code == Code::Unsupported);
    return;
  }
  CHECK(stream->let_go(5).ok());  // nothing waits
  DeviceMemory written, read;
  REQUIRE(written.allocate(*device, 256, Memory::Upload).ok());
  REQUIRE(read.allocate(*device, 256, Memory::Readback).ok());
  auto* const from = static_cast<uint32_t*>(written.buffer().mapped);
  const auto* const to = static_cast<volatile uint32_t*>(read.buffer().mapped);
  Event before, behind;
  REQUIRE(device->create_event(&before, false).ok());
  REQUIRE(device->create_event(&behind, false).ok());
  for (uint64_t gate = 6; gate < 30; gate += 3) {
    stream->set_patience(gate % 2 ? 1'000'000 : 0);
    from[0] = 1;
    REQUIRE(stream->fill(read.all(), uint32_t(gate)).ok());
    REQUIRE(stream->signal(before).ok());
    REQUIRE(stream->wait_for_host(gate).ok());
    CHECK(stream->wait_for_host(gate).code == Code::Argument);
    REQUIRE(stream->barrier().ok());
    REQUIRE(stream->copy(read.slice(0, 4), written.slice(0, 4)).ok());
    REQUIRE(stream->signal(behind).ok());
    REQUIRE(stream->submit().ok());
    REQUIRE(stream->wait(before).ok());
    CHECK(to[0] == gate);
    from[0] = uint32_t(1000 + gate);
    REQUIRE(stream->let_go(gate).ok());
    REQUIRE(stream->let_go(gate).ok());  // nothing more
    REQUIRE(stream->wait(behind).ok());
    CHECK(to[0] == 1000 + gate);
    CHECK(to[1] == gate);
  }
  // A stream that goes away lets its work run.
  {
    const auto other = new_stream(*device);
    REQUIRE(other->wait_for_host(1).ok());
    REQUIRE(other->fill(read.all(), 77).ok());
    REQUIRE(other->submit().ok());
  }
  CHECK(to[0] == 77);
  device->destroy(before);
  device->destroy(behind);
}
