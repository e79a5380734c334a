#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct Scales {
  float in = 0, out = 0;
  int64_t in_zero = 0, out_zero = 0;
};

template <class T>
ModelBuilder reduction_model(BuiltinOperator code, const Shape& in, const std::vector<int32_t>& axes, bool keep,
                             const Scales& s = {}) {
  ModelBuilder m;
  auto x = m.tensor(tensor_type_of<T>, dims(in), "x");
  if (s.in > 0) x.quantized(s.in, s.in_zero);
  const int input = x;
  const int a = m.tensor(TensorType::int32, {static_cast<int32_t>(axes.size())}, "axes").values(axes);
  auto y = m.tensor(tensor_type_of<T>, {}, "y");
  if (s.in > 0) y.quantized(s.out, s.out_zero);
  const int output = y;
  m.op(code, {input, a}, {output}).options(27).field(0, keep);
  m.inputs({input}).outputs({output});
  return m;
}

struct Reduced {
  Shape shape;
  std::vector<std::vector<double>> cells;  // behind each output
};
template <class T>
Reduced reduce(const Shape& in, const std::vector<T>& x, const std::vector<int32_t>& axes, bool keep) {
  std::vector<bool> gone(static_cast<size_t>(in.rank()));
  for (int32_t a : axes) gone[static_cast<size_t>(a < 0 ? a + in.rank() : a)] = true;
  Reduced r;
  Shape small;
  for (int i = 0; i < in.rank(); ++i) {
    small.push_back(gone[i] ? 1 : in[i]);
    if (!gone[i])
      r.shape.push_back(in[i]);
    else if (keep)
      r.shape.push_back(1);
  }
  r.cells.resize(static_cast<size_t>(small.elements()));
  for (int64_t i = 0; i < in.elements(); ++i) {
    auto at = unravel(in, i);
    for (int k = 0; k < in.rank(); ++k)
      if (gone[k]) at[k] = 0;
    r.cells[static_cast<size_t>(ravel(small, at))].push_back(static_cast<double>(x[static_cast<size_t>(i)]));
  }
  return r;
}

// finish: one output from its cells.
template <class T, class Finish>
void check_reduction(BuiltinOperator code, const Shape& in, const std::vector<int32_t>& axes, bool keep,
                     double tolerance, Finish finish, const Scales& scales = {}) {
  Random random(5);
  const auto x = random.values<T>(in.elements());
  const Reduced r = reduce(in, x, axes, keep);
  std::vector<T> want;
  for (const auto& cells : r.cells) want.push_back(static_cast<T>(finish(cells)));
  INFO(in.to_string() << " over " << axes.size() << " axes");
  check_values(run_on_targets(reduction_model<T>(code, in, axes, keep, scales), {bytes_of(x)}), r.shape, want,
               tolerance);
}

double sum_of(const std::vector<double>& cells) {
  double sum = 0;
  for (double c : cells) sum += c;
  return sum;
}
double mean_of(const std::vector<double>& cells) { return sum_of(cells) / static_cast<double>(cells.size()); }
double largest(const std::vector<double>& cells) { return *std::max_element(cells.begin(), cells.end()); }
double smallest(const std::vector<double>& cells) { return *std::min_element(cells.begin(), cells.end()); }

}  // namespace

TEST_CASE("float reductions over all kinds of axes", "[ops][reduction]") {
  const std::vector<std::pair<Shape, std::vector<int32_t>>> rows = {
      {{2, 7, 7, 19}, {1, 2}},
      {{1, 9, 9, 300}, {2, 1}},
      {{3, 50}, {1}},
      {{3, 50}, {0}},
      {{3, 50}, {-1, 0}},
      {{2, 3, 4, 5}, {0, 2}},
      {{2, 3, 4, 5}, {1, 3}},
      {{2, 3, 4, 5}, {}},
      {{7}, {0}},
      {{2, 3, 4}, {1, 1, -2}},
      {{}, {}},
      {{2, 2, 1, 3, 2, 2, 3, 2}, {0, 3, 6, 7}},
  };
  check_values<float>(run_on_targets(reduction_model<float>(BuiltinOperator::sum, {4000}, {0}, false),
                                     {bytes_of(std::vector<float>(4000, std::numeric_limits<float>::infinity()))}),
                      {}, {std::numeric_limits<float>::infinity()});
  for (const auto& [shape, axes] : rows)
    for (const bool keep : {false, true}) {
      check_reduction<float>(BuiltinOperator::mean, shape, axes, keep, 1e-5, mean_of);
      check_reduction<float>(BuiltinOperator::sum, shape, axes, keep, 1e-5, sum_of);
      check_reduction<float>(BuiltinOperator::reduce_max, shape, axes, keep, 0, largest);
      check_reduction<float>(BuiltinOperator::reduce_min, shape, axes, keep, 0, smallest);
      check_reduction<int32_t>(BuiltinOperator::sum, shape, axes, keep, 0, sum_of);
      check_reduction<int64_t>(BuiltinOperator::mean, shape, axes, keep, 0,
                               [](const auto& c) { return std::trunc(mean_of(c)); });
    }
}

TEST_CASE("a mean over a million cells stays accurate", "[ops][reduction]") {
  for (const int32_t channels : {1, 2}) {
    const Shape in{1, 1000, 1000, channels};
    std::vector<float> x(static_cast<size_t>(in.elements()));
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = 100.0f + static_cast<float>(i / static_cast<size_t>(channels) % 7) * 0.001f;
    const double want = mean_of(reduce(in, x, {1, 2}, false).cells[0]);
    check_values<float>(run_on_targets(reduction_model<float>(BuiltinOperator::mean, in, {1, 2}, false), {bytes_of(x)}),
                        {1, channels}, std::vector<float>(static_cast<size_t>(channels), static_cast<float>(want)),
                        2e-7);
  }
}

TEST_CASE("quantised reductions", "[ops][reduction]") {
  const Scales s{0.5f, 0.25f, 3, -7}, same{0.5f, 0.5f, 3, 3};
  const auto rescaled = [&](double real, double low, double high) {
    return std::min(std::max(std::round(real * s.in / s.out) + static_cast<double>(s.out_zero), low), high);
  };
  const auto real_sum = [&](const std::vector<double>& c) {
    return sum_of(c) - static_cast<double>(c.size()) * static_cast<double>(s.in_zero);
  };
  // Within one step: the reference rounds twice.
  check_reduction<int8_t>(
      BuiltinOperator::mean, {2, 5, 5, 70}, {1, 2}, true, 1,
      [&](const auto& c) { return rescaled(real_sum(c) / c.size(), -128, 127); }, s);
  check_reduction<int8_t>(
      BuiltinOperator::sum, {3, 4}, {1}, false, 1, [&](const auto& c) { return rescaled(real_sum(c), -128, 127); }, s);
  check_reduction<uint8_t>(BuiltinOperator::reduce_max, {3, 4, 5}, {1}, false, 0, largest, same);
  check_reduction<int16_t>(BuiltinOperator::reduce_min, {3, 4, 5}, {0, 2}, false, 0, smallest,
                           Scales{0.5f, 0.5f, 0, 0});
  const auto refused = [](BuiltinOperator code, const Scales& wrong) {
    return run_on_targets(reduction_model<int8_t>(code, {2, 2}, {1}, false, wrong), {bytes_of(std::vector<int8_t>(4))});
  };
  check_refused(refused(BuiltinOperator::reduce_max, s), ErrorCode::invalid_model,
                "differ in scale (0.5, 0.25) or zero point (3, -7)");
}

TEST_CASE("any and all; nothing to reduce; wrong axes", "[ops][reduction]") {
  const std::vector<uint8_t> x = {1, 1, 0, 1};
  const auto model = [](BuiltinOperator code, const Shape& in, const std::vector<int32_t>& axes) {
    return reduction_model<bool>(code, in, axes, false);
  };
  check_values<uint8_t>(run_on_targets(model(BuiltinOperator::reduce_any, {2, 2}, {1}), {x}), {2}, {1, 1});
  check_values<uint8_t>(run_on_targets(model(BuiltinOperator::reduce_all, {2, 2}, {1}), {x}), {2}, {1, 0});
  check_values<uint8_t>(run_on_targets(model(BuiltinOperator::reduce_all, {2, 0}, {1}), {{}}), {2}, {1, 1});
  check_values<float>(run_on_targets(reduction_model<float>(BuiltinOperator::sum, {0, 3}, {0}, false), {{}}), {3},
                      {0, 0, 0});
  check_values<float>(run_on_targets(reduction_model<float>(BuiltinOperator::mean, {0, 2}, {0}, false), {{}}), {2},
                      {std::nanf(""), std::nanf("")});
  check_refused(run_on_targets(reduction_model<float>(BuiltinOperator::sum, {2, 3}, {2}, false),
                               {bytes_of(std::vector<float>(6))}),
                ErrorCode::invalid_model, "axis 2 is outside rank 2");
}
