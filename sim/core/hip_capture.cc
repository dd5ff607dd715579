// Stream capture: what opens and ends one, and what an open one forbids.

#include <algorithm>
#include <set>

#include "hip_runtime_state.h"

namespace netra::hip {
namespace {

thread_local hipStreamCaptureMode t_mode = hipStreamCaptureModeGlobal;

bool known_mode(hipStreamCaptureMode mode) {
  return mode == hipStreamCaptureModeGlobal || mode == hipStreamCaptureModeThreadLocal ||
         mode == hipStreamCaptureModeRelaxed;
}

// Every node that the given ones come after, themselves included.
std::set<const Node*> history(const std::vector<Node*>& tail) {
  std::set<const Node*> seen;
  std::vector<Node*> left = tail;
  while (!left.empty()) {
    const Node* node = left.back();
    left.pop_back();
    if (seen.insert(node).second) left.insert(left.end(), node->after.begin(), node->after.end());
  }
  return seen;
}

// True when work of a stream that joined the capture never came back to its origin.
bool unjoined(const Capture& capture) {
  const std::set<const Node*> reached = history(capture.streams.front()->tail);
  for (const auto& stream : capture.streams) {
    for (const Node* node : stream->tail) {
      if (reached.count(node) == 0) return true;
    }
  }
  return false;
}

void close(const std::shared_ptr<Capture>& capture) {
  Runtime& rt = Runtime::get();
  capture->open = false;
  for (const auto& stream : capture->streams) {
    stream->capture = nullptr;
    stream->tail.clear();
  }
  capture->streams.clear();
  rt.captures.erase(std::find(rt.captures.begin(), rt.captures.end(), capture));
}

hipError_t end_capture(hipStream_t handle, hipGraph_t* graph) {
  if (graph == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
  *graph = nullptr;
  std::shared_ptr<Stream> stream;
  const hipError_t code = find_stream(handle, &stream);
  if (code != hipSuccess) return code;
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return fail(hipErrorIllegalState, "the stream is not capturing");
  if (capture->streams.front() != stream) {
    return fail(hipErrorStreamCaptureUnmatched, "the capture began in another stream");
  }
  if (capture->mode != hipStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return fail(hipErrorStreamCaptureWrongThread, "the capture began in another thread");
  }
  const bool invalid = capture->invalid, loose = !invalid && unjoined(*capture);
  close(capture);
  if (invalid) {
    return fail(hipErrorStreamCaptureInvalidated, "an earlier call has spoilt this capture");
  }
  if (loose) {
    return fail(hipErrorStreamCaptureUnjoined,
                "a stream that joined the capture has work that the first stream did not wait for");
  }
  *graph = capture->graph.get();
  rt.graphs[*graph] = std::move(capture->graph);
  return hipSuccess;
}

hipStreamCaptureStatus status_of(const Stream& stream) {
  if (stream.capture == nullptr) return hipStreamCaptureStatusNone;
  return stream.capture->invalid ? hipStreamCaptureStatusInvalidated
                                 : hipStreamCaptureStatusActive;
}

// The null stream cannot tell while a global capture is open: asking is an error, but spoils
// nothing.
hipError_t query(hipStream_t handle, std::shared_ptr<Stream>* stream) {
  const hipError_t code = find_stream(handle, stream);
  if (code != hipSuccess || !(*stream)->is_null) return code;
  for (const auto& capture : Runtime::get().captures) {
    if (capture->mode == hipStreamCaptureModeGlobal) {
      return fail(hipErrorStreamCaptureImplicit, "the null stream while a global capture is open");
    }
  }
  return hipSuccess;
}

}  // namespace

hipError_t forbid_during_any_capture(const char* what) {
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  if (rt.captures.empty()) return hipSuccess;
  for (const auto& capture : rt.captures) capture->invalid = true;
  return fail(hipErrorStreamCaptureUnsupported,
              std::string(what) + " while a stream is capturing; it spoils the capture");
}

hipError_t forbid_during_strict_capture(const char* what) {
  if (t_mode == hipStreamCaptureModeRelaxed) return hipSuccess;
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  bool found = false;
  for (const auto& capture : rt.captures) {
    const bool mine = capture->thread == std::this_thread::get_id();
    const bool global = capture->mode == hipStreamCaptureModeGlobal;
    if (capture->mode == hipStreamCaptureModeRelaxed) continue;
    if (!mine && !(global && t_mode == hipStreamCaptureModeGlobal)) continue;
    capture->invalid = true;
    found = true;
  }
  if (!found) return hipSuccess;
  return fail(hipErrorStreamCaptureUnsupported,
              std::string(what) + " while a stream is capturing; it spoils the capture (only the "
              "relaxed mode allows it)");
}

hipError_t forbid_on_null_stream(const Stream& stream) {
  if (!stream.is_null) return hipSuccess;
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  bool found = false;
  for (const auto& capture : rt.captures) {
    if (capture->mode != hipStreamCaptureModeGlobal) continue;
    capture->invalid = true;
    found = true;
  }
  if (!found) return hipSuccess;
  return fail(hipErrorStreamCaptureImplicit,
              "work on the null stream while a global capture is open; it spoils the capture");
}

}  // namespace netra::hip

using namespace netra::hip;

extern "C" {

hipError_t hipStreamBeginCapture(hipStream_t handle, hipStreamCaptureMode mode) {
  return api("hipStreamBeginCapture", [&] {
    if (!known_mode(mode)) return fail(hipErrorInvalidValue, "unknown capture mode");
    std::shared_ptr<Stream> stream;
    const hipError_t code = find_stream(handle, &stream);
    if (code != hipSuccess) return code;
    if (stream->is_null) {
      return fail(hipErrorStreamCaptureUnsupported, "the null stream cannot be captured");
    }
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    if (stream->capture != nullptr) {
      return fail(hipErrorIllegalState, "the stream is capturing already");
    }
    auto capture = std::make_shared<Capture>();
    capture->id = rt.next_capture++;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->graph = std::make_unique<Graph>();
    capture->streams = {stream};
    stream->capture = capture;
    stream->tail.clear();
    rt.captures.push_back(std::move(capture));
    return hipSuccess;
  });
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  return api("hipStreamEndCapture", [&] { return end_capture(stream, graph); });
}

hipError_t hipStreamIsCapturing(hipStream_t handle, hipStreamCaptureStatus* status) {
  return api("hipStreamIsCapturing", [&] {
    if (status == nullptr) return hipErrorInvalidValue;
    std::lock_guard lock(Runtime::get().mutex);
    std::shared_ptr<Stream> stream;
    const hipError_t code = query(handle, &stream);
    if (code == hipSuccess) *status = status_of(*stream);
    return code;
  });
}

// Any result pointer but the status may be null. The graph belongs to the capture and the list of
// dependencies to the stream: both are valid until the next call that changes them.
hipError_t hipStreamGetCaptureInfo_v2(hipStream_t handle, hipStreamCaptureStatus* status,
                                      unsigned long long* id, hipGraph_t* graph,
                                      const hipGraphNode_t** dependencies, size_t* count) {
  return api("hipStreamGetCaptureInfo_v2", [&] {
    if (status == nullptr) return hipErrorInvalidValue;
    std::lock_guard lock(Runtime::get().mutex);
    std::shared_ptr<Stream> stream;
    const hipError_t code = query(handle, &stream);
    if (code != hipSuccess) return code;
    *status = status_of(*stream);
    if (*status != hipStreamCaptureStatusActive) return hipSuccess;
    if (id != nullptr) *id = stream->capture->id;
    if (graph != nullptr) *graph = stream->capture->graph.get();
    if (dependencies != nullptr) *dependencies = stream->tail.data();
    if (count != nullptr) *count = stream->tail.size();
    return hipSuccess;
  });
}

hipError_t hipStreamGetCaptureInfo(hipStream_t handle, hipStreamCaptureStatus* status,
                                   unsigned long long* id) {
  return api("hipStreamGetCaptureInfo", [&] {
    if (status == nullptr) return hipErrorInvalidValue;
    std::lock_guard lock(Runtime::get().mutex);
    std::shared_ptr<Stream> stream;
    const hipError_t code = query(handle, &stream);
    if (code != hipSuccess) return code;
    *status = status_of(*stream);
    if (*status == hipStreamCaptureStatusActive && id != nullptr) *id = stream->capture->id;
    return hipSuccess;
  });
}

// Sets the calling thread's mode and gives the one that it had.
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  return api("hipThreadExchangeStreamCaptureMode", [&] {
    if (mode == nullptr || !known_mode(*mode)) {
      return fail(hipErrorInvalidValue, "unknown capture mode");
    }
    std::swap(*mode, t_mode);
    return hipSuccess;
  });
}

}  // extern "C"
