// Compressed offload bundles ("CCOB"), which clang writes with --offload-compress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace netra::compressed {

bool is_compressed(const uint8_t* data, size_t size);

// Bytes from the start of the header to the end of the file. 0 when the header does not say
// (version 1) or is damaged.
uint64_t promised_size(const uint8_t* data, size_t size);

// Unpacks to `out`; false and one sentence in `error` when that is not possible.
bool unpack(const uint8_t* data, size_t size, std::vector<uint8_t>* out, std::string* error);

}  // namespace netra::compressed
