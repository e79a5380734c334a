// One row of an operator set: what a plan needs to know to let an operator prepare a node.
#ifndef ONEWEIGHT_PLAN_OP_ROW_H
#define ONEWEIGHT_PLAN_OP_ROW_H

#include "oneweight/plan/preparation.h"

namespace oneweight {
inline namespace v1 {

struct OpRow {
  BuiltinOperator code;
  const char* custom_code = nullptr;           // CUSTOM only
  const char* types = "";                      // for people: "half weights, float"
  bool (*accepts)(const NodeTypes& types) = nullptr;
  Status (*prepare)(Preparation& preparation) = nullptr;
  // Bit i: where input i is the widened (DEQUANTIZEd) value of a constant, this row reads the stored constant:
  // accepts() and prepare() then see its type.
  uint32_t stored_inputs = 0;
  // Output 0 is the widened value of input 0 (same elements, float): where input 0 is constant, consumers with
  // stored_inputs read it instead, and the step runs only if another consumer needs it.
  bool widens = false;
  // prepare() can look through inputs whose shapes are known while running only (Preparation::absorb_unsized).
  bool takes_unsized = false;
  // prepare() looks at Operand::sparsity: other rows never see constants that are stored sparsely.
  bool takes_sparse = false;
  int32_t min_version = 1;
  int32_t max_version = 1 << 30;               // newer versions change types; accepts() judges those
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_OP_ROW_H
