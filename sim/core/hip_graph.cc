// Graphs as a whole: templates, their clones, and executable graphs.

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "hip_runtime_state.h"

namespace netra::hip {
namespace {

constexpr unsigned long long kDeviceLaunch = 4, kKnownFlags = 1 | 2 | 4 | 8;

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
  auto exec = exec_of(*it->second);
  *out = exec.get();
  rt.execs[exec.get()] = std::move(exec);
  return hipSuccess;
}

// The first graph below those of the process, child graphs included, that `wanted` accepts.
Graph* search(const std::function<bool(const Graph&)>& wanted) {
  Runtime& rt = Runtime::get();
  const std::function<Graph*(Graph*)> below = [&](Graph* graph) -> Graph* {
    if (wanted(*graph)) return graph;
    for (const auto& node : graph->nodes) {
      const auto* child = std::get_if<ChildOp>(&node->operation);
      Graph* found = child != nullptr ? below(child->graph.get()) : nullptr;
      if (found != nullptr) return found;
    }
    return nullptr;
  };
  for (const auto& [unused, graph] : rt.graphs) {
    if (Graph* found = below(graph.get())) return found;
  }
  for (const auto& capture : rt.captures) {
    if (Graph* found = below(capture->graph.get())) return found;
  }
  return nullptr;
}

}  // namespace

hipError_t no_such_graph() { return fail(hipErrorInvalidValue, "the graph does not exist"); }
hipError_t no_such_node() { return fail(hipErrorInvalidValue, "the graph node does not exist"); }
hipError_t no_such_exec() {
  return fail(hipErrorInvalidValue, "the executable graph does not exist");
}

std::shared_ptr<Exec> find_exec(hipGraphExec_t handle) {
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  const auto it = rt.execs.find(handle);
  return it == rt.execs.end() ? nullptr : it->second;
}

bool has(const Graph& graph, const Node* node) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const auto& own) { return own.get() == node; });
}

// Graphs of open captures count too: hipStreamGetCaptureInfo_v2 gives them out.
Graph* find_graph(hipGraph_t handle) {
  return search([&](const Graph& graph) { return &graph == handle; });
}

Graph* graph_with(const Node* node) {
  return search([&](const Graph& graph) { return has(graph, node); });
}

Node* find_node(hipGraphNode_t handle) { return graph_with(handle) != nullptr ? handle : nullptr; }

// hipGraphAdd* and hipGraphAddDependencies allow no cycle.
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

std::shared_ptr<Exec> exec_of(const Graph& graph) {
  auto exec = std::make_shared<Exec>();
  std::map<const Node*, size_t> made;
  for (const auto& node : graph.nodes) made.emplace(node.get(), made.size());
  for (const Node* node : in_order(graph)) {
    Exec::Step step;
    step.origin = node;
    step.operation = node->operation;
    step.made = made[node];
    for (const Node* other : node->after) step.after.push_back(made[other]);
    std::sort(step.after.begin(), step.after.end());
    const auto* child = std::get_if<ChildOp>(&node->operation);
    if (child != nullptr) step.child = exec_of(*child->graph);
    exec->steps.push_back(std::move(step));
  }
  return exec;
}

GraphChange update(const Graph& graph, Exec& fresh) {
  if (graph.nodes.size() != fresh.steps.size()) {
    return {hipGraphExecUpdateErrorTopologyChanged, nullptr,
            "the executable graph has " + std::to_string(fresh.steps.size()) +
                " nodes, the new one " + std::to_string(graph.nodes.size())};
  }
  std::map<const Node*, size_t> made;
  for (const auto& node : graph.nodes) made.emplace(node.get(), made.size());
  for (Exec::Step& step : fresh.steps) {
    Node* node = graph.nodes[step.made].get();
    const std::string which = "node " + std::to_string(step.made);
    if (node->operation.index() != step.operation.index()) {
      return {hipGraphExecUpdateErrorNodeTypeChanged, node, which + " is of another kind"};
    }
    std::vector<size_t> after;
    for (const Node* other : node->after) after.push_back(made.at(other));
    std::sort(after.begin(), after.end());
    if (after != step.after) {
      return {hipGraphExecUpdateErrorTopologyChanged, node, which + " has other dependencies"};
    }
    if (const auto* copy = std::get_if<CopyOp>(&node->operation)) {
      if (copy->kind != std::get<CopyOp>(step.operation).kind) {
        return {hipGraphExecUpdateErrorParametersChanged, node,
                which + " copies in another direction"};
      }
    }
    if (const auto* child = std::get_if<ChildOp>(&node->operation)) {
      auto inner = std::make_shared<Exec>(*step.child);
      GraphChange change = update(*child->graph, *inner);
      if (change.result != hipGraphExecUpdateSuccess) {
        return {change.result, node, which + ", a child graph: " + change.text};
      }
      step.child = std::move(inner);
    }
    if (std::holds_alternative<AllocOp>(node->operation) ||
        std::holds_alternative<FreeOp>(node->operation)) {
      return {hipGraphExecUpdateErrorNotSupported, node, which + " allocates or frees memory"};
    }
    step.operation = node->operation;
    step.origin = node;
  }
  return {};
}

std::unique_ptr<Graph> clone(const Graph& graph) {
  auto copy = std::make_unique<Graph>();
  copy->original = &graph;
  std::map<const Node*, Node*> twin;
  for (const auto& node : graph.nodes) {
    auto made = std::make_unique<Node>();
    made->operation = node->operation;
    made->original = node.get();
    auto* child = std::get_if<ChildOp>(&made->operation);
    if (child != nullptr) child->graph = clone(*child->graph);
    twin[node.get()] = made.get();
    copy->nodes.push_back(std::move(made));
  }
  for (const auto& node : graph.nodes) {
    for (const Node* other : node->after) twin[node.get()]->after.push_back(twin.at(other));
  }
  return copy;
}

std::unique_ptr<Graph> graph_of(const Exec& exec) {
  auto graph = std::make_unique<Graph>();
  std::vector<Node*> made(exec.steps.size());
  for (const Exec::Step& step : exec.steps) {
    auto node = std::make_unique<Node>();
    node->operation = step.enabled ? step.operation : EmptyOp{};
    if (step.child != nullptr) node->operation = ChildOp{graph_of(*step.child)};
    for (const size_t other : step.after) node->after.push_back(made[other]);
    made[step.made] = node.get();
    graph->nodes.push_back(std::move(node));
  }
  return graph;
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

// A graph that allocates memory has one owner of it, so it has no clone; ROCm refuses it too.
hipError_t hipGraphClone(hipGraph_t* out, hipGraph_t handle) {
  return api("hipGraphClone", [&] {
    if (out == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    const Graph* graph = find_graph(handle);
    if (graph == nullptr) return no_such_graph();
    for (const auto& node : graph->nodes) {
      if (std::holds_alternative<AllocOp>(node->operation) ||
          std::holds_alternative<FreeOp>(node->operation)) {
        return fail(hipErrorNotSupported, "the graph allocates or frees memory");
      }
    }
    auto copy = clone(*graph);
    *out = copy.get();
    rt.graphs[*out] = std::move(copy);
    return hipSuccess;
  });
}

hipError_t hipGraphNodeFindInClone(hipGraphNode_t* out, hipGraphNode_t original,
                                   hipGraph_t handle) {
  return api("hipGraphNodeFindInClone", [&] {
    if (out == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
    std::lock_guard lock(Runtime::get().mutex);
    const Graph* graph = find_graph(handle);
    if (graph == nullptr) return no_such_graph();
    if (graph->original == nullptr) {
      return fail(hipErrorInvalidValue, "the graph was not made by hipGraphClone");
    }
    for (const auto& node : graph->nodes) {
      if (node->original != original || original == nullptr) continue;
      *out = node.get();
      return hipSuccess;
    }
    return fail(hipErrorInvalidValue, "the clone has no copy of that node");
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

// All or nothing: an executable graph that cannot be updated stays what it was.
hipError_t hipGraphExecUpdate(hipGraphExec_t exec_handle, hipGraph_t handle, hipGraphNode_t* node,
                              hipGraphExecUpdateResult* result) {
  return api("hipGraphExecUpdate", [&] {
    if (node == nullptr || result == nullptr) {
      return fail(hipErrorInvalidValue, "a result pointer is null");
    }
    *node = nullptr;
    *result = hipGraphExecUpdateError;
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    const auto exec = find_exec(exec_handle);
    if (exec == nullptr) return no_such_exec();
    const Graph* graph = find_graph(handle);
    if (graph == nullptr) return no_such_graph();
    Exec fresh = *exec;
    const GraphChange change = update(*graph, fresh);
    *result = change.result;
    *node = change.node;
    if (change.result != hipGraphExecUpdateSuccess) {
      return fail(hipErrorGraphExecUpdateFailure, change.text);
    }
    *exec = std::move(fresh);
    return hipSuccess;
  });
}

// Launching into a stream that captures makes a child graph of it.
hipError_t hipGraphLaunch(hipGraphExec_t handle, hipStream_t stream_handle) {
  return api("hipGraphLaunch", [&] {
    const auto exec = find_exec(handle);
    if (exec == nullptr) return no_such_exec();
    std::shared_ptr<Stream> stream;
    hipError_t code = find_stream(stream_handle, &stream);
    if (code != hipSuccess) return code;
    if (stream->capture != nullptr) return submit(stream, ChildOp{graph_of(*exec)});
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

}  // extern "C"
