#include "examples/oneweight/timeline.h"

#include <algorithm>
#include <set>

#include "tests/support/test_data.h"
#include "tests/support/toy_operators.h"

using namespace oneweight;
using namespace oneweight::testing;
using namespace program;

namespace {

// Two steps with scratch, an in-place step, a view, a variable:
// x -> exp -> a -> neg -> b -> reshape -> c; c + state -> d; d -> exp -> y.
std::shared_ptr<const Plan> small_plan() {
  ModelBuilder m;
  const auto tensor = [&](const char* name) { return m.tensor(TensorType::float32, {1, 100}, name); };
  const int x = tensor("x"), a = tensor("a"), b = tensor("b"), c = tensor("c"), d = tensor("d"), y = tensor("y");
  const int state = m.tensor(TensorType::float32, {1, 100}, "state").variable();
  m.op(BuiltinOperator::exp, {x}, {a});
  m.op(BuiltinOperator::neg, {a}, {b});
  m.op(BuiltinOperator::reshape, {b}, {c});
  m.op(BuiltinOperator::add, {c, state}, {d});
  m.op(BuiltinOperator::exp, {d}, {y});
  m.inputs({x}).outputs({y});
  auto plan = plan_toy(m.build());
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  return *plan;
}

std::vector<std::shared_ptr<const Plan>> plans() {
  std::vector<std::shared_ptr<const Plan>> all = {small_plan()};
  for (const std::string& path : test_models()) {
    all.push_back(plan_of(path));
    PlanOptions options;
    options.workers = 4;
    options.band_work = 1;
    all.push_back(plan_of(path, options));
    options.tile_rows = 1;
    all.push_back(plan_of(path, options));
  }
  return all;
}

}  // namespace

TEST_CASE("the timeline of a small graph", "[program][timeline]") {
  const auto plan = small_plan();
  const Timeline timeline = make_timeline(*plan);
  std::vector<std::string> items;
  for (const TimelineItem& item : timeline.items) {
    std::string text = name_of(item.kind);
    for (int32_t t : timeline.tensors_of(item)) text += " " + std::string(plan->tensors()[static_cast<size_t>(t)].name);
    items.push_back(text + format_text(": %d bytes, steps %d to %d", static_cast<int>(item.bytes), item.first, item.last));
  }
  // Seven addresses and one of an output are 64 bytes; 400 bytes are rounded up to 448, 1000 to 1024.
  CHECK(items == std::vector<std::string>{"addresses: 64 bytes, steps 0 to 3", "state state: 448 bytes, steps 0 to 3",
                                          "input x: 448 bytes, steps 0 to 3", "intermediate a b c d: 448 bytes, steps 0 to 3",
                                          "output y: 448 bytes, steps 3 to 3", "scratch: 1024 bytes, steps 0 to 0",
                                          "scratch: 1024 bytes, steps 3 to 3"});
  REQUIRE(timeline.steps.size() == 4);
  CHECK(timeline.steps[0].alive_bytes == 64 + 3 * 448 + 1024);
  CHECK(timeline.steps[1].alive_bytes == 64 + 3 * 448);
  CHECK(timeline.steps[3].alive_bytes == 64 + 4 * 448 + 1024);
  CHECK(timeline.steps[3].scratch_bytes == 1024);
  CHECK(timeline.steps[3].output_bytes == 400);
  CHECK(timeline.peak_step == 3);
  CHECK(timeline.block_bytes == 64 + 4 * 448 + 1024);
  CHECK(timeline.producers == std::vector<int32_t>{-1, 0, 1, -1, 2, 3, -1});
}

namespace {

int first_of_chain(const Plan& plan, int step) {
  for (const Chain& chain : plan.chains())
    if (chain.first <= step && step < chain.first + chain.count) return chain.first;
  return step;
}

// `inner` is gone before anything of `host` is written where it lies.
bool is_gone_before(const Plan& plan, const Timeline& timeline, const TimelineItem& inner, const TimelineItem& host) {
  const auto meets = [&](int32_t t) {
    const auto of_host = timeline.tensors_of(host);
    const PlanTensor& tensor = plan.tensors()[static_cast<size_t>(t)];
    return std::find(of_host.begin(), of_host.end(), t) != of_host.end() && tensor.offset < inner.offset + inner.bytes && inner.offset < tensor.offset + tensor.bytes;
  };
  if (timeline.tensors_of(host).empty()) return false;
  for (int32_t t : plan.inputs())
    if (meets(t)) return false;
  for (int s = 0; s < static_cast<int>(plan.steps().size()); ++s) {
    const Step& step = plan.steps()[static_cast<size_t>(s)];
    for (int k = 0; k < step.output_count; ++k)
      if (step.outputs[k] >= 0 && meets(step.outputs[k]) && first_of_chain(plan, s) <= inner.last) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("items that are alive at one step overlap only where what is read is gone before it is written over, and fill the block", "[program][timeline]") {
  for (const auto& plan : plans()) {
    const Timeline timeline = make_timeline(*plan);
    CHECK(timeline.block_bytes == plan->context_bytes());
    int64_t end = 0;
    for (const TimelineItem& a : timeline.items) {
      CHECK(a.bytes > 0);
      CHECK(a.offset % kAlignment == 0);
      CHECK((a.first >= 0 && a.first <= a.last && a.last < static_cast<int>(timeline.steps.size())));
      end = std::max(end, a.offset + a.bytes);
      for (const TimelineItem& b : timeline.items) {
        if (&a == &b || a.first > b.last || b.first > a.last) continue;
        if (a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) continue;
        bool meet_in_chain = false;  // it reads one of them for the last time
        for (const Chain& chain : plan->chains()) meet_in_chain |= std::min(a.last, b.last) == chain.first + chain.count - 1;
        CHECK((meet_in_chain || is_gone_before(*plan, timeline, a, b) || is_gone_before(*plan, timeline, b, a)));
      }
    }
    CHECK(end == plan->context_bytes());
  }
}

TEST_CASE("what is alive at a step is what the plan says", "[program][timeline]") {
  for (const auto& plan : plans()) {
    const Timeline timeline = make_timeline(*plan);
    REQUIRE(timeline.steps.size() == plan->steps().size());
    int64_t most = -1;
    int peak = -1;
    for (int s = 0; s < static_cast<int>(plan->steps().size()); ++s) {
      // Parts of the block that are in use, each once.
      std::vector<bool> used(static_cast<size_t>((plan->context_bytes() + kAlignment - 1) / kAlignment), false);
      const auto use = [&](int64_t offset, int64_t bytes) {
        for (int64_t i = offset / kAlignment; i * kAlignment < offset + bytes; ++i) used[static_cast<size_t>(i)] = true;
      };
      const Step& step = plan->steps()[static_cast<size_t>(s)];
      use(0, plan->resource_offset() + plan->resource_bytes());
      use(step.scratch_offset, plan->scratch_bytes(step));
      int first = s, last = s;       // of the chain
      for (const Chain& chain : plan->chains())
        if (chain.first <= s && s < chain.first + chain.count) first = chain.first, last = chain.first + chain.count - 1;
      for (const PlanTensor& t : plan->tensors()) {
        if (t.placement == Placement::state) use(t.offset, t.bytes);
        if (t.placement != Placement::arena) continue;
        int begin = 1 << 30, end = -1;
        for (const PlanTensor& other : plan->tensors())
          if (other.placement == Placement::arena && other.buffer == t.buffer)
            begin = std::min(begin, other.first_step), end = std::max(end, other.last_step);
        const int64_t rows = t.window_rows > 0 ? t.shape[0] * t.shape[1] : 1;
        if (begin <= last && end >= first) use(t.offset, std::max<int64_t>(t.bytes / rows * std::max<int64_t>(t.window_rows, 1), 1));
      }
      const int64_t alive = kAlignment * std::count(used.begin(), used.end(), true);
      CHECK(timeline.steps[static_cast<size_t>(s)].alive_bytes == alive);
      if (alive > most) most = alive, peak = s;
    }
    CHECK(timeline.peak_step == plan->peak_step());
    CHECK(timeline.peak_step == peak);
  }
}

TEST_CASE("every tensor of the block is in one item, at its place and while it is used", "[program][timeline]") {
  for (const auto& plan : plans()) {
    const Timeline timeline = make_timeline(*plan);
    const int last = static_cast<int>(plan->steps().size()) - 1;
    std::set<int32_t> seen;
    for (const TimelineItem& item : timeline.items)
      for (int32_t t : timeline.tensors_of(item)) {
        const PlanTensor& tensor = plan->tensors()[static_cast<size_t>(t)];
        CHECK(seen.insert(t).second);
        CHECK(item.offset <= tensor.offset);
        CHECK(tensor.offset < item.offset + item.bytes);
        if (tensor.placement != Placement::arena) continue;
        CHECK(item.first <= std::max(tensor.first_step, 0));
        CHECK(item.last >= std::min(tensor.last_step, last));
      }
    for (size_t t = 0; t < plan->tensors().size(); ++t) {
      const PlanTensor& tensor = plan->tensors()[t];
      const bool in_block = tensor.placement == Placement::arena || (tensor.placement == Placement::state && tensor.bytes > 0);
      CHECK(seen.contains(static_cast<int32_t>(t)) == in_block);
    }
  }
}

TEST_CASE("a graph without operators has a timeline without steps", "[program][timeline]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {1, 100}, "x");
  m.inputs({x}).outputs({x});
  auto plan = plan_toy(m.build());
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  const Timeline timeline = make_timeline(**plan);
  CHECK(timeline.steps.empty());
  CHECK(timeline.items.size() == 2);
}
