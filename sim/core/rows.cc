// The table of semantics as JSON: what a coverage report or a test walks over.
#include "rows.h"

#include <cstdlib>
#include <cstring>

#include "json.h"
#include "program.h"

namespace netra {
namespace {

const char* type_name(Type t) {
  static constexpr const char* kNames[] = {"none", "b16", "u16", "i16", "f16",  "bf16",
                                           "b32",  "u32", "i32", "f32", "b64",  "u64",
                                           "i64",  "f64", "pk32", "mask", "wide", "text"};
  return kNames[static_cast<int>(t)];
}
const char* promise_name(Promise p) {
  return p == Promise::exact ? "exact" : p == Promise::within_ulp ? "within_1_ulp" : "model";
}
const char* role_name(Role r) { return r == kRead ? "read" : r == kWrite ? "write" : "update"; }

std::string rows_json() {
  json::Writer json;
  json.open('[');
  for (const Row* row : all_rows()) {
    if (!row->archs) continue;
    json.open('{');
    json.key("name").string(row->name);
    json.key("class").string(class_name(row->cls));
    json.key("archs").open('[');
    if (row->archs & kGfx950) json.string("gfx950");
    if (row->archs & kGfx1151) json.string("gfx1151");
    json.close(']');
    json.key("clamp").boolean(row->flags & kClampRow);
    json.key("promise").string(promise_name(promise_of(row->flags)));
    json.key("returns").boolean(row->flags & kReturnRow);
    json.key("lds").boolean(row->flags & kLdsRow);
    json.key("slots").open('[');
    for (int k = 0; k < row->slots; ++k) {
      json.open('{');
      json.key("type").string(type_name(row->slot[k].type));
      json.key("role").string(role_name(row->slot[k].role));
      json.key("dwords").number(row->slot[k].dwords);
      json.close('}');
    }
    json.close(']');
    json.close('}');
  }
  json.close(']');
  return json.text();
}

}  // namespace
}  // namespace netra

extern "C" {

// Every row of the table: name, class, archs, what it is chosen by among rows of one name (clamp;
// returns: sc0 or glc; lds), promise (how much of the result is known), and its slots with type, role
// and dwords (of type "wide"). Free the text with netraSimFree.
int netraSimRows(char** out) {
  if (out == nullptr) return 1;   // hipErrorInvalidValue
  *out = nullptr;
  try {
    const std::string text = netra::rows_json();
    *out = static_cast<char*>(std::malloc(text.size() + 1));
    if (*out == nullptr) return 2;   // hipErrorOutOfMemory
    std::memcpy(*out, text.c_str(), text.size() + 1);
    return 0;
  } catch (...) {
    return 2;
  }
}

}  // extern "C"
