// What a graph consists of: nodes, kinds, edges, and a drawing.

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "hip_runtime_state.h"

namespace netra::hip {
namespace {

struct Kind {
  hipGraphNodeType type;
  const char* name;
};
constexpr Kind kNodeTypes[] = {   // as Operation has them
    {hipGraphNodeTypeKernel, "kernel"},       {hipGraphNodeTypeMemcpy, "memcpy"},
    {hipGraphNodeTypeMemset, "memset"},       {hipGraphNodeTypeHost, "host"},
    {hipGraphNodeTypeEmpty, "empty"},         {hipGraphNodeTypeGraph, "graph"},
    {hipGraphNodeTypeWaitEvent, "wait event"}, {hipGraphNodeTypeEventRecord, "record event"},
    {hipGraphNodeTypeMemAlloc, "malloc"},     {hipGraphNodeTypeMemFree, "free"}};
static_assert(std::variant_size_v<Operation> == std::size(kNodeTypes));

// HIP's way of giving out lists: with `out` null the count; else up to *count, padded with null.
hipError_t give(const std::vector<Node*>& found, hipGraphNode_t* out, size_t* count) {
  if (out == nullptr) {
    *count = found.size();
    return hipSuccess;
  }
  for (size_t i = 0; i < *count; ++i) out[i] = i < found.size() ? found[i] : nullptr;
  *count = std::min(*count, found.size());
  return hipSuccess;
}

// What `choose` makes of a graph, given out; the checks that these functions share.
template <typename Choose>
hipError_t list(hipGraph_t handle, hipGraphNode_t* out, size_t* count, Choose choose) {
  if (count == nullptr) return fail(hipErrorInvalidValue, "the pointer to the count is null");
  std::lock_guard lock(Runtime::get().mutex);
  const Graph* graph = find_graph(handle);
  return graph != nullptr ? give(choose(*graph), out, count) : no_such_graph();
}

std::vector<Node*> dependents(const Graph& graph, const Node* node) {
  std::vector<Node*> found;
  for (const auto& other : graph.nodes) {
    if (std::count(other->after.begin(), other->after.end(), node) != 0) {
      found.push_back(other.get());
    }
  }
  return found;
}

std::string label_of(const Operation& operation) {
  std::string text = kNodeTypes[operation.index()].name;
  if (const auto* kernel = std::get_if<KernelOp>(&operation)) {
    auto triple = [](const uint32_t v[3]) {
      return std::to_string(v[0]) + "x" + std::to_string(v[1]) + "x" + std::to_string(v[2]);
    };
    text += "\\n" + kernel->function->name + "\\ngrid " + triple(kernel->grid) + " block " +
            triple(kernel->block);
  } else if (const auto* copy = std::get_if<CopyOp>(&operation)) {
    text += "\\n" + std::to_string(copy->bytes) + " bytes";
  }
  return text;
}

}  // namespace
}  // namespace netra::hip

using namespace netra;
using namespace netra::hip;

extern "C" {

hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count) {
  return api("hipGraphGetNodes", [&] {
    return list(graph, nodes, count, [](const Graph& g) {
      std::vector<Node*> all;
      for (const auto& node : g.nodes) all.push_back(node.get());
      return all;
    });
  });
}

hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count) {
  return api("hipGraphGetRootNodes", [&] {
    return list(graph, nodes, count, [](const Graph& g) {
      std::vector<Node*> roots;
      for (const auto& node : g.nodes) {
        if (node->after.empty()) roots.push_back(node.get());
      }
      return roots;
    });
  });
}

hipError_t hipGraphGetEdges(hipGraph_t handle, hipGraphNode_t* from, hipGraphNode_t* to,
                            size_t* count) {
  return api("hipGraphGetEdges", [&] {
    if (count == nullptr || (from == nullptr) != (to == nullptr)) {
      return fail(hipErrorInvalidValue, "the count or one of the two lists is null");
    }
    std::lock_guard lock(Runtime::get().mutex);
    const Graph* graph = find_graph(handle);
    if (graph == nullptr) return no_such_graph();
    std::vector<Node*> first, then;
    for (const auto& node : graph->nodes) {
      first.insert(first.end(), node->after.begin(), node->after.end());
      then.resize(first.size(), node.get());
    }
    size_t same = *count;
    give(first, from, &same);
    return give(then, to, count);
  });
}

hipError_t hipGraphNodeGetDependencies(hipGraphNode_t handle, hipGraphNode_t* nodes,
                                       size_t* count) {
  return api("hipGraphNodeGetDependencies", [&] {
    if (count == nullptr) return fail(hipErrorInvalidValue, "the pointer to the count is null");
    std::lock_guard lock(Runtime::get().mutex);
    const Node* node = find_node(handle);
    return node != nullptr ? give(node->after, nodes, count) : no_such_node();
  });
}

hipError_t hipGraphNodeGetDependentNodes(hipGraphNode_t handle, hipGraphNode_t* nodes,
                                         size_t* count) {
  return api("hipGraphNodeGetDependentNodes", [&] {
    if (count == nullptr) return fail(hipErrorInvalidValue, "the pointer to the count is null");
    std::lock_guard lock(Runtime::get().mutex);
    const Graph* graph = graph_with(handle);
    return graph != nullptr ? give(dependents(*graph, handle), nodes, count) : no_such_node();
  });
}

hipError_t hipGraphNodeGetType(hipGraphNode_t handle, hipGraphNodeType* type) {
  return api("hipGraphNodeGetType", [&] {
    if (type == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
    std::lock_guard lock(Runtime::get().mutex);
    const Node* node = find_node(handle);
    if (node == nullptr) return no_such_node();
    *type = kNodeTypes[node->operation.index()].type;
    return hipSuccess;
  });
}

// Writes a DOT file, whole or not at all. The flags ask for more detail or less; all get the same.
hipError_t hipGraphDebugDotPrint(hipGraph_t handle, const char* path, unsigned /*flags*/) {
  return api("hipGraphDebugDotPrint", [&] {
    if (path == nullptr) return fail(hipErrorInvalidValue, "the path is null");
    std::string text = "digraph graph_0 {\n";
    {
      std::lock_guard lock(Runtime::get().mutex);
      const Graph* graph = find_graph(handle);
      if (graph == nullptr) return no_such_graph();
      std::map<const Node*, size_t> number;
      for (const auto& node : graph->nodes) number.emplace(node.get(), number.size());
      for (const auto& node : graph->nodes) {
        const std::string name = "  node_" + std::to_string(number[node.get()]);
        text += name + " [shape=box, label=\"" + label_of(node->operation) + "\"];\n";
        for (const Node* other : node->after) {
          text += "  node_" + std::to_string(number[other]) + " ->" + name.substr(1) + ";\n";
        }
      }
    }
    const std::string temporary = std::string(path) + ".new";
    std::ofstream file(temporary, std::ios::binary);
    file << text << "}\n";
    file.close();
    if (!file || std::rename(temporary.c_str(), path) != 0) {
      std::remove(temporary.c_str());
      return fail(hipErrorInvalidValue, std::string(path) + " cannot be written");
    }
    return hipSuccess;
  });
}

}  // extern "C"
