// RFFT2D, COMPLEX_ABS, REAL and IMAG.
#include <complex>

#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

ModelBuilder rfft_model(const Shape& in, const std::vector<int32_t>& lengths) {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, dims(in), "x"),
            n = m.tensor(TensorType::int32, {int32_t(lengths.size())}, "lengths").values(lengths), y = m.tensor(TensorType::complex64, {}, "y");
  m.op(BuiltinOperator::rfft2d, {x, n}, {y});
  m.inputs({x}).outputs({y});
  return m;
}

}  // namespace

TEST_CASE("transforms of real planes, cut and filled", "[ops][rfft2d]") {
  Random random(1);
  struct Size {
    Shape in;
    int32_t h, w;
  };
  for (const Size& s : {Size{{1, 1}, 1, 1}, Size{{2, 3}, 1, 2}, Size{{3, 1, 5}, 1, 8}, Size{{2, 1, 512}, 1, 512}, Size{{2, 4, 8}, 4, 8},
                        Size{{5, 3}, 8, 1}, Size{{9, 20}, 4, 16}, Size{{3, 7}, 16, 32}, Size{{2, 2, 6, 6}, 2, 4}, Size{{1, 33}, 32, 64},
                        Size{{0, 4, 4}, 4, 4}, Size{{2, 0, 4}, 2, 4}}) {
    INFO(s.in.to_string() << " " << s.h << " x " << s.w);
    const auto x = random.values<float>(s.in.elements());
    const int rank = s.in.rank();
    const int64_t ih = s.in[rank - 2], iw = s.in[rank - 1], columns = s.w / 2 + 1;
    Shape out = s.in;
    out[rank - 2] = s.h, out[rank - 1] = columns;
    std::vector<float> want;
    const int64_t planes = out.elements() / (s.h * columns);
    for (int64_t p = 0; p < planes; ++p)
      for (int64_t u = 0; u < s.h; ++u)
        for (int64_t v = 0; v < columns; ++v) {
          std::complex<double> sum = 0;
          for (int64_t r = 0; r < std::min<int64_t>(ih, s.h); ++r)
            for (int64_t c = 0; c < std::min<int64_t>(iw, s.w); ++c)
              sum += double(x[size_t((p * ih + r) * iw + c)]) *
                     std::polar(1.0, -2 * 3.14159265358979323846 * (double(u * r % s.h) / s.h + double(v * c % s.w) / s.w));
          want.push_back(float(sum.real())), want.push_back(float(sum.imag()));
        }
    const auto results = run_on_targets(rfft_model(s.in, {s.h, s.w}), {bytes_of(x)});
    check_values(results, out, want, 1e-5);
  }
}

TEST_CASE("transform lengths that are not powers of two are refused", "[ops][rfft2d]") {
  const std::vector<std::vector<uint8_t>> x{std::vector<uint8_t>(4 * 12)};
  check_refused(run_on_targets(rfft_model({3, 4}, {3, 4}), x), ErrorCode::unsupported, "length 3 is not a power of two");
  check_refused(run_on_targets(rfft_model({3, 4}, {4, 0}), x), ErrorCode::unsupported, "length 0 is not a power of two");
  check_refused(run_on_targets(rfft_model({3, 4}, {4}), x), ErrorCode::invalid_model, "has 1 transform lengths, not 2");
  check_refused(run_on_targets(rfft_model({12}, {4, 4}), x), ErrorCode::invalid_model, "has rank 1");
}

TEST_CASE("parts of complex numbers", "[ops][complex]") {
  const auto run = [](BuiltinOperator code, bool wide, const std::vector<uint8_t>& values, int32_t n) {
    ModelBuilder m;
    const int x = m.tensor(wide ? TensorType::complex128 : TensorType::complex64, {n}), y = m.tensor(wide ? TensorType::float64 : TensorType::float32, {});
    m.op(code, {x}, {y});
    m.inputs({x}).outputs({y});
    return run_on_targets(m, {values});
  };
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> z{3, -4, 3e30f, 4e30f, 0, 0, -inf, nan, 1e-30f, 0, nan, 1};
  check_values<float>(run(BuiltinOperator::complex_abs, false, bytes_of(z), 6), {6}, {5, 5e30f, 0, inf, 1e-30f, nan}, 1e-6);
  check_values<float>(run(BuiltinOperator::real, false, bytes_of(z), 6), {6}, {3, 3e30f, 0, -inf, 1e-30f, nan});
  check_values<float>(run(BuiltinOperator::imag, false, bytes_of(z), 6), {6}, {-4, 4e30f, 0, nan, 0, 1});
  const std::vector<double> w{3, -4, 3e200, 4e200};
  check_values<double>(run(BuiltinOperator::complex_abs, true, bytes_of(w), 2), {2}, {5, 5e200}, 1e-12);
  check_values<double>(run(BuiltinOperator::real, true, bytes_of(w), 2), {2}, {3, 3e200});
  check_values<double>(run(BuiltinOperator::imag, true, bytes_of(w), 2), {2}, {-4, 4e200});
}
