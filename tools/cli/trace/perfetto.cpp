// Perfetto's form of a trace: messages of Protocol Buffers, written field by field.
#include <algorithm>
#include <cstring>

#include "trace/formats.h"

namespace greta::cli {
namespace {

// A message while it is written. Numbers of fields are those of Perfetto's public .proto files.
class Message {
 public:
  void number(uint32_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
  }
  void real(uint32_t field, double value) {
    varint(field << 3 | 1);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);  // little-endian, as every machine here
    text_.append(bytes, sizeof value);
  }
  void text(uint32_t field, const std::string& value) {
    varint(field << 3 | 2);
    varint(value.size());
    text_ += value;
  }
  void message(uint32_t field, const Message& value) { text(field, value.text_); }
  const std::string& bytes() const { return text_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

constexpr uint32_t kPacket = 1;                                               // of Trace
constexpr uint32_t kTimestamp = 8, kSequence = 10, kEvent = 11, kTrack = 60;  // of TracePacket
constexpr uint32_t kAnnotation = 4, kType = 9, kEventTrack = 11, kCategory = 22, kName = 23,
                   kCounterReal = 44;  // of TrackEvent
constexpr uint32_t kUuid = 1, kTrackName = 2, kProcess = 3, kThread = 4, kParent = 5,
                   kCounter = 8;  // of TrackDescriptor
constexpr uint32_t kPid = 1, kProcessName = 6, kTid = 2, kThreadName = 5;
constexpr uint32_t kUnsigned = 3, kString = 6, kAnnotationName = 10;                // of DebugAnnotation
enum : uint64_t { kBegin = 1, kEnd = 2, kCounterValue = 4 };                        // TrackEvent.Type
constexpr uint64_t kProcessTrack = 100, kFirstTrack = 100, kFirstCounter = 100000;  // + a thread, from 1

void annotate(Message* event, const char* name, uint64_t value) {
  if (value == 0) return;
  Message annotation;
  annotation.text(kAnnotationName, name);
  annotation.number(kUnsigned, value);
  event->message(kAnnotation, annotation);
}

void add_packet(Message* trace, uint64_t ns, const Message& event) {
  Message packet;
  packet.number(kTimestamp, ns);
  packet.number(kSequence, 1);
  packet.message(kEvent, event);
  trace->message(kPacket, packet);
}

void add_track(Message* trace, const Message& track) {
  Message packet;
  packet.number(kSequence, 1);
  packet.message(kTrack, track);
  trace->message(kPacket, packet);
}

void add_tracks(Message* trace, const Trace& from) {
  Message process, process_track;
  process.number(kPid, 1);
  process.text(kProcessName, from.program);
  process_track.number(kUuid, kProcessTrack);
  process_track.message(kProcess, process);
  add_track(trace, process_track);
  for (const TraceLine& line : lines_of(from)) {
    Message thread, track;
    thread.number(kPid, 1);
    thread.number(kTid, line.thread);
    thread.text(kThreadName, line.name);
    track.number(kUuid, kFirstTrack + line.thread);
    track.number(kParent, kProcessTrack);
    track.message(kThread, thread);
    add_track(trace, track);
  }
  for (size_t i = 0; i < from.counters.size(); ++i) {
    Message track;
    track.number(kUuid, kFirstCounter + i);
    track.text(kTrackName, from.counters[i].name);
    track.number(kParent, kProcessTrack);
    track.message(kCounter, {});
    add_track(trace, track);
  }
}

Message begin_of(const TraceSpan& span) {
  Message event;
  event.number(kType, kBegin);
  event.number(kEventTrack, kFirstTrack + thread_of(span));
  event.text(kCategory, track_name(span.track));
  event.text(kName, span.stage.empty() ? span.name : span.stage);
  annotate(&event, "step", span.number);
  annotate(&event, "tokens", span.tokens);
  annotate(&event, "launches", span.launches);
  annotate(&event, "bytes", span.bytes);
  annotate(&event, "flops", span.flops);
  if (!span.stage.empty()) {
    Message annotation;
    annotation.text(kAnnotationName, "kernel");
    annotation.text(kString, span.name);
    event.message(kAnnotation, annotation);
  }
  return event;
}

}  // namespace

// The events of a line are in the order of their times; what ends at a time comes before what begins then.
std::string perfetto_trace(const Trace& from) {
  Message trace;
  add_tracks(&trace, from);
  for (const TraceLine& line : lines_of(from)) {
    std::vector<const TraceSpan*> open;
    const auto close_until = [&](uint64_t ns) {
      for (; !open.empty() && open.back()->end_ns <= ns; open.pop_back()) {
        Message event;
        event.number(kType, kEnd);
        event.number(kEventTrack, kFirstTrack + line.thread);
        add_packet(&trace, open.back()->end_ns, event);
      }
    };
    for (const TraceSpan& span : from.spans) {
      if (thread_of(span) != line.thread) continue;
      close_until(span.begin_ns);
      add_packet(&trace, span.begin_ns, begin_of(span));
      open.push_back(&span);
    }
    close_until(~uint64_t{0});
  }
  for (size_t i = 0; i < from.counters.size(); ++i)
    for (const TraceCounter::Value& value : from.counters[i].values) {
      Message event;
      event.number(kType, kCounterValue);
      event.number(kEventTrack, kFirstCounter + i);
      event.real(kCounterReal, value.value);
      add_packet(&trace, value.ns, event);
    }
  return trace.bytes();
}

}  // namespace greta::cli
