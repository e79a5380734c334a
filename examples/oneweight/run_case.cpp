#include <algorithm>
#include <limits>
#include <optional>
#include <thread>

#include "case.h"
#include "common.h"
#include "compare.h"
#include "oneweight/context/eigen_executor.h"

namespace program {

using oneweight::ErrorCode;
using oneweight::ExecutionContext;
using oneweight::Expected;
using oneweight::format_text;
using oneweight::make_error;
using oneweight::Status;

namespace {

// An answer that came, but is not right. Distinct from a refusal, which some cases want.
struct Wrong {
  std::string text;
};

struct Arrays {
  std::vector<Array> inputs, outputs;
};

Array element_of_stack(const Array& stack, int k, int runs) {
  Array one = stack;
  const size_t bytes = stack.data.size() / static_cast<size_t>(runs);
  one.shape.erase(one.shape.begin());
  one.data.assign(stack.data.begin() + static_cast<std::ptrdiff_t>(bytes) * k, stack.data.begin() + static_cast<std::ptrdiff_t>(bytes) * (k + 1));
  return one;
}

// One case at work. Numbers of inputs and outputs are the case's; the plan's may be ordered otherwise.
class CaseRun {
 public:
  CaseRun(const Case& test, const CaseOptions& options) : case_(test), threads_(options.threads), tile_rows_(options.tile_rows) {}

  // The Status is that of the first refusal; `wrong` what is not right though nothing was refused.
  Status run(Wrong* wrong) {
    Arrays arrays;
    ONEWEIGHT_RETURN_IF_ERROR(read(case_.folder, &arrays));
    reset_peak_rss();
    const int64_t peak_before = peak_rss();
    ONEWEIGHT_RETURN_IF_ERROR(open());
    std::vector<ExecutionContext> contexts;
    int64_t resident = 0;
    for (int i = 0; i < case_.contexts; ++i) {
      auto context = ExecutionContext::create(plan_);
      if (!context.ok()) return context.status();
      contexts.push_back(std::move(*context));
      ONEWEIGHT_RETURN_IF_ERROR(run_and_compare(contexts.back(), arrays, wrong));
      if (!wrong->text.empty()) return {};
      if (i < 2) resident = process_memory().rss;
    }
    if (case_.parallel) ONEWEIGHT_RETURN_IF_ERROR(run_at_once(contexts, arrays, wrong));
    if (!wrong->text.empty()) return {};
    check_memory(resident, peak_before, wrong);
    if (case_.slowdown && wrong->text.empty()) ONEWEIGHT_RETURN_IF_ERROR(check_time(contexts[0], arrays, wrong));
    for (const std::string& extra : case_.extra_cases) {
      if (!wrong->text.empty()) return {};
      ONEWEIGHT_RETURN_IF_ERROR(run_extra(extra, contexts[0], wrong));
    }
    return {};
  }

 private:
  Status read(const std::filesystem::path& folder, Arrays* arrays) {
    auto inputs = read_arrays(folder, "in", case_.input_names.size());
    if (!inputs.ok()) return unreadable(inputs.status());
    arrays->inputs = std::move(*inputs);
    if (case_.refused) return {};
    auto outputs = read_arrays(folder, "out", case_.output_names.size());
    if (!outputs.ok()) return unreadable(outputs.status());
    arrays->outputs = std::move(*outputs);
    return {};
  }
  // A case that cannot be read must not pass as a refusal.
  static Status unreadable(const Status& status) { return Status(ErrorCode::io_error, "case: " + status.message()); }

  Status open() {
    auto model = oneweight::ModelView::open((case_.folder / "model.tflite").c_str());
    if (!model.ok()) return model.status();
    oneweight::PlanOptions options;
    options.signature = case_.signature;
    options.workers = threads_;
    if (threads_ > 1) options.band_work = 1;
    options.tile_rows = tile_rows_;
    std::vector<std::string> names = input_names(**model, case_.signature);
    const bool named = !case_.signature.empty();
    ONEWEIGHT_RETURN_IF_ERROR(order(names, case_.input_names, named, &inputs_));
    for (const auto& [input, extents] : case_.resize) {
      oneweight::Shape shape;
      for (int64_t e : extents) shape.push_back(e);
      const bool known = input >= 0 && static_cast<size_t>(input) < inputs_.size();
      options.input_shapes.emplace_back(known ? inputs_[static_cast<size_t>(input)] : input, shape);
    }
    const oneweight::SubgraphDef& main = (*model)->subgraphs()[0];
    for (size_t i = 0; i < case_.input_shapes.size() && i < main.inputs.size(); ++i) {
      const oneweight::TensorDef& tensor = main.tensors[static_cast<size_t>(main.inputs[i])];
      oneweight::Shape shape;
      bool unknown = false;
      for (int64_t e : case_.input_shapes[i]) shape.push_back(e);
      for (int64_t e : tensor.shape_signature) unknown |= e < 0;
      if (unknown && shape.rank() == tensor.shape.rank()) options.input_shapes.emplace_back(static_cast<int>(i), shape);
    }
    auto plan = oneweight::make_plan<oneweight::opset::All>(*model, options);
    if (!plan.ok()) return plan.status();
    plan_ = *plan;
    const auto outputs = plan_->output_names();
    return order({outputs.begin(), outputs.end()}, case_.output_names, named, &outputs_);
  }

  // The plan's number of each of the case's inputs or outputs.
  Status order(const std::vector<std::string>& names, const std::vector<std::string>& wanted, bool named, std::vector<int>* numbers) {
    numbers->clear();
    for (size_t i = 0; i < names.size(); ++i) numbers->push_back(static_cast<int>(i));
    if (named && case_.signature_by_name) {
      numbers->clear();
      for (const std::string& name : wanted) {
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end()) return make_error(ErrorCode::not_found, "the signature has no '%s'", name.c_str());
        numbers->push_back(static_cast<int>(found - names.begin()));
      }
    } else if (named) {
      std::sort(numbers->begin(), numbers->end(), [&](int a, int b) { return names[static_cast<size_t>(a)] < names[static_cast<size_t>(b)]; });
    }
    if (numbers->size() != wanted.size())
      return make_error(ErrorCode::invalid_argument, "the model has %zu of what the case has %zu: inputs or outputs", numbers->size(), wanted.size());
    return {};
  }

  Status set_inputs(ExecutionContext& context, const std::vector<Array>& inputs) const {
    for (size_t i = 0; i < inputs.size(); ++i) ONEWEIGHT_RETURN_IF_ERROR(set_input(context, inputs_[i], inputs[i]));
    return {};
  }

  Status compare_outputs(const ExecutionContext& context, const std::vector<Array>& want, const char* where, Wrong* wrong) const {
    if (case_.refused) return {};
    std::vector<Array> got;
    for (int number : outputs_) {
      auto array = get_output(context, number);
      if (!array.ok()) return array.status();
      got.push_back(std::move(*array));
    }
    if (case_.detections && got.size() == 4) {
      wrong->text = compare_detections(got, want, case_.tolerances);
      if (!wrong->text.empty()) wrong->text = where + wrong->text;
      return {};
    }
    for (size_t i = 0; i < got.size(); ++i) {
      const std::string text = compare(got[i], want[i], case_.tolerances[i], case_.shape_only);
      if (text.empty()) continue;
      wrong->text = format_text("%soutput %zu '%s' %s", where, i, case_.output_names[i].c_str(), text.c_str());
      return {};
    }
    return {};
  }

  Status run_and_compare(ExecutionContext& context, const Arrays& arrays, Wrong* wrong) const {
    std::optional<oneweight::EigenExecutor> pool;
    oneweight::RunOptions options;
    if (threads_ > 1) options.executor = &pool.emplace(threads_);
    for (int k = 0; k < case_.runs && wrong->text.empty(); ++k) {
      if (case_.stacked) {
        Arrays one;
        for (const Array& a : arrays.inputs) ONEWEIGHT_RETURN_IF_ERROR(unstack(a, k, &one.inputs));
        for (const Array& a : arrays.outputs) ONEWEIGHT_RETURN_IF_ERROR(unstack(a, k, &one.outputs));
        ONEWEIGHT_RETURN_IF_ERROR(set_inputs(context, one.inputs));
        ONEWEIGHT_RETURN_IF_ERROR(context.run(options));
        ONEWEIGHT_RETURN_IF_ERROR(compare_outputs(context, one.outputs, format_text("run %d: ", k).c_str(), wrong));
        continue;
      }
      if (k == 0 || !case_.set_inputs_once) ONEWEIGHT_RETURN_IF_ERROR(set_inputs(context, arrays.inputs));
      ONEWEIGHT_RETURN_IF_ERROR(context.run(options));
      if (k + 1 == case_.runs) ONEWEIGHT_RETURN_IF_ERROR(compare_outputs(context, arrays.outputs, "", wrong));
    }
    return {};
  }
  Status unstack(const Array& stack, int k, std::vector<Array>* to) const {
    if (stack.shape.empty() || stack.shape[0] != case_.runs)
      return make_error(ErrorCode::io_error, "case: an array of shape %s for %d runs", stack.shape_text().c_str(), case_.runs);
    to->push_back(element_of_stack(stack, k, case_.runs));
    return {};
  }

  // All contexts together, a thread each, from fresh state.
  Status run_at_once(std::vector<ExecutionContext>& contexts, const Arrays& arrays, Wrong* wrong) const {
    std::vector<Status> statuses(contexts.size());
    std::vector<Wrong> wrongs(contexts.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < contexts.size(); ++i)
      threads.emplace_back([&, i] {
        contexts[i].reset();
        statuses[i] = run_and_compare(contexts[i], arrays, &wrongs[i]);
      });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < contexts.size(); ++i) {
      if (!statuses[i].ok()) return statuses[i];
      if (!wrongs[i].text.empty()) wrong->text = format_text("in parallel, context %zu: %s", i, wrongs[i].text.c_str());
    }
    return {};
  }

  // `resident`: after the second context (or the only one) has run.
  void check_memory(int64_t resident, int64_t peak_before, Wrong* wrong) const {
    if (case_.peak_bytes && static_cast<double>(peak_rss() - peak_before) > *case_.peak_bytes)
      wrong->text = format_text("the peak grew by %lld bytes, %.0f are allowed", static_cast<long long>(peak_rss() - peak_before), *case_.peak_bytes);
    if (!case_.extra_bytes_per_context || case_.contexts < 3) return;
    const auto each = static_cast<double>(process_memory().rss - resident) / (case_.contexts - 2);
    if (each > *case_.extra_bytes_per_context)
      wrong->text = format_text("each further context cost %.0f bytes, %.0f are allowed", each, *case_.extra_bytes_per_context);
  }

  Status check_time(ExecutionContext& context, const Arrays& arrays, Wrong* wrong) const {
    auto plain = read_arrays(case_.folder, "plain", case_.input_names.size());
    if (!plain.ok()) return unreadable(plain.status());
    double best[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    for (int round = 0; round < 25; ++round)
      for (int which = 0; which < 2; ++which) {
        context.reset();
        ONEWEIGHT_RETURN_IF_ERROR(set_inputs(context, which ? *plain : arrays.inputs));
        const Clock::time_point start = Clock::now();
        ONEWEIGHT_RETURN_IF_ERROR(context.run());
        best[which] = std::min(best[which], milliseconds(Clock::now() - start));
      }
    if (best[0] > *case_.slowdown * best[1])
      wrong->text = format_text("a run took %.3f ms, on ordinary input %.3f ms: %.1f times, %.1f are allowed", best[0], best[1],
                                best[0] / best[1], *case_.slowdown);
    return {};
  }

  // Folders beginning with "next" are further calls of the same context, others start afresh.
  Status run_extra(const std::string& name, ExecutionContext& context, Wrong* wrong) const {
    Arrays arrays;
    ONEWEIGHT_RETURN_IF_ERROR(const_cast<CaseRun*>(this)->read(case_.folder / name, &arrays));
    Wrong found;
    if (name.rfind("next", 0) == 0) {
      ONEWEIGHT_RETURN_IF_ERROR(run_and_compare(context, arrays, &found));
    } else {
      auto fresh = ExecutionContext::create(plan_);
      if (!fresh.ok()) return fresh.status();
      ONEWEIGHT_RETURN_IF_ERROR(run_and_compare(*fresh, arrays, &found));
    }
    if (!found.text.empty()) wrong->text = name + ": " + found.text;
    return {};
  }

  const Case& case_;
  int threads_, tile_rows_;
  std::shared_ptr<const oneweight::Plan> plan_;
  std::vector<int> inputs_, outputs_;
};

}  // namespace

std::string run_case(const Case& test, const CaseOptions& options) {
  Wrong wrong;
  const Status status = CaseRun(test, options).run(&wrong);
  const bool broken_case = status.code() == ErrorCode::io_error && status.message().rfind("case: ", 0) == 0;
  if (!status.ok()) return (test.refused || test.refusal_accepted) && !broken_case ? "" : status.message();
  if (test.refused) return "must be refused, but it ran";
  return wrong.text;
}

}  // namespace program
