// Opens a model, runs it once on zeros and prints the largest value of its first output.
//   minimal MODEL.tflite      (a model with float inputs and outputs)
#include <oneweight/oneweight.h>

#include <algorithm>
#include <cstdio>

static int report(const oneweight::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

int main(int count, char** values) {
  if (count != 2) return std::fprintf(stderr, "usage: minimal MODEL.tflite\n"), 2;
  auto model = oneweight::ModelView::open(values[1]);               // mapped and verified once, shared
  if (!model.ok()) return report(model.status());
  auto plan = oneweight::make_plan<oneweight::opset::All>(*model);  // immutable, shared by all contexts
  if (!plan.ok()) return report(plan.status());
  auto context = oneweight::ExecutionContext::create(*plan);        // scratch, one for each thread
  if (!context.ok()) return report(context.status());

  auto input = context->input<float>(0);
  if (!input.ok()) return report(input.status());
  std::fill(input->begin(), input->end(), 0.0f);
  if (oneweight::Status status = context->run(); !status.ok()) return report(status);
  auto output = context->output<float>(0);
  if (!output.ok()) return report(output.status());
  if (output->empty()) return std::printf("the output is empty\n"), 0;
  const auto largest = std::max_element(output->begin(), output->end());
  std::printf("output %td is the largest of %zu: %g (%lld bytes of scratch)\n", largest - output->begin(), output->size(),
              static_cast<double>(*largest), static_cast<long long>((*plan)->context_bytes()));
  return 0;
}
