#include "bundle.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "compressed.h"

namespace netra::bundle {
namespace {

constexpr char kMagic[] = "__CLANG_OFFLOAD_BUNDLE__";
constexpr size_t kMagicSize = sizeof kMagic - 1;
constexpr uint64_t kMostEntries = 1024;

struct Entry {
  std::string target;   // "hipv4-amdgcn-amd-amdhsa--gfx950:xnack-"
  uint64_t offset = 0, size = 0;
};

// "" for an entry of the host.
std::string arch_of(const std::string& target) {
  if (target.find("amdgcn") == std::string::npos) return "";
  const std::string plain = target.substr(0, target.find(':'));   // features follow a colon
  return plain.substr(plain.rfind('-') + 1);
}

bool read_table(const uint8_t* data, size_t size, std::vector<Entry>* entries) {
  size_t at = kMagicSize;
  auto number = [&](uint64_t* value) {
    if (size - at < 8) return false;
    std::memcpy(value, data + at, 8);
    at += 8;
    return true;
  };
  uint64_t count = 0;
  if (!number(&count) || count > kMostEntries) return false;
  for (uint64_t i = 0; i < count; ++i) {
    Entry entry;
    uint64_t length = 0;
    if (!number(&entry.offset) || !number(&entry.size) || !number(&length)) return false;
    if (length > size - at) return false;
    entry.target.assign(reinterpret_cast<const char*>(data + at), length);
    at += length;
    entries->push_back(std::move(entry));
  }
  return true;
}

}  // namespace

bool is_bundle(const uint8_t* data, size_t size) {
  return size >= kMagicSize && std::memcmp(data, kMagic, kMagicSize) == 0;
}

uint64_t promised_size(const uint8_t* data, size_t size) {
  std::vector<Entry> entries;
  if (!is_bundle(data, size) || !read_table(data, size, &entries)) return 0;
  uint64_t end = 0;
  for (const Entry& entry : entries) end = std::max(end, entry.offset + entry.size);
  return end;
}

bool select(const uint8_t** data, size_t* size, const std::string& arch,
            std::vector<uint8_t>* unpacked, std::string* error, int* hip_error) {
  *hip_error = 200;
  if (compressed::is_compressed(*data, *size)) {
    if (!compressed::unpack(*data, *size, unpacked, error)) return false;
    if (!is_bundle(unpacked->data(), unpacked->size())) {
      *error = "the compressed offload bundle holds no offload bundle";
      return false;
    }
    *data = unpacked->data();
    *size = unpacked->size();
  }
  if (!is_bundle(*data, *size)) {
    *hip_error = 0;
    return true;
  }
  std::vector<Entry> entries;
  if (!read_table(*data, *size, &entries)) {
    *error = "the offload bundle is truncated or damaged: its table does not fit the file";
    return false;
  }
  const Entry* found = nullptr;
  std::string listed;
  int devices = 0;
  for (const Entry& entry : entries) {
    const std::string name = arch_of(entry.target);
    if (name.empty()) continue;
    ++devices;
    listed += (listed.empty() ? "" : ", ") + name;
    if (found == nullptr && (arch.empty() || name == arch)) found = &entry;
  }
  if (arch.empty() && devices > 1) {
    *error = "the file is an offload bundle with several code objects (" + listed +
             "); unpack the one you mean with clang-offload-bundler --unbundle";
    return false;
  }
  if (found == nullptr) {
    *hip_error = 209;
    *error = "the offload bundle has no code object for " + (arch.empty() ? "any GPU" : arch) +
             (listed.empty() ? "" : "; it has " + listed);
    return false;
  }
  if (found->offset > *size || found->size > *size - found->offset) {
    *error = "the offload bundle is truncated: its entry for " + arch_of(found->target) +
             " lies outside the file";
    return false;
  }
  *data += found->offset;
  *size = found->size;
  *hip_error = 0;
  return true;
}

}  // namespace netra::bundle
