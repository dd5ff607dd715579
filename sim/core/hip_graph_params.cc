// What a node does: its parameters, asked for and changed, in templates and in executable graphs.

#include <algorithm>

#include "hip_runtime_state.h"

namespace netra::hip {
namespace {

template <typename Op>
constexpr const char* kKind = "";
template <> constexpr const char* kKind<KernelOp> = "kernel";
template <> constexpr const char* kKind<CopyOp> = "memcpy";
template <> constexpr const char* kKind<FillOp> = "memset";
template <> constexpr const char* kKind<HostOp> = "host";
template <> constexpr const char* kKind<ChildOp> = "child graph";
template <> constexpr const char* kKind<EventRecordOp> = "event record";
template <> constexpr const char* kKind<EventWaitOp> = "event wait";

template <typename Op>
hipError_t wrong_kind(const char* of) {
  return fail(hipErrorInvalidValue, std::string(of) + " has no such " + kKind<Op> + " node");
}

// The operation of a template's node, if it is an Op. Under the mutex.
template <typename Op>
Op* operation_of(hipGraphNode_t handle) {
  Node* node = find_node(handle);
  return node != nullptr ? std::get_if<Op>(&node->operation) : nullptr;
}

template <typename Op>
hipError_t set(hipGraphNode_t handle, Op op) {
  std::lock_guard lock(Runtime::get().mutex);
  Op* operation = operation_of<Op>(handle);
  if (operation == nullptr) return wrong_kind<Op>("the graph");
  *operation = std::move(op);
  return hipSuccess;
}

// The step of an executable graph that was made from a node; null if there is none. Under the mutex.
Exec::Step* step_of(Exec& exec, const Node* node) {
  for (Exec::Step& step : exec.steps) {
    if (step.origin == node && node != nullptr) return &step;
    Exec::Step* inner = step.child != nullptr ? step_of(*step.child, node) : nullptr;
    if (inner != nullptr) return inner;
  }
  return nullptr;
}

// The template keeps what it has.
template <typename Op>
hipError_t set_in(hipGraphExec_t handle, hipGraphNode_t node, Op op) {
  const auto exec = find_exec(handle);
  if (exec == nullptr) return no_such_exec();
  std::lock_guard lock(Runtime::get().mutex);
  Exec::Step* step = step_of(*exec, node);
  if (step == nullptr || !std::holds_alternative<Op>(step->operation)) {
    return wrong_kind<Op>("the executable graph");
  }
  step->operation = std::move(op);
  return hipSuccess;
}

// `change` of an operation made by `make(&op)`: the checks come before the node is looked for.
template <typename Op, typename Make, typename Change>
hipError_t changed(Make make, Change change) {
  Op op;
  const hipError_t code = make(&op);
  return code == hipSuccess ? change(std::move(op)) : code;
}

template <typename Op>
hipError_t of_event(hipEvent_t handle, Op* op) {
  op->event = find_event(handle);
  return op->event != nullptr ? hipSuccess : fail(hipErrorInvalidValue, "the event does not exist");
}

template <typename Op>
hipError_t event_of(hipGraphNode_t handle, hipEvent_t* event) {
  if (event == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
  std::lock_guard lock(Runtime::get().mutex);
  const Op* op = operation_of<Op>(handle);
  if (op == nullptr) return wrong_kind<Op>("the graph");
  *event = op->event.get();
  return hipSuccess;
}

// Kernels, copies and fills can be switched off in an executable graph.
hipError_t find_switch(hipGraphExec_t handle, hipGraphNode_t node, Exec::Step** step) {
  const auto exec = find_exec(handle);
  if (exec == nullptr) return no_such_exec();
  *step = step_of(*exec, node);
  if (*step == nullptr || (*step)->operation.index() > Operation(FillOp{}).index()) {
    return fail(hipErrorInvalidValue, "the executable graph has no such kernel, memcpy or memset");
  }
  return hipSuccess;
}

}  // namespace

hipError_t from_params(const hipKernelNodeParams* params, KernelOp* op) {
  if (params == nullptr) return fail(hipErrorInvalidValue, "the parameters are null");
  const uint32_t grid[3] = {params->gridDim.x, params->gridDim.y, params->gridDim.z};
  const uint32_t block[3] = {params->blockDim.x, params->blockDim.y, params->blockDim.z};
  return prepare_kernel(static_cast<hipFunction_t>(params->func), grid, block,
                        params->sharedMemBytes, params->kernelParams, params->extra, op);
}

hipError_t from_params(const hipMemsetParams* params, FillOp* op) {
  if (params == nullptr) return fail(hipErrorInvalidValue, "the parameters are null");
  if (params->elementSize != 1 && params->elementSize != 2 && params->elementSize != 4) {
    return fail(hipErrorInvalidValue, "elements have 1, 2 or 4 bytes");
  }
  if (params->height == 0 || params->width == 0) {
    return fail(hipErrorInvalidValue, "the fill is empty");
  }
  *op = {params->dst, params->value, params->elementSize, params->width, params->height,
         params->pitch};
  return check_fill(*op);
}

hipError_t from_params(const hipHostNodeParams* params, HostOp* op) {
  if (params == nullptr || params->fn == nullptr) {
    return fail(hipErrorInvalidValue, "the parameters or the function are null");
  }
  *op = {params->fn, params->userData};
  return hipSuccess;
}

hipError_t from_copy(void* dst, const void* src, size_t bytes, hipMemcpyKind kind, CopyOp* op) {
  if (bytes == 0) return fail(hipErrorInvalidValue, "the copy is empty");
  *op = {dst, src, bytes, kind};
  return check_copy(*op);
}

}  // namespace netra::hip

using namespace netra;
using namespace netra::hip;

extern "C" {

// The pointers in the result lead into the node: valid until it changes or dies.
hipError_t hipGraphKernelNodeGetParams(hipGraphNode_t handle, hipKernelNodeParams* params) {
  return api("hipGraphKernelNodeGetParams", [&] {
    if (params == nullptr) return hipErrorInvalidValue;
    std::lock_guard lock(Runtime::get().mutex);
    Node* node = find_node(handle);
    KernelOp* op = node != nullptr ? std::get_if<KernelOp>(&node->operation) : nullptr;
    if (op == nullptr) return fail(hipErrorInvalidValue, "the node is no kernel node");
    const auto module = op->function->module.lock();
    if (module == nullptr) {
      return fail(hipErrorInvalidDeviceFunction,
                  op->function->name + " belongs to a module that was unloaded");
    }
    *params = hipKernelNodeParams{};
    params->func = op->function.get();
    params->gridDim = {op->grid[0], op->grid[1], op->grid[2]};
    params->blockDim = {op->block[0], op->block[1], op->block[2]};
    params->sharedMemBytes = op->dynamic_lds;
    node->view_params.clear();
    node->view_size = 0;
    for (const KernelArg& arg : op->function->kernel->args) {
      if (arg.value_kind.compare(0, 7, "hidden_") == 0) continue;
      node->view_params.push_back(op->kernarg.data() + arg.offset);
      node->view_size = std::max<size_t>(node->view_size, arg.offset + arg.size);
    }
    auto tag = [](uintptr_t value) { return reinterpret_cast<void*>(value); };
    node->view_extra[0] = tag(HIP_LAUNCH_PARAM_BUFFER_POINTER);
    node->view_extra[1] = op->kernarg.data();
    node->view_extra[2] = tag(HIP_LAUNCH_PARAM_BUFFER_SIZE);
    node->view_extra[3] = &node->view_size;
    node->view_extra[4] = tag(HIP_LAUNCH_PARAM_END);
    if (op->by_extra) {
      params->extra = node->view_extra;
    } else {
      params->kernelParams = node->view_params.data();
    }
    return hipSuccess;
  });
}

hipError_t hipGraphKernelNodeSetParams(hipGraphNode_t node, const hipKernelNodeParams* params) {
  return api("hipGraphKernelNodeSetParams", [&] {
    return changed<KernelOp>([&](KernelOp* op) { return from_params(params, op); },
                             [&](KernelOp op) { return set(node, std::move(op)); });
  });
}

hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipKernelNodeParams* params) {
  return api("hipGraphExecKernelNodeSetParams", [&] {
    return changed<KernelOp>([&](KernelOp* op) { return from_params(params, op); },
                             [&](KernelOp op) { return set_in(exec, node, std::move(op)); });
  });
}

hipError_t hipGraphMemsetNodeGetParams(hipGraphNode_t node, hipMemsetParams* params) {
  return api("hipGraphMemsetNodeGetParams", [&] {
    if (params == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
    std::lock_guard lock(Runtime::get().mutex);
    const FillOp* op = operation_of<FillOp>(node);
    if (op == nullptr) return wrong_kind<FillOp>("the graph");
    *params = {op->dst, op->element, op->rows, op->pitch, op->value, op->count};
    return hipSuccess;
  });
}

hipError_t hipGraphMemsetNodeSetParams(hipGraphNode_t node, const hipMemsetParams* params) {
  return api("hipGraphMemsetNodeSetParams", [&] {
    return changed<FillOp>([&](FillOp* op) { return from_params(params, op); },
                           [&](FillOp op) { return set(node, op); });
  });
}

hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipMemsetParams* params) {
  return api("hipGraphExecMemsetNodeSetParams", [&] {
    return changed<FillOp>([&](FillOp* op) { return from_params(params, op); },
                           [&](FillOp op) { return set_in(exec, node, op); });
  });
}

hipError_t hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void* dst, const void* src,
                                         size_t bytes, hipMemcpyKind kind) {
  return api("hipGraphMemcpyNodeSetParams1D", [&] {
    return changed<CopyOp>([&](CopyOp* op) { return from_copy(dst, src, bytes, kind, op); },
                           [&](CopyOp op) { return set(node, op); });
  });
}

hipError_t hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t exec, hipGraphNode_t node, void* dst,
                                             const void* src, size_t bytes, hipMemcpyKind kind) {
  return api("hipGraphExecMemcpyNodeSetParams1D", [&] {
    return changed<CopyOp>([&](CopyOp* op) { return from_copy(dst, src, bytes, kind, op); },
                           [&](CopyOp op) { return set_in(exec, node, op); });
  });
}

hipError_t hipGraphHostNodeGetParams(hipGraphNode_t node, hipHostNodeParams* params) {
  return api("hipGraphHostNodeGetParams", [&] {
    if (params == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
    std::lock_guard lock(Runtime::get().mutex);
    const HostOp* op = operation_of<HostOp>(node);
    if (op == nullptr) return wrong_kind<HostOp>("the graph");
    *params = {op->function, op->data};
    return hipSuccess;
  });
}

hipError_t hipGraphHostNodeSetParams(hipGraphNode_t node, const hipHostNodeParams* params) {
  return api("hipGraphHostNodeSetParams", [&] {
    return changed<HostOp>([&](HostOp* op) { return from_params(params, op); },
                           [&](HostOp op) { return set(node, op); });
  });
}

hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                         const hipHostNodeParams* params) {
  return api("hipGraphExecHostNodeSetParams", [&] {
    return changed<HostOp>([&](HostOp* op) { return from_params(params, op); },
                           [&](HostOp op) { return set_in(exec, node, op); });
  });
}

// The node's own graph: it may be looked into and changed, and dies with the node.
hipError_t hipGraphChildGraphNodeGetGraph(hipGraphNode_t node, hipGraph_t* graph) {
  return api("hipGraphChildGraphNodeGetGraph", [&] {
    if (graph == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
    std::lock_guard lock(Runtime::get().mutex);
    const ChildOp* op = operation_of<ChildOp>(node);
    if (op == nullptr) return wrong_kind<ChildOp>("the graph");
    *graph = op->graph.get();
    return hipSuccess;
  });
}

// The new child must have the shape of the old one, as for hipGraphExecUpdate.
hipError_t hipGraphExecChildGraphNodeSetParams(hipGraphExec_t handle, hipGraphNode_t node,
                                               hipGraph_t child) {
  return api("hipGraphExecChildGraphNodeSetParams", [&] {
    const auto exec = find_exec(handle);
    if (exec == nullptr) return no_such_exec();
    std::lock_guard lock(Runtime::get().mutex);
    const Graph* graph = find_graph(child);
    if (graph == nullptr) return no_such_graph();
    Exec::Step* step = step_of(*exec, node);
    if (step == nullptr || step->child == nullptr) {
      return wrong_kind<ChildOp>("the executable graph");
    }
    auto fresh = std::make_shared<Exec>(*step->child);
    const GraphChange change = update(*graph, *fresh);
    if (change.result != hipGraphExecUpdateSuccess) {
      return fail(hipErrorInvalidValue, "the child graph: " + change.text);
    }
    step->child = std::move(fresh);
    return hipSuccess;
  });
}

#define EVENT_NODE(KIND, OP)                                                                     \
  hipError_t hipGraph##KIND##NodeGetEvent(hipGraphNode_t node, hipEvent_t* event) {              \
    return api("hipGraph" #KIND "NodeGetEvent", [&] { return event_of<OP>(node, event); });      \
  }                                                                                              \
  hipError_t hipGraph##KIND##NodeSetEvent(hipGraphNode_t node, hipEvent_t event) {               \
    return api("hipGraph" #KIND "NodeSetEvent", [&] {                                            \
      return changed<OP>([&](OP* op) { return of_event(event, op); },                            \
                         [&](OP op) { return set(node, std::move(op)); });                       \
    });                                                                                          \
  }                                                                                              \
  hipError_t hipGraphExec##KIND##NodeSetEvent(hipGraphExec_t exec, hipGraphNode_t node,          \
                                              hipEvent_t event) {                                \
    return api("hipGraphExec" #KIND "NodeSetEvent", [&] {                                        \
      return changed<OP>([&](OP* op) { return of_event(event, op); },                            \
                         [&](OP op) { return set_in(exec, node, std::move(op)); });              \
    });                                                                                          \
  }
EVENT_NODE(EventRecord, EventRecordOp)
EVENT_NODE(EventWait, EventWaitOp)
#undef EVENT_NODE

hipError_t hipGraphNodeSetEnabled(hipGraphExec_t exec, hipGraphNode_t node, unsigned enabled) {
  return api("hipGraphNodeSetEnabled", [&] {
    std::lock_guard lock(Runtime::get().mutex);
    Exec::Step* step = nullptr;
    const hipError_t code = find_switch(exec, node, &step);
    if (code == hipSuccess) step->enabled = enabled != 0;
    return code;
  });
}

hipError_t hipGraphNodeGetEnabled(hipGraphExec_t exec, hipGraphNode_t node, unsigned* enabled) {
  return api("hipGraphNodeGetEnabled", [&] {
    if (enabled == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
    std::lock_guard lock(Runtime::get().mutex);
    Exec::Step* step = nullptr;
    const hipError_t code = find_switch(exec, node, &step);
    if (code == hipSuccess) *enabled = step->enabled ? 1 : 0;
    return code;
  });
}

}  // extern "C"
