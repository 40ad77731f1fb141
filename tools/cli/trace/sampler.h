// Reads sensors again and again while a profile runs, and makes counters of them.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sensors/process_sensors.h"
#include "trace/formats.h"

namespace greta::cli {

class Sampler {
 public:
  Sampler();  // before the threads are started whose cycles are counted
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Has something else read beside, as long as it lives.
  class Guest {
   public:
    Guest(Sampler& sampler, std::function<std::vector<SensorReading>()> read);
    ~Guest();
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

   private:
    Sampler& sampler_;
  };

  void watch(const std::string& pci);  // also the GPU at this address; "": there is none
  // Ends the sampling. What could not be read is added to *missing, each with its reason.
  std::vector<TraceCounter> take(std::vector<std::string>* missing);

 private:
  void run();
  void sample();

  ProcessSensors process_;
  std::mutex mutex_;  // of all below
  std::condition_variable stopped_;
  bool stop_ = false;
  std::unique_ptr<GpuSensors> gpu_;
  std::string why_no_gpu_ = "clocks and power of a GPU: there is none";
  std::function<std::vector<SensorReading>()> guest_;
  std::vector<TraceCounter> counters_;
  std::thread thread_;
};

}  // namespace greta::cli
