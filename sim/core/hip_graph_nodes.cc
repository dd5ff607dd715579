// Graphs made by hand: nodes of each kind, and what comes after what.

#include <algorithm>
#include <set>

#include "hip_runtime_state.h"

namespace netra::hip {
namespace {

hipError_t no_such_graph() { return fail(hipErrorInvalidValue, "the graph does not exist"); }

bool has(const Graph& graph, const Node* node) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const auto& own) { return own.get() == node; });
}

bool comes_after(const Node* node, const Node* other) {
  std::set<const Node*> seen;
  std::vector<const Node*> left = {node};
  while (!left.empty()) {
    const Node* next = left.back();
    left.pop_back();
    if (next == other) return true;
    if (seen.insert(next).second) left.insert(left.end(), next->after.begin(), next->after.end());
  }
  return false;
}

hipError_t add(hipGraphNode_t* out, hipGraph_t handle, const hipGraphNode_t* after, size_t count,
               Operation operation) {
  if (out == nullptr || (after == nullptr && count != 0)) {
    return fail(hipErrorInvalidValue, "the result pointer or the list of dependencies is null");
  }
  Graph* graph = find_graph(handle);
  if (graph == nullptr) return no_such_graph();
  auto node = std::make_unique<Node>();
  for (size_t i = 0; i < count; ++i) {
    if (!has(*graph, after[i])) {
      return fail(hipErrorInvalidValue,
                  "dependency " + std::to_string(i) + " is no node of this graph");
    }
    if (std::count(after, after + i, after[i]) != 0) {
      return fail(hipErrorInvalidValue, "dependency " + std::to_string(i) + " is there twice");
    }
    node->after.push_back(after[i]);
  }
  node->operation = std::move(operation);
  *out = node.get();
  graph->nodes.push_back(std::move(node));
  return hipSuccess;
}

}  // namespace
}  // namespace netra::hip

using namespace netra::hip;

extern "C" {

hipError_t hipGraphAddKernelNode(hipGraphNode_t* out, hipGraph_t graph,
                                 const hipGraphNode_t* after, size_t count,
                                 const hipKernelNodeParams* params) {
  return api("hipGraphAddKernelNode", [&] {
    KernelOp op;
    const hipError_t code = from_params(params, &op);
    std::lock_guard lock(Runtime::get().mutex);
    return code == hipSuccess ? add(out, graph, after, count, std::move(op)) : code;
  });
}

hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t* out, hipGraph_t graph,
                                   const hipGraphNode_t* after, size_t count, void* dst,
                                   const void* src, size_t bytes, hipMemcpyKind kind) {
  return api("hipGraphAddMemcpyNode1D", [&] {
    const CopyOp op{dst, src, bytes, kind};
    if (bytes == 0) return fail(hipErrorInvalidValue, "the copy is empty");
    const hipError_t code = check_copy(op);
    std::lock_guard lock(Runtime::get().mutex);
    return code == hipSuccess ? add(out, graph, after, count, op) : code;
  });
}

// One row only: a fill of several would be several operations here.
hipError_t hipGraphAddMemsetNode(hipGraphNode_t* out, hipGraph_t graph,
                                 const hipGraphNode_t* after, size_t count,
                                 const hipMemsetParams* params) {
  return api("hipGraphAddMemsetNode", [&] {
    if (params == nullptr) return fail(hipErrorInvalidValue, "the parameters are null");
    if (params->elementSize != 1 && params->elementSize != 2 && params->elementSize != 4) {
      return fail(hipErrorInvalidValue, "elements have 1, 2 or 4 bytes");
    }
    if (params->height == 0 || params->width == 0) {
      return fail(hipErrorInvalidValue, "the fill is empty");
    }
    if (params->height != 1) {
      return fail(hipErrorNotSupported, "the simulator has no fills of several rows");
    }
    const FillOp op{params->dst, params->value, params->elementSize, params->width};
    const hipError_t code = check_fill(op);
    std::lock_guard lock(Runtime::get().mutex);
    return code == hipSuccess ? add(out, graph, after, count, op) : code;
  });
}

hipError_t hipGraphAddHostNode(hipGraphNode_t* out, hipGraph_t graph, const hipGraphNode_t* after,
                               size_t count, const hipHostNodeParams* params) {
  return api("hipGraphAddHostNode", [&] {
    if (params == nullptr || params->fn == nullptr) {
      return fail(hipErrorInvalidValue, "the parameters or the function are null");
    }
    std::lock_guard lock(Runtime::get().mutex);
    return add(out, graph, after, count, HostOp{params->fn, params->userData});
  });
}

hipError_t hipGraphAddEmptyNode(hipGraphNode_t* out, hipGraph_t graph, const hipGraphNode_t* after,
                                size_t count) {
  return api("hipGraphAddEmptyNode", [&] {
    std::lock_guard lock(Runtime::get().mutex);
    return add(out, graph, after, count, EmptyOp{});
  });
}

// Each to[i] comes after from[i]. All or nothing.
hipError_t hipGraphAddDependencies(hipGraph_t handle, const hipGraphNode_t* from,
                                   const hipGraphNode_t* to, size_t count) {
  return api("hipGraphAddDependencies", [&] {
    std::lock_guard lock(Runtime::get().mutex);
    const Graph* graph = find_graph(handle);
    if (graph == nullptr) return no_such_graph();
    if (count != 0 && (from == nullptr || to == nullptr)) {
      return fail(hipErrorInvalidValue, "a list of nodes is null");
    }
    std::string why;
    size_t i = 0;
    for (; i < count && why.empty(); ++i) {
      const bool known = has(*graph, from[i]) && has(*graph, to[i]);
      if (!known) why = " has a node that is not of this graph";
      else if (std::count(to[i]->after.begin(), to[i]->after.end(), from[i])) why = " exists";
      else if (comes_after(from[i], to[i])) why = " closes a cycle";
      else to[i]->after.push_back(from[i]);
    }
    if (why.empty()) return hipSuccess;
    for (size_t k = 0; k + 1 < i; ++k) to[k]->after.pop_back();
    return fail(hipErrorInvalidValue, "dependency " + std::to_string(i - 1) + why);
  });
}

}  // extern "C"
