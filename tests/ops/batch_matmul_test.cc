// BATCH_MATMUL: float, half, int8, int16 and hybrid, against plain sums.
#include "oneweight/base/fixed_point.h"
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct MatMul {
  Shape x, y;
  bool adj_x = false, adj_y = false;

  int64_t rows() const { return x[x.rank() - (adj_x ? 1 : 2)]; }
  int64_t terms() const { return x[x.rank() - (adj_x ? 2 : 1)]; }
  int64_t columns() const { return y[y.rank() - (adj_y ? 2 : 1)]; }
  Shape out() const {
    const int rank = std::max(x.rank(), y.rank());
    Shape s;
    for (int i = 0; i < rank - 2; ++i) {
      const int xi = i - (rank - x.rank()), yi = i - (rank - y.rank());
      s.push_back(std::max(xi < 0 ? 1 : x[xi], yi < 0 ? 1 : y[yi]));
    }
    s.push_back(rows());
    s.push_back(columns());
    return s;
  }
  // Calls put(element of the output, elements of x, elements of y) for every output element.
  template <class Sum>
  void each(const Sum& sum) const {
    const Shape shape = out();
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const auto at = unravel(shape, i);
      const auto element = [&](const Shape& s, bool adj, int64_t row, int64_t column) {
        std::vector<int64_t> place;
        for (int k = 0; k < s.rank() - 2; ++k)
          place.push_back(s[k] == 1 ? 0 : at[static_cast<size_t>(k + shape.rank() - s.rank())]);
        place.push_back(adj ? column : row);
        place.push_back(adj ? row : column);
        return ravel(s, place);
      };
      const int64_t m = at[at.size() - 2], n = at[at.size() - 1];
      std::vector<std::pair<int64_t, int64_t>> pairs;
      for (int64_t k = 0; k < terms(); ++k) pairs.push_back({element(x, adj_x, m, k), element(y, adj_y, k, n)});
      sum(i, pairs);
    }
  }
};

std::vector<MatMul> shapes() {
  std::vector<MatMul> all;
  for (const bool ax : {false, true}) {
    for (const bool ay : {false, true}) {
      const auto matrices = [&](Shape batch_x, Shape batch_y, int64_t m, int64_t k, int64_t n) {
        batch_x.push_back(ax ? k : m), batch_x.push_back(ax ? m : k);
        batch_y.push_back(ay ? n : k), batch_y.push_back(ay ? k : n);
        all.push_back({batch_x, batch_y, ax, ay});
      };
      matrices({}, {}, 1, 1, 1);
      matrices({}, {}, 1, 37, 70);   // few rows: blocks of columns
      matrices({2}, {2}, 3, 65, 131);
      matrices({3}, {}, 5, 18, 33);  // one y for all
      matrices({1, 2}, {3, 1}, 4, 9, 17);
      matrices({2}, {1}, 29, 21, 40);
      matrices({}, {2, 2}, 15, 33, 3);
      matrices({2}, {2}, 9, 300, 35);
      matrices({}, {}, 40, 4, 16);
      matrices({}, {}, 8, 1, 5);
    }
  }
  all.push_back({{2, 3, 0}, {2, 0, 4}, false, false});  // sums of nothing
  all.push_back({{2, 9, 0}, {2, 4, 0}, false, true});
  all.push_back({{0, 3, 2}, {0, 2, 4}, false, false});
  all.push_back({{2, 0, 2}, {2, 2, 4}, false, false});
  all.push_back({{17, 520}, {520, 600}, false, false});  // more than one part of y
  return all;
}

ModelBuilder model_of(const MatMul& g, TensorType type, TensorType y_type, TensorType out) {
  ModelBuilder m;
  const int x = m.tensor(type, dims(g.x), "x"), y = m.tensor(y_type, dims(g.y), "y"), z = m.tensor(out, {}, "z");
  m.op(BuiltinOperator::batch_matmul, {x, y}, {z}).options(101).field(0, g.adj_x).field(1, g.adj_y);
  m.inputs({x, y}).outputs({z});
  return m;
}
TensorSpec& tensor_of(ModelBuilder& m, size_t i) { return m.spec.subgraphs[0].tensors[i]; }

}  // namespace

TEST_CASE("float products, broadcast and transposed", "[ops][batch_matmul]") {
  Random random(1);
  for (const MatMul& g : shapes()) {
    INFO(g.x.to_string() << " " << g.y.to_string() << " " << g.adj_x << g.adj_y);
    const auto x = random.values<float>(g.x.elements()), y = random.values<float>(g.y.elements());
    std::vector<float> want(static_cast<size_t>(g.out().elements()));
    g.each([&](int64_t i, const auto& pairs) {
      double sum = 0;
      for (const auto& [a, b] : pairs) sum += double(x[size_t(a)]) * double(y[size_t(b)]);
      want[size_t(i)] = float(sum);
    });
    const ModelBuilder m = model_of(g, TensorType::float32, TensorType::float32, TensorType::float32);
    check_values(run_on_targets(m, {bytes_of(x), bytes_of(y)}), g.out(), want, 1e-4);
    if (g.y.elements() == 0) continue;
    ModelBuilder constant = m;
    tensor_of(constant, 1).data = bytes_of(y);
    constant.inputs({0});
    check_values(run_on_targets(constant, {bytes_of(x)}), g.out(), want, 1e-4);
  }
}

TEST_CASE("half second operands are read where they lie", "[ops][batch_matmul]") {
  Random random(2);
  for (const MatMul& g : shapes()) {
    if (g.y.elements() == 0) continue;
    const auto x = random.values<float>(g.x.elements());
    std::vector<half> y;
    for (float v : random.values<float>(g.y.elements())) y.push_back(float_to_half(v));
    std::vector<float> want(static_cast<size_t>(g.out().elements()));
    g.each([&](int64_t i, const auto& pairs) {
      double sum = 0;
      for (const auto& [a, b] : pairs) sum += double(x[size_t(a)]) * double(half_to_float(y[size_t(b)]));
      want[size_t(i)] = float(sum);
    });
    ModelBuilder m;
    const int h = m.tensor(TensorType::float16, dims(g.y)).values(y), w = m.tensor(TensorType::float32, dims(g.y)),
              in = m.tensor(TensorType::float32, dims(g.x)), out = m.tensor(TensorType::float32, {});
    m.op(BuiltinOperator::dequantize, {h}, {w});
    m.op(BuiltinOperator::batch_matmul, {in, w}, {out}).options(101).field(0, g.adj_x).field(1, g.adj_y);
    m.inputs({in}).outputs({out});
    check_values(run_on_targets(m, {bytes_of(x)}), g.out(), want, 1e-4);
  }
}

TEST_CASE("int8 products are exact", "[ops][batch_matmul]") {
  Random random(3);
  for (const MatMul& g : shapes()) {
    INFO(g.x.to_string() << " " << g.y.to_string() << " " << g.adj_x << g.adj_y);
    const auto x = random.values<int8_t>(g.x.elements()), y = random.values<int8_t>(g.y.elements());
    for (const int y_zero : {0, -7}) {
      const float sx = 0.02f, sy = 0.03f, so = 0.05f;
      const FixedMultiplier f = quantize_multiplier(double(sx * sy) / double(so));
      std::vector<int8_t> want(static_cast<size_t>(g.out().elements()));
      std::vector<int32_t> sums(want.size());
      g.each([&](int64_t i, const auto& pairs) {
        int64_t sum = 0;
        for (const auto& [a, b] : pairs) {
          sum += (x[size_t(a)] - 5) * (y[size_t(b)] - y_zero);
          sums[size_t(i)] += x[size_t(a)] * y[size_t(b)];
        }
        const int32_t q = multiply_by_quantized_multiplier(static_cast<int32_t>(sum), f) - 3;
        want[size_t(i)] = static_cast<int8_t>(std::clamp(q, -128, 127));
      });
      ModelBuilder m = model_of(g, TensorType::int8, TensorType::int8, TensorType::int8);
      tensor_of(m, 0).scales = {sx}, tensor_of(m, 0).zero_points = {5};
      tensor_of(m, 1).scales = {sy}, tensor_of(m, 1).zero_points = {y_zero};
      tensor_of(m, 2).scales = {so}, tensor_of(m, 2).zero_points = {-3};
      check_values(run_on_targets(m, {bytes_of(x), bytes_of(y)}), g.out(), want);
      if (y_zero == 0)
        check_values(run_on_targets(model_of(g, TensorType::int8, TensorType::int8, TensorType::int32), {bytes_of(x), bytes_of(y)}), g.out(), sums);
    }
  }
}

TEST_CASE("int16 products are exact, at the ends of the range as well", "[ops][batch_matmul]") {
  Random random(4);
  for (const MatMul& g : shapes()) {
    auto x = random.values<int16_t>(g.x.elements()), y = random.values<int16_t>(g.y.elements());
    for (size_t i = 0; i < x.size(); i += 2) x[i] = -32768;
    for (size_t i = 0; i < y.size(); i += 3) y[i] = -32768;
    const float s = 0.001f;
    const FixedMultiplier f = quantize_multiplier(double(s * s) / double(0.1f));
    std::vector<int16_t> want(static_cast<size_t>(g.out().elements()));
    g.each([&](int64_t i, const auto& pairs) {
      int64_t sum = 0;
      for (const auto& [a, b] : pairs) sum += int64_t{x[size_t(a)]} * y[size_t(b)];
      want[size_t(i)] = static_cast<int16_t>(std::clamp(multiply_by_quantized_multiplier(sum, f), -32768, 32767));
    });
    ModelBuilder m = model_of(g, TensorType::int16, TensorType::int16, TensorType::int16);
    for (size_t t = 0; t < 3; ++t) tensor_of(m, t).scales = {t == 2 ? 0.1f : s}, tensor_of(m, t).zero_points = {0};
    check_values(run_on_targets(m, {bytes_of(x), bytes_of(y)}), g.out(), want);
  }
}

TEST_CASE("float times int8", "[ops][batch_matmul]") {
  Random random(5);
  for (const MatMul& g : shapes()) {
    if (g.y.elements() == 0 || g.x.elements() == 0) continue;
    const auto x = random.values<float>(g.x.elements());
    const auto y = random.values<int8_t>(g.y.elements());
    for (const bool by_column : {false, true}) {
      const int axis = g.y.rank() - (g.adj_y ? 2 : 1);
      std::vector<float> scales;
      for (int64_t n = 0; n < (by_column ? g.columns() : 1); ++n) scales.push_back(0.01f + 0.001f * float(n % 7));
      std::vector<float> want(static_cast<size_t>(g.out().elements()));
      // Rows of x as bytes of their own, to the nearest 1/127 of the largest.
      g.each([&](int64_t i, const auto& pairs) {
        float range = 0;
        for (const auto& [a, b] : pairs) range = std::max(range, std::fabs(x[size_t(a)]));
        double sum = 0;
        const float inverse = range > 0 ? 127.0f / range : 0;
        for (const auto& [a, b] : pairs) sum += double(std::round(x[size_t(a)] * inverse)) * y[size_t(b)];
        want[size_t(i)] = float(sum * double(range / 127.0f) * double(scales[by_column ? size_t(i % g.columns()) : 0]));
      });
      ModelBuilder m = model_of(g, TensorType::float32, TensorType::int8, TensorType::float32);
      tensor_of(m, 1).data = bytes_of(y), tensor_of(m, 1).scales = scales;
      tensor_of(m, 1).zero_points.assign(scales.size(), 0), tensor_of(m, 1).axis = axis;
      m.inputs({0});
      check_values(run_on_targets(m, {bytes_of(x)}), g.out(), want, 1e-4);
    }
  }
}

TEST_CASE("products that do not fit are refused", "[ops][batch_matmul]") {
  const auto refused = [](const MatMul& g, const char* words) {
    const auto bytes = [](const Shape& s) { return std::vector<uint8_t>(static_cast<size_t>(s.elements()) * 4); };
    check_refused(run_on_targets(model_of(g, TensorType::float32, TensorType::float32, TensorType::float32), {bytes(g.x), bytes(g.y)}),
                  ErrorCode::invalid_model, words);
  };
  refused({{2, 3}, {4, 5}}, "do not fit: sums of 3 and of 4 terms");
  refused({{2, 3}, {3, 5}, true}, "do not fit: sums of 2 and of 3 terms");
  refused({{2, 2, 3}, {3, 3, 5}}, "do not broadcast");
  refused({{3}, {3, 5}}, "has rank 1, not 2 to");
  ModelBuilder m = model_of({{2, 3}, {3, 5}}, TensorType::int8, TensorType::int8, TensorType::int8);
  check_refused(run_on_targets(m, {std::vector<uint8_t>(6), std::vector<uint8_t>(15)}), ErrorCode::invalid_model, "has 0 scales, not one");
}
