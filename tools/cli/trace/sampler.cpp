#include "trace/sampler.h"

#include <algorithm>
#include <chrono>

namespace greta::cli {

constexpr std::chrono::milliseconds kPeriod{20};

Sampler::Sampler() : thread_([this] { run(); }) {}

Sampler::~Sampler() {
  std::vector<std::string> missing;
  if (thread_.joinable()) (void)take(&missing);
}

void Sampler::watch(const std::string& pci) {
  std::string why;
  std::unique_ptr<GpuSensors> gpu = find_sensors(pci, &why);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!pci.empty()) why_no_gpu_ = "clocks and power of the GPU: " + why;
  gpu_ = std::move(gpu);
}

Sampler::Guest::Guest(Sampler& sampler, std::function<std::vector<SensorReading>()> read)
    : sampler_(sampler) {
  const std::lock_guard<std::mutex> lock(sampler_.mutex_);
  sampler_.guest_ = std::move(read);
}

Sampler::Guest::~Guest() {
  const std::lock_guard<std::mutex> lock(sampler_.mutex_);
  sampler_.sample();
  sampler_.guest_ = nullptr;
}

void Sampler::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    sample();
    stopped_.wait_for(lock, kPeriod);
  }
}

void Sampler::sample() {
  const uint64_t now = trace_now();
  std::vector<SensorReading> readings = process_.read(now);
  if (gpu_)
    for (SensorReading& reading : gpu_->read()) {
      reading.name = "GPU " + reading.name;
      readings.push_back(std::move(reading));
    }
  if (guest_)
    for (SensorReading& reading : guest_()) readings.push_back(std::move(reading));
  for (const SensorReading& reading : readings) {
    const auto same = [&](const TraceCounter& counter) { return counter.name == reading.name; };
    auto counter = std::find_if(counters_.begin(), counters_.end(), same);
    if (counter == counters_.end()) counter = counters_.insert(counter, TraceCounter{reading.name, {}});
    counter->values.push_back({now, reading.value});
  }
}

std::vector<TraceCounter> Sampler::take(std::vector<std::string>* missing) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
  sample();  // there is one value at least, however short the run was
  if (!gpu_) missing->push_back(why_no_gpu_);
  if (!process_.missing().empty()) missing->push_back(process_.missing());
  return std::move(counters_);
}

}  // namespace greta::cli
