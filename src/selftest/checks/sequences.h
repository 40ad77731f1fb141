// Checks of kernel rows that cover several small ops.
#pragma once
#include "selftest/checks/rows.h"

namespace greta::selftest {

void check_normed_values(Rig& rig);  // heads that are normalised and written, which kv_write leads
void check_gated_scan(Rig& rig);     // a scan with conv1d before it, norm and gate behind it

// Checks kernel rows that make the calls and also give the last one's y, rows of `width` values, in a form
// that a product reads.
inline void check_forms(Rig& rig, std::span<const Call> calls, const Live& live, uint32_t width,
                        const Values& expected, double limit) {
  for (const Form form : {Form::F16, Form::Q8X16}) {
    std::vector<Call> all(calls.begin(), calls.end());
    const Slice y = all.back().slot[kY], rounded = rig.room(live.bucket * form_row_bytes(form, width));
    all.push_back(CallMaker{all[0].slot[kStep]}.convert(y, rounded, form, width));
    for (const KernelRow* row : rig.rows(all, live.bucket)) {
      rig.poison(y);
      rig.poison(rounded);
      rig.run(all, *row, live.bucket);
      const std::vector<float> made = rig.get<float>(y);
      require_close(made, expected, limit, row->name);
      if (form == Form::F16)
        expect_halves(*row, made, rig.get<uint8_t>(rounded), size_t(live.tokens) * width);
      else
        expect_rounded(*row, made, rig.get<uint8_t>(rounded), width, {}, live.tokens);
    }
  }
}

}  // namespace greta::selftest
