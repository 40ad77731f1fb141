// The layer that drafts tokens: up to where it has read each sequence, and where the hidden states are that
// it has not read yet.
#pragma once
#include "engine/executor/executor_devices.h"
#include "engine/executor/step_rows.h"

namespace greta {

// A row of a step of this layer: a token with the hidden state of the token before it, which stands at
// `position`.
struct HeadRow {
  uint32_t token, position, sequence;
  enum class From : uint8_t { Step, Head, Kept } from;  // whose hidden state
  uint32_t index;  // a row of the last step, or of the last one of these; of what is kept, its place
  bool output;
};
// Rows of the last step, of a text of which these tokens are known. `depth`: how many guesses are wanted.
struct HeadPart {
  uint32_t sequence, begin, count, row;  // positions, and the first one's row
  std::span<const int32_t> tokens;
  uint32_t depth;
};
// Hidden states that are kept of each sequence, those of its last positions, and as many as may wait there
// before the layer gets them.
constexpr uint32_t kKeptStates = 32, kWaitingStates = 16;

class DraftHead {
 public:
  DraftHead(const Model& model, ExecutorDevices& on, uint32_t sequences)
      : model_(model), on_(on), ends_(sequences) {}
  bool is_there() const { return model_.shape.heads != 0; }

  void fork(uint32_t from, uint32_t to, uint32_t position) {
    ends_[to] = {std::min(ends_[from].position, position)};
  }
  void truncate(uint32_t sequence, uint32_t position);
  // The sequence has what the layer made of so many positions, and none of their hidden states are kept.
  void set_read(uint32_t sequence, uint32_t positions) { ends_[sequence] = {positions}; }
  void note_read(const HeadPart& part);

  // Notes which hidden states of a step are kept when it has run, those of each sequence's last rows, and
  // records the copies.
  void note_states(std::span<const TokenRow> rows);
  Status keep_states();
  // Whether what the layer lacks of a text is so little that it can wait for more.
  bool waits(const HeadPart& part) const;
  // Adds the rows for positions that the layer lacks. `fresh`: the hidden states of the last step are those
  // of the part. Returns false if some are nowhere.
  bool list_rows(const HeadPart& part, bool fresh, std::vector<HeadRow>* rows) const;
  // Copies the hidden states of the rows to where the layer reads them, neighbours together.
  Status copy_states(std::span<const HeadRow> rows);
  Slice hidden_state(HeadRow::From from, uint32_t index, uint64_t count) const;

 private:
  struct End {
    uint32_t position = 0;                  // up to which the layer has had rows
    uint32_t kept_from = 0, kept_end = 0;  // of which positions hidden states are kept
  };
  const Model& model_;
  ExecutorDevices& on_;
  std::vector<End> ends_;  // by sequence
  std::vector<HeadRow> kept_rows_;
};

}  // namespace greta
