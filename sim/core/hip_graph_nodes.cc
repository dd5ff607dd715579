// Graphs made by hand: nodes of each kind, and what comes after what.

#include <algorithm>
#include <set>

#include "hip_runtime_state.h"

namespace netra::hip {
namespace {

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
    CopyOp op;
    const hipError_t code = from_copy(dst, src, bytes, kind, &op);
    std::lock_guard lock(Runtime::get().mutex);
    return code == hipSuccess ? add(out, graph, after, count, op) : code;
  });
}

hipError_t hipGraphAddMemsetNode(hipGraphNode_t* out, hipGraph_t graph,
                                 const hipGraphNode_t* after, size_t count,
                                 const hipMemsetParams* params) {
  return api("hipGraphAddMemsetNode", [&] {
    FillOp op;
    const hipError_t code = from_params(params, &op);
    std::lock_guard lock(Runtime::get().mutex);
    return code == hipSuccess ? add(out, graph, after, count, op) : code;
  });
}

hipError_t hipGraphAddHostNode(hipGraphNode_t* out, hipGraph_t graph, const hipGraphNode_t* after,
                               size_t count, const hipHostNodeParams* params) {
  return api("hipGraphAddHostNode", [&] {
    HostOp op;
    const hipError_t code = from_params(params, &op);
    std::lock_guard lock(Runtime::get().mutex);
    return code == hipSuccess ? add(out, graph, after, count, op) : code;
  });
}

// The node gets a copy of the child as it is now.
hipError_t hipGraphAddChildGraphNode(hipGraphNode_t* out, hipGraph_t graph,
                                     const hipGraphNode_t* after, size_t count, hipGraph_t child) {
  return api("hipGraphAddChildGraphNode", [&] {
    std::lock_guard lock(Runtime::get().mutex);
    const Graph* inner = find_graph(child);
    if (inner == nullptr) return no_such_graph();
    return add(out, graph, after, count, ChildOp{clone(*inner)});
  });
}

hipError_t hipGraphAddEventRecordNode(hipGraphNode_t* out, hipGraph_t graph,
                                      const hipGraphNode_t* after, size_t count,
                                      hipEvent_t event) {
  return api("hipGraphAddEventRecordNode", [&] {
    auto found = find_event(event);
    if (found == nullptr) return fail(hipErrorInvalidValue, "the event does not exist");
    std::lock_guard lock(Runtime::get().mutex);
    return add(out, graph, after, count, EventRecordOp{std::move(found)});
  });
}

hipError_t hipGraphAddEventWaitNode(hipGraphNode_t* out, hipGraph_t graph,
                                    const hipGraphNode_t* after, size_t count, hipEvent_t event) {
  return api("hipGraphAddEventWaitNode", [&] {
    auto found = find_event(event);
    if (found == nullptr) return fail(hipErrorInvalidValue, "the event does not exist");
    std::lock_guard lock(Runtime::get().mutex);
    return add(out, graph, after, count, EventWaitOp{std::move(found)});
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

// to[i] no longer comes after from[i]. All or nothing.
hipError_t hipGraphRemoveDependencies(hipGraph_t handle, const hipGraphNode_t* from,
                                      const hipGraphNode_t* to, size_t count) {
  return api("hipGraphRemoveDependencies", [&] {
    std::lock_guard lock(Runtime::get().mutex);
    const Graph* graph = find_graph(handle);
    if (graph == nullptr) return no_such_graph();
    if (count != 0 && (from == nullptr || to == nullptr)) {
      return fail(hipErrorInvalidValue, "a list of nodes is null");
    }
    for (size_t i = 0; i < count; ++i) {
      const bool known = has(*graph, from[i]) && has(*graph, to[i]);
      if (known && std::count(to[i]->after.begin(), to[i]->after.end(), from[i]) != 0) continue;
      return fail(hipErrorInvalidValue, "dependency " + std::to_string(i) + " does not exist");
    }
    for (size_t i = 0; i < count; ++i) {
      auto& after = to[i]->after;
      after.erase(std::remove(after.begin(), after.end(), from[i]), after.end());
    }
    return hipSuccess;
  });
}

// Executable graphs that were made of the node's graph keep what the node did.
hipError_t hipGraphDestroyNode(hipGraphNode_t handle) {
  return api("hipGraphDestroyNode", [&] {
    std::lock_guard lock(Runtime::get().mutex);
    Graph* graph = graph_with(handle);
    if (graph == nullptr) return no_such_node();
    for (const auto& node : graph->nodes) {
      auto& after = node->after;
      after.erase(std::remove(after.begin(), after.end(), handle), after.end());
    }
    graph->nodes.erase(std::find_if(graph->nodes.begin(), graph->nodes.end(),
                                    [&](const auto& own) { return own.get() == handle; }));
    return hipSuccess;
  });
}

}  // extern "C"
