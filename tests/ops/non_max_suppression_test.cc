// NON_MAX_SUPPRESSION_V4 and _V5.
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct Nms {
  std::vector<float> boxes = {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 1, 0.9f, 0, -0.1f, 0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 0, 100, 1, 101};
  std::vector<float> scores = {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f};
  int32_t most = 3;
  float overlap = 0.5f, score = 0, sigma = -1;  // sigma < 0: V4
  bool constant = true;
  std::vector<int32_t> declared = {};
};
std::vector<RunResult> run(const Nms& n) {
  ModelBuilder m;
  const bool soft = n.sigma >= 0;
  const int boxes = m.tensor(TensorType::float32, {static_cast<int32_t>(n.boxes.size() / 4), 4}, "boxes"),
            scores = m.tensor(TensorType::float32, {static_cast<int32_t>(n.scores.size())}, "scores");
  auto most = m.tensor(TensorType::int32, {}, "most");
  if (n.constant) most.values<int32_t>({n.most});
  std::vector<int32_t> inputs{boxes, scores, most};
  for (const float value : {n.overlap, n.score, n.sigma})
    if (inputs.size() < (soft ? 6u : 5u)) inputs.push_back(m.tensor(TensorType::float32, {}).values<float>({value}));
  std::vector<int32_t> outputs{m.tensor(TensorType::int32, n.declared, "chosen")};
  if (soft) outputs.push_back(m.tensor(TensorType::float32, {}, "their scores"));
  outputs.push_back(m.tensor(TensorType::int32, {}, "count"));
  m.op(soft ? BuiltinOperator::non_max_suppression_v5 : BuiltinOperator::non_max_suppression_v4, inputs, outputs);
  m.outputs(outputs);
  std::vector<std::vector<uint8_t>> values{bytes_of(n.boxes), bytes_of(n.scores)};
  if (n.constant) {
    m.inputs({boxes, scores});
  } else {
    m.inputs({boxes, scores, inputs[2]});
    values.push_back(bytes_of<int32_t>({n.most}));
  }
  return run_on_targets(m, values);
}

}  // namespace

TEST_CASE("the best boxes apart, zeros behind them", "[ops][non_max_suppression]") {
  const auto four = run({.most = 6});
  check_values<int32_t>(four, {6}, {3, 0, 5, 0, 0, 0}, 0, 0);
  check_values<int32_t>(four, {}, {3}, 0, 1);
  const auto few = run({.most = 1});
  check_values<int32_t>(few, {1}, {3}, 0, 0);
  check_values<int32_t>(run({.most = 0}), {}, {0}, 0, 1);
  check_values<int32_t>(run({.most = 6, .overlap = 1}), {6}, {3, 0, 1, 2, 4, 5}, 0, 0);
  check_values<int32_t>(run({.most = 6, .overlap = 0}), {6}, {3, 0, 0, 0, 0, 0}, 0, 0);  // even boxes apart reach an overlap of 0
  const auto best = run({.most = 4, .score = 0.6f});                                     // above it
  check_values<int32_t>(best, {4}, {3, 0, 0, 0}, 0, 0);
  check_values<int32_t>(best, {}, {2}, 0, 1);
  check_values<int32_t>(run({.scores = {0.5f, std::nanf(""), 0.5f, 0.5f, 0.5f, 0.5f}, .most = 6}), {6}, {0, 3, 5, 0, 0, 0}, 0, 0);
}

TEST_CASE("scores that decay", "[ops][non_max_suppression]") {
  const auto hard = run({.overlap = 0.5f, .score = 0.4f, .sigma = 0});
  check_values<int32_t>(hard, {3}, {3, 0, 0}, 0, 0);
  check_values<float>(hard, {3}, {0.95f, 0.9f, 0}, 0, 1);
  check_values<int32_t>(hard, {}, {2}, 0, 2);
  // Two unit boxes a tenth apart overlap by 0.9 / 1.1; the third decays by the first alone before it is chosen.
  const auto soft = run({.most = 6, .overlap = 1, .score = 0, .sigma = 0.5f});
  const double near = 0.9 / 1.1, far = 0.8 / 1.2;
  check_values<int32_t>(soft, {6}, {3, 0, 1, 5, 4, 2}, 0, 0);
  check_values<float>(
      soft, {6},
      {0.95f, 0.9f, static_cast<float>(0.75 * std::exp(-near * near)), 0.3f, static_cast<float>(0.5 * std::exp(-near * near)),
       static_cast<float>(0.6 * std::exp(-near * near) * std::exp(-far * far))},
      1e-5, 1);
  check_values<int32_t>(soft, {}, {6}, 0, 2);
}

TEST_CASE("wrong boxes and limits", "[ops][non_max_suppression]") {
  check_values<int32_t>(run({.most = 2, .constant = false, .declared = {2}}), {2}, {3, 0}, 0, 0);
  check_refused(run({.most = 3, .constant = false, .declared = {2}}), ErrorCode::invalid_data,
                "is asked for 3 boxes, its output has room for 2");
  check_refused(run({.constant = false}), ErrorCode::unsupported, "needs the value of tensor 'most'");
  check_refused(run({.most = -1}), ErrorCode::invalid_model, "is asked for -1 boxes");
  check_refused(run({.overlap = std::nanf("")}), ErrorCode::invalid_data, "the overlap from which boxes are dropped is not a number");
  check_refused(run({.scores = {1, 2}}), ErrorCode::invalid_model, "are not boxes of four numbers with their scores");
}

TEST_CASE("boxes whose areas are infinite end the search", "[ops][non_max_suppression]") {
  const float far = 1e20f;
  const auto found = run({.boxes = {-far, -far, far, far, -far, -far, far, far}, .scores = {0.9f, 0.8f}, .most = 2, .sigma = 0.5f});
  check_values<int32_t>(found, {}, {1}, 0, 2);
}
