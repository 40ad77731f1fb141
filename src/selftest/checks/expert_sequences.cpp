// Checks matmul_expert against float64: with what is fused around it, and on many tokens.
#include <cstring>

#include "selftest/checks/checks.h"

namespace greta::selftest {

namespace {

// How experts are chosen. One: every slot has the same expert. Heads: slot j has matrix j, without ids.
enum class Chosen { Random, One, Heads };

struct SequenceShape {
  uint32_t n, depth, experts, used;
  Live live;
  Chosen choice;
  bool bias;
  reference::Activation activation;
};

constexpr float kNormEpsilon = 1e-5f;

// The experts of a gate read one x for all slots; those before combine, other matrices, read an x for each.
class SequenceCase {
 public:
  SequenceCase(Rig& rig, const Stored& stored, const SequenceShape& shape, Random& random)
      : rig_(rig), shape_(shape) {
    const uint32_t tokens = shape.live.tokens, bucket = shape.live.bucket, slots = shape.used;
    StepRows steps;
    steps.add_tokens(tokens);
    step_ = steps.put(rig);
    for (uint32_t i = 0; i < tokens * slots; ++i)
      ids_.push_back(shape.choice == Chosen::One     ? shape.experts - 1
                     : shape.choice == Chosen::Heads ? i % slots
                                                     : uint32_t(random() % shape.experts));
    Ids padded = ids_;
    padded.resize(size_t(bucket) * slots, ~0u);
    if (shape.choice != Chosen::Heads) id_slice_ = rig.put(padded);
    for (Matrix* matrix : {&gate_, &up_})
      *matrix = random_matrix(stored.type, shape.n, shape.depth, shape.experts, Scales::Plain, random);
    gate_weight_ = put_matrix(rig, gate_, stored.layout);
    up_weight_ = put_matrix(rig, up_, stored.layout);
    if (shape.bias)
      for (std::vector<float>* bias : {&gate_bias_, &up_bias_})
        *bias = gaussians(size_t(shape.experts) * shape.n, random, 3);
    gain_ = gaussians(shape.depth, random);
    next_gain_ = gaussians(shape.n, random);
    weights_ = gaussians(size_t(tokens) * slots, random);
    residual_ = gaussians(size_t(tokens) * shape.n, random, 3);
    y_ = rig.room(uint64_t(bucket) * slots * shape.n * 4);
    y2_ = rig.room(y_.bytes);
    sum_ = rig.room(uint64_t(bucket) * shape.n * 4);
    rounded_ = rig.room(bucket * form_row_bytes(Form::Q8X16, uint64_t(slots) * shape.n));
    x_one_ = with_outliers(size_t(tokens) * shape.depth, random);
    x_each_ = with_outliers(size_t(tokens) * slots * shape.depth, random);
  }

  // Puts a value into x of the last live token, and into the gain of a norm before the product.
  void spoil(float value) {
    spoiled_ = value;
    gain_[shape_.depth / 3] = value;
  }

  // Fails unless results tell that x or a norm's gain is not finite. Results of other tokens must be finite.
  void check_spoiled(const std::string& sequence) {
    std::vector<Call> calls = calls_of(sequence);
    for (const KernelRow* row : rig_.rows(calls, shape_.live.bucket)) {
      if (row->form == Form::F32 && row->rank) continue;
      std::vector<Call> formed = calls;
      give_form(sequence, &formed, row->form);
      const Slice& result = sums(sequence) ? sum_ : y_;
      rig_.poison(result);
      rig_.poison(rounded_);
      rig_.run(formed, *row, shape_.live.bucket);
      const std::string what = std::string(row->name) + " " + sequence + " of what is not finite, bucket " +
                               std::to_string(shape_.live.bucket);
      const uint32_t width = (sums(sequence) ? 1 : shape_.used) * shape_.n, tokens = shape_.live.tokens;
      const size_t first = norms(sequence) ? 0 : size_t(tokens - 1) * width;
      // The last slot of x is spoiled; where each slot has its own x, that slot's result is.
      const size_t hit =
          norms(sequence) || gates(sequence) || sums(sequence) ? first : first + width - shape_.n;
      const std::vector<float> y = rig_.get<float>(result);
      require_finite(y, 0, first, what);
      require_not_finite(y, hit, size_t(tokens) * width - hit, what);
      if (calls.back().op != Op::Convert) continue;
      std::vector<uint8_t> rows = rig_.get<uint8_t>(rounded_);
      rows.resize(tokens * form_row_bytes(Form::Q8X16, width));
      const Values decoded = reference::decode_q8x16(rows, width);
      require_not_finite({decoded.begin(), decoded.end()}, hit, decoded.size() - hit, what + ", rounded");
    }
  }

  void check(const std::string& sequence) {
    std::vector<Call> calls = calls_of(sequence);
    for (const KernelRow* row : rig_.rows(calls, shape_.live.bucket)) {
      if (row->form == Form::F32 && row->rank) continue;  // it rounds x itself; check_matmul_expert checks it
      std::vector<Call> formed = calls;
      give_form(sequence, &formed, row->form);
      const Slice& result = sums(sequence) ? sum_ : y_;
      // 100 where a row is for few tokens, and for many those of the product alone.
      const uint32_t bucket = shape_.live.bucket;
      const bool often = rig_.repeats() && (bucket == 8 || (bucket == 32 && calls.size() == 1));
      uint64_t first_bits = 0;
      for (int repeat = 0; repeat < (often ? 100 : 3); ++repeat) {
        rig_.poison(result);
        rig_.poison(rounded_);
        rig_.run(formed, *row, shape_.live.bucket);
        const std::vector<float> y = rig_.get<float>(result);
        const std::string what = std::string(row->name) + " " + sequence + ", n " + std::to_string(shape_.n) +
                                 " depth " + std::to_string(shape_.depth) + " bucket " +
                                 std::to_string(shape_.live.bucket);
        const uint64_t bits = sum_of_bits(y);
        expect(repeat == 0 || bits == first_bits, what + ": a repeat gave other bits");
        first_bits = bits;
        if (repeat) continue;
        require_close(y, expected(sequence, row->form), row->form == Form::F16 ? 1e-9 : 1e-10, what);
        if (calls.back().op == Op::Convert) check_form(sequence, y, what);
      }
    }
  }

 private:
  static bool sums(const std::string& sequence) { return sequence.find("combine") != std::string::npos; }
  static bool gates(const std::string& sequence) { return sequence.find("gate") != std::string::npos; }
  static bool norms(const std::string& sequence) { return sequence.starts_with("norm"); }
  static bool adds(const std::string& sequence) { return sequence.find("add") != std::string::npos; }

  static uint64_t sum_of_bits(const std::vector<float>& y) {
    uint64_t sum = 14695981039346656037u;
    for (const float value : y) {
      uint32_t bits;
      memcpy(&bits, &value, sizeof bits);
      sum = (sum ^ bits) * 1099511628211u;
    }
    return sum;
  }

  std::vector<Call> calls_of(const std::string& sequence) {
    const CallMaker make{step_};
    const uint32_t x_slots = gates(sequence) ? 1 : shape_.used, bucket = shape_.live.bucket;
    x_ = rig_.put_padded(input(sequence), size_t(bucket) * x_slots * shape_.depth);
    std::vector<Call> calls;
    const Slice normed = norms(sequence) ? rig_.room(uint64_t(bucket) * shape_.depth * 4) : x_;
    const auto each = [&](const Tensor& weight, const std::vector<float>& bias, const Slice& y) {
      calls.push_back(make.matmul_each(weight, normed, id_slice_, y, shape_.used, x_slots));
      if (!bias.empty()) calls.back().slot[kBias] = rig_.put(bias);
    };
    if (norms(sequence)) calls.push_back(make.norm(put_vector(rig_, gain_), x_, normed, kNormEpsilon));
    each(gate_weight_, gate_bias_, y_);
    if (gates(sequence)) {
      each(up_weight_, up_bias_, y2_);
      calls.push_back(make.gate(y_, y2_, y_, shape_.used * shape_.n, uint32_t(shape_.activation)));
    }
    if (sums(sequence))
      calls.push_back(make.combine(y_, rig_.put_padded(weights_, size_t(bucket) * shape_.used), sum_,
                                   shape_.n, shape_.used));
    if (adds(sequence))
      calls.push_back(make.add(rig_.put_padded(residual_, size_t(bucket) * shape_.n), sum_, sum_, shape_.n));
    if (sequence.ends_with("convert"))
      calls.push_back(sums(sequence)
                          ? make.convert(sum_, rounded_, Form::Q8X16, shape_.n, put_vector(rig_, next_gain_))
                          : make.convert(y_, rounded_, Form::Q8X16, shape_.used * shape_.n));
    return calls;
  }

  std::vector<float> input(const std::string& sequence) const {
    std::vector<float> x = gates(sequence) ? x_one_ : x_each_;
    if (spoiled_ != 0 && !norms(sequence)) x[x.size() - shape_.depth / 2 - 1] = spoiled_;
    return x;
  }
  uint32_t width_of_x(const std::string& sequence) const {
    return (gates(sequence) ? 1 : shape_.used) * shape_.depth;
  }

  std::vector<uint8_t> rounded_x(const std::string& sequence, Form form, uint32_t rows) const {
    if (form == Form::Q8X16)
      return q8x16_rows(input(sequence), width_of_x(sequence), norms(sequence) ? to_values(gain_) : Values{},
                        rows);
    std::vector<uint8_t> halves = reference::half_bytes(to_values(input(sequence)));
    halves.resize(size_t(rows) * width_of_x(sequence) * 2, 0xff);
    return halves;
  }

  void give_form(const std::string& sequence, std::vector<Call>* calls, Form form) {
    if (form == Form::F32) return;
    const Slice x = rig_.put(rounded_x(sequence, form, shape_.live.bucket));
    if (norms(sequence)) calls->front().slot[kX] = x;
    for (Call& call : *calls) {
      if (call.op != Op::MatmulExpert) continue;
      if (!norms(sequence)) call.slot[kX] = x;
      call.form = form;
    }
  }

  // In the format q8x16 x was multiplied by a norm's gain, but not by its factor.
  Values x_as_read(const std::string& sequence, Form form) const {
    const Values x = to_values(input(sequence));
    if (form == Form::F32) return x;
    if (form == Form::F16) return reference::halves(x);
    Values read =
        reference::decode_q8x16(rounded_x(sequence, form, shape_.live.tokens), width_of_x(sequence));
    const Values factors = reference::norm(x, Values(shape_.depth, 1), kNormEpsilon);
    for (size_t i = 0; i < x.size() && norms(sequence); ++i) read[i] *= x[i] == 0 ? 0 : factors[i] / x[i];
    return read;
  }

  Values product(const Matrix& matrix, const std::vector<float>& bias, const std::string& sequence,
                 Form form) const {
    return reference::matmul_expert(form == Form::F16 ? reference::halves(matrix.values) : matrix.values,
                                    to_values(bias), x_as_read(sequence, form), ids_,
                                    {shape_.n, shape_.depth, shape_.used, gates(sequence) ? 1 : shape_.used});
  }

  Values expected(const std::string& sequence, Form form) const {
    Values y = product(gate_, gate_bias_, sequence, form);
    if (gates(sequence)) y = reference::gate(y, product(up_, up_bias_, sequence, form), shape_.activation);
    if (sums(sequence)) y = reference::combine(y, to_values(weights_), shape_.n, shape_.used);
    return adds(sequence) ? reference::add(to_values(residual_), y, 1) : y;
  }

  void check_form(const std::string& sequence, const std::vector<float>& y, const std::string& what) {
    const uint32_t width = (sums(sequence) ? 1 : shape_.used) * shape_.n;
    const std::vector<uint8_t> rows = rig_.get<uint8_t>(rounded_);
    for (uint32_t t = 0; t < shape_.live.tokens; ++t) {
      const auto from = y.begin() + ptrdiff_t(size_t(t) * width);
      const std::string wrong = reference::wrong_q8x16(&rows[t * form_row_bytes(Form::Q8X16, width)],
                                                       {from, from + ptrdiff_t(width)},
                                                       sums(sequence) ? to_values(next_gain_) : Values{});
      expect(wrong.empty(), what + ": " + wrong + " of the rounded result is wrong");
    }
  }

  Rig& rig_;
  SequenceShape shape_;
  float spoiled_ = 0;
  Ids ids_;
  Matrix gate_, up_;
  Tensor gate_weight_, up_weight_;
  std::vector<float> gate_bias_, up_bias_, gain_, next_gain_, weights_, residual_, x_one_, x_each_;
  Slice step_, id_slice_, x_, y_, y2_, sum_, rounded_;
};

}  // namespace

void check_expert_sequences(Rig& rig) {
  Random random(4);
  using enum reference::Activation;
  const SequenceShape shapes[] = {
      {48, 512, 9, 2, {8, 7}, Chosen::Random, false, Silu},  // the first for a quick rig: of a few tokens,
                                                             // and of many
      {70, 256, 5, 3, {32, 29}, Chosen::Random, true, Silu},
      {64, 256, 5, 3, {1, 1}, Chosen::Random, true, Clamped},
      {32, 768, 4, 1, {1, 1}, Chosen::One, true, Gelu},
      {80, 256, 6, 4, {2, 1}, Chosen::One, false, Silu},
      {32, 256, 3, 3, {1, 1}, Chosen::Heads, false, Silu},
      {64, 512, 7, 2, {128, 77}, Chosen::One, false, Silu},
      {129, 256, 2, 2, {128, 77}, Chosen::Heads, true, Silu},
      {16, 256, 5, 4, {512, 300}, Chosen::Random, false, Silu},  // more slots than a group's threads look
                                                                 // through at once
      {32, 512, 48, 3, {32, 29}, Chosen::Random, true, Silu},    // two slots of each expert
  };
  for (const Stored& stored : stored_types(rig, Op::MatmulExpert))
    for (const SequenceShape& shape : shapes) {
      if (rig.checked() && shape.live.bucket != 8) continue;
      if (!rig.left(Op::MatmulExpert, stored.type, stored.layout, shape.live.bucket)) continue;
      SequenceCase c(rig, stored, shape, random);
      for (const std::string& sequence : rig.sequences(Op::MatmulExpert)) c.check(sequence);
      for (const float value : kNotFinite) {
        c.spoil(value);
        for (const std::string& sequence : rig.sequences(Op::MatmulExpert)) c.check_spoiled(sequence);
      }
      rig.reset();
    }
  rig.require_all_run(Op::MatmulExpert);
}

}  // namespace greta::selftest
