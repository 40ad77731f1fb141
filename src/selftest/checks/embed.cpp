// Checks embed for every type, bit for bit, with what it writes into the token log. Checks convert: the q8
// format byte for byte, the other formats value for value.
#include <algorithm>
#include <cmath>

#include "selftest/checks/checks.h"

namespace greta::selftest {

// Checks kernel rows that also give y in the activation format that a matmul reads.
static void check_embed_rounded(Rig& rig, const Stored& stored, const Live& live, Random& random) {
  const uint32_t vocab = 37, width = quant_info(stored.type).block == 1 ? 96 : 512;
  const Matrix matrix = random_matrix(stored.type, vocab, width, 1, Scales::Plain, random);
  StepRows steps;
  for (uint32_t t = 0; t < live.tokens; ++t) steps.add(uint32_t(random() % vocab), 0, t);
  const Slice room = rig.room(uint64_t(live.bucket) * width * 4);
  const CallMaker make{steps.put(rig)};
  const Call call = make.embed(put_matrix(rig, matrix, stored.layout), room, {}, 1.5f, vocab);
  Call convert =
      make.convert(room, rig.room(live.bucket * form_row_bytes(Form::Q8X16, width)), Form::Q8X16, width);
  const auto gain = gaussians(width, random);
  for (const bool gains : {false, true}) {
    if (gains) convert.weight = put_vector(rig, gain);
    const Call calls[] = {call, convert};
    for (const KernelRow* row : rig.rows(calls, live.bucket)) {
      rig.poison(call.slot[kY]);
      rig.poison(convert.slot[kY]);
      rig.run(calls, *row, live.bucket);
      const auto y = rig.get<float>(call.slot[kY]);
      for (uint32_t t = 0; t < live.tokens; ++t)
        for (uint32_t i = 0; i < width; ++i)
          expect(y[size_t(t) * width + i] ==
                     float(matrix.values[size_t(steps.rows[t].token) * width + i]) * call.embed.scale,
                 std::string(row->name) + ": y differs when the row also gives it rounded");
      expect_rounded(*row, y, rig.get<uint8_t>(convert.slot[kY]), width, gains ? to_values(gain) : Values{},
                     live.tokens);
    }
  }
  rig.reset();
}

void check_embed(Rig& rig) {
  Random random(1);
  for (const Stored& stored : stored_types(rig, Op::Embed))
    for (const Live& live : live_rows(rig)) {
      if (!rig.left(Op::Embed, stored.type, stored.layout, live.bucket)) continue;
      const uint32_t vocab = 37, width = quant_info(stored.type).block == 1 ? 51 : 512;
      const Matrix matrix = random_matrix(stored.type, vocab, width, 1, Scales::Extreme, random);
      StepRows steps;
      Ids tokens;
      for (uint32_t t = 0; t < live.tokens; ++t) {
        tokens.push_back(uint32_t(random() % vocab));
        steps.add(tokens.back(), t % 2, 70 + t / 2);  // two sequences
      }
      const Slice log = rig.room(uint64_t(steps.pool_pages()) * kPageTokens * 4);
      const Slice y = rig.room(uint64_t(live.bucket) * width * 4), step = steps.put(rig);
      Call call = CallMaker{step}.embed(put_matrix(rig, matrix, stored.layout), y, log);
      const Values expected = reference::embed(matrix.values, width, tokens, 1);
      check_rows(rig, call, live.bucket, expected, 0);
      rig.poison(log);
      call.embed.vocab = vocab;
      for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
        rig.poison(call.slot[kY]);
        run_in_parts(rig, call, kPackRows, *row, live.bucket);
        require_close(rig.get<float>(call.slot[kY]), expected, 0, std::string(row->name) + " in parts");
      }
      const Ids logged = rig.get<uint32_t>(log);
      size_t written = 0;
      for (const uint32_t entry : logged) written += entry != ~0u;
      expect(written == live.tokens, "embed: the log holds other positions");
      for (size_t t = 0; t < tokens.size(); ++t) {
        const StepRow& row = steps.rows[t];
        const size_t at = steps.page(row.sequence, row.position) * kPageTokens + row.position % kPageTokens;
        expect(logged[at] == tokens[t], "embed: the log holds another token");
      }
      rig.reset();
      if (live.bucket <= 8) check_embed_rounded(rig, stored, live, random);
    }
  rig.require_all_run(Op::Embed);
}

// Compares each row of y with the reference. `every` is how many rows of x make one of y.
static void check_form(Rig& rig, const Call& call, const KernelRow& row, const Live& live,
                       const std::vector<float>& x, const Values& gain, uint32_t every) {
  rig.poison(call.slot[kY]);
  rig.run({&call, 1}, row, live.bucket);
  const auto y = rig.get<uint8_t>(call.slot[kY]);
  const uint32_t depth = call.width;
  const uint64_t row_bytes = form_row_bytes(call.form, depth);
  uint64_t at = 0;
  for (uint32_t t = 0; t < live.tokens; t += every, at += row_bytes) {
    const std::vector<float> from(&x[size_t(t) * depth], &x[size_t(t) * depth] + depth);
    if (call.form == Form::Q8X16) {
      const std::string wrong = reference::wrong_q8x16(&y[at], from, gain);
      expect(wrong.empty(), row.name + (": " + wrong) + " is wrong at depth " + std::to_string(depth));
      continue;
    }
    const bool q8 = call.form == Form::Q8;
    const auto expected = q8 ? reference::convert_q8(from) : reference::half_bytes(to_values(from));
    const auto same = [&](uint32_t first, uint32_t count) {
      return std::equal(&expected[first], &expected[first] + count, &y[at + first]);
    };
    // Compares the planes of q8. The bytes between them are not used.
    const uint32_t scales = depth / 32 * 4, sums = depth / 16 * 2;
    expect(q8 ? same(0, depth) && same(q8_scales_at(depth), scales) && same(q8_sums_at(depth), sums)
              : same(0, depth * 2),
           std::string(row.name) + ": wrong bytes at depth " + std::to_string(depth));
  }
  expect(std::all_of(y.begin() + ptrdiff_t(at), y.end(), [](uint8_t byte) { return byte == 0xff; }),
         std::string(row.name) + ": wrote a row that is not live");
}

void check_convert(Rig& rig) {
  Random random(1);
  // GPUs may take denormal values for 0, so these must be negligible beside the scale.
  const float least = rig.info().host_functions ? 1e-36f : 1e-33f;
  for (const Live& live : live_rows(rig))
    for (const uint32_t depth : {96u, 32u, 256u, 4096u})
      for (const bool gather : {false, true}) {
        StepRows steps;
        for (uint32_t t = 0; t < live.tokens; ++t) steps.add(t, 0, t, t % 2 == 0);
        auto x = with_outliers(size_t(live.tokens) * depth, random);
        for (uint32_t i = 0; i < 32; ++i) x[i] = 0;
        if (depth > 32)
          for (uint32_t i = 0; i < 32; ++i) x[32 + i] *= least;  // a scale near the smallest
        const Slice x_slice = rig.put_padded(x, live.bucket * depth);
        const CallMaker make{steps.put(rig)};
        const std::vector<float> gain = gaussians(depth, random);
        for (const Form form : {Form::Q8, Form::Q8X16, Form::F16})
          for (const bool gains : {false, true}) {
            if (gains && form != Form::Q8X16) continue;
            const Tensor times = gains ? put_vector(rig, gain) : Tensor{};
            Call call = make.convert(x_slice, rig.room(live.bucket * form_row_bytes(form, depth)), form,
                                     depth, times);
            if (gather) call.rows_of = kRowsGather;
            for (const KernelRow* row : rig.rows({&call, 1}, live.bucket))
              check_form(rig, call, *row, live, x, gains ? to_values(gain) : Values{}, gather ? 2 : 1);
          }
        rig.reset();
      }
  for (const Stored& stored : stored_types(rig, Op::Convert)) {
    if (stored.layout == Layout::Gguf) continue;
    const Matrix matrix = random_matrix(stored.type, 21, 256, 1, Scales::Extreme, random);
    put_matrix(rig, matrix, stored.layout);
  }
  rig.require_all_run(Op::Convert);
}

}  // namespace greta::selftest
