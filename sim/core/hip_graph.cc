// Graphs as templates, and executable graphs. Nodes come from captures or from hip_graph_nodes.cc.

#include <algorithm>
#include <set>

#include "hip_runtime_state.h"

namespace netra::hip {
namespace {

constexpr unsigned long long kDeviceLaunch = 4, kKnownFlags = 1 | 2 | 4 | 8;

hipError_t no_such_graph() { return fail(hipErrorInvalidValue, "the graph does not exist"); }
hipError_t no_such_node() { return fail(hipErrorInvalidValue, "the graph node does not exist"); }

std::shared_ptr<Exec> find_exec(hipGraphExec_t handle) {
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  const auto it = rt.execs.find(handle);
  return it == rt.execs.end() ? nullptr : it->second;
}

hipError_t no_such_exec() {
  return fail(hipErrorInvalidValue, "the executable graph does not exist");
}

// Each node after those that it depends on, else in the order of their making. hipGraphAdd* and
// hipGraphAddDependencies allow no cycle.
std::vector<const Node*> in_order(const Graph& graph) {
  std::vector<const Node*> order;
  std::set<const Node*> done;
  while (order.size() < graph.nodes.size()) {
    for (const auto& node : graph.nodes) {
      const auto ready = [&](const Node* other) { return done.count(other) != 0; };
      if (done.count(node.get()) != 0) continue;
      if (!std::all_of(node->after.begin(), node->after.end(), ready)) continue;
      done.insert(node.get());
      order.push_back(node.get());
    }
  }
  return order;
}

hipError_t instantiate(hipGraphExec_t* out, hipGraph_t handle, unsigned long long flags) {
  if (out == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
  if ((flags & ~kKnownFlags) != 0) return fail(hipErrorInvalidValue, "unknown flags");
  if ((flags & kDeviceLaunch) != 0) {
    return fail(hipErrorNotSupported, "the simulator launches no graphs from the device");
  }
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  const auto it = rt.graphs.find(handle);
  if (it == rt.graphs.end()) return no_such_graph();
  auto exec = std::make_shared<Exec>();
  for (const Node* node : in_order(*it->second)) exec->steps.push_back({node, node->operation});
  *out = exec.get();
  rt.execs[exec.get()] = std::move(exec);
  return hipSuccess;
}

}  // namespace

// A kernel operation from the parameters of a node.
hipError_t from_params(const hipKernelNodeParams* params, KernelOp* op) {
  if (params == nullptr) return fail(hipErrorInvalidValue, "the parameters are null");
  const uint32_t grid[3] = {params->gridDim.x, params->gridDim.y, params->gridDim.z};
  const uint32_t block[3] = {params->blockDim.x, params->blockDim.y, params->blockDim.z};
  return prepare_kernel(static_cast<hipFunction_t>(params->func), grid, block,
                        params->sharedMemBytes, params->kernelParams, params->extra, op);
}

// Graphs of open captures count too: hipStreamGetCaptureInfo_v2 gives them out.
Graph* find_graph(hipGraph_t handle) {
  Runtime& rt = Runtime::get();
  const auto it = rt.graphs.find(handle);
  if (it != rt.graphs.end()) return it->second.get();
  for (const auto& capture : rt.captures) {
    if (capture->graph.get() == handle) return handle;
  }
  return nullptr;
}

Node* find_node(hipGraphNode_t handle) {
  Runtime& rt = Runtime::get();
  auto has = [&](const Graph& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [&](const auto& node) { return node.get() == handle; });
  };
  for (const auto& [unused, graph] : rt.graphs) {
    if (has(*graph)) return handle;
  }
  for (const auto& capture : rt.captures) {
    if (has(*capture->graph)) return handle;
  }
  return nullptr;
}

}  // namespace netra::hip

using namespace netra;
using namespace netra::hip;

extern "C" {

hipError_t hipGraphCreate(hipGraph_t* out, unsigned flags) {
  return api("hipGraphCreate", [&] {
    if (out == nullptr || flags != 0) return fail(hipErrorInvalidValue, "flags must be 0");
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    auto graph = std::make_unique<Graph>();
    *out = graph.get();
    rt.graphs[*out] = std::move(graph);
    return hipSuccess;
  });
}

hipError_t hipGraphDestroy(hipGraph_t graph) {
  return api("hipGraphDestroy", [&] {
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    return rt.graphs.erase(graph) != 0 ? hipSuccess : no_such_graph();
  });
}

hipError_t hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph, hipGraphNode_t* error_node,
                               char* log, size_t log_size) {
  return api("hipGraphInstantiate", [&] {
    if (error_node != nullptr) *error_node = nullptr;
    if (log != nullptr && log_size != 0) *log = '\0';
    return instantiate(exec, graph, 0);
  });
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* exec, hipGraph_t graph,
                                        unsigned long long flags) {
  return api("hipGraphInstantiateWithFlags", [&] { return instantiate(exec, graph, flags); });
}

hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  return api("hipGraphExecDestroy", [&] {
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    return rt.execs.erase(exec) != 0 ? hipSuccess : no_such_exec();
  });
}

hipError_t hipGraphLaunch(hipGraphExec_t handle, hipStream_t stream_handle) {
  return api("hipGraphLaunch", [&] {
    const auto exec = find_exec(handle);
    if (exec == nullptr) return no_such_exec();
    std::shared_ptr<Stream> stream;
    hipError_t code = find_stream(stream_handle, &stream);
    if (code != hipSuccess) return code;
    if (stream->capture != nullptr) {
      return fail(hipErrorNotSupported, "the simulator has no graphs inside graphs yet");
    }
    code = forbid_on_null_stream(*stream);
    return code == hipSuccess ? submit_all(stream, *exec) : code;
  });
}

// There is nothing to upload; the handles are checked all the same.
hipError_t hipGraphUpload(hipGraphExec_t handle, hipStream_t stream_handle) {
  return api("hipGraphUpload", [&] {
    std::shared_ptr<Stream> stream;
    if (find_exec(handle) == nullptr) return no_such_exec();
    return find_stream(stream_handle, &stream);
  });
}

// With `nodes` null gives the count; else fills up to *count and pads with null.
hipError_t hipGraphGetNodes(hipGraph_t handle, hipGraphNode_t* nodes, size_t* count) {
  return api("hipGraphGetNodes", [&] {
    if (count == nullptr) return hipErrorInvalidValue;
    std::lock_guard lock(Runtime::get().mutex);
    const Graph* graph = find_graph(handle);
    if (graph == nullptr) return no_such_graph();
    const size_t have = graph->nodes.size();
    if (nodes != nullptr) {
      for (size_t i = 0; i < *count; ++i) nodes[i] = i < have ? graph->nodes[i].get() : nullptr;
      *count = std::min(*count, have);
    } else {
      *count = have;
    }
    return hipSuccess;
  });
}

hipError_t hipGraphNodeGetType(hipGraphNode_t handle, hipGraphNodeType* type) {
  return api("hipGraphNodeGetType", [&] {
    if (type == nullptr) return hipErrorInvalidValue;
    std::lock_guard lock(Runtime::get().mutex);
    const Node* node = find_node(handle);
    if (node == nullptr) return no_such_node();
    constexpr hipGraphNodeType kTypes[] = {hipGraphNodeTypeKernel, hipGraphNodeTypeMemcpy,
                                           hipGraphNodeTypeMemset, hipGraphNodeTypeHost,
                                           hipGraphNodeTypeEmpty};   // as Operation has them
    static_assert(std::variant_size_v<Operation> == std::size(kTypes));
    *type = kTypes[node->operation.index()];
    return hipSuccess;
  });
}

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

hipError_t hipGraphKernelNodeSetParams(hipGraphNode_t handle, const hipKernelNodeParams* params) {
  return api("hipGraphKernelNodeSetParams", [&] {
    KernelOp op;
    const hipError_t code = from_params(params, &op);
    if (code != hipSuccess) return code;
    std::lock_guard lock(Runtime::get().mutex);
    Node* node = find_node(handle);
    if (node == nullptr || !std::holds_alternative<KernelOp>(node->operation)) {
      return fail(hipErrorInvalidValue, "the node is no kernel node");
    }
    node->operation = std::move(op);
    return hipSuccess;
  });
}

// Changes one kernel of an executable graph; the template keeps what it has.
hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t handle, hipGraphNode_t node,
                                           const hipKernelNodeParams* params) {
  return api("hipGraphExecKernelNodeSetParams", [&] {
    const auto exec = find_exec(handle);
    if (exec == nullptr) return no_such_exec();
    KernelOp op;
    const hipError_t code = from_params(params, &op);
    if (code != hipSuccess) return code;
    std::lock_guard lock(Runtime::get().mutex);
    for (Exec::Step& step : exec->steps) {
      if (step.origin != node || !std::holds_alternative<KernelOp>(step.operation)) continue;
      step.operation = std::move(op);
      return hipSuccess;
    }
    return fail(hipErrorInvalidValue, "the executable graph has no such kernel node");
  });
}

}  // extern "C"
